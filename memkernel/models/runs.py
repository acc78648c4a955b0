"""Runs of an agent as records: how they stand, what they used, and what happened in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

RunKind = Literal["live", "scripted", "recorded"]
"""Who answers: a language model, a script in its place, or a recording of an earlier run."""

# fmt: off
RunStatus = Literal[
    "running", "done", "stopped", "error", "refused", "lost",
    "max_turns", "max_tokens", "max_total_tokens", "max_cost", "max_time",
]
# fmt: on
"""`max_tokens` (the API's word): a reply was cut off. `lost`: its process ended while it ran."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the API counted them; `input_tokens` leaves out what the cache read or took in."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """All of them."""
        return self.input_tokens + self.output_tokens + self.cache_read_input_tokens + self.cache_creation_input_tokens

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
class RunRecord:
    """A run as PostgreSQL keeps it.

    Attributes:
        id: `run_…`; the `Cause.run_id` of every version that it made.
        session_id: the actor of those versions.
        memory_store_ids: the stores that it works with, its memory tool's first.
        previous_run_id: the run whose conversation it goes on with; None where it began one, or was given messages.
        cost_usd: in US dollars; None where the model has no known price.
        error: what it failed with, in one line; "" else.
        seen_at: when its process last wrote to it, or said that it goes on.
    """

    id: str
    session_id: str
    kind: RunKind
    model: str
    prompt: str
    status: RunStatus
    turns: int
    stop_reason: str | None
    usage: Usage
    cost_usd: float | None
    memory_store_ids: tuple[str, ...]
    previous_run_id: str | None
    error: str
    started_at: datetime
    seen_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class RunEvent:
    """One thing that happened in a run: an event of `memkernel.agent.events` by its `type`, its fields as JSON."""

    n: int
    type: str
    data: Mapping[str, Any]
    at: datetime
