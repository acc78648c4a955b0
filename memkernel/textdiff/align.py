"""Two lists -> the runs that they share -> the changes between them. Knows neither lines nor words.

In this order, the first that applies:

1. Common ends are trimmed.
2. Few edits for these lengths: an exact shortest edit script (`myers`).
3. Up to `EXACT_CELLS` pairs of elements: an exact longest common subsequence (`longest`).
4. Larger: elements that occur once on each side are anchors (patience) where they are dense enough,
   and the gaps between them go through 3. again.
5. What is still too large is aligned in windows along the diagonal.

So the work is bounded by the lengths alone, whatever the elements. Nothing looks at a clock: the same
two lists always give the same result.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from memkernel.textdiff.longest import longest
from memkernel.textdiff.myers import shortest_script
from memkernel.textdiff.runs import Block, Run, T, run_length
from memkernel.textdiff.settle import settled

EXACT_CELLS: Final = 1 << 26
WINDOW: Final = 768
KEPT: Final = 1_344  # of a window's old and new elements together
ELEMENTS_PER_ANCHOR: Final = 64


def changes(old: list[T], new: list[T], is_gap: Callable[[T], bool]) -> list[Block]:
    """The changes between two lists, in order; at least one equal element lies between two of them.

    Args:
        is_gap: an insertion or deletion that could as well lie a little higher or lower begins behind
            an element of which this is true; where there is none, as low as possible.
    """
    blocks = _between(shared_runs(old, new), len(old), len(new))
    return settled(list(blocks), old, new, is_gap)


def shared_runs(old: list[T], new: list[T]) -> list[Run]:
    """The runs of a common subsequence, in order."""
    return _trimmed(old, new, _few_edits)


def _between(runs: Iterable[Run], old_length: int, new_length: int) -> Iterator[Block]:
    x = y = 0
    for i, j, length in [*runs, Run(old_length, new_length, 0)]:
        if i > x or j > y:
            yield Block(x, i, y, j)
        x, y = i + length, j + length


# -- the chain -----------------------------------------------------------------------------------


def _trimmed(old: list[T], new: list[T], inner: Callable[[list[T], list[T]], list[Run]]) -> list[Run]:
    shorter = min(len(old), len(new))
    head = run_length(old, 0, new, 0, shorter)
    tail = run_length(old[::-1], 0, new[::-1], 0, shorter - head)
    old_middle, new_middle = old[head : len(old) - tail], new[head : len(new) - tail]
    runs = [Run(0, 0, head)] if head else []
    if old_middle and new_middle:
        runs += _moved(inner(old_middle, new_middle), head, head)
    if tail:
        runs.append(Run(len(old) - tail, len(new) - tail, tail))
    return runs


def _moved(runs: Iterable[Run], old: int, new: int) -> list[Run]:
    return [Run(i + old, j + new, length) for i, j, length in runs]


def _few_edits(old: list[T], new: list[T]) -> list[Run]:
    runs = shortest_script(old, new)
    return _many_edits(old, new) if runs is None else runs


def _many_edits(old: list[T], new: list[T]) -> list[Run]:
    if len(old) * len(new) <= EXACT_CELLS:
        return longest(old, new)
    anchors = _anchors(old, new)
    if len(anchors) * ELEMENTS_PER_ANCHOR < min(len(old), len(new)):
        return _windows(old, new)  # few anchors may be moved lines, which would pull all else apart
    runs: list[Run] = []
    x = y = 0
    for i, j in anchors:
        runs += _moved(_trimmed(old[x:i], new[y:j], _gap), x, y)
        runs.append(Run(i, j, 1))
        x, y = i + 1, j + 1
    return runs + _moved(_trimmed(old[x:], new[y:], _gap), x, y)


def _gap(old: list[T], new: list[T]) -> list[Run]:
    return longest(old, new) if len(old) * len(new) <= EXACT_CELLS else _windows(old, new)


def _anchors(old: list[T], new: list[T]) -> list[tuple[int, int]]:
    """Elements that occur once on each side, as the longest chain that ascends on both."""
    there = _single(new)
    pairs = [(i, there[element]) for element, i in _single(old).items() if element in there]
    tails: list[int] = []
    last: list[int] = []  # last[k]: the pair that ends the best chain of k + 1 pairs
    before: list[int] = []
    for index, (_, j) in enumerate(pairs):
        k = bisect_left(tails, j)
        tails[k : k + 1] = [j]
        last[k : k + 1] = [index]
        before.append(last[k - 1] if k else -1)
    chain: list[tuple[int, int]] = []
    index = last[-1] if last else -1
    while index >= 0:
        chain.append(pairs[index])
        index = before[index]
    return chain[::-1]


def _single(elements: list[T]) -> dict[T, int]:
    places: dict[T, int] = {}
    for index, element in enumerate(elements):
        places[element] = -1 if element in places else index
    return {element: index for element, index in places.items() if index >= 0}


def _windows(old: list[T], new: list[T]) -> list[Run]:
    """Align one window, keep what lies far enough from its end not to be bent by it, go on from there."""
    runs: list[Run] = []
    x = y = 0
    while (len(old) - x) * (len(new) - y) > EXACT_CELLS:
        found = longest(old[x : x + WINDOW], new[y : y + WINDOW])
        kept, i, j = _before(KEPT, found, len(old) - x, len(new) - y)
        runs += _moved(kept, x, y)
        x, y = x + i, y + j
    return runs + _moved(longest(old[x:], new[y:]), x, y)


def _before(total: int, found: list[Run], old_left: int, new_left: int) -> tuple[list[Run], int, int]:
    """The runs before the anti-diagonal on which i + j is `total`, and the (i, j) where they cross it."""
    i = j = 0
    for index, run in enumerate(found):
        if run.old + run.new + 2 * run.length > total:
            length = max(0, (total - run.old - run.new) // 2)
            i = min(run.old, total - j)
            j = min(run.new, total - i)
            part = [Run(run.old, run.new, length)] if length else []
            return found[:index] + part, i + length, j + length
        i, j = run.old + run.length, run.new + run.length
    steps = total - i - j
    old_steps = steps * old_left // (old_left + new_left)
    return found, i + old_steps, j + steps - old_steps
