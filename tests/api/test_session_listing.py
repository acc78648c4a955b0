"""Listing sessions, page by page in both directions (CONTRACT C.1, F.238)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import anthropic
import pytest

from memkernel.store import Database
from tests.api.beginning import SESSIONS, begin, session
from tests.api.calls import Caller, Json
from tests.fix_server import MemoryServer


def found(call: Caller, raw_query: str = "", **query: Any) -> list[str]:
    """The ids of a page."""
    return [each["id"] for each in call("GET", SESSIONS, raw_query=raw_query, **query).ok["data"]]


def made(call: Caller, count: int) -> list[str]:
    """Sessions, oldest first."""
    return [begin(call).ok["id"] for _ in range(count)]


def listed(page: Json) -> list[str]:
    return [each["id"] for each in page["data"]]


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_pages_lead_there_and_back(call: Caller, order: str) -> None:
    sessions = made(call, 5)
    expected = sessions if order == "asc" else sessions[::-1]
    there = [call("GET", SESSIONS, limit=2, order=order).ok]
    while token := there[-1]["next_page"]:
        there.append(call("GET", SESSIONS, limit=2, order=order, page=token).ok)
    assert [listed(page) for page in there] == [expected[:2], expected[2:4], expected[4:]]
    assert [page["prev_page"] is None for page in there] == [True, False, False]
    back = [call("GET", SESSIONS, limit=2, order=order, page=there[-1]["prev_page"]).ok]
    while token := back[-1]["prev_page"]:
        back.append(call("GET", SESSIONS, limit=2, order=order, page=token).ok)
    assert [listed(page) for page in back] == [expected[2:4], expected[:2]]
    assert call("GET", SESSIONS, limit=2, order=order, page=back[-1]["next_page"]).ok["data"] == there[1]["data"]


def test_what_comes_and_goes_moves_no_page(call: Caller) -> None:
    one, two, three, four, five = made(call, 5)
    second = call("GET", SESSIONS, limit=2, page=call("GET", SESSIONS, limit=2).ok["next_page"]).ok
    assert listed(second) == [three, two]
    call("DELETE", session(four))
    call("DELETE", session(two))
    (new,) = made(call, 1)
    assert found(call, limit=2, page=second["next_page"]) == [one]
    before = call("GET", SESSIONS, limit=2, page=second["prev_page"]).ok
    assert (listed(before), before["prev_page"]) == ([new, five], None)
    assert found(call, limit=2, page=before["next_page"]) == [three, one]


def test_a_page_belongs_to_its_filters(call: Caller) -> None:
    made(call, 3)
    store = call.store()
    page = call("GET", SESSIONS, limit=1, page=call("GET", SESSIONS, limit=1).ok["next_page"]).ok
    filters: list[Json] = [
        *({"order": "asc"}, {"include_archived": True}, {"memory_store_id": store}, {"agent_id": "agent_1"}),
        *({"deployment_id": "depl_1"}, {"created_at_gt": "2026-01-01T00:00:00Z"}, {"statuses[]": "idle"}),
    ]
    for token in (page["next_page"], page["prev_page"]):
        assert call("GET", SESSIONS, limit=100, page=token).ok["data"]
        for other in filters:
            call("GET", SESSIONS, page=token, **other).refusal("page")
        call("GET", "/v1/memory_stores", page=token).refusal("page")
        call("GET", SESSIONS, page=token[:-1] + ("A" if token[-1] != "A" else "B")).refusal("page")


def test_sessions_by_when_they_were_made(call: Caller) -> None:
    first, middle, last = made(call, 3)
    when = call("GET", session(middle)).ok["created_at"]
    for bound, expected in {"gt": [last], "gte": [last, middle], "lt": [first], "lte": [middle, first]}.items():
        assert found(call, **{f"created_at_{bound}": when}) == expected
        assert found(call, **{f"created_at_{bound}": when.replace("T", " ").replace("Z", "")}) == expected
    assert found(call, created_at_gt=when, created_at_lt=when) == []


def test_sessions_by_status(call: Caller, database: Database) -> None:
    idle, running, ended = made(call, 3)
    database.sessions.update(running, status="running")
    database.sessions.update(ended, status="terminated")
    assert found(call, "statuses%5B%5D=running") == [running]
    assert found(call, "statuses%5B%5D=terminated&statuses%5B%5D=idle") == [ended, idle]
    assert found(call, "statuses%5B%5D=rescheduling") == []
    assert found(call) == [ended, running, idle]


def test_sessions_by_agent(call: Caller) -> None:
    old = begin(call).ok["id"]
    new = begin(call, agent={"id": "agent_1", "version": 2}).ok["id"]
    other = begin(call, agent="agent_2").ok["id"]
    assert found(call, agent_id="agent_1") == [new, old]
    assert found(call, agent_id="agent_1", agent_version=1) == [old]
    assert found(call, agent_version=1) == [other, new, old]
    assert found(call, agent_id="agent_3") == found(call, deployment_id="depl_1") == []


def test_sessions_by_store_over_pages(call: Caller) -> None:
    """F.238."""
    store = call.store()
    attaching: list[str] = []
    for _ in range(3):
        attaching.append(begin(call, store).ok["id"])
        begin(call)
    pages = [[each["id"] for each in page] for page in call.pages(SESSIONS, memory_store_id=store, limit=2)]
    assert pages == [attaching[:0:-1], attaching[:1]]


def test_the_sdk_pages_there_and_back(memory_server: MemoryServer) -> None:
    """Over HTTP, with every filter that it knows."""
    sdk: anthropic.Anthropic = memory_server.client()
    store = sdk.beta.memory_stores.create(name="Notes").id
    sessions = [
        sdk.beta.sessions.create(
            agent="agent_1",
            environment_id="env_1",
            resources=[{"type": "memory_store", "memory_store_id": store}],
        )
        for _ in range(5)
    ]
    everything: Any = {
        "agent_id": "agent_1",
        "agent_version": 1,
        "created_at_gt": datetime(2020, 1, 1),  # noqa: DTZ001  # naive, as people write it
        "created_at_gte": sessions[0].created_at,
        "created_at_lt": "2100-01-01T00:00:00Z",
        "created_at_lte": sessions[-1].created_at,
        "include_archived": True,
        "memory_store_id": store,
        "order": "asc",
        "statuses": ["idle", "running"],
        "limit": 2,
    }
    page = sdk.beta.sessions.list(**everything)
    assert [each.id for each in page] == [each.id for each in sessions]
    second = page.get_next_page()
    assert second.prev_page
    assert [each.id for each in sdk.beta.sessions.list(**everything, page=second.prev_page).data] == [
        each.id for each in sessions[:2]
    ]
    assert sdk.beta.sessions.list(deployment_id="depl_1").data == []
    (resource,) = sdk.beta.sessions.resources.list(sessions[0].id)
    assert resource.to_dict()["memory_store_id"] == store
