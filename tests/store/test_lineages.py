"""Ordinals, moments, restoring: CONTRACT 0.3 rows 16 and 19; fault 25."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from memkernel.errors import (
    CapacityError,
    InvalidInputError,
    InvalidPathError,
    PathConflictError,
    PreconditionFailedError,
    RedactedError,
    VersionNotFoundError,
)
from memkernel.models import ABSENT, Memory, MemoryStore, MemoryVersion
from memkernel.store import Database
from tests.store.people import ANN, CAUSE

At = Callable[..., MemoryVersion]


@pytest.fixture
def at(database: Database, store: MemoryStore) -> At:
    """The version with this ordinal, or of this moment, at a path of the store."""

    def at(path: str, which: int | datetime, **view: Any) -> MemoryVersion:
        if isinstance(which, datetime):
            return database.memory_versions.at_time(store.id, path, which, **view)
        return database.memory_versions.at_ordinal(store.id, path, which, **view)

    return at


def test_ordinals_count_from_the_first_version_and_back_from_the_head(write: Callable[..., Memory], at: At) -> None:
    for text in ("one", "two", "three"):
        write("/a.md", text)
    write("/b.md", "another")
    assert [at("/a.md", number).content for number in (1, 2, 3)] == ["one", "two", "three"]
    assert [at("/a.md", number).content for number in (-1, -2)] == ["two", "one"]
    assert at("/a.md", 2, view="basic").content is None
    for missing in (4, -3, 2**31 - 1, 1 - 2**31):
        with pytest.raises(VersionNotFoundError):
            at("/a.md", missing)
    with pytest.raises(VersionNotFoundError):
        at("/c.md", 1)


@pytest.mark.parametrize("ordinal", [0, "1", 1.0, None, True, 2**31, -(2**31)])
def test_an_ordinal_that_is_none_is_refused(at: At, write: Callable[..., Memory], ordinal: Any) -> None:
    write("/a.md")
    with pytest.raises(InvalidInputError, match="ordinal"):
        at("/a.md", ordinal)


def test_ordinals_go_through_renames(
    database: Database, store: MemoryStore, write: Callable[..., Memory], at: At
) -> None:
    write("/a.md", "one")
    database.memories.rename_tree(store.id, "/a.md", "/d/b.md", actor=ANN)
    database.memories.rename_tree(store.id, "/d", "/e", actor=ANN)
    write("/e/b.md", "four")
    assert [at("/e/b.md", number).path for number in (1, 2, 3, 4)] == ["/a.md", "/d/b.md", "/e/b.md", "/e/b.md"]
    with pytest.raises(VersionNotFoundError):
        at("/a.md", 1)  # nothing is there, and no lineage ended there


def test_ordinals_are_of_the_lineage_that_is_there_else_of_the_last_that_ended_there(
    database: Database, store: MemoryStore, write: Callable[..., Memory], at: At
) -> None:
    def delete() -> None:
        database.memories.delete_tree(store.id, "/a.md", actor=ANN)

    write("/a.md", "first life")
    delete()
    write("/a.md", "second life")
    assert at("/a.md", 1).content == "second life"
    delete()
    assert [at("/a.md", number).operation for number in (1, 2)] == ["created", "deleted"]
    assert at("/a.md", -1).content == "second life"
    write("/b.md", "third life")
    database.memories.rename_tree(store.id, "/b.md", "/a.md", actor=ANN)
    assert at("/a.md", 1).content == "third life"
    log = database.memory_versions.list(store.id, path="/a.md", view="full").data
    assert [version.content for version in log] == ["third life", "third life"]


def test_what_was_there_at_a_moment(
    database: Database, store: MemoryStore, write: Callable[..., Memory], at: At
) -> None:
    tick = timedelta(microseconds=1)
    one, two = write("/a.md", "one"), write("/a.md", "two")
    database.memories.delete_tree(store.id, "/a.md", actor=ANN)
    gone = database.memory_versions.list(store.id, limit=1).data[0].created_at
    again = write("/a.md", "again")
    assert at("/a.md", one.updated_at).content == "one"
    assert at("/a.md", two.updated_at - tick).content == "one"
    assert at("/a.md", two.updated_at).content == "two"
    assert at("/a.md", again.updated_at + timedelta(days=1)).content == "again"
    assert at("/a.md", again.updated_at.replace(tzinfo=None)).content == "again"
    for nothing in (one.updated_at - tick, gone, again.updated_at - tick):
        with pytest.raises(VersionNotFoundError):
            at("/a.md", nothing)
    with pytest.raises(VersionNotFoundError):
        at("/never.md", again.updated_at)


@pytest.mark.parametrize("moment", [None, "2026-11-30", 1])
def test_a_moment_that_is_none_is_refused(database: Database, store: MemoryStore, moment: Any) -> None:
    with pytest.raises(InvalidInputError, match="moment"):
        database.memory_versions.at_time(store.id, "/a.md", moment)


def test_the_version_before_is_of_the_same_lineage(
    database: Database, store: MemoryStore, write: Callable[..., Memory]
) -> None:
    one = write("/a.md", "one")
    write("/b.md", "between")
    two = write("/a.md", "two")
    before = database.memory_versions.before
    assert before(two.memory_version_id, memory_store_id=store.id).id == one.memory_version_id
    assert before(two.memory_version_id, memory_store_id=store.id, view="basic").content is None
    with pytest.raises(VersionNotFoundError):
        before(one.memory_version_id, memory_store_id=store.id)


# -- restoring -------------------------------------------------------------------------------------


@pytest.fixture
def restore(database: Database, store: MemoryStore) -> Callable[..., Memory]:
    def restore(memory: Memory, **more: Any) -> Memory:
        return database.memory_versions.restore(
            memory.memory_version_id, memory_store_id=store.id, actor=ANN, cause=CAUSE, **more
        )

    return restore


def test_fault_25_restoring_appends_the_old_text(
    database: Database, store: MemoryStore, write: Callable[..., Memory], restore: Callable[..., Memory]
) -> None:
    first = write("/a.md", "é" * 5_000)
    write("/a.md", "two")
    database.memories.rename_tree(store.id, "/a.md", "/b.md", actor=ANN)
    back = restore(first)
    assert (back.id, back.path, back.content_sha256) == (first.id, "/b.md", first.content_sha256)
    log = database.memory_versions.list(store.id, path="/b.md", view="full").data
    assert [version.content for version in log] == ["é" * 5_000, "two", "two", "é" * 5_000]
    assert log[0].operation == "modified"
    assert database.memory_versions.list_by_run(store.id, CAUSE.run_id)[-1].id == back.memory_version_id
    assert restore(first) == back  # fault 18: it is so already


def test_fault_25_a_deleted_memory_comes_back_with_a_new_id(
    database: Database, store: MemoryStore, write: Callable[..., Memory], restore: Callable[..., Memory]
) -> None:
    memory = write("/d/a.md", "text")
    database.memories.delete_tree(store.id, "/", actor=ANN)
    back = restore(memory, expect=ABSENT)
    assert back.id != memory.id
    assert database.memories.at_path(store.id, "/d/a.md").content == "text"
    (version,) = database.memory_versions.list(store.id, memory_id=back.id).data
    assert (version.operation, version.ordinal) == ("created", 1)


def test_fault_25_a_deleted_memory_comes_back_where_it_is_asked_for(
    database: Database, store: MemoryStore, write: Callable[..., Memory], restore: Callable[..., Memory]
) -> None:
    memory = write("/old.md", "text")
    database.memories.rename_tree(store.id, "/old.md", "/new.md", actor=ANN)
    database.memories.delete_tree(store.id, "/", actor=ANN)
    assert restore(memory, path="/d/back.md").path == "/d/back.md"
    with pytest.raises(InvalidPathError):
        restore(memory, path="/d/")
    alive = write("/alive.md", "one")
    write("/alive.md", "two")
    assert restore(alive, path="/elsewhere.md").path == "/alive.md"  # a living memory stays where it is


def test_fault_25_a_head_that_moved_is_not_overwritten(
    database: Database, store: MemoryStore, write: Callable[..., Memory], restore: Callable[..., Memory]
) -> None:
    first, shown = write("/a.md", "one"), write("/a.md", "two")
    write("/a.md", "three")
    with pytest.raises(PreconditionFailedError):
        restore(first, expect=shown.content_sha256)
    with pytest.raises(PreconditionFailedError):
        restore(first, expect=ABSENT)
    assert database.memories.at_path(store.id, "/a.md").content == "three"
    database.memories.delete_tree(store.id, "/a.md", actor=ANN)
    with pytest.raises(PreconditionFailedError):
        restore(first, expect=shown.content_sha256)
    assert database.memories.entries(store.id) == []


def test_fault_25_a_redacted_version_has_nothing_to_restore(
    database: Database, store: MemoryStore, write: Callable[..., Memory], restore: Callable[..., Memory]
) -> None:
    first = write("/a.md", "one")
    write("/a.md", "two")
    database.memory_versions.redact(first.memory_version_id, memory_store_id=store.id, actor=ANN)
    with pytest.raises(RedactedError):
        restore(first)
    assert database.memory_stores.retrieve(store.id).head_seq == 2


def test_a_deletion_has_nothing_to_restore(
    database: Database, store: MemoryStore, write: Callable[..., Memory]
) -> None:
    write("/a.md")
    database.memories.delete_tree(store.id, "/a.md", actor=ANN)
    (deleted,) = database.memory_versions.list(store.id, operation="deleted").data
    with pytest.raises(InvalidInputError, match="deletion"):
        database.memory_versions.restore(deleted.id, memory_store_id=store.id, actor=ANN)


def test_a_deleted_memory_comes_back_only_where_there_is_room(
    database: Database,
    store: MemoryStore,
    limited: Callable[..., Database],
    write: Callable[..., Memory],
    restore: Callable[..., Memory],
) -> None:
    memory = write("/a/b/c")
    database.memories.delete_tree(store.id, "/", actor=ANN)
    holder = write("/a/b")
    with pytest.raises(PathConflictError) as conflict:
        restore(memory)
    assert conflict.value.conflicting_memory_id == holder.id
    database.memories.rename_tree(store.id, "/a/b", "/z", actor=ANN)
    with pytest.raises(CapacityError):
        limited(memories_per_store=1).memory_versions.restore(
            memory.memory_version_id, memory_store_id=store.id, actor=ANN
        )
    assert restore(memory).path == "/a/b/c"
