"""Workspaces: PostgreSQL keeps the API to the rows of one, whatever a query asks for (DESIGN section 4)."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, cast

import psycopg
import pytest

from memkernel import ids
from memkernel.errors import (
    DatabaseError,
    InvalidInputError,
    MemkernelError,
    RunNotFoundError,
    SessionNotFoundError,
    StoreNotFoundError,
)
from memkernel.models import AttachmentParams, Change, Memory, MemoryStore, RunEvent, Usage
from memkernel.store import Database, queries, timeline_queries, workspaces
from memkernel.store.connections import StoreConnection
from memkernel.store.run_processes import this_process
from memkernel.store.statements import Parameter, Statement
from memkernel.store.workspaces import CONNECTIONS
from tests.fix_postgres import PostgresServer
from tests.store.interrupts import interrupted_at
from tests.store.people import ANN, CAUSE, KEY

GUARDED = (
    *("memory_stores", "memories", "memory_versions", "run_changes"),
    *("sessions", "session_resources", "mount_baselines", "mount_entries"),
    *("runs", "run_events"),
)

NOTHING: Mapping[str, list[str]] = {table: [] for table in GUARDED}

SESSION = ids.mint("sesn")


def run_of(database: Database, stores: Sequence[str] = ()) -> str:
    """A run of this process, with one event."""
    run_id = ids.mint("run")
    database.runs.begin(
        run_id,
        session_id=SESSION,
        kind="live",
        model="claude-sonnet-5-5",
        prompt="Tidy",
        memory_store_ids=stores,
        process=this_process(),
    )
    append_to(database, run_id, 1)
    return run_id


def append_to(database: Database, run_id: str, n: int) -> bool:
    """Another event of a run."""
    event = RunEvent(n, "text_delta", {"text": "Done."}, datetime.now(UTC))
    return database.runs.append(
        run_id, [event], session_id=SESSION, process=this_process(), turns=1, usage=Usage(), cost_usd=None
    )


class Two:
    """A database with the same things in two workspaces: `mine` and `theirs` are the API's views of them."""

    def __init__(self, database: Database) -> None:
        self.owner = database
        self.mine, self.theirs = database.in_workspace("mine"), database.in_workspace("theirs")
        self.my_store, self.my_memory = self._fill(self.mine)
        self.their_store, self.their_memory = self._fill(self.theirs)
        self.their_session = self.theirs.sessions.create([AttachmentParams(self.their_store.id)]).id
        self.owner.mounts.open(self.their_store.id, self.their_session)
        self.my_run, self.their_run = (database.runs.list().data[0].id for database in (self.mine, self.theirs))
        self.before = self.rows_of("theirs")

    @staticmethod
    def _fill(database: Database) -> tuple[MemoryStore, Memory]:
        store = database.memory_stores.create(name="Notes")
        run_of(database, [store.id])
        database.memories.create(store.id, path="/a.md", content="one", actor=KEY)
        return store, database.memories.write(store.id, "/a.md", "two", actor=KEY, cause=CAUSE)

    def rows_of(self, workspace_id: str) -> dict[str, list[str]]:
        """Every row of a workspace, as the owner sees it."""
        with self.owner._pool.connection() as connection:  # pyright: ignore[reportPrivateUsage]  # past the records
            return {
                table: [
                    str(row)
                    for row in connection.execute(
                        f"SELECT t::text FROM memkernel.{table} t WHERE workspace_id = %s ORDER BY 1".encode(),
                        [workspace_id],
                    )
                ]
                for table in GUARDED
            }


@pytest.fixture
def two(fresh_database: Database) -> Two:
    """The same things in two workspaces of a database of the test's own."""
    return Two(fresh_database)


@pytest.fixture(scope="session")
def kept(server: PostgresServer) -> Iterator[Two]:
    """The same, for tests that see to it that theirs stays as it is."""
    name = server.create_migrated_database()
    with Database(server.dsn(name)) as database:
        yield Two(database)
    server.drop_database(name)


def run_in(database: Database, work: Callable[[StoreConnection], Any]) -> Any:
    """Run something on a connection of the view."""
    with database._contact.pool.connection() as connection:  # pyright: ignore[reportPrivateUsage]  # a faulty query
        return work(connection)


