"""Events of a run as the JSON that `run_events` keeps, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import Any, Final, cast, get_args

from memkernel.agent.events import Event
from memkernel.models import RunEvent, Usage

_KINDS: Final[Mapping[str, type[Event]]] = {kind.type: kind for kind in get_args(Event)}


def data_of(event: Event) -> dict[str, Any]:
    """The fields of an event as JSON; what JSON cannot hold is told as Python prints it."""
    return json.loads(json.dumps(asdict(event), default=str))


def event_of(row: RunEvent) -> Event | None:
    """The event that a row keeps.

    Returns:
        None for what another version of memkernel has written, and this one does not know.
    """
    kind = _KINDS.get(row.type)
    if kind is None:
        return None
    known = {each.name for each in fields(kind)}
    given = {name: value for name, value in row.data.items() if name in known}
    if isinstance(used := given.get("usage"), Mapping):
        given["usage"] = _usage(cast("Mapping[str, int]", used))
    try:
        return kind(**given)
    except TypeError:  # a field is missing
        return None


def events_of(rows: Iterable[RunEvent]) -> list[Event]:
    """The events of a run that are known, in their order."""
    return [event for row in rows if (event := event_of(row)) is not None]


def _usage(given: Mapping[str, int]) -> Usage:
    return Usage(**{each.name: given.get(each.name, 0) for each in fields(Usage)})
