"""Which sessions there are, page by page in both directions: CONTRACT C.1, F.238; fault 17."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import timedelta, timezone
from functools import partial
from typing import Any, Final, Literal, get_args

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkernel.errors import InvalidInputError, InvalidPageError
from memkernel.models import AgentReference, Page, SessionRecord, SessionStatus
from memkernel.store import Database, pages
from tests.store.attaching import NO_STORE, all_ids, attach, make_stores

ORDERS: Final[tuple[Literal["asc", "desc"], ...]] = ("asc", "desc")


def test_f238_the_sessions_of_a_store_are_exactly_those_that_attach_it(database: Database) -> None:
    one, other, lonely = make_stores(database, "one", "other", "lonely")
    both = database.sessions.create(attach(one, other))
    first = database.sessions.create(attach(one, access="read_only"))
    database.sessions.create()
    assert database.sessions.list(memory_store_id=one.id).data == [first, both]
    assert database.sessions.list(memory_store_id=other.id).data == [both]
    assert database.sessions.list(memory_store_id=lonely.id).data == []
    assert database.sessions.list(memory_store_id=NO_STORE).data == []
    assert database.sessions.list(memory_store_id="no id").data == []


def test_sessions_are_listed_newest_first_or_oldest_first_over_pages_of_one(fresh_database: Database) -> None:
    sessions = fresh_database.sessions
    made = [sessions.create(title=str(number)).id for number in range(5)]
    assert pages_of_one(lambda page: sessions.list(limit=1, page=page)) == made[::-1]
    assert pages_of_one(lambda page: sessions.list(limit=1, page=page, order="asc")) == made


def pages_of_one(list_from: Callable[[str | None], Page[SessionRecord]]) -> list[str]:
    seen: list[str] = []
    page = None
    while True:
        listing = list_from(page)
        seen += all_ids(listing)
        page = listing.next_page
        if page is None:
            return seen


def test_sessions_of_one_moment_are_paged_without_a_gap(fresh_database: Database, dsn: str) -> None:
    made = sorted(fresh_database.sessions.create().id for _ in range(4))
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute("UPDATE memkernel.sessions SET created_at = '2026-11-30 10:00Z'")
    sessions = fresh_database.sessions
    assert pages_of_one(lambda page: sessions.list(limit=1, page=page)) == made[::-1]
    assert pages_of_one(lambda page: sessions.list(limit=1, page=page, order="asc")) == made


def test_pages_lead_back_to_where_they_came_from(fresh_database: Database) -> None:
    """`prev_page` is null on the first page only, `next_page` on the last only (CONTRACT C.1)."""
    sessions = fresh_database.sessions
    made = [sessions.create().id for _ in range(7)]
    for order in ORDERS:
        expected = made if order == "asc" else made[::-1]
        listing = partial(sessions.list, limit=3, order=order)
        there = walk(listing)
        assert [all_ids(page) for page in there] == [expected[:3], expected[3:6], expected[6:]]
        assert [page.prev_page is None for page in there] == [True, False, False]
        back = walk(listing, there[-1].prev_page, back=True)
        assert [all_ids(page) for page in back] == [expected[3:6], expected[:3]]
        assert [page.next_page is None for page in back] == [False, False]
        assert all_ids(listing(page=back[-1].next_page)) == expected[3:6]


def walk(
    list_from: Callable[..., Page[SessionRecord]], page: str | None = None, *, back: bool = False
) -> list[Page[SessionRecord]]:
    """The pages from here to the end, or back to the beginning."""
    pages = [list_from(page=page)]
    while page := pages[-1].prev_page if back else pages[-1].next_page:
        pages.append(list_from(page=page))
    return pages


def test_a_page_back_is_cut_by_the_limit_it_is_asked_with(fresh_database: Database) -> None:
    sessions = fresh_database.sessions
    made = [sessions.create().id for _ in range(6)]
    last = walk(partial(sessions.list, order="asc", limit=5))[-1]
    assert all_ids(last) == made[5:]
    nearest = sessions.list(order="asc", limit=2, page=last.prev_page)
    assert all_ids(nearest) == made[3:5]
    assert all_ids(sessions.list(order="asc", limit=100, page=nearest.prev_page)) == made[:3]


def test_a_page_is_the_first_once_nothing_is_before_it(fresh_database: Database) -> None:
    sessions = fresh_database.sessions
    made = [sessions.create().id for _ in range(4)]
    second = sessions.list(order="asc", limit=2, page=sessions.list(order="asc", limit=2).next_page)
    assert second.prev_page
    for ident in made[:2]:
        sessions.delete(ident)
    empty = sessions.list(order="asc", limit=2, page=second.prev_page)
    assert (empty.data, empty.prev_page) == ([], None)
    assert all_ids(sessions.list(order="asc", limit=2, page=empty.next_page)) == made[2:]


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_paging_back_and_forth_neither_skips_nor_repeats_what_stays(database: Database, data: st.DataObject) -> None:
    """Sessions come and go between the pages, and the reader turns round wherever it likes."""
    sessions, (store,) = database.sessions, make_stores(database, "Notes")
    made = [sessions.create(attach(store)).id for _ in range(data.draw(st.integers(1, 9)))]
    leaving = data.draw(st.lists(st.sampled_from(made), unique=True))
    order = data.draw(st.sampled_from(ORDERS))
    staying = [ident for ident in (made if order == "asc" else made[::-1]) if ident not in leaving]
    token, forwards, first, last = None, True, 0, 0
    for turns in [False, *data.draw(st.lists(st.booleans(), max_size=12))]:
        page = sessions.list(memory_store_id=store.id, order=order, limit=data.draw(st.integers(1, 3)), page=token)
        there = [ident for ident in all_ids(page) if ident in staying]
        first, last = (last, last + len(there)) if forwards else (first - len(there), first)
        assert there == staying[first:last]
        assert page.prev_page or first == 0
        assert page.next_page or last == len(staying)
        forwards ^= turns
        token = page.next_page if forwards else page.prev_page
        if token is None:
            break
        for _ in range(data.draw(st.integers(0, 2))):
            if leaving and data.draw(st.booleans()):
                sessions.delete(leaving.pop())
            else:
                sessions.create(attach(store))


def test_paging_survives_sessions_that_come_and_go(fresh_database: Database) -> None:
    sessions = fresh_database.sessions
    made = [sessions.create().id for _ in range(4)]
    first = sessions.list(limit=2)
    assert all_ids(first) == [made[3], made[2]]
    sessions.delete(made[2])
    sessions.create()
    assert all_ids(sessions.list(limit=2, page=first.next_page)) == [made[1], made[0]]


def test_sessions_are_listed_by_status(fresh_database: Database) -> None:
    sessions = fresh_database.sessions
    made = {status: sessions.create().id for status in get_args(SessionStatus)}
    for status, ident in made.items():
        sessions.update(ident, status=status)
    for status, ident in made.items():
        assert all_ids(sessions.list(statuses=[status])) == [ident]
    both = sessions.list(statuses=("running", "idle", "running"), order="asc")
    assert all_ids(both) == sorted([made["running"], made["idle"]])
    assert len(sessions.list().data) == 4
    assert sessions.list(statuses=[]).data == []


def test_sessions_are_listed_by_when_they_were_made(fresh_database: Database) -> None:
    sessions = fresh_database.sessions
    made = [sessions.create() for _ in range(3)]
    (first, middle, last), when = [session.id for session in made], made[1].created_at
    expected: dict[str, list[str]] = {
        "created_at_gt": [last],
        "created_at_gte": [middle, last],
        "created_at_lt": [first],
        "created_at_lte": [first, middle],
    }
    for bound, found in expected.items():
        for moment in (when, when.replace(tzinfo=None), when.astimezone(timezone(timedelta(hours=5)))):
            filters: dict[str, Any] = {bound: moment}
            assert all_ids(sessions.list(order="asc", **filters)) == found
    assert all_ids(sessions.list(created_at_gt=made[0].created_at, created_at_lt=made[2].created_at)) == [middle]
    assert sessions.list(created_at_gt=when, created_at_lt=when).data == []


def test_sessions_are_listed_by_the_agent_they_were_asked_for_with(fresh_database: Database) -> None:
    sessions = fresh_database.sessions
    old, new, other = (
        sessions.create(agent=agent).id
        for agent in ("agent_1", AgentReference("agent_1", 2), AgentReference("agent_2"))
    )
    own = sessions.create().id
    assert all_ids(sessions.list(agent_id="agent_1")) == [new, old]
    assert all_ids(sessions.list(agent_id="agent_1", agent_version=2)) == [new]
    assert all_ids(sessions.list(agent_id="agent_2", agent_version=2)) == []
    assert all_ids(sessions.list(agent_version=2)) == [own, other, new, old]
    assert all_ids(sessions.list(agent_id="agent")) == []
    assert all_ids(sessions.list(deployment_id="depl_1")) == []


def test_archived_sessions_are_listed_on_request(fresh_database: Database) -> None:
    sessions, (store,) = fresh_database.sessions, make_stores(fresh_database, "Notes")
    kept, gone = sessions.create(attach(store)), sessions.create(attach(store))
    gone = sessions.archive(gone.id)
    assert sessions.list().data == sessions.list(memory_store_id=store.id).data == [kept]
    assert sessions.list(include_archived=True).data == [gone, kept]
    assert sessions.list(include_archived=True, memory_store_id=store.id).data == [gone, kept]


def test_a_page_holds_20_by_default(fresh_database: Database) -> None:
    for _ in range(21):
        fresh_database.sessions.create()
    assert len(fresh_database.sessions.list().data) == 20
    assert len(fresh_database.sessions.list(limit=100).data) == 21


BROKEN_FILTERS: dict[str, list[Any]] = {
    "limit": [0, 101, -1, "20", 20.0, True, None],
    "order": ["", "newest", "ASC", None, 1, []],
    "statuses": ["idle", ["gone"], [None], [["idle"]], 3, [""]],
    "memory_store_id": [3, "nul\0", "\ud800", b"x"],
    "agent_id": [3, "nul\0", b"x"],
    "agent_version": [0, -1, 2**31, "1", True, 1.0],
    "deployment_id": [3, "nul\0"],
    "created_at_gt": ["2026-11-30", 3],
    "created_at_lte": ["2026-11-30", 3],
}


@pytest.mark.parametrize("field", BROKEN_FILTERS)
def test_a_broken_filter_is_refused_by_field(database: Database, field: str) -> None:
    for value in BROKEN_FILTERS[field]:
        with pytest.raises(InvalidInputError, match="status" if field == "statuses" else field):
            database.sessions.list(**{field: value})


def test_fault_17_a_token_of_another_listing_is_refused(fresh_database: Database) -> None:
    sessions, (store,) = fresh_database.sessions, make_stores(fresh_database, "Notes")
    for _ in range(3):
        sessions.create(attach(store))
        fresh_database.memory_stores.create(name="n")
    token = sessions.list(limit=1, statuses=["idle", "running"]).next_page
    assert token
    assert sessions.list(limit=2, statuses=["running", "idle"], page=token).data  # neither limit nor order of words
    for listing in (
        lambda: sessions.list(page=token),
        lambda: sessions.list(statuses=["idle"], page=token),
        lambda: sessions.list(statuses=["idle", "running"], page=token, order="asc"),
        lambda: sessions.list(statuses=["idle", "running"], page=token, include_archived=True),
        lambda: sessions.list(statuses=["idle", "running"], page=token, memory_store_id=store.id),
        lambda: sessions.list(statuses=["idle", "running"], page=token + "x"),
        lambda: sessions.list(page=fresh_database.memory_stores.list(limit=1).next_page),
        lambda: sessions.list(page=""),
    ):
        with pytest.raises(InvalidPageError):
            listing()


def test_fault_17_a_token_that_somebody_made_up_is_refused(fresh_database: Database) -> None:
    sessions = fresh_database.sessions
    for _ in range(2):
        sessions.create()
    token = sessions.list(limit=1).next_page or ""
    bound_to, *keys = json.loads(base64.urlsafe_b64decode(token.removeprefix("page_") + "=="))
    assert sessions.list(page=pages.token(bound_to, keys)).data
    broken: list[Any] = [
        *(["up", *keys[1:]], [keys[0], 1, *keys[2:]], [*keys[:2], str(keys[2]), keys[3]], keys[:3], [*keys, ""]),
        *([*keys[:2], number, keys[3]] for number in (2**63, -(2**63), 10**400, 2.0, True, None)),
        *([*keys[:3], ident] for ident in (None, 7, ["x"])),
    ]
    for each in broken:
        with pytest.raises(InvalidPageError):
            sessions.list(page=pages.token(bound_to, each))
    for each in ([*keys[:2], 2**57, keys[3]], [*keys[:2], -(2**57), keys[3]], [*keys[:3], ""]):
        assert sessions.list(page=pages.token(bound_to, each))
