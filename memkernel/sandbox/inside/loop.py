"""The helper's loop: one thread, no call that blocks. A host that does not read stops the reading here, no more."""

from __future__ import annotations

import contextlib
import os
import selectors
import time
from typing import Any, Callable, Dict, List, NoReturn, Optional, Tuple

from memkernel.sandbox.inside.protocol import HEADER, PIECE, frame

_FULL = 1 << 20  # bytes that wait for the host; more is not read from anybody
_STDIN, _STDOUT = 0, 1

Then = Callable[[], object]


class Loop:
    """Waits for files, times and the host's frames."""

    def __init__(self, obey: Callable[[int, int, bytes], None], lease_ended: Callable[[], NoReturn]) -> None:
        self._obey = obey
        self._lease_ended = lease_ended
        self._selector = selectors.DefaultSelector()
        self._received = bytearray()
        self._unsent = bytearray()
        self._paused: List[Tuple[Any, Then]] = []
        self._timers: Dict[object, Tuple[float, Then]] = {}

    def run(self) -> NoReturn:
        """Serve until the process ends."""
        for fd in (_STDIN, _STDOUT):
            os.set_blocking(fd, False)
        self.when_readable(_STDIN, self._read_host)
        while True:
            for key, _ in self._selector.select(self._patience()):
                key.data()
            self._ring()

    # -- times --

    def at(self, key: object, when: float, then: Then) -> None:
        """Do something once, at a time of the monotonic clock; a key has one time."""
        self._timers[key] = (when, then)

    def never(self, key: object) -> None:
        """Forget what was to be done."""
        self._timers.pop(key, None)

    def _patience(self) -> Optional[float]:
        if not self._timers:
            return None
        return max(0.0, min(when for when, _ in self._timers.values()) - time.monotonic())

    def _ring(self) -> None:
        if self._timers:
            now = time.monotonic()
            for key, (when, then) in list(self._timers.items()):
                if when <= now and self._timers.get(key) == (when, then):
                    del self._timers[key]
                    then()

    # -- files --

    def when_readable(self, file: Any, then: Then) -> None:
        """Do something each time a file can be read."""
        self._selector.register(file, selectors.EVENT_READ, then)

    def when_writable(self, file: Any, then: Then) -> None:
        """Do something while a file can be written; nothing new where that is known."""
        if file not in self._selector.get_map():
            self._selector.register(file, selectors.EVENT_WRITE, then)

    def forget(self, file: Any) -> None:
        """Watch a file no more."""
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(file)
        self._paused = [each for each in self._paused if each[0] is not file]

    def rest_if_full(self, file: Any, then: Then) -> None:
        """Read no more from a file until the host has read what waits for it."""
        if len(self._unsent) >= _FULL:
            self._selector.unregister(file)
            self._paused.append((file, then))

    # -- the host --

    @property
    def all_sent(self) -> bool:
        """Whether nothing waits for the host."""
        return not self._unsent

    def send(self, kind: int, number: int, payload: bytes = b"") -> None:
        """Send the host a frame."""
        self._unsent += frame(kind, number, payload)
        self._flush()

    def _flush(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: os.write(_STDOUT, self._unsent)]
        except BlockingIOError:
            self.when_writable(_STDOUT, self._flush)
        except OSError:
            self._lease_ended()
        else:
            self.forget(_STDOUT)
        if self._paused and len(self._unsent) < _FULL:
            for file, then in self._paused:
                self.when_readable(file, then)
            self._paused.clear()

    def _read_host(self) -> None:
        try:
            data = os.read(_STDIN, 4 * PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lease_ended()
        self._received += data
        at = 0
        while len(self._received) - at >= HEADER.size:
            kind, number, length = HEADER.unpack_from(self._received, at)
            end = at + HEADER.size + length
            if len(self._received) < end:
                break
            self._obey(kind, number, bytes(self._received[at + HEADER.size : end]))
            at = end
        del self._received[:at]
