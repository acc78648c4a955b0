"""A store as of a point of its history, and what differs between two points."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from memkernel.models.records import Memory, MemoryVersion

ChangeKind = Literal["created", "modified", "renamed", "deleted"]


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a store's history: after its change `seq`, and before the next one. 0 is before the first.

    `created_at` is when that change was made; None for 0, and where that version itself was pruned.
    """

    memory_store_id: str
    seq: int
    created_at: datetime | None


@dataclass(frozen=True, slots=True)
class StoreAsOf:
    """What a store held at a point.

    `memories` are in path order, without contents. `redacted` are the versions of then whose path and text were
    erased since.
    """

    memories: list[Memory]
    redacted: list[MemoryVersion]


@dataclass(frozen=True, slots=True)
class StoreChange:
    """What became of a memory between two points of its store's history.

    `renamed` may have another text as well. `path` is where the memory is, or was before it was deleted; `old_path`
    where it was before it was renamed. Of a deletion `new` is the version that tells by whom and when. `path` is None
    where it was redacted.
    """

    kind: ChangeKind
    path: str | None
    old_path: str | None
    old: MemoryVersion | None
    new: MemoryVersion | None

    @property
    def id(self) -> str:
        """`memver_…`: the newer version's, or the older one's where there is no newer one."""
        return next(side.id for side in (self.new, self.old) if side)
