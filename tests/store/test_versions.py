"""Versions, redaction, actors: CONTRACT F.201-F.222 at the record layer."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from memkernel import ids
from memkernel.errors import (
    HeadRedactionError,
    InvalidInputError,
    InvalidPageError,
    StoreNotFoundError,
    VersionNotFoundError,
)
from memkernel.models import Actor, Cause, Change, Memory, MemoryStore, MemoryVersion
from memkernel.store import Database
from tests.store.people import ANN, CAUSE, KEY, SESSION, WORKLOAD

Versions = Callable[..., list[MemoryVersion]]


@pytest.fixture
def versions(database: Database, store: MemoryStore) -> Versions:
    """The versions of the store for these filters, newest first."""

    def versions(**filters: Any) -> list[MemoryVersion]:
        return database.memory_versions.list(store.id, limit=100, **filters).data

    return versions


@pytest.fixture
def life(database: Database, store: MemoryStore) -> list[str]:
    """A memory that was created, edited, renamed and deleted; the ids of its versions."""
    memory = database.memories.create(store.id, path="/a.md", content="one", actor=KEY)
    edited = database.memories.update(memory.id, memory_store_id=store.id, content="two", actor=SESSION)
    renamed = database.memories.update(memory.id, memory_store_id=store.id, path="/b.md", actor=ANN)
    database.memories.delete(memory.id, memory_store_id=store.id, actor=WORKLOAD)
    (deleted,) = database.memory_versions.list(store.id, operation="deleted").data
    return [memory.memory_version_id, edited.memory_version_id, renamed.memory_version_id, deleted.id]


def test_f201_a_life_is_four_versions_of_one_memory(versions: Versions, life: list[str]) -> None:
    found = versions()[::-1]
    assert [version.id for version in found] == life
    assert [version.operation for version in found] == ["created", "modified", "modified", "deleted"]
    assert len({version.memory_id for version in found}) == 1
    assert [version.seq for version in found] == [1, 2, 3, 4]
    assert [version.ordinal for version in found] == [1, 2, 3, 4]
    assert [version.path for version in found] == ["/a.md", "/a.md", "/b.md", "/b.md"]


def test_f202_a_list_is_newest_first_also_within_a_batch(
    database: Database, store: MemoryStore, versions: Versions
) -> None:
    database.memories.apply(store.id, [Change(f"/{number}", "text") for number in range(30)], actor=ANN)
    database.memories.rename_tree(store.id, "/1", "/d/1", actor=ANN)
    database.memories.rename_tree(store.id, "/2", "/d/2", actor=ANN)
    database.memories.rename_tree(store.id, "/d", "/e", actor=ANN)
    found = versions()
    assert [version.seq for version in found] == list(range(34, 0, -1))
    moments = [version.created_at for version in found]
    assert moments == sorted(moments, reverse=True)
    pages = [database.memory_versions.list(store.id, limit=7)]
    while pages[-1].next_page:
        pages.append(database.memory_versions.list(store.id, limit=7, page=pages[-1].next_page))
    assert [version for page in pages for version in page.data] == found


def test_f203_a_memory_points_at_its_newest_version(
    database: Database, store: MemoryStore, versions: Versions, write: Callable[..., Memory]
) -> None:
    for text in ("one", "two", "three"):
        memory = write("/a.md", text)
        newest = versions(memory_id=memory.id)[0]
        assert (newest.id, newest.created_at) == (memory.memory_version_id, memory.updated_at)


def test_f204_a_deletion_keeps_the_path_and_nothing_of_the_text(
    database: Database, store: MemoryStore, life: list[str]
) -> None:
    deleted = database.memory_versions.retrieve(life[3], memory_store_id=store.id)
    assert deleted.path == "/b.md"
    assert (deleted.content, deleted.content_sha256, deleted.content_size_bytes) == (None, None, None)


def test_f205_a_deleted_memory_keeps_its_versions(versions: Versions, life: list[str]) -> None:
    memory_id = versions()[0].memory_id
    assert len(versions(memory_id=memory_id)) == 4
    assert versions(memory_id=ids.mint("mem")) == []


def test_f206_filters_select_and_combine(versions: Versions, life: list[str], write: Callable[..., Memory]) -> None:
    memory_id = versions()[0].memory_id
    write("/other.md")
    created, edited, renamed, deleted = life

    def found(**filters: Any) -> list[str]:
        return [version.id for version in versions(**filters)][::-1]

    assert found(operation="modified") == [edited, renamed]
    assert found(operation="deleted") == [deleted]
    assert found(session_id=SESSION.id) == [edited]
    assert found(api_key_id=KEY.id) == [created]
    assert found(service_account_id=WORKLOAD.id) == [deleted]
    assert found(user_id=ANN.id, memory_id=memory_id) == [renamed]
    assert found(user_id=ANN.id, operation="created", memory_id=memory_id) == []
    assert found(session_id=KEY.id) == []  # the id of another kind of actor
    assert found(session_id=SESSION.id, api_key_id=KEY.id) == []


def test_f206_bounds_in_time_are_inclusive_and_combine(versions: Versions, life: list[str]) -> None:
    moments = [version.created_at for version in versions()][::-1]
    tick = timedelta(microseconds=1)

    def found(**filters: Any) -> list[int]:
        return [version.seq for version in versions(**filters)][::-1]

    assert found(created_at_gte=moments[1]) == [2, 3, 4]
    assert found(created_at_lte=moments[1]) == [1, 2]
    assert found(created_at_gte=moments[1], created_at_lte=moments[2]) == [2, 3]
    assert found(created_at_gte=moments[3] + tick) == []
    assert found(created_at_lte=moments[0] - tick) == []
    assert found(created_at_gte=moments[2], created_at_lte=moments[1]) == []
    assert found(created_at_gte=moments[0] + tick, operation="modified", user_id=ANN.id) == [3]


@pytest.mark.parametrize("operation", ["renamed", "", "CREATED", 1])
def test_f207_an_unknown_operation_is_refused(versions: Versions, operation: Any) -> None:
    with pytest.raises(InvalidInputError, match="operation"):
        versions(operation=operation)


def test_f208_a_list_is_basic_and_with_contents_holds_20(
    database: Database, store: MemoryStore, versions: Versions, write: Callable[..., Memory]
) -> None:
    for number in range(25):
        write("/a.md", f"text {number}")
    basic = versions()
    assert len(basic) == 25
    assert all(version.content is None and version.content_sha256 for version in basic)
    full = database.memory_versions.list(store.id, view="full", limit=100)
    assert [version.content for version in full.data] == [f"text {number}" for number in range(24, 4, -1)]
    assert full.next_page


def test_f209_f211_old_versions_stay_byte_identical(
    database: Database, store: MemoryStore, write: Callable[..., Memory]
) -> None:
    texts = ["é\0\r\n", "", "x" * 102_400, "\ufeffend"]
    made = [write("/a.md", text).memory_version_id for text in texts]
    database.memories.rename_tree(store.id, "/a.md", "/b.md", actor=ANN)
    for version_id, text in zip(made, texts, strict=True):
        version = database.memory_versions.retrieve(version_id, memory_store_id=store.id)
        assert (version.content, version.path) == (text, "/a.md")
        assert version.content_sha256 == hashlib.sha256(text.encode()).hexdigest()
        basic = database.memory_versions.retrieve(version_id, memory_store_id=store.id, view="basic")
        assert (basic.content, basic.content_sha256) == (None, version.content_sha256)


def test_f210_a_version_of_another_store_is_not_found(database: Database, store: MemoryStore, life: list[str]) -> None:
    other = database.memory_stores.create(name="other")
    for call in (
        lambda: database.memory_versions.retrieve(life[0], memory_store_id=other.id),
        lambda: database.memory_versions.before(life[1], memory_store_id=other.id),
        lambda: database.memory_versions.redact(life[0], memory_store_id=other.id, actor=ANN),
        lambda: database.memory_versions.restore(life[0], memory_store_id=other.id, actor=ANN),
    ):
        with pytest.raises(VersionNotFoundError):
            call()


@pytest.mark.parametrize("actor", [KEY, SESSION, ANN, WORKLOAD, Actor("user_actor", "user_ünïcode 日本")])
def test_f212_f214_a_version_names_its_actor(
    database: Database, store: MemoryStore, versions: Versions, actor: Actor
) -> None:
    database.memories.write(store.id, "/a.md", "text", actor=actor)
    assert versions()[0].created_by == actor


def test_a_version_leads_to_its_tool_call_and_back(database: Database, store: MemoryStore) -> None:
    memories, versions = database.memories, database.memory_versions
    other_call = Cause(CAUSE.run_id, "toolu_02")
    memories.create(store.id, path="/a", content="1", actor=SESSION, cause=CAUSE)
    memories.write(store.id, "/a", "2", actor=SESSION, cause=CAUSE)
    memories.write(store.id, "/a", "2", actor=SESSION, cause=CAUSE)  # changes nothing
    memories.write(store.id, "/by-hand", "", actor=ANN)
    memories.apply(store.id, [Change("/d/1", "x"), Change("/d/2", "y")], actor=SESSION, cause=other_call)
    memories.rename_tree(store.id, "/d", "/e", actor=SESSION, cause=CAUSE)
    memories.delete_tree(store.id, "/e", actor=SESSION, cause=other_call)
    by_run = versions.list_by_run(store.id, CAUSE.run_id)
    assert [version.seq for version in by_run] == [1, 2, 4, 5, 6, 7, 8, 9]
    by_call = versions.list_by_run(store.id, CAUSE.run_id, tool_use_id=CAUSE.tool_use_id, view="full")
    assert [(version.seq, version.content) for version in by_call] == [(1, "1"), (2, "2"), (6, "x"), (7, "y")]
    assert versions.list_by_run(store.id, "run_unknown") == []
    database.memory_stores.delete(store.id)
    with pytest.raises(StoreNotFoundError):
        versions.list_by_run(store.id, CAUSE.run_id)


# -- redaction -------------------------------------------------------------------------------------


def test_f215_redaction_erases_the_text_and_keeps_the_fact(
    database: Database, store: MemoryStore, life: list[str]
) -> None:
    before = database.memory_versions.retrieve(life[0], memory_store_id=store.id)
    redacted = database.memory_versions.redact(life[0], memory_store_id=store.id, actor=ANN)
    assert (redacted.path, redacted.content, redacted.content_sha256, redacted.content_size_bytes) == (None,) * 4
    assert redacted.redacted_at
    assert redacted.redacted_at >= before.created_at
    assert redacted.redacted_by == ANN
    kept = ("id", "memory_id", "seq", "ordinal", "operation", "created_at", "created_by")
    assert [getattr(redacted, name) for name in kept] == [getattr(before, name) for name in kept]
    assert database.memory_versions.retrieve(life[0], memory_store_id=store.id) == redacted


def test_f216_the_head_of_a_live_memory_cannot_be_redacted(
    database: Database, store: MemoryStore, write: Callable[..., Memory]
) -> None:
    memory = write("/a.md")
    with pytest.raises(HeadRedactionError) as refused:
        database.memory_versions.redact(memory.memory_version_id, memory_store_id=store.id, actor=ANN)
    assert refused.value.version == memory.memory_version_id
    assert database.memories.at_path(store.id, "/a.md").content == "text"


def test_f217_f218_once_it_is_no_head_any_version_can_be_redacted(
    database: Database, store: MemoryStore, write: Callable[..., Memory]
) -> None:
    def redact(version_id: str) -> MemoryVersion:
        return database.memory_versions.redact(version_id, memory_store_id=store.id, actor=ANN)

    first, second = write("/a.md", "one"), write("/a.md", "two")
    assert redact(first.memory_version_id).redacted_at
    database.memories.delete(second.id, memory_store_id=store.id, actor=ANN)
    assert redact(second.memory_version_id).redacted_at
    (deleted,) = database.memory_versions.list(store.id, operation="deleted").data
    assert redact(deleted.id).path is None


def test_f219_redacting_again_returns_the_same(database: Database, store: MemoryStore, life: list[str]) -> None:
    first = database.memory_versions.redact(life[1], memory_store_id=store.id, actor=ANN)
    assert database.memory_versions.redact(life[1], memory_store_id=store.id, actor=KEY) == first


def test_a_session_never_redacts(database: Database, store: MemoryStore, life: list[str]) -> None:
    with pytest.raises(InvalidInputError, match="session"):
        database.memory_versions.redact(life[0], memory_store_id=store.id, actor=SESSION)


@pytest.mark.parametrize("size", [40, 100_000])
def test_f220_redacted_text_is_nowhere_in_the_tables(
    database: Database, store: MemoryStore, shared_dsn: str, size: int
) -> None:
    secret = "s3cret-" + ids.mint("mem")
    memories = database.memories
    memory = memories.create(store.id, path=f"/{secret}.md", content=(secret * size)[:size], actor=ANN, cause=CAUSE)
    sha256 = memory.content_sha256
    memories.update(memory.id, memory_store_id=store.id, path="/plain.md", content="plain", actor=ANN)
    database.memory_versions.redact(memory.memory_version_id, memory_store_id=store.id, actor=ANN)
    with psycopg.connect(shared_dsn) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'memkernel'").fetchall()
        for (table,) in tables:
            with connection.cursor().copy(f"COPY memkernel.{table} TO STDOUT".encode()) as copy:
                text = b"".join(bytes(chunk) for chunk in copy).decode()
            assert secret not in text, table
            assert secret.encode().hex() not in text, table
            assert sha256 not in text, table


def test_f221_redaction_leaves_the_live_memory(
    database: Database, store: MemoryStore, write: Callable[..., Memory]
) -> None:
    first = write("/a.md", "one")
    write("/a.md", "two")
    before = database.memories.at_path(store.id, "/a.md")
    database.memory_versions.redact(first.memory_version_id, memory_store_id=store.id, actor=ANN)
    assert database.memories.at_path(store.id, "/a.md") == before
    assert database.memories.list(store.id, view="full").data == [before]


def test_f222_old_content_can_be_written_back_by_update(
    database: Database, store: MemoryStore, write: Callable[..., Memory]
) -> None:
    first, second = write("/a.md", "one"), write("/a.md", "two")
    old = database.memory_versions.retrieve(first.memory_version_id, memory_store_id=store.id)
    back = database.memories.update(
        first.id, memory_store_id=store.id, content=old.content, precondition=second.content_sha256, actor=ANN
    )
    assert back.content_sha256 == first.content_sha256
    assert len(database.memory_versions.list(store.id).data) == 3


def test_f196_fault_17_a_token_of_another_version_listing_is_refused(
    database: Database, store: MemoryStore, life: list[str]
) -> None:
    listing = database.memory_versions.list
    token = listing(store.id, limit=1).next_page
    assert [version.seq for version in listing(store.id, limit=2, page=token).data] == [3, 2]
    for filters in (
        {"operation": "created"},
        {"memory_id": ids.mint("mem")},
        {"path": "/b.md"},
        {"session_id": "sesn_01"},
        {"view": "full"},
    ):
        with pytest.raises(InvalidPageError):
            listing(store.id, page=token, **filters)  # type: ignore[arg-type]  # one of several keywords
    with pytest.raises(InvalidPageError):
        database.memories.list(store.id, page=token)


def test_f198_new_versions_between_pages_change_nothing_of_the_rest(
    database: Database, store: MemoryStore, life: list[str], write: Callable[..., Memory]
) -> None:
    first = database.memory_versions.list(store.id, limit=2)
    write("/new.md")
    rest = database.memory_versions.list(store.id, limit=2, page=first.next_page)
    assert [version.seq for version in (*first.data, *rest.data)] == [4, 3, 2, 1]
    assert rest.next_page is None


def test_a_listing_can_begin_before_a_change_of_the_store(
    database: Database, store: MemoryStore, write: Callable[..., Memory]
) -> None:
    for number in range(5):
        write(f"/{number % 2}.md", f"{number}")
    page = database.memory_versions.list(store.id, seq_lt=5, limit=2)
    assert [version.seq for version in page.data] == [4, 3]
    page = database.memory_versions.list(store.id, seq_lt=5, limit=2, page=page.next_page)
    assert ([version.seq for version in page.data], page.next_page) == ([2, 1], None)
    assert [each.seq for each in database.memory_versions.list(store.id, seq_lt=5, path="/0.md").data] == [3, 1]
    assert database.memory_versions.list(store.id, seq_lt=1).data == []
