"""Folders that others write to while they are read: no link is ever followed, on file descriptors all the way.

What a sandbox can write to may change between any two calls: a folder becomes a link to a folder of the host, a file a
pipe, a tree 100,000 levels deep. Therefore nothing here opens a path of more than one name below such a folder, and
nothing recurses.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import struct
import sys
import weakref
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""O_NONBLOCK: a pipe without a writer must not keep its reader waiting."""

_FS_IOC_GETVERSION: Final = 2 << 30 | struct.calcsize("l") << 16 | ord("v") << 8 | 1
_MOST_OPEN: Final = 128
_MOST_PASSES: Final = 50
_CHANGED_MEANWHILE: Final = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ELOOP)


@dataclass(frozen=True, slots=True)
class Usage:
    """How much lies below a folder. `files` counts every entry, folders too; `bytes` what they take of the disk."""

    files: int
    bytes: int


def open_folder(path: str | Path, *, dir_fd: int | None = None) -> int:
    """A descriptor of the folder, which the caller closes. The last name of `path` may not be a link.

    Raises:
        OSError: it is missing, no folder, or a link (NotADirectoryError or ELOOP).
    """
    return os.open(path, FOLDER, dir_fd=dir_fd)


@contextlib.contextmanager
def opened(path: str | Path, *, dir_fd: int | None = None) -> Generator[int]:
    """`open_folder` for the length of a `with`."""
    fd = open_folder(path, dir_fd=dir_fd)
    try:
        yield fd
    finally:
        os.close(fd)


class HeldFolder:
    """A folder that is held open, so that another one in its place is noticed (its inode cannot be used again)."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.fd = open_folder(path)
        status = os.fstat(self.fd)
        self.device = status.st_dev
        self._identity = (status.st_dev, status.st_ino)
        self._close = weakref.finalize(self, os.close, self.fd)

    def is_in_place(self) -> bool:
        """Whether the path still leads to this folder."""
        try:
            status = os.stat(self.path, follow_symlinks=False)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._identity

    def identity(self) -> str:
        """What tells, also to a later process, whether a folder at the path is this one: inode and its generation.

        The device has no part in it: its number may be another after the machine was started anew.
        """
        return f"{self._identity[1]}:{_generation(self.fd)}"

    def close(self) -> None:
        """Let go of it; nothing where that was done."""
        self._close()


def _generation(fd: int) -> int:
    """How often the inode's number was used, or a number drawn for this use; 0 where the file system does not say."""
    if sys.platform != "linux":
        return 0
    try:
        return int.from_bytes(fcntl.ioctl(fd, _FS_IOC_GETVERSION, bytes(8))[:4], sys.byteorder)
    except OSError:
        return 0


