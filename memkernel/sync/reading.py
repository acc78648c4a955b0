"""One file of a folder that others write to: read whole and unchanged, or why not."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import functools
import hashlib
import os
import signal
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from memkernel.folders import FILE

Stamp = tuple[int, int, int, int]
"""Inode, size, mtime and ctime in ns: while it stays the same, so does the content (see `scan`)."""

CHANGING: Final = "it changes while it is read"
GONE: Final = "it was removed while it was read"
_TRIES: Final = 3
_KINDS: Final = {
    stat.S_IFLNK: "it is a symbolic link",
    stat.S_IFIFO: "it is a pipe",
    stat.S_IFSOCK: "it is a socket",
    stat.S_IFCHR: "it is a device",
    stat.S_IFBLK: "it is a device",
    stat.S_IFDIR: "it is a folder",
}


@dataclass(slots=True)  # not frozen: that takes thrice as long, and a scan makes thousands
class FileRead:
    """A file's bytes, and the status and stamp that it had before and after they were read."""

    content: bytes = field(repr=False)
    sha256: bytes = field(repr=False)
    status: os.stat_result
    stamp: Stamp


class Unreadable(Exception):  # noqa: N818  # an answer, not a fault
    """Why a file cannot be read; `status` is what it was then (None: it is gone, or changed meanwhile)."""

    def __init__(self, reason: str, status: os.stat_result | None = None) -> None:
        super().__init__(reason)
        self.reason, self.status = reason, status


def stamp(status: os.stat_result) -> Stamp:
    """What tells that a file has changed."""
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def why_no_file(status: os.stat_result, limit_bytes: int) -> str | None:
    """Why no memory can be what has this status; None where one can."""
    if not stat.S_ISREG(status.st_mode):
        return _KINDS.get(stat.S_IFMT(status.st_mode), "it is no file")
    if status.st_size > limit_bytes:
        return f"{status.st_size:,} bytes, the limit is {limit_bytes:,}"
    return None


def read_file(
    name: str, *, dir_fd: int, limit_bytes: int, flush: Callable[[int, os.stat_result], None] | None = None
) -> FileRead:
    """Read a regular file in an open folder. No link is followed, no pipe waited for.

    Args:
        name: one name.
        dir_fd: the folder.
        limit_bytes: a larger file is not read.
        flush: is called with the file's descriptor and status before it is read (see `write_back`).

    Raises:
        Unreadable: it is none, too large, gone, closed to us, or was changed while it was read, each time.
    """
    for _ in range(_TRIES):
        try:
            fd = os.open(name, FILE, dir_fd=dir_fd)
        except OSError as error:
            raise _unopened(error, name, dir_fd, limit_bytes) from None
        try:
            read = _read_open(fd, limit_bytes, flush)
        except OSError as error:
            raise Unreadable(f"it cannot be read: {_words(error)}") from None
        finally:
            os.close(fd)
        if read is not None:
            return read
    raise Unreadable(CHANGING)


def _read_open(fd: int, limit_bytes: int, flush: Callable[[int, os.stat_result], None] | None) -> FileRead | None:
    before = os.fstat(fd)
    reason = why_no_file(before, limit_bytes)
    if reason is not None:
        raise Unreadable(reason, before)
    if flush is not None:
        flush(fd, before)
    size_bytes = before.st_size
    content = os.read(fd, size_bytes + 1)  # one byte more than there should be: a file that grows is noticed
    if len(content) < size_bytes:
        content = _read_on(content, fd, size_bytes)
    after = os.fstat(fd)
    then = stamp(after)
    if stamp(before) != then or len(content) != size_bytes:
        return None
    return FileRead(content, hashlib.sha256(content).digest(), after, then)


def _read_on(content: bytes, fd: int, size_bytes: int) -> bytes:
    while len(content) < size_bytes:
        more = os.read(fd, size_bytes - len(content))
        if not more:
            break
        content += more
    return content


def _unopened(error: OSError, name: str, dir_fd: int, limit_bytes: int) -> Unreadable:
    """What the failure of open means. ELOOP is a link, ENXIO a socket; each may have changed again by now."""
    try:
        status = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return Unreadable(GONE)
    except OSError:
        return Unreadable(CHANGING)
    reason = why_no_file(status, limit_bytes)
    if reason is not None:
        return Unreadable(reason, status)
    if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO):
        return Unreadable(CHANGING)
    return Unreadable(f"it cannot be read: {_words(error)}", status)


def _words(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


# -- writes through a mapping ------------------------------------------------------------------------


def may_be_held(fd: int) -> bool:
    """Whether somebody has a file open for writing, as who maps it has; True where that cannot be told.

    A read lease is granted only where nobody has. It is given back at once: who opens the file meanwhile waits for
    microseconds, and the signal that we then get is one that nobody minds (SIGIO would end the process).
    """
    if sys.platform != "linux":
        return True
    try:
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:
        return True
    return False


def write_back(fd: int) -> None:
    """Write a file's dirty pages back, so that the next store through a mapping (mmap) changes its times.

    A page that is dirty already takes further stores without a trace; a clean one is write-protected again.
    """
    if sys.platform == "linux":
        os.fdatasync(fd)
    else:
        os.fsync(fd)


def write_all_back(fd: int) -> None:
    """`write_back` for every file of the file system that a descriptor belongs to."""
    syncfs = _syncfs()
    if syncfs is None or syncfs(fd) != 0:
        os.sync()


@functools.cache
def _syncfs() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).syncfs
    except (OSError, AttributeError):
        return None
