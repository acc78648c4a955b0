"""Sessions and what they attach: CONTRACT C, F.223-F.239 and F.242 at the record layer, F.135; fault 33."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC
from typing import Any

import psycopg
import pytest

from memkernel import ids
from memkernel.errors import (
    InvalidInputError,
    InvalidPageError,
    MemkernelError,
    NotFoundError,
    SessionNotFoundError,
    SessionRunningError,
    StoreArchivedError,
    StoreAttachedError,
    StoreNotFoundError,
)
from memkernel.models import (
    Actor,
    AgentReference,
    Attachment,
    AttachmentParams,
    BudgetLimit,
    Memory,
    MemoryStore,
    Page,
    SessionRecord,
)
from memkernel.store import Database, migrate, pages
from tests.store.attaching import NO_STORE, attach, make_stores

NOTHING = "sesn_" + "0" * 26


def no_session_attaches(database: Database, stores: Iterable[MemoryStore]) -> bool:
    return not any(database.sessions.list(memory_store_id=store.id, include_archived=True).data for store in stores)


# -- create --------------------------------------------------------------------------------------


def test_a_session_needs_nothing(database: Database) -> None:
    session = database.sessions.create()
    assert ids.is_id("sesn", session.id)
    assert (session.title, session.metadata, session.status, session.resources) == (None, {}, "idle", ())
    assert session.created_at == session.updated_at
    assert session.created_at.tzinfo is UTC
    assert session.archived_at is None
    assert database.sessions.retrieve(session.id) == session


def test_a_session_keeps_its_title_and_metadata(database: Database) -> None:
    metadata = {"owner": "ann", 'é"\\\n🎉': "\u2028'x"}
    session = database.sessions.create(title="Tidying — 日本語", metadata=metadata)
    assert (session.title, session.metadata) == ("Tidying — 日本語", metadata)
    assert database.sessions.retrieve(session.id) == session
    assert database.sessions.create(title="").title is None


def test_f223_a_session_with_a_store_says_all_about_it(database: Database) -> None:
    store = database.memory_stores.create(name="Demo Memory", description="What we know")
    session = database.sessions.create([AttachmentParams(store.id, "read_only", "Read it first.")])
    (resource,) = session.resources
    assert resource == Attachment(
        memory_store_id=store.id,
        name="Demo Memory",
        description="What we know",
        access="read_only",
        instructions="Read it first.",
        mount_path="/mnt/memory/demo-memory",
    )
    assert (resource.type, resource.slug) == ("memory_store", "demo-memory")
    assert database.sessions.retrieve(session.id) == session


def test_f224_access_is_read_write_unless_it_is_asked_for(database: Database) -> None:
    stores = make_stores(database, "a", "b", "c")
    params = [AttachmentParams(store.id, access) for store, access in zip(stores, AS_ASKED, strict=True)]
    assert [resource.access for resource in database.sessions.create(params).resources] == [
        "read_write",
        "read_write",
        "read_only",
    ]


AS_ASKED = (None, "read_write", "read_only")


@pytest.mark.parametrize("access", ["", "write", "READ_ONLY", "ro", True, 1, [], {}])
def test_f224_another_access_is_refused_by_field(database: Database, store: MemoryStore, access: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"resources\[0\]: access"):
        database.sessions.create(attach(store, access=access))
    assert no_session_attaches(database, [store])


def test_f225_instructions_have_at_most_4096_characters(database: Database, store: MemoryStore) -> None:
    session = database.sessions.create(attach(store, instructions="é" * 4_096))
    assert session.resources[0].instructions == "é" * 4_096
    assert database.sessions.create(attach(store)).resources[0].instructions is None
    assert database.sessions.create(attach(store, instructions="")).resources[0].instructions == ""
    with pytest.raises(InvalidInputError, match=r"resources\[0\]: instructions has 4,097 characters"):
        database.sessions.create(attach(store, instructions="i" * 4_097))


@pytest.mark.parametrize("instructions", [3, b"bytes", "nul\0", "\ud800", ["x"]])
def test_f225_instructions_that_are_no_storable_text_are_refused(
    database: Database, store: MemoryStore, instructions: Any
) -> None:
    with pytest.raises(InvalidInputError, match=r"resources\[0\]: instructions"):
        database.sessions.create(attach(store, instructions=instructions))


def test_f226_the_description_of_a_store_that_has_none_is_empty(database: Database, store: MemoryStore) -> None:
    assert database.sessions.create(attach(store)).resources[0].description == ""


def test_f227_a_session_attaches_at_most_eight_stores(database: Database) -> None:
    stores = make_stores(database, *(f"Store {number}" for number in range(9)))
    session = database.sessions.create(attach(*stores[:8]))
    assert [resource.memory_store_id for resource in session.resources] == [store.id for store in stores[:8]]
    with pytest.raises(InvalidInputError, match="resources cannot contain more than 8 memory_store entries"):
        database.sessions.create(attach(*stores))
    assert no_session_attaches(database, stores[8:])


def test_f227_the_limit_is_a_setting(limited: Callable[..., Database]) -> None:
    database = limited(stores_per_session=1)
    with pytest.raises(InvalidInputError, match="more than 1 memory_store"):
        database.sessions.create(attach(*make_stores(database, "a", "b")))


def test_resources_keep_the_order_in_which_they_were_asked_for(database: Database) -> None:
    stores = make_stores(database, "b", "c", "a")[::-1]
    session = database.sessions.create(attach(*stores))
    assert [resource.name for resource in session.resources] == ["a", "c", "b"]
    assert database.sessions.retrieve(session.id).resources == session.resources


def test_f228_a_store_is_not_attached_twice(database: Database, store: MemoryStore) -> None:
    twice = [AttachmentParams(store.id, "read_only"), AttachmentParams(store.id)]
    with pytest.raises(InvalidInputError, match=r"resources\[1\]: memory store memstore_\w+ is attached twice"):
        database.sessions.create(twice)
    assert no_session_attaches(database, [store])


@pytest.mark.parametrize("ident", [NO_STORE, "", "Notes", "sesn_" + "0" * 26, "mem_1", "../x"])
def test_f229_an_unknown_store_is_refused_and_no_session_exists(fresh_database: Database, ident: str) -> None:
    (store,) = make_stores(fresh_database, "Notes")
    with pytest.raises(InvalidInputError, match=r"resources\[1\]: there is no memory store"):
        fresh_database.sessions.create([AttachmentParams(store.id), AttachmentParams(ident)])
    assert fresh_database.sessions.list(include_archived=True).data == []
    fresh_database.memory_stores.delete(store.id)


@pytest.mark.parametrize("ident", [None, 3, b"memstore_1", "nul\0", "\ud800", ["memstore_1"]])
def test_f229_an_id_that_is_no_text_is_refused_by_field(database: Database, ident: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"resources\[0\]: memory_store_id"):
        database.sessions.create([AttachmentParams(ident)])


def test_f229_an_archived_store_is_refused_and_no_session_exists(fresh_database: Database) -> None:
    kept, gone = make_stores(fresh_database, "kept", "gone")
    fresh_database.memory_stores.archive(gone.id)
    for access in (None, "read_only"):
        with pytest.raises(StoreArchivedError, match="no session can attach it") as refused:
            fresh_database.sessions.create([AttachmentParams(kept.id), AttachmentParams(gone.id, access)])
        assert refused.value.store == gone.id
    assert fresh_database.sessions.list(include_archived=True).data == []


@pytest.mark.parametrize("resources", [None, 3, "memstore_1", {}, b"x", [None], ["memstore_1"], [{"type": "file"}]])
def test_resources_of_another_kind_are_refused(database: Database, resources: Any) -> None:
    with pytest.raises(InvalidInputError, match="resources"):
        database.sessions.create(resources)


def test_a_resource_that_is_given_back_is_not_a_parameter(database: Database, store: MemoryStore) -> None:
    """`mount_path`, `name` and `description` are output only (CONTRACT C.2)."""
    session = database.sessions.create(attach(store))
    again: Any = session.resources
    with pytest.raises(InvalidInputError, match=r"resources\[0\] is an AttachmentParams, not Attachment"):
        database.sessions.create(again)


@pytest.mark.parametrize("title", ["t" * 256, "bell\x07", "tab\t", "line\n", "nul\0", "\ud800", 7, b"bytes"])
def test_a_broken_title_is_refused_by_field(database: Database, title: Any) -> None:
    session = database.sessions.create(title="é" * 255)
    with pytest.raises(InvalidInputError, match="title"):
        database.sessions.create(title=title)
    with pytest.raises(InvalidInputError, match="title"):
        database.sessions.update(session.id, title=title)
    assert database.sessions.retrieve(session.id) == session


@pytest.mark.parametrize("metadata", [{str(n): "v" for n in range(17)}, {"": "v"}, {"k": 1}, {"k": None}, ["k"], "k"])
def test_fault_14_broken_metadata_is_refused(database: Database, metadata: Any) -> None:
    with pytest.raises(InvalidInputError, match="metadata"):
        database.sessions.create(metadata=metadata)


# -- what it was asked for with --------------------------------------------------------------------


def test_a_session_keeps_what_it_was_asked_for_with(database: Database) -> None:
    budget = BudgetLimit("2500")
    session = database.sessions.create(
        agent=AgentReference("agent_é", 7), environment_id="env_1", vault_ids=("vlt_b", "vlt_a"), budget=budget
    )
    assert (session.agent, session.environment_id) == (AgentReference("agent_é", 7), "env_1")
    assert (session.vault_ids, session.budget) == (("vlt_b", "vlt_a"), budget)
    assert database.sessions.retrieve(session.id) == session == database.sessions.list().data[0]
    assert database.sessions.create(agent="agent_1").agent == AgentReference("agent_1", 1)


BROKEN_FACTS: dict[str, list[Any]] = {
    "agent": ["", "a" * 256, "bell\x07", "\ud800", 3, {"id": "agent_1"}, AgentReference("a", 0), AgentReference("")],
    "environment_id": ["", "e" * 256, "nul\0", 3, b"x"],
    "vault_ids": ["vlt_1", None, 3, [""], [3], ["v" * 256], {"vlt_1": 1}],
    "budget": [25, "25", {}, *(BudgetLimit(amount) for amount in ("", "-1", "2.5", "025", "٣"))],
}


@pytest.mark.parametrize("field", BROKEN_FACTS)
def test_what_it_is_asked_for_with_is_checked_by_field(database: Database, store: MemoryStore, field: str) -> None:
    for value in BROKEN_FACTS[field]:
        with pytest.raises(InvalidInputError, match=field):
            database.sessions.create(attach(store), **{field: value})
    assert no_session_attaches(database, [store])


def test_a_budget_is_replaced_or_removed_and_never_added(database: Database) -> None:
    sessions, budget = database.sessions, BudgetLimit("2500")
    session = sessions.create(budget=budget)
    assert sessions.update(session.id, title="t").budget == budget
    assert sessions.update(session.id, budget=BudgetLimit("50")).budget == BudgetLimit("50")
    removed = sessions.update(session.id, budget=None)
    assert removed.budget is None
    assert sessions.update(session.id, budget=None) == removed
    for ident in (session.id, sessions.create().id):
        with pytest.raises(InvalidInputError, match=f"budget: session {ident} was made without one"):
            sessions.update(ident, budget=budget, title="u")
    assert sessions.retrieve(session.id) == removed


def test_the_budget_of_a_session_that_has_ended_stays(database: Database) -> None:
    session = database.sessions.create(budget=BudgetLimit("2500"))
    ended = database.sessions.update(session.id, status="terminated")
    assert database.sessions.update(session.id, budget=BudgetLimit("2500")) == ended
    for budget in (BudgetLimit("1"), None):
        with pytest.raises(InvalidInputError, match=f"budget: session {session.id} is terminated"):
            database.sessions.update(session.id, budget=budget)


# -- folders -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "path"),
    [
        pytest.param("Demo Memory", "/mnt/memory/demo-memory", id="f230"),
        pytest.param("  A -- B!!c_9 ", "/mnt/memory/a-b-c-9", id="f231"),
        pytest.param("Café Notes", "/mnt/memory/caf-notes", id="f232"),
        pytest.param("../../etc/passwd", "/mnt/memory/etc-passwd", id="f232-climbing"),
        pytest.param("a/../b", "/mnt/memory/a-b", id="f232-slashes"),
        pytest.param("K\u212a\u0130", "/mnt/memory/kki", id="f232-letters-that-become-ascii"),
        pytest.param("x" * 255, "/mnt/memory/" + "x" * 255, id="f230-as-long-as-a-folders-name-may-be"),
    ],
)
def test_f230_f231_f232_the_folder_is_the_slug_of_the_name(database: Database, name: str, path: str) -> None:
    (resource,) = database.sessions.create(attach(*make_stores(database, name))).resources
    assert (resource.mount_path, resource.name) == (path, name)


@pytest.mark.parametrize("name", ["日本語", "..", "--", "___", "é", "İ" * 255], ids=ascii)
def test_f233_a_name_that_gives_no_folder_still_has_one(database: Database, name: str) -> None:
    stores = make_stores(database, name, name)
    resources = database.sessions.create(attach(*stores)).resources
    assert [resource.mount_path for resource in resources] == [
        f"/mnt/memory/{store.id.replace('_', '-')}" for store in stores
    ]


def test_f234_two_stores_of_one_folder_are_refused_in_one_session_only(database: Database) -> None:
    one, other = make_stores(database, "My Notes", "my-notes")
    with pytest.raises(
        InvalidInputError, match="'my-notes' and 'My Notes' would both be mounted at /mnt/memory/my-not"
    ):
        database.sessions.create(attach(one, other))
    assert no_session_attaches(database, [one, other])
    paths = {database.sessions.create(attach(store)).resources[0].mount_path for store in (one, other)}
    assert paths == {"/mnt/memory/my-notes"}


# -- what a session holds is a snapshot ----------------------------------------------------------


def test_f235_a_session_keeps_what_its_store_was_called(database: Database) -> None:
    store = database.memory_stores.create(name="Team notes", description="Old")
    session = database.sessions.create(attach(store))
    database.memory_stores.update(store.id, name="Handbook", description="New")
    assert database.sessions.retrieve(session.id) == session
    (old,), (new,) = session.resources, database.sessions.create(attach(store)).resources
    assert (old.name, old.description, old.mount_path) == ("Team notes", "Old", "/mnt/memory/team-notes")
    assert (new.name, new.description, new.mount_path) == ("Handbook", "New", "/mnt/memory/handbook")


def test_f236_resources_are_listed_and_found_by_their_store(database: Database) -> None:
    stores = make_stores(database, "a", "b")
    session = database.sessions.create(attach(*stores))
    assert database.sessions.resources(session.id) == Page(list(session.resources), None)
    assert database.sessions.resources(database.sessions.create().id) == Page([], None)
    for store, resource in zip(stores, session.resources, strict=True):
        assert database.sessions.resource(session.id, store.id) == resource


def test_f236_resources_are_listed_in_pages_on_request(database: Database) -> None:
    session = database.sessions.create(attach(*make_stores(database, *"abcde")))
    token, seen = None, list[str]()
    for expected in (["a", "b"], ["c", "d"], ["e"]):
        page = database.sessions.resources(session.id, limit=2, page=token)
        assert [resource.name for resource in page.data] == expected
        token, seen = page.next_page, [*seen, *expected]
    assert token is None
    assert database.sessions.resources(session.id, limit=1_000).data == list(session.resources)


def test_f236_a_broken_page_of_resources_is_refused(database: Database, store: MemoryStore) -> None:
    (other,) = make_stores(database, "other")
    session, stranger = (database.sessions.create(attach(store, other)) for _ in range(2))
    limits: list[Any] = [0, 1_001, "2", True, 2.0]
    for limit in limits:
        with pytest.raises(InvalidInputError, match="limit"):
            database.sessions.resources(session.id, limit=limit)
    token = database.sessions.resources(stranger.id, limit=1).next_page
    gone = pages.token(pages.binding("resources", session=session.id), [NO_STORE])
    for page in (token, "", "x", gone, database.sessions.list(limit=1).next_page):
        with pytest.raises(InvalidPageError):
            database.sessions.resources(session.id, page=page)


@pytest.mark.parametrize("ident", [NO_STORE, "", "a", None, 7])
def test_f236_a_resource_that_is_not_there_is_not_found(database: Database, store: MemoryStore, ident: Any) -> None:
    session = database.sessions.create(attach(store))
    with pytest.raises(NotFoundError, match=f"session {session.id} attaches no memory store"):
        database.sessions.resource(session.id, ident)
    (other,) = make_stores(database, "other")
    with pytest.raises(NotFoundError, match=other.id):
        database.sessions.resource(session.id, other.id)


def test_f237_what_is_attached_cannot_be_changed(database: Database, store: MemoryStore) -> None:
    session = database.sessions.create(attach(store))
    (other,) = make_stores(database, "other")
    with pytest.raises(InvalidInputError, match="chosen when it is created"):
        database.sessions.add_resource(session.id)
    for change in (database.sessions.update_resource, database.sessions.delete_resource):
        with pytest.raises(InvalidInputError, match="chosen when it is created"):
            change(session.id, store.id)
        with pytest.raises(NotFoundError):
            change(session.id, other.id)
    assert database.sessions.retrieve(session.id) == session


# -- update and archive --------------------------------------------------------------------------


def test_an_update_sets_removes_and_leaves(database: Database, store: MemoryStore) -> None:
    session = database.sessions.create(attach(store), title="t", metadata={"a": "1", "b": "2"})
    updated = database.sessions.update(session.id, title="u", metadata={"a": None, "c": "3"}, status="running")
    assert (updated.title, updated.metadata, updated.status) == ("u", {"b": "2", "c": "3"}, "running")
    assert updated.updated_at > session.updated_at
    assert (updated.created_at, updated.resources) == (session.created_at, session.resources)
    assert database.sessions.retrieve(session.id) == updated
    assert database.sessions.update(session.id, title="").title is None


def test_only_a_real_update_moves_updated_at(database: Database) -> None:
    session = database.sessions.create(title="t", metadata={"a": "1"})
    assert database.sessions.update(session.id) == session
    assert database.sessions.update(session.id, title=None, metadata=None, status=None) == session
    same = database.sessions.update(session.id, title="t", metadata={"a": "1", "x": None}, status="idle")
    assert same == session
    nameless = database.sessions.create()
    assert database.sessions.update(nameless.id, title="", metadata={}) == nameless


def test_a_patch_whose_result_has_too_many_pairs_changes_nothing(database: Database) -> None:
    session = database.sessions.create(metadata={str(number): "v" for number in range(15)})
    with pytest.raises(InvalidInputError, match="metadata"):
        database.sessions.update(session.id, title="u", metadata={"x": "1", "y": "2"}, status="running")
    assert database.sessions.retrieve(session.id) == session
    assert len(database.sessions.update(session.id, metadata={"0": None, "x": "1", "y": "2"}).metadata) == 16


@pytest.mark.parametrize("status", ["", "done", "IDLE", 1, True, ["idle"]])
def test_an_unknown_status_is_refused(database: Database, status: Any) -> None:
    session = database.sessions.create()
    with pytest.raises(InvalidInputError, match="status"):
        database.sessions.update(session.id, status=status)


def test_a_session_that_has_ended_stays_so(database: Database, store: MemoryStore) -> None:
    session = database.sessions.create(attach(store))
    ended = database.sessions.update(session.id, status="terminated")
    for status in ("idle", "running", "rescheduling"):
        with pytest.raises(InvalidInputError, match=f"session {session.id} is terminated: it cannot become {status}"):
            database.sessions.update(session.id, status=status, title="alive")
    assert database.sessions.retrieve(session.id) == ended
    assert database.sessions.update(session.id, status="terminated") == ended
    assert database.sessions.update(session.id, title="what it was").status == "terminated"


def test_archiving_again_returns_the_same_record(database: Database, store: MemoryStore) -> None:
    session = database.sessions.create(attach(store))
    archived = database.sessions.archive(session.id)
    assert archived.archived_at == archived.updated_at > session.updated_at
    assert archived.resources == session.resources
    assert database.sessions.archive(session.id) == archived == database.sessions.retrieve(session.id)


@pytest.mark.parametrize("ident", [NOTHING, "", "sesn_1", NO_STORE, "x\0y", "\ud800", None, 7, b"sesn_1"])
def test_an_id_that_names_no_session_is_not_found(database: Database, ident: Any) -> None:
    for call in (
        lambda: database.sessions.retrieve(ident),
        lambda: database.sessions.update(ident, title="t"),
        lambda: database.sessions.archive(ident),
        lambda: database.sessions.delete(ident),
        lambda: database.sessions.resources(ident),
        lambda: database.sessions.resource(ident, NO_STORE),
        lambda: database.sessions.add_resource(ident),
        lambda: database.sessions.update_resource(ident, NO_STORE),
        lambda: database.sessions.delete_resource(ident, NO_STORE),
    ):
        with pytest.raises(SessionNotFoundError):
            call()


# -- the life of a store and of a session --------------------------------------------------------


def test_f135_a_store_that_is_attached_cannot_be_deleted(
    database: Database, store: MemoryStore, write: Callable[..., Memory]
) -> None:
    write("/a.md")
    first, second = database.sessions.create(attach(store)), database.sessions.create(attach(store, access="read_only"))
    with pytest.raises(StoreAttachedError, match="2 sessions") as refused:
        database.memory_stores.delete(store.id)
    assert (refused.value.store, set(refused.value.sessions)) == (store.id, {first.id, second.id})
    database.sessions.delete(first.id)
    database.sessions.archive(second.id)
    with pytest.raises(StoreAttachedError, match=f"{store.id} is attached to session {second.id}"):
        database.memory_stores.delete(store.id)
    assert database.memories.at_path(store.id, "/a.md").content == "text"
    database.sessions.delete(second.id)
    database.memory_stores.delete(store.id)
    with pytest.raises(StoreNotFoundError):
        database.memory_stores.retrieve(store.id)


def test_f135_an_archived_store_that_is_attached_cannot_be_deleted_either(
    database: Database, store: MemoryStore
) -> None:
    session = database.sessions.create(attach(store))
    database.memory_stores.archive(store.id)
    with pytest.raises(StoreAttachedError):
        database.memory_stores.delete(store.id)
    database.sessions.delete(session.id)
    database.memory_stores.delete(store.id)


def test_a_session_that_has_ended_lets_its_stores_go_and_stays_readable(database: Database, store: MemoryStore) -> None:
    session = database.sessions.create(attach(store, instructions="Read it."))
    ended = database.sessions.update(session.id, status="terminated")
    database.memory_stores.delete(store.id)
    assert database.sessions.retrieve(session.id) == ended
    assert ended.resources == session.resources
    assert database.sessions.list(memory_store_id=store.id).data == [ended]
    database.sessions.delete(session.id)


def test_an_attached_store_is_not_deleted_by_hand_either(fresh_database: Database, dsn: str) -> None:
    one, other = make_stores(fresh_database, "one", "other")
    fresh_database.sessions.create(attach(one))
    with psycopg.connect(dsn, autocommit=True) as admin:
        with pytest.raises(psycopg.Error, match="attached"):
            admin.execute("DELETE FROM memkernel.memory_stores")
        admin.execute("DELETE FROM memkernel.memory_stores WHERE id = %s", [other.id])
    assert fresh_database.memory_stores.list().data == [one]


def test_f239_deleting_a_session_keeps_the_store_and_what_it_wrote(database: Database, store: MemoryStore) -> None:
    session = database.sessions.create(attach(store))
    writer = Actor("session_actor", session.id)
    memory = database.memories.write(store.id, "/a.md", "text", actor=writer)
    kept = database.sessions.create(attach(store))
    database.sessions.delete(session.id)
    with pytest.raises(SessionNotFoundError):
        database.sessions.retrieve(session.id)
    with pytest.raises(SessionNotFoundError):
        database.sessions.delete(session.id)
    assert database.memories.at_path(store.id, "/a.md").content == "text"
    version = database.memory_versions.retrieve(memory.memory_version_id, memory_store_id=store.id)
    assert version.created_by == writer
    assert database.sessions.list(memory_store_id=store.id).data == [kept]


def test_a_session_that_runs_is_kept_where_that_is_asked_for(database: Database, store: MemoryStore) -> None:
    """What a sandbox has not saved yet would only be put aside (F.266)."""
    sessions = database.sessions
    mounted, running, plain = (sessions.create(attach(store)).id for _ in range(3))
    database.mounts.open(store.id, mounted)
    sessions.update(running, status="running")
    for ident in (mounted, running):
        with pytest.raises(SessionRunningError, match=ident) as refused:
            sessions.delete(ident, running_too=False)
        assert refused.value.session == ident
        assert sessions.retrieve(ident)
    sessions.delete(plain, running_too=False)
    sessions.update(mounted, status="terminated")
    sessions.delete(mounted, running_too=False)
    sessions.delete(running)
    assert no_session_attaches(database, [store])


def test_deleting_a_session_leaves_no_row_of_it(fresh_database: Database, dsn: str) -> None:
    (store,) = make_stores(fresh_database, "Notes")
    fresh_database.sessions.delete(fresh_database.sessions.create(attach(store)).id)
    with psycopg.connect(dsn) as admin:
        assert admin.execute("SELECT FROM memkernel.session_resources").fetchall() == []


def test_f242_archiving_an_attached_store_leaves_the_session_readable(
    database: Database, store: MemoryStore, write: Callable[..., Memory]
) -> None:
    memory = write("/a.md")
    session = database.sessions.create(attach(store))
    writer = Actor("session_actor", session.id)
    database.memory_stores.archive(store.id)
    assert database.sessions.retrieve(session.id) == session
    assert database.sessions.list(memory_store_id=store.id).data == [session]
    assert database.memories.at_path(store.id, "/a.md").content == "text"
    with pytest.raises(StoreArchivedError):
        database.memories.write(store.id, "/a.md", "changed", actor=writer)
    assert database.memories.at_path(store.id, "/a.md").memory_version_id == memory.memory_version_id
    assert database.sessions.update(session.id, status="terminated").status == "terminated"


# -- several at once -----------------------------------------------------------------------------


def outcome(call: Callable[[], object], start: threading.Barrier) -> MemkernelError | None:
    """What a call that begins with the others was refused with."""
    start.wait(30)
    try:
        call()
    except MemkernelError as error:
        return error
    return None


def test_a_store_is_either_attached_or_deleted(database: Database) -> None:
    with ThreadPoolExecutor(2) as threads:
        for _ in range(25):
            (store,) = make_stores(database, "contested")
            start = threading.Barrier(2)
            creating = threads.submit(outcome, lambda store=store: database.sessions.create(attach(store)), start)
            deleting = threads.submit(outcome, lambda store=store: database.memory_stores.delete(store.id), start)
            not_created, not_deleted = creating.result(60), deleting.result(60)
            attached = database.sessions.list(memory_store_id=store.id).data
            if not_created is None:
                assert isinstance(not_deleted, StoreAttachedError)
                assert database.memory_stores.retrieve(store.id) == store
                assert len(attached) == 1
            else:
                assert (type(not_created), not_deleted, attached) == (InvalidInputError, None, [])


def test_a_store_is_not_attached_once_it_is_archived(database: Database) -> None:
    with ThreadPoolExecutor(2) as threads:
        for _ in range(25):
            (store,) = make_stores(database, "contested")
            start = threading.Barrier(2)
            creating = threads.submit(outcome, lambda store=store: database.sessions.create(attach(store)), start)
            archiving = threads.submit(outcome, lambda store=store: database.memory_stores.archive(store.id), start)
            not_created = creating.result(60)
            assert archiving.result(60) is None
            archived_at = database.memory_stores.retrieve(store.id).archived_at
            assert archived_at
            attached = database.sessions.list(memory_store_id=store.id).data
            if not_created is None:
                assert [session.created_at <= archived_at for session in attached] == [True]
            else:
                assert (type(not_created), attached) == (StoreArchivedError, [])


def test_a_deletion_by_hand_waits_for_a_session_that_is_being_made(fresh_database: Database, dsn: str) -> None:
    """It takes no advisory lock."""
    (store,) = make_stores(fresh_database, "Notes")
    with psycopg.connect(dsn) as attaching, psycopg.connect(dsn, autocommit=True) as deleting:
        attaching.execute("SELECT FROM memkernel.lock_stores('default', %s)", [[store.id]])
        deleting.execute("SET lock_timeout TO '100ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            deleting.execute("DELETE FROM memkernel.memory_stores")


def test_a_session_waits_for_a_deletion_and_is_refused_then(fresh_database: Database, dsn: str) -> None:
    (store,) = make_stores(fresh_database, "Notes")
    with psycopg.connect(dsn) as deleting, ThreadPoolExecutor(1) as threads:
        deleting.execute("DELETE FROM memkernel.memory_stores WHERE id = %s", [store.id])
        creating = threads.submit(fresh_database.sessions.create, attach(store))
        wait_for_a_lock(dsn)
        deleting.commit()
        with pytest.raises(InvalidInputError, match="there is no memory store"):
            creating.result(30)


def test_a_session_that_is_being_mounted_is_not_deleted(fresh_database: Database, dsn: str) -> None:
    (store,) = make_stores(fresh_database, "Notes")
    session = fresh_database.sessions.create(attach(store))
    with psycopg.connect(dsn) as mounting, ThreadPoolExecutor(1) as threads:
        mounting.execute("SELECT memkernel.mount_open(%s, %s, 1)", [store.id, session.id])
        deleting = threads.submit(fresh_database.sessions.delete, session.id, running_too=False)
        wait_for_a_lock(dsn)
        mounting.commit()
        with pytest.raises(SessionRunningError):
            deleting.result(30)
    assert fresh_database.sessions.retrieve(session.id) == session


def wait_for_a_lock(dsn: str) -> None:
    """Wait until somebody waits for a lock in this database."""
    deadline = time.monotonic() + 30
    with psycopg.connect(dsn, autocommit=True) as watching:
        while not watching.execute(
            "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        ).fetchall():
            assert time.monotonic() < deadline, "nobody waits for a lock"
            time.sleep(0.01)


def test_sessions_that_attach_the_same_stores_in_any_order_do_not_lock_each_other_up(database: Database) -> None:
    stores = make_stores(database, *"abcdefgh")

    def create(number: int) -> SessionRecord:
        turned = stores[number % 8 :] + stores[: number % 8]
        return database.sessions.create(attach(*(turned if number % 2 else turned[::-1])))

    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(create, range(64)))
    assert len({session.id for session in made}) == 64
    assert len(database.sessions.list(memory_store_id=stores[0].id, limit=100).data) == 64


def test_patches_of_one_session_at_once_all_count(database: Database) -> None:
    session = database.sessions.create()

    def patch(number: int) -> SessionRecord:
        return database.sessions.update(session.id, metadata={str(number): "v"})

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(patch, range(16)))
    assert database.sessions.retrieve(session.id).metadata == {str(number): "v" for number in range(16)}


# -- a schema from before sessions ---------------------------------------------------------------


def test_a_database_from_before_sessions_is_brought_forward_with_its_stores(
    empty_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = migrate.migrations()
    with monkeypatch.context() as patched:
        patched.setattr(migrate, "migrations", lambda: known[:9])
        with Database(empty_dsn) as old:
            store = old.memory_stores.create(name="Notes", description="d")
            memory = old.memories.write(store.id, "/a.md", "text", actor=Actor("user_actor", "user_ann"))
    with Database(empty_dsn, migrate=True) as database:
        session = database.sessions.create(attach(store))
        assert session.resources[0].mount_path == "/mnt/memory/notes"
        with pytest.raises(StoreAttachedError):
            database.memory_stores.delete(store.id)
        assert database.memories.retrieve(memory.id, memory_store_id=store.id) == replace(memory, content="text")
        database.sessions.delete(session.id)
        database.memory_stores.delete(store.id)


def test_a_session_from_before_it_had_an_agent_is_kept(empty_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = migrate.migrations()
    ident = "sesn_" + "1" * 26
    with monkeypatch.context() as patched:
        patched.setattr(migrate, "migrations", lambda: known[:12])
        with Database(empty_dsn) as old:
            old.open()
    with psycopg.connect(empty_dsn, autocommit=True) as admin:
        admin.execute("SELECT memkernel.session_create('default', %s, 't', '{}', '[]')", [ident])
    with Database(empty_dsn, migrate=True) as database:
        session = database.sessions.retrieve(ident)
        assert (session.title, session.agent, session.environment_id) == ("t", None, None)
        assert (session.vault_ids, session.budget) == ((), None)
        assert database.sessions.list().data == [session]
