"""Few edits: Myers' O(ND) algorithm, an exact shortest edit script."""

from __future__ import annotations

from math import isqrt
from typing import Final

from memkernel.textdiff.runs import Run, T, run_length

MOST_EDITS: Final = 150


def shortest_script(old: list[T], new: list[T]) -> list[Run] | None:
    """The runs of a shortest edit script; None if it has more edits than `most_edits` allows."""
    n, m = len(old), len(new)
    most = most_edits(n, m)
    if abs(n - m) > most:
        return None
    middle = most + 1
    reach = [-1] * (2 * middle + 1)  # reach[middle + k]: how far in old the diagonal old - new = k was followed
    reach[middle + 1] = 0
    rounds: list[list[int]] = []
    for edits in range(most + 1):
        rounds.append(reach[middle - edits - 1 : middle + edits + 2])
        first, last = max(-edits, edits - 2 * m), min(edits, 2 * n - edits)
        for at in range(middle + first, middle + last + 1, 2):
            below, above = reach[at - 1], reach[at + 1]
            x = above if below < above else below + 1
            y = x - at + middle
            if x < n and y < m and old[x] == new[y]:
                x += run_length(old, x, new, y, min(n - x, m - y))
            reach[at] = x
            if x >= n and x - at + middle >= m:
                return _retraced(rounds, n, m)
    return None


def most_edits(old_length: int, new_length: int) -> int:
    """The steps are about half the square of the edits: so they stay fewer than the elements, and limited."""
    return min(MOST_EDITS, 8 + isqrt(old_length + new_length))


def _retraced(rounds: list[list[int]], x: int, y: int) -> list[Run]:
    runs: list[Run] = []
    for edits in range(len(rounds) - 1, -1, -1):
        reach = rounds[edits]  # as it was before this round
        k = x - y
        below, above = reach[edits + k], reach[edits + k + 2]
        inserted = below < above
        start = above if inserted else below + 1
        if x > start:
            runs.append(Run(start, start - k, x - start))
        x, y = (above, above - k - 1) if inserted else (below, below - k + 1)
    return runs[::-1]
