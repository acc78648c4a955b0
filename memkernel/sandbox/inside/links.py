"""Streams between the host and the kernel's sockets."""

from __future__ import annotations

import socket
import struct
import sys
import time
from typing import Callable, Dict, Optional

from memkernel.sandbox.inside.loop import Loop
from memkernel.sandbox.inside.protocol import CLOSE, DATA, PIECE

_RETRY_S = 0.004  # the kernel makes its sockets while it starts


class Link:
    """A stream to one socket. It connects as soon as there is one; what is sent before waits."""

    def __init__(
        self, loop: Loop, number: int, path: str, connected: Callable[[int], None], gone: Callable[[], object]
    ) -> None:
        self._loop = loop
        self._number = number
        self._path = path
        self._connected = connected
        self._gone = gone
        self._socket: Optional[socket.socket] = None
        self._writing: Optional[socket.socket] = None
        self._unsent = bytearray()
        self._connect()

    def _connect(self) -> None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(self._path)
        except OSError:
            connection.close()
            self._loop.at(self, time.monotonic() + _RETRY_S, self._connect)
            return
        self._connected(_peer(connection))
        connection.setblocking(False)
        self._socket = connection
        self._writing = connection.dup()  # a selector knows a file once; reading and writing are watched apart
        self._loop.when_readable(connection, self._read)
        self.send(b"")

    def send(self, data: bytes) -> None:
        """Send data to the kernel."""
        self._unsent += data
        self._write()

    def _write(self) -> None:
        if self._writing is None:
            return
        try:
            while self._unsent:
                del self._unsent[: self._writing.send(self._unsent)]
        except BlockingIOError:
            self._loop.when_writable(self._writing, self._write)
            return
        except OSError:
            self._unsent.clear()
        self._loop.forget(self._writing)

    def _read(self) -> None:
        if self._socket is None:
            return
        try:
            data = self._socket.recv(PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._loop.send(DATA, self._number, data)
            self._loop.rest_if_full(self._socket, self._read)
        else:
            self._loop.send(CLOSE, self._number)
            self.close()

    def close(self) -> None:
        """End the stream."""
        self._loop.never(self)
        for each in (self._socket, self._writing):
            if each is not None:
                self._loop.forget(each)
                each.close()
        self._socket = self._writing = None
        self._gone()


def _peer(connection: socket.socket) -> int:
    """The process at the other end; 0 where that is not to be known."""
    if sys.platform != "linux":
        return 0
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int(struct.unpack("iII", credentials)[0])


Links = Dict[int, Link]
