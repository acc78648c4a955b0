"""What a request may bring, as tables: they read it, and they are its part of the OpenAPI document (CONTRACT B.1, B.2).

A table says what a value looks like in JSON or in a query; what it may be is asked of the record layer's own checks.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NoReturn, cast
from urllib.parse import parse_qsl

from memkernel.errors import InvalidInputError
from memkernel.store import checks

Json = dict[str, Any]
Schema = dict[str, Any]

STORABLE: Final = r"^[^\x00]*$"
ONE_LINE: Final = r"^[^\x00-\x1f\x7f-\x9f]*$"

_MAX_PARAMETERS: Final = 1_000
_INTEGER: Final = re.compile(r"-?[0-9]{1,15}")
_MOMENT: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,6})\d*)?(Z|[-+ ]\d\d:\d\d)?", re.ASCII | re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Kind:
    """What a value must be.

    Attributes:
        read: (the field's name, the value) -> the value that the handler gets, or an InvalidInputError.
        schema: the same as JSON Schema says it.
        repeated: a query's key may stand there several times; `read` gets a list.
    """

    read: Callable[[str, Any], Any]
    schema: Schema
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """A member of a body, or a query's parameter."""

    name: str
    kind: Kind
    required: bool = False

    @property
    def argument(self) -> str:
        """The name as Python writes it: `created_at[gte]` is `created_at_gte`."""
        return self.name.replace("[]", "").replace("[", "_").replace("]", "")


# -- kinds -----------------------------------------------------------------------------------------


def text(check: Callable[[Any], Any] | None = None, *, pattern: str | None = STORABLE, **schema: Any) -> Kind:
    """A string; `check` says what it may be, and `pattern` tells as much of that as a regular expression can."""

    def read(name: str, value: Any) -> Any:
        if not isinstance(value, str):
            raise InvalidInputError(f"{name} is {_kind(value)}; it must be a string")
        return _checked(name, check, value) if check else checks.storable(name, value)

    return Kind(read, {"type": "string", **({"pattern": pattern} if pattern else {}), **schema})


def one_of(*words: str, **schema: Any) -> Kind:
    """One of a few words."""
    return Kind(
        lambda name, value: checks.one_of(name, value, words), {"type": "string", "enum": list(words), **schema}
    )


def integer(check: Callable[[Any], int], **schema: Any) -> Kind:
    """A whole number in a query."""

    def read(name: str, value: str) -> int:
        return _checked(name, check, int(value) if _INTEGER.fullmatch(value) else value)

    return Kind(read, {"type": "integer", **schema})


def _flag(name: str, value: str) -> bool:
    if value not in ("true", "false"):
        raise InvalidInputError(f"{name} is {value!r}; it must be true or false")
    return value == "true"


def _moment(name: str, value: str) -> datetime:
    found = _MOMENT.fullmatch(value)
    if found:
        day, clock, fraction, zone = found.groups()
        zone = (zone or "Z").upper().replace(" ", "+")  # a + that was not percent-encoded arrives as a space
        try:
            return datetime.fromisoformat(f"{day}T{clock}.{fraction or '0':<06}{zone}")
        except ValueError:
            pass
    raise InvalidInputError(f"{name} is {value!r}; it must be a time like 2026-08-01T12:00:00Z")


def _sha256(name: str, value: Any) -> str:
    checks.sha256(name, value)
    return value


SHA256: Final = Kind(_sha256, {"type": "string", "pattern": "^[0-9a-f]{64}$"})
FLAG: Final = Kind(_flag, {"type": "boolean"})
MOMENT: Final = Kind(_moment, {"type": "string", "format": "date-time"})


def nullable(kind: Kind) -> Kind:
    """The same, or null."""
    return Kind(lambda name, value: None if value is None else kind.read(name, value), or_null(kind.schema))


def or_null(schema: Schema) -> Schema:
    """What this schema describes, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def each(kind: Kind) -> Kind:
    """A list; in a query, a key that may be repeated."""

    def read(name: str, value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise InvalidInputError(f"{name} is {_kind(value)}; it must be an array")
        label = name.removesuffix("[]")
        return [kind.read(f"{label}[{index}]", item) for index, item in enumerate(cast(list[Any], value))]

    return Kind(read, {"type": "array", "items": kind.schema}, repeated=True)


def record(*fields: Field) -> Kind:
    """An object with these members and no others."""
    return Kind(lambda name, value: _members(value, fields, name), object_schema(fields))


def object_schema(fields: tuple[Field, ...]) -> Schema:
    """An object with these members, as JSON Schema says it."""
    required = [field.name for field in fields if field.required]
    return {
        "type": "object",
        "properties": {field.name: field.kind.schema for field in fields},
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def _checked(name: str, check: Callable[[Any], Any], value: Any) -> Any:
    try:
        return check(value)
    except InvalidInputError as error:
        if str(error).startswith(name):
            raise
        raise InvalidInputError(f"{name}: {error}") from None


# -- bodies ----------------------------------------------------------------------------------------


def read_body(body: bytes, fields: tuple[Field, ...]) -> Json:
    """The checked members of a JSON body; an empty body is `{}`.

    Raises:
        InvalidInputError: it is no JSON object, or a member is malformed, missing or unknown; the sentence names it.
    """
    return _members(_decoded(body) if body.strip() else {}, fields)


def _members(value: Any, fields: tuple[Field, ...], of: str = "") -> Json:
    if not isinstance(value, dict):
        raise InvalidInputError(f"{of or 'the body'} is {_kind(value)}; it must be an object")
    members, found = dict(cast(Json, value)), Json()
    for field in fields:
        name = f"{of}.{field.name}" if of else field.name
        if field.name in members:
            found[field.argument] = field.kind.read(name, members.pop(field.name))
        elif field.required:
            raise InvalidInputError(f"{name} is missing")
    for name in members:
        raise InvalidInputError(f"{name!r} is not a field of {of or 'this request'}")
    return found


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(
            body.decode(), object_pairs_hook=_without_twins, parse_constant=_no_number, parse_float=_finite
        )
    except UnicodeDecodeError:
        raise InvalidInputError("the body is not UTF-8") from None
    except InvalidInputError:
        raise
    except RecursionError:
        raise InvalidInputError("the body is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise InvalidInputError(f"the body is not JSON: {error}") from None
    except ValueError:
        raise InvalidInputError("the body holds a number that is too large") from None


def _without_twins(pairs: list[tuple[str, Any]]) -> Json:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        twin = next(name for name, _ in pairs if name in seen or seen.add(name))
        raise InvalidInputError(f"{twin!r} stands twice in the body")
    return members


def _no_number(word: str) -> NoReturn:
    raise InvalidInputError(f"the body holds {word}, which is not JSON")


def _finite(digits: str) -> float:
    if math.isinf(number := float(digits)):
        raise InvalidInputError("the body holds a number that is too large")
    return number


_KINDS: Final[Mapping[type, str]] = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}


def _kind(value: Any) -> str:
    return _KINDS[type(value)]


# -- queries ---------------------------------------------------------------------------------------


def read_query(query: str, fields: tuple[Field, ...]) -> Json:
    """The checked parameters of a query; unknown ones are ignored.

    Raises:
        InvalidInputError: a parameter is malformed, or one of a kind stands there twice; the sentence names it.
    """
    if not query or not fields:
        return {}
    sent = _parameters(query)
    found = Json()
    for field in fields:
        values = sent.get(field.name)
        if values is None:
            continue
        if not field.kind.repeated and len(values) > 1:
            raise InvalidInputError(f"{field.name} stands twice in the query")
        found[field.argument] = field.kind.read(field.name, values if field.kind.repeated else values[0])
    return found


def _parameters(query: str) -> dict[str, list[str]]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=_MAX_PARAMETERS)
    except UnicodeDecodeError:
        raise InvalidInputError("the query is not UTF-8") from None
    except ValueError:
        raise InvalidInputError(f"the query has more than {_MAX_PARAMETERS:,} parameters") from None
    sent: dict[str, list[str]] = {}
    for name, value in pairs:
        sent.setdefault(name, []).append(value)
    return sent


# -- what several routes share -----------------------------------------------------------------------


def _metadata(check: Callable[[Any], Any], value_type: str | list[str]) -> Kind:
    schema = {
        "type": "object",
        "additionalProperties": {
            "type": value_type,
            "pattern": STORABLE,
            "maxLength": checks.MAX_METADATA_VALUE_CHARS,
        },
        "propertyNames": {"pattern": STORABLE, "minLength": 1, "maxLength": checks.MAX_METADATA_KEY_CHARS},
        "maxProperties": checks.MAX_METADATA_PAIRS,
    }
    if check is checks.metadata_patch:
        del schema["maxProperties"]  # it counts in the result
    return Kind(lambda name, value: _checked(name, check, value), schema)


METADATA: Final = _metadata(checks.metadata, "string")
METADATA_PATCH: Final = _metadata(checks.metadata_patch, ["string", "null"])
VIEW_BASIC: Final = Field("view", one_of("basic", "full", default="basic"))
VIEW_FULL: Final = Field("view", one_of("basic", "full", default="full"))
LIMIT: Final = Field("limit", integer(checks.limit, minimum=1, maximum=checks.MAX_PAGE, default=20))
PAGE: Final = Field("page", text(pattern="^page_"))
