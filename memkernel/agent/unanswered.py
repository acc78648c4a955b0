"""What the model is told of a call that has no result: whether it ran, and what became of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, Final, Literal, cast

from memkernel.models import RunStatus

Fate = Literal["saved", "unchanged", "unknown"]
"""What is known of a call that was broken off: a change of it is in memory, it changed nothing, or neither is sure."""

CUT_OFF: Final = "Not run: the reply was cut off before the call was complete."
NOT_REACHED: Final = "Not run: the run ended before it."

_NOT_RUN: Final[Mapping[RunStatus, str]] = {
    "stopped": "Stopped by the user before this ran.",
    "max_time": "Stopped at its time limit before this ran.",
    "error": "Not run: the run failed before this.",
}
_BROKEN_OFF: Final[Mapping[RunStatus, str]] = {
    "stopped": "Stopped by the user while this ran",
    "max_time": "Stopped at its time limit while this ran",
    "error": "The run failed while this ran",
    "lost": "The process that ran this ended in the middle of it",
}
_FATES: Final[Mapping[Fate, str]] = {
    "saved": "the change was saved",
    "unchanged": "nothing was changed",
    "unknown": "it is unknown whether it took effect",
}
_MEMORY: Final = "memory"


def not_run(status: RunStatus) -> str:
    """Of a call that never began, by how its run ended."""
    return _NOT_RUN.get(status, NOT_REACHED)


def broken_off(status: RunStatus, fate: Fate) -> str:
    """Of a call that had begun, by how its run ended."""
    return f"{_BROKEN_OFF[status]}; {_FATES[fate]}."


def only_reads(call: Mapping[str, Any], reading: Set[str] = frozenset()) -> bool:
    """Whether the call can change nothing.

    Args:
        call: the `tool_use` block.
        reading: the names of tools that only read.
    """
    return call["name"] in reading or (call["name"] == _MEMORY and _command(call) == "view")


def fate(call: Mapping[str, Any], *, is_saved: bool | None) -> Fate:
    """What became of a call that was broken off, and does not only read.

    Args:
        call: the `tool_use` block.
        is_saved: whether a version that it caused is in memory, once and for all; None where nobody could be asked.
    """
    if is_saved:
        return "saved"
    # The memory tool does nothing besides; any other tool may have done what no store knows of.
    return "unchanged" if is_saved is False and call["name"] == _MEMORY else "unknown"


def _command(call: Mapping[str, Any]) -> object:
    given: object = call["input"]  # whatever the model sent
    return cast("Mapping[str, object]", given).get("command") if isinstance(given, Mapping) else None
