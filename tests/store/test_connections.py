"""Connections: forks, interrupts, poolers, many threads; faults 21, 22, 24."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import FrameType

import psycopg
import pytest

from memkernel.errors import DatabaseUnavailableError
from memkernel.models import Change, Memory, MemoryStore
from memkernel.store import Database, connections
from tests.fix_postgres import PostgresServer
from tests.store.interrupts import interrupted_at
from tests.store.people import ANN


def test_nothing_is_connected_before_the_first_use() -> None:
    asked: list[str] = []
    database = Database(lambda: asked.append("asked") or "host=/nowhere")
    assert asked == []
    with pytest.raises(DatabaseUnavailableError) as unreachable:
        database.open()
    assert asked == ["asked"]  # at once, without waiting for a server that never was
    assert unreachable.value.saved is False
    assert isinstance(unreachable.value.__cause__, psycopg.OperationalError)


def test_a_server_that_swallows_packets_is_not_waited_for_long() -> None:
    started = time.monotonic()
    with pytest.raises(DatabaseUnavailableError):
        Database("postgresql://ann@192.0.2.1/notes?connect_timeout=1").open()
    assert time.monotonic() - started < 20


def test_a_closed_database_opens_again(fresh_database: Database) -> None:
    store = fresh_database.memory_stores.create(name="Notes")
    fresh_database.close()
    fresh_database.close()
    assert fresh_database.memory_stores.retrieve(store.id) == store


def test_connections_are_few_and_used_again(fresh_database: Database, server: PostgresServer) -> None:
    store = fresh_database.memory_stores.create(name="Notes")
    name = fresh_database.status().database

    def count() -> int:
        with server.connect() as admin:
            rows = admin.execute("SELECT FROM pg_stat_activity WHERE datname = %s", [name]).fetchall()
        return len(rows)

    for _ in range(20):
        fresh_database.memories.entries(store.id)
    assert count() == 1

    def write(number: int) -> Memory:
        return fresh_database.memories.write(store.id, f"/{number}", "", actor=ANN)

    with ThreadPoolExecutor(32) as threads:
        list(threads.map(write, range(64)))
    assert 1 <= count() <= 8


FORKING = """
import multiprocessing, sys, threading
from memkernel.models import Actor
from memkernel.store import Database

database = Database(sys.argv[1])
store = sys.argv[2]
texts = {f"/{number}": f"text {number}" for number in range(50)}
for path, text in texts.items():
    database.memories.write(store, path, text, actor=Actor("user_actor", "user_ann"))

def read(path):
    return database.memories.at_path(store, path).content

def keep_reading(stopping):
    while not stopping.is_set():
        for path, text in texts.items():
            assert read(path) == text

stopping = threading.Event()
reader = threading.Thread(target=keep_reading, args=[stopping])
reader.start()
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(read, [*texts] * 4) == [*texts.values()] * 4
stopping.set()
reader.join()
assert read("/7") == "text 7"
database.close()
print("read by both")
"""


def test_fault_21_a_forked_child_opens_its_own_connections(shared_dsn: str, store: MemoryStore) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", FORKING, shared_dsn, store.id], capture_output=True, text=True, timeout=60, check=False
    )
    assert (answer.stdout, answer.stderr, answer.returncode) == ("read by both\n", "", 0)


@contextmanager
def interrupted_soon(when: Callable[[], object]) -> Generator[None]:
    """Ctrl-C in this block once `when` returns. A signal of another name, for a test runner may ignore SIGINT."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    def send() -> None:
        when()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, interrupt)
    sender = threading.Thread(target=send)
    sender.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        sender.join()
        signal.signal(signal.SIGUSR1, before)


def wait_for_lock(server: PostgresServer, name: str) -> None:
    """Until somebody waits for a lock in this database."""
    with server.connect() as admin:
        while not admin.execute(
            "SELECT FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock'", [name]
        ).fetchall():
            time.sleep(0.01)


def test_fault_22_an_interrupted_call_is_cancelled_and_the_next_one_works(
    fresh_database: Database, server: PostgresServer
) -> None:
    memories = fresh_database.memories
    store = fresh_database.memory_stores.create(name="Notes")
    memory = memories.write(store.id, "/a.md", "one", actor=ANN)
    name = fresh_database.status().database
    with server.connect(name) as holder, holder.transaction():
        holder.execute("SELECT memkernel.lock_store(%s, true)", [store.id])
        for change in (
            lambda: memories.update(memory.id, memory_store_id=store.id, content="two", actor=ANN),
            lambda: memories.apply(store.id, [Change("/a.md", "two"), Change("/b.md", "")], actor=ANN),
            lambda: memories.edit(store.id, "/a.md", str.upper, actor=ANN),
            lambda: fresh_database.memory_stores.archive(store.id),
        ):
            with interrupted_soon(lambda: wait_for_lock(server, name)):
                change()
            assert memories.at_path(store.id, "/a.md").content == "one"
            with server.connect() as admin:
                waiting = admin.execute(
                    "SELECT FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock'", [name]
                ).fetchall()
            assert waiting == []
    assert memories.update(memory.id, memory_store_id=store.id, content="two", actor=ANN).content_size_bytes == 3
    assert fresh_database.memory_stores.retrieve(store.id).head_seq == 2
    assert fresh_database.unsettled() == []


def test_fault_22_an_edit_that_is_interrupted_lets_go_of_the_store(
    fresh_database: Database, server: PostgresServer
) -> None:
    store = fresh_database.memory_stores.create(name="Notes")
    fresh_database.memories.write(store.id, "/a.md", "one", actor=ANN)

    def think(text: str) -> str:
        time.sleep(60)
        return text

    with interrupted_soon(lambda: time.sleep(0.2)):
        fresh_database.memories.edit(store.id, "/a.md", think, actor=ANN)
    fresh_database.memories.write(store.id, "/a.md", "two", actor=ANN)


