"""What two lists share and what they do not: runs of equal elements, blocks of changed ones."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, NamedTuple, TypeVar

READABLE_CHANGES: Final = 5_000
"""Nobody reads more changes than these one by one: they stay where they were found, without words."""

T = TypeVar("T", bound=Hashable)


class Run(NamedTuple):
    """`length` equal elements, from `old` on one side and `new` on the other (0-based)."""

    old: int
    new: int
    length: int


class Block(NamedTuple):
    """A change: elements `old_start:old_stop` became `new_start:new_stop` (0-based; one may be empty)."""

    old_start: int
    old_stop: int
    new_start: int
    new_stop: int


def run_length(old: list[T], i: int, new: list[T], j: int, limit: int) -> int:
    """How many elements are equal from i and j on. Compares whole slices, growing, then halving."""
    length, step = 0, 1
    while length + step <= limit and old[i + length : i + length + step] == new[j + length : j + length + step]:
        length += step
        step *= 2
    while step > 1:
        step //= 2
        if length + step <= limit and old[i + length : i + length + step] == new[j + length : j + length + step]:
            length += step
    return length
