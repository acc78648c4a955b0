"""The text of a memory under a line about it."""

from __future__ import annotations

from typing import Final

from memkernel.render.marks import html_cut, visible_cut
from memkernel.render.style import first_lines, fitting, framed

LINE_CHARACTERS: Final = 2_000


def headed_text(head: str, content: str | None) -> str:
    """The head and the content, at most 60 lines; None is no content, only the head."""
    lines = [] if content is None else _lines(content)
    above = [head, ""] if head and lines else [head] if head else []
    return "\n".join(visible_cut(line, LINE_CHARACTERS) for line in first_lines([*above, *lines]))


def headed_html(head: str, content: str | None) -> str:
    """The same as HTML, in 24 KB. `head` is HTML."""
    top = f"<p>{head}</p>" if head else ""
    if content is None:
        return framed(top)
    lines = _lines(content)
    shown = fitting((f"{html_cut(line, LINE_CHARACTERS)}\n" for line in lines), beside=len(top.encode()))
    more = f"{len(shown):,} of {len(lines):,} lines shown" if len(shown) < len(lines) else ""
    return framed(
        top, f'<pre tabindex="0"><span>{"".join(shown)}</span></pre>', f'<p class="faint">{more}</p>' if more else ""
    )


def _lines(content: str) -> list[str]:
    return content.removesuffix("\n").split("\n") if content else ["(empty)"]
