"""How a person names a version: `@3`, `@-1`, `@head`, `@memver_…`, `@2026-11-30T10:00`, or the objects."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias

from memkernel import ids
from memkernel.errors import InvalidInputError, VersionNotFoundError
from memkernel.models import MemoryVersion, View

if TYPE_CHECKING:  # `%load_ext` comes here for the grammar, and psycopg takes longer to import than IPython
    from memkernel.store import Database

VersionSpec: TypeAlias = "int | str | datetime | MemoryVersion"
"""An ordinal (1 is the first, -1 the head's predecessor), `"head"`, a version's id, a moment or a version."""

_ORDINAL = re.compile(r"-?[0-9]{1,9}")
_HEAD = "head"
_FORMS = "A version is @3, @-1, @head, @memver_… or @2026-11-30T10:00."


def parse_version(spec: VersionSpec) -> int | str | datetime:
    """The spec as an ordinal, `"head"`, a `memver_` id or an aware moment; a leading `@` is left out.

    A moment without a zone is UTC, as everywhere in memkernel.

    Raises:
        InvalidInputError: the text is none of these, or the ordinal is 0.
    """
    if isinstance(spec, MemoryVersion):
        return spec.id
    if isinstance(spec, datetime):
        return _aware(spec)
    if isinstance(spec, str):
        return _parse_text(spec.removeprefix("@"))
    return _ordinal(spec)


def is_version(text: str) -> bool:
    """Whether `parse_version` would take the text."""
    try:
        parse_version(text)
    except InvalidInputError:
        return False
    return True


def _parse_text(text: str) -> int | str | datetime:
    if text == _HEAD or ids.is_id("memver", text):
        return text
    if _ORDINAL.fullmatch(text):
        return _ordinal(int(text))
    try:
        return _aware(datetime.fromisoformat(text))
    except ValueError:
        raise InvalidInputError(f"{text!r} names no version", hint=_FORMS) from None


def _ordinal(number: int) -> int:
    if type(number) is not int:  # a float or a bool counts nothing
        raise InvalidInputError(f"{number!r} names no version", hint=_FORMS)
    if number == 0:
        raise InvalidInputError("versions are counted from 1", hint="@1 is the first, @-1 the one before the head.")
    return number


def _aware(moment: datetime) -> datetime:
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise InvalidInputError(f"{moment} is outside the calendar in UTC", hint=_FORMS) from None


def find_version(
    database: Database, memory_store_id: str, path: str, spec: VersionSpec, *, view: View = "full"
) -> MemoryVersion:
    """The version of the memory at a path that the spec names (CONTRACT 0.3, row 19).

    An id names a version whatever its path is now.

    Raises:
        InvalidInputError: the spec is none.
        VersionNotFoundError: there is no such version.
    """
    parsed = parse_version(spec)
    versions = database.memory_versions
    if isinstance(parsed, datetime):
        return versions.at_time(memory_store_id, path, parsed, view=view)
    if isinstance(parsed, int):
        return versions.at_ordinal(memory_store_id, path, parsed, view=view)
    if parsed != _HEAD:
        return versions.retrieve(parsed, memory_store_id=memory_store_id, view=view)
    newest = versions.list(memory_store_id, path=path, view=view, limit=1).data
    if not newest:
        raise VersionNotFoundError("@head", path)
    return newest[0]


def version_before(database: Database, version: MemoryVersion, *, view: View = "full") -> MemoryVersion | None:
    """The version before this one in its lineage; None before the first.

    Raises:
        HistoryPrunedError: it was pruned.
    """
    if version.ordinal == 1:
        return None
    return database.memory_versions.before(version.id, memory_store_id=version.memory_store_id, view=view)
