"""What a mount's files were changed to, against its baseline; their texts are read here."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace

from memkernel.models import RefusedFile
from memkernel.store.mount_records import Entry, Heads
from memkernel.sync import plan
from memkernel.sync.baseline import Baseline
from memkernel.sync.scan import Scan, Scanner
from memkernel.sync.strays import is_stray


@dataclass(frozen=True, slots=True)
class Found:
    """What a scan found, and what that means against the baseline.

    `known` are contents that the store itself may have brought (None: the baseline is exact); `has_unstable` says
    that a file was changing while it was read: it counts as unchanged until the next sync.
    """

    disk: plan.Disk
    changes: tuple[plan.LocalChange, ...]
    contents: Mapping[str, bytes]
    known: frozenset[tuple[str, bytes]] | None = None
    has_unstable: bool = False


def unseen(entries: Mapping[str, Entry]) -> Found:
    """What is in a mount that nobody can write to: what was brought there."""
    return Found(plan.Disk({path: entry.sha256 for path, entry in entries.items()}), (), {})


class Looker:
    """Reads what was changed in one mount."""

    def __init__(self, scanner: Scanner, baseline: Baseline) -> None:
        self._scanner, self._baseline = scanner, baseline
        self._told: dict[str, str] = {}

    def look(self, scan: Scan, heads: Heads, undone: Container[tuple[str, bytes | None]]) -> Found:
        """What the scan means, and the texts of what was changed.

        Args:
            scan: of the mount.
            heads: the store; what it has is no editor's stray.
            undone: changes that were put aside already and only wait for being undone.

        Raises:
            DatabaseUnavailableError: a mount left in the middle of a pull cannot be judged without the store.
        """
        entries = self._baseline.entries
        files = {
            path: file.sha256
            for path, file in scan.files.items()
            if path in entries or path in heads.by_path or not is_stray(path)
        }
        unreadable = tuple(folder.rstrip("/") for folder in scan.unreadable)
        disk = plan.Disk(files, frozenset(scan.refused), unreadable, scan.complete)
        changes = plan.local_changes(entries, disk)
        known = self._baseline.known([(change.path, change.sha256) for change in changes if change.sha256])
        if known is not None:
            changes = plan.local_changes(entries, disk, known)
        return self._read(scan, disk, [one for one in changes if (one.path, one.sha256) not in undone], known)

    def _read(
        self, scan: Scan, disk: plan.Disk, changes: list[plan.LocalChange], known: frozenset[tuple[str, bytes]] | None
    ) -> Found:
        contents: dict[str, bytes] = {}
        unstable: set[str] = set()
        for change in changes:
            if change.sha256 is None:
                continue
            content = scan.files[change.path].content
            if content is None:
                content = self._scanner.read(change.path)
                if content is None or hashlib.sha256(content).digest() != change.sha256:
                    unstable.add(change.path)
                    continue
            contents[change.path] = content
        if unstable:
            still = {path: sha256 for path, sha256 in disk.files.items() if path not in unstable}
            disk = replace(disk, files=still, refused=frozenset({*disk.refused, *unstable}))
            changes = [change for change in changes if change.path not in unstable]
        return Found(disk, tuple(changes), contents, known, bool(unstable))

    def newly_refused(self, scan: Scan) -> list[RefusedFile]:
        """What cannot be a memory, each file once, and once more when its reason changes."""
        refused = {path: why for path, why in scan.refused.items() if not is_stray(path)}
        told, self._told = self._told, refused
        return [RefusedFile(path, why) for path, why in refused.items() if told.get(path) != why]
