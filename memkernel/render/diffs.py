"""A difference of two texts: unified in plain text, a static copy in HTML with unchanged lines folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from memkernel.render.cells import counted
from memkernel.render.marks import html_cut, html_line, one_line, visible, visible_cut
from memkernel.render.style import TEXT_LINES, first_lines, fitting, framed
from memkernel.textdiff import Fold, Row, TextDiff

LINE_CHARACTERS: Final = 2_000
HEAD_CHARACTERS: Final = 1_024
NEAR_CHARACTERS: Final = 120

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
        return visible("\n".join(lines))
    return "\n".join(visible_cut(line, LINE_CHARACTERS) for line in first_lines(lines, most_lines))


def _unified(found: TextDiff | None, old_name: str, new_name: str) -> list[str]:
    if found is None:
        return []
    return found.unified(old_name, new_name).split("\n")[:-1] or ["no difference"]


def diff_html(found: TextDiff | None, title: str, change: str, notes: Sequence[str] = ()) -> str:
    """A static copy of the diff, its unchanged lines folded.

    Args:
        found: the difference; None is none that could be known: the notes say why.
        title: what was changed: a path.
        change: from what to what: `v1 → v3`.
        notes: sentences above it.
    """
    counts = f" · {summary(found)}" if found else ""
    head = f"<p><strong>{html_line(title, HEAD_CHARACTERS)}</strong> {html_line(change, HEAD_CHARACTERS)}{counts}</p>"
    head += "".join(f"<p>{html_line(note, HEAD_CHARACTERS)}</p>" for note in notes)
    shown = fitting(_rows(found), beside=len(head.encode())) if found else []
    total = _row_count(found) if found else 0
    lines = f'<pre tabindex="0">{"".join(shown)}</pre>' if total else ""
    more = f'<p class="faint">{len(shown):,} of {total:,} lines shown</p>' if len(shown) < total else ""
    return framed(head, lines, more)


def summary(found: TextDiff) -> str:
    """`+2 −1 in 2 places`"""
    if not found.places:
        return "no difference"
    return f"+{found.added:,} −{found.removed:,} in {counted(found.places, 'place')}"


def spoken(found: TextDiff) -> str:
    """The same to be read aloud: `2 lines added, 1 removed in 2 places`"""
    if not found.places:
        return summary(found)
    return f"{counted(found.added, 'line')} added, {found.removed:,} removed in {counted(found.places, 'place')}"


def _rows(found: TextDiff) -> Iterator[str]:
    for fold, hunk in zip(_folds(found), [*found.hunks, None], strict=True):
        if fold.length:
            yield f'<em class="fold">  ⋯ {counted(fold.length, "unchanged line")}\n</em>'
        yield from map(_row, hunk.rows() if hunk else ())


def _row_count(found: TextDiff) -> int:
    """How many rows `_rows` has, without making them."""
    return sum(bool(fold.length) for fold in _folds(found)) + sum(hunk.old_count for hunk in found.hunks) + found.added


def _folds(found: TextDiff) -> Sequence[Fold]:
    """Where nothing differs no line is shown, and none folded."""
    return found.folds if found.hunks else [Fold(1, 1, 0)]


def _row(row: Row) -> str:
    end = "" if row.text.endswith("\n") else " (no newline at the end)"
    if row.sign == " ":
        return f"<span>  {_text(row)}{end}\n</span>"
    kind = f"{_CLASSES[row.sign]} words" if row.spans else _CLASSES[row.sign]
    changed = _words(row) if row.spans else _element(row.sign, _text(row))
    return f'<span class="{kind}">{row.sign} {changed}{end}\n</span>'


def _text(row: Row) -> str:
    return html_cut(row.text.removesuffix("\n"), LINE_CHARACTERS)


def _words(row: Row) -> str:
    """The line with its changed words. Of a long one the words around them, as far as there is room."""
    parts: list[str] = []
    left = LINE_CHARACTERS
    last = len(row.spans) - 1
    for index, (text, changed) in enumerate(row.spans):
        kept = text if changed else _near(text, before=index > 0, after=index < last)
        html = html_cut(kept, LINE_CHARACTERS // 2)
        parts.append(_element(row.sign, html) if changed else html)
        left -= len(html)
        if left < 0:
            return "".join([*parts, "…"])
    return "".join(parts)


def _near(text: str, *, before: bool, after: bool) -> str:
    """Of a long stretch of equal words those beside the change before it and the change after it."""
    if len(text) <= 3 * NEAR_CHARACTERS or not (before or after):
        return text
    return (text[:NEAR_CHARACTERS] if before else "") + " … " + (text[-NEAR_CHARACTERS:] if after else "")


def _element(sign: str, html: str) -> str:
    return f"<{_ELEMENTS[sign]}>{html}</{_ELEMENTS[sign]}>"