def make_private_folder(path: Path) -> None:
    """Make a folder that only this account can enter, and the folders above it; one that is there is made so.

    Raises:
        OSError: it cannot be made; it is a link or no folder; it is somebody else's (PermissionError).
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    with opened(path) as fd:
        status = os.fstat(fd)
        if status.st_uid != os.geteuid():
            raise PermissionError(f"{path} belongs to another account")
        if stat.S_IMODE(status.st_mode) != 0o700:
            os.fchmod(fd, 0o700)


def open_closed(name: str, *, dir_fd: int, needed: int = 0o700) -> int:
    """`open_folder`, where the folder may be closed to its own owner (mode 000): it is opened up first.

    Args:
        name: one name.
        dir_fd: the folder that it is in.
        needed: the rights that its owner must have; what is missing is given, where the folder is ours.

    Raises:
        OSError: as `open_folder`; PermissionError where it is not ours.
    """
    try:
        fd = open_folder(name, dir_fd=dir_fd)
    except PermissionError:
        open_up(name, needed, dir_fd=dir_fd)
        fd = open_folder(name, dir_fd=dir_fd)
    let_in(fd, needed)
    return fd


def let_in(fd: int, needed: int = 0o700) -> None:
    """Give the owner of an open folder these rights to it, where some are missing and it is ours."""
    mode = stat.S_IMODE(os.fstat(fd).st_mode)
    if mode & needed != needed:
        with contextlib.suppress(OSError):
            os.fchmod(fd, mode | needed)


def open_up(name: str, mode: int, *, dir_fd: int) -> None:
    """Set the mode of an entry that may not be opened as it is. A link is not followed, and has no mode.

    Raises:
        OSError: it is missing, a link, or not ours.
    """
    if not hasattr(os, "O_PATH"):
        os.chmod(name, mode, dir_fd=dir_fd, follow_symlinks=False)
        return
    handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        # A descriptor of this kind takes no fchmod, and the name may be a link by now.
        os.chmod(f"/proc/self/fd/{handle}", mode)
    finally:
        os.close(handle)


# -- usage -----------------------------------------------------------------------------------------


def usage(path: Path, stop_at_files: int, stop_at_bytes: int) -> Usage:
    """How much lies below the folder, counted until one of the numbers is reached.

    It is fast (a stat an entry), never follows a link, and takes what others change meanwhile as it comes. A folder
    that was closed to its own owner is opened up: it could hide anything. More than 128 nested folders that each hold
    several more count as too many files; a missing folder is empty.
    """
    try:
        fd = open_folder(path)
    except OSError:
        return Usage(0, 0)
    return _Count(stop_at_files, stop_at_bytes).of(fd)


class _Count:
    """Depth first; a folder is closed as soon as the last one in it is opened, so that a mere chain costs nothing."""

    def __init__(self, stop_at_files: int, stop_at_bytes: int) -> None:
        self._stop_at_files, self._stop_at_bytes = stop_at_files, stop_at_bytes
        self._files = self._bytes = 0
        self._open: list[tuple[int, list[str]]] = []

    def of(self, fd: int) -> Usage:
        try:
            self._enter(fd)
            while self._open and not self._is_enough():
                self._enter_next()
        finally:
            for each, _ in self._open:
                os.close(each)
        return Usage(self._files, self._bytes)

    def _is_enough(self) -> bool:
        return self._files >= self._stop_at_files or self._bytes >= self._stop_at_bytes

    def _enter_next(self) -> None:
        fd, names = self._open[-1]
        try:
            below = open_closed(names.pop(), dir_fd=fd, needed=0o500)
        except OSError:
            below = None
        if not names:
            os.close(fd)
            self._open.pop()
        if below is not None:
            self._enter(below)

    def _enter(self, fd: int) -> None:
        """Count what lies in the folder itself; the folders in it are to be entered."""
        names: list[str] = []
        self._open.append((fd, names))
        with contextlib.suppress(OSError), os.scandir(fd) as entries:
            for entry in entries:
                self._count(entry, names)
                if self._is_enough():
                    return
        if not names:
            os.close(fd)
            self._open.pop()
        elif len(self._open) > _MOST_OPEN:
            self._files = max(self._files, self._stop_at_files)

    def _count(self, entry: os.DirEntry[str], names: list[str]) -> None:
        self._files += 1
        with contextlib.suppress(OSError):
            # Blocks, not the length: a sparse file of a terabyte takes nothing.
            self._bytes += entry.stat(follow_symlinks=False).st_blocks * 512
            if entry.is_dir(follow_symlinks=False):
                names.append(entry.name)


# -- removal ---------------------------------------------------------------------------------------


def remove_tree(path: Path) -> None:
    """Remove a folder with all that lies in it, of any depth and whatever modes; nothing where it is missing.

    A link or a file in its place is removed itself. Folders inside are moved up to the top before they are emptied:
    that takes two descriptors at any depth, and no way up (`..`) that somebody could turn elsewhere.

    Raises:
        OSError: something cannot be removed: it is somebody else's, another file system is mounted inside, or others
            fill the folder as fast as it is emptied.
    """
    try:
        # What is above may lead through links: it is not others who write there.
        parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        remove_entry(path.name, dir_fd=parent)
    finally:
        os.close(parent)


def remove_entry(name: str, *, dir_fd: int) -> None:
    """`remove_tree` for one name in an open folder.

    Raises:
        OSError: as `remove_tree`.
    """
    trouble: OSError | None = None
    for _ in range(_MOST_PASSES):
        try:
            _remove_once(name, dir_fd)
            return
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno not in _CHANGED_MEANWHILE:
                raise
            trouble = error
    if trouble is not None:
        raise trouble


def _remove_once(name: str, dir_fd: int) -> None:
    fd = _open_if_folder(name, dir_fd)
    if fd is None:
        os.unlink(name, dir_fd=dir_fd)
        return
    try:
        _Emptying(fd).run()
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=dir_fd)


def _open_if_folder(name: str, dir_fd: int) -> int | None:
    try:
        return open_closed(name, dir_fd=dir_fd)
    except OSError as error:
        # A link is "no folder" on Linux, and "too many links" elsewhere.
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            return None
        raise


class _Emptying:
    """Empties one folder, as far as others let it."""

    def __init__(self, fd: int) -> None:
        self._top = fd
        self._device = os.fstat(fd).st_dev

    def run(self) -> None:
        names = os.listdir(self._top)
        while names:
            try:
                names += self._remove(names.pop())
            except OSError as error:
                if error.errno not in (*_CHANGED_MEANWHILE, errno.ENOENT):
                    raise

    def _remove(self, name: str) -> list[str]:
        """Remove one entry of the top; the folders that were in it are at the top now."""
        fd = _open_if_folder(name, self._top)
        if fd is None:
            os.unlink(name, dir_fd=self._top)
            return []
        try:
            if os.fstat(fd).st_dev != self._device:
                raise OSError(errno.EBUSY, f"another file system is mounted at {name}")
            moved = self._flatten(fd)
        finally:
            os.close(fd)
        with contextlib.suppress(OSError):  # filled again: it is emptied in the next pass
            os.rmdir(name, dir_fd=self._top)
        return moved

    def _flatten(self, fd: int) -> list[str]:
        moved: list[str] = []
        with os.scandir(fd) as entries:
            listed = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        for name, is_folder in listed:
            if is_folder:
                moved.append(self._move_up(name, fd))
            else:
                os.unlink(name, dir_fd=fd)
        return moved

    def _move_up(self, name: str, fd: int) -> str:
        target = f".removed-{os.urandom(8).hex()}"
        try:
            os.rename(name, target, src_dir_fd=fd, dst_dir_fd=self._top)
        except PermissionError:
            # To move a folder is to change its "..": it must be writable itself.
            os.close(open_closed(name, dir_fd=fd))
            os.rename(name, target, src_dir_fd=fd, dst_dir_fd=self._top)
        return target
