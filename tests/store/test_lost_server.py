"""What becomes of a call when its connection, or the whole server, is lost: CONTRACT 0.3 row 24; faults 19, 24, 30."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from memkernel import ids
from memkernel.errors import (
    DatabaseUnavailableError,
    MemoryNotFoundError,
    PathConflictError,
    RunNotFoundError,
    SessionNotFoundError,
)
from memkernel.models import AttachmentParams, Change, Memory, MemoryStore, RunEvent, RunStatus, Usage
from memkernel.store import Database, Settled, Unsettled
from memkernel.store.run_processes import this_process
from tests.fix_postgres import DURABLE, PostgresServer
from tests.store.ageing import let_pass
from tests.store.people import ANN
from tests.store.proxy import LossyProxy, Side


@pytest.fixture
def proxy(server: PostgresServer) -> Iterator[LossyProxy]:
    proxy = LossyProxy(server.directory)
    yield proxy
    proxy.close()


@pytest.fixture
def proxied(proxy: LossyProxy, server: PostgresServer, shared_dsn: str) -> Iterator[Database]:
    """The record layer on the other side of the proxy; a server that is away is waited for 0.3 s."""
    dsn = shared_dsn.replace(str(server.directory), str(proxy.directory))
    with Database(dsn, reconnect_s=0.3) as database:
        yield database


@pytest.fixture
def warm(proxied: Database, store: MemoryStore) -> Memory:
    """A memory /a.md made through the proxy; every statement that the tests lose is prepared."""
    memories = proxied.memories
    memory = memories.create(store.id, path="/a.md", content="one", actor=ANN)
    memories.write(store.id, "/b.md", "one", actor=ANN)
    memories.update(memory.id, memory_store_id=store.id, actor=ANN)
    memories.rename_tree(store.id, "/b.md", "/b.md", actor=ANN)
    memories.delete_tree(store.id, "/b.md", actor=ANN)
    with pytest.raises(MemoryNotFoundError):
        memories.delete("mem_" + "0" * 26, memory_store_id=store.id, actor=ANN)
    return memory


def head_seq(database: Database, store: MemoryStore) -> int:
    return database.memory_stores.retrieve(store.id).head_seq


@pytest.mark.parametrize("side", ["request", "reply"])
def test_a_change_whose_connection_is_lost_happens_exactly_once(
    proxied: Database, proxy: LossyProxy, store: MemoryStore, warm: Memory, side: Side
) -> None:
    memories = proxied.memories
    lost: list[tuple[bytes, Callable[[], Memory]]] = [
        (b"memory_write", lambda: memories.write(store.id, "/new.md", "text", actor=ANN, view="full")),
        (b"memory_create", lambda: memories.create(store.id, path="/made.md", content="é", actor=ANN, view="full")),
        (b"memory_update", lambda: memories.update(warm.id, memory_store_id=store.id, content="two", actor=ANN)),
        (b"memory_update", lambda: memories.edit(store.id, "/a.md", lambda text: text + "!", actor=ANN)),
    ]
    before = head_seq(proxied, store)
    for number, (statement, change) in enumerate(lost, 1):
        proxy.lose(side, statement)
        memory = change()
        assert proxy.cuts == number
        stored = proxied.memories.retrieve(memory.id, memory_store_id=store.id)
        assert head_seq(proxied, store) == before + number
        assert memory.memory_version_id == stored.memory_version_id
        assert (memory.created_at, memory.updated_at) == (stored.created_at, stored.updated_at)
        assert memory.content in (None, stored.content)
    assert proxied.unsettled() == []


@pytest.mark.parametrize("side", ["request", "reply"])
def test_deletions_renames_and_batches_happen_exactly_once_too(
    proxied: Database, proxy: LossyProxy, store: MemoryStore, warm: Memory, side: Side
) -> None:
    memories = proxied.memories
    before = head_seq(proxied, store)
    proxy.lose(side, b"memories_rename")
    assert memories.rename_tree(store.id, "/a.md", "/d/a.md", actor=ANN) == 1
    proxy.lose(side, b"batch_finish")
    made = memories.apply(store.id, [Change("/d/b.md", "b"), Change("/d/c.md", "c"), Change("/x", None)], actor=ANN)
    assert [version and version.path for version in made] == ["/d/b.md", "/d/c.md", None]
    proxy.lose(side, b"COMMIT")
    (edited,) = memories.apply(store.id, [Change("/d/b.md", "b2")], actor=ANN)
    assert edited
    assert edited.ordinal == 2
    proxy.lose(side, b"memory_delete")
    memories.delete(warm.id, memory_store_id=store.id, actor=ANN)
    proxy.lose(side, b"memories_delete")
    assert memories.delete_tree(store.id, "/d", actor=ANN) == 2
    assert proxy.cuts == 5
    assert head_seq(proxied, store) == before + 1 + 2 + 1 + 1 + 2
    assert proxied.memories.entries(store.id) == []


@pytest.mark.parametrize("side", ["request", "reply"])
def test_a_prune_whose_connection_is_lost_says_that_it_is_not_known(
    proxied: Database, proxy: LossyProxy, shared_dsn: str, store: MemoryStore, side: Side
) -> None:
    left = {"request": 3, "reply": 1}[side]
    for text in ("one", "two", "three"):
        proxied.memories.write(store.id, "/a.md", text, actor=ANN)
    let_pass(shared_dsn, timedelta(days=365), store.id)
    prune = partial(proxied.pruning.prune, older_than=timedelta(days=30), keep=1, memory_store_id=store.id)
    proxy.lose(side, b"memory_store_prune")
    with pytest.raises(DatabaseUnavailableError) as lost:
        list(prune())
    assert (lost.value.saved, lost.value.memory_store_id) == (None, store.id)
    assert len(proxied.memory_versions.list(store.id).data) == left
    assert proxied.unsettled() == []
    proxy.lose(side, b"memory_store_prune")
    assert sum(one.versions for one in prune(dry_run=True)) == left - 1  # a dry run is simply run again
    assert sum(one.versions for one in prune()) == left - 1


@pytest.mark.parametrize("side", ["request", "reply"])
def test_stores_are_made_changed_and_deleted_once(
    database: Database, proxied: Database, proxy: LossyProxy, side: Side
) -> None:
    stores = proxied.memory_stores
    proxy.lose(side, b"memory_store_create")
    store = stores.create(name="n", unique=False)
    assert database.memory_stores.retrieve(store.id) == store
    proxy.lose(side, b"memory_store_update")
    assert stores.update(store.id, name="m").name == "m"
    proxy.lose(side, b"memory_store_archive")
    assert stores.archive(store.id).archived_at
    proxy.lose(side, b"memory_store_delete")
    stores.delete(store.id)
    assert proxy.cuts == 4


@pytest.mark.parametrize("side", ["request", "reply"])
@pytest.mark.parametrize("statement", [b"lock_stores", b"session_create", b"COMMIT"])
def test_a_session_is_made_once(
    proxied: Database, proxy: LossyProxy, store: MemoryStore, side: Side, statement: bytes
) -> None:
    proxied.sessions.create()
    proxy.lose(side, statement)
    session = proxied.sessions.create([AttachmentParams(store.id)], title="once")
    assert proxy.cuts == 1
    assert proxied.sessions.list(memory_store_id=store.id).data == [session]
    assert proxied.unsettled() == []


@pytest.mark.parametrize("side", ["request", "reply"])
def test_sessions_are_changed_archived_and_deleted_once(proxied: Database, proxy: LossyProxy, side: Side) -> None:
    sessions = proxied.sessions
    session = sessions.create()
    proxy.lose(side, b"session_update")
    assert sessions.update(session.id, title="t").title == "t"
    proxy.lose(side, b"session_archive")
    archived = sessions.archive(session.id)
    assert (archived.archived_at is not None, sessions.retrieve(session.id)) == (True, archived)
    proxy.lose(side, b"session_delete")
    sessions.delete(session.id)
    assert proxy.cuts == 3
    with pytest.raises(SessionNotFoundError):
        sessions.retrieve(session.id)


def test_a_refusal_after_a_lost_connection_is_the_true_one(
    proxied: Database, proxy: LossyProxy, store: MemoryStore, warm: Memory
) -> None:
    proxy.lose("reply", b"memory_create")
    with pytest.raises(PathConflictError):
        proxied.memories.create(store.id, path="/a.md", content="other", actor=ANN)


def test_a_reading_whose_connection_is_lost_is_read_again(
    proxied: Database, proxy: LossyProxy, store: MemoryStore, warm: Memory
) -> None:
    proxied.memories.at_path(store.id, "/a.md")
    proxy.lose("reply", b"memory_at")
    assert proxied.memories.at_path(store.id, "/a.md").content == "one"
    assert proxy.cuts == 1


@pytest.mark.parametrize("end", [("request", False), ("reply", True)], ids=["request", "reply"])
def test_an_unknown_outcome_is_settled_at_the_next_contact(
    proxied: Database, proxy: LossyProxy, store: MemoryStore, warm: Memory, end: tuple[Side, bool]
) -> None:
    side, saved = end
    proxy.lose(side, b"memory_update", then_refuse=True)
    with pytest.raises(DatabaseUnavailableError) as lost:
        proxied.memories.update(warm.id, memory_store_id=store.id, content="two", actor=ANN)
    assert lost.value.saved is None
    assert lost.value.memory_store_id == store.id
    unsettled = Unsettled(store.id, lost.value.version_id)
    assert proxied.unsettled() == [unsettled]
    with pytest.raises(DatabaseUnavailableError):
        proxied.settle()
    assert proxied.unsettled() == [unsettled]
    proxy.refuses = False
    assert proxied.settle() == [Settled(store.id, lost.value.version_id, saved)]
    assert (proxied.settle(), proxied.unsettled()) == ([], [])
    assert proxied.memories.at_path(store.id, "/a.md").content == ("two" if saved else "one")


@pytest.mark.parametrize("end", [("request", False), ("reply", True)], ids=["request", "reply"])
def test_an_unknown_batch_is_settled_even_where_its_first_change_was_none(
    proxied: Database, proxy: LossyProxy, store: MemoryStore, warm: Memory, end: tuple[Side, bool]
) -> None:
    side, saved = end
    proxy.lose(side, b"COMMIT", then_refuse=True)
    with pytest.raises(DatabaseUnavailableError) as lost:
        proxied.memories.apply(store.id, [Change("/a.md", "one"), Change("/new.md", "text")], actor=ANN)
    proxy.refuses = False
    assert proxied.settle() == [Settled(store.id, lost.value.version_id, saved)]


@pytest.mark.parametrize("side", ["request", "reply"])
def test_a_change_that_was_saved_is_told_even_where_its_content_could_not_be_read(
    proxied: Database, proxy: LossyProxy, store: MemoryStore, warm: Memory, side: Side
) -> None:
    """`view="full"` of a rename reads the content after the change, which is saved by then."""
    before = head_seq(proxied, store)
    proxy.lose(side, b"version_content")
    renamed = proxied.memories.update(warm.id, memory_store_id=store.id, path="/b.md", view="full", actor=ANN)
    assert (renamed.path, renamed.content, proxy.cuts) == ("/b.md", "one", 1)
    assert head_seq(proxied, store) == before + 1
    proxy.lose(side, b"version_content", then_refuse=True)
    with pytest.raises(DatabaseUnavailableError) as lost:
        proxied.memories.update(warm.id, memory_store_id=store.id, path="/c.md", view="full", actor=ANN)
    proxy.refuses = False
    assert lost.value.saved is None
    assert proxied.settle() == [Settled(store.id, lost.value.version_id, saved=True)]


def test_a_change_that_was_never_sent_is_not_saved(
    proxied: Database, proxy: LossyProxy, store: MemoryStore, warm: Memory
) -> None:
    proxied.close()
    proxy.refuses = True
    for change in (
        lambda: proxied.memories.write(store.id, "/new.md", "", actor=ANN),
        lambda: proxied.memories.delete(warm.id, memory_store_id=store.id, actor=ANN),
        lambda: proxied.memory_stores.create(name="n"),
    ):
        with pytest.raises(DatabaseUnavailableError) as unsent:
            change()
        assert unsent.value.saved is False
    with pytest.raises(DatabaseUnavailableError):
        proxied.memories.at_path(store.id, "/a.md")
    assert proxied.unsettled() == []
    proxy.refuses = False
    assert proxied.memories.at_path(store.id, "/a.md").content == "one"


def _kill_pooled(server: PostgresServer, name: str) -> int:
    with server.connect() as admin:
        killed = admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()",
            [name],
        ).fetchall()
    return len(killed)


def test_fault_24_dead_connections_are_replaced(fresh_database: Database, server: PostgresServer) -> None:
    store = fresh_database.memory_stores.create(name="Notes")

    def list_all(_: int) -> object:
        return fresh_database.memories.list(store.id)

    def write(number: int) -> object:
        return fresh_database.memories.write(store.id, f"/{number}", "", actor=ANN)

    with ThreadPoolExecutor(4) as threads:
        for call in (list_all, write):
            list(threads.map(list_all, range(20)))
            assert _kill_pooled(server, fresh_database.status().database)
            list(threads.map(call, range(8)))
    after = fresh_database.memory_stores.retrieve(store.id)
    assert (after.head_seq, after.memory_count) == (8, 8)


def test_a_backend_killed_in_mid_call_is_replaced_and_the_call_runs_once(
    fresh_database: Database, server: PostgresServer
) -> None:
    store = fresh_database.memory_stores.create(name="Notes")
    name = fresh_database.status().database
    with server.connect(name) as holder, ThreadPoolExecutor(1) as threads:
        with holder.transaction():
            holder.execute("SELECT memkernel.lock_store(%s, true)", [store.id])
            write = threads.submit(fresh_database.memories.write, store.id, "/a.md", "text", actor=ANN)
            _wait_for_lock(server, name)
            with server.connect() as admin:
                admin.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s "
                    "AND wait_event_type = 'Lock'",
                    [name],
                )
            _wait_for_lock(server, name)  # the second connection asks what became of the change
        memory = write.result(30)
    assert fresh_database.memories.at_path(store.id, "/a.md").memory_version_id == memory.memory_version_id
    assert fresh_database.memory_stores.retrieve(store.id).head_seq == 1


def _wait_for_lock(server: PostgresServer, name: str) -> None:
    deadline = time.monotonic() + 30
    with server.connect() as admin:
        while not admin.execute(
            "SELECT FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock'", [name]
        ).fetchall():
            assert time.monotonic() < deadline, "nobody waits for the lock"
            time.sleep(0.01)


# -- a server that goes and comes back -------------------------------------------------------------


@pytest.fixture
def own_server(server: PostgresServer) -> Iterator[PostgresServer]:
    """A server of the test's own, with the settings that people have."""
    own = PostgresServer(server.version, DURABLE)
    yield own
    own.remove()


