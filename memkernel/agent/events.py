"""What happens in a run, as frozen records handed to every subscriber in order.

    RunStarted (TurnStarted (ThinkingDelta | TextDelta)* Replied Call* TurnEnded | Notice)* RunEnded
    Call: ToolCalled (ApprovalAsked? ApprovalAnswered)? ToolReturned

A `Notice` of kind `retry` says that what its turn had streamed is dropped: the turn begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from memkernel.models import RunKind, RunStatus, Usage

Status: TypeAlias = RunStatus
# fmt: off
NoticeKind = Literal[
    "retry", "refusal", "stopped", "error", "compaction", "recording",
    "max_turns", "max_tokens", "max_total_tokens", "max_cost", "max_time",
]
# fmt: on
Decision = Literal["approved", "denied"]


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run begins. Of a `kind` that is not `live` every view says so."""

    type: ClassVar = "run_started"
    run_id: str
    prompt: str
    model: str
    kind: RunKind = "live"


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The model is asked. Turns are counted from 1; a retried turn starts again with the same number."""

    type: ClassVar = "turn_started"
    turn: int


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next words of the model's answer."""

    type: ClassVar = "text_delta"
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """The next words of the model's thinking."""

    type: ClassVar = "thinking_delta"
    text: str


@dataclass(frozen=True, slots=True)
class Replied:
    """The reply is complete. `content`: its blocks as the API's JSON, as the conversation goes on with them."""

    type: ClassVar = "replied"
    turn: int
    content: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """A tool waits until a person approves of its call, or does not: `run.approve(tool_use_id)`, `run.deny(…)`."""

    type: ClassVar = "approval_asked"
    tool_use_id: str
    name: str
    input: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ApprovalAnswered:
    """What was decided. `by`: `person`, or why nobody was asked: `policy` (never), `stop`."""

    type: ClassVar = "approval_answered"
    tool_use_id: str
    decision: Decision
    by: Literal["person", "policy", "stop"]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """A tool is about to run. `input` is what the model sent, unchecked."""

    type: ClassVar = "tool_called"
    tool_use_id: str
    name: str
    input: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """A tool ended. `content` is what the model is told, as text; `result` the same as the API's `tool_result`."""

    type: ClassVar = "tool_returned"
    tool_use_id: str
    name: str
    content: str
    is_error: bool
    duration_s: float
    result: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The turn is over, its tools included. `stop_reason` is the API's."""

    type: ClassVar = "turn_ended"
    turn: int
    stop_reason: str | None
    usage: Usage


@dataclass(frozen=True, slots=True)
class Notice:
    """One sentence that a person must see."""

    type: ClassVar = "notice"
    kind: NoticeKind
    text: str


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run is over: no event follows. `usage` is the sum of all turns."""

    type: ClassVar = "run_ended"
    run_id: str
    status: Status
    turns: int
    usage: Usage


Event: TypeAlias = (
    RunStarted
    | TurnStarted
    | TextDelta
    | ThinkingDelta
    | Replied
    | ToolCalled
    | ApprovalAsked
    | ApprovalAnswered
    | ToolReturned
    | TurnEnded
    | Notice
    | RunEnded
)
Sink: TypeAlias = Callable[[Event], None]


def joined_with(before: Event | None, event: Event) -> Event | None:
    """One event in place of two neighbouring deltas of one kind; None where they are none."""
    match before, event:
        case (TextDelta(text=said), TextDelta(text=more)):
            return TextDelta(said + more)
        case (ThinkingDelta(text=said), ThinkingDelta(text=more)):
            return ThinkingDelta(said + more)
        case _:
            return None
