"""A proxy between client and server that loses what a network may lose."""

from __future__ import annotations

import contextlib
import socket
import tempfile
import threading
from pathlib import Path
from typing import Literal

Side = Literal["request", "reply"]


class LossyProxy:
    """Forwards a unix socket to another; cuts the connection at the request named, or before its reply."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._home = tempfile.TemporaryDirectory(prefix="mk-px-")
        self.directory = Path(self._home.name)
        self.refuses = False
        self._side: Side | None = None
        self._pattern = b""
        self.cuts = 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.directory / ".s.PGSQL.5432"))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def lose(self, side: Side, pattern: bytes, *, then_refuse: bool = False) -> None:
        """Lose the next request that holds this pattern, or the reply to it, with its connection."""
        self._side, self._pattern, self._then_refuse = side, pattern, then_refuse

    def close(self) -> None:
        self._listener.close()
        self._home.cleanup()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.refuses:
                    client.close()
                    continue
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._target / ".s.PGSQL.5432"))
                threading.Thread(target=self._serve, args=(client, server), daemon=True).start()

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        loses_reply = threading.Event()
        back = threading.Thread(target=self._replies, args=(client, server, loses_reply), daemon=True)
        back.start()
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 20):
                lost = self._side if self._side and self._pattern in data else None
                if lost:
                    self._side, self.refuses = None, self._then_refuse
                    self.cuts += 1
                if lost == "request":
                    break
                if lost == "reply":
                    loses_reply.set()
                server.sendall(data)
        if not loses_reply.is_set():
            _hang_up(client, server)

    @staticmethod
    def _replies(client: socket.socket, server: socket.socket, loses_reply: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 20):
                if loses_reply.is_set():
                    break
                client.sendall(data)
        _hang_up(client, server)


def _hang_up(*sockets: socket.socket) -> None:
    for one in sockets:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
