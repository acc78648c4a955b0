"""Only what a query can see is loaded: never less, and mostly not the contents."""

from __future__ import annotations

import random

import pytest

from memkernel.analytics.engine import Engine
from memkernel.analytics.tables import TABLES
from tests.analytics.made import MadeRows

ALL = {table: tuple(columns) for table, columns in TABLES.items()}


def whole_tables(*_: object) -> dict[str, tuple[str, ...]]:
    return ALL


def asked_by(sql: str) -> dict[str, tuple[str, ...]]:
    rows = MadeRows()
    Engine().answer(rows, sql, None)
    return rows.asked


@pytest.mark.parametrize(
    ("sql", "asked"),
    [
        ("SELECT 1", {}),
        ("SELECT count(*) FROM memory_versions", {"memory_versions": ("memory_store_id",)}),
        (
            "SELECT operation, count(*) n FROM memory_versions GROUP BY ALL ORDER BY n",
            {"memory_versions": ("operation",)},
        ),
        ('SELECT "PATH" FROM main."Memories"', {"memories": ("path",)}),
        ("FROM memories SELECT length(content)", {"memories": ("content",)}),
        ("WITH v AS (SELECT seq FROM memory_versions) SELECT * FROM v", {"memory_versions": ("seq",)}),
        ("SELECT * FROM (SELECT seq FROM memory_versions) v", {"memory_versions": ("seq",)}),
        (
            "SELECT 1 FROM memories JOIN memory_versions USING (path)",
            {"memories": ("path",), "memory_versions": ("path",)},
        ),
        (
            "SELECT (SELECT max(v.seq) FROM memory_versions v WHERE v.path = m.path) FROM memories m",
            {"memories": ("path",), "memory_versions": ("seq", "path")},
        ),
        ("EXPLAIN ANALYZE SELECT seq FROM memory_versions", {"memory_versions": ("seq",)}),
        ("DESCRIBE memory_versions", {}),
        ("DESCRIBE SELECT * FROM memory_versions", {}),
        ("SHOW memories", {}),
        ("SHOW TABLES", {}),
        ("SELECT table_name FROM information_schema.tables", {}),
        ("WITH memories AS (SELECT 1 AS one) SELECT one FROM memories", {"memories": ("memory_store_id",)}),
    ],
)
def test_only_the_columns_that_are_named_are_loaded(sql: str, asked: dict[str, tuple[str, ...]]) -> None:
    assert asked_by(sql) == asked


@pytest.mark.parametrize(
    "sql",
    [
        "FROM memories",
        "TABLE memories",
        "SELECT m.* FROM memories m",
        "SELECT * EXCLUDE (content) FROM memories",
        "SELECT COLUMNS('con.*') FROM memories",
        "SELECT m FROM memories m",
        "SELECT Memories FROM memories",
        "SELECT main.memories FROM memories",
        "SELECT path FROM memories path",
        "SELECT ordinal FROM memories ordinal",
        "SELECT to_json(m) FROM memories m",
        "SELECT #5 FROM memories",
        "SELECT e FROM memories AS m(a, b, c, d, e)",
        "SELECT s.* FROM memories m, LATERAL (SELECT m.*) s",
        "SELECT s.* FROM memories m, LATERAL (SELECT m AS whole) s",
        "SELECT 1 FROM memories NATURAL JOIN (SELECT 'x' AS content) c",
        "PIVOT memories ON path IN ('/units.md') USING count(*)",
        "UNPIVOT memories ON path, content INTO NAME n VALUE v",
        "SUMMARIZE memories",
        "SELECT d.column_name FROM (DESCRIBE memories) d, (SELECT path FROM memories) p",
        "SELECT column_name FROM information_schema.columns, (SELECT path FROM memories) p",
        "WITH v AS (FROM memories) SELECT path FROM v",
    ],
)
def test_every_column_is_loaded_where_one_may_be_seen_without_its_name(sql: str) -> None:
    assert asked_by(sql) == {"memories": ALL["memories"]}


_SELECTED = ("m.path", "count(*) AS n", "max(v.content)", "v", "m.*", "*", "v.seq, m.content", "#2", "COLUMNS('.*id')")
_FROM = (
    "memories m JOIN memory_versions v USING (path)",
    "memories m JOIN memory_versions v ON v.memory_id = m.id",
    "memories m NATURAL JOIN (SELECT path, seq, content FROM memory_versions) v",
    "memories m, LATERAL (SELECT * FROM memory_versions WHERE memory_id = m.id) v",
    "(FROM memories) m, (SELECT path, seq, content FROM memory_versions) v",
)
_AFTER = ("", "WHERE v.seq > 1", "WHERE m.content <> ''", "GROUP BY ALL", "ORDER BY ALL", "ORDER BY v.seq DESC LIMIT 1")


@pytest.mark.parametrize("seed", range(40))
def test_a_query_gives_the_same_rows_as_over_whole_tables(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = random.Random(seed)
    sql = f"SELECT {chosen.choice(_SELECTED)} FROM {chosen.choice(_FROM)} {chosen.choice(_AFTER)}"
    pruned = _rows_or_failure(sql)
    monkeypatch.setattr("memkernel.analytics.engine.check", whole_tables)
    assert pruned == _rows_or_failure(sql)


def _rows_or_failure(sql: str) -> list[str] | str:
    try:
        return sorted(map(repr, Engine().answer(MadeRows(), sql, None).rows))
    except ValueError as error:
        return type(error).__name__
