"""The folder beside a mount, out of the sandbox's sight, where what is replaced or removed waits to be looked at.

An entry has a random name; a link `NAME.path`, which leads nowhere, holds the memory path that it had. An entry without
one is nobody's text. After a crash `leftovers` finds all that was there.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from memkernel.folders import FILE, HeldFolder, let_in, make_private_folder, open_closed, open_up, remove_entry
from memkernel.sync.reading import Stamp, Unreadable, may_be_held, read_file, stamp, why_no_file

KEPT_BYTES: Final = 64 << 20
"""Of a file that is larger, no content is handed out."""

_NO_FILE: Final = (errno.ENOENT, errno.ELOOP, errno.ENXIO)  # discarded, a link, a socket
_TRIES: Final = 20
_PATH: Final = ".path"
_PATH_BYTES: Final = 1_023  # the longest target of a link on every file system
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class PutAside:
    """What was in a mount at `path` and had to make way; it waits in `file` until it is discarded.

    `sha256` is None, and `reason` says why, where no memory can be what it is: a link, a pipe, too large a file.
    """

    path: str
    size_bytes: int
    sha256: bytes | None = field(repr=False)
    reason: str | None
    file: Path = field(repr=False)

    @property
    def content(self) -> bytes | None:
        """Its bytes; None where it is no file, larger than 64 MiB, or discarded.

        Raises:
            OSError: it cannot be read now: too many open files, a lease, a faulty disk.
        """
        try:
            fd = os.open(self.file, FILE)
        except OSError as error:
            if error.errno in _NO_FILE:
                return None
            raise
        with os.fdopen(fd, "rb") as opened:
            status = os.fstat(fd)
            is_kept = stat.S_ISREG(status.st_mode) and status.st_size <= KEPT_BYTES
            return opened.read(KEPT_BYTES) if is_kept else None


@dataclass(frozen=True, slots=True)
class _Resting:
    """A text that is known, but that somebody may hold open: it is looked at once more before it is removed."""

    name: str
    path: str
    sha256: bytes
    stamp: Stamp


class Aside:
    """The entries of one folder."""

    def __init__(self, path: Path, *, max_file_bytes: int) -> None:
        """Make the folder private, and hold it.

        Raises:
            OSError: it cannot be made.
        """
        make_private_folder(path)
        self.held = HeldFolder(path)
        self.fd = self.held.fd
        self._max_file_bytes = max_file_bytes
        self._resting: list[_Resting] = []
        self._postponed: list[tuple[str, str]] = []

    # -- new files -----------------------------------------------------------------------------------------

    def create(self, content: bytes, owner: tuple[int, int] | None) -> tuple[str, os.stat_result]:
        """A new file of mode 0644 with this content, under a name of its own: to be placed in the mount.

        Raises:
            OSError: the disk is full; this account may not give files away.
        """
        name = os.urandom(8).hex()
        fd = os.open(name, _CREATE, 0o644, dir_fd=self.fd)
        try:
            written = os.write(fd, content)
            while written < len(content):
                written += os.write(fd, content[written:])
            status = os.fstat(fd)
            if stat.S_IMODE(status.st_mode) != 0o644:  # whatever this process's mask is
                os.fchmod(fd, 0o644)
            give_away(fd, owner, status)
            return name, status
        except OSError:
            os.unlink(name, dir_fd=self.fd)
            raise
        finally:
            os.close(fd)

    def discard_new(self, name: str) -> None:
        """Remove a new file that was not placed. One with a note was perhaps exchanged already: `leftovers` has it."""
        try:
            os.readlink(name + _PATH, dir_fd=self.fd)
        except FileNotFoundError:
            self.discard(name)

    def sync_file(self, name: str) -> None:
        """Let an entry's content be on the disk."""
        fd = os.open(name, FILE, dir_fd=self.fd)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def folds_case(self) -> bool:
        """Whether names that differ in case only are one name here."""
        name = os.urandom(8).hex()
        os.symlink("nowhere", f"{name}.probe", dir_fd=self.fd)
        try:
            os.readlink(f"{name}.PROBE", dir_fd=self.fd)
        except FileNotFoundError:
            return False
        finally:
            os.unlink(f"{name}.probe", dir_fd=self.fd)
        return True

    # -- what had to make way ------------------------------------------------------------------------------

    def note(self, name: str, path: str) -> None:
        """Write down which path an entry had, before it comes here under this name."""
        os.symlink(os.fsencode(path)[1 : _PATH_BYTES + 1], os.fsencode(name + _PATH), dir_fd=self.fd)

    def unnote(self, name: str) -> None:
        """The entry is nobody's text."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name + _PATH, dir_fd=self.fd)

    def take(self, entry: str, path: str, *, dir_fd: int) -> str:
        """Move an entry of the mount here; its new name.

        Raises:
            FileNotFoundError: it is gone.
            OSError: it cannot be moved.
        """
        name = os.urandom(8).hex()
        self.note(name, path)
        try:
            try:
                os.rename(entry, name, src_dir_fd=dir_fd, dst_dir_fd=self.fd)
            except PermissionError:
                make_movable(entry, dir_fd=dir_fd)
                os.rename(entry, name, src_dir_fd=dir_fd, dst_dir_fd=self.fd)
        except OSError:
            self.unnote(name)
            raise
        return name

    def judge(self, name: str, path: str, known: Container[bytes]) -> tuple[PutAside, ...]:
        """What came here from the mount, unless its content is known; of a folder, each file in it."""
        status = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            return tuple(put for each in self._spread(name, path) for put in self.judge(*each, ()))
        if stat.S_ISREG(status.st_mode) and not status.st_mode & 0o400:
            with contextlib.suppress(OSError):
                open_up(name, 0o600, dir_fd=self.fd)
        file, reason = self.held.path / name, why_no_file(status, self._max_file_bytes)
        if reason is not None:
            return (PutAside(path, status.st_size, None, reason, file),)
        try:
            read = read_file(name, dir_fd=self.fd, limit_bytes=self._max_file_bytes)
        except Unreadable as why:
            return (PutAside(path, status.st_size, None, why.reason, file),)
        if read.sha256 in known:
            self.unnote(name)
            self._resting.append(_Resting(name, path, read.sha256, stamp(read.status)))
            return ()
        return (PutAside(path, len(read.content), read.sha256, None, file),)

    def _spread(self, folder: str, path: str) -> Iterator[tuple[str, str]]:
        """Take a folder that came here apart, however deep: (name, path) of every file that was in it.

        Who held it open can still change what is in it, so each entry is moved here before it is looked at.
        """
        pending = [(folder, path)]
        while pending:
            folder, path = pending.pop()
            for name, below in self._emptied(folder, path):
                mode = os.stat(name, dir_fd=self.fd, follow_symlinks=False).st_mode
                if stat.S_ISDIR(mode):
                    pending.append((name, below))
                elif stat.S_ISREG(mode):
                    yield name, below
                else:
                    self.discard(name)

    def _emptied(self, folder: str, path: str) -> Iterator[tuple[str, str]]:
        """Move the entries of a folder here and remove it; one that is filled again and again is left for later."""
        fd = open_closed(folder, dir_fd=self.fd)
        try:
            for _ in range(_TRIES):
                for entry in os.listdir(fd):
                    below = f"{path}/{entry}"
                    with contextlib.suppress(FileNotFoundError):
                        yield self.take(entry, below, dir_fd=fd), below
                with contextlib.suppress(OSError):
                    os.rmdir(folder, dir_fd=self.fd)
                    self.unnote(folder)
                    return
        finally:
            os.close(fd)

    def discard(self, name: str) -> None:
        """Remove an entry; nothing where that was done."""
        remove_entry(name, dir_fd=self.fd)
        self.unnote(name)

    def postpone(self, entries: Iterable[tuple[str, str]]) -> None:
        """(name, path) of entries that nobody was told of: `latecomers` will."""
        self._postponed += entries

    def let_go(self) -> None:
        """Remove the known texts that nobody has open for writing; the others wait for `latecomers`."""
        self._resting = [each for each in self._resting if not self._is_let_go(each)]

    def _is_let_go(self, each: _Resting) -> bool:
        fd = os.open(each.name, FILE, dir_fd=self.fd)
        try:
            is_final = not may_be_held(fd) and stamp(os.fstat(fd)) == each.stamp
        finally:
            os.close(fd)
        if is_final:
            os.unlink(each.name, dir_fd=self.fd)  # it has no note
        return is_final

    def latecomers(self) -> tuple[PutAside, ...]:
        """What was written, after they had been replaced, into known texts by those who held them open."""
        resting, self._resting = self._resting, []
        postponed, self._postponed = self._postponed, []
        late = [put for name, path in postponed for put in self.judge(name, path, ())]
        for each in resting:
            if stamp(os.stat(each.name, dir_fd=self.fd, follow_symlinks=False)) == each.stamp:
                os.unlink(each.name, dir_fd=self.fd)
            else:
                self.note(each.name, each.path)
                late += self.judge(each.name, each.path, {each.sha256})
        return tuple(late)

    def leftovers(self) -> tuple[PutAside, ...]:
        """What lies here since a crash. New files that were never placed are removed."""
        names = set(os.listdir(self.fd)) - {each.name for each in self._resting}
        paths = {name.removesuffix(_PATH): self._path_of(name) for name in names if name.endswith(_PATH)}
        for name in names - paths.keys():
            if not name.endswith(_PATH):
                self.discard(name)
        for name in paths.keys() - names:
            self.unnote(name)
        return tuple(put for name in paths.keys() & names for put in self.judge(name, paths[name], ()))

    def _path_of(self, name: str) -> str:
        return "/" + os.readlink(name, dir_fd=self.fd)


def give_away(fd: int, owner: tuple[int, int] | None, status: os.stat_result) -> None:
    """Give an open file or folder of this status to the sandbox's user (SANDBOX.md, Decision 14); None: it stays ours.

    Raises:
        OSError: this account may not.
    """
    if owner is not None and (status.st_uid, status.st_gid) != owner:
        os.fchown(fd, *owner)


def make_movable(entry: str, *, dir_fd: int) -> None:
    """Give ourselves the rights to move an entry: to its folder, and, as its `..` changes, to a folder itself.

    Raises:
        OSError: they are not ours to give.
    """
    let_in(dir_fd)
    with contextlib.suppress(OSError):
        os.close(open_closed(entry, dir_fd=dir_fd))
