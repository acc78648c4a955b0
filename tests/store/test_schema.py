"""The schema: migrations, versions of it, immutability; POSTGRES.md section 6, fault 20."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from memkernel import ids
from memkernel.errors import DatabaseError, SchemaTooNewError, SchemaTooOldError, ServerTooOldError
from memkernel.models import Cause, Memory, MemoryStore
from memkernel.store import Database, migrate
from memkernel.store.run_processes import this_process
from tests.fix_postgres import PostgresServer
from tests.store.people import ANN

NEXT = migrate.Migration(len(migrate.migrations()) + 1, "next", "CREATE TABLE memkernel.next ()", "hash of next")


@pytest.fixture
def admin(dsn: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """The owner's own connection to a fresh migrated database."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def open_database(dsn: str, *, migrate: bool = False) -> None:
    """Connect, and see to the schema."""
    with Database(dsn, migrate=migrate) as database:
        database.open()


def version_of(dsn: str) -> int:
    with psycopg.connect(dsn, autocommit=True) as connection:
        return migrate.schema_version(connection)


def shape(dsn: str) -> list[tuple[object, ...]]:
    """All that the schema consists of."""
    with psycopg.connect(dsn) as connection:
        return connection.execute(
            """
            SELECT 'column', table_name, column_name, data_type, is_nullable, collation_name, column_default
            FROM information_schema.columns WHERE table_schema = 'memkernel'
            UNION ALL SELECT 'index', tablename, indexdef, '', '', '', '' FROM pg_indexes WHERE schemaname = 'memkernel'
            UNION ALL SELECT 'function', proname, pg_get_functiondef(oid), '', '', '', ''
            FROM pg_proc WHERE pronamespace = 'memkernel'::regnamespace
            UNION ALL SELECT 'trigger', tgrelid::regclass::text, pg_get_triggerdef(oid), '', '', '', ''
            FROM pg_trigger WHERE NOT tgisinternal
            UNION ALL SELECT 'storage', attrelid::regclass::text, attname, attstorage::text, '', '', ''
            FROM pg_attribute WHERE attrelid = 'memkernel.memory_versions'::regclass AND attnum > 0
            ORDER BY 1, 2, 3
            """
        ).fetchall()


def test_migrations_are_numbered_without_gaps() -> None:
    assert [migration.number for migration in migrate.migrations()] == list(range(1, len(migrate.migrations()) + 1))


def test_a_database_without_a_schema_gets_it(empty_dsn: str) -> None:
    with Database(empty_dsn) as database:
        database.open()
        assert database.status().schema_version == len(migrate.migrations())
        assert database.memory_stores.create(name="Notes").name == "Notes"


def test_the_template_of_the_tests_is_what_a_fresh_database_gets(dsn: str, empty_dsn: str) -> None:
    open_database(empty_dsn)
    assert shape(dsn) == shape(empty_dsn) != []


def test_a_schema_that_is_current_is_left_alone(dsn: str) -> None:
    before = shape(dsn)
    for migrates in (False, True):
        open_database(dsn, migrate=migrates)
    assert shape(dsn) == before


def test_first_connects_at_once_make_one_schema(empty_dsn: str) -> None:
    def connect(_: int) -> str:
        with Database(empty_dsn) as database:
            return database.memory_stores.create(name="Notes").id

    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(connect, range(8)))
    with Database(empty_dsn) as database:
        assert {store.id for store in database.memory_stores.list().data} == set(made)


