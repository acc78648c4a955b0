"""The whole: status, and tables for analytics."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from datetime import UTC
from typing import Any

import pytest

from memkernel.errors import DatabaseUnavailableError, InvalidInputError
from memkernel.models import Change, Memory, MemoryStore
from memkernel.store import Database
from tests.fix_postgres import PostgresServer
from tests.store.people import ANN, CAUSE


def test_the_status_names_the_server_and_counts(fresh_database: Database, server: PostgresServer) -> None:
    store = fresh_database.memory_stores.create(name="Notes")
    fresh_database.memory_stores.archive(fresh_database.memory_stores.create(name="Old").id)
    fresh_database.memories.write(store.id, "/a.md", "one", actor=ANN)
    fresh_database.memories.write(store.id, "/b.md", "two", actor=ANN)
    fresh_database.memories.delete_tree(store.id, "/b.md", actor=ANN)
    status = fresh_database.status()
    assert status.server_version.split(".", maxsplit=1)[0] == str(server.version)
    assert (status.host, status.user) == (str(server.directory), "postgres")
    assert status.database.startswith("test_")
    assert (status.memory_stores, status.memories, status.memory_versions) == (2, 1, 3)


def read_all(dump: Iterator[tuple[str, Iterator[tuple[Any, ...]]]]) -> None:
    for _, found in dump:
        list(found)


def rows(database: Database, table: str, *columns: str) -> list[tuple[Any, ...]]:
    ((name, found),) = ((name, list(found)) for name, found in database.dump({table: columns}))
    assert name == table
    return found


def test_a_dump_has_the_columns_asked_for_as_python_values(fresh_database: Database) -> None:
    store = fresh_database.memory_stores.create(name="Nötes", metadata={"k": "v"})
    memory = fresh_database.memories.write(store.id, "/a.md", "é\0", actor=ANN, cause=CAUSE)
    version = fresh_database.memory_versions.list(store.id).data[0]
    sha256 = hashlib.sha256("é\0".encode()).hexdigest()
    assert rows(fresh_database, "memory_stores", "id", "name", "metadata", "head_seq", "archived_at") == [
        (store.id, "Nötes", {"k": "v"}, 1, None)
    ]
    assert rows(fresh_database, "memories", "content", "path", "content_sha256", "updated_at") == [
        ("é\0", "/a.md", sha256, memory.updated_at)
    ]
    assert rows(fresh_database, "memory_versions", "id", "content", "content_sha256", "created_at", "redacted_at") == [
        (version.id, "é\0", sha256, version.created_at, None)
    ]
    assert rows(fresh_database, "run_changes", "seq", "run_id", "tool_use_id") == [(1, CAUSE.run_id, CAUSE.tool_use_id)]
    assert rows(fresh_database, "memory_versions", "created_at")[0][0].tzinfo is UTC


def test_a_redacted_or_deleted_text_is_none_in_a_dump(fresh_database: Database) -> None:
    store = fresh_database.memory_stores.create(name="Notes")
    memory = fresh_database.memories.write(store.id, "/a.md", "text", actor=ANN)
    fresh_database.memories.delete_tree(store.id, "/", actor=ANN)
    fresh_database.memory_versions.redact(memory.memory_version_id, memory_store_id=store.id, actor=ANN)
    found = rows(fresh_database, "memory_versions", "seq", "content", "content_sha256", "path", "redacted_by_id")
    assert sorted(found) == [(1, None, None, None, ANN.id), (2, None, None, "/a.md", None)]


def test_a_dump_is_one_snapshot(database: Database, store: MemoryStore, write: Callable[..., Memory]) -> None:
    write("/a.md", "one")
    dump = database.dump({"memories": ["memory_store_id", "path"], "memory_versions": ["memory_store_id", "seq"]})
    _, memories = next(dump)
    assert (store.id, "/a.md") in list(memories)
    write("/b.md", "two")
    _, versions = next(dump)
    assert [seq for store_id, seq in versions if store_id == store.id] == [1]
    dump.close()


def test_a_large_dump_is_streamed_and_may_be_left_early(database: Database, store: MemoryStore) -> None:
    changes = [Change(f"/{number}", f"text {number}") for number in range(2_000)]
    for turn in range(2):
        database.memories.apply(store.id, [Change(c.path, f"{turn}{c.content!r}") for c in changes], actor=ANN)
    dump = database.dump({"memory_versions": ["memory_store_id", "content"]})
    _, found = next(dump)
    next(found)
    dump.close()
    all_rows = rows(database, "memory_versions", "memory_store_id", "content")
    assert sum(store_id == store.id for store_id, _ in all_rows) == 4_000


@pytest.mark.parametrize(
    "tables",
    [
        {"pg_user": ["usename"]},
        {"memories": ["no_such_column"]},
        {"memories": ["id; DROP TABLE memkernel.memories"]},
        {"memories": ["id)--"]},
        {"memories": ["ïd"]},
        {"memories": [""]},
    ],
)
def test_an_unknown_table_or_column_is_refused(database: Database, tables: dict[str, list[str]]) -> None:
    with pytest.raises(InvalidInputError):
        read_all(database.dump(tables))
    assert database.status()


def test_a_dump_that_loses_its_server_says_so(fresh_database: Database, server: PostgresServer) -> None:
    store = fresh_database.memory_stores.create(name="Notes")
    fresh_database.memories.write(store.id, "/a.md", "text", actor=ANN)
    name = fresh_database.status().database
    dump = fresh_database.dump({"memories": ["path"], "memory_versions": ["id"]})
    list(next(dump)[1])
    with server.connect() as admin:
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
    with pytest.raises(DatabaseUnavailableError):
        read_all(dump)
    assert fresh_database.memories.at_path(store.id, "/a.md").content == "text"


def test_dumps_in_threads_do_not_disturb_each_other(
    database: Database, store: MemoryStore, write: Callable[..., Memory]
) -> None:
    for number in range(10):
        write(f"/{number}", "text")
    counts: list[int] = []

    def count() -> None:
        found = rows(database, "memories", "memory_store_id")
        counts.append(sum(store_id == store.id for (store_id,) in found))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [10] * 4
