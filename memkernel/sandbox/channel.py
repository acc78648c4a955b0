"""The byte stream of a command in a container: the engine's frames come off, stdout and stderr come apart."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any, Final

from memkernel.sandbox.base import Channel

_HEADER: Final = struct.Struct(">BxxxI")
_STDOUT: Final = 1
_CHUNK: Final = 1 << 16
_TAIL: Final = 4096


class ExecChannel(Channel):
    """Both directions of a command started with `exec`; closing it closes the command's stdin, too.

    The host has to write first: bytes that a command sends before that can be lost, because they may come with
    the reply that the SDK reads through a buffer of its own.
    """

    def __init__(self, stream: Any, exit_code: Callable[[], int | None]) -> None:
        """Take over what the SDK returns for `socket=True`: a raw stream around a socket, or the socket itself."""
        self._stream = stream
        self._socket: socket.socket = getattr(stream, "_sock", stream)
        self._socket.settimeout(None)  # the SDK's own limit is for answers, and a cell may be quiet for hours
        self._ask_exit_code = exit_code
        self._writing = threading.Lock()
        self._closing = threading.Lock()
        self._closed = False
        self._buffer = bytearray()
        self._stderr = bytearray()

    @property
    def stderr_tail(self) -> str:
        """The end of what the command wrote to stderr."""
        return self._stderr.decode(errors="replace")

    @property
    def exit_code(self) -> int | None:
        """The command's exit code; None while it runs."""
        return self._ask_exit_code()

    def read(self) -> bytes:
        """The next bytes of stdout; b"" at the end."""
        while True:
            header = self._take(_HEADER.size)
            if not header:
                return b""
            stream, size = _HEADER.unpack(header)
            content = self._take(size)
            if stream == _STDOUT and size:
                return content
            self._stderr += content
            del self._stderr[:-_TAIL]

    def _take(self, size: int) -> bytes:
        """`size` bytes of the connection; b"" where it ends before."""
        while len(self._buffer) < size:
            try:
                received = self._socket.recv(_CHUNK)
            except OSError:
                received = b""
            if not received:
                self._buffer.clear()
                return b""
            self._buffer += received
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def write(self, data: bytes) -> None:
        """Bytes for the command's stdin.

        Raises:
            OSError: the stream is closed.
        """
        with self._writing:
            if self._closed:
                raise BrokenPipeError("the channel is closed")
            self._socket.sendall(data)

    def finish_writing(self) -> None:
        """Close the command's stdin and keep reading what it says."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close both directions; a thread that reads gets b""."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        response = getattr(self._stream, "_response", None)
        with contextlib.suppress(OSError, ValueError):
            self._stream.close()
        with contextlib.suppress(OSError):
            self._socket.close()
        if response is not None:
            with contextlib.suppress(OSError, ValueError):
                response.close()

    def forget(self) -> None:
        """In a forked child: close its copy, and let the connection be."""
        self._closed = True
        with contextlib.suppress(OSError):
            os.close(self._socket.detach())

    def read_all(self, limit: int) -> bytes:
        """All of stdout, at most `limit` bytes."""
        found = bytearray()
        while len(found) < limit and (part := self.read()):
            found += part
        return bytes(found[:limit])
