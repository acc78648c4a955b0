"""Which SQL may run: exactly one statement that only reads, and only the tables of this database.

The judge is DuckDB's own parser: it counts the statements, says their kind, and hands out the
statement as a tree, in which everything that is not known to be harmless is refused. The walls
around the query (engine.py) hold on their own; the guard says why, before anything runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

import duckdb

from memkernel.analytics.failures import TABLES_HINT, no_such_table
from memkernel.analytics.reading import Node, columns_by_table, kind, nodes
from memkernel.analytics.tables import TABLES
from memkernel.errors import QueryError, QueryRefusedError

_HOW: Final = "A query is one SELECT, WITH, VALUES, FROM, DESCRIBE, SHOW, SUMMARIZE or EXPLAIN."
_WRITES: Final = "it could write, and SQL here only reads"
_REACHES: Final = "it could reach files, the network or other databases"
_CHANGES: Final = "it could change how this or another query runs"

_WHY: Final[Mapping[str, str]] = {
    "ALTER": _WRITES,
    "ANALYZE": _WRITES,
    "CREATE": _WRITES,
    "CREATE_FUNC": _WRITES,
    "DELETE": _WRITES,
    "DROP": _WRITES,
    "INSERT": _WRITES,
    "MERGE_INTO": _WRITES,
    "UPDATE": _WRITES,
    "VACUUM": _WRITES,
    "ATTACH": _REACHES,
    "COPY": _REACHES,
    "COPY_DATABASE": _REACHES,
    "DETACH": _REACHES,
    "EXPORT": _REACHES,
    "EXTENSION": _REACHES,
    "LOAD": _REACHES,
}

_READING_NODES: Final = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
_TABLE_FUNCTIONS: Final = frozenset(
    {"generate_series", "json_each", "json_tree", "range", "repeat", "repeat_row", "unnest"}
)
_TELLING_FUNCTIONS: Final = frozenset(
    {"current_setting", "currval", "getenv", "getvariable", "nextval", "setval", "write_log"}
)
_CATALOGUE: Final = frozenset({"columns", "schemata", "tables"})
_SYSTEM_PREFIXES: Final = ("duckdb_", "pg_", "pragma_", "sqlite_")
_SHOWN: Final = frozenset({"tables", "__show_tables_expanded", *TABLES})


def check(parser: duckdb.DuckDBPyConnection, sql: str) -> dict[str, tuple[str, ...]]:
    """Refuse the SQL, or say what it reads: the columns that it can see of each of its tables.

    Raises:
        QueryRefusedError: it is not one statement that only reads this database's tables.
        QueryError: it is no SQL, or names a table that is not there.
        duckdb.Error: DuckDB cannot parse it.
    """
    tree = _tree(parser, _selecting(parser, sql))
    own_names = {key.lower() for key in _cte_names(tree)}
    for node in nodes(tree):
        _check_node(node, own_names, sql)
    return columns_by_table(tree)


# -- one statement that selects ------------------------------------------------------------------


def _selecting(parser: duckdb.DuckDBPyConnection, sql: str) -> str:
    """The statement that selects: the SQL itself, or what its EXPLAIN explains."""
    statements = parser.extract_statements(sql)
    if not statements:
        raise QueryError("there is no SQL to run", hint=_HOW)
    if len(statements) > 1:
        raise QueryRefusedError(
            f"{len(statements)} statements are not run: a query is exactly one", hint="Run them one after the other."
        )
    found = statements[0].type.name
    if found == "SELECT":
        return sql
    if found == "EXPLAIN":
        return _explained(parser, sql)
    raise _refusal(found, sql)


def _explained(parser: duckdb.DuckDBPyConnection, sql: str) -> str:
    """The statement that an EXPLAIN explains, at the place where it stands: what is before it is blank."""
    encoded = sql.encode()
    # EXPLAIN's own words and options are no statement, nor is any text that begins among them.
    for offset, _ in duckdb.tokenize(sql)[1:]:
        rest = (re.sub(rb"[^\n]", b" ", encoded[:offset]) + encoded[offset:]).decode()
        found = _types(parser, rest)
        if found == ["SELECT"]:
            return rest
        if found:
            raise _refusal(found[0], rest)
    raise QueryRefusedError("this EXPLAIN could not be checked", hint="EXPLAIN and EXPLAIN ANALYZE take one SELECT.")


def _types(parser: duckdb.DuckDBPyConnection, sql: str) -> list[str]:
    """The types of the statements; none where it is no SQL."""
    try:
        return [statement.type.name for statement in parser.extract_statements(sql)]
    except duckdb.Error:
        return []


def _refusal(statement_type: str, sql: str) -> QueryRefusedError:
    if statement_type == "MULTI":
        return QueryRefusedError(
            "this PIVOT is not run: without the list of its values it is several statements",
            hint="Name them: PIVOT memory_versions ON operation IN ('created', 'modified') USING count(*).",
        )
    return QueryRefusedError(f"{_first_word(sql)} is not run: {_WHY.get(statement_type, _CHANGES)}", hint=_HOW)


def _first_word(sql: str) -> str:
    encoded = sql.encode()
    start = next(offset for offset, found in duckdb.tokenize(sql) if found != duckdb.token_type.comment)
    return encoded[start:].decode().split(maxsplit=1)[0].upper().rstrip(";")[:40]


# -- the statement as a tree ---------------------------------------------------------------------


def _tree(parser: duckdb.DuckDBPyConnection, sql: str) -> Node:
    found = parser.execute(
        "SELECT json_serialize_sql($1, skip_null := true, skip_empty := true, skip_default := true)", [sql]
    ).fetchone()
    try:
        tree: Node = json.loads(found[0] if found else "{}")
    except RecursionError:
        raise QueryRefusedError("the query is nested too deeply to be checked", hint="Write it flatter.") from None
    if tree.get("error", True):
        raise QueryRefusedError(f"{_first_word(sql)} is not run: it could not be checked", hint=_HOW)
    return tree


def _cte_names(tree: Node) -> Iterator[str]:
    for node in nodes(tree):
        for entry in node.get("cte_map", {}).get("map", []):
            yield entry["key"]


# -- what is refused in it -----------------------------------------------------------------------


def _check_node(node: Node, own_names: set[str], sql: str) -> None:
    found = kind(node)
    if found.endswith("_NODE") and found not in _READING_NODES:
        word = found.removesuffix("_NODE").removesuffix("_QUERY")
        raise QueryRefusedError(f"{word} is not run, not even in a WITH: {_WRITES}", hint=_HOW)
    if found == "BASE_TABLE":
        _check_table(node, own_names, sql)
    elif found == "SHOW_REF":
        _check_shown(node)
    elif found == "TABLE_FUNCTION":
        _check_table_function(node["function"]["function_name"].lower())
    _check_function(str(node.get("function_name", "")).lower())


def _check_table(node: Node, own_names: set[str], sql: str) -> None:
    name = node["table_name"].lower()
    schema = node.get("schema_name", "").lower()
    if schema == "information_schema" and name in _CATALOGUE:
        return
    if name.startswith(_SYSTEM_PREFIXES) or schema in ("information_schema", "pg_catalog", "system"):
        raise QueryRefusedError(
            f"{node['table_name']} is not read: it tells of the machine, not of the memories",
            hint="SHOW ALL TABLES lists the tables and their columns.",
        )
    if any(mark in name for mark in "/\\.:*"):
        raise QueryRefusedError(
            f"{node['table_name']!r} is not read: SQL here reaches no files and no network", hint=TABLES_HINT
        )
    if name not in TABLES and name not in own_names:
        raise no_such_table(node["table_name"], sql, node.get("query_location"))


def _check_shown(node: Node) -> None:
    name = node.get("table_name", "").strip('"').lower()
    if name and name not in _SHOWN:
        raise QueryRefusedError(f"SHOW {name} is not run: it shows tables only", hint="SHOW TABLES lists them.")


def _check_table_function(name: str) -> None:
    if name not in _TABLE_FUNCTIONS:
        raise QueryRefusedError(
            f"{name}() is not read as a table: it could reach files, the network or settings", hint=TABLES_HINT
        )


def _check_function(name: str) -> None:
    if name in _TELLING_FUNCTIONS:
        raise QueryRefusedError(f"{name}() is not run: it tells of the machine, not of the memories", hint=TABLES_HINT)