STATEMENT = ("run", "_answer", "_last_result")


@pytest.mark.parametrize("text", ["one", "two"], ids=["a statement that is prepared", "one that is not yet"])
def test_fault_22_an_interrupt_at_any_step_leaves_no_statement_that_is_saved_later(
    dsn: str, server: PostgresServer, text: str
) -> None:
    with Database(dsn, max_connections=1) as database:
        store = database.memory_stores.create(name="Notes")
        reached: list[str] = []
        with server.connect(database.status().database) as holder:
            for step in itertools.count():
                database.close()
                database.memories.entries(store.id)
                if text == "one":
                    database.memories.write(store.id, "/a.md", "one", actor=ANN)
                with holder.transaction():  # a statement that was sent waits for its end
                    holder.execute("SELECT memkernel.lock_store(%s, true)", [store.id])
                    with pytest.raises(KeyboardInterrupt), interrupted_at(step, connections, STATEMENT, reached):
                        database.memories.write(store.id, f"/{step}.md", "two", actor=ANN)
                if reached[-1] == "_last_result" and "_answer" in reached:
                    break
        found = database.memories.list(store.id, limit=100).data
        assert [item.path for item in found] == (["/a.md"] if text == "one" else [])
        assert {"run", "_answer"} < {*reached}


def test_fault_24_behind_a_pooler_nothing_is_prepared_and_nothing_set(dsn: str) -> None:
    with Database(dsn, prepare=False, max_connections=1) as database:
        store = database.memory_stores.create(name="Notes")
        for text in ("one", "two"):
            database.memories.write(store.id, "/a.md", text, actor=ANN)
        assert database.memories.at_path(store.id, "/a.md").content == "two"
        assert len(database.memory_versions.list(store.id).data) == 2
        assert _session_state(database) == (0, "on")
    with Database(dsn, max_connections=1) as database:
        database.memories.at_path(store.id, "/a.md")
        prepared, seqscan = _session_state(database)
        assert prepared > 0
        assert seqscan == "off"


def _session_state(database: Database) -> tuple[int, str]:
    """How many statements the pooled connection has prepared, and one of its settings."""
    with database._pool.connection() as connection:  # pyright: ignore[reportPrivateUsage]  # its session is the question
        row = connection.execute(
            "SELECT (SELECT count(*) FROM pg_prepared_statements), current_setting('enable_seqscan')"
        ).fetchone()
    assert row
    return row


def test_settings_of_a_role_do_not_disturb(dsn: str, server: PostgresServer) -> None:
    with Database(dsn) as database:
        store = database.memory_stores.create(name="Notes")
        name = database.status().database
    with server.connect() as admin:
        for setting in (
            "default_transaction_isolation TO 'serializable'",
            "search_path TO shadow, pg_catalog",
            "bytea_output TO 'escape'",
            "timezone TO 'Asia/Kathmandu'",
            "datestyle TO 'German'",
            "intervalstyle TO 'iso_8601'",
            "client_encoding TO 'latin1'",
            "standard_conforming_strings TO off",
            "plan_cache_mode TO 'force_generic_plan'",
        ):
            admin.execute(f"ALTER DATABASE {name} SET {setting}".encode())
    with server.connect(name) as admin:
        admin.execute("CREATE SCHEMA shadow")
        for table in ("memories", "memory_stores", "memory_versions", "run_changes"):
            admin.execute(f"CREATE TABLE shadow.{table} (oops int)".encode())
    for prepare in (True, False):
        with Database(dsn, prepare=prepare) as database:
            _use_everything(database, store)


def _use_everything(database: Database, store: MemoryStore) -> None:
    memories, versions = database.memories, database.memory_versions
    memory = memories.write(store.id, "/é.md", "日本\n", actor=ANN)
    assert memory.created_at.utcoffset() == memories.at_path(store.id, "/é.md").created_at.utcoffset()
    memories.apply(store.id, [Change("/d/a", "1"), Change("/d/b", "2")], actor=ANN)
    memories.rename_tree(store.id, "/d", "/e", actor=ANN)
    assert [item.path for item in memories.list(store.id, depth=1).data] == ["/e/", "/é.md"]
    assert dict(memories.contents(store.id)) == {"/e/a": "1", "/e/b": "2", "/é.md": "日本\n"}
    assert len(versions.list(store.id, created_at_gte=memory.created_at).data) == 5
    assert versions.at_time(store.id, "/é.md", memory.created_at).content == "日本\n"
    memories.delete_tree(store.id, "/", actor=ANN)
    versions.redact(memory.memory_version_id, memory_store_id=store.id, actor=ANN)
    ((_, rows),) = ((name, list(rows)) for name, rows in database.dump({"memory_versions": ["created_at", "id"]}))
    assert memory.created_at in {row[0] for row in rows}
    assert database.memory_stores.find("Notes").id == store.id
    assert database.memory_stores.list().data[0].id == store.id


def test_results_are_not_mixed_between_threads(
    database: Database, store: MemoryStore, write: Callable[..., Memory]
) -> None:
    texts = {f"/{number}": f"text {number} " * number for number in range(40)}
    for path, text in texts.items():
        write(path, text)

    def read(path: str) -> tuple[str, str | None]:
        return path, database.memories.at_path(store.id, path).content

    with ThreadPoolExecutor(16) as threads:
        assert dict(threads.map(read, [*texts] * 10)) == texts
