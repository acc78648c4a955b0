"""Approval asked in text: what a tool would do, and a question on stdin."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Final

from memkernel.agent.approval import Answer
from memkernel.agent.events import ApprovalAsked
from memkernel.agent.transcript import call_line
from memkernel.render import counted, one_line, visible

NOBODY: Final = Answer("denied", reason="nobody can be asked here")
_NOBODY: Final = 'Nobody can be asked here; approve="auto", in a cell `--approve auto`, lets it run.'
_QUESTION: Final = "Let it run? y(es), n(o) or n REASON, a(ll calls of this tool): "
_LINES, _CHARACTERS, _NAME = 20, 2_000, 60
_WORDS: Final = {
    **dict.fromkeys(("y", "yes"), Answer("approved")),
    **dict.fromkeys(("a", "all"), Answer("approved", whole_tool=True)),
}


def ask(asked: ApprovalAsked) -> Answer | None:
    """What the person says of a call; None in a thread that cannot ask: then `run.approve` and `run.deny` answer.

    Raises:
        KeyboardInterrupt: the person stopped the run in place of an answer.
    """
    if threading.current_thread() is not threading.main_thread():
        return None
    try:
        return _answer(input, f"{request_text(asked)}\n{_QUESTION}")
    except (EOFError, OSError, NotImplementedError):  # the last is what IPython raises
        print(f"Denied: {call_line(asked.name, asked.input)}. {_NOBODY}")
        return NOBODY


def _answer(read: Callable[[str], str], question: str) -> Answer:
    while True:
        said, _, reason = read(question).strip().partition(" ")
        question = _QUESTION
        if said.lower() in ("n", "no"):
            return Answer("denied", reason=reason.strip())
        if said.lower() in _WORDS and not reason:
            return _WORDS[said.lower()]


def request_text(asked: ApprovalAsked) -> str:
    """The call with all that it would be given, as far as a screen holds it: what is approved is what is seen."""
    rows = [
        f"{one_line(asked.name, _NAME)} would run:",
        *(row for field, value in asked.input.items() for row in _rows(field, value)),
    ]
    more = len(rows) - _LINES
    return "\n".join([*rows[:_LINES], *([f"  … {counted(more, 'more line')}"] if more > 0 else [])])


def _rows(field: str, value: object) -> list[str]:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if len(text) > _CHARACTERS:
        text = f"{text[:_CHARACTERS]} … {counted(len(text) - _CHARACTERS, 'more character')}"
    first, *rest = visible(text).split("\n")
    return [f"  {one_line(field, _NAME)}: {first}", *(f"    {line}" for line in rest)]
