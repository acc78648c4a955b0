"""A command beside the kernel that goes on from call to call, spoken to line by line."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Final

from memkernel.models import CellStatus
from memkernel.sandbox.base import Process
from memkernel.sandbox.inside import protocol
from memkernel.sandbox.life import Life
from memkernel.sandbox.relay import Relay, RelayClosedError
from memkernel.sandbox.work import Work

LINE_BYTES: Final = 32 << 20
"""The longest line: a PDF of 20 MiB as base64 fits."""

_KILL_S: Final = 5.0
_LOOK_S: Final = 1.0


class Lines(Work):
    """What such a command says; the relay's thread takes it apart."""

    def __init__(self, relay: Relay) -> None:
        super().__init__()
        self._relay = relay
        self._number = 0
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        self._pieces: list[bytes] = []
        self._unread = 0
        self.is_given_up = False

    def start(self, argv: Sequence[str], cwd: str) -> None:
        """Start it; raises RelayClosedError."""
        self._number = self._relay.command(
            argv, cwd=cwd, environment={}, timeout_s=None, handle=self._handle, serves=True
        )
        self.sent = True

    def _handle(self, kind: int, payload: bytes) -> None:
        if kind == protocol.EXIT:
            self.give_up()
        elif kind == protocol.STDOUT and not self.over:
            self._add(payload)

    def _add(self, payload: bytes) -> None:
        self._unread += len(payload)
        if self._unread > LINE_BYTES:
            self._pieces.clear()
            self.give_up()
            return
        first, *others = payload.split(b"\n")
        self._pieces.append(first)
        for other in others:
            self._lines.put(b"".join(self._pieces))
            self._pieces = [other]
        if others:
            self.wake()

    def give_up(self) -> None:
        """Hear no more of it; the place where it ran goes on."""
        self.is_given_up = True
        self.end()

    def next(self) -> bytes | None:
        """The next line that is here."""
        with contextlib.suppress(Empty):
            line = self._lines.get_nowait()
            self._unread -= len(line) + 1
            return line
        return None

    def feed(self, data: bytes) -> None:
        """Bytes for its stdin; raises RelayClosedError."""
        self._relay.feed(self._number, data)

    def status(self, *, died: bool) -> CellStatus:
        return "died" if self.over or died else "ok"

    def interrupt(self) -> None:
        self.kill()

    def kill(self) -> bool:
        return self._relay.kill(self._number, _KILL_S)


class KernelProcess(Process):
    """A Process of one life of a kernel; `check` raises where the sandbox is closed."""

    def __init__(self, life: Life, argv: Sequence[str], *, cwd: str, check: Callable[[], None]) -> None:
        self._life, self._check = life, check
        self._lines = Lines(life.relay)
        try:
            self._lines.start(argv, cwd)
        except RelayClosedError:
            self._lines.end()

    @property
    def alive(self) -> bool:
        return not self._lines.over and self._life.exit is None

    def write(self, data: bytes) -> None:
        try:
            self._lines.feed(data)
        except RelayClosedError:
            self._lines.end()

    def read_line(self, timeout_s: float) -> bytes:
        deadline = time.monotonic() + timeout_s
        with self._life.running(self._lines):  # its end is told, and the mounts are watched
            while (line := self._lines.next()) is None:
                if self._lines.over:
                    return self._no_line()
                if (left := deadline - time.monotonic()) <= 0:
                    raise TimeoutError
                self._lines.wait(min(left, _LOOK_S))
        return line

    def _no_line(self) -> bytes:
        if not self._lines.is_given_up:
            self._life.wait_for_exit()
        self._check()
        return b""

    def kill(self) -> None:
        self._lines.give_up()
        try:
            if not self._lines.kill():
                self._life.end("its helper did not answer")
        except RelayClosedError:
            return
