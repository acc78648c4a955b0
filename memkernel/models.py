"""The frozen records that every floor speaks: the SDK's nouns with the SDK's field names.

Times are aware UTC datetimes, sizes are bytes of UTF-8, hashes are 64 lowercase hex digits.
Sources: CONTRACT B.3 (store), B.5 (memory), B.10 (version), B.11 (actor).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, ClassVar, Final, Generic, Literal, TypeVar

ActorType = Literal["api_actor", "session_actor", "user_actor", "service_account_actor"]
Operation = Literal["created", "modified", "deleted"]
View = Literal["basic", "full"]
Access = Literal["read_write", "read_only"]
SessionStatus = Literal["rescheduling", "running", "idle", "terminated"]
CellStatus = Literal["ok", "error", "timeout", "interrupted", "died", "out_of_memory"]
ConflictPolicy = Literal["error", "merge"]
Outcome = Literal[
    "not synced", "not saved", "restored", "refused", "deleted", "modified", "merged", "created", "pulled"
]

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
class Change:
    """What a path shall hold afterwards: one member of a batch. A `content` of None deletes."""

    path: str
    content: str | bytes | None = field(repr=False)
    expect: str | Absent | None = None


# -- sessions (CONTRACT C) -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AttachmentParams:
    """A store that a new session shall attach (CONTRACT C.2). `instructions`: at most 4,096 characters."""

    memory_store_id: str
    access: Access | None = None
    instructions: str | None = None


@dataclass(frozen=True, slots=True)
class Attachment:
    """A session's `memory_store` resource: a snapshot from when the session was made (CONTRACT C.3, C.4)."""

    type: ClassVar[Literal["memory_store"]] = "memory_store"
    memory_store_id: str
    name: str
    description: str
    access: Access
    instructions: str | None
    mount_path: str

    @property
    def slug(self) -> str:
        """The last segment of `mount_path`: the name of the store's folder."""
        return self.mount_path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A session: who writes (`session_actor`, its id), and to which stores. `resources` in the order given."""

    type: ClassVar[Literal["session"]] = "session"
    id: str
    title: str | None
    metadata: dict[str, str]
    status: SessionStatus
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None
    resources: tuple[Attachment, ...]


# -- what a cell in a sandbox did (SANDBOX.md, Decisions 19 and 20) ---------------------------------


@dataclass(frozen=True, slots=True)
class CellError:
    """An exception that the cell's code let through, as Jupyter's `error` message has it."""

    ename: str
    evalue: str
    traceback: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class CellResult:
    """What a cell did, whatever that was; `report` says what became of its files.

    `outputs` are nbformat's outputs as far as they may leave a sandbox; `stdout` and `stderr` are their streams
    together, `result` the text of the last expression. `exit_code` is bash's. `notes` are sentences for the person:
    a state that was lost, a limit that was hit, an output that was dropped.
    """

    status: CellStatus
    stdout: str = field(repr=False)
    stderr: str = field(repr=False)
    result: str | None
    outputs: tuple[dict[str, Any], ...] = field(repr=False)
    error: CellError | None
    exit_code: int | None
    duration_s: float
    notes: tuple[str, ...] = ()
    report: SyncReport | None = field(default=None, repr=False)

    @property
    def ok(self) -> bool:
        """Whether the code ran to its end without an error, and all that it wrote is saved."""
        return self.status == "ok" and (self.report is None or self.report.ok)

    def __str__(self) -> str:
        head = f"{self.status.replace('_', ' ')} after {self.duration_s:.2f} s"
        return "\n".join([head, *self.notes, *([str(self.report)] if self.report else [])])


@dataclass(frozen=True, slots=True)
class RefusedFile:
    """A file that no memory can be; it stays in the mount and is looked at again once it changes."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class SyncConflict:
    """A change that was not saved; `rejected_id` names the text that was put aside (None: a deletion)."""

    path: str
    reason: str
    rejected_id: str | None


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Deletions that would have emptied a mount: the files were restored (SANDBOX.md, Decision 15)."""

    memory_store_id: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReportLine:
    """What became of one path: the version that was made, or the reason why none was."""

    outcome: Outcome
    path: str
    version: MemoryVersion | None = None
    reason: str = ""

    def __str__(self) -> str:
        about = f"@{self.version.ordinal}" if self.version else self.reason
        text = " ".join(part for part in (self.outcome, self.path, about) if part)
        return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)


@dataclass(frozen=True, slots=True, repr=False)
class StoreReport:
    """What one sync did for one mounted store.

    `created`, `modified`, `deleted` and `merged` are the versions that were made, without contents; `pulled` the
    paths whose files were brought up to the store; `trouble` why nothing could be synced (all is kept).
    """

    memory_store_id: str
    name: str
    mount_path: str
    created: tuple[MemoryVersion, ...] = ()
    modified: tuple[MemoryVersion, ...] = ()
    deleted: tuple[MemoryVersion, ...] = ()
    merged: tuple[MemoryVersion, ...] = ()
    pulled: tuple[str, ...] = ()
    refused: tuple[RefusedFile, ...] = ()
    conflicts: tuple[SyncConflict, ...] = ()
    held_back: HeldBack | None = None
    notes: tuple[str, ...] = ()
    trouble: Exception | None = None

    @property
    def ok(self) -> bool:
        """Whether every legal file of the mount is what the store holds."""
        return not self.conflicts and self.held_back is None and self.trouble is None

    def lines(self) -> list[ReportLine]:
        """A line a path, what a person has to look at first."""
        kept = tuple(path for path in self.pulled if path not in {version.path for version in self.merged})
        made: tuple[tuple[Outcome, tuple[MemoryVersion, ...]], ...] = (
            *(("deleted", self.deleted), ("modified", self.modified)),
            *(("merged", self.merged), ("created", self.created)),
        )
        return [
            *([ReportLine("not synced", "", reason=str(self.trouble))] if self.trouble else []),
            *(ReportLine("not saved", each.path, reason=each.reason) for each in self.conflicts),
            *(ReportLine("restored", path, reason="its deletion was held back") for path in _held_back(self)),
            *(ReportLine("refused", each.path, reason=each.reason) for each in self.refused),
            *(ReportLine(how, each.path or "(redacted)", each) for how, versions in made for each in versions),
            *(ReportLine("pulled", path, reason="as it is in the store now") for path in kept),
        ]

    def __str__(self) -> str:
        lines = [*map(str, self.lines()), *self.notes]
        return "\n  ".join([self.mount_path, *(lines or ["nothing changed"])])

    def __repr__(self) -> str:
        lines = [str(line) for line in self.lines()]
        more = [f"{len(lines) - 3:,} more"] if len(lines) > 3 else []
        return f"<StoreReport {self.mount_path}: {', '.join([*lines[:3], *more]) or 'nothing changed'}>"


def _held_back(report: StoreReport) -> tuple[str, ...]:
    return report.held_back.paths if report.held_back else ()


@dataclass(frozen=True, slots=True, repr=False)
class SyncReport:
    """What one sync did, a StoreReport for each mounted store."""

    stores: tuple[StoreReport, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether all stores are."""
        return all(store.ok for store in self.stores)

    def __str__(self) -> str:
        return "\n".join(map(str, self.stores)) or "no store is mounted"

    def __repr__(self) -> str:
        return f"<SyncReport {' '.join(map(repr, self.stores))}>"


# -- listings, limits, settings ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a listing. `next_page` is the token of the next one, None on the last."""

    data: list[T]
    next_page: str | None


@dataclass(frozen=True, slots=True)
class Limits:
    """The capacities of CONTRACT 0.3, row 5."""

    memories_per_store: int = 2_000
    content_bytes: int = 102_400
    stores_per_session: int = 8


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment says. `config.load` fills it; lower floors are handed plain values."""

    dsn: str | None = None
    home: str | None = None
    pg_bin: str | None = None
    pg_user: str | None = None
    linger_s: float = 60.0
    user: str = "unknown"
    api_key: str | None = field(default=None, repr=False)
    api_base_url: str | None = None
    model: str | None = None
    demo: bool = False
    sandbox_image: str | None = None
    docker_host: str | None = None
    docker_context: str | None = None
    docker_config: str | None = None
    docker_api_version: str | None = None
    docker_tls_verify: bool = False
    docker_cert_path: str | None = None
    limits: Limits = field(default_factory=Limits)