def test_a_stopped_server_is_asked_for_again(own_server: PostgresServer) -> None:
    dsn = own_server.dsn(own_server.create_migrated_database())
    asked = 0

    def ask() -> str:
        nonlocal asked
        asked += 1
        if not own_server.is_running:
            own_server.start()
        return dsn

    with Database(ask) as database:
        store = database.memory_stores.create(name="Notes")
        database.memories.write(store.id, "/a.md", "one", actor=ANN)
        assert asked == 1
        own_server.stop()
        assert database.memories.at_path(store.id, "/a.md").content == "one"
        own_server.stop(signal.SIGQUIT)
        database.memories.write(store.id, "/a.md", "two", actor=ANN)
        assert database.memories.at_path(store.id, "/a.md").content == "two"
        assert database.memory_stores.retrieve(store.id).head_seq == 2


def test_a_crash_among_writers_loses_nothing_that_was_acknowledged(own_server: PostgresServer) -> None:
    dsn = own_server.dsn(own_server.create_migrated_database())
    with Database(dsn, reconnect_s=0.2) as database, ThreadPoolExecutor(4) as threads:
        store = database.memory_stores.create(name="Notes")
        stopping = threading.Event()
        acknowledged: list[Memory] = []
        unknown: list[str] = []

        def write(writer: int) -> None:
            number = 0
            while not stopping.is_set():
                number += 1
                try:
                    acknowledged.append(
                        database.memories.create(store.id, path=f"/{writer}/{number}", content="text", actor=ANN)
                    )
                except DatabaseUnavailableError as lost:
                    if lost.saved is None:
                        unknown.append(lost.version_id)

        writers: list[Future[None]] = [threads.submit(write, writer) for writer in range(4)]
        time.sleep(0.3)
        own_server.stop(signal.SIGQUIT)
        time.sleep(0.5)
        own_server.start()
        time.sleep(0.3)
        stopping.set()
        for writer in writers:
            writer.result(60)
        settled = database.settle()
        assert sorted(one.version_id for one in settled) == sorted(unknown)
        saved = {one.version_id for one in settled if one.saved}
        versions = {row[0] for _, rows in database.dump({"memory_versions": ["id"]}) for row in rows}
        assert versions == saved | {memory.memory_version_id for memory in acknowledged}
        assert database.memory_stores.retrieve(store.id).head_seq == len(versions) > 0


