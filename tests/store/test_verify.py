"""`verify`: a store that only memkernel wrote is whole, and whatever else is done to it is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import psycopg
import pytest

from memkernel import ids
from memkernel.errors import StoreNotFoundError
from memkernel.models import Change, MemoryStore, StoreProblem
from memkernel.store import Database
from tests.store.ageing import let_pass
from tests.store.people import ANN, CAUSE

Break = Callable[[str], list[StoreProblem]]


def live(database: Database, store_id: str) -> None:
    """A history of everything that there is."""
    memories = database.memories
    for text in ("one", "two", "three\0"):
        memories.write(store_id, "/a.md", text, actor=ANN, cause=CAUSE)
    memories.apply(store_id, [Change(f"/d/{n}", str(n)) for n in range(5)], actor=ANN, cause=CAUSE)
    memories.rename_tree(store_id, "/d", "/e", actor=ANN)
    memories.delete_tree(store_id, "/e/1", actor=ANN)
    memories.write(store_id, "/e/1", "", actor=ANN)
    memories.write(store_id, "/e-", "beside the directory", actor=ANN)
    gone = database.memory_versions.at_ordinal(store_id, "/a.md", 2)
    database.memory_versions.redact(gone.id, memory_store_id=store_id, actor=ANN)


@pytest.fixture
def lived(database: Database, store: MemoryStore) -> MemoryStore:
    live(database, store.id)
    return store


@pytest.fixture
def broken(database: Database, lived: MemoryStore, shared_dsn: str) -> Iterator[Break]:
    """Do something to the store that no function of memkernel's does; what is found then."""

    def broken(statement: str) -> list[StoreProblem]:
        with psycopg.connect(shared_dsn) as admin:
            admin.execute("SET session_replication_role = replica")  # no trigger refuses it
            done = admin.execute(statement.replace("STORE", f"memory_store_id = '{lived.id}'").encode())
            assert done.rowcount > 0, "it was done to nothing"
        return list(database.verify(lived.id).problems)

    yield broken
    with psycopg.connect(shared_dsn) as admin:
        admin.execute("SET session_replication_role = replica")
        for table in ("memory_versions", "memories", "run_changes"):
            admin.execute(f"DELETE FROM memkernel.{table} WHERE memory_store_id = %s".encode(), [lived.id])
        admin.execute("DELETE FROM memkernel.memory_stores WHERE id = %s", [lived.id])


def test_a_store_that_lived_is_whole(database: Database, lived: MemoryStore) -> None:
    verified = database.verify(lived.id)
    assert verified.problems == ()
    record = database.memory_stores.retrieve(lived.id)
    assert (verified.changes, verified.memories) == (record.head_seq, record.memory_count) == (16, 7)
    assert verified.versions == 16


def test_an_empty_store_is_whole_and_an_unknown_one_is_not_there(database: Database, store: MemoryStore) -> None:
    verified = database.verify(store.id)
    assert (verified.changes, verified.versions, verified.memories, verified.problems) == (0, 0, 0, ())
    for unknown in (ids.mint("memstore"), "notes"):
        with pytest.raises(StoreNotFoundError):
            database.verify(unknown)


def test_a_store_that_was_pruned_is_whole_and_a_gap_above_that_is_none(fresh_database: Database, dsn: str) -> None:
    database = fresh_database
    store_id = database.memory_stores.create(name="Notes").id
    live(database, store_id)
    database.memories.delete_tree(store_id, "/e/2", actor=ANN)
    let_pass(dsn, timedelta(days=365))
    live_on = [database.memories.write(store_id, "/a.md", text, actor=ANN) for text in ("four", "five", "six")]
    pruned = list(database.pruning.prune(older_than=timedelta(days=30), keep=1))
    assert pruned[0].versions > 0
    verified = database.verify(store_id)
    assert verified.problems == ()
    assert verified.versions == verified.changes - pruned[0].versions
    with psycopg.connect(dsn) as admin:
        admin.execute("SET session_replication_role = replica")
        admin.execute("DELETE FROM memkernel.memory_versions WHERE id = %s", [live_on[1].memory_version_id])
        admin.execute("DELETE FROM memkernel.memory_versions WHERE path = '/e/0'")
    problems = [problem.problem for problem in database.verify(store_id).problems]
    assert "change 19 is missing" in problems
    assert f"the store should have {verified.versions} versions, and has {verified.versions - 2}" in problems


VERSIONS = "UPDATE memkernel.memory_versions SET {} WHERE STORE AND seq = {}"
MEMORIES = "UPDATE memkernel.memories SET {} WHERE STORE AND path = {!r}"

