"""What a check of a store found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoreProblem:
    """Something in a store that is not as memkernel writes it.

    Attributes:
        seq: the change that it is about; None where it is about none.
        path: the memory's path; "" where that is not known.
        problem: what is wrong, in one sentence.
    """

    seq: int | None
    path: str
    problem: str


@dataclass(frozen=True, slots=True)
class Verified:
    """A store as it was checked, at one moment.

    Attributes:
        name: the store's.
        changes: that there ever were.
        versions: that are left of them.
        memories: that are alive.
        problems: at most 1,000 of them.
    """

    memory_store_id: str
    name: str
    changes: int
    versions: int
    memories: int
    problems: tuple[StoreProblem, ...]
