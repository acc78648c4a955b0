"""The schema `memkernel`: numbered SQL files, forward only; what is missing is applied in one transaction.

What was applied is recorded with the hash of its file. One advisory lock lets several first connects
happen at once.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, LiteralString, cast

import psycopg

from memkernel.errors import DatabaseError, SchemaTooNewError, SchemaTooOldError, ServerTooOldError

OLDEST_SERVER: Final = 150000
_FILE: Final = re.compile(r"(\d{4})_(\w+)\.sql")
_LOCK: Final = 0x6D656D6B65726E  # "memkern"

_RECORDS: Final[LiteralString] = """
CREATE SCHEMA IF NOT EXISTS memkernel;
CREATE TABLE IF NOT EXISTS memkernel.schema_migrations (
    number integer PRIMARY KEY,
    name text NOT NULL,
    hash text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
)
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered SQL file."""

    number: int
    name: str
    sql: str
    hash: str


@cache
def migrations() -> tuple[Migration, ...]:
    """The migrations that this version of memkernel brings, in order."""
    found: list[Migration] = []
    for file in (files("memkernel.store") / "migrations").iterdir():
        match = _FILE.fullmatch(file.name)
        if match:
            sql = file.read_text(encoding="utf-8")
            found.append(Migration(int(match[1]), match[2], sql, hashlib.sha256(sql.encode()).hexdigest()))
    return tuple(sorted(found, key=lambda migration: migration.number))


def prepare_schema(connection: psycopg.Connection[Any], *, migrate: bool) -> None:
    """See to it that the database has the schema that this version needs.

    Without a schema it is made; an older one is migrated only if `migrate` says so.

    Args:
        connection: an autocommit connection outside any transaction.
        migrate: whether an older schema may be changed.

    Raises:
        ServerTooOldError: a PostgreSQL older than 15.
        SchemaTooOldError: an older schema, and `migrate` is false.
        SchemaTooNewError: a newer schema, or one with migrations unknown here.
        DatabaseError: the database is not in UTF-8, a recorded migration differs from this version's, or the tables
            are another's and their policies hide every row.
    """
    _check_server(connection)
    if not connection.autocommit:
        raise DatabaseError("the schema is prepared on an autocommit connection")
    if not _is_current(connection):
        connection.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
        try:
            _bring_forward(connection, migrate=migrate)
        finally:
            connection.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])
    _check_owner(connection)


def schema_version(connection: psycopg.Connection[Any]) -> int:
    """The number of the newest migration that was applied; 0 where there is no schema."""
    applied = _applied(connection)
    return max(applied, default=0)


def _check_server(connection: psycopg.Connection[Any]) -> None:
    if connection.info.server_version < OLDEST_SERVER:
        raise ServerTooOldError(connection.info.parameter_status("server_version") or "unknown")
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise DatabaseError(f"the database is encoded in {encoding}", hint="memkernel needs a UTF8 database.")


def _check_owner(connection: psycopg.Connection[Any]) -> None:
    """Whom the policies of migration 12 bind would see an empty database, and think that it is one."""
    row = connection.execute(
        "SELECT current_user::text, relowner::regrole::text, quote_ident(current_user) FROM pg_class "
        "WHERE oid = 'memkernel.memory_stores'::regclass AND row_security_active(oid)"
    ).fetchone()
    if row is not None:
        raise DatabaseError(
            f"{row[0]} does not own memkernel's tables, and would see none of their rows",
            hint=f"Their owner, or an administrator, runs: GRANT {row[1]} TO {row[2]};",
        )


def _applied(connection: psycopg.Connection[Any]) -> dict[int, str]:
    row = connection.execute("SELECT to_regclass('memkernel.schema_migrations') IS NOT NULL").fetchone()
    if row is None or not row[0]:
        return {}
    return dict(connection.execute("SELECT number, hash FROM memkernel.schema_migrations").fetchall())


def _is_current(connection: psycopg.Connection[Any]) -> bool:
    return _applied(connection) == {migration.number: migration.hash for migration in migrations()}


def _bring_forward(connection: psycopg.Connection[Any], *, migrate: bool) -> None:
    applied = _applied(connection)
    _check_known(applied, migrations())
    missing = [migration for migration in migrations() if migration.number not in applied]
    if applied and missing and not migrate:
        raise SchemaTooOldError(max(applied), migrations()[-1].number)
    # All or nothing: a creation that was cut off would otherwise look like an older schema.
    with connection.transaction():
        for migration in missing:
            _apply(connection, migration)


def _check_known(applied: dict[int, str], known: Sequence[Migration]) -> None:
    if max(applied, default=0) > known[-1].number:
        raise SchemaTooNewError(max(applied), known[-1].number)
    for migration in known:
        if applied.get(migration.number, migration.hash) != migration.hash:
            raise DatabaseError(
                f"migration {migration.number:04} of the database is not the one of this version of memkernel",
                hint="It was made by a development version; use another database.",
            )


def _apply(connection: psycopg.Connection[Any], migration: Migration) -> None:
    connection.execute(_RECORDS)
    connection.execute(cast(LiteralString, migration.sql))
    connection.execute(
        "INSERT INTO memkernel.schema_migrations (number, name, hash) VALUES (%s, %s, %s)",
        [migration.number, migration.name, migration.hash],
    )
