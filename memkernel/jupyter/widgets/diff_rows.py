"""A TextDiff -> the rows that the page draws, a page of them at a time.

    ["=", old_number, new_number, text]               an equal line
    ["f", old_number, new_number, count]              equal lines that are folded; the numbers are the first one's
    ["~", old_number, new_number, spans, spans]       a line that changed; a span is [1, text] where its words changed
    ["-", old_number, text] ["+", new_number, text]   a line that went, a line that came

Numbers are 1-based, texts are `marked`. Both sides can be rebuilt from the rows and the lines of the folds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

from memkernel.jupyter.widgets.rows import Marked, marked
from memkernel.textdiff import Fold, Line, Span, TextDiff

Row: TypeAlias = "list[Any]"

NO_NEWLINE: Final = ["⟨no newline⟩", "the text ends without a line end"]
MOST_PIECES: Final = 4_000
"""So many pieces, each an element of the page, one side of a line has at most; what is left out is counted."""

_MOST_SPANS: Final = MOST_PIECES // 2
_SIGNS: Final = {"equal": "=", "removed": "-", "added": "+"}


class Room(NamedTuple):
    """How much one answer may hold: rows, their bytes as JSON, and the characters of a line's side.

    Of `line_characters` the first one is taken that lets at least one row in; the others are for lines that are long.
    """

    rows: int
    bytes: int
    line_characters: tuple[int, ...]


PAGE: Final = Room(2_000, 500_000, (sys.maxsize,))
STATE: Final = Room(200, 32_000, (8_000, 2_000, 500, 100))
"""A widget's state is saved with the notebook: 64 KB and 200 rows in all."""


class RowPage(NamedTuple):
    """Some rows of a diff. `next` is the number of the row after them, None at the end; `cut`: lines are shortened."""

    rows: list[Row]
    next: int | None
    cut: bool


def row_count(found: TextDiff) -> int:
    """How many rows the diff has."""
    return sum(bool(fold.length) for fold in found.folds) + sum(len(hunk.lines) for hunk in found.hunks)


def page_of(found: TextDiff, start: int = 0, room: Room = PAGE) -> RowPage:
    """The rows from number `start` (0-based) on, as many as there is room for: at least one, of whatever length."""
    rows: list[Row] = []
    left = room.bytes
    cut = False
    for item in islice(_items(found), start, start + room.rows):
        row, size, is_cut = _fitting(item, room, left, first=not rows)
        if rows and size > left:
            break
        rows.append(row)
        left -= size
        cut = cut or is_cut
    end = start + len(rows)
    return RowPage(rows, end if end < row_count(found) else None, cut)


def lines_page(lines: list[str], start: int, count: int) -> list[Marked]:
    """Equal lines as the page shows them: at most `count` from the 1-based number `start` on."""
    return [_line(text, sys.maxsize)[0] for text in islice(lines, start - 1, start - 1 + min(count, PAGE.rows))]


def marked_part(text: str) -> Marked:
    """The text, as far as the page can hold its pieces: one of control characters alone would be all pieces."""
    side = _Side(sys.maxsize)
    shown = side.marked(text)
    return [*shown, *side.rest] if side.left_out else shown


def _items(found: TextDiff) -> Iterator[Fold | Line]:
    for fold, hunk in zip(found.folds, [*found.hunks, None], strict=True):
        if fold.length:
            yield fold
        yield from hunk.lines if hunk else ()


def _fitting(item: Fold | Line, room: Room, left: int, *, first: bool) -> tuple[Row, int, bool]:
    """The row, its bytes, and whether it is shortened; the first one of a page more and more, until it fits."""
    *longer, shortest = room.line_characters if first else room.line_characters[:1]
    for most in longer:
        row, size, cut = _sized(item, most)
        if size <= left:
            return row, size, cut
    return _sized(item, shortest)


def _sized(item: Fold | Line, most: int) -> tuple[Row, int, bool]:
    row, cut = _row(item, most)
    return row, len(json.dumps(row)), cut


def _row(item: Fold | Line, most: int) -> tuple[Row, bool]:
    if isinstance(item, Fold):
        return ["f", *item], False
    kind, old, new, *numbers, old_spans, new_spans = item
    if old is not None and new is not None and kind == "changed":
        old_shown, old_cut = _spans(old_spans, most)
        new_shown, new_cut = _spans(new_spans, most)
        old_shown += _no_newline(old, beside=new)
        new_shown += _no_newline(new, beside=old)
        return ["~", *numbers, old_shown, new_shown], old_cut or new_cut
    text, cut = _line((old if new is None else new) or "", most)
    return [_SIGNS[kind], *(number for number in numbers if number is not None), text], cut


def _line(line: str, most: int) -> tuple[Marked, bool]:
    side = _Side(most)
    text = side.marked(line.removesuffix("\n"))
    marks = side.rest if line.endswith("\n") else [*side.rest, NO_NEWLINE]
    if marks:
        text = [*([text] if isinstance(text, str) else text), *marks]
    return text, bool(side.left_out)


def _spans(spans: Sequence[Span], most: int) -> tuple[list[list[Any]], bool]:
    side = _Side(most)
    shown: list[list[Any]] = [[int(changed), side.marked(text)] for text, changed in _few(spans)]
    return [span for span in [*shown, [0, side.rest]] if span[1]], bool(side.left_out)


def _no_newline(line: str, *, beside: str) -> list[list[Any]]:
    """The last span of a line that lacks its end; it has changed where the line on the other side has one."""
    return [] if line.endswith("\n") else [[int(beside.endswith("\n")), [NO_NEWLINE]]]


def _few(spans: Sequence[Span]) -> Sequence[Span]:
    """The spans; of very many the last ones as one, which counts as changed."""
    if len(spans) <= _MOST_SPANS:
        return spans
    return [*spans[: _MOST_SPANS - 1], Span("".join(span.text for span in spans[_MOST_SPANS - 1 :]), True)]


class _Side:
    """One side of a line as far as there is room for it; what is beyond that is counted."""

    def __init__(self, characters: int) -> None:
        self._characters = characters
        self._pieces = MOST_PIECES
        self.left_out = 0

    def marked(self, text: str) -> Marked:
        """The text, or the part of it for which there is room."""
        pieces = marked(text[: self._characters])
        if isinstance(pieces, str):
            kept: Marked = pieces if self._pieces else ""
            length, self._pieces = len(kept), self._pieces - bool(self._pieces)
        else:
            kept = pieces[: self._pieces]
            length, self._pieces = sum(map(_length, kept)), self._pieces - len(kept)
        self._characters -= length
        self.left_out += len(text) - length
        return kept

    @property
    def rest(self) -> list[list[str]]:
        """A mark for what is left out."""
        if not self.left_out:
            return []
        more = "1 more character" if self.left_out == 1 else f"{self.left_out:,} more characters"
        return [[f"⟨… {more}⟩", "there is no room here for all of it"]]


def _length(piece: str | list[str]) -> int:
    return len(piece) if isinstance(piece, str) else 1  # a mark stands for one character
