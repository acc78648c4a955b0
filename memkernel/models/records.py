"""Memory stores, memories, versions, and who makes changes (CONTRACT B.3, B.5, B.10, B.11)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import ClassVar, Final, Generic, Literal, TypeVar

ActorType = Literal["api_actor", "session_actor", "user_actor", "service_account_actor"]
Operation = Literal["created", "modified", "deleted"]
View = Literal["basic", "full"]

T = TypeVar("T")


class Absent(Enum):
    """The type of `ABSENT`."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
"""As an `expect=`: the path must hold no memory yet. A hash expects that content instead."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who made a change. `id` names the person, session or key; it is never a secret."""

    type: ActorType
    id: str

    def __str__(self) -> str:
        return self.id


@dataclass(frozen=True, slots=True)
class Cause:
    """The tool call that a change came from; stored with the change in its own transaction."""

    run_id: str
    tool_use_id: str


@dataclass(frozen=True, slots=True)
class MemoryStore:
    """A memory store. `head_seq` is the number of the store's newest change (0: none yet)."""

    type: ClassVar[Literal["memory_store"]] = "memory_store"
    id: str
    name: str
    description: str
    metadata: dict[str, str]
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None
    head_seq: int
    memory_count: int


@dataclass(frozen=True, slots=True)
class Memory:
    """A live memory. `content` is None in the basic view; `memory_version_id` is its head."""

    type: ClassVar[Literal["memory"]] = "memory"
    id: str
    memory_store_id: str
    memory_version_id: str
    path: str
    content: str | None = field(repr=False)
    content_size_bytes: int
    content_sha256: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class MemoryPrefix:
    """A directory in a listing of depth 1: its path ends with `/`, and it has no id."""

    type: ClassVar[Literal["memory_prefix"]] = "memory_prefix"
    path: str


@dataclass(frozen=True, slots=True)
class MemoryVersion:
    """One immutable version. `seq` counts in the store, `ordinal` (`@3`) in the memory's lineage.

    `path`, `content`, `content_sha256` and `content_size_bytes` are None once redacted; the last
    three also for `deleted`, and `content` in the basic view.
    """

    type: ClassVar[Literal["memory_version"]] = "memory_version"
    id: str
    memory_store_id: str
    memory_id: str
    seq: int
    ordinal: int
    operation: Operation
    path: str | None
    content: str | None = field(repr=False)
    content_sha256: str | None
    content_size_bytes: int | None
    created_at: datetime
    created_by: Actor | None
    redacted_at: datetime | None
    redacted_by: Actor | None


@dataclass(frozen=True, slots=True)
class GrepMatch:
    """A line of a memory that a search found. `line` is 1-based."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A memory in which all words of a search occur, in its content or its path.

    `count` is how often they do in the content; `lines` are at most three of its lines with most of them, of a long
    line the part around one.
    """

    path: str
    memory_version_id: str
    content_size_bytes: int
    updated_at: datetime
    count: int
    lines: tuple[GrepMatch, ...]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The best hits of a search, and in how many memories (`total`) all its words occur."""

    hits: tuple[SearchHit, ...]
    total: int


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The server, memkernel's schema in it, and what that holds."""

    server_version: str
    host: str
    database: str
    user: str
    schema_version: int
    memory_stores: int
    memories: int
    memory_versions: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a store lost to pruning, or would lose: versions, their texts' bytes, all up to `pruned_through_seq`."""

    memory_store_id: str
    name: str
    versions: int
    content_bytes: int
    pruned_through_seq: int


@dataclass(frozen=True, slots=True)
class Change:
    """What a path shall hold afterwards: one member of a batch. A `content` of None deletes."""

    path: str
    content: str | bytes | None = field(repr=False)
    expect: str | Absent | None = None


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a listing. `next_page` is the token of the next one, None on the last.

    `prev_page` is that of the one before, in the listings that can be paged back; None on the first.
    """

    data: list[T]
    next_page: str | None
    prev_page: str | None = None
