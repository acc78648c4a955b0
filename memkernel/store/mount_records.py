"""What a mount and the store behind it are to each other: heads, baseline, and the changes between."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from memkernel.models import MemoryVersion, Operation

MountState = Literal["uninitialised", "ready"]


class Head(NamedTuple):
    """A live memory, as far as a mount needs it."""

    memory_id: str
    path: str
    version_id: str
    sha256: bytes
    size_bytes: int
    ordinal: int


class Entry(NamedTuple):
    """What the baseline says of a path: the version whose text is on disk there."""

    memory_id: str
    version_id: str
    sha256: bytes


class Heads:
    """All live memories of a store as they were at `seq`, by path and by id."""

    def __init__(self, seq: int, archived: bool, heads: Iterable[Head]) -> None:
        self.seq, self.archived = seq, archived
        self.by_id = {head.memory_id: head for head in heads}
        self.by_path = {head.path: head for head in self.by_id.values()}

    def changed(self, seq: int, archived: bool, gone: Iterable[str], heads: Iterable[Head]) -> Heads:
        """The same store later: without the ids that are `gone`, with these heads."""
        later = Heads(seq, archived, ())
        later.by_id = self.by_id.copy()
        later.by_path = self.by_path.copy()
        heads = list(heads)
        for memory_id in (*gone, *(head.memory_id for head in heads)):
            before = later.by_id.pop(memory_id, None)
            if before is not None:
                del later.by_path[before.path]
        later.by_id.update((head.memory_id, head) for head in heads)
        later.by_path.update((head.path, head) for head in heads)
        return later


class Pulse(NamedTuple):
    """How a store and a session stand: one small query. `session_status` is None where there is no session."""

    seq: int
    archived: bool
    session_status: str | None


@dataclass(frozen=True, slots=True)
class MountRecord:
    """A mount's row and its baseline. `seq` is the store's, when the mount was last brought up to it."""

    state: MountState
    is_pulling: bool
    nonce: str | None
    seq: int
    baseline: dict[str, Entry]


class Edit(NamedTuple):
    """A change of a mount. `head` is what it changes (None: a creation); `content` is None for a deletion.

    `on_disk` is whether the file is what the change says, already (a merged text is not).
    """

    path: str
    operation: Operation
    content: bytes | None
    sha256: bytes | None
    head: Head | None
    on_disk: bool = True


class Judged(NamedTuple):
    """What shall be made of a mount's changes; `pulls` is whether files will have to be written or removed."""

    edits: Sequence[Edit]
    pulls: bool


class Published(NamedTuple):
    """What was made: a version for each edit in their order, and the store's heads afterwards."""

    versions: Sequence[MemoryVersion]
    heads: Heads


Texts = Callable[[Iterable[str]], Mapping[str, bytes]]
"""Version ids to their texts; a redacted version is left out."""

Judge = Callable[[Heads, Texts], Judged]
"""Is called under the store's lock, once more where the connection was lost."""
