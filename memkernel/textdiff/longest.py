"""Many edits: an exact longest common subsequence, a bit a cell.

Hyyrö's recurrence, on Python's long integers: one of them is a row of the table, so that a few machine
instructions settle some thirty cells.
"""

from __future__ import annotations

from memkernel.textdiff.runs import Run, T


def longest(old: list[T], new: list[T]) -> list[Run]:
    """The runs of a longest common subsequence. `rows[i]` has a 0 at j where `old[:i]` gains by `new[j]`."""
    if len(new) > len(old):  # many short rows are cheaper than few long ones
        return [Run(i, j, length) for j, i, length in longest(new, old)]
    masks = _masks(new, set(old))
    full = (1 << len(new)) - 1
    row = full
    rows = [row]
    for mask in map(masks.get, old):
        if mask and (hits := row & mask):
            row = ((row + hits) | (row ^ hits)) & full
        rows.append(row)
    return _retraced(rows, old, new)


def _masks(new: list[T], wanted: set[T]) -> dict[T, int]:
    """For each wanted element an integer with a 1 where `new` holds it."""
    places: dict[T, list[int]] = {}
    for j, element in enumerate(new):
        if element in wanted:
            places.setdefault(element, []).append(j)
    return {element: _bits(indices, len(new)) for element, indices in places.items()}


def _bits(indices: list[int], length: int) -> int:
    if len(indices) == 1:
        return 1 << indices[0]
    data = bytearray(length // 8 + 1)
    for index in indices:
        data[index >> 3] |= 1 << (index & 7)
    return int.from_bytes(data, "little")


def _retraced(rows: list[int], old: list[T], new: list[T]) -> list[Run]:
    """Walk back from the last cell and gather what matched."""
    runs: list[Run] = []
    i, j, length = len(old), len(new), 0
    while i and j:
        if old[i - 1] == new[j - 1]:
            i, j, length = i - 1, j - 1, length + 1
            continue
        if length:
            runs.append(Run(i, j, length))
            length = 0
        if (rows[i] >> (j - 1)) & 1:
            j -= 1
        else:
            i -= 1
    if length:
        runs.append(Run(i, j, length))
    return runs[::-1]
