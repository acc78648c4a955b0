"""Renames that never replace anything: what is in the way is refused, or swapped."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
from collections.abc import Callable
from typing import Final

_NOREPLACE: Final = 1
_EXCHANGE: Final = 2
_UNSUPPORTED: Final = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)

_Rename = Callable[[int, bytes, int, bytes, int], int]


def place(source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
    """Rename a file to a name that is not taken.

    Raises:
        FileExistsError: it is.
        OSError: as os.rename.
    """
    if _renamed(source, target, src_dir_fd, dst_dir_fd, _NOREPLACE):
        return
    # A link is refused where the name is taken, too; afterwards the file has two names for a moment.
    os.link(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd, follow_symlinks=False)
    os.unlink(source, dir_fd=src_dir_fd)


def swap(source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int) -> bool:
    """Exchange two names, so that neither is missing for a moment; False where the file system cannot.

    Raises:
        FileNotFoundError: one of them is not there.
        OSError: as os.rename.
    """
    return _renamed(source, target, src_dir_fd, dst_dir_fd, _EXCHANGE)


def _renamed(source: str, target: str, src_dir_fd: int, dst_dir_fd: int, flags: int) -> bool:
    renameat2 = _renameat2()
    if renameat2 is None:
        return False
    if renameat2(src_dir_fd, os.fsencode(source), dst_dir_fd, os.fsencode(target), flags) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), target)


@functools.cache
def _renameat2() -> _Rename | None:
    """Linux only: elsewhere two steps have to do."""
    with contextlib.suppress(OSError, AttributeError):
        return ctypes.CDLL(None, use_errno=True).renameat2
    return None
