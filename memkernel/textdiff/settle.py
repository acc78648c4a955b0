"""Where a change lies, if it could as well lie a little higher or lower."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from memkernel.textdiff.runs import READABLE_CHANGES, Block, T, run_length


def settled(blocks: list[Block], old: list[T], new: list[T], is_gap: Callable[[T], bool]) -> list[Block]:
    """Insertions and deletions slide through equal elements. Those that meet another change join it.

    The others begin behind the nearest gap above their lowest place, or there if no gap is in reach.
    A replacement stays where it is.
    """
    if len(blocks) > READABLE_CHANGES:
        return blocks
    return list(_placed(_met(blocks, old, new), old, new, is_gap))


def _met(blocks: list[Block], old: list[T], new: list[T]) -> list[Block]:
    met: list[Block] = []
    below = blocks[::-1]
    while below:
        block = below.pop()
        if met:
            distance = block.old_start - met[-1].old_stop
            if _rise(block, distance, old, new) == distance:
                block = _joined(met.pop(), _slid(block, -distance))
        while below:
            distance = below[-1].old_start - block.old_stop
            if _fall(block, distance, old, new) < distance:
                break
            block = _joined(_slid(block, distance), below.pop())
        met.append(block)
    return met


def _placed(blocks: list[Block], old: list[T], new: list[T], is_gap: Callable[[T], bool]) -> Iterator[Block]:
    above = Block(-1, -1, -1, -1)
    for block, below in pairwise([*blocks, Block(len(old), len(old), len(new), len(new))]):
        rise = _rise(block, min(block.old_start - above.old_stop, block.new_start - above.new_stop) - 1, old, new)
        fall = _fall(block, below.old_start - block.old_stop, old, new)
        above = block
        if rise or fall:
            elements, start, _ = _moving(block, old, new)
            places = range(start + fall, max(start - rise, 1) - 1, -1)
            above = _slid(block, next((place - start for place in places if is_gap(elements[place - 1])), fall))
        yield above


def _moving(block: Block, old: list[T], new: list[T]) -> tuple[list[T], int, int]:
    """What was inserted, or deleted: `elements[start:stop]`."""
    if block.old_start == block.old_stop:
        return new, block.new_start, block.new_stop
    return old, block.old_start, block.old_stop


def _is_replacement(block: Block) -> bool:
    return block.old_start < block.old_stop and block.new_start < block.new_stop


def _rise(block: Block, limit: int, old: list[T], new: list[T]) -> int:
    """By how many elements, at most `limit`, the block may lie higher to the same effect."""
    if _is_replacement(block):
        return 0
    elements, start, stop = _moving(block, old, new)
    steps = 0
    while steps < limit and elements[start - steps - 1] == elements[stop - steps - 1]:
        steps += 1
    return steps


def _fall(block: Block, limit: int, old: list[T], new: list[T]) -> int:
    """By how many it may lie lower."""
    if _is_replacement(block):
        return 0
    elements, start, stop = _moving(block, old, new)
    return run_length(elements, start, elements, stop, limit)


def _slid(block: Block, steps: int) -> Block:
    x, old_stop, y, new_stop = block
    return Block(x + steps, old_stop + steps, y + steps, new_stop + steps)


def _joined(above: Block, below: Block) -> Block:
    return Block(above.old_start, below.old_stop, above.new_start, below.new_stop)
