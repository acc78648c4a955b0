"""A run's events -> what the page shows of it: entries, and numbered changes of them.

An entry is a dict: `k`, its key; `n`, the number of its last change; `kind`: prompt, text, thinking, notice or tool;
`text`; of a tool's call also `call`, its id, `state` (`running…`, or how long it took), `error`, `parts` (what was sent
and what came back, each with its title) and `made`, a list of [version id, its line, its path]. A call that waits for a
person has `asks`, the answers that there are: a list of [request, its parameters, label, title]. Where texts are cut,
`more` says how much is left out.

A change is an entry that is put in place of the one with its key; `{k, n, add}`, more words of an entry; or
`{n, drop}`, which takes away the entries from that key on: a turn that begins anew. Whoever has seen change `n` drops
what is numbered up to it, and asks for all where a number is missing.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from memkernel.agent.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Event,
    Notice,
    Replied,
    RunEnded,
    RunStarted,
    TextDelta,
    ThinkingDelta,
    ToolCalled,
    ToolReturned,
    TurnEnded,
    TurnStarted,
)
from memkernel.agent.transcript import WAITS, approval_words, call_line
from memkernel.jupyter.widgets.rows import marked
from memkernel.render import counted, duration_text, one_line

Entry: TypeAlias = dict[str, Any]
Change: TypeAlias = dict[str, Any]


class Made(NamedTuple):
    """A version that a call made, and a line that says what it did: `~ /units.md @3 +2 −1`."""

    id: str
    line: str
    path: str


MOST_ENTRIES: Final = 100
STATE_BYTES: Final = 48_000
"""A widget's state is saved with the notebook: 64 KB in all."""

_STREAMED_CHARACTERS: Final = 20_000
_STATE_CHARACTERS: Final = (4_000, 1_000, 250)
_NAME_CHARACTERS: Final = 40


class RunLog:
    """What a run has said and done so far. The run's events come in by one thread; any may ask.

    Args:
        answers: whether what is asked can be answered here.
    """

    def __init__(self, *, answers: bool = True) -> None:
        self._answers = answers
        self._lock = threading.Lock()
        self._entries: list[Entry] = []
        self._keys = 0
        self._turn_begins = 1  # the first key of the turn under way
        self.n = 0

    # -- what happens --------------------------------------------------------------------------------

    def take(self, event: Event) -> list[Change]:
        """An event of the run -> what changes in the page."""
        with self._lock:
            return self._take(event)

    def _take(self, event: Event) -> list[Change]:
        match event:
            case RunStarted(prompt=prompt):
                changes = [self._put("prompt", prompt)] if prompt else []
                self._turn_begins = self._keys + 1
                return changes
            case TextDelta(text=text):
                return [self._said("text", text)]
            case ThinkingDelta(text=text):
                return [self._said("thinking", text)]
            case ToolCalled():
                return [self._called(event)]
            case ToolReturned():
                return self._returned(event)
            case Notice(kind=kind, text=text):
                changes = [*(self._dropped() if kind == "retry" else []), self._put("notice", text)]
                self._turn_begins = self._keys + 1
                return changes
            case ApprovalAsked():
                asks = _ways(event.name) if self._answers else []
                return self._told(event.tool_use_id, state=WAITS, asks=asks)
            case ApprovalAnswered():
                return self._told(event.tool_use_id, state=approval_words(event), decision=event.decision, asks=[])
            case TurnStarted() | TurnEnded() | RunEnded():
                self._turn_begins = self._keys + 1
                return []
            case Replied():
                return []

    def made(self, tool_use_id: str, versions: Sequence[Made]) -> list[Change]:
        """A call has made these versions."""
        with self._lock:
            return self._told(tool_use_id, made=versions)

    def _put(self, kind: str, text: str, **more: Any) -> Change:
        self._keys += 1
        entry: Entry = {"k": self._keys, "kind": kind, "text": text}
        self._entries.append(entry)
        return self._changed(entry, **more)

    def _changed(self, entry: Entry, **fields: Any) -> Change:
        self.n += 1
        entry.update(fields, n=self.n)
        return _shown(entry, _STREAMED_CHARACTERS)

    def _said(self, kind: str, text: str) -> Change:
        last = self._entries[-1] if self._entries else None
        if last is None or last["kind"] != kind or last["k"] < self._turn_begins:
            return self._put(kind, text)
        self.n += 1
        last.update(text=last["text"] + text, n=self.n)
        return {"k": last["k"], "n": self.n, "add": marked(text)}

    def _called(self, call: ToolCalled) -> Change:
        arguments = json.dumps(dict(call.input), ensure_ascii=False, indent=2, default=str)
        line = call_line(call.name, call.input)
        return self._put("tool", line, id=call.tool_use_id, arguments=arguments, state="running…")

    def _returned(self, answer: ToolReturned) -> list[Change]:
        call = self._call(answer.tool_use_id) or {}
        state = f"{'error · ' if answer.is_error else ''}{duration_text(answer.duration_s)}"
        if decision := call.get("decision"):  # a denied call has not run: it took no time
            state = call["state"] if decision == "denied" else f"{call['state']} · {state}"
        return self._told(answer.tool_use_id, result=answer.content, error=answer.is_error, state=state, asks=[])

    def _told(self, tool_use_id: str, **fields: Any) -> list[Change]:
        """Something is known of a call."""
        entry = self._call(tool_use_id)
        return [] if entry is None else [self._changed(entry, **fields)]

    def _call(self, tool_use_id: str) -> Entry | None:
        return next((each for each in reversed(self._entries) if each.get("id") == tool_use_id), None)

    def _dropped(self) -> list[Change]:
        if not self._entries or self._entries[-1]["k"] < self._turn_begins:
            return []
        self._entries = [entry for entry in self._entries if entry["k"] < self._turn_begins]
        self.n += 1
        return [{"n": self.n, "drop": self._turn_begins}]

    # -- what is asked -------------------------------------------------------------------------------

    def state(self, *, before: int | None = None, room: int = STATE_BYTES) -> dict[str, Any]:
        """The last entries (before a key), as many as there is room for in bytes of JSON.

        Returns:
            `entries`, `left_out` (how many are before them) and `n`.
        """
        with self._lock:
            known = [entry for entry in self._entries if before is None or entry["k"] < before]
            shown = _fitting(known[-MOST_ENTRIES:], room)
            return {"entries": shown, "left_out": len(known) - len(shown), "n": self.n}

    def call_of(self, key: int) -> str | None:
        """The id of the call that this entry shows."""
        with self._lock:
            return next((entry.get("id") for entry in self._entries if entry["k"] == key), None)

    def whole(self, key: int) -> Entry | None:
        """One entry, not cut."""
        with self._lock:
            return next((_shown(entry, None) for entry in self._entries if entry["k"] == key), None)


