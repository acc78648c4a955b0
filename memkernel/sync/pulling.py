"""Brings the files of a mount up to the store: what `plan.repair` says is written and removed, nothing lost."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from memkernel.errors import SyncError
from memkernel.store.mount_records import Head
from memkernel.store.mounts import Mounts
from memkernel.sync import plan
from memkernel.sync.baseline import Baseline
from memkernel.sync.files import MountFiles
from memkernel.sync.keeping import Keeper
from memkernel.sync.outcome import Outcome
from memkernel.sync.scan import Scanner
from memkernel.sync.strays import MARKER_PATH

_CHUNK_BYTES: Final = 8 << 20


class Puller:
    """Writes and removes files of one mount, and notes in the baseline what is on disk.

    Attributes:
        unmountable: paths that no file here can have.
    """

    def __init__(
        self,
        mounts: Mounts,
        memory_store_id: str,
        *,
        baseline: Baseline,
        scanner: Scanner,
        files: MountFiles,
        keeper: Keeper,
    ) -> None:
        self._mounts, self._store_id, self._baseline = mounts, memory_store_id, baseline
        self._scanner, self._files, self._keeper = scanner, files, keeper
        self.unmountable: set[str] = {MARKER_PATH}

    def apply(self, repair: plan.Repair, disk: plan.Disk, outcome: Outcome, told: Collection[str]) -> bool:
        """Do it: removals first, since a file may give way to a folder of its name.

        Args:
            repair: what is to be done.
            disk: what the scan found that it is made from.
            outcome: is told what was written and removed, except for the paths in `told`.
            told: paths of which a person is told otherwise.

        Returns:
            Whether all of it could be done.

        Raises:
            SyncError: the disk is full or broken, or the mount's folder was replaced.
            OSError: a text that had to make way cannot be kept; it stays beside the mount.
            DatabaseUnavailableError: the texts cannot be read; what was done so far is in the baseline.
        """
        removed: list[str] = []
        written: list[str] = []
        is_whole = True
        try:
            for path in repair.removals:
                self._remove(path, disk, outcome)
                removed.append(path)
            self._files.prune_folders()
            for heads in _chunks(repair.puts):
                texts = self._mounts.texts(self._store_id, [head.version_id for head in heads])
                fresh = {head.path: head for head in heads if _is_text_of(head, texts.get(head.version_id))}
                written += self._write(fresh, texts, disk, outcome)
                is_whole = is_whole and len(fresh) == len(heads)  # else the store has changed again meanwhile
            self._files.flush()
            self._files.let_go()
        except SyncError:
            self._baseline.forget(interrupted=True)  # some of the files may be there
            raise
        finally:
            outcome.removed += [path for path in removed if path not in told]
            outcome.pulled += [path for path in written if path not in told]
        return is_whole

    def _remove(self, path: str, disk: plan.Disk, outcome: Outcome) -> None:
        self._keeper.keep(self._files.remove(path, self._known(path, disk)), outcome)
        self._scanner.removed(path)
        self._baseline.set(path, None)

    def _write(
        self, heads: Mapping[str, Head], texts: Mapping[str, bytes], disk: plan.Disk, outcome: Outcome
    ) -> list[str]:
        contents = {path: texts[head.version_id] for path, head in heads.items()}
        writes = self._files.write_all(contents, lambda path: {heads[path].sha256, *self._known(path, disk)})
        for path, written in writes.written.items():
            self._scanner.wrote(path, written.status, heads[path].sha256)
            self._keeper.keep(written.put_aside, outcome)
            self._baseline.set(path, plan.entry(heads[path]))
        for path, reason in writes.unwritable.items():
            outcome.notes.append(f"{path} is not in the mount: {reason}")
        self.unmountable.update(writes.unwritable)
        return list(writes.written)

    def _known(self, path: str, disk: plan.Disk) -> set[bytes]:
        """The contents that may be replaced: the scan's, which was saved or put aside, and the baseline's."""
        entry, found = self._baseline.entries.get(path), disk.files.get(path)
        return {sha256 for sha256 in (found, entry and entry.sha256) if sha256 is not None}


def _is_text_of(head: Head, text: bytes | None) -> bool:
    return text is not None and hashlib.sha256(text).digest() == head.sha256


def _chunks(heads: Iterable[Head]) -> Iterator[list[Head]]:
    """Heads whose texts fit into memory together."""
    chunk: list[Head] = []
    size_bytes = 0
    for head in heads:
        if chunk and size_bytes + head.size_bytes > _CHUNK_BYTES:
            yield chunk
            chunk, size_bytes = [], 0
        chunk.append(head)
        size_bytes += head.size_bytes
    if chunk:
        yield chunk
