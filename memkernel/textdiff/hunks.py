"""Two texts -> hunks: changes with the equal lines around them; and the unified diff of them.

Lines end at `\n` alone, which they keep: a carriage return is a character like any other, and the
last line of a text has no `\n` where the text has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from memkernel.textdiff.lines import line_changes, lines_of
from memkernel.textdiff.runs import READABLE_CHANGES, Block
from memkernel.textdiff.words import Span, WordDiff

Kind = Literal["equal", "removed", "added", "changed"]
_Stop = tuple[int, int, tuple[tuple[Span, ...], tuple[Span, ...]] | None]


class Line(NamedTuple):
    """A line of a hunk; what is not on a side is None there. Numbers are 1-based.

    `changed` is an old and a new line that share much: only such a line has spans, which cover each
    side without its `\\n`. An `equal` line has two texts as well: under `ignore_whitespace` they may differ.
    """

    kind: Kind
    old: str | None
    new: str | None
    old_number: int | None
    new_number: int | None
    old_spans: tuple[Span, ...] = ()
    new_spans: tuple[Span, ...] = ()


class Row(NamedTuple):
    """A row of a unified diff: `sign` is " ", "-" or "+"; `spans` are empty unless words were compared."""

    sign: Literal[" ", "-", "+"]
    text: str
    number: int
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Hunk:
    """Changes that are near to each other, with the equal lines around them.

    `old_start` is the 1-based number of the first old line; where there is none (`old_count` 0), that of
    the line before, as in a unified diff. The same for `new_start`.
    """

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    lines: tuple[Line, ...]

    @property
    def header(self) -> str:
        """`@@ -3,7 +3,8 @@`"""
        return f"@@ -{_range(self.old_start, self.old_count)} +{_range(self.new_start, self.new_count)} @@"

    def rows(self) -> Iterator[Row]:
        """The lines as a unified diff has them: of each change first all that went, then all that came."""
        added: list[Row] = []
        for line in self.lines:
            if line.kind == "equal":
                yield from added
                added.clear()
                yield Row(" ", line.old or "", line.old_number or 0, ())
                continue
            if line.old is not None:
                yield Row("-", line.old, line.old_number or 0, line.old_spans)
            if line.new is not None:
                added.append(Row("+", line.new, line.new_number or 0, line.new_spans))
        yield from added


class Fold(NamedTuple):
    """`length` equal lines that no hunk shows; the numbers of the first one, 1-based."""

    old_number: int
    new_number: int
    length: int


@dataclass(frozen=True, slots=True)
class TextDiff:
    """The difference of two texts. `places` counts the changes; `old_count`, `new_count` all lines.

    `work` is what was spent on comparing words, at most `words.WORK_LIMIT`.
    """

    hunks: tuple[Hunk, ...]
    added: int
    removed: int
    places: int
    old_count: int
    new_count: int
    work: int

    @property
    def folds(self) -> tuple[Fold, ...]:
        """What lies before each hunk and after the last one, so one more than hunks; some have no line."""
        folds: list[Fold] = []
        old, new = 1, 1
        for hunk in self.hunks:
            old_first, new_first = hunk.old_start + (not hunk.old_count), hunk.new_start + (not hunk.new_count)
            folds.append(Fold(old, new, old_first - old))
            old, new = old_first + hunk.old_count, new_first + hunk.new_count
        return (*folds, Fold(old, new, self.old_count + 1 - old))

    def unified(self, old_name: str = "old", new_name: str = "new") -> str:
        """The unified diff, which `patch` and `git apply` accept; `""` where nothing differs."""
        if not self.hunks:
            return ""
        parts = [f"--- {old_name}\n+++ {new_name}\n"]
        for hunk in self.hunks:
            parts.append(f"{hunk.header}\n")
            parts += [f"{row.sign}{_terminated(row.text)}" for row in hunk.rows()]
        return "".join(parts)


def diff(old: str, new: str, *, context: int = 3, ignore_whitespace: bool = False, words: bool = True) -> TextDiff:
    """The difference between two texts.

    Args:
        context: how many equal lines to keep around a change.
        ignore_whitespace: lines that differ in white space alone count as equal.
        words: compare the words of lines that changed.
    """
    old_lines, new_lines = lines_of(old), lines_of(new)
    blocks = _changes(old_lines, new_lines, ignore_whitespace)
    readable = len(blocks) <= READABLE_CHANGES
    word_diff = WordDiff(ignore_whitespace=ignore_whitespace) if words and readable else None
    hunks = tuple(_hunk(near, context, old_lines, new_lines, word_diff) for near in _near(blocks, 2 * context))
    return TextDiff(
        hunks,
        added=sum(block.new_stop - block.new_start for block in blocks),
        removed=sum(block.old_stop - block.old_start for block in blocks),
        places=len(blocks),
        old_count=len(old_lines),
        new_count=len(new_lines),
        work=word_diff.work if word_diff else 0,
    )


def _changes(old: list[str], new: list[str], ignore_whitespace: bool) -> list[Block]:
    if ignore_whitespace:
        old, new = ["".join(line.split()) for line in old], ["".join(line.split()) for line in new]
    return line_changes(old, new)


def _near(blocks: list[Block], distance: int) -> list[list[Block]]:
    """The blocks in groups: of one group are those with at most `distance` equal lines between them."""
    groups: list[list[Block]] = []
    for block in blocks:
        if groups and block.old_start - groups[-1][-1].old_stop <= distance:
            groups[-1].append(block)
        else:
            groups.append([block])
    return groups


def _hunk(blocks: list[Block], context: int, old: list[str], new: list[str], words: WordDiff | None) -> Hunk:
    first, last = blocks[0], blocks[-1]
    before, after = min(context, first.old_start), min(context, len(old) - last.old_stop)
    x, y = first.old_start - before, first.new_start - before
    end = Block(last.old_stop + after, last.old_stop + after, last.new_stop + after, last.new_stop + after)
    old_count, new_count = end.old_stop - x, end.new_stop - y
    lines = tuple(_records([Block(x, x, y, y), *blocks, end], old, new, words))
    return Hunk(x + bool(old_count), old_count, y + bool(new_count), new_count, lines)


def _records(blocks: list[Block], old: list[str], new: list[str], words: WordDiff | None) -> list[Line]:
    """The lines of the blocks, and the equal lines between them."""
    lines: list[Line] = []
    x, _, y, _ = blocks[0]
    for block in blocks:
        while x < block.old_start:
            lines.append(Line("equal", old[x], new[y], x := x + 1, y := y + 1))
        for i, j, spans in _stops(block, old, new, words):
            while x < i:
                lines.append(Line("removed", old[x], None, x := x + 1, None))
            while y < j:
                lines.append(Line("added", None, new[y], None, y := y + 1))
            if spans:
                lines.append(Line("changed", old[x], new[y], x := x + 1, y := y + 1, *spans))
    return lines


def _stops(block: Block, old: list[str], new: list[str], words: WordDiff | None) -> list[_Stop]:
    """Where in the block a removed and an added line are a pair, with their spans; and where it ends."""
    x, old_stop, y, new_stop = block
    end: _Stop = (old_stop, new_stop, None)
    if words is None or x == old_stop or y == new_stop:
        return [end]
    pairs = words.pairs(old[x:old_stop], new[y:new_stop])
    return [*((x + pair.old, y + pair.new, pair.spans) for pair in pairs), end]


def _range(start: int, count: int) -> str:
    return str(start) if count == 1 else f"{start},{count}"


def _terminated(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