def execute_in(database: Database, statement: str, *values: object) -> psycopg.Cursor[Any]:
    """Run a faulty query on a connection of the view."""
    return run_in(database, lambda connection: connection.execute(statement.encode(), values))


# -- what there is of the same name, in each -------------------------------------------------------


def test_names_slugs_and_listings_are_of_one_workspace(two: Two) -> None:
    for database, store in ((two.mine, two.my_store), (two.theirs, two.their_store)):
        assert [each.id for each in database.memory_stores.list().data] == [store.id]
        for ref in ("Notes", "notes", store.id):
            assert database.memory_stores.find(ref).id == store.id
            assert database.memory_stores.get_or_create(ref).id == store.id
    assert two.owner.memory_stores.list().data == []
    with pytest.raises(StoreNotFoundError) as absent:
        two.owner.memory_stores.find("note")
    assert "Notes" not in str(absent.value.hint)
    assert two.owner.memory_stores.create(name="Notes", unique=True).name == "Notes"
    assert [each.id for each in two.theirs.sessions.list().data] == [two.their_session]
    assert two.mine.sessions.list().data == two.owner.sessions.list().data == []
    assert two.mine.status().memory_stores == two.owner.status().memory_stores == 1


def test_an_owner_of_a_workspace_lists_and_makes_what_is_of_it(two: Two, dsn: str) -> None:
    with Database(dsn, workspace_id="mine") as database:
        assert database.workspace_id == "mine"
        assert database.memory_stores.find("Notes").id == two.my_store.id
        made = database.memory_stores.create(name="More")
        database.sessions.create([AttachmentParams(made.id)])
        with pytest.raises(InvalidInputError, match="there is no memory store"):
            database.sessions.create([AttachmentParams(two.their_store.id)])
        tables = {"memory_stores": ["id"], "memories": ["id"], "memory_versions": ["id"], "run_changes": ["seq"]}
        assert {table: len([*rows]) for table, rows in database.dump(tables)} == {
            "memory_stores": 2, "memories": 1, "memory_versions": 2, "run_changes": 1,
        }  # fmt: skip
        assert len(database.sessions.list().data) == 1
    assert {store.id for store in two.mine.memory_stores.list().data} == {two.my_store.id, made.id}
    assert [len(list(rows)) for _, rows in two.mine.dump({"memory_stores": ["id"]})] == [2]


@pytest.mark.parametrize("workspace", ["", "a" * 65, "a/b", "é", "a\n", "a b", None, 7])
def test_a_workspace_id_that_is_none_is_refused(database: Database, shared_dsn: str, workspace: Any) -> None:
    with pytest.raises(InvalidInputError, match="workspace id"):
        database.in_workspace(workspace)
    with pytest.raises(InvalidInputError, match="workspace id"):
        Database(shared_dsn, workspace_id=workspace)


def test_a_view_is_made_once_and_is_the_same_from_every_view(kept: Two) -> None:
    assert kept.mine.verify(kept.my_store.id).versions == 2
    assert kept.mine.verify(kept.my_store.id).problems == ()
    assert kept.owner.in_workspace("mine") is kept.mine is kept.theirs.in_workspace("mine")
    assert kept.mine.workspace_id == "mine"
    assert kept.mine.page_key() == kept.owner.page_key()
    assert len(kept.owner.page_key()) == 32


def test_the_page_key_is_the_same_for_every_server_on_a_database_and_another_on_another(
    dsn: str, empty_dsn: str
) -> None:
    with Database(dsn) as one, Database(dsn) as same, Database(empty_dsn) as other:
        assert one.page_key() == same.page_key() != other.page_key()


# -- faulty queries --------------------------------------------------------------------------------


@pytest.mark.parametrize("table", GUARDED)
def test_a_query_without_a_filter_sees_one_workspace(kept: Two, table: str) -> None:
    seen = [str(row) for row in execute_in(kept.theirs, f"SELECT t::text FROM memkernel.{table} t ORDER BY 1")]
    assert seen == kept.before[table]
    assert (seen != []) is (table != "mount_entries")
    assert execute_in(kept.mine, f"SELECT FROM memkernel.{table} WHERE workspace_id = 'theirs'").fetchall() == []


