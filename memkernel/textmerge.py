"""Base, ours, theirs -> a text or conflicts: a three-way merge of lines.

Lines end at `\n` alone, which they keep, so that a carriage return and a missing last `\n` are part of a line
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


@dataclass(frozen=True, slots=True)
class _Region:
    """What became of `base[start:stop]` on each side; all else of the base is on both."""

    start: int
    stop: int
    ours: str
    theirs: str


def merge(base: str, ours: str, theirs: str) -> Merge:
    """Both sides' changes in one text.

    What only one side changed is taken from it, and what both changed alike is taken once. Changes that meet, with
    no unchanged line of the base between them, are a conflict.
    """
    if theirs in (ours, base):
        return Merge(ours, ())
    if ours == base:
        return Merge(theirs, ())
    base_lines = lines_of(base)
    merged: list[str] = []
    conflicts: list[Conflict] = []
    at = 0
    for region in _regions(base_lines, lines_of(ours), lines_of(theirs)):
        merged += base_lines[at : region.start]
        at = region.stop
        before = "".join(base_lines[region.start : region.stop])
        if region.theirs in (before, region.ours):
            merged.append(region.ours)
        elif region.ours == before:
            merged.append(region.theirs)
        else:
            first = region.start + (region.start < region.stop)
            conflicts.append(Conflict(first, before, region.ours, region.theirs))
    return Merge(None if conflicts else "".join([*merged, *base_lines[at:]]), tuple(conflicts))


def _regions(base: list[str], ours: list[str], theirs: list[str]) -> Iterator[_Region]:
    """The changes of both sides, those that meet as one, in order."""
    mine, yours = line_changes(base, ours)[::-1], line_changes(base, theirs)[::-1]
    shift_ours = shift_theirs = 0  # how far a line of the base lies lower on that side
    while mine or yours:
        start = min(side[-1].old_start for side in (mine, yours) if side)
        stop, first_ours, first_theirs = start, start + shift_ours, start + shift_theirs
        while (near := _near(mine, stop)) or _near(yours, stop):
            block = (mine if near else yours).pop()
            grown = (block.new_stop - block.new_start) - (block.old_stop - block.old_start)
            stop = max(stop, block.old_stop)
            if near:
                shift_ours += grown
            else:
                shift_theirs += grown
        yield _Region(
            start,
            stop,
            "".join(ours[first_ours : stop + shift_ours]),
            "".join(theirs[first_theirs : stop + shift_theirs]),
        )


def _near(side: list[Block], stop: int) -> bool:
    return bool(side) and side[-1].old_start <= stop