BROKEN = {
    # what is done -> the change, the path, and what is told of it
    VERSIONS.format("content = 'forged'", 1): (
        1, "/a.md", "its text is not what was written: the sha256 is ccdd35168ab4…, and should be 7692c3ad3540…",
    ),
    VERSIONS.format("content = content || ' '", 5): (5, "/d/1", "its text has 2 bytes, and should have 1"),
    VERSIONS.format("content = NULL", 1): (
        1, "/a.md", "its text, path, hash or size is missing, though it was not redacted",
    ),
    VERSIONS.format("path = '/a.md'", 2): (
        2, "/a.md", "it was redacted, and something of its text or path is still there",
    ),
    VERSIONS.format("content = 'x'", 14): (14, "/e/1", "it is a deletion: it should have a path and no text"),
    VERSIONS.format("seq = 99", 16): (99, "/e-", "its number is none of the store's changes, which go from 1 to 16"),
    "DELETE FROM memkernel.memory_versions WHERE STORE AND seq BETWEEN 9 AND 11": (
        9, "", "the changes from 9 to 11 are missing",
    ),
    "DELETE FROM memkernel.memory_versions WHERE STORE AND seq = 16": (16, "", "change 16 is missing"),
    VERSIONS.format("created_at = '2001-01-01'", 3): (3, "/a.md", "it is older than the change before it"),
    VERSIONS.format("workspace_id = 'other'", 3): (
        3, "/a.md", "it belongs to workspace other, and its store to default",
    ),
    MEMORIES.format("workspace_id = 'other'", "/a.md"): (
        None, "/a.md", "it belongs to workspace other, and its store to default",
    ),
    VERSIONS.format("ordinal = 7", 3): (3, "/a.md", "it is version @7 of its memory, and should be @3"),
    "DELETE FROM memkernel.memory_versions WHERE STORE AND seq = 1": (
        2, "", "its memory's history begins with @2, though nothing was pruned",
    ),
    VERSIONS.format("operation = 'created'", 3): (3, "/a.md", "it is @3 of its memory, and says that it was created"),
    VERSIONS.format("operation = 'deleted', content = NULL, content_sha256 = NULL, content_size_bytes = NULL", 1): (
        2, "", "its memory had been deleted before",
    ),
    "DELETE FROM memkernel.memories WHERE STORE AND path = '/a.md'": (
        3, "/a.md", "its memory is missing, though this newest version of it is no deletion",
    ),
    MEMORIES.format("memory_version_id = 'memver_other'", "/e/0"): (9, "/e/0", "the memory shows version memver_other"),
    MEMORIES.format("path = '/elsewhere'", "/e/0"): (
        9, "/elsewhere",
        "the memory's path, hash, size, time or number of versions is not that of its newest version",
    ),
    MEMORIES.format("path = '/a.md/below'", "/e/0"): (
        None, "/a.md", "it is a memory, and has another one below it: /a.md/below",
    ),
    MEMORIES.format("id = 'mem_other'", "/e-"): (None, "/e-", "the memory is there, and has no version"),
    "INSERT INTO memkernel.memories (workspace_id, memory_store_id, id, path, memory_version_id, ordinal, "
    "content_sha256, content_size_bytes, created_at, updated_at) "
    "SELECT workspace_id, memory_store_id, memory_id, '/back', id, 3, '', 0, created_at, created_at "
    "FROM memkernel.memory_versions WHERE STORE AND seq = 14": (
        14, "/back", "the memory is there, though it was deleted",
    ),
    "UPDATE memkernel.memory_stores SET memory_count = 8 WHERE id = (SELECT memory_store_id FROM memkernel.memories "
    "WHERE STORE LIMIT 1)": (None, "", "the store says that it has 8 memories, and has 7"),
    "UPDATE memkernel.memory_stores SET pruned_count = 2 WHERE id = (SELECT memory_store_id FROM memkernel.memories "
    "WHERE STORE LIMIT 1)": (None, "", "the store should have 14 versions, and has 16"),
    "UPDATE memkernel.run_changes SET seq = 77 WHERE STORE AND seq = 2": (
        77, "", "toolu_01 of run_01 is said to have made this change, which is not there",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("statement", "told"), BROKEN.items())
def test_what_no_function_of_memkernel_does_is_found(
    broken: Break, statement: str, told: tuple[int | None, str, str]
) -> None:
    found = broken(statement)
    assert [
        problem
        for problem in found
        if (problem.seq, problem.path) == told[:2] and problem.problem.startswith(told[2].split(" memver_")[0])
    ], found


def test_problems_are_told_in_the_order_of_the_changes_and_at_most_a_thousand(
    broken: Break, database: Database, lived: MemoryStore
) -> None:
    for turn in range(60):
        changes = [Change(f"/many/{number}", f"{turn} {number}") for number in range(20)]
        database.memories.apply(lived.id, changes, actor=ANN)
    found = broken("UPDATE memkernel.memory_versions SET content = 'forged' WHERE STORE AND content IS NOT NULL")
    assert len(found) == 1_000
    assert [problem.seq for problem in found] == sorted(problem.seq or 0 for problem in found)
