"""What a cell in a sandbox did, and what became of its files (SANDBOX.md, Decisions 19 and 20)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from memkernel.models.records import MemoryVersion
from memkernel.models.sessions import folder_name

CellStatus = Literal["ok", "error", "timeout", "interrupted", "died", "out_of_memory"]
ConflictPolicy = Literal["error", "merge"]
Outcome = Literal[
    "not synced", "not saved", "restored", "refused", "deleted", "modified", "merged", "created", "pulled", "removed"
]

_MOST_LINES: Final = 60  # of a store's report in words; `lines()` has all


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
    """A change that was not saved; `rejected_id` names what was put aside (of a deletion: a record without a text)."""

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
    paths whose files were brought up to the store, `removed` those whose files went, as the memory is there no longer;
    `trouble` why nothing could be synced (all is kept).
    """

    memory_store_id: str
    name: str
    mount_path: str
    created: tuple[MemoryVersion, ...] = ()
    modified: tuple[MemoryVersion, ...] = ()
    deleted: tuple[MemoryVersion, ...] = ()
    merged: tuple[MemoryVersion, ...] = ()
    pulled: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    refused: tuple[RefusedFile, ...] = ()
    conflicts: tuple[SyncConflict, ...] = ()
    held_back: HeldBack | None = None
    notes: tuple[str, ...] = ()
    trouble: Exception | None = None

    @property
    def slug(self) -> str:
        """The last segment of `mount_path`: the name of the store's folder."""
        return folder_name(self.mount_path)

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
            *(ReportLine("not saved", each.path, reason=_after_not_saved(each.reason)) for each in self.conflicts),
            *(ReportLine("restored", path, reason="its deletion was held back") for path in _held_back(self)),
            *(ReportLine("refused", each.path, reason=each.reason) for each in self.refused),
            *(ReportLine(how, each.path or "(redacted)", each) for how, versions in made for each in versions),
            *(ReportLine("pulled", path, reason="as it is in the store now") for path in kept),
            *(ReportLine("removed", path, reason="as it is no longer in the store") for path in self.removed),
        ]

    def __str__(self) -> str:
        lines = [*_first(list(map(str, self.lines()))), *_first(self.notes)]
        return "\n  ".join([self.mount_path, *(lines or ["nothing changed"])])

    def __repr__(self) -> str:
        lines = [str(line) for line in self.lines()]
        more = [f"{len(lines) - 3:,} more"] if len(lines) > 3 else []
        return f"<StoreReport {self.mount_path}: {', '.join([*lines[:3], *more]) or 'nothing changed'}>"


def _first(lines: Sequence[str]) -> Sequence[str]:
    """The lines, or the first of them and how many there are."""
    if len(lines) <= _MOST_LINES:
        return lines
    return [*lines[: _MOST_LINES - 1], f"… {_MOST_LINES - 1} of {len(lines):,} lines shown"]


def _after_not_saved(reason: str) -> str:
    return reason.removeprefix("was not saved: ").removeprefix("was not saved, ")


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
