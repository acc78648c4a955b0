"""Read-only SQL over this database: its stores, memories and versions as tables in DuckDB."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from html import escape
from typing import Any, Final

import pandas as pd

from memkernel import render
from memkernel.analytics.engine import Engine
from memkernel.analytics.frames import series
from memkernel.analytics.tables import Row, Source
from memkernel.analytics.waiting import interruptibly
from memkernel.errors import InvalidInputError

ROWS_SHOWN: Final = 60

_VALUE_TYPES: Final[Mapping[str, type]] = {
    "VARCHAR": str,
    "BOOLEAN": bool,
    "DOUBLE": float,
    "FLOAT": float,
    "DECIMAL": float,
    "TINYINT": int,
    "SMALLINT": int,
    "INTEGER": int,
    "BIGINT": int,
    "UTINYINT": int,
    "USMALLINT": int,
    "UINTEGER": int,
    "HUGEINT": int,
    "TIMESTAMP WITH TIME ZONE": datetime,
    "TIMESTAMP": date,
    "DATE": date,
}


@dataclass(frozen=True, slots=True, repr=False)
class SqlResult:
    """All rows of a query. `limit` is how many of them are shown; `types` are DuckDB's."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[Row]
    limit: int = ROWS_SHOWN

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, index: int) -> Row:
        return self.rows[index]

    @property
    def total(self) -> int:
        """How many rows there are."""
        return len(self.rows)

    @property
    def truncated(self) -> bool:
        """Whether fewer rows are shown than there are."""
        return self.total > self.limit

    def df(self) -> pd.DataFrame:
        """All rows as a DataFrame. Times are UTC timestamps, whole numbers with gaps are `Int64`."""
        by_column = zip(*self.rows, strict=True) if self.rows else ((),) * len(self.columns)
        columns = [_series(values, kind) for values, kind in zip(by_column, self.types, strict=True)]
        made = pd.DataFrame(dict(enumerate(columns)))
        made.columns = pd.Index(self.columns)  # SQL allows a name twice
        return made

    def __repr__(self) -> str:
        return self._plan or render.table_text(self.columns, self.rows[: self.limit], self.total)

    def _repr_html_(self) -> str:
        if self._plan:
            return f"<pre>{escape(self._plan)}</pre>"
        return render.table_html(self.columns, self.rows[: self.limit], self.total)

    @property
    def _plan(self) -> str:
        """What EXPLAIN drew; a table would break its lines."""
        return "\n".join(row[1] for row in self.rows) if self.columns == ("explain_key", "explain_value") else ""


def query(
    source: Source,
    sql: str,
    *,
    limit: int | None = None,
    parameters: Sequence[Any] | Mapping[str, Any] | None = None,
) -> SqlResult:
    """Run one SELECT of DuckDB's SQL over the tables of `memkernel.analytics.tables`: stores, memories, versions, runs.

    Args:
        source: the database.
        sql: one statement that only reads. It sees no file, no network, no extension, no variable.
        limit: how many rows are shown (60); the result has all of them, up to a million.
        parameters: values for `?` and `$1` (a sequence) or `$name` (a mapping).

    Raises:
        QueryRefusedError: it could write or reach outside, or is not exactly one statement.
        QueryError: it cannot be run; the message says where and why.
        InvalidInputError: `limit` is less than 1, or the SQL holds a NUL or a lone surrogate.
        DatabaseUnavailableError: PostgreSQL does not answer.
        KeyboardInterrupt: the person stopped it; the next query runs as if nothing had been.
    """
    shown = ROWS_SHOWN if limit is None else limit
    if shown < 1:
        raise InvalidInputError(f"a limit of {shown} rows shows nothing", hint="Take 1 or more.")
    _check_text(sql)
    engine = Engine()
    answer = interruptibly(lambda: engine.answer(source, sql, parameters), engine.stop)
    return SqlResult(answer.columns, answer.types, answer.rows, shown)


def _check_text(sql: str) -> None:
    try:
        sql.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"character {error.start} of the SQL is a lone surrogate") from None
    if "\0" in sql:  # some versions of DuckDB take it for the end
        raise InvalidInputError(f"character {sql.index(chr(0))} of the SQL is a NUL", hint="Write it as chr(0).")


def _series(values: Sequence[Any], duckdb_type: str) -> pd.Series[Any]:
    value_type = _VALUE_TYPES.get(duckdb_type.partition("(")[0])
    return series(values, value_type, nullable=None in values)
