"""Data in and out of a sandbox (Decision 23): a command in it at one end of a stream, this process at the other."""

from __future__ import annotations

import contextlib
import os
import posixpath
import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Final, Protocol

from memkernel.errors import InvalidInputError
from memkernel.sandbox.base import HOME, SandboxLimits
from memkernel.sandbox.inside import copying as stream
from memkernel.sandbox.output import clean

_MOST_ENTRIES: Final = 100_000
_ANSWER: Final = 4096  # bytes
_WRITABLE: Final = (HOME, "/tmp")


class Command(Protocol):
    """A command in a sandbox. It writes nothing before it was written to."""

    def read(self) -> bytes: ...
    def write(self, data: bytes) -> None: ...
    def close(self) -> None: ...
    @property
    def stderr_tail(self) -> str: ...


Execute = Callable[[Sequence[str]], Command]


def put(execute: Execute, source: Path, target: str) -> tuple[str, ...]:
    """Copy a file or folder of the host into the sandbox's home or /tmp.

    Args:
        execute: starts a command in the sandbox.
        source: links that lead to it are followed, those in it are left out.
        target: absolute, or below the home; below it where it is a folder already. A file there is replaced.

    Returns:
        What was left out: links, sockets, devices.

    Raises:
        InvalidInputError: it cannot be read or written; the sentence names what.
        SandboxError: the command could not be run.
    """
    place = _inner(target)
    if not any(place == folder or place.startswith(f"{folder}/") for folder in _WRITABLE):
        raise InvalidInputError(
            f"{target} is not in the sandbox's home or /tmp", hint=f"Copy to {HOME}, or write to a store by its mount."
        )
    real = Path(os.path.realpath(source))
    left_out: list[str] = []
    with contextlib.closing(execute(_argv("put", place, real.name))) as command, _Answer(command) as answer:
        try:
            left_out = stream.pack(str(real), command.write)
        except stream.CopyError as error:
            raise InvalidInputError(f"{source} cannot be copied: {error}") from error
        except OSError:
            pass  # the command has ended: it has said why
        if answer.wait() != stream.DONE:
            raise InvalidInputError(f"{target} cannot be written in the sandbox: {answer.said or _said(command)}")
    return tuple(left_out)


def get(execute: Execute, source: str, target: Path, limits: SandboxLimits) -> tuple[str, ...]:
    """Copy a file or folder of the sandbox to the host; what is not whole is not there.

    Args:
        execute: starts a command in the sandbox.
        source: absolute, or below the home.
        target: the new file or folder, or a folder that it comes into. A file there is replaced, a folder is not.
        limits: more than the sandbox may hold is not taken.

    Returns:
        What was left out: links, sockets, devices.

    Raises:
        InvalidInputError: it cannot be read or written; the sentence names what.
        SandboxError: the command could not be run.
    """
    place = _inner(source)
    final = target / posixpath.basename(place) if target.is_dir() else target
    if final.is_dir() and not final.is_symlink():
        raise InvalidInputError(f"{final} is there already", hint="Remove it first, or choose another name.")
    most = limits.home_bytes + limits.tmp_bytes + 8 * limits.mount_bytes
    try:
        scratch = tempfile.mkdtemp(prefix=".memkernel-get-", dir=final.parent)
    except OSError as error:
        raise InvalidInputError(f"{final} cannot be written: {error.strerror}") from error
    try:
        with contextlib.closing(execute(_argv("get", place))) as command:
            left_out = _received(command, f"{scratch}/it", most, source)
        os.replace(f"{scratch}/it", final)
    except OSError as error:
        raise InvalidInputError(f"{final} cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return tuple(map(_printable, left_out))


def _printable(name: str) -> str:
    """A name that the sandbox chose, as a terminal can be given it."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in name)


def _received(command: Command, target: str, most: int, source: str) -> list[str]:
    command.write(b"\n")
    reader = _Reader(command)
    try:
        return stream.unpack(reader.exactly, target, most, _MOST_ENTRIES)
    except EOFError as error:
        raise InvalidInputError(f"{source} cannot be copied out of the sandbox: {_said(command)}") from error
    except stream.CopyError as error:
        raise InvalidInputError(f"{source} cannot be copied out of the sandbox: {error}") from error


def _inner(path: str) -> str:
    """An absolute plain path inside; a relative one is below the home."""
    if not path or "\0" in path:
        raise InvalidInputError(f"{path!r} is no path of the sandbox")
    return posixpath.normpath(posixpath.join(HOME, path))


def _argv(*arguments: str) -> list[str]:
    text = files("memkernel.sandbox.inside").joinpath("copying.py").read_text(encoding="utf-8")
    return ["python3", "-c", f"{text}\nmain(sys.argv[1:])", *arguments]


def _said(command: Command) -> str:
    lines = command.stderr_tail.strip().splitlines()
    return clean(lines[-1]) if lines else "it ended too early"


class _Reader:
    """Exactly as many bytes as asked for, of a command's stdout."""

    def __init__(self, command: Command) -> None:
        self._command = command
        self._buffer = bytearray()

    def exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            received = self._command.read()
            if not received:
                raise EOFError
            self._buffer += received
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken


class _Answer:
    """What a command answers while it is still written to; one that gave up is not written to any more."""

    def __init__(self, command: Command) -> None:
        self._command = command
        self._answer = b""
        self._reader = threading.Thread(target=self._read, name="memkernel-put", daemon=True)

    def __enter__(self) -> _Answer:
        self._reader.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._command.close()
        self._reader.join()

    def _read(self) -> None:
        while not self._answer.endswith(b"\n") and (received := self._command.read()):
            self._answer += received
            if len(self._answer) > _ANSWER:
                self._answer = self._answer[:_ANSWER]
                break
        if self._answer != stream.DONE:
            self._command.close()

    def wait(self) -> bytes:
        """The whole answer."""
        self._reader.join()
        return self._answer

    @property
    def said(self) -> str:
        """The answer as a sentence."""
        return clean(self._answer.decode(errors="replace").strip())
