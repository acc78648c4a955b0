"""A way to the Docker engine that a test can close, and open again."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path


class EngineProxy:
    """Forwards a unix socket to the engine's, until it is lost."""

    def __init__(self, path: Path, engine: str) -> None:
        self.path, self._engine = path, engine.removeprefix("unix://")
        self._open: list[socket.socket] = []
        self.come_back()

    def come_back(self) -> None:
        """Take connections, for the first time or again."""
        self.path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen()
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def lose(self) -> None:
        """Break all connections, and take no new one."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                engine = socket.socket(socket.AF_UNIX)
                engine.connect(self._engine)
                self._open += [client, engine]
                for pair in ((client, engine), (engine, client)):
                    threading.Thread(target=self._forward, args=pair, daemon=True).start()

    @staticmethod
    def _forward(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self.lose()
        for one in self._open:
            one.close()