def test_a_change_without_a_filter_changes_nothing_of_another_workspace(two: Two) -> None:
    store = two.their_store.id
    for statement in (
        "UPDATE memkernel.memory_stores SET name = 'broken'",
        f"UPDATE memkernel.memory_stores SET name = 'broken' WHERE id = '{store}'",
        "UPDATE memkernel.memories SET path = '/broken' WHERE workspace_id = 'theirs'",
        "UPDATE memkernel.sessions SET title = 'broken'",
        "DELETE FROM memkernel.run_changes",
        "DELETE FROM memkernel.memories",
        f"DELETE FROM memkernel.memory_stores WHERE id = '{store}'",
        "DELETE FROM memkernel.memory_stores",
        "DELETE FROM memkernel.memory_versions",
        "DELETE FROM memkernel.session_resources",
        "DELETE FROM memkernel.mount_baselines",
        "DELETE FROM memkernel.mount_entries",
        "DELETE FROM memkernel.sessions",
        "UPDATE memkernel.runs SET status = 'broken'",
        "DELETE FROM memkernel.run_events",
        "DELETE FROM memkernel.runs",
    ):
        execute_in(two.mine, statement)
        assert two.rows_of("theirs") == two.before, statement
    assert two.rows_of("mine") == NOTHING


@pytest.mark.parametrize("table", GUARDED)
def test_a_row_of_another_workspace_is_not_inserted_and_none_is_moved_there(two: Two, table: str) -> None:
    two.owner.mounts.open(two.my_store.id, two.mine.sessions.create([AttachmentParams(two.my_store.id)]).id)
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        execute_in(two.mine, f"INSERT INTO memkernel.{table} (workspace_id) VALUES ('theirs')")
    if two.rows_of("mine")[table]:
        with pytest.raises(psycopg.Error, match=r"row-level security|immutable"):
            execute_in(two.mine, f"UPDATE memkernel.{table} SET workspace_id = 'theirs'")
    assert two.rows_of("theirs") == two.before


def test_a_store_is_not_made_in_another_workspace(kept: Two) -> None:
    make = "SELECT memkernel.memory_store_create('theirs', 'memstore_01', 'Sneaky', '', '{}', false)"
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        execute_in(kept.mine, make)


