"""How a person names a point of a store's history: `@41`, `@-1`, `@2026-11-30T10:00`, `yesterday`, or the objects."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from memkernel.errors import InvalidInputError
from memkernel.handle.versions import parse_version
from memkernel.models import MemoryVersion, Point

if TYPE_CHECKING:
    from memkernel.store import Database


class Pinned(Protocol):
    """What stands at one point, as a snapshot does."""

    @property
    def point(self) -> Point:
        """Where it stands."""
        ...


PointSpec: TypeAlias = "int | str | datetime | MemoryVersion | Point | Pinned"
"""A change's number (0 is before the first, -1 before the newest), a moment, a version, or what is at a point."""

_FORMS: Final = "A point is @41 (after the store's change 41), @-1, @memver_…, @2026-11-30T10:00, today or yesterday."
DAYS: Final = {"today": 0, "yesterday": 1}


def parse_point(spec: PointSpec) -> int | str | datetime | None:
    """The spec as a change's number, a `memver_` id or an aware moment; None is `head`, after the newest change.

    A moment without a zone is UTC, and so are today and yesterday, which begin at midnight.

    Raises:
        InvalidInputError: it is none of these.
    """
    pinned = _pinned(spec)
    if pinned is not None:
        return pinned.seq
    text = spec.removeprefix("@") if isinstance(spec, str) else ""
    if text in DAYS:
        return _midnight(datetime.now(UTC)) - timedelta(days=DAYS[text])
    if text == "0" or (spec == 0 and type(spec) is int):  # no version's number, but a point
        return 0
    if not isinstance(spec, int | str | datetime | MemoryVersion):
        raise InvalidInputError(f"{spec!r} names no point of a store's history", hint=_FORMS)
    try:
        found = parse_version(spec)
    except InvalidInputError:
        raise InvalidInputError(f"{spec!r} names no point of a store's history", hint=_FORMS) from None
    return None if found == "head" else found


def is_point(text: str) -> bool:
    """Whether `parse_point` would take the text."""
    try:
        parse_point(text)
    except InvalidInputError:
        return False
    return True


def find_point(database: Database, memory_store_id: str, spec: PointSpec) -> Point:
    """The point of the store's history that the spec names.

    Raises:
        InvalidInputError: the spec is none, or the store has no such change.
        VersionNotFoundError: no version of the store has this id.
        HistoryPrunedError: what was there then was pruned.
    """
    pinned = _pinned(spec)
    if pinned is not None and pinned.memory_store_id != memory_store_id:
        raise InvalidInputError(
            f"change {pinned.seq} of {pinned.memory_store_id} is no point of {memory_store_id}",
            hint="Two points of one store are compared.",
        )
    asked = parse_point(spec)
    if isinstance(asked, str):
        asked = database.memory_versions.retrieve(asked, memory_store_id=memory_store_id, view="basic").seq
    return database.timeline.point(memory_store_id, asked)


def _pinned(spec: object) -> Point | None:
    point = spec if isinstance(spec, Point) else getattr(spec, "point", None)
    return point if isinstance(point, Point) else None


def _midnight(time: datetime) -> datetime:
    return time.replace(hour=0, minute=0, second=0, microsecond=0)