@pytest.mark.parametrize("side", ["request", "reply"])
def test_a_run_whose_connection_is_lost_has_each_of_its_events_once(
    proxied: Database, proxy: LossyProxy, side: Side
) -> None:
    runs, run_id, session_id, here = proxied.runs, ids.mint("run"), ids.mint("sesn"), this_process()

    def append(n: int, status: RunStatus = "running") -> bool:
        event = RunEvent(n, "text_delta", {"text": str(n)}, datetime(2026, 11, 30, tzinfo=UTC))
        return runs.append(
            run_id, [event], session_id=session_id, process=here, turns=n, usage=Usage(), cost_usd=None, status=status
        )

    proxy.lose(side, b"run_begin")
    run = runs.begin(run_id, session_id=session_id, kind="live", model="m", prompt="Tidy", process=here)
    append(1)  # its statement is prepared
    proxy.lose(side, b"run_append")
    append(2)
    proxy.lose(side, b"run_ask_stop")
    assert runs.ask_stop(run_id).id == run.id
    proxy.lose(side, b"run_append")
    assert append(3, "stopped")
    proxy.lose(side, b"run_take_over")
    assert runs.take_over(run_id, here).status == "stopped"
    assert [event.n for event in runs.events(run_id)] == [1, 2, 3]
    proxy.lose(side, b"run_delete")
    runs.delete(run_id)
    assert proxy.cuts == 6
    with pytest.raises(RunNotFoundError):
        runs.retrieve(run_id)


def test_what_a_run_could_not_write_is_written_when_the_server_is_back(proxied: Database, proxy: LossyProxy) -> None:
    runs, run_id, session_id, here = proxied.runs, ids.mint("run"), ids.mint("sesn"), this_process()
    runs.begin(run_id, session_id=session_id, kind="live", model="m", prompt="Tidy", process=here)
    event = RunEvent(1, "text_delta", {"text": "one"}, datetime(2026, 11, 30, tzinfo=UTC))

    def append() -> bool:
        return runs.append(run_id, [event], session_id=session_id, process=here, turns=1, usage=Usage(), cost_usd=None)

    append()
    proxy.lose("reply", b"run_append", then_refuse=True)
    with pytest.raises(DatabaseUnavailableError):
        append()
    proxy.refuses = False
    append()
    assert runs.events(run_id) == [event]
