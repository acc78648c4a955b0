"""What lies in a mount: its legal files by their SHA-256, and what can be no memory, with the reason.

A file's stamp (inode, size, mtime, ctime) stands for its content only if
* its ctime lay two seconds back when the scan began: within one tick of the file system's clock a second write leaves
  no trace;
* nobody had it open for writing when it was read, or its dirty pages were written back before: a store through a
  mapping into a page that is dirty leaves none;
* the file system sees such stores at all: a memory file system (tmpfs) never does, so there every file is read anew.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from memkernel import paths
from memkernel.cluster.filesystem import filesystem_of
from memkernel.errors import SyncError
from memkernel.folders import HeldFolder, opened
from memkernel.sync.reading import Unreadable, read_file
from memkernel.sync.walk import Known, LocalFile, Walk, shown

__all__ = ["LocalFile", "Scan", "Scanner"]

MOST_ENTRIES: Final = 50_000
"""A full store, 2,000 memories of 20 segments, can be 40,000 files and folders."""

_BLIND_TO_MAPPINGS: Final = frozenset({"tmpfs", "ramfs"})


@dataclass(frozen=True, slots=True)
class Scan:
    """A mount at a moment. Paths are memory paths (`/notes/todo.md`).

    Attributes:
        files: every file that can be a memory.
        refused: what can be none, and why; at such a path nothing counts as changed (SANDBOX.md, Decision 13). What a
            path may not hold is spelt with escapes. It may be a folder: then nothing below it can be a memory.
        unreadable: folders (`/notes/`, `/` for all) that could not be read; below them nothing counts as changed.
        complete: False where there are more files than may be: what is missing from `files` may well be there.
        changed: whether anything is not as the scan before saw it, or as `wrote` and `removed` told.
    """

    files: Mapping[str, LocalFile]
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    unreadable: tuple[str, ...] = ()
    complete: bool = True
    changed: bool = True


class Scanner:
    """Scans one mount again and again, and holds its folder. One thread at a time."""

    def __init__(
        self,
        folder: Path,
        *,
        name: str | None = None,
        max_file_bytes: int = 102_400,
        max_files: int = MOST_ENTRIES,
    ) -> None:
        """Hold the folder.

        Args:
            folder: the mount's folder on the host.
            name: what a person knows it by, for messages; None: its path on the host.
            max_file_bytes: a larger file is refused without being read.
            max_files: of more entries (folders, too) the rest is not looked at.

        Raises:
            SyncError: there is no such folder, or it is a link.
        """
        self._max_file_bytes, self._max_files = max_file_bytes, max_files
        self._name = name or str(folder)
        try:
            self._held = HeldFolder(folder)
        except OSError as error:
            raise SyncError(f"{self._name} cannot be synced: {error.strerror}") from None
        self._stamps_tell = filesystem_of(folder.resolve()) not in _BLIND_TO_MAPPINGS
        self._known = Known()
        self._was_told = False
        self._last: Scan | None = None

    def identity(self) -> str:
        """What tells, also to a later process, whether the mount's folder is still this one."""
        return self._held.identity()

    def close(self) -> None:
        """Let go of the folder."""
        self._held.close()

    def scan(self, *, deep: bool = False) -> Scan:
        """Look at the mount.

        Args:
            deep: read every file, whatever its stamp says.

        Raises:
            SyncError: another folder is in the mount's place, or none.
        """
        check_in_place(self._held, self._name)
        walk = Walk(
            self._known,
            self._held.fd,
            max_file_bytes=self._max_file_bytes,
            max_files=self._max_files,
            stamps_tell=self._stamps_tell,
            deep=deep,
        )
        walk.run()
        last, unreadable = self._last, tuple(sorted(walk.unreadable))
        changed = walk.changed or last is None or (unreadable, walk.complete) != (last.unreadable, last.complete)
        if last is None or changed or self._was_told:
            last = self._snapshot(unreadable, walk.complete)
        self._last, self._was_told = last, False
        if not changed:
            return last
        read = {
            path: LocalFile(file.sha256, file.size_bytes, content)
            for path, content in walk.contents.items()
            if (file := last.files.get(path))
        }
        return replace(last, changed=True, files=MappingProxyType({**last.files, **read}) if read else last.files)

    def _snapshot(self, unreadable: tuple[str, ...], complete: bool) -> Scan:
        files = MappingProxyType(dict(self._known.files))
        refused = MappingProxyType(dict(shown(self._known.refused.items(), files)))
        return Scan(files, refused, unreadable, complete, changed=False)

    def read(self, path: str) -> bytes | None:
        """The bytes of the file at a path; None where no regular file of a legal size can be read there.

        Raises:
            InvalidPathError: no memory can have that path.
            SyncError: as `scan`.
        """
        check_in_place(self._held, self._name)
        *folders, name = paths.check_path(path)[1:].split("/")
        with contextlib.ExitStack() as stack:
            fd = self._held.fd
            try:
                for folder in folders:
                    fd = stack.enter_context(opened(folder, dir_fd=fd))
                return read_file(name, dir_fd=fd, limit_bytes=self._max_file_bytes).content
            except (OSError, Unreadable):
                return None

    def wrote(self, path: str, status: os.stat_result, sha256: bytes) -> None:
        """The caller itself put a file with this content at the path: the next scan calls it no change.

        It is read once more all the same: so young a stamp does not stand for a content.
        """
        folder, name = self._known.folder_of(path)
        folder.stamps[name] = None
        self._known.set_file(path, LocalFile(sha256, status.st_size))
        self._was_told = True

    def removed(self, path: str) -> None:
        """The caller itself took the file at the path away."""
        folder, name = self._known.folder_of(path)
        folder.stamps.pop(name, None)
        self._known.forget(path)
        self._was_told = True


def check_in_place(held: HeldFolder, name: str) -> None:
    """Raise where another folder, or none, is where the mount's was.

    Raises:
        SyncError: it is so.
    """
    if not held.is_in_place():
        raise SyncError(
            f"{name} is no longer the folder that was mounted",
            hint="Stop the sandbox and start it anew; what lies in the folder is kept.",
        )
