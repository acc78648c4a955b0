"""The private folder of a local sandbox: its home, its temporary files, its sockets.

It is locked for as long as its process lives; what a killed process left goes when the next one makes its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
from pathlib import Path
from typing import Final

from memkernel.errors import SandboxError
from memkernel.folders import remove_tree

_PREFIX: Final = "mkl-"
_LOCK: Final = "lock"
_LONGEST: Final = 90  # a socket's path has at most 104 bytes on macOS, and its name is to be added
_OWN_FOLDERS: Final = ("home", "tmp", "memory")


def furnish(folder: Path) -> None:
    """What a private folder holds."""
    for name in _OWN_FOLDERS:
        (folder / name).mkdir(mode=0o700)


def make() -> tuple[Path, int]:
    """A new folder of ours with a path short enough for sockets, and the descriptor that holds its lock.

    Raises:
        SandboxError: there is no place for one.
        OSError: it cannot be made.
    """
    for where in (tempfile.gettempdir(), "/tmp"):
        if len(os.fsencode(os.path.realpath(where))) <= _LONGEST - 16:
            _sweep(Path(where))
            folder = Path(os.path.realpath(tempfile.mkdtemp(prefix=_PREFIX, dir=where)))
            furnish(folder)
            return folder, _lock(folder)
    raise SandboxError("the local sandbox cannot be started: /tmp is a link to a very long path")


def _lock(folder: Path) -> int:
    """Say that the folder is in use for as long as this process lives. It is locked before it has its name."""
    new = folder / "new-lock"
    fd = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    new.rename(folder / _LOCK)
    _locks.add(fd)
    return fd


def let_go(lock: int) -> None:
    """The folder is not in use any more."""
    _locks.discard(lock)
    os.close(lock)


def _forget_locks() -> None:
    """In a forked child: the parent alone holds them."""
    for fd in _locks:
        os.close(fd)
    _locks.clear()


_locks: set[int] = set()
os.register_at_fork(after_in_child=_forget_locks)


def _sweep(where: Path) -> None:
    """Remove the folders of ours whose process was killed."""
    for folder in where.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            status = folder.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
                continue
            fd = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_tree(folder)
            finally:
                os.close(fd)
