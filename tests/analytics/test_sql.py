"""The result of a query: all rows, how they are shown, and as a DataFrame."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal

import pandas as pd
import pytest

from memkernel.analytics import engine
from memkernel.analytics.sql import SqlResult, query
from memkernel.errors import DatabaseUnavailableError, InvalidInputError, QueryRefusedError
from tests.analytics.made import NOON, LostRows, MadeRows


def ask(sql: str, limit: int | None = None) -> SqlResult:
    return query(MadeRows(), sql, limit=limit)


def html(result: SqlResult) -> str:
    return result._repr_html_()  # pyright: ignore[reportPrivateUsage]  # IPython's protocol


def test_a_result_holds_its_columns_and_all_rows() -> None:
    result = ask("SELECT path, content_size_bytes AS size FROM memories ORDER BY path")
    assert result.columns == ("path", "size")
    assert result.types == ("VARCHAR", "BIGINT")
    assert result.rows == list(result) == [("/notes/été.md", 0), ("/units.md", 10)]
    assert (len(result), result.total, result[1]) == (2, 2, ("/units.md", 10))


def test_sixty_rows_are_shown_and_all_are_kept() -> None:
    result = ask("FROM range(2000)")
    assert (len(result.rows), result.limit, result.truncated) == (2_000, 60, True)
    assert "60 of 2,000 shown" in repr(result)
    assert "60 of 2,000 shown" in html(result)
    assert len(result.df()) == 2_000


def test_a_limit_of_ones_own_changes_what_is_shown_only() -> None:
    result = ask("FROM range(5)", limit=2)
    assert "2 of 5 shown" in repr(result)
    assert result.total == 5
    assert not ask("FROM range(5)", limit=5).truncated


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_shows_nothing_is_refused(limit: int) -> None:
    with pytest.raises(InvalidInputError, match=f"a limit of {limit} rows"):
        ask("SELECT 1", limit=limit)


def test_no_rows_are_said_to_be_none() -> None:
    result = ask("SELECT path FROM memories WHERE false")
    assert "(none)" in repr(result)
    assert "path" in html(result)


def test_what_was_stored_is_never_markup() -> None:
    assert "<script>" not in html(ask("SELECT '<script>' AS \"<script>\""))


def test_a_plan_is_shown_as_it_was_drawn() -> None:
    result = ask("EXPLAIN SELECT path FROM memories WHERE path <> '<b>'")
    assert "\n" in repr(result)
    assert "memories" in repr(result)
    assert html(result).startswith("<pre>")
    assert "<b>" not in html(result)


@pytest.mark.parametrize(
    ("parameters", "sql"),
    [(["/units.md"], "path = ?"), (("/units.md",), "path = $1"), ({"path": "/units.md"}, "path = $path")],
)
def test_parameters_are_values_by_position_or_name(parameters: list[str] | dict[str, str], sql: str) -> None:
    result = query(MadeRows(), f"SELECT content FROM memories WHERE {sql}", parameters=parameters)
    assert result.rows == [("SI\0 units\n",)]


def test_a_parameter_is_never_sql() -> None:
    hostile = "'; DROP TABLE memories; --"
    assert query(MadeRows(), "SELECT ? AS said", parameters=[hostile]).rows == [(hostile,)]


def test_sql_that_is_no_unicode_text_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="character 8 of the SQL is a lone surrogate"):
        ask("SELECT '\udc80'")


@pytest.mark.parametrize("sql", ["SELECT '\0'", "SELECT 1 \0; DROP TABLE memories", "\0"])
def test_a_nul_cannot_hide_the_rest_of_the_sql(sql: str) -> None:
    with pytest.raises(InvalidInputError, match="of the SQL is a NUL"):
        ask(sql)


def test_a_nul_can_be_looked_for() -> None:
    assert ask("SELECT path FROM memories WHERE contains(content, chr(0))").rows == [("/units.md",)]


def test_values_come_as_python_has_them() -> None:
    sql = """
        SELECT 1, 1.50, 1.5::DOUBLE, true, NULL, 'é', 'x'::BLOB, DATE '2026-11-30', [1, 2], {'a': 1},
               sum(10000000000000000000::HUGEINT), TIMESTAMPTZ '2026-11-30 13:00:00+01'
    """
    [row] = ask(sql).rows
    assert row == (
        *(1, Decimal("1.50"), 1.5, True, None, "é", b"x", date(2026, 11, 30), [1, 2], {"a": 1}),
        *(10**19, NOON),
    )


def test_a_data_frame_has_whole_numbers_and_utc_times() -> None:
    made = ask("SELECT seq, content_size_bytes, created_at, redacted_at, path FROM memory_versions ORDER BY seq").df()
    assert [str(dtype) for dtype in made.dtypes][:4] == ["int64", "Int64", "datetime64[us, UTC]", "datetime64[us, UTC]"]
    assert made["created_at"].max() == pd.Timestamp(datetime(2026, 11, 30, 12, 4, tzinfo=UTC))
    assert made["content_size_bytes"].sum() == 10
    assert made["path"].isna().tolist() == [True, False, False, False]


def test_a_data_frame_without_rows_keeps_columns_and_types() -> None:
    made = ask("SELECT seq, created_at FROM memory_versions WHERE false").df()
    assert {name: str(dtype) for name, dtype in made.dtypes.items()} == {
        "seq": "int64",
        "created_at": "datetime64[us, UTC]",
    }


def test_a_column_name_may_come_twice() -> None:
    made = ask("SELECT 1 AS a, 2 AS a").df()
    assert list(made.columns) == ["a", "a"]
    assert made.to_numpy().tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("sql", "dtype"),
    [
        ("SELECT sum(seq) FROM memory_versions", "int64"),
        ("SELECT avg(seq) FROM memory_versions", "float64"),
        ("SELECT sum(1.5)", "float64"),
        ("SELECT 170141183460469231731687303715884105727", "object"),
        ("SELECT true", "bool"),
        ("SELECT true UNION ALL SELECT NULL", "boolean"),
        ("SELECT [1]", "object"),
        ("SELECT NULL", "object"),
        ("SELECT TIMESTAMP '2026-11-30'", "datetime64[us]"),
        ("SELECT DATE '2026-11-30'", "datetime64[us]"),
    ],
)
def test_a_data_frames_types_follow_the_values(sql: str, dtype: str) -> None:
    assert str(ask(sql).df().dtypes.iloc[0]) == dtype


def test_a_refusal_comes_out_of_the_thread_as_it_is() -> None:
    with pytest.raises(QueryRefusedError, match="DROP is not run"):
        ask("DROP TABLE memories")


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_server_that_is_lost_half_way_is_read_again_from_the_start(
    monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    monkeypatch.setattr(engine, "_LOADED_AT_ONCE", 1)
    lost = LostRows(after)
    assert query(lost, "SELECT count(*), count(DISTINCT id) FROM memory_versions").rows == [(4, 4)]
    assert lost.dumps == 2


@pytest.mark.parametrize(("lost", "dumps"), [(LostRows(None), 1), (LostRows(1, times=2), 2)])
def test_a_server_that_stays_away_is_not_asked_for_ever(lost: LostRows, dumps: int) -> None:
    with pytest.raises(DatabaseUnavailableError):
        query(lost, "SELECT count(*) FROM memory_versions")
    assert lost.dumps == dumps


# A program without a file counts as a person's session for DuckDB, and there it shows a bar after two seconds.
_LONG_QUERY = """
from memkernel.analytics import engine, sql
from tests.analytics.made import MadeRows
engine._SESSION = ("SET progress_bar_time = 1", *engine._SESSION)
query = "SELECT count(*) FROM range(2_000) a, range(20_000) b WHERE a.range * b.range % 7 = 3"
print(sql.query(MadeRows(), query).rows)
"""


def test_a_long_query_shows_no_progress_bar_of_duckdbs() -> None:
    shown = subprocess.run([sys.executable, "-c", _LONG_QUERY], capture_output=True, text=True, check=True)
    assert (shown.stdout, shown.stderr) == ("[(4896898,)]\n", "")
