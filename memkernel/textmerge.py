"""Base, ours, theirs -> a text or conflicts: a three-way merge of lines.

Lines end at `\\n` alone, which they keep, so that a carriage return and a missing last `\\n` are part of a line
like any other character. Each side is aligned with the base as `textdiff` does it, which bounds the work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from memkernel.textdiff.lines import line_changes, lines_of
from memkernel.textdiff.runs import Block


@dataclass(frozen=True, slots=True)
class Conflict:
    """A place that both sides changed, each in its own way.

    `base_line` is the 1-based number of the base's first line there; where there is none (`base` is empty), that
    of the line before.
    """

    base_line: int
    base: str
    ours: str
    theirs: str


@dataclass(frozen=True, slots=True)
class Merge:
    """What a merge came to: a text, or else (`text` is None) the conflicts."""

    text: str | None
    conflicts: tuple[Conflict, ...]


def merge(base: str, ours: str, theirs: str) -> Merge:
    """Both sides' changes in one text.

    What only one side changed is taken from it, and what both changed alike is taken once. Changes that meet, with
    no unchanged line of the base between them, are a conflict.
    """
    pieces = list(_pieces(base, ours, theirs))
    conflicts = tuple(piece for piece in pieces if isinstance(piece, Conflict))
    text = None if conflicts else "".join(piece for piece in pieces if isinstance(piece, str))
    return Merge(text, conflicts)


def _pieces(base: str, ours: str, theirs: str) -> Iterator[str | Conflict]:
    """The merged text in pieces, with the conflicts in their places."""
    base_lines, our_lines, their_lines = lines_of(base), lines_of(ours), lines_of(theirs)
    at = 0
    for region in _regions(base_lines, our_lines, their_lines):
        yield "".join(base_lines[at : region.start])
        at = region.stop
        before = "".join(base_lines[region.start : region.stop])
        mine = "".join(our_lines[region.ours])
        yours = "".join(their_lines[region.theirs])
        if yours in (before, mine):
            yield mine
        elif mine == before:
            yield yours
        else:
            yield Conflict(region.start + (region.start < region.stop), before, mine, yours)
    yield "".join(base_lines[at:])


@dataclass(frozen=True, slots=True)
class _Region:
    """Lines `start:stop` of the base, and what each side has in their place; around them all three are equal."""

    start: int
    stop: int
    ours: slice
    theirs: slice


def _regions(base: list[str], ours: list[str], theirs: list[str]) -> Iterator[_Region]:
    """The changes of both sides in order, those that meet as one."""
    mine, yours = line_changes(base, ours)[::-1], line_changes(base, theirs)[::-1]
    our_shift = their_shift = 0  # how much lower a line of the base lies on that side
    while mine or yours:
        start = stop = min(side[-1].old_start for side in (mine, yours) if side)
        first_ours, first_theirs = start + our_shift, start + their_shift
        while (is_ours := _meets(mine, stop)) or _meets(yours, stop):
            block = (mine if is_ours else yours).pop()
            stop = max(stop, block.old_stop)
            if is_ours:
                our_shift = block.new_stop - block.old_stop
            else:
                their_shift = block.new_stop - block.old_stop
        yield _Region(start, stop, slice(first_ours, stop + our_shift), slice(first_theirs, stop + their_shift))


def _meets(below: list[Block], stop: int) -> bool:
    return bool(below) and below[-1].old_start <= stop
