"""Updates, preconditions, deletion: CONTRACT F.167-F.183 at the record layer; faults 18, 19."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from memkernel.errors import InvalidInputError, MemoryNotFoundError, PathConflictError, PreconditionFailedError
from memkernel.models import ABSENT, Memory, MemoryStore, MemoryVersion
from memkernel.store import Database
from tests.store.people import ANN

STALE = hashlib.sha256(b"something else").hexdigest()


@pytest.fixture
def memory(write: Callable[..., Memory]) -> Memory:
    return write("/a.md", "one")


@pytest.fixture
def update(database: Database, store: MemoryStore, memory: Memory) -> Callable[..., Memory]:
    """Update the memory /a.md."""

    def update(**changes: Any) -> Memory:
        return database.memories.update(memory.id, memory_store_id=store.id, actor=ANN, **changes)

    return update


@pytest.fixture
def versions(database: Database, store: MemoryStore, memory: Memory) -> Callable[[], list[MemoryVersion]]:
    """The memory's versions, newest first."""
    return lambda: database.memory_versions.list(store.id, memory_id=memory.id, view="full").data


@pytest.fixture
def unchanged(database: Database, store: MemoryStore, memory: Memory) -> Callable[[], bool]:
    """Whether /a.md is still as it was made, in a store where nothing else happened."""

    def unchanged() -> bool:
        head_seq = database.memory_stores.retrieve(store.id).head_seq
        return database.memories.at_path(store.id, "/a.md", view="basic") == memory and head_seq == 1

    return unchanged


def test_f167_an_edit_keeps_the_id_and_makes_a_version(memory: Memory, update: Callable[..., Memory]) -> None:
    edited = update(content="two")
    assert (edited.id, edited.path, edited.created_at) == (memory.id, memory.path, memory.created_at)
    assert edited.memory_version_id != memory.memory_version_id
    assert edited.updated_at > memory.updated_at


def test_f168_a_rename_keeps_id_and_content(
    database: Database, store: MemoryStore, memory: Memory, update: Callable[..., Memory], versions: Callable[..., Any]
) -> None:
    renamed = update(path="/b/c.md")
    assert (renamed.id, renamed.content_sha256) == (memory.id, memory.content_sha256)
    newest, _ = versions()
    assert (newest.operation, newest.path, newest.content) == ("modified", "/b/c.md", "one")
    assert database.memories.at_path(store.id, "/b/c.md").content == "one"
    with pytest.raises(MemoryNotFoundError):
        database.memories.at_path(store.id, "/a.md")


def test_f169_content_and_path_at_once_make_one_version(
    update: Callable[..., Memory], versions: Callable[..., Any]
) -> None:
    update(content="two", path="/b.md")
    newest, first = versions()
    assert (newest.path, newest.content) == ("/b.md", "two")
    assert (first.path, first.content) == ("/a.md", "one")


def test_f170_a_precondition_that_holds_lets_the_change_pass(memory: Memory, update: Callable[..., Memory]) -> None:
    edited = update(content="two", precondition=memory.content_sha256)
    assert update(path="/b.md", precondition=edited.content_sha256).path == "/b.md"


@pytest.mark.parametrize(
    "changes",
    [{"content": "two"}, {"content": "one", "path": "/b.md"}, {"path": "/b.md"}, {"content": "x", "path": "/b"}],
)
def test_f171_f173_f174_a_stale_precondition_changes_nothing(
    memory: Memory, update: Callable[..., Memory], unchanged: Callable[[], bool], changes: Any
) -> None:
    with pytest.raises(PreconditionFailedError) as failed:
        update(precondition=STALE, **changes)
    assert (failed.value.path, failed.value.expected, failed.value.actual) == ("/a.md", STALE, memory.content_sha256)
    assert unchanged()


@pytest.mark.parametrize("changes", [{"content": "one"}, {"path": "/a.md"}, {"content": b"one", "path": "/a.md"}, {}])
def test_f172_f174_f177_what_is_so_already_succeeds_without_a_version(
    memory: Memory, update: Callable[..., Memory], unchanged: Callable[[], bool], changes: Any
) -> None:
    assert update(precondition=STALE, **changes) == memory
    assert update(**changes) == memory
    assert unchanged()


def test_f175_a_precondition_is_about_this_memory_not_the_destination(
    memory: Memory, update: Callable[..., Memory], write: Callable[..., Memory]
) -> None:
    other = write("/b.md", "other")
    with pytest.raises(PreconditionFailedError):
        update(path="/c.md", precondition=other.content_sha256)
    assert update(path="/c.md", precondition=memory.content_sha256).path == "/c.md"


def test_f176_a_stale_precondition_comes_before_an_occupied_destination(
    update: Callable[..., Memory], write: Callable[..., Memory], memory: Memory
) -> None:
    write("/b.md")
    with pytest.raises(PreconditionFailedError):
        update(path="/b.md", precondition=STALE)
    with pytest.raises(PathConflictError):
        update(path="/b.md", precondition=memory.content_sha256)


def test_f178_nulls_are_absent(memory: Memory, update: Callable[..., Memory], unchanged: Callable[[], bool]) -> None:
    assert update(content=None, path=None, precondition=None) == memory
    assert unchanged()


MALFORMED_HASHES = [
    STALE.upper(),
    STALE[:-1],
    STALE + "0",
    "",
    "sha256:" + STALE,
    7,
    bytes.fromhex(STALE),
    {"type": STALE},
]


