"""Files and folders over a stream, both ways and on both sides: no link is followed, none is made.

A stream is entries: a byte of kind, two of the path's length, the path; after a file its content in chunks, four bytes
of length before each, none in the last. Tar would be a library's, and a hostile one can make its reader hold as much
as it likes, make links and leave the folder.
"""

from __future__ import annotations

import os
import stat
import struct
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Write = Callable[[bytes], object]
    Read = Callable[[int], bytes]

_ENTRY = struct.Struct(">BH")
_SIZE = struct.Struct(">I")
_END, _FOLDER, _FILE, _PROGRAM, _LEFT_OUT = range(5)
_CHUNK = 1 << 16
_DEEPEST = 100
_LONGEST = 4096  # bytes of a path
_READ_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAKE_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

DONE = b"done\n"
"""What the sandbox answers when all that was put is there; anything else is why it is not."""


class CopyError(Exception):
    """It cannot be copied; a sentence that names the path."""


# -- out of a folder ---------------------------------------------------------------------------------


def pack(source: str, write: Write) -> list[str]:
    """Write a file or folder to a stream; links, sockets and the like are left out.

    Args:
        source: its path, whose last name may not be a link.
        write: takes bytes.

    Returns:
        The paths that were left out.

    Raises:
        CopyError: it is not there, cannot be read, or is too deep.
    """
    folder, name = os.path.split(os.path.abspath(source))
    try:
        fd = os.open(folder, _READ_FOLDER & ~os.O_NOFOLLOW)
    except OSError as error:
        raise CopyError(str(error.strerror)) from error
    left_out: list[str] = []
    try:
        _pack_entry(fd, name or ".", b"", write, left_out)
    finally:
        os.close(fd)
    write(_ENTRY.pack(_END, 0))
    return left_out


def _pack_entry(parent: int, name: str, path: bytes, write: Write, left_out: list[str]) -> None:
    try:
        mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            if not path:
                raise CopyError("it is no file and no folder")
            _leave_out(path, write, left_out)
            return
        fd = os.open(name, _READ_FOLDER if stat.S_ISDIR(mode) else _READ_FILE, dir_fd=parent)
    except OSError as error:
        raise CopyError(f"{os.fsdecode(path)}: {error.strerror}" if path else str(error.strerror)) from error
    try:
        found = os.fstat(fd).st_mode
        if stat.S_ISDIR(found):
            _pack_folder(fd, path, write, left_out)
        elif stat.S_ISREG(found):
            _pack_file(fd, path, write, found)
        else:
            _leave_out(path, write, left_out)
    finally:
        os.close(fd)


def _leave_out(path: bytes, write: Write, left_out: list[str]) -> None:
    left_out.append(os.fsdecode(path))
    _write_entry(_LEFT_OUT, path, write)


def _pack_folder(fd: int, path: bytes, write: Write, left_out: list[str]) -> None:
    if path.count(b"/") >= _DEEPEST - 1:
        raise CopyError(f"{os.fsdecode(path)}: folders are nested more than {_DEEPEST} deep")
    _write_entry(_FOLDER, path, write)
    for name in sorted(os.listdir(fd)):
        _pack_entry(fd, name, os.path.join(path, os.fsencode(name)), write, left_out)


def _pack_file(fd: int, path: bytes, write: Write, mode: int) -> None:
    _write_entry(_PROGRAM if mode & stat.S_IXUSR else _FILE, path, write)
    while True:
        chunk = os.read(fd, _CHUNK)
        write(_SIZE.pack(len(chunk)) + chunk)
        if not chunk:
            return


def _write_entry(kind: int, path: bytes, write: Write) -> None:
    if len(path) > 65535:
        raise CopyError("a path is longer than 65,535 bytes")
    write(_ENTRY.pack(kind, len(path)) + path)


# -- into a folder -----------------------------------------------------------------------------------


