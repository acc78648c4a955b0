"""Inside a change: which removed line became which added one, and which of their words differ.

A similarity of words decides what is a pair. The work of a whole diff is counted beforehand, in units of
about half a microsecond, and limited: lines beyond the limit are shown removed and added, without words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from memkernel.textdiff.align import EXACT_CELLS, WINDOW, changes
from memkernel.textdiff.runs import Block

WORK_LIMIT: Final = 350_000
PAIRS_PER_CHANGE: Final = 1_024
LEAST_SIMILARITY: Final = 0.3
LEAST_LENGTH: Final = 5  # on average, with the line's end: shorter lines have no words to compare

_CELLS_PER_UNIT: Final = 1_500
_UNITS_PER_LINE: Final = 24
_UNITS_PER_PAIR: Final = 80
_UNITS_PER_TOKEN: Final = 3
_UNITS_PER_COMPARISON: Final = 8
# Scripts without spaces (Chinese, Japanese, Korean) are compared letter by letter.
_UNSPACED: Final = "\u2e80-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_ACCENTS: Final = "\u0300-\u036f"
_TOKEN: Final = re.compile(rf"[^\W{_UNSPACED}]+(?:[{_ACCENTS}]+[^\W{_UNSPACED}]*)*|\s+|.", re.DOTALL)
_ASCII_TOKEN: Final = re.compile(r"\w+|\s+|.", re.DOTALL)  # the same there, and twice as fast


class Span(NamedTuple):
    """A stretch of a line; `changed` where the other side has no such words."""

    text: str
    changed: bool


class Pair(NamedTuple):
    """Line `old` of a change became its line `new` (0-based in the change); the spans of both."""

    old: int
    new: int
    spans: tuple[tuple[Span, ...], tuple[Span, ...]]


class _Line(NamedTuple):
    tokens: list[str]
    words: frozenset[str]


class WordDiff:
    """Compares the lines of one text's changes; `work` counts what it has spent."""

    def __init__(self, *, ignore_whitespace: bool) -> None:
        self.work = 0
        self._ignore_whitespace = ignore_whitespace

    def pairs(self, old: list[str], new: list[str]) -> list[Pair]:
        """The pairs among the lines of one change, ascending on both sides."""
        lines, size = len(old) + len(new), sum(map(len, old)) + sum(map(len, new))
        if size < lines * LEAST_LENGTH or not self._spend(lines * _UNITS_PER_LINE + size // 8):
            return []
        old_lines, new_lines = [_line(text) for text in old], [_line(text) for text in new]
        found = (self._pair(i, j, old_lines[i], new_lines[j]) for i, j in self._candidates(old_lines, new_lines))
        return [pair for pair in found if pair]

    def _spend(self, units: int) -> bool:
        if self.work + units > WORK_LIMIT:
            return False
        self.work += units
        return True

    def _candidates(self, old: list[_Line], new: list[_Line]) -> list[tuple[int, int]]:
        cells = len(old) * len(new)
        if 1 < cells <= PAIRS_PER_CHANGE and self._spend(cells * _UNITS_PER_COMPARISON):
            return _most_similar(old, new)
        in_order = zip(range(len(old)), range(len(new)), strict=False)
        return [(i, j) for i, j in in_order if _similarity(old[i], new[j]) >= LEAST_SIMILARITY]

    def _pair(self, i: int, j: int, old: _Line, new: _Line) -> Pair | None:
        if not self._spend(_cost(len(old.tokens), len(new.tokens))):
            return None
        blocks = _joined(old.tokens, changes(self._keys(old), self._keys(new), str.isspace))
        old_spans = _spans(old.tokens, ((block.old_start, block.old_stop) for block in blocks))
        new_spans = _spans(new.tokens, ((block.new_start, block.new_stop) for block in blocks))
        if _kept(old_spans + new_spans) < LEAST_SIMILARITY:
            return None
        return Pair(i, j, (old_spans, new_spans))

    def _keys(self, line: _Line) -> list[str]:
        if not self._ignore_whitespace:
            return line.tokens
        return [" " if token.isspace() else token for token in line.tokens]


def _line(text: str) -> _Line:
    pattern = _ASCII_TOKEN if text.isascii() else _TOKEN
    tokens: list[str] = pattern.findall(text.removesuffix("\n"))
    return _Line(tokens, frozenset(map(str.strip, tokens)) - {""})


def _cost(old: int, new: int) -> int:
    """An estimate from above for two lines of so many tokens."""
    cells = min(old * new, EXACT_CELLS + (old + new) * WINDOW)
    return _UNITS_PER_PAIR + _UNITS_PER_TOKEN * (old + new) + cells // _CELLS_PER_UNIT


def _similarity(old: _Line, new: _Line) -> float:
    total = len(old.words) + len(new.words)
    return 2 * len(old.words & new.words) / total if total else 1.0


def _most_similar(old: list[_Line], new: list[_Line]) -> list[tuple[int, int]]:
    """The ascending pairs whose similarities sum up to the most."""
    alike = [[_similarity(one, other) for other in new] for one in old]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i, row in enumerate(alike):
        for j, value in enumerate(row):
            paired = best[i][j] + value if value >= LEAST_SIMILARITY else 0.0
            best[i + 1][j + 1] = max(best[i][j + 1], best[i + 1][j], paired)
    return list(_backwards(alike, best))[::-1]


def _backwards(alike: list[list[float]], best: list[list[float]]) -> Iterator[tuple[int, int]]:
    i, j = len(best) - 1, len(best[0]) - 1
    while i and j:
        if best[i][j] == best[i - 1][j]:
            i -= 1
        elif best[i][j] == best[i][j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            yield i, j


def _joined(tokens: list[str], blocks: list[Block]) -> list[Block]:
    """Changes with nothing but white space between them read better as one."""
    joined: list[Block] = []
    for block in blocks:
        if joined and all(map(str.isspace, tokens[joined[-1].old_stop : block.old_start])):
            above = joined.pop()
            joined.append(Block(above.old_start, block.old_stop, above.new_start, block.new_stop))
        else:
            joined.append(block)
    return joined


def _spans(tokens: list[str], changed: Iterable[tuple[int, int]]) -> tuple[Span, ...]:
    spans: list[Span] = []
    end = 0
    for start, stop in changed:
        if start < stop:  # else the change has words on the other side only
            spans += [Span("".join(tokens[end:start]), False), Span("".join(tokens[start:stop]), True)]
            end = stop
    spans.append(Span("".join(tokens[end:]), False))
    return tuple(span for span in spans if span.text)


def _kept(spans: tuple[Span, ...]) -> float:
    total = sum(len(span.text) for span in spans)
    return sum(len(span.text) for span in spans if not span.changed) / total if total else 1.0
