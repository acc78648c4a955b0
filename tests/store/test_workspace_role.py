"""The role memkernel_api: who may make it, what it may do, and what is said where it cannot be made."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from memkernel.errors import DatabaseError, WorkspaceRoleError
from memkernel.models import AttachmentParams, Change
from memkernel.store import Database, migrate
from tests.fix_postgres import PostgresServer
from tests.store.people import ANN, CAUSE, KEY

MakeDatabase = Callable[..., str]


@pytest.fixture(scope="module")
def bare_server(server: PostgresServer) -> Iterator[PostgresServer]:
    """A server of its own: a role belongs to all databases of one."""
    bare = PostgresServer(server.version)
    yield bare
    bare.remove()


@pytest.fixture
def make_database(bare_server: PostgresServer) -> Iterator[MakeDatabase]:
    """Make a database of an owner with these rights; afterwards neither they nor memkernel_api are there."""
    names: list[str] = []
    numbers = itertools.count()

    def make(rights: str = "", owner: str = "") -> str:
        name = owner or f"owner_{next(numbers)}"
        with bare_server.connect() as admin:
            if not owner:
                admin.execute(f'CREATE ROLE "{name}" LOGIN {rights}'.encode())
                names.append(name)
            database = bare_server.create_database()
            databases.append(database)
            admin.execute(f'ALTER DATABASE {database} OWNER TO "{name}"'.encode())
        return bare_server.dsn(database).replace("postgres@", f"{name}@")

    databases: list[str] = []
    yield make
    for database in databases:
        bare_server.drop_database(database)
    with bare_server.connect() as admin:
        for name in ("memkernel_api", *names):
            admin.execute(f'DROP ROLE IF EXISTS "{name}"'.encode())


def is_bound(database: Database) -> bool:
    """Whether a workspace holds what is made in it, and sees nothing of another."""
    here, there = database.in_workspace("here"), database.in_workspace("there")
    made = here.memory_stores.create(name="Notes")
    here.memories.create(made.id, path="/a.md", content="text", actor=KEY, cause=CAUSE)
    here.memory_stores.delete(here.memory_stores.create(name="Gone").id)
    here.sessions.delete(here.sessions.create([AttachmentParams(made.id)]).id)
    seen = [store.id for store in here.memory_stores.list().data]
    return seen == [made.id] and there.memory_stores.list().data == database.memory_stores.list().data == []


def test_who_owns_another_database_of_the_server_sees_nothing_here(
    make_database: MakeDatabase, bare_server: PostgresServer
) -> None:
    """The role belongs to the whole server: an administrator gave it to both owners, as memkernel asks for."""
    here, there = make_database(), make_database()
    users = [conninfo_to_dict(dsn)["user"] for dsn in (here, there)]
    with bare_server.connect() as admin:
        admin.execute("CREATE ROLE memkernel_api NOLOGIN")
        admin.execute(f"GRANT memkernel_api TO {users[0]}, {users[1]}".encode())
    with Database(here) as database, Database(there) as other:
        assert is_bound(database)
        assert is_bound(other)
    visitor = here.replace(f"{users[0]}@", f"{users[1]}@")
    with psycopg.connect(visitor, autocommit=True) as connection:
        for become in ("SET ROLE memkernel_api", "RESET ROLE"):
            connection.execute(become.encode())
            connection.execute("SET memkernel.workspace_id = 'here'")
            for table in ("memory_stores", "memories", "memory_versions"):
                assert connection.execute(f"SELECT FROM memkernel.{table}".encode()).fetchall() == []
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
                connection.execute("SELECT memkernel.memory_store_create('here', 'memstore_x', 'n', '', '{}', false)")


@pytest.mark.parametrize("rights", ["SUPERUSER", "CREATEROLE", "CREATEROLE NOINHERIT"])
def test_who_may_make_the_role_makes_it(make_database: MakeDatabase, rights: str) -> None:
    with Database(make_database(rights)) as database:
        assert is_bound(database)
        assert database.memories.apply(
            database.memory_stores.create(name="Notes").id, [Change("/a", "")], actor=ANN
        )  # the owner is free


def test_the_same_owner_uses_it_in_every_database_of_the_server(make_database: MakeDatabase) -> None:
    for dsn in (make_database("CREATEROLE"), make_database(owner="owner_0")):
        with Database(dsn) as database:
            assert is_bound(database)
        with Database(dsn) as again:
            assert len(again.in_workspace("here").memory_stores.list().data) == 1


def test_who_may_not_make_it_is_told_what_an_administrator_runs(
    make_database: MakeDatabase, bare_server: PostgresServer
) -> None:
    with Database(make_database()) as database:
        with pytest.raises(WorkspaceRoleError) as refused:
            database.in_workspace("here")
        assert str(refused.value) == "owner_0 may not make the role memkernel_api, which keeps workspaces apart"
        assert refused.value.statements == (
            "CREATE ROLE memkernel_api NOLOGIN;",
            'GRANT memkernel_api TO "owner_0";',
        )
        assert all(statement in refused.value.hint for statement in refused.value.statements)
        assert database.memory_stores.list().data == []  # the owner works on
        with bare_server.connect() as admin:
            admin.execute(refused.value.statements[0].encode())
        with pytest.raises(WorkspaceRoleError, match="may not become") as half:
            database.in_workspace("here")
        assert half.value.statements == refused.value.statements[1:]
        with bare_server.connect() as admin:
            admin.execute(half.value.statements[0].encode())
        assert is_bound(database)


def test_an_owner_of_any_name_is_told_statements_that_run(
    make_database: MakeDatabase, bare_server: PostgresServer
) -> None:
    with bare_server.connect() as admin:
        admin.execute('CREATE ROLE "Ann-Marie" LOGIN')
    dsn = make_database(owner="Ann-Marie")
    with Database(dsn) as database:
        with pytest.raises(WorkspaceRoleError) as refused:
            database.in_workspace("here")
        with bare_server.connect() as admin:
            for statement in refused.value.statements:
                admin.execute(statement.encode())
        assert is_bound(database)
    bare_server.drop_database(str(conninfo_to_dict(dsn)["dbname"]))
    with bare_server.connect() as admin:
        admin.execute('DROP ROLE "Ann-Marie"')


def test_a_login_that_becomes_the_owner_becomes_the_role_too(
    make_database: MakeDatabase, bare_server: PostgresServer
) -> None:
    dsn = make_database("CREATEROLE")
    make_database()
    with bare_server.connect() as admin:
        admin.execute("GRANT owner_0 TO owner_1")
    as_login = f"{dsn.replace('owner_0@', 'owner_1@')}&options=-c%20role%3Downer_0"
    with Database(as_login) as database:
        assert database.status().user == "owner_0"
        assert is_bound(database)
        assert database.status().user == "owner_0"


@pytest.mark.parametrize("attribute", ["SUPERUSER", "BYPASSRLS"])
def test_a_role_of_that_name_that_no_policy_binds_is_refused(
    make_database: MakeDatabase, bare_server: PostgresServer, attribute: str
) -> None:
    with bare_server.connect() as admin:
        admin.execute(f"CREATE ROLE memkernel_api {attribute}".encode())
    with Database(make_database("SUPERUSER")) as database:
        with pytest.raises(WorkspaceRoleError, match="bound by no row-level security") as refused:
            database.in_workspace("here")
        with bare_server.connect() as admin:
            admin.execute(refused.value.statements[0].encode())
        assert is_bound(database)


def test_a_role_that_owns_the_tables_by_membership_is_refused(
    make_database: MakeDatabase, bare_server: PostgresServer
) -> None:
    dsn = make_database("SUPERUSER")
    with bare_server.connect() as admin:
        admin.execute("CREATE ROLE memkernel_api; GRANT owner_0 TO memkernel_api")
    with Database(dsn) as database, pytest.raises(WorkspaceRoleError, match="owns the tables"):
        database.in_workspace("here")
    with bare_server.connect() as admin:
        admin.execute("REVOKE owner_0 FROM memkernel_api")


def listed_at_once(dsns: list[str]) -> list[int]:
    """How many stores each of four first workspaces a database lists, all at once."""
    for dsn in dsns:
        with Database(dsn) as database:
            database.open()

    def use(dsn: str) -> int:
        with Database(dsn) as database:
            return len(database.in_workspace("here").memory_stores.list().data)

    with ThreadPoolExecutor(16) as threads:
        return list(threads.map(use, dsns * 4))


def test_first_workspaces_of_many_databases_and_processes_at_once_make_one_role(make_database: MakeDatabase) -> None:
    dsns = [make_database("SUPERUSER") for _ in range(4)]
    assert listed_at_once(dsns) == [0] * 16


def test_first_workspaces_of_an_owner_at_once_grant_it_once(make_database: MakeDatabase) -> None:
    dsns = [make_database("CREATEROLE"), *(make_database(owner="owner_0") for _ in range(3))]
    assert listed_at_once(dsns) == [0] * 16


def test_a_table_that_is_guarded_later_is_opened_to_the_role(make_database: MakeDatabase) -> None:
    dsn = make_database("CREATEROLE")
    with Database(dsn) as database:
        database.in_workspace("here")
    with psycopg.connect(dsn) as owner:
        owner.execute("CREATE TABLE memkernel.later (workspace_id text)")
        owner.execute("ALTER TABLE memkernel.later ENABLE ROW LEVEL SECURITY")
    with Database(dsn) as database:
        database.in_workspace("here")
    with psycopg.connect(dsn) as owner:
        row = owner.execute("SELECT has_table_privilege('memkernel_api', 'memkernel.later', 'DELETE')").fetchone()
    assert row == (True,)


def test_a_role_that_was_lost_with_the_server_is_made_anew(
    make_database: MakeDatabase, bare_server: PostgresServer
) -> None:
    """A dump that is restored elsewhere brings the policies, not the role."""
    dsn = make_database("CREATEROLE")
    with Database(dsn) as database:
        assert is_bound(database)
    with bare_server.connect(str(conninfo_to_dict(dsn)["dbname"])) as admin:
        admin.execute("DROP OWNED BY memkernel_api")
        admin.execute("DROP ROLE memkernel_api")
    with Database(dsn) as database:
        assert len(database.in_workspace("here").memory_stores.list().data) == 1


def test_behind_a_pooler_workspaces_are_refused(dsn: str) -> None:
    with Database(dsn, prepare=False) as database:
        with pytest.raises(WorkspaceRoleError, match="behind a pooler") as refused:
            database.in_workspace("here")
        assert refused.value.statements == ()
        assert database.memory_stores.list().data == []


def test_a_user_whom_the_policies_bind_is_told_so_and_not_shown_an_empty_database(
    make_database: MakeDatabase, bare_server: PostgresServer
) -> None:
    dsn, other = make_database("CREATEROLE"), make_database()
    with Database(dsn) as database:
        database.memory_stores.create(name="Notes")
    with psycopg.connect(dsn) as owner:
        owner.execute("GRANT USAGE ON SCHEMA memkernel TO owner_1")
        owner.execute("GRANT ALL ON ALL TABLES IN SCHEMA memkernel TO owner_1")
    as_another = dsn.replace("owner_0@", "owner_1@")
    with Database(as_another) as database, pytest.raises(DatabaseError, match="owner_1 does not own") as refused:
        database.memory_stores.list()
    assert "GRANT owner_0 TO owner_1;" in refused.value.hint
    with bare_server.connect() as admin:
        admin.execute("GRANT owner_0 TO owner_1")
    with Database(as_another) as database:
        assert len(database.memory_stores.list().data) == 1
    assert other


def test_a_database_of_schema_11_is_migrated_with_its_rows(
    make_database: MakeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    dsn, known = make_database("CREATEROLE"), migrate.migrations()
    with psycopg.connect(dsn, autocommit=True) as owner:
        with monkeypatch.context() as older:
            older.setattr(migrate, "migrations", lambda: known[:11])
            migrate.prepare_schema(owner, migrate=False)
        for workspace, store in (("default", "memstore_01a"), ("lab", "memstore_01b")):
            owner.execute("SELECT memkernel.memory_store_create(%s, %s, 'Notes', '', '{}', false)", [workspace, store])
            owner.execute(
                "SELECT memkernel.memory_create(%s, '/a.md', '{}', 'one', sha256('one'), 'mem_01', 'memver_01', 9, "
                "'user_actor', 'user_ann', 'run_01', 'toolu_01')",
                [store],
            )
    with Database(dsn, migrate=True) as database:
        assert database.status().schema_version == len(known)
        for workspace in ("default", "lab"):
            view = database.in_workspace(workspace)
            (store,) = view.memory_stores.list().data
            tables = {table: ["workspace_id"] for table in ("memories", "memory_versions", "run_changes")}
            assert {table: [*rows] for table, rows in view.dump(tables)} == {table: [(workspace,)] for table in tables}
            assert (store.head_seq, store.memory_count) == (1, 1)
