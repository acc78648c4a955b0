"""The private folder of a local sandbox: its home, its temporary files, its sockets.

It is locked for as long as its process lives; what a killed process left goes when the next one makes its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from pathlib import Path
from typing import Final

from memkernel.errors import SandboxError
from memkernel.folders import remove_tree

_PREFIX: Final = "mkl-"
_LONGEST: Final = 75  # a socket's path has at most 104 bytes on macOS, and its name is to be added
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
    for where in map(os.path.realpath, (tempfile.gettempdir(), "/tmp")):
        if len(os.fsencode(where)) <= _LONGEST:
            _sweep(Path(where))
            new = Path(tempfile.mkdtemp(prefix=f"new-{_PREFIX}", dir=where))
            furnish(new)
            # Locked before it has the name that others look for; what cleans /tmp leaves a locked folder alone, too.
            lock = _locked(new)
            _locks.add(lock)
            return new.rename(new.with_name(new.name.removeprefix("new-"))), lock
    raise SandboxError("the local sandbox cannot be started: /tmp is a link to a very long path")


def _locked(folder: Path) -> int:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise
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
            if folder.lstat().st_uid == os.geteuid():
                lock = _locked(folder)
                try:
                    remove_tree(folder)
                finally:
                    os.close(lock)
