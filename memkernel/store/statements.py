"""Statements and their parameters, in PostgreSQL's binary format, on psycopg's own libpq connection.

A psycopg cursor costs 25-60 us a call (PERFORMANCE A); a prepared statement with hand-packed parameters does not.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, LiteralString

from memkernel.errors import InvalidInputError

Parameter = str | bytes | bool | int | datetime | Sequence[str] | None

EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_TEXT_OID: Final = 25


@dataclass(frozen=True, slots=True)
class Statement:
    """One SQL statement. With a name it is prepared once a connection; without, it is planned each time."""

    name: bytes
    sql: bytes


def prepared(name: LiteralString, sql: LiteralString) -> Statement:
    """A statement that is worth keeping: its plan does not depend on its values."""
    return Statement(name.encode(), sql.encode())


def planned(sql: LiteralString) -> Statement:
    """A statement that is planned for its values: a listing with its filters, its bounds and its limit."""
    return Statement(b"", sql.encode())


def conditions(table: Mapping[str, str], filters: Mapping[str, Parameter], values: list[Parameter]) -> list[str]:
    """The conditions of a listing for those filters that are asked for (not None); `values` gets theirs.

    Args:
        table: a condition by filter, with `{0}` for its value.
        filters: the values asked for.
        values: of the statement so far.
    """
    asked = {name: value for name, value in filters.items() if value is not None}
    first = len(values) + 1
    values += asked.values()
    return [table[name].format(f"${number}") for number, name in enumerate(asked, first)]


def encode(value: Parameter) -> bytes | None:
    """A parameter in binary. Every integer travels as a bigint.

    Raises:
        InvalidInputError: a text that PostgreSQL cannot hold (U+0000, a lone surrogate).
    """
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, bool):
        return b"\x01" if value else b"\x00"
    if isinstance(value, int):
        return value.to_bytes(8, signed=True)
    if isinstance(value, datetime):
        return micros(value).to_bytes(8, signed=True)
    return _text_array(value)


def micros(moment: datetime) -> int:
    """A time as PostgreSQL counts it: microseconds since 2000-01-01 UTC."""
    return (moment - EPOCH) // _MICROSECOND


def _text(value: str) -> bytes:
    if "\0" in value:
        raise InvalidInputError(f"{value!r} holds U+0000")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise InvalidInputError(f"{value!r} holds a lone surrogate") from None


def _text_array(values: Sequence[str]) -> bytes:
    if not values:
        return struct.pack("!iiI", 0, 0, _TEXT_OID)
    parts = [struct.pack("!iiIii", 1, 0, _TEXT_OID, len(values), 1)]
    for value in values:
        encoded = _text(value)
        parts += (len(encoded).to_bytes(4), encoded)
    return b"".join(parts)