def _ways(tool: str) -> list[list[Any]]:
    """What a person can answer to a call of this tool."""
    name = one_line(tool, _NAME_CHARACTERS)
    return [
        ["approve", {}, "Approve", "Let this call run"],
        ["approve", {"whole_tool": True}, f"Approve all of {name}", f"Let it run, and ask no more about {name}"],
        ["deny", {"reason": ""}, "Deny", "It does not run; the model is told so, and what you write beside"],
    ]


def _fitting(entries: Sequence[Entry], room: int) -> list[Entry]:
    """The entries with texts as long as fit; where not even short ones do, the last entries."""
    shown: list[Entry] = []
    sizes: list[int] = []
    for characters in _STATE_CHARACTERS:
        shown = [_shown(entry, characters) for entry in entries]
        sizes = [len(json.dumps(entry)) for entry in shown]
        if sum(sizes) <= room:
            return shown
    while sum(sizes) > room:
        del shown[0], sizes[0]
    return shown


def _shown(entry: Mapping[str, Any], characters: int | None) -> Entry:
    """The entry as the page may show it: marked, and each of its texts cut to so many characters."""
    parts = {
        "Arguments": entry.get("arguments", ""),
        "Error" if entry.get("error") else "Result": entry.get("result", ""),
    }
    texts = [entry["text"], *parts.values()]
    more = sum(len(text) - len(text[:characters]) for text in texts)
    shown = {name: entry[name] for name in ("k", "n", "kind")} | {"text": marked(entry["text"][:characters])}
    if entry["kind"] == "tool":
        shown |= {"state": entry["state"], "error": bool(entry.get("error"))}
        shown["parts"] = [[title, marked(text[:characters])] for title, text in parts.items() if text]
        shown["call"] = entry["id"]
        shown["asks"] = entry.get("asks", [])
        shown["made"] = [[made.id, marked(made.line), made.path] for made in entry.get("made", ())]
    return shown | ({"more": f"Show {counted(more, 'more character')}"} if more else {})
