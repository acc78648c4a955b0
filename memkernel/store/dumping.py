"""Whole tables for analytics, streamed from one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final, LiteralString, cast

import psycopg

from memkernel.errors import DatabaseUnavailableError, InvalidInputError
from memkernel.store.connections import Pool, StoreConnection
from memkernel.store.translate import is_lost, translate
from memkernel.store.workspaces import WorkspacePool

Row = tuple[Any, ...]

_AT_ONCE: Final = 2_000

# Where each table's rows come from, and the columns that are not simply those of `t`.
_SOURCES: Final[Mapping[str, LiteralString]] = {
    "memory_stores": "memkernel.memory_stores t",
    "memories": "memkernel.memories t",
    "memory_versions": "memkernel.memory_versions t",
    "run_changes": "memkernel.run_changes t",
    "runs": "memkernel.runs t",
    "run_events": "memkernel.run_events t",
}
_HEAD_CONTENT: Final = (
    "(SELECT v.content FROM memkernel.memory_versions v "
    "WHERE v.memory_store_id = t.memory_store_id AND v.id = t.memory_version_id)"
)


def dump(
    pool: Pool | WorkspacePool, tables: Mapping[str, Sequence[str]], workspace_id: str
) -> Generator[tuple[str, Iterator[Row]]]:
    """Each table's name with its rows of a workspace, in the order asked for; all in one read-only snapshot.

    The rows of a table are read before the next table is asked for. Texts and ids are str, hashes 64 hex digits,
    times aware in UTC, JSON Python values; a memory's `content` is its head's.

    Args:
        pool: where the connection comes from; it goes back when the generator ends or is closed.
        tables: memory_stores, memories, memory_versions, run_changes, runs or run_events, each with its columns.
        workspace_id: whose rows.

    Raises:
        InvalidInputError: an unknown table or column.
        DatabaseUnavailableError: the server is lost; what came before is to be thrown away.
    """
    with _translated(), pool.connection() as connection, connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        connection.execute("SET LOCAL enable_seqscan TO on")
        for table, columns in tables.items():
            yield table, _rows(connection, table, columns, workspace_id)


@contextmanager
def _translated() -> Generator[None]:
    try:
        yield
    except psycopg.errors.UndefinedColumn as error:
        raise InvalidInputError(error.diag.message_primary or "an unknown column") from None
    except psycopg.Error as error:
        raise (DatabaseUnavailableError() if is_lost(error) else translate(error)) from error


def _rows(connection: StoreConnection, table: str, columns: Sequence[str], workspace_id: str) -> Iterator[Row]:
    if table not in _SOURCES:
        raise InvalidInputError(f"there is no table {table!r}")
    if not all(column.replace("_", "").isalnum() and column.isascii() for column in columns):
        raise InvalidInputError(f"these are no columns: {', '.join(columns)}")
    selected = ", ".join(
        _HEAD_CONTENT if (table, column) == ("memories", "content") else f"t.{column}" for column in columns
    )
    readers = [_READERS.get(column, _as_it_is) for column in columns]
    with _translated(), connection.cursor(name="memkernel_dump", binary=True) as cursor:
        cursor.itersize = _AT_ONCE
        query = f"SELECT {selected} FROM {_SOURCES[table]} WHERE t.workspace_id = %s"
        cursor.execute(cast(LiteralString, query), [workspace_id])
        for row in cursor:
            yield tuple(None if value is None else read(value) for read, value in zip(readers, row, strict=True))


def _as_it_is(value: Any) -> Any:
    return value


def _text(value: bytes) -> str:
    return value.decode()


def _hex(value: bytes) -> str:
    return value.hex()


def _utc(value: datetime) -> datetime:
    return value.astimezone(UTC)


_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "content": _text,
    "content_sha256": _hex,
    **dict.fromkeys(("created_at", "updated_at", "archived_at", "redacted_at", "head_at"), _utc),
    **dict.fromkeys(("started_at", "seen_at", "stop_asked_at", "ended_at"), _utc),
}
