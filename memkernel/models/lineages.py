"""What is read of whole lineages."""

from __future__ import annotations

from dataclasses import dataclass

from memkernel.models.records import MemoryVersion


@dataclass(frozen=True, slots=True)
class Lineage:
    """Versions of one memory, newest first, and the ordinals of the first and the last one that it has.

    The first one is 1 unless history was pruned.
    """

    versions: tuple[MemoryVersion, ...]
    first_ordinal: int
    last_ordinal: int


@dataclass(frozen=True, slots=True)
class Holder:
    """A version that holds a text; `is_head`: it is the current one of a live memory."""

    version: MemoryVersion
    is_head: bool
