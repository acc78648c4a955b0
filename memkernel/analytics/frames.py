"""Records -> DataFrames: a column per field, with types that hold for an empty list too."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime
from typing import Any, Final, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import pandas as pd

Kinds = type | Sequence[type]

# What pandas itself makes of texts: its own string type since pandas 3, objects before.
_TEXT: Final = pd.Series(["text"]).dtype

# For a value's type: the type of a column without and with gaps.
_DTYPES: Final[dict[type, tuple[Any, Any]]] = {
    str: (_TEXT, _TEXT),
    bool: ("bool", "boolean"),
    int: ("int64", "Int64"),
    float: ("float64", "float64"),
    datetime: ("datetime64[us, UTC]", "datetime64[us, UTC]"),
    date: ("datetime64[us]", "datetime64[us]"),
}


def frame(records: Iterable[Any], kind: Kinds | None = None) -> pd.DataFrame:
    """A DataFrame with a row per record and a column per field.

    A field that holds a record, such as `created_by`, becomes a column for each of its fields
    (`created_by_type`, `created_by_id`). Times are UTC timestamps, whole numbers with gaps are
    `Int64`, metadata stay dicts. Where there are several kinds of records, the first column is
    `type`, and what a kind has not is missing.

    Args:
        records: memory stores, memories and prefixes, versions, or any other dataclass instances.
        kind: their class, or classes. It settles the columns; without it, the records do.
    """
    rows = list(records)
    kinds = _kinds(rows, kind)
    columns: dict[str, pd.Series[Any]] = {}
    if len(kinds) > 1:
        columns["type"] = series([_type_name(row) for row in rows], str)
    for path, (value_type, nullable) in _merged(kinds).items():
        values = [_value(row, path) for row in rows]
        columns["_".join(path)] = series(values, value_type, nullable=nullable)
    return pd.DataFrame(columns)


def series(values: Sequence[Any], value_type: type | None, *, nullable: bool = True) -> pd.Series[Any]:
    """A column of values of one type; None is a gap. Other types stay objects, and so does what a type cannot hold."""
    if value_type in _DTYPES:
        with suppress(OverflowError, TypeError, ValueError):
            return pd.Series(values, dtype=_DTYPES[value_type][nullable])
    return pd.Series(values, dtype="object")


def _kinds(rows: list[Any], kind: Kinds | None) -> list[type]:
    given = [] if kind is None else [kind] if isinstance(kind, type) else list(kind)
    return list(dict.fromkeys([*given, *map(type, rows)]))


def _type_name(record: object) -> str:
    """The SDK's name of the type (`memory`, `memory_prefix`), or the class's own."""
    return getattr(record, "type", type(record).__name__)


class _Column(NamedTuple):
    value_type: type | None
    nullable: bool


_Path = tuple[str, ...]


def _merged(kinds: Sequence[type]) -> dict[_Path, _Column]:
    """The columns of all kinds; those that only some have are nullable."""
    each = [dict(_columns(kind)) for kind in kinds]
    paths = dict.fromkeys(path for columns in each for path in columns)
    return {path: _merge([columns.get(path) for columns in each]) for path in paths}


def _merge(found: list[_Column | None]) -> _Column:
    there = [column for column in found if column is not None]
    value_types = {column.value_type for column in there}
    nullable = len(there) < len(found) or any(column.nullable for column in there)
    return _Column(value_types.pop() if len(value_types) == 1 else None, nullable)


def _columns(kind: type, above: _Path = (), *, nullable: bool = False) -> Iterator[tuple[_Path, _Column]]:
    hints = _hints(kind)
    for field in dataclasses.fields(kind):
        value_type, optional = _plain_type(hints.get(field.name))
        path = (*above, field.name)
        if dataclasses.is_dataclass(value_type):
            yield from _columns(value_type, path, nullable=nullable or optional)
        else:
            yield path, _Column(value_type, nullable or optional)


def _hints(kind: type) -> dict[str, Any]:
    try:
        return get_type_hints(kind)
    except NameError:  # a name that only the type checker imports
        return {}


def _plain_type(hint: Any) -> tuple[type | None, bool]:
    """An annotation's class, where it has one, and whether None is allowed."""
    if get_origin(hint) in (Union, types.UnionType):
        options = [option for option in get_args(hint) if option is not types.NoneType]
        inner, _ = _plain_type(options[0]) if len(options) == 1 else (None, False)
        return inner, len(options) < len(get_args(hint))
    if get_origin(hint) is Literal:
        found: set[type] = {type(value) for value in get_args(hint)}
        return (found.pop() if len(found) == 1 else None), False
    return (hint if isinstance(hint, type) else None), False


def _value(row: Any, path: _Path) -> Any:
    for name in path:
        row = getattr(row, name, None)
    return row
