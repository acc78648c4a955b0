"""What DuckDB cannot run: one sentence with the place, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from memkernel.analytics.engine import WALLS, Engine
from memkernel.errors import QueryError
from tests.analytics.made import MadeRows


def failure(sql: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None) -> QueryError:
    with pytest.raises(QueryError) as raised:
        Engine().answer(MadeRows(), sql, parameters)
    assert "\n" not in str(raised.value) + raised.value.hint
    assert raised.value.__cause__ is None
    return raised.value


@pytest.mark.parametrize(
    ("sql", "sentence", "hint"),
    [
        (
            "SELECT * FROM memorys",
            "there is no table 'memorys' (line 1, column 15)",
            "Near: memories, memory_stores, memory_versions",
        ),
        (
            "SELECT * FROM duck",
            "there is no table 'duck' (line 1, column 15)",
            "The tables are memory_stores, memories, memory_versions, run_changes, runs, run_events.",
        ),
        (
            "SELECT *\nFROM memory_version",
            "there is no table 'memory_version' (line 2, column 6)",
            "Near: memory_versions, memory_stores, memories",
        ),
        (
            "EXPLAIN /* é */ ANALYZE\nSELECT * FROM memorys",
            "there is no table 'memorys' (line 2, column 15)",
            "Near: memories, memory_stores, memory_versions",
        ),
        ("SELECT pth FROM memories", "there is no column 'pth' (line 1, column 8)", "Near: path"),
        ("SELECT 'é',\n  'é', pth FROM memories", "there is no column 'pth' (line 2, column 8)", "Near: path"),
        (
            "WITH t AS (SELECT 1 AS total) SELECT totl FROM t",
            "there is no column 'totl' (line 1, column 38)",
            "Near: total",
        ),
        (
            "SELECT xyzzy",
            "there is no column 'xyzzy' (line 1, column 8)",
            "DESCRIBE memory_versions lists a table's columns.",
        ),
        ("SELECT lenght(path) FROM memories", "there is no function 'lenght' (line 1, column 8)", "Near: length"),
        ("SELEC 1", 'syntax error at or near "SELEC" (line 1, column 1)', ""),
        ("SELECT 'x'::INT", "Could not convert string 'x' to INT32 (line 1, column 11)", ""),
        ("SELECT error('boo')", "boo", ""),
        ("SELECT e'{\"a\": 1}'::INT", "Could not convert string '{\"a\": 1}' to INT32", ""),
    ],
)
def test_a_failure_says_where_and_what_is_near(sql: str, sentence: str, hint: str) -> None:
    error = failure(sql)
    assert str(error).startswith(sentence)
    assert error.hint == hint


def test_the_place_counts_lines_and_characters_from_one() -> None:
    error = failure("SELECT path,\n       'ééé', pth\nFROM memories")
    assert (error.line, error.column) == (2, 15)


def test_a_column_that_must_be_grouped_comes_with_duckdbs_advice() -> None:
    assert "GROUP BY" in failure("SELECT path, count(*) FROM memories").hint


def test_advice_that_cannot_be_followed_is_left_out() -> None:
    error = failure("SELECT (SELECT seq FROM memory_versions)")
    assert "SET" not in str(error) + error.hint


@pytest.mark.parametrize("parameters", [None, [], [1, 2], {"x": 1}])
def test_parameters_that_do_not_fit_are_a_failure(parameters: Sequence[Any] | Mapping[str, Any] | None) -> None:
    failure("SELECT * FROM memories WHERE path = ?", parameters)


def test_a_parameter_that_is_no_value_is_a_failure() -> None:
    failure("SELECT ?", [object()])


def test_a_query_beyond_its_memory_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WALLS, "memory_limit", "30MB")
    error = failure("SELECT list(range) FROM range(100000000)")
    assert str(error) == "the query needs more memory than the 4GB that it may use"
    assert "content" in error.hint


def test_a_result_of_over_a_million_rows_is_not_kept() -> None:
    assert str(failure("FROM range(5000000000)")) == "the result has more than 1,000,000 rows"
