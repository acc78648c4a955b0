"""Runs of an agent as records: how they ended, what they used and cost; alone and in lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from memkernel.models import Cause, MemoryVersion, RunKind, RunRecord, RunStatus, Usage
from memkernel.render.cells import Cell, code, counted, moment
from memkernel.render.lists import row_of
from memkernel.render.marks import one_line
from memkernel.render.reports import duration_text
from memkernel.render.tables import facts_html, facts_text
from memkernel.render.things import html_of, text_of

RUN_WORDS: Final[Mapping[RunStatus, str]] = {
    "running": "running",
    "done": "done",
    "stopped": "stopped by the user",
    "error": "failed",
    "refused": "refused",
    "max_turns": "out of turns",
    "max_tokens": "cut off",
    "max_total_tokens": "out of tokens",
    "max_cost": "out of budget",
    "max_time": "out of time",
    "lost": "lost: its kernel ended",
}
"""How a run stands, as a person reads it."""

_NO_MODEL: Final[frozenset[RunKind]] = frozenset({"scripted", "recorded"})
_PROMPT_CHARACTERS: Final = 400


def dollars_text(cost_usd: float | None) -> str:
    """`$1.50`, `$0.0042`; nothing for None, which is no known price."""
    if cost_usd is None:
        return ""
    if cost_usd == 0:
        return "$0"
    if cost_usd < 0.000_05:
        return "under $0.0001"
    return f"${cost_usd:,.2f}" if cost_usd >= 0.1 else f"${cost_usd:.4f}"


def dollars(cost_usd: float | None) -> Cell:
    """The same as a cell of a table; exactly in its title."""
    title = "no price is known for the model" if cost_usd is None else f"{cost_usd:.6f} US dollars"
    return Cell(dollars_text(cost_usd), title, is_number=True)


def tokens(usage: Usage) -> Cell:
    """How many tokens there were, and which in the title."""
    return Cell(f"{usage.total_tokens:,}", str(usage), is_number=True)


def who_answered(model: str, kind: RunKind) -> str:
    """`claude-sonnet-5-5`, `claude-sonnet-5-5, recorded`, `scripted`"""
    return f"{model}, {kind}" if kind in _NO_MODEL and model != kind else model


def caused_row(version: MemoryVersion, cause: Cause | None) -> Mapping[str, object]:
    """A version as a row of a table, with the run and the tool call that made it."""
    made_by = cause or Cause("", "")
    return {**row_of(version), "run": code(made_by.run_id), "call": code(made_by.tool_use_id)}


@row_of.register
def _(record: RunRecord) -> Mapping[str, object]:
    return {
        "started": moment(record.started_at),
        "status": Cell(RUN_WORDS[record.status], record.error),
        "model": who_answered(record.model, record.kind),
        "turns": record.turns,
        "tokens": tokens(record.usage),
        "cost": dollars(record.cost_usd),
        "prompt": record.prompt,
        "id": code(record.id),
    }


@text_of.register
def _(thing: RunRecord) -> str:
    return facts_text(_title(thing), _facts(thing))


@html_of.register
def _(thing: RunRecord) -> str:
    return facts_html(_title(thing), _facts(thing))


def _title(record: RunRecord) -> str:
    return f"{record.id} · {RUN_WORDS[record.status]}"


def _facts(record: RunRecord) -> Iterator[tuple[str, object]]:
    yield "prompt", one_line(record.prompt, _PROMPT_CHARACTERS)
    yield "model", who_answered(record.model, record.kind)
    yield "turns", record.turns
    yield "used", str(record.usage)
    yield "cost", dollars_text(record.cost_usd) or "unknown: no price is known for the model"
    yield "started", moment(record.started_at)
    if record.ended_at is not None:
        yield "took", duration_text((record.ended_at - record.started_at).total_seconds())
    if record.error:
        yield "error", record.error
    if record.stop_reason:
        yield "stop reason", record.stop_reason
    if record.memory_store_ids:
        yield counted(len(record.memory_store_ids), "store").partition(" ")[2], code(", ".join(record.memory_store_ids))
    if record.previous_run_id:
        yield "goes on with", code(record.previous_run_id)
    yield "session", code(record.session_id)