@pytest.mark.parametrize("sha256", MALFORMED_HASHES)
def test_f179_f183_a_malformed_hash_is_refused(
    database: Database, memory: Memory, update: Callable[..., Memory], unchanged: Callable[[], bool], sha256: Any
) -> None:
    store_id = memory.memory_store_id
    with pytest.raises(InvalidInputError, match="precondition"):
        update(content="two", precondition=sha256)
    with pytest.raises(InvalidInputError, match="expect"):
        database.memories.write(store_id, "/a.md", "two", expect=sha256, actor=ANN)
    with pytest.raises(InvalidInputError, match="expected_content_sha256"):
        database.memories.delete(memory.id, memory_store_id=store_id, expected_content_sha256=sha256, actor=ANN)
    assert unchanged()


def test_f180_of_two_updates_with_one_precondition_one_succeeds(
    database: Database, store: MemoryStore, write: Callable[..., Memory]
) -> None:
    for turn in range(10):
        memory = write(f"/{turn}.md", "start")
        start = threading.Barrier(2)

        def update(number: int, memory: Memory = memory, start: threading.Barrier = start) -> bool:
            start.wait()
            try:
                database.memories.update(
                    memory.id,
                    memory_store_id=store.id,
                    content=f"by {number}",
                    precondition=memory.content_sha256,
                    actor=ANN,
                )
            except PreconditionFailedError:
                return False
            return True

        with ThreadPoolExecutor(2) as threads:
            assert sorted(threads.map(update, range(2))) == [False, True]


def test_f181_a_deleted_memory_is_gone(database: Database, store: MemoryStore, memory: Memory) -> None:
    database.memories.delete(memory.id, memory_store_id=store.id, actor=ANN)
    for call in (
        lambda: database.memories.retrieve(memory.id, memory_store_id=store.id),
        lambda: database.memories.delete(memory.id, memory_store_id=store.id, actor=ANN),
        lambda: database.memories.update(memory.id, memory_store_id=store.id, content="x", actor=ANN),
        lambda: database.memories.at_path(store.id, "/a.md"),
    ):
        with pytest.raises(MemoryNotFoundError):
            call()


def test_f182_a_delete_that_expects_another_content_leaves_the_memory(
    database: Database, store: MemoryStore, memory: Memory, unchanged: Callable[[], bool]
) -> None:
    with pytest.raises(PreconditionFailedError) as failed:
        database.memories.delete(memory.id, memory_store_id=store.id, expected_content_sha256=STALE, actor=ANN)
    assert failed.value.actual == memory.content_sha256
    assert unchanged()
    database.memories.delete(
        memory.id, memory_store_id=store.id, expected_content_sha256=memory.content_sha256, actor=ANN
    )


def test_fault_18_saving_the_same_makes_no_version(
    database: Database,
    store: MemoryStore,
    memory: Memory,
    write: Callable[..., Memory],
    unchanged: Callable[[], bool],
) -> None:
    for _ in range(10):
        assert write("/a.md", "one") == memory
    database.memories.edit(store.id, "/a.md", lambda text: text.replace("one", "one"), actor=ANN)
    database.memory_versions.restore(memory.memory_version_id, memory_store_id=store.id, actor=ANN)
    assert database.memories.rename_tree(store.id, "/a.md", "/a.md", actor=ANN) == 0
    assert unchanged()


def test_fault_19_a_stale_writer_is_refused_and_a_repeated_request_is_not(
    database: Database, store: MemoryStore, memory: Memory, update: Callable[..., Memory], versions: Callable[..., Any]
) -> None:
    first = memory.content_sha256
    second = update(content="two")
    with pytest.raises(PreconditionFailedError):
        update(content="C", precondition=first)
    assert update(content="two", precondition=first) == second
    with pytest.raises(PreconditionFailedError):
        database.memories.delete(memory.id, memory_store_id=store.id, expected_content_sha256=first, actor=ANN)
    assert [version.content for version in versions()] == ["two", "one"]


# -- write: create or replace ----------------------------------------------------------------------


def test_a_write_creates_or_replaces(database: Database, store: MemoryStore) -> None:
    made = database.memories.write(store.id, "/a.md", "one", actor=ANN)
    replaced = database.memories.write(store.id, "/a.md", "two", actor=ANN)
    assert made.id == replaced.id
    operations = [version.operation for version in database.memory_versions.list(store.id).data]
    assert operations == ["modified", "created"]


def test_a_write_may_expect_a_content_or_nothing(database: Database, store: MemoryStore) -> None:
    write = database.memories.write
    with pytest.raises(PreconditionFailedError) as nothing:
        write(store.id, "/a.md", "one", expect=STALE, actor=ANN)
    assert (nothing.value.path, nothing.value.expected, nothing.value.actual) == ("/a.md", STALE, None)
    made = write(store.id, "/a.md", "one", expect=ABSENT, actor=ANN)
    with pytest.raises(PreconditionFailedError) as there:
        write(store.id, "/a.md", "two", expect=ABSENT, actor=ANN)
    assert (there.value.expected, there.value.actual) == (None, made.content_sha256)
    with pytest.raises(PreconditionFailedError):
        write(store.id, "/a.md", "two", expect=STALE, actor=ANN)
    replaced = write(store.id, "/a.md", "two", expect=made.content_sha256, actor=ANN)
    assert replaced.id == made.id
    for stale in (ABSENT, STALE, made.content_sha256):
        assert write(store.id, "/a.md", "two", expect=stale, actor=ANN) == replaced  # it is so already


def test_a_write_that_expects_nothing_may_not_overlap(
    database: Database, store: MemoryStore, write: Callable[..., Memory]
) -> None:
    write("/d/a.md")
    for path in ("/d", "/d/a.md/x"):
        with pytest.raises(PathConflictError):
            database.memories.write(store.id, path, "", expect=ABSENT, actor=ANN)
