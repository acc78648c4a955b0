"""A request that is not sent: what is in it, and how many tokens its parts have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from memkernel.render.lists import columns_and_rows, records_text
from memkernel.render.marks import html_cut, html_line, visible_cut
from memkernel.render.style import TEXT_LINES, fitting, framed, line_ends
from memkernel.render.tables import table_body

HEAD_CHARACTERS: Final = 400
LINE_CHARACTERS: Final = 200


def request_text(head: str, parts: Sequence[object], body: str) -> str:
    """At most 60 lines: a line about it, its parts as a table, and the two ends of its body."""
    above = [head, *(records_text(parts).split("\n") if parts else [])]
    lines = line_ends(body.split("\n"), max(TEXT_LINES - len(above), 8))
    return "\n".join(visible_cut(line, LINE_CHARACTERS) for line in [*above, *lines])


def request_html(head: str, parts: Sequence[object], body: str) -> str:
    """The same as HTML, in 24 KB; the body is folded."""
    top = f"<p><strong>{html_line(head, HEAD_CHARACTERS)}</strong></p>"
    table = table_body(*columns_and_rows(parts), beside=len(top.encode())) if parts else ""
    lines = body.split("\n")
    shown = fitting((f"{html_cut(line, LINE_CHARACTERS)}\n" for line in lines), beside=len((top + table).encode()))
    more = f'<p class="faint">{len(shown):,} of {len(lines):,} lines shown</p>' if len(shown) < len(lines) else ""
    folded = f"<details><summary>the request</summary><pre><span>{''.join(shown)}</span></pre>{more}</details>"
    return framed(top, table, folded)