def unpack(read: Read, target: str, most_bytes: int, most_entries: int) -> list[str]:
    """Make what a stream brings at a path where nothing is; the stream may be a stranger's.

    Args:
        read: returns exactly as many bytes as it is asked for.
        target: the new file or folder; its parent is there.
        most_bytes, most_entries: the stream may not bring more.

    Returns:
        The paths that were left out.

    Raises:
        CopyError: the stream is broken or brings too much; what was made is still there.
        OSError: it cannot be written.
    """
    left_out: list[str] = []
    folder, name = os.path.split(target)
    budget = [most_bytes]
    number = -1
    while True:
        number += 1
        kind, length = _ENTRY.unpack(read(_ENTRY.size))
        if length > _LONGEST:
            raise CopyError("the stream is broken")
        path = read(length)
        if kind == _END:
            return left_out
        if number >= most_entries:
            raise CopyError(f"it has more than {most_entries:,} files and folders")
        parts = _parts(path)
        if not number and parts:
            raise CopyError("the stream does not begin with what was asked for")
        if kind == _LEFT_OUT:
            left_out.append(os.fsdecode(path))
            continue
        if kind not in (_FOLDER, _FILE, _PROGRAM):
            raise CopyError("the stream is broken")
        _make(folder, [os.fsencode(name), *parts], kind, read, budget)


def _parts(path: bytes) -> list[bytes]:
    """The names of a path; none that could leave the folder."""
    parts = path.split(b"/") if path else []
    if len(parts) > _DEEPEST or any(part in (b"", b".", b"..") or b"\0" in part for part in parts):
        raise CopyError(f"the stream names a path that is none: {path[:200]!r}")
    return parts


def _make(folder: str, parts: list[bytes], kind: int, read: Read, budget: list[int]) -> None:
    fd = os.open(folder, _READ_FOLDER & ~os.O_NOFOLLOW)
    try:
        for part in parts[:-1]:
            below = os.open(part, _READ_FOLDER, dir_fd=fd)
            os.close(fd)
            fd = below
        if kind == _FOLDER:
            os.mkdir(parts[-1], 0o755, dir_fd=fd)
            return
        out = os.open(parts[-1], _MAKE_FILE, 0o755 if kind == _PROGRAM else 0o644, dir_fd=fd)
        try:
            _fill(out, read, budget)
        finally:
            os.close(out)
    finally:
        os.close(fd)


def _fill(out: int, read: Read, budget: list[int]) -> None:
    while True:
        (size,) = _SIZE.unpack(read(_SIZE.size))
        if size > _CHUNK:
            raise CopyError("the stream is broken")
        if not size:
            return
        budget[0] -= size
        if budget[0] < 0:
            raise CopyError("it is larger than may be copied")
        chunk = read(size)
        while chunk:
            chunk = chunk[os.write(out, chunk) :]


# -- inside ------------------------------------------------------------------------------------------


def main(arguments: list[str]) -> None:
    """`get SOURCE` writes a stream to stdout once a byte came; `put TARGET NAME` reads one and answers in a line."""
    try:
        if arguments[0] == "get":
            sys.stdin.buffer.read(1)
            pack(arguments[1], sys.stdout.buffer.write)
        else:
            _put(arguments[1], arguments[2])
            sys.stdout.buffer.write(DONE)
    except (CopyError, OSError) as error:
        said = str(error) if isinstance(error, CopyError) else str(error.strerror)
        if arguments[0] == "put":  # at once, and not on stderr: who writes to this process still waits for it
            sys.stdout.buffer.write(os.fsencode(said) + b"\n")
            sys.stdout.buffer.flush()
        sys.exit(said)
    sys.stdout.buffer.flush()


def _put(target: str, name: str) -> None:
    if os.path.isdir(target):
        target = os.path.join(target, name)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.lexists(target) and not os.path.isdir(target):
        os.unlink(target)
    unpack(_exactly(sys.stdin.buffer.read), target, sys.maxsize, sys.maxsize - 1)


def _exactly(read: Read) -> Read:
    def exactly(size: int) -> bytes:
        found = read(size)
        if len(found) != size:
            raise CopyError("the stream ends too early")
        return found

    return exactly