def test_an_older_schema_is_refused_until_it_is_migrated(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = migrate.migrations()
    monkeypatch.setattr(migrate, "migrations", lambda: (*known, NEXT))
    with pytest.raises(SchemaTooOldError) as old:
        open_database(dsn)
    assert (old.value.found, old.value.needed) == (len(known), NEXT.number)
    assert "memkernel migrate" in old.value.hint
    assert "updates memkernel, too" in old.value.hint  # an older one is refused: the next test
    with Database(dsn, migrate=True) as database:
        assert database.status().schema_version == NEXT.number
    open_database(dsn)


def test_a_schema_of_before_the_runs_is_brought_forward_with_all_that_is_in_it(
    empty_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, cause = migrate.migrations(), Cause(ids.mint("run"), "toolu_1")
    with monkeypatch.context() as patched, Database(empty_dsn) as old:
        patched.setattr(migrate, "migrations", lambda: known[:14])
        store = old.in_workspace("mine").memory_stores.create(name="Notes")
        made = old.memories.write(store.id, "/a.md", "one", actor=ANN, cause=cause)
    with Database(empty_dsn, migrate=True) as database:
        mine = database.in_workspace("mine")  # its role is given what is new
        begun = mine.runs.begin(
            cause.run_id, session_id=ids.mint("sesn"), kind="live", model="m", prompt="Tidy", process=this_process()
        )
        assert mine.runs.list().data == [begun]
        assert mine.memory_versions.cause(store.id, made.memory_version_id) == cause
        mine.memories.write(store.id, "/a.md", "two", actor=ANN, cause=cause)
        assert len(mine.memory_versions.changes_by_call(store.id, cause.run_id)["toolu_1"]) == 2
        assert mine.verify(store.id).problems == ()


def test_a_newer_schema_is_refused_and_left_alone(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = migrate.migrations()
    monkeypatch.setattr(migrate, "migrations", lambda: known[:-1])
    for migrates in (False, True):
        with pytest.raises(SchemaTooNewError) as new:
            open_database(dsn, migrate=migrates)
        assert (new.value.found, new.value.known) == (len(known), len(known) - 1)
    assert version_of(dsn) == len(known)


def test_a_migration_of_another_content_is_refused(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = migrate.migrations()
    monkeypatch.setattr(migrate, "migrations", lambda: (replace(known[0], hash="another"), *known[1:]))
    with pytest.raises(DatabaseError, match="0001"):
        open_database(dsn, migrate=True)


def test_fault_20_a_migration_that_fails_leaves_nothing(empty_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = migrate.migrations()
    broken = replace(NEXT, sql="CREATE TABLE memkernel.half (); SELECT 1 / 0")
    with monkeypatch.context() as patched:
        patched.setattr(migrate, "migrations", lambda: (*known, broken))
        with pytest.raises(DatabaseError):
            open_database(empty_dsn)
    assert version_of(empty_dsn) == 0
    open_database(empty_dsn)
    assert version_of(empty_dsn) == len(known)


SLOW_CREATION = """
import dataclasses, sys
from memkernel.store import Database, migrate
known = migrate.migrations()
slow = dataclasses.replace(known[-1], sql=known[-1].sql + "; SELECT pg_sleep(600)")
migrate.migrations = lambda: (*known[:-1], slow)
Database(sys.argv[1]).open()
"""


def test_fault_20_a_creation_that_is_killed_half_way_can_be_run_again(empty_dsn: str, server: PostgresServer) -> None:
    creating = subprocess.Popen([sys.executable, "-c", SLOW_CREATION, empty_dsn])
    with server.connect() as admin:
        deadline = time.monotonic() + 60
        while not admin.execute(
            "SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = %s",
            [conninfo_to_dict(empty_dsn)["dbname"]],
        ).fetchall():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        creating.kill()
        creating.wait()
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = %s",
            [conninfo_to_dict(empty_dsn)["dbname"]],
        )
    open_database(empty_dsn)
    assert version_of(empty_dsn) == len(migrate.migrations())


def test_fault_20_a_connection_within_a_transaction_is_refused_before_anything_is_touched(empty_dsn: str) -> None:
    with psycopg.connect(empty_dsn) as connection:
        with pytest.raises(DatabaseError, match="autocommit"):
            migrate.prepare_schema(connection, migrate=True)
        connection.rollback()
    assert version_of(empty_dsn) == 0


def test_a_server_before_15_is_refused(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psycopg.ConnectionInfo, "server_version", 140011)
    with pytest.raises(ServerTooOldError):
        open_database(dsn)


def test_a_database_that_is_not_in_utf8_is_refused(server: PostgresServer) -> None:
    with server.connect() as admin:
        admin.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    try:
        with pytest.raises(DatabaseError, match="LATIN1"):
            open_database(server.dsn("latin"))
        assert version_of(server.dsn("latin")) == 0
    finally:
        server.drop_database("latin")


def test_a_role_that_may_not_create_says_so(empty_dsn: str, server: PostgresServer) -> None:
    with server.connect() as admin:
        admin.execute("DROP ROLE IF EXISTS guest")
        admin.execute("CREATE ROLE guest LOGIN")
    with pytest.raises(DatabaseError, match="permission denied"):
        open_database(empty_dsn.replace("postgres@", "guest@"))


def test_every_name_in_the_functions_is_qualified(dsn: str) -> None:
    """They run under any search_path; test_connections runs them under a hostile one."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SET search_path TO pg_catalog")
        with connection.transaction():
            store = connection.execute(
                "SELECT id FROM memkernel.memory_store_create('default', 'memstore_1', 'n', '', '{}', true)"
            ).fetchone()
            assert store == ("memstore_1",)


# -- what the triggers hold fast -----------------------------------------------------------------


@pytest.fixture
def told(admin: psycopg.Connection[tuple[object, ...]], dsn: str) -> Iterator[MemoryStore]:
    """A store with a history, in the database of `admin`."""
    with Database(dsn) as database:
        store = database.memory_stores.create(name="Notes")
        for text in ("one", "two"):
            database.memories.write(store.id, "/a.md", text, actor=ANN)
        yield store


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE memkernel.memory_versions SET content = 'forged'",
        "UPDATE memkernel.memory_versions SET created_by_id = 'somebody else'",
        "UPDATE memkernel.memory_versions SET seq = seq + 100",
        "UPDATE memkernel.memory_versions SET path = NULL, content = NULL, content_sha256 = NULL, "
        "content_size_bytes = NULL",
        "UPDATE memkernel.memory_versions SET path = NULL, content = NULL, content_sha256 = NULL, "
        "content_size_bytes = NULL, redacted_at = now(), redacted_by_type = 'user_actor', redacted_by_id = 'x', "
        "operation = 'deleted'",
        "UPDATE memkernel.memory_versions SET redacted_at = now(), redacted_by_type = 'user_actor', "
        "redacted_by_id = 'x'",
        "DELETE FROM memkernel.memory_versions",
        "DELETE FROM memkernel.memory_versions WHERE seq = 1",
        "TRUNCATE memkernel.memory_versions",
    ],
)
def test_versions_are_not_changed_by_hand(
    admin: psycopg.Connection[tuple[object, ...]], told: MemoryStore, statement: str
) -> None:
    with pytest.raises(psycopg.Error, match="immutable"):
        admin.execute(statement.encode())
    contents = admin.execute("SELECT content FROM memkernel.memory_versions ORDER BY seq").fetchall()
    assert contents == [(b"one",), (b"two",)]


def test_a_redaction_is_not_taken_back(
    admin: psycopg.Connection[tuple[object, ...]], told: MemoryStore, dsn: str
) -> None:
    with Database(dsn) as database:
        first = database.memory_versions.list(told.id).data[-1]
        database.memory_versions.redact(first.id, memory_store_id=told.id, actor=ANN)
    with pytest.raises(psycopg.Error, match="immutable"):
        admin.execute("UPDATE memkernel.memory_versions SET redacted_at = now() WHERE seq = 1")


def test_the_deletion_of_a_store_takes_its_rows_and_no_others(
    admin: psycopg.Connection[tuple[object, ...]], told: MemoryStore, dsn: str
) -> None:
    with Database(dsn) as database:
        other = database.memory_stores.create(name="Other")
        database.memories.write(other.id, "/b.md", "kept", actor=ANN)
    admin.execute("DELETE FROM memkernel.memory_stores WHERE id = %s", [told.id])
    for table in ("memories", "memory_versions"):
        left = admin.execute(f"SELECT DISTINCT memory_store_id FROM memkernel.{table}".encode()).fetchall()
        assert left == [(other.id,)]
    with pytest.raises(psycopg.Error, match="immutable"):
        admin.execute("DELETE FROM memkernel.memory_versions")


KEYS: dict[object, tuple[str]] = {
    "memory_stores": ("id",),
    "sessions": ("id",),
    "session_resources": ("session_id",),
    "api_keys": ("id",),
    "runs": ("session_id",),
    "run_events": ("session_id",),
}


def test_every_row_carries_a_workspace_and_every_key_begins_with_its_store_or_session(
    admin: psycopg.Connection[tuple[object, ...]],
) -> None:
    tables = admin.execute(
        "SELECT relname, oid FROM pg_class WHERE relnamespace = 'memkernel'::regnamespace AND relkind = 'r' "
        "AND relname NOT IN ('schema_migrations', 'page_key')"
    ).fetchall()
    for table, oid in tables:
        columns = admin.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s AND attnum > 0 ORDER BY attnum", [oid]
        ).fetchall()
        assert ("workspace_id",) in columns, table
        key = admin.execute(
            "SELECT a.attname FROM pg_index i JOIN pg_attribute a "
            "ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] WHERE i.indrelid = %s AND i.indisprimary",
            [oid],
        ).fetchone()
        assert key == KEYS.get(table, ("memory_store_id",))


def test_times_follow_the_store_even_if_the_clock_goes_back(
    admin: psycopg.Connection[tuple[object, ...]], told: MemoryStore, dsn: str
) -> None:
    admin.execute("UPDATE memkernel.memory_stores SET head_at = now() + interval '1 hour'")
    with Database(dsn) as database:
        memory: Memory = database.memories.write(told.id, "/a.md", "three", actor=ANN)
        later = database.memories.write(told.id, "/b.md", "four", actor=ANN)
        assert memory.updated_at <= later.updated_at
        versions = database.memory_versions.list(told.id).data
        assert [version.seq for version in versions] == [4, 3, 2, 1]
        assert sorted(versions, key=lambda version: version.created_at) == versions[::-1] or (
            versions[0].created_at == versions[1].created_at
        )
