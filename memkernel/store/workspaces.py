"""Connections that PostgreSQL keeps to the rows of one workspace (DESIGN section 4).

They run as the role memkernel_api, which the policies of migration 12 bind. That guards against faulty queries, not
against SQL injection: who can send any statement can also leave the role.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, NamedTuple

import psycopg
from psycopg import errors, sql

from memkernel.errors import DatabaseUnavailableError, WorkspaceRoleError
from memkernel.store.connections import Pool, StoreConnection
from memkernel.store.statements import planned
from memkernel.store.translate import is_lost, translate

ROLE: Final = "memkernel_api"
CONNECTIONS: Final = 16
"""As many requests are at work at a time."""

_ENTER: Final = planned(
    f"SELECT set_config('role', '{ROLE}', false), set_config('memkernel.workspace_id', $1::text, false), "
    "set_config('row_security', 'on', false)"
)
_GRANT_SET_VERSION: Final = 160000
# Roles belong to the server: another database's memkernel may be making the same one.
_CROSSED: Final = (
    errors.DuplicateObject,
    errors.UniqueViolation,
    errors.DeadlockDetected,
    errors.InternalError_,  # tuple concurrently updated
)
_TRIES: Final = 20
_PAUSE_S: Final = 0.05
_LOCK: Final = 0x6D656D6B726F6C65  # "memkrole"


class WorkspacePool:
    """The API's connections as one workspace uses them: with Pool's methods.

    A connection remembers its workspace; one that comes from another is moved with one statement, one that does not
    costs nothing.
    """

    def __init__(self, pool: Pool, workspace_id: str) -> None:
        self._pool = pool
        self._workspace_id = workspace_id

    def take(self) -> StoreConnection:
        """A connection in the workspace, to be given back; see Pool.take.

        Raises:
            psycopg.Error: it cannot be moved there; it is closed.
        """
        connection = self._pool.take()
        if connection.workspace_id != self._workspace_id:
            try:
                self._enter(connection)
            except BaseException:
                self._pool.give_back(connection)
                raise
        return connection

    def give_back(self, connection: StoreConnection) -> None:
        """Take a connection back; see Pool.give_back."""
        self._pool.give_back(connection)

    @contextmanager
    def connection(self) -> Generator[StoreConnection]:
        """A connection in the workspace, for a block; see Pool.connection."""
        connection = self.take()
        try:
            yield connection
        finally:
            self.give_back(connection)

    def reconnect(self, patience_s: float) -> StoreConnection:
        """A connection in the workspace, outside the pool; see Pool.reconnect."""
        connection = self._pool.reconnect(patience_s)
        self._enter(connection)
        return connection

    def drop_all(self) -> None:
        """Close every connection of the API; see Pool.drop_all."""
        self._pool.drop_all()

    def _enter(self, connection: StoreConnection) -> None:
        connection.workspace_id = None  # an interrupt may come after the move and before that is noted
        try:
            connection.run(_ENTER, self._workspace_id)
        except BaseException:  # whose rows it would reach is not known
            connection.close()
            raise
        connection.workspace_id = self._workspace_id


class _Role(NamedTuple):
    """What there is of the role."""

    exists: bool
    can_be_set: bool
    has_rights: bool


# One right at a time: has_table_privilege takes a list as "any of them".
_STATE: Final = (
    "SELECT role.oid IS NOT NULL, coalesce(pg_has_role(session_user, role.oid, %s), false), "
    "coalesce(has_schema_privilege(role.oid, 'memkernel', 'USAGE') "
    "AND has_table_privilege(role.oid, 'memkernel.schema_migrations', 'SELECT') "
    "AND (SELECT bool_and(has_table_privilege(role.oid, guarded.oid, needed)) FROM pg_class guarded, "
    "unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) needed "
    "WHERE guarded.relnamespace = 'memkernel'::regnamespace AND guarded.relrowsecurity), false) "
    "FROM (SELECT) nothing LEFT JOIN pg_roles role ON role.rolname = 'memkernel_api'"
)
_GRANT_TABLES: Final = """
DO $$
DECLARE
    guarded text := string_agg(oid::regclass::text, ', ') FROM pg_class
                    WHERE relnamespace = 'memkernel'::regnamespace AND relrowsecurity;
BEGIN
    GRANT USAGE ON SCHEMA memkernel TO memkernel_api;
    GRANT SELECT ON memkernel.schema_migrations TO memkernel_api;
    EXECUTE 'GRANT SELECT, INSERT, UPDATE, DELETE ON ' || guarded || ' TO memkernel_api';
END $$
"""


def prepare_role(connection: StoreConnection) -> None:
    """See to it that the owner can become memkernel_api, and that this role reaches the guarded tables and no others.

    Raises:
        WorkspaceRoleError: the role is missing and may not be made, or is bound by no policy.
        DatabaseError: PostgreSQL refused something else.
    """
    try:
        _make_role(connection)
        _check_it_is_bound(connection)
    except psycopg.Error as error:
        raise (DatabaseUnavailableError() if is_lost(error) else translate(error)) from error


def _make_role(connection: StoreConnection) -> None:
    for left in reversed(range(_TRIES)):
        if all(_state(connection)):
            return
        try:
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
                _make_what_is_missing(connection)
        except _CROSSED:
            if not left:
                raise
            time.sleep(_PAUSE_S)


def _state(connection: StoreConnection) -> _Role:
    right = "SET" if connection.info.server_version >= _GRANT_SET_VERSION else "MEMBER"
    row = connection.execute(_STATE, [right]).fetchone()
    return _Role(*(row or (False, False, False)))


def _make_what_is_missing(connection: StoreConnection) -> None:
    role = _state(connection)
    try:
        if not role.exists:
            connection.execute("CREATE ROLE memkernel_api NOLOGIN")
        # Whoever makes a role may set it by that only up to PostgreSQL 15; a superuser may always.
        if not _state(connection).can_be_set:
            how = "WITH INHERIT FALSE, SET TRUE" if connection.info.server_version >= _GRANT_SET_VERSION else ""
            connection.execute(sql.SQL("GRANT memkernel_api TO SESSION_USER {}").format(sql.SQL(how)))
    except errors.InsufficientPrivilege as error:
        raise _refused(connection.info.user, exists=role.exists) from error
    if not role.has_rights:
        connection.execute(_GRANT_TABLES)


def _refused(user: str, *, exists: bool) -> WorkspaceRoleError:
    grant = f"GRANT {ROLE} TO {sql.Identifier(user).as_string()};"
    statements = [grant] if exists else [f"CREATE ROLE {ROLE} NOLOGIN;", grant]
    may_not = "become" if exists else "make"
    return WorkspaceRoleError(f"{user} may not {may_not} the role {ROLE}, which keeps workspaces apart", statements)


def _check_it_is_bound(connection: StoreConnection) -> None:
    with connection.transaction(force_rollback=True):
        connection.execute("SET LOCAL ROLE memkernel_api")
        row = connection.execute("SELECT row_security_active('memkernel.memory_stores')").fetchone()
    if row is None or not row[0]:
        raise WorkspaceRoleError(
            f"the role {ROLE} is bound by no row-level security: it is a superuser, bypasses it or owns the tables",
            [f"ALTER ROLE {ROLE} NOSUPERUSER NOBYPASSRLS;"],
        )
