"""A run as something to read: what was asked and said, which tools were called, what they answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

from memkernel.render.cells import counted
from memkernel.render.marks import html_cut, html_line, visible_cut
from memkernel.render.reports import duration_text
from memkernel.render.style import TEXT_LINES, fitting_ends, framed, line_ends

EntryKind = Literal["prompt", "text", "thinking", "tool", "notice", "news"]
"""A notice is of what must not be overlooked, news of what is as it should be."""

RESULT_LINES: Final = 6
LINE_CHARACTERS: Final = 400
DETAIL_CHARACTERS: Final = 3_000
SAID_CHARACTERS: Final = 4_000


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One thing that was said or done. All but the first two fields belong to a tool's call.

    `text` is what was said, or the call in one line, `id` the call's. `arguments` is all that was sent to the tool and
    `result` what it answered, as text; `duration_s` is None while it has not answered. `asked` says how it stands with
    the person's approval, where that was needed. `made` has a line for each version that the call made.
    """

    kind: EntryKind
    text: str
    arguments: str = ""
    result: str = ""
    is_error: bool = False
    duration_s: float | None = None
    made: tuple[str, ...] = ()
    id: str = ""
    asked: str = ""


def transcript_text(entries: Iterable[TranscriptEntry], *, heading: str = "", badge: str = "", footer: str = "") -> str:
    """The run as plain text in at most 60 lines: of a long one its beginning and its end.

    Args:
        entries: what was said and done. Pieces of one text that follow each other are joined.
        heading: the model and how it ended.
        badge: what must not be overlooked.
        footer: what it used.
    """
    head = [line for line in (f"[{badge}]" if badge else "", heading) if line]
    tail = [footer] if footer else []
    body = [line for entry in _joined(entries) for line in _LINES[entry.kind](entry)]
    lines = [*head, *line_ends(body, TEXT_LINES - len(head) - len(tail)), *tail]
    return "\n".join(visible_cut(line, LINE_CHARACTERS).replace("\n", "↵") for line in lines)


def transcript_html(entries: Iterable[TranscriptEntry], *, heading: str = "", badge: str = "", footer: str = "") -> str:
    """The same as HTML that needs neither script nor style."""
    marked = f' <span class="tag">{html_line(badge, LINE_CHARACTERS)}</span>' if badge else ""
    head = f"<p><strong>{html_line(heading, LINE_CHARACTERS)}</strong>{marked}</p>" if heading or badge else ""
    tail = f'<p class="faint">{html_line(footer, LINE_CHARACTERS)}</p>' if footer else ""
    beside = len(head.encode()) + len(tail.encode())
    body = fitting_ends(_joined(entries), lambda entry: _HTML[entry.kind](entry), beside=beside)
    return framed(head, *body, tail)


def _joined(entries: Iterable[TranscriptEntry]) -> list[TranscriptEntry]:
    """A text that streamed in comes in pieces."""
    joined: list[TranscriptEntry] = []
    for entry in entries:
        if joined and entry.kind in ("text", "thinking") and joined[-1].kind == entry.kind:
            joined[-1] = replace(joined[-1], text=joined[-1].text + entry.text)
        else:
            joined.append(entry)
    return joined


# -- plain text ------------------------------------------------------------------------------------


def _prompt_lines(entry: TranscriptEntry) -> list[str]:
    return [f"> {line}" for line in entry.text.split("\n")]


def _text_lines(entry: TranscriptEntry) -> list[str]:
    return entry.text.strip("\n").split("\n")


def _thinking_lines(entry: TranscriptEntry) -> list[str]:
    return [f"… thought {counted(len(entry.text), 'character')}"]


def _tool_lines(entry: TranscriptEntry) -> list[str]:
    lines = entry.result.split("\n") if entry.result else []
    mark = "✗" if entry.is_error else "│"
    left_out = len(lines) - RESULT_LINES
    more = [f"  {mark} … {counted(left_out, 'more line')}"] if left_out > 0 else []
    made = [f"  {line}" for line in entry.made]
    asked = [f"  {entry.asked}"] if entry.asked else []
    return [f"→ {entry.text}", *asked, *(f"  {mark} {line}" for line in lines[:RESULT_LINES]), *more, *made]


def _notice_lines(entry: TranscriptEntry) -> list[str]:
    return [f"! {entry.text}"]


def _news_lines(entry: TranscriptEntry) -> list[str]:
    return [f"· {entry.text}"]


_LINES: Final[dict[EntryKind, Callable[[TranscriptEntry], list[str]]]] = {
    "prompt": _prompt_lines,
    "text": _text_lines,
    "thinking": _thinking_lines,
    "tool": _tool_lines,
    "notice": _notice_lines,
    "news": _news_lines,
}

# -- HTML ------------------------------------------------------------------------------------------


def _prompt_html(entry: TranscriptEntry) -> str:
    return f"<blockquote>{_said(entry.text)}</blockquote>"


def _text_html(entry: TranscriptEntry) -> str:
    return f"<p>{_said(entry.text.strip(chr(10)))}</p>"


def _thinking_html(entry: TranscriptEntry) -> str:
    return f"<details><summary>thinking</summary><p>{_said(entry.text)}</p></details>"


def _tool_html(entry: TranscriptEntry) -> str:
    was_run = not entry.asked.startswith("✗")  # what was denied took no time, and has not failed
    time = "" if entry.duration_s is None or not was_run else f" · {duration_text(entry.duration_s)}"
    state = '<strong class="bad">error</strong> ' if entry.is_error and was_run else ""
    asked = f'<span class="tag">{html_line(entry.asked, LINE_CHARACTERS)}</span> ' if entry.asked else ""
    call = f"→ <code>{html_line(entry.text, LINE_CHARACTERS)}</code> {asked}{state}"
    details = "".join(f"<pre><span>{_detail(text)}</span></pre>" for text in (entry.arguments, entry.result) if text)
    made = "<br>".join(f"<code>{html_line(line, LINE_CHARACTERS)}</code>" for line in entry.made)
    folded = f'<details><summary>{call}<span class="faint">{time}</span></summary>{details}</details>'
    return folded + (f"<p>{made}</p>" if made else "")


def _notice_html(entry: TranscriptEntry) -> str:
    return f'<p class="bad">{_said(entry.text)}</p>'


def _news_html(entry: TranscriptEntry) -> str:
    return f'<p class="faint">{_said(entry.text)}</p>'


_HTML: Final[dict[EntryKind, Callable[[TranscriptEntry], str]]] = {
    "prompt": _prompt_html,
    "text": _text_html,
    "thinking": _thinking_html,
    "tool": _tool_html,
    "notice": _notice_html,
    "news": _news_html,
}


def _said(text: str) -> str:
    return html_cut(text, SAID_CHARACTERS).replace("\n", "<br>")


def _detail(text: str) -> str:
    return html_cut(text, DETAIL_CHARACTERS)
