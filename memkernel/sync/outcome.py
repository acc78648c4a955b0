"""What one sync of a mount did, while it does it."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass, field

from memkernel.errors import SyncError
from memkernel.models import Attachment, HeldBack, MemoryVersion, RefusedFile, StoreReport, SyncConflict
from memkernel.store.mount_records import Edit


@dataclass(slots=True)
class Outcome:
    """Collects a StoreReport. What was done before trouble came stays in it."""

    attachment: Attachment
    created: list[MemoryVersion] = field(default_factory=list[MemoryVersion])
    modified: list[MemoryVersion] = field(default_factory=list[MemoryVersion])
    deleted: list[MemoryVersion] = field(default_factory=list[MemoryVersion])
    merged: list[MemoryVersion] = field(default_factory=list[MemoryVersion])
    pulled: list[str] = field(default_factory=list[str])
    removed: list[str] = field(default_factory=list[str])
    refused: list[RefusedFile] = field(default_factory=list[RefusedFile])
    conflicts: list[SyncConflict] = field(default_factory=list[SyncConflict])
    held_back: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list[str])
    trouble: Exception | None = None

    def saved(self, edits: Sequence[Edit], versions: Sequence[MemoryVersion]) -> None:
        """These changes are versions now."""
        kinds = {"created": self.created, "modified": self.modified, "deleted": self.deleted}
        for edit, version in zip(edits, versions, strict=True):
            (kinds[edit.operation] if edit.on_disk else self.merged).append(version)

    @property
    def has_saved(self) -> bool:
        """Whether versions were made."""
        return bool(self.created or self.modified or self.deleted or self.merged)

    def report(self) -> StoreReport:
        """The report, each list in the order of paths."""
        store_id = self.attachment.memory_store_id
        return StoreReport(
            memory_store_id=store_id,
            name=self.attachment.name,
            mount_path=self.attachment.mount_path,
            created=_by_path(self.created),
            modified=_by_path(self.modified),
            deleted=_by_path(self.deleted),
            merged=_by_path(self.merged),
            pulled=tuple(sorted(self.pulled)),
            removed=tuple(sorted(self.removed)),
            refused=tuple(sorted(self.refused, key=lambda one: one.path)),
            conflicts=tuple(sorted(self.conflicts, key=lambda one: one.path)),
            held_back=HeldBack(store_id, self.held_back) if self.held_back else None,
            notes=tuple(self.notes),
            trouble=self.trouble,
        )


def _by_path(versions: list[MemoryVersion]) -> tuple[MemoryVersion, ...]:
    return tuple(sorted(versions, key=lambda version: version.path or ""))


def trouble_of_disk(mount_path: str, error: OSError) -> SyncError:
    """What a person is told where the host's disk is why a mount cannot be synced."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    hint = "Free some space; the next sync goes on." if full else "All is kept; the next sync tries again."
    return SyncError(f"{mount_path} cannot be synced: {error.strerror or error}", hint=hint)
