"""A private, walled DuckDB for one query: the tables are copied in, the query runs, the rows come out.

Each query has its own in-memory DuckDB with the rows of one snapshot, and only those tables and
columns that it can see. So a result is never stale, no text outlives its redaction, and an
interrupted query leaves nothing behind.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, cast

import duckdb
import pyarrow  # pyright: ignore[reportMissingTypeStubs]  # it ships no types

from memkernel.analytics.failures import MEMORY_LIMIT, translate
from memkernel.analytics.guard import check
from memkernel.analytics.tables import TABLES, Kind, Row, Source
from memkernel.errors import DatabaseUnavailableError, QueryError

MAX_ROWS: Final = 1_000_000

WALLS: Final[dict[str, str | bool | int | float | list[str]]] = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "python_enable_replacements": False,  # else a table's name could mean a variable of the notebook
    "temp_directory": "",  # else a large query would spill memories to the disk
    "memory_limit": MEMORY_LIMIT,
    "threads": 4,
}
_SESSION: Final = (
    "SET TimeZone = 'UTC'",
    "SET errors_as_json = true",
    # In a notebook DuckDB shows it for each connection: a widget, which a saved notebook cannot show.
    "SET enable_progress_bar = false",
)
_DUCKDB_TYPES: Final[Mapping[Kind, str]] = {
    "text": "VARCHAR",
    "integer": "BIGINT",
    "float": "DOUBLE",
    "time": "TIMESTAMP WITH TIME ZONE",
    "json": "JSON",
}

_arrow: Any = pyarrow
_ARROW_TYPES: Final[Mapping[Kind, Any]] = {
    "text": _arrow.string(),
    "integer": _arrow.int64(),
    "float": _arrow.float64(),
    "time": _arrow.timestamp("us", tz="UTC"),
    "json": _arrow.string(),
}

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_LOADED_AT_ONCE: Final = 2_048  # rows: at most 200 MB of contents
_FETCHED_AT_ONCE: Final = 10_240


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query gave: column names, their DuckDB types, and all rows."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[Row]


class Engine:
    """One query's DuckDB. All but `stop` belongs to one thread."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(":memory:", config=WALLS)
        self._stopped = False
        self._reached = False

    def answer(self, source: Source, sql: str, parameters: Sequence[Any] | Mapping[str, Any] | None) -> Answer:
        """Check the SQL, load what it reads, run it. Afterwards the engine is closed.

        Raises:
            QueryRefusedError: it is not one statement that only reads.
            QueryError: DuckDB cannot run it.
        """
        try:
            with closing(self._connection):
                self._prepare(source, sql)
                return self._run(sql, parameters)
        except duckdb.Error as error:
            raise translate(error, sql) from None

    def stop(self) -> None:
        """End the work soon; to be repeated, for what has not begun cannot be interrupted. From any thread."""
        self._stopped = True
        with suppress(duckdb.ConnectionException):  # closed: it has ended
            self._connection.interrupt()

    def _prepare(self, source: Source, sql: str) -> None:
        for setting in _SESSION:
            self._connection.execute(setting)
        seen = check(self._connection, sql)
        for table, columns in TABLES.items():
            self._create(table, seen.get(table, tuple(columns)))
        if seen:
            self._read(source, seen)
        self._connection.execute("SET lock_configuration = true")

    def _read(self, source: Source, seen: Mapping[str, tuple[str, ...]]) -> None:
        """Load what the query sees. Where the server is lost half-way, all of it is read again, once."""
        try:
            self._load_all(source, seen)
        except DatabaseUnavailableError:
            if not self._reached:  # the source itself has tried for long enough
                raise
            for table, columns in seen.items():
                self._create(table, columns)
            self._load_all(source, seen)

    def _load_all(self, source: Source, seen: Mapping[str, tuple[str, ...]]) -> None:
        with closing(source.dump(seen)) as dump:
            for table, rows in dump:
                self._reached = True
                # Else the garbage collector would close them, on a connection that is back in its pool.
                with closing(cast(Generator[Row], rows)):
                    self._load(table, seen[table], rows)

    def _create(self, table: str, columns: Iterable[str]) -> None:
        kinds = TABLES[table]
        declared = ", ".join(f"{column} {_DUCKDB_TYPES[kinds[column]]}" for column in columns)
        self._connection.execute(f"CREATE OR REPLACE TABLE {table} ({declared})")

    def _load(self, table: str, columns: tuple[str, ...], rows: Iterator[Row]) -> None:
        while batch := list(islice(rows, _LOADED_AT_ONCE)):
            self._go_on()
            self._connection.register("incoming", _arrow_table(table, columns, batch))
            self._connection.execute(f"INSERT INTO {table} FROM incoming")
            self._connection.unregister("incoming")

    def _run(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] | None) -> Answer:
        # The last wall: whatever the guard may have missed cannot write either.
        self._connection.execute("BEGIN TRANSACTION READ ONLY")
        self._go_on()
        self._connection.execute(sql, parameters)
        description = self._connection.description
        return Answer(
            columns=tuple(column[0] for column in description),
            types=tuple(str(column[1]) for column in description),
            rows=self._fetch(),
        )

    def _fetch(self) -> list[Row]:
        rows: list[Row] = []
        while chunk := self._connection.fetchmany(_FETCHED_AT_ONCE):
            self._go_on()
            rows += chunk
            if len(rows) > MAX_ROWS:
                raise QueryError(f"the result has more than {MAX_ROWS:,} rows", hint="Aggregate, or add a LIMIT.")
        return rows

    def _go_on(self) -> None:
        if self._stopped:
            raise KeyboardInterrupt


def _arrow_table(table: str, columns: tuple[str, ...], rows: list[Row]) -> Any:
    kinds: list[Kind] = [TABLES[table][column] for column in columns]
    arrays = [_array(kind, values) for kind, values in zip(kinds, zip(*rows, strict=True), strict=True)]
    return _arrow.Table.from_arrays(arrays, names=list(columns))


def _array(kind: Kind, values: tuple[Any, ...]) -> Any:
    if kind == "json":
        values = tuple(None if value is None else _json(value) for value in values)
    return _arrow.array(values, type=_ARROW_TYPES[kind])


def _json(value: object) -> str:
    """A value as JSON; a lone surrogate, which DuckDB's texts cannot hold, is replaced."""
    return _SURROGATE.sub("\ufffd", json.dumps(value, ensure_ascii=False))
