"""What a query reads: the tables and columns that its tree can see. Pure.

The tree is DuckDB's own (`json_serialize_sql`). Nearly all bytes of a history are in `content`,
and most queries do not look at it, so only the columns that can be seen are loaded. Where that is
not certain, all are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

from memkernel.analytics.tables import TABLES

Node = dict[str, Any]

_UNNAMED: Final = frozenset({"PIVOT", "POSITIONAL_REFERENCE", "STAR"})


def nodes(tree: object, *, within: bool = False) -> Iterator[Node]:
    """Every object of the tree; `within` leaves out the SELECTs below the one given."""
    waiting = [tree]
    while waiting:
        thing = waiting.pop()
        if isinstance(thing, dict):
            node = cast(Node, thing)
            if within and kind(node) == "SELECT_NODE" and node is not tree:
                continue
            yield node
            waiting.extend(node.values())
        elif isinstance(thing, list):
            waiting.extend(cast(list[object], thing))


def kind(node: Node) -> str:
    """The node's type; `""` for objects that are none."""
    found = node.get("type")
    return found if isinstance(found, str) else ""  # a value's type is an object


def columns_by_table(tree: object) -> dict[str, tuple[str, ...]]:
    """For each table that the query reads, the columns that it can see; at least one."""
    read = list(_read_nodes(tree))
    tables = {_table(node) for node in read}
    names = None if _sees_all(tree, read) else set(_names(read))
    return {table: _visible(table, names) for table in TABLES if table in tables}


def _read_nodes(tree: object) -> Iterator[Node]:
    """All nodes but those that DESCRIBE and SHOW only describe."""
    described = {id(node) for shown in nodes(tree) if _describes(shown) for node in nodes(shown)}
    return (node for node in nodes(tree) if id(node) not in described)


def _describes(node: Node) -> bool:
    return kind(node) == "SHOW_REF" and node.get("show_type") != "SUMMARY"


def _visible(table: str, names: set[str] | None) -> tuple[str, ...]:
    columns = tuple(TABLES[table])
    if names is None:
        return columns
    return tuple(column for column in columns if column in names) or columns[:1]


def _sees_all(tree: object, read: list[Node]) -> bool:
    """Whether columns can be seen without being named: by *, by position, or as a whole row."""
    rows = {str(node.get("alias", _table(node))).lower() for node in read if _table(node)}
    return (
        any(kind(node) == "SHOW_REF" or _schema(node) == "information_schema" for node in nodes(tree))
        or any(_is_row(node, rows) for node in read)
        or any(_sees_all_of_its_tables(select) for select in read if kind(select) == "SELECT_NODE")
    )


def _is_row(node: Node, rows: set[str]) -> bool:
    """`m` or `m.*` of a table m, which an inner SELECT may use too."""
    name = node.get("relation_name", "") if kind(node) == "STAR" else node.get("column_names", [""])[-1]
    return name.lower() in rows


def _sees_all_of_its_tables(select: Node) -> bool:
    own = list(nodes(select, within=True))
    return any(_table(node) for node in own) and any(
        kind(node) in _UNNAMED or node.get("ref_type") == "NATURAL" or "column_name_alias" in node for node in own
    )


def _names(read: list[Node]) -> Iterator[str]:
    for node in read:
        for name in [*node.get("column_names", []), *node.get("using_columns", [])]:
            yield name.lower()


def _table(node: Node) -> str:
    """The table of this database that the node names; `""` for all other nodes."""
    name = node["table_name"].lower() if kind(node) == "BASE_TABLE" else ""
    return name if name in TABLES else ""


def _schema(node: Node) -> str:
    return str(node.get("schema_name", "")).lower()
