"""A difference of two texts: unified in plain text, a static copy in HTML with unchanged lines folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from memkernel.render.marks import cut, html_text, one_line, visible
from memkernel.render.style import TEXT_LINES, first_lines, fitting, framed
from memkernel.textdiff import Hunk, Row, Span, TextDiff

LINE_CHARACTERS: Final = 2_000

_ELEMENTS: Final = {"+": "ins", "-": "del"}
_CLASSES: Final = {"+": "came", "-": "went"}


def diff_text(
    found: TextDiff | None,
    old_name: str,
    new_name: str,
    notes: Sequence[str] = (),
    *,
    most_lines: int | None = TEXT_LINES,
) -> str:
    """The notes, then the unified diff, with marks for what cannot be seen.

    Args:
        found: the difference; None is none that could be known: the notes say why.
        old_name: the old version's name.
        new_name: the new version's name.
        notes: sentences above it.
        most_lines: so many lines at most; None is all of them, however long.
    """
    lines = [*map(one_line, notes), *_unified(found, old_name, new_name)]
    if most_lines is None:
        return "\n".join(lines)
    return "\n".join(cut(line, LINE_CHARACTERS) for line in first_lines(lines, most_lines))


def _unified(found: TextDiff | None, old_name: str, new_name: str) -> list[str]:
    if found is None:
        return []
    return visible(found.unified(old_name, new_name)).split("\n")[:-1] or ["no difference"]


def diff_html(found: TextDiff | None, title: str, change: str, notes: Sequence[str] = ()) -> str:
    """A static copy of the diff, its unchanged lines folded.

    Args:
        found: the difference; None is none that could be known: the notes say why.
        title: what was changed: a path.
        change: from what to what: `v1 → v3`.
        notes: sentences above it.
    """
    counts = f" · {summary(found)}" if found else ""
    head = f"<p><strong>{html_text(title)}</strong> {html_text(change)}{counts}</p>"
    head += "".join(f'<p class="alert">{html_text(note)}</p>' for note in notes)
    rows = list(_rows(found)) if found else []
    shown = fitting(rows, beside=len(head.encode()))
    more = f"{len(shown):,} of {len(rows):,} lines shown" if len(shown) < len(rows) else ""
    lines = f'<pre tabindex="0">{"".join(shown)}</pre>' if rows else ""
    return framed(head, lines, f'<p class="faint">{more}</p>' if more else "")


def summary(found: TextDiff) -> str:
    """`+2 −1 in 2 places`"""
    if not found.places:
        return "no difference"
    places = "1 place" if found.places == 1 else f"{found.places:,} places"
    return f"+{found.added:,} −{found.removed:,} in {places}"


def _rows(found: TextDiff) -> Iterator[str]:
    end = 1
    for hunk in found.hunks:
        yield from _fold(_first(hunk) - end)
        yield from map(_row, hunk.rows())
        end = _first(hunk) + hunk.old_count
    if found.hunks:
        yield from _fold(found.old_count + 1 - end)


def _first(hunk: Hunk) -> int:
    return hunk.old_start + (not hunk.old_count)


def _fold(count: int) -> Iterator[str]:
    if count > 0:
        yield f'<em class="fold">  ⋯ {count:,} unchanged line{"" if count == 1 else "s"}\n</em>'


def _row(row: Row) -> str:
    end = "" if row.text.endswith("\n") else "  (no newline at the end)"
    if row.sign == " ":
        return f"<span>  {_text(row)}{end}\n</span>"
    sign = "−" if row.sign == "-" else "+"
    if not row.spans:
        element = _ELEMENTS[row.sign]
        return f"<{element}>{sign} {_text(row)}{end}\n</{element}>"
    words = "".join(_span(span, _ELEMENTS[row.sign]) for span in row.spans)
    return f'<span class="{_CLASSES[row.sign]}">{sign} {words}{end}\n</span>'


def _text(row: Row) -> str:
    return html_text(cut(row.text.removesuffix("\n"), LINE_CHARACTERS))


def _span(span: Span, element: str) -> str:
    text = html_text(cut(span.text, LINE_CHARACTERS))
    return f"<{element}>{text}</{element}>" if span.changed else text