def test_what_the_api_does_not_need_is_closed_to_it(kept: Two) -> None:
    for statement in (
        "SELECT FROM memkernel.api_keys",
        "DELETE FROM memkernel.api_keys",
        "SELECT FROM memkernel.page_key",
        "INSERT INTO memkernel.schema_migrations VALUES (99, '', '')",
        "TRUNCATE memkernel.mount_entries",
        "CREATE TABLE memkernel.more ()",
        "ALTER TABLE memkernel.memories DISABLE ROW LEVEL SECURITY",
        "DROP POLICY workspace ON memkernel.memories",
        "CREATE TRIGGER more AFTER INSERT ON memkernel.memories EXECUTE FUNCTION memkernel.refuse_change()",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            execute_in(kept.mine, statement)


def test_every_table_with_rows_of_a_workspace_is_guarded_but_not_from_its_owner(kept: Two) -> None:
    with kept.owner._pool.connection() as connection:  # pyright: ignore[reportPrivateUsage]  # past the records
        tables = connection.execute(
            "SELECT relname, relrowsecurity, relforcerowsecurity, "
            "(SELECT array_agg(pg_get_expr(polqual, polrelid) = pg_get_expr(polwithcheck, polrelid)) FROM pg_policy "
            "WHERE polrelid = c.oid AND polcmd = '*') "
            "FROM pg_class c JOIN pg_attribute a ON attrelid = c.oid AND attname = 'workspace_id' "
            "WHERE relnamespace = 'memkernel'::regnamespace AND relkind = 'r' AND relname <> 'api_keys'"
        ).fetchall()
    assert sorted(tables) == [(table, True, False, [True]) for table in sorted(GUARDED)]


# -- ids of another workspace ----------------------------------------------------------------------

Calls = dict[str, Callable[[Two], object]]

ON_STORES: Calls = {
    "retrieve": lambda two: two.mine.memory_stores.retrieve(two.their_store.id),
    "update": lambda two: two.mine.memory_stores.update(two.their_store.id, name="broken"),
    "archive": lambda two: two.mine.memory_stores.archive(two.their_store.id),
    "delete": lambda two: two.mine.memory_stores.delete(two.their_store.id),
    "find": lambda two: two.mine.memory_stores.find(two.their_store.id),
    "get_or_create": lambda two: two.mine.memory_stores.get_or_create(two.their_store.id),
    "create": lambda two: two.mine.memories.create(two.their_store.id, path="/b", content="", actor=KEY),
    "create there": lambda two: two.mine.memories.create(two.their_store.id, path="/a.md", content="", actor=KEY),
    "write": lambda two: two.mine.memories.write(two.their_store.id, "/b", "", actor=KEY),
    "write there": lambda two: two.mine.memories.write(two.their_store.id, "/a.md", "", actor=KEY),
    "update a memory": lambda two: two.mine.memories.update(
        two.their_memory.id, memory_store_id=two.their_store.id, content="broken", actor=KEY
    ),
    "delete a memory": lambda two: two.mine.memories.delete(
        two.their_memory.id, memory_store_id=two.their_store.id, actor=KEY
    ),
    "edit": lambda two: two.mine.memories.edit(two.their_store.id, "/a.md", str.upper, actor=KEY),
    "rename_tree": lambda two: two.mine.memories.rename_tree(two.their_store.id, "/a.md", "/b", actor=KEY),
    "delete_tree": lambda two: two.mine.memories.delete_tree(two.their_store.id, "/", actor=KEY),
    "apply": lambda two: two.mine.memories.apply(two.their_store.id, [Change("/b", "")], actor=KEY),
    "retrieve a memory": lambda two: two.mine.memories.retrieve(
        two.their_memory.id, memory_store_id=two.their_store.id
    ),
    "at_path": lambda two: two.mine.memories.at_path(two.their_store.id, "/a.md"),
    "entries": lambda two: two.mine.memories.entries(two.their_store.id),
    "contents": lambda two: list(two.mine.memories.contents(two.their_store.id)),
    "list": lambda two: two.mine.memories.list(two.their_store.id),
    "list by depth": lambda two: two.mine.memories.list(two.their_store.id, depth=1, view="full"),
    "retrieve a version": lambda two: two.mine.memory_versions.retrieve(
        two.their_memory.memory_version_id, memory_store_id=two.their_store.id
    ),
    "list versions": lambda two: two.mine.memory_versions.list(two.their_store.id),
    "list versions at a path": lambda two: two.mine.memory_versions.list(two.their_store.id, path="/a.md"),
    "at_ordinal": lambda two: two.mine.memory_versions.at_ordinal(two.their_store.id, "/a.md", 1),
    "at_time": lambda two: two.mine.memory_versions.at_time(two.their_store.id, "/a.md", datetime.now(UTC)),
    "before": lambda two: two.mine.memory_versions.before(
        two.their_memory.memory_version_id, memory_store_id=two.their_store.id
    ),
    "list_by_run": lambda two: two.mine.memory_versions.list_by_run(two.their_store.id, CAUSE.run_id),
    "redact": lambda two: two.mine.memory_versions.redact(
        two.their_memory.memory_version_id, memory_store_id=two.their_store.id, actor=KEY
    ),
    "restore": lambda two: two.mine.memory_versions.restore(
        two.their_memory.memory_version_id, memory_store_id=two.their_store.id, actor=KEY
    ),
    "open a mount": lambda two: two.mine.mounts.open(two.their_store.id, two.their_session),
    "verify": lambda two: two.mine.verify(two.their_store.id),
    "is_saved": lambda two: two.mine.runs.is_saved(two.their_store.id, CAUSE.run_id, CAUSE.tool_use_id),
    "changes_by_call": lambda two: two.mine.memory_versions.changes_by_call(two.their_store.id, CAUSE.run_id),
    "cause": lambda two: two.mine.memory_versions.cause(two.their_store.id, two.their_memory.memory_version_id),
}
ON_RUNS: Calls = {
    "retrieve": lambda two: two.mine.runs.retrieve(two.their_run),
    "events": lambda two: two.mine.runs.events(two.their_run),
    "messages": lambda two: two.mine.runs.messages(two.their_run),
    "append": lambda two: append_to(two.mine, two.their_run, 2),
    "ask_stop": lambda two: two.mine.runs.ask_stop(two.their_run),
    "take_over": lambda two: two.mine.runs.take_over(two.their_run, this_process()),
    "delete": lambda two: two.mine.runs.delete(two.their_run),
}
ON_SESSIONS: Calls = {
    "retrieve": lambda two: two.mine.sessions.retrieve(two.their_session),
    "update": lambda two: two.mine.sessions.update(two.their_session, title="broken"),
    "archive": lambda two: two.mine.sessions.archive(two.their_session),
    "delete": lambda two: two.mine.sessions.delete(two.their_session),
    "resources": lambda two: two.mine.sessions.resources(two.their_session),
    "resource": lambda two: two.mine.sessions.resource(two.their_session, two.their_store.id),
}


@pytest.mark.parametrize("call", ON_STORES.values(), ids=ON_STORES)
def test_a_store_of_another_workspace_is_not_there(kept: Two, call: Callable[[Two], object]) -> None:
    with pytest.raises(StoreNotFoundError) as absent:
        call(kept)
    assert kept.their_store.id in str(absent.value)
    assert kept.rows_of("theirs") == kept.before


@pytest.mark.parametrize("call", ON_SESSIONS.values(), ids=ON_SESSIONS)
def test_a_session_of_another_workspace_is_not_there(kept: Two, call: Callable[[Two], object]) -> None:
    with pytest.raises(SessionNotFoundError):
        call(kept)
    assert kept.rows_of("theirs") == kept.before


@pytest.mark.parametrize("call", ON_RUNS.values(), ids=ON_RUNS)
def test_a_run_of_another_workspace_is_not_there(kept: Two, call: Callable[[Two], object]) -> None:
    with pytest.raises(RunNotFoundError) as absent:
        call(kept)
    assert kept.their_run in str(absent.value)
    assert kept.rows_of("theirs") == kept.before
    assert [run.id for run in kept.mine.runs.list().data] == [kept.my_run]
    assert kept.mine.runs.list(memory_store_id=kept.their_store.id).data == []


def test_another_workspace_cannot_be_attached_listed_or_reached_through_a_store_of_ones_own(two: Two) -> None:
    with pytest.raises(InvalidInputError, match="there is no memory store"):
        two.mine.sessions.create([AttachmentParams(two.their_store.id)])
    assert two.mine.sessions.list(memory_store_id=two.their_store.id).data == []
    for reach in (
        lambda: two.mine.memories.retrieve(two.their_memory.id, memory_store_id=two.my_store.id),
        lambda: two.mine.memory_versions.retrieve(two.their_memory.memory_version_id, memory_store_id=two.my_store.id),
        lambda: two.mine.memory_versions.redact(
            two.their_memory.memory_version_id, memory_store_id=two.my_store.id, actor=KEY
        ),
    ):
        with pytest.raises(MemkernelError, match=r"there is no (memory|version)"):
            reach()
    assert two.rows_of("theirs") == two.before


def test_a_deletion_takes_what_is_of_the_store_and_no_more(two: Two) -> None:
    session = two.mine.sessions.create([AttachmentParams(two.my_store.id)])
    two.owner.mounts.open(two.my_store.id, session.id)
    two.mine.sessions.delete(session.id)
    assert two.rows_of("mine")["mount_baselines"] == []
    two.mine.memory_stores.delete(two.my_store.id)
    left = two.rows_of("mine")  # runs outlive their stores
    assert left == {**NOTHING, "runs": left["runs"], "run_events": left["run_events"]}
    assert [len(left[table]) for table in ("runs", "run_events")] == [1, 1]
    assert two.rows_of("theirs") == two.before


# -- whose rows are made ---------------------------------------------------------------------------


def test_rows_that_an_owner_of_another_workspace_makes_are_of_the_workspace_of_their_store(two: Two) -> None:
    owner, store = two.owner, two.their_store.id
    memories = owner.memories
    made = memories.apply(store, [Change(f"/d/{n}", str(n)) for n in range(5)], actor=ANN, cause=CAUSE)
    memories.rename_tree(store, "/d", "/e", actor=ANN, cause=CAUSE)
    memories.delete_tree(store, "/e", actor=ANN, cause=CAUSE)
    memories.edit(store, "/a.md", str.upper, actor=ANN, cause=CAUSE)
    memories.rename_tree(store, "/a.md", "/b.md", actor=ANN, cause=CAUSE)
    memories.delete(two.their_memory.id, memory_store_id=store, actor=ANN, cause=CAUSE)
    owner.memory_versions.restore(made[0].id if made[0] else "", memory_store_id=store, actor=ANN, cause=CAUSE)
    with owner._pool.connection() as connection:  # pyright: ignore[reportPrivateUsage]  # past the records
        strays = [
            table
            for table in GUARDED
            if connection.execute(f"SELECT FROM memkernel.{table} WHERE workspace_id = 'default'".encode()).fetchall()
        ]
    assert strays == []
    rows = two.rows_of("theirs")
    head = owner.memory_stores.retrieve(store).head_seq
    assert len(rows["memory_versions"]) == head
    assert len(rows["run_changes"]) == head - 1  # all but the first


def test_a_batch_is_refused_in_a_workspace_and_nothing_is_written(kept: Two) -> None:
    with pytest.raises(DatabaseError, match="COPY FROM not supported"):
        kept.mine.memories.apply(kept.my_store.id, [Change("/b", "")], actor=KEY)
    assert kept.mine.memory_stores.retrieve(kept.my_store.id).head_seq == 2


# -- the connections -------------------------------------------------------------------------------


def test_the_owner_stays_free(two: Two, server: PostgresServer) -> None:
    for _ in range(CONNECTIONS):
        two.mine.memories.entries(two.my_store.id)
    with two.owner._pool.connection() as connection:  # pyright: ignore[reportPrivateUsage]  # its session is the question
        row = connection.execute(
            "SELECT current_user = session_user, current_setting('memkernel.workspace_id', true), "
            "current_setting('search_path'), count(*) FROM memkernel.memory_stores"
        ).fetchone()
        assert row == (True, None, "pg_catalog", 2)
        connection.execute("LISTEN memkernel")
        connection.execute("NOTIFY memkernel, 'heard'")
        assert [notice.payload for notice in connection.notifies(timeout=5, stop_after=1)] == ["heard"]
        with connection.cursor().copy("COPY memkernel.memories TO STDOUT") as copy:
            assert len(list(copy.rows())) == 2
    assert len(two.owner.memories.apply(two.my_store.id, [Change("/b", "")], actor=ANN)) == 1
    assert execute_in(two.mine, "SELECT current_setting('search_path'), current_user::text").fetchone() == (
        "pg_catalog",
        "memkernel_api",
    )


def test_a_connection_that_changes_its_workspace_takes_nothing_along(two: Two) -> None:
    """Many threads, three workspaces, sixteen connections; and one after the other on a single one."""
    third = two.owner.in_workspace("third")
    expected = {"mine": [two.my_store.id], "theirs": [two.their_store.id], "third": []}
    views = (two.mine, two.theirs, third)

    def look(number: int) -> bool:
        database = views[number % 3]
        return [store.id for store in database.memory_stores.list().data] == expected[database.workspace_id]

    assert all(look(number) for number in range(9))
    with ThreadPoolExecutor(32) as threads:
        assert all(threads.map(look, range(600)))


def test_in_the_steady_state_a_workspace_costs_no_round_trip(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """PERFORMANCE P16."""
    sent: list[bytes] = []
    run = StoreConnection.run

    def counted(self: StoreConnection, statement: Statement, *parameters: Parameter) -> Any:
        sent.append(statement.name or statement.sql)
        return run(self, statement, *parameters)

    monkeypatch.setattr(StoreConnection, "run", counted)
    turns = [(two.mine, two.my_memory), (two.mine, two.my_memory), (two.theirs, two.their_memory)]
    for database, memory in [(two.owner, two.my_memory), *turns]:
        database.memories.retrieve(memory.id, memory_store_id=memory.memory_store_id)
    moves = [statement for statement in sent if b"set_config" in statement]
    assert [statement for statement in sent if b"set_config" not in statement] == [b"memory_get_full"] * 4
    assert len(moves) == 2  # to mine, for theirs was the last one; to theirs


def test_a_connection_that_cannot_be_moved_is_closed(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: StoreConnection, statement: Statement, *parameters: Parameter) -> Any:
        raise KeyboardInterrupt

    two.theirs.memories.entries(two.their_store.id)
    before = run_in(two.theirs, lambda connection: connection.info.backend_pid)
    with monkeypatch.context() as patched:
        patched.setattr(StoreConnection, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            two.mine.memories.entries(two.my_store.id)
    assert two.mine.memories.entries(two.my_store.id) == [("/a.md", 3)]
    assert run_in(two.mine, lambda connection: connection.info.backend_pid) != before


def test_an_interrupt_at_any_step_of_a_move_leaves_no_connection_in_another_workspace(two: Two) -> None:
    def names(database: Database) -> list[str]:
        return [store.id for store in database.memory_stores.list().data]

    is_moved, steps = False, 0
    while not is_moved:
        assert names(two.theirs) == [two.their_store.id]
        with suppress(KeyboardInterrupt), interrupted_at(steps, workspaces, ["_enter"], []):
            is_moved = names(two.mine) == [two.my_store.id]
        assert rows_that_a_faulty_query_sees(two.theirs) == {two.their_store.id}
        steps += 1
    assert steps > 10


def rows_that_a_faulty_query_sees(database: Database) -> set[str]:
    return {row[0] for row in execute_in(database, "SELECT id FROM memkernel.memory_stores")}


def test_a_lost_server_is_met_again_in_the_same_workspace(two: Two, server: PostgresServer) -> None:
    def lose() -> None:
        with server.connect() as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                "WHERE datname = %s AND pid <> pg_backend_pid()",
                [two.owner.status().database],
            )

    lose()
    assert two.mine.memories.entries(two.my_store.id) == [("/a.md", 3)]
    lose()
    assert two.mine.memories.write(two.my_store.id, "/b", "", actor=KEY).path == "/b"
    assert run_in(two.mine, lambda connection: connection.workspace_id) == "mine"
    with pytest.raises(StoreNotFoundError):
        two.mine.memory_stores.retrieve(two.their_store.id)


def test_what_is_unsettled_in_a_workspace_is_known_to_the_owner(two: Two) -> None:
    contact = two.mine._contact  # pyright: ignore[reportPrivateUsage]  # as after a loss of the server
    saved, lost = two.my_memory.memory_version_id, "memver_" + "0" * 26
    for version_id in (saved, lost):
        contact._unknown(two.my_store.id, version_id)  # pyright: ignore[reportPrivateUsage]  # as above
    assert [each.version_id for each in two.owner.unsettled()] == [saved, lost]
    assert [each.saved for each in two.owner.settle()] == [True, False]
    assert two.mine.unsettled() == []


def test_a_closed_database_closes_the_connections_of_the_api(two: Two, server: PostgresServer) -> None:
    name = two.owner.status().database
    two.mine.memories.entries(two.my_store.id)
    two.owner.close()
    with server.connect() as admin:
        while admin.execute("SELECT FROM pg_stat_activity WHERE datname = %s", [name]).fetchall():
            time.sleep(0.01)
    assert two.mine.memories.entries(two.my_store.id) == [("/a.md", 3)]


def test_a_setting_that_would_switch_the_policies_off_is_overruled(dsn: str, server: PostgresServer) -> None:
    with Database(dsn) as database:
        name = database.status().database
    with server.connect() as admin:
        admin.execute(f"ALTER DATABASE {name} SET row_security TO off".encode())
    with Database(dsn) as database:
        assert database.in_workspace("mine").memory_stores.list().data == []


def test_redaction_in_a_workspace_leaves_nothing_of_the_text(two: Two) -> None:
    """The vacuum runs as the owner: nobody else may."""
    text = "a secret that nobody else knows"
    memory = two.mine.memories.write(two.my_store.id, "/s.md", text, actor=KEY)
    two.mine.memories.write(two.my_store.id, "/s.md", "no secret", actor=KEY)
    two.mine.memory_versions.redact(memory.memory_version_id, memory_store_id=two.my_store.id, actor=KEY)
    with two.owner._pool.connection() as connection:  # pyright: ignore[reportPrivateUsage]  # the file is the question
        connection.execute("CHECKPOINT")
        file = connection.execute("SELECT pg_read_binary_file(pg_relation_filepath('memkernel.memory_versions'))")
        (data,) = file.fetchone() or (b"",)
    assert b"no secret" in data
    assert text.encode() not in data


# -- plans -----------------------------------------------------------------------------------------

_MANY = 1_999


def _plan(connection: StoreConnection, statement: Statement, values: Sequence[Parameter]) -> str:
    explained = Statement(b"", b"EXPLAIN (FORMAT JSON, COSTS off) " + statement.sql)
    return cast(bytes, connection.run(explained, *values).get_value(0, 0)).decode()


def _scans(plan: object) -> Iterator[tuple[str, str, str]]:
    """How each table is read: the kind of scan, its index, and what is looked up in it."""
    if isinstance(plan, dict):
        node = cast(dict[str, Any], plan)
        # A policy looks up once a statement who owns the tables.
        if "Scan" in str(node.get("Node Type")) and node.get("Relation Name", "pg_class") != "pg_class":
            looked_up = re.sub(r"(\$|InitPlan )\d+", r"\1n", str(node.get("Index Cond")).replace(' COLLATE "C"', ""))
            # A policy reads workspace_id, which no index holds beside a path.
            yield node["Node Type"].replace("Index Only", "Index"), str(node.get("Index Name")), looked_up
        for child in node.values():
            yield from _scans(child)
    elif isinstance(plan, list):
        for child in cast(list[object], plan):
            yield from _scans(child)


def test_the_policies_leave_every_hot_statement_its_index(two: Two) -> None:
    store, memory = two.my_store.id, two.my_memory
    changes = [Change(f"/d{n % 40}/{n}.md", f"text {n}") for n in range(_MANY)]
    two.owner.memories.apply(store, changes, actor=ANN, cause=CAUSE)
    micros = 10**15
    hot: dict[str, tuple[Statement, Sequence[Parameter]]] = {
        "store": (queries.STORE_GET, [store]),
        "stores": (queries.STORE_LIST, [False, None, None, micros, store, 21, "mine"]),
        "store by name": (queries.STORE_BY_NAME, ["mine", "Notes"]),
        "memory": (queries.MEMORY_GET_FULL, [store, memory.id]),
        "at a path": (queries.MEMORY_AT_FULL, [store, "/a.md"]),
        "entries": (queries.ENTRIES, [store, "/d7"]),
        "contents": (queries.CONTENTS, [store, "/d7", "", b"7", 100]),
        "memories": (queries.LIST_BASIC, [store, "/d1/", "/d10", 21]),
        "memories in full": (queries.LIST_FULL, [store, "/", "0", 21]),
        "memories by depth": (queries.ROLL_UP_FULL, [store, "/", "0", 21, "/"]),
        "version": (queries.VERSION_GET_FULL, [store, memory.memory_version_id]),
        "version before": (queries.VERSION_BEFORE, [store, memory.memory_version_id]),
        "version at an ordinal": (queries.VERSION_AT_ORDINAL, [store, "/a.md", -1]),
        "version at a time": (queries.VERSION_AT_TIME, [store, "/a.md", datetime.now(UTC)]),
        "point": (timeline_queries.POINT, [store, None, datetime.now(UTC)]),
        "as of": (timeline_queries.AS_OF, [store, 9, "/d7"]),
        "compare": (timeline_queries.COMPARE, [store, 9, 1_000]),
        "contents by id": (timeline_queries.CONTENTS_BY_ID, [store, [memory.memory_version_id], None]),
    }
    for name, value in {"memory_id": memory.id, "path": "/a.md", "operation": "created", "api_actor": "x"}.items():
        hot[f"versions by {name}"] = queries.version_list(store, {name: value}, 21, full=True)
    hot["versions since"] = queries.version_list(store, {"since": datetime.now(UTC), "before": 9}, 21, full=False)
    with two.owner._pool.connection() as connection:  # pyright: ignore[reportPrivateUsage]  # its plans are the question
        connection.execute("ANALYZE")
        free = {name: sorted(_scans(json.loads(_plan(connection, *each)))) for name, each in hot.items()}
    kept = run_in(
        two.mine,
        lambda connection: {name: sorted(_scans(json.loads(_plan(connection, *each)))) for name, each in hot.items()},
    )
    for name, scans in kept.items():
        assert scans == free[name], name
        assert scans, name
        assert not [scan for scan in scans if scan[0] == "Seq Scan"], name
