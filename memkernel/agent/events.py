"""What happens in a run, as frozen records handed to every subscriber in order.

    RunStarted (TurnStarted (ThinkingDelta | TextDelta)* (ToolCalled ToolReturned)* TurnEnded | Notice)* RunEnded

A `Notice` of kind `retry` says that what its turn had streamed is dropped: the turn begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

Status = Literal["running", "done", "stopped", "error", "refused", "max_turns", "max_tokens"]
NoticeKind = Literal["retry", "refusal", "max_tokens", "max_turns", "stopped", "error"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the API counted them; `input_tokens` leaves out what the cache read or took in."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_input_tokens + other.cache_read_input_tokens,
            self.cache_creation_input_tokens + other.cache_creation_input_tokens,
        )

    def __str__(self) -> str:
        cached = self.cache_read_input_tokens + self.cache_creation_input_tokens
        kept = f", {cached:,} through the cache" if cached else ""
        return f"{self.input_tokens:,} tokens in, {self.output_tokens:,} out{kept}"


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run begins. `scripted`: a script answers in place of a language model, and every view says so."""

    type: ClassVar = "run_started"
    run_id: str
    prompt: str
    model: str
    scripted: bool


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
class ToolCalled:
    """A tool is about to run. `input` is what the model sent, unchecked."""

    type: ClassVar = "tool_called"
    tool_use_id: str
    name: str
    input: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """A tool ended. `content` is what the model is told, as text."""

    type: ClassVar = "tool_returned"
    tool_use_id: str
    name: str
    content: str
    is_error: bool
    duration_s: float


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
    RunStarted | TurnStarted | TextDelta | ThinkingDelta | ToolCalled | ToolReturned | TurnEnded | Notice | RunEnded
)
Sink: TypeAlias = Callable[[Event], None]
