"""What may be asked: one statement that only reads this database's tables. All else is refused with a sentence."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from memkernel.analytics.engine import Engine
from memkernel.analytics.tables import TABLES
from memkernel.errors import QueryError, QueryRefusedError
from tests.analytics.made import MadeRows

READS = [
    "SELECT 1",
    "select path from memories;",
    "SELECT 1; -- and that is all",
    "/* why */ SELECT path -- here; DROP TABLE memories\nFROM memories",
    "WITH m AS (FROM memories) SELECT count(*) FROM m",
    "WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM r WHERE a < 3) FROM r",
    "VALUES (1), (2)",
    "FROM memories",
    "TABLE memories",
    "(SELECT path FROM memories) UNION ALL (SELECT path FROM memory_versions)",
    "DESCRIBE memories",
    "DESCRIBE SELECT path FROM memories",
    "DESCRIBE",
    "SHOW TABLES",
    "SHOW ALL TABLES",
    "SHOW memory_versions",
    "SUMMARIZE memories",
    "SUMMARIZE SELECT seq FROM memory_versions",
    "EXPLAIN SELECT path FROM memories",
    "EXPLAIN ANALYZE SELECT path FROM memories",
    "EXPLAIN (FORMAT json) SELECT path FROM memories",
    "EXPLAIN (ANALYZE, FORMAT json) FROM memories",
    "EXPLAIN (SELECT 'é')",
    "explain /* é */ analyze -- SELECT\nWITH m AS (FROM memories) FROM m",
    "PIVOT memory_versions ON operation IN ('created', 'deleted') USING count(*) GROUP BY memory_id",
    "SELECT metadata->>'team' FROM memory_stores",
    "SELECT key, value FROM memory_stores, json_each(metadata)",
    "SELECT unnest(string_split(path, '/')) FROM memories",
    "SELECT * FROM range(3), unnest([1, 2]), generate_series(1, 2)",
    "SELECT table_name FROM information_schema.columns",
    "SELECT tool_use_id FROM run_changes JOIN memory_versions USING (memory_store_id, seq)",
    "SELECT list_transform([1, 2], lambda x: x + 1), row_number() OVER (ORDER BY path) FROM memories QUALIFY true",
]

WRITES = [
    "INSERT INTO memories (path) VALUES ('/x')",
    "UPDATE memories SET path = '/x'",
    "DELETE FROM memories",
    "TRUNCATE memories",
    "MERGE INTO memories USING memories AS m ON true WHEN MATCHED THEN DELETE",
    "CREATE TABLE x (a INT)",
    "CREATE TEMP TABLE x AS SELECT 1",
    "CREATE VIEW x AS SELECT 1",
    "CREATE MACRO f(a) AS a + 1",
    "CREATE TYPE mood AS ENUM ('calm')",
    "CREATE SCHEMA x",
    "CREATE SEQUENCE x",
    "CREATE SECRET x (TYPE s3)",
    "ALTER TABLE memories ADD COLUMN x INT",
    "DROP TABLE memories",
    "COMMENT ON TABLE memories IS 'x'",
    "VACUUM",
    "ANALYZE",
    "/* SELECT */ INSERT INTO memories (path) VALUES ('/x')",
    "WITH x AS (INSERT INTO memories (path) VALUES ('/x') RETURNING *) SELECT * FROM x",
    "WITH x AS (UPDATE memories SET path = '/x' RETURNING *) SELECT * FROM x",
    "WITH x AS MATERIALIZED (DELETE FROM memories RETURNING *) FROM x",
    "SELECT * FROM (WITH x AS (DELETE FROM memories RETURNING *) FROM x)",
    "EXPLAIN INSERT INTO memories (path) VALUES ('/x')",
    "EXPLAIN ANALYZE INSERT INTO memories (path) VALUES ('/x')",
    "EXPLAIN ANALYZE CREATE TABLE x (a INT)",
    "EXPLAIN (ANALYZE) DELETE FROM memories",
    "EXPLAIN ANALYZE WITH x AS (DELETE FROM memories RETURNING *) FROM x",
]

REACHES = [
    "COPY memories TO '{file}'",
    "COPY memories FROM '{file}'",
    "COPY (SELECT 1) TO '{file}' (FORMAT parquet)",
    "COPY (SELECT 1) TO stdout",
    "EXPLAIN ANALYZE COPY memories TO '{file}'",
    "EXPORT DATABASE '{file}'",
    "IMPORT DATABASE '{file}'",
    "ATTACH '{file}'",
    "ATTACH 'postgres:dbname=x' AS x (TYPE postgres)",
    "DETACH memory",
    "USE memory",
    "INSTALL httpfs",
    "LOAD httpfs",
    "FORCE INSTALL postgres FROM community",
    "SELECT * FROM '{file}'",
    "SELECT * FROM 'x.csv'",
    'SELECT * FROM "x.parquet"',
    "SELECT * FROM 'http://localhost/x.parquet'",
    "SELECT * FROM 's3://bucket/x.json'",
    "SELECT * FROM read_csv('{file}')",
    "SELECT * FROM READ_CSV_AUTO('{file}')",
    "SELECT * FROM system.main.read_csv('{file}')",
    "SELECT * FROM read_csv($1)",
    "SELECT * FROM read_text('{file}')",
    "SELECT * FROM read_blob('{file}')",
    "SELECT * FROM read_json('{file}')",
    "SELECT * FROM read_parquet('{file}')",
    "SELECT * FROM parquet_metadata('{file}')",
    "SELECT * FROM sniff_csv('{file}')",
    "SELECT * FROM glob('/etc/*')",
    "SELECT (SELECT content FROM read_text('{file}'))",
    "SELECT * FROM memories, LATERAL (SELECT * FROM read_text(path))",
    "WITH f AS (FROM '{file}') FROM f",
    "WITH \"x.csv\" AS (SELECT 1) SELECT * FROM (SELECT 1), 'x.csv'",
    "SELECT path FROM memories WHERE EXISTS (FROM '{file}')",
    "EXPLAIN SELECT * FROM read_csv('{file}')",
    "SUMMARIZE '{file}'",
    "DESCRIBE '{file}'",
    "DESCRIBE SELECT * FROM read_csv('{file}')",
]

TELLS_OR_CHANGES = [
    "PRAGMA version",
    "PRAGMA database_list",
    "PRAGMA enable_profiling",
    "SET threads = 1",
    "SET VARIABLE x = 1",
    "RESET threads",
    "CALL pragma_version()",
    "CALL enable_logging()",
    "CHECKPOINT",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "DEALLOCATE p",
    "SELECT getenv('HOME')",
    "SELECT GETENV ('HOME')",
    "SELECT 'HOME'.getenv()",
    "SELECT current_setting('secret_directory')",
    "SELECT system.main.current_setting('secret_directory')",
    "SELECT list_transform(['x'], lambda x: current_setting(x))",
    "SELECT getvariable('x')",
    "SELECT nextval('x')",
    "SELECT write_log('x')",
    "SELECT * FROM query('SELECT 1')",
    "SELECT * FROM query('FROM mem' || 'ories')",
    "SELECT * FROM query_table('memories')",
    "FROM query_table(['memories', 'memory_versions'])",
    "FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
    "FROM histogram(memories, path)",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM duckdb_variables()",
    "SELECT * FROM duckdb_functions()",
    "SELECT * FROM duckdb_tables",
    "SELECT * FROM duckdb_logs",
    "SELECT * FROM which_secret('s3://x', 's3')",
    "SELECT * FROM pg_catalog.pg_settings",
    "SELECT * FROM pg_settings",
    "SELECT * FROM (WITH pg_settings AS (SELECT 1) FROM pg_settings), pg_settings",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM pragma_database_list",
    "FROM pragma_version()",
    "FROM checkpoint()",
    "FROM enable_profiling()",
    "SHOW secret_directory",
    "SHOW DATABASES",
    "SHOW VARIABLES",
]

SEVERAL = [
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP TABLE memories",
    "SELECT 1 /* ; */; /* -- */ DROP TABLE memories",
    "SELECT 1 --\n; DROP TABLE memories",
    "SELECT 1;;\n\n;DELETE FROM memories",
    "SELECT ';'; SELECT ';'",
    "EXPLAIN SELECT 1; DROP TABLE memories",
    "PIVOT memory_versions ON operation USING count(*)",
]


def let_everything_in(*_: object) -> dict[str, tuple[str, ...]]:
    return {table: tuple(columns) for table, columns in TABLES.items()}


def answer(sql: str) -> list[tuple[object, ...]]:
    return Engine().answer(MadeRows(), sql, None).rows


@pytest.mark.parametrize("sql", READS)
def test_what_only_reads_is_run(sql: str) -> None:
    assert answer(sql)


@pytest.mark.parametrize("sql", [*WRITES, *REACHES, *TELLS_OR_CHANGES, *SEVERAL])
def test_everything_else_is_refused_with_a_sentence_and_a_way_out(sql: str, tmp_path: Path) -> None:
    file = tmp_path / "secret.csv"
    file.write_text("secret\nhunter2\n")
    rows = MadeRows()
    with pytest.raises(QueryRefusedError) as refused:
        Engine().answer(rows, sql.replace("{file}", str(file)), None)
    sentence, hint = refused.value.lines()
    assert "\n" not in sentence + hint
    assert not any(word in sentence + hint for word in ("LINE 1", "hunter2", ".duckdb", "Error: Error", "Traceback"))
    assert rows.asked == {}, "nothing is loaded for a query that is refused"
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]
    assert file.read_text() == "secret\nhunter2\n"


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        ("DROP TABLE memories", "DROP is not run: it could write, and SQL here only reads"),
        (
            "WITH x AS (DELETE FROM memories RETURNING *) FROM x",
            "DELETE is not run, not even in a WITH: it could write, and SQL here only reads",
        ),
        ("attach 'x.db'", "ATTACH is not run: it could reach files, the network or other databases"),
        ("PRAGMA version", "PRAGMA is not run: it could change how this or another query runs"),
        ("SELECT 1; SELECT 2", "2 statements are not run: a query is exactly one"),
        ("SELECT * FROM 'x.csv'", "'x.csv' is not read: SQL here reaches no files and no network"),
        ("FROM read_csv('x.csv')", "read_csv() is not read as a table: it could reach files, the network or settings"),
        ("SELECT getenv('HOME')", "getenv() is not run: it tells of the machine, not of the memories"),
        ("FROM pg_settings", "pg_settings is not read: it tells of the machine, not of the memories"),
        (
            "PIVOT memory_versions ON operation USING count(*)",
            "this PIVOT is not run: without the list of its values it is several statements",
        ),
    ],
)
def test_a_refusal_says_what_and_why(sql: str, sentence: str) -> None:
    with pytest.raises(QueryRefusedError) as refused:
        answer(sql)
    assert str(refused.value) == sentence


@pytest.mark.parametrize("sql", ["", "  \n", ";", ";;", "-- nothing", "/* nothing */"])
def test_no_sql_at_all_says_so(sql: str) -> None:
    with pytest.raises(QueryError, match="there is no SQL to run"):
        answer(sql)


def test_a_query_nested_beyond_checking_is_refused() -> None:
    with pytest.raises((QueryRefusedError, QueryError)) as refused:
        answer("SELECT " + "(1 + " * 900 + "1" + ")" * 900)
    assert "\n" not in str(refused.value)


def test_a_variable_of_the_notebook_is_no_table() -> None:
    secrets = pd.DataFrame({"password": ["hunter2"]})
    with pytest.raises(QueryError, match="there is no table 'secrets'"):
        answer("SELECT * FROM secrets")
    assert len(secrets) == 1


@pytest.mark.parametrize("sql", [*WRITES, *REACHES, *TELLS_OR_CHANGES, *SEVERAL])
def test_the_walls_hold_without_the_guard(sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memkernel.analytics.engine.check", let_everything_in)
    file = tmp_path / "secret.csv"
    file.write_text("secret\nhunter2\n")
    try:
        outcome = repr(answer(sql.replace("{file}", str(file))))
    except (QueryRefusedError, QueryError) as error:
        outcome = str(error) + error.hint
    assert "hunter2" not in outcome
    assert "\n" not in outcome
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]
    assert file.read_text() == "secret\nhunter2\n"
