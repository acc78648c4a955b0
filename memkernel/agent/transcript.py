"""A run's events as something to read: while they come, as text; afterwards as text or HTML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TextIO, TypeAlias

from memkernel.agent.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Event,
    Notice,
    Replied,
    RunEnded,
    RunStarted,
    Status,
    TextDelta,
    ThinkingDelta,
    ToolCalled,
    ToolReturned,
    TurnEnded,
    TurnStarted,
)
from memkernel.models import RunKind
from memkernel.render import (
    RUN_WORDS,
    TranscriptEntry,
    counted,
    dollars_text,
    transcript_html,
    transcript_text,
    visible,
)

BADGES: Final[dict[RunKind, str]] = {
    "live": "",
    "scripted": "scripted, not a language model",
    "recorded": "recorded, no model answers now",
}

SHOWN_AGAIN: Final = "shown again, nothing runs now"
"""The badge of a run that is shown from its record."""

_NEWS: Final = frozenset({"recording", "compaction"})
"""Notices of what is as it should be."""

WAITS: Final = "waits for your approval"
_DENIED: Final = {"person": "denied", "policy": "not allowed", "stop": "not run"}
_TELLING: Final[Mapping[str, Sequence[str]]] = {
    "memory": ("command", "path", "old_path", "new_path"),
    "bash": ("command",),
    **dict.fromkeys(("read", "write", "edit"), ("file_path",)),
    **dict.fromkeys(("glob", "grep"), ("pattern", "path")),
}
"""Which fields of a call say in a line what it does."""

_PREVIEW_LINES, _PREVIEW_CHARS = 6, 160
_NOTHING_MADE: Mapping[str, Sequence[str]] = {}


Made: TypeAlias = Mapping[str, Sequence[str]]
"""The id of a call -> a line for each version that it made."""


def as_text(
    events: Sequence[Event], made: Made = _NOTHING_MADE, *, cost_usd: float | None = None, badge: str | None = None
) -> str:
    """The run as plain text, at most 60 lines. `badge` takes the place of what its kind says."""
    said = entries(events, made)
    badge = _badge(events) if badge is None else badge
    return transcript_text(said, heading=_heading(events), badge=badge, footer=_footer(events, cost_usd))


def as_html(
    events: Sequence[Event], made: Made = _NOTHING_MADE, *, cost_usd: float | None = None, badge: str | None = None
) -> str:
    """The run as one piece of HTML that needs neither script nor style sheet."""
    said = entries(events, made)
    badge = _badge(events) if badge is None else badge
    return transcript_html(said, heading=_heading(events), badge=badge, footer=_footer(events, cost_usd))


def entries(events: Iterable[Event], made: Made = _NOTHING_MADE) -> list[TranscriptEntry]:
    """What is to be read, in order; a turn that was begun anew is left out."""
    found: list[TranscriptEntry] = []
    turn_begins = 0
    for event in events:
        match event:
            case RunStarted(prompt=prompt):
                found += [TranscriptEntry("prompt", prompt)] if prompt else []
                turn_begins = len(found)
            case TurnStarted():
                turn_begins = len(found)
            case TextDelta(text=text):
                found.append(TranscriptEntry("text", text))
            case ThinkingDelta(text=text):
                found.append(TranscriptEntry("thinking", text))
            case ToolCalled():
                found.append(_called(event, made.get(event.tool_use_id, ())))
            case ToolReturned(tool_use_id=called, content=told, is_error=is_error, duration_s=took):
                _put(found, called, result=told, is_error=is_error, duration_s=took)
            case Notice(kind=kind, text=text):
                if kind == "retry":
                    del found[turn_begins:]
                found.append(TranscriptEntry("news" if kind in _NEWS else "notice", text))
                turn_begins = len(found)
            case ApprovalAsked():
                _put(found, event.tool_use_id, asked=f"? {WAITS}")
            case ApprovalAnswered():
                _put(found, event.tool_use_id, asked=_marked(event))
            case Replied() | TurnEnded() | RunEnded():
                turn_begins = len(found)
    return found


def status_words(status: Status) -> str:
    """How a run stands: `stopped by the user`."""
    return RUN_WORDS[status]


def approval_words(answer: ApprovalAnswered) -> str:
    """What became of a call that had to be approved: `approved`, `denied: not on a Friday`."""
    if answer.decision == "approved":
        return "approved"
    return f"{_DENIED[answer.by]}{f': {answer.reason}' if answer.reason else ''}"


def _marked(answer: ApprovalAnswered) -> str:
    return f"{'✓' if answer.decision == 'approved' else '✗'} {approval_words(answer)}"


def call_line(name: str, given: Mapping[str, Any]) -> str:
    """A call in a few words: `memory create /memories/units.md`, `bash ls -l`."""
    told = [given[field] for field in _TELLING.get(name, ()) if isinstance(given.get(field), str)]
    if told:
        return _shortened(" ".join([name, *told]))
    return _shortened(f"{name}({', '.join(f'{field}={_json(value)}' for field, value in given.items())})")


def _called(event: ToolCalled, made: Sequence[str]) -> TranscriptEntry:
    arguments = _json(dict(event.input), indent=2)
    line = call_line(event.name, event.input)
    return TranscriptEntry("tool", line, id=event.tool_use_id, arguments=arguments, made=tuple(made))


def _put(found: list[TranscriptEntry], tool_use_id: str, **fields: Any) -> None:
    """Add to the entry of a call what is known of it by now."""
    for at in range(len(found) - 1, -1, -1):
        if found[at].id == tool_use_id:
            found[at] = replace(found[at], **fields)
            return


def _json(value: object, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent, default=str)


def _shortened(line: str) -> str:
    return _cut(" ".join(line.split()))


def _heading(events: Sequence[Event]) -> str:
    started = next((event for event in events if isinstance(event, RunStarted)), None)
    ended = next((event for event in events if isinstance(event, RunEnded)), None)
    turns = ended.turns if ended else sum(isinstance(event, TurnEnded) for event in events)
    stands = status_words(ended.status) if ended else "running"
    return " · ".join([*([started.model] if started else []), stands, counted(turns, "turn")])


def _badge(events: Sequence[Event]) -> str:
    return next((BADGES[event.kind] for event in events if isinstance(event, RunStarted)), "")


def _footer(events: Sequence[Event], cost_usd: float | None) -> str:
    used = next((str(event.usage) for event in events if isinstance(event, RunEnded)), "")
    return f"{used} · {dollars_text(cost_usd)}" if used and cost_usd else used


class TextTranscript:
    """A subscriber that writes what happens to a text stream as it happens.

    Args:
        out: the stream.
        again: the badge of a run that is shown again; then its prompt is told, too: nobody has just written it.
    """

    def __init__(self, out: TextIO, *, again: str = "") -> None:
        self._out, self._again = out, again
        self._at_line_start = True

    def __call__(self, event: Event) -> None:
        """Write one event."""
        match event:
            case RunStarted():
                self._lines(self._beginning(event))
            case TextDelta(text=text):
                self._write(text)
            case ToolCalled(name=name, input=given):
                self._line(f"→ {call_line(name, given)}")
            case ApprovalAsked():
                self._line(f"  ? {WAITS}")
            case ApprovalAnswered():
                self._line(f"  {_marked(event)}")
            case ToolReturned():
                self._lines(_preview(event))
            case Notice(kind=kind, text=text):
                self._line(f"{'·' if kind in _NEWS else '!'} {text}")
            case RunEnded(status=status, turns=turns, usage=usage):
                self._line(f"{status_words(status)} · {counted(turns, 'turn')} · {usage}")
            case _:
                pass
        self._out.flush()

    def _beginning(self, started: RunStarted) -> list[str]:
        badge = self._again or BADGES[started.kind]
        prompt = started.prompt.splitlines() if self._again else []
        return [*([f"[{badge}]"] if badge else []), *(f"> {line}" for line in prompt)]

    def _lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._line(line)

    def _line(self, line: str) -> None:
        self._write(f"{'' if self._at_line_start else chr(10)}{line}\n")

    def _write(self, text: str) -> None:
        if text:
            # What a model or a memory says must not move the cursor or retitle the terminal.
            self._out.write(_encodable(visible(text), getattr(self._out, "encoding", None)))
            self._at_line_start = text.endswith("\n")


def _encodable(text: str, encoding: str | None) -> str:
    """The text with `?` for what a stream such as LANG=C's cannot hold; a StringIO holds everything."""
    return text.encode(encoding, errors="replace").decode(encoding) if encoding else text


def _preview(event: ToolReturned) -> list[str]:
    lines = event.content.split("\n")
    mark = "✗" if event.is_error else "│"
    left_out = len(lines) - _PREVIEW_LINES
    more = [f"  {mark} … {counted(left_out, 'more line')}"] if left_out > 0 else []
    return [f"  {mark} {_cut(line.expandtabs())}" for line in lines[:_PREVIEW_LINES]] + more


def _cut(line: str) -> str:
    return line if len(line) <= _PREVIEW_CHARS else f"{line[:_PREVIEW_CHARS]}…"
