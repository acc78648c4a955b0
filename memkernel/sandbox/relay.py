"""The host's end of the channel to a helper: streams to the kernel's sockets, commands, questions.

What comes from a sandbox is untrusted: frames of unknown numbers are dropped, and where the stream itself is garbage
the relay ends. One thread reads; nothing that it calls may wait for the caller of a cell.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from queue import Empty, SimpleQueue
from typing import Final

from memkernel.sandbox.base import Channel
from memkernel.sandbox.inside import protocol
from memkernel.sandbox.inside.protocol import HEADER, PIECE, frame

Handler = Callable[[int, bytes], None]
"""Is handed the kind and the payload of each frame with its number, by the reading thread."""

GARBAGE: Final = "what its helper sent cannot be read"
SILENT: Final = "its helper is gone"

_DIGITS: Final = 18


class RelayClosedError(Exception):
    """The channel has closed; how the place ended says why."""


class Relay:
    """`ended` is called once, by the reading thread, with the reason, when nothing more can come."""

    def __init__(self, channel: Channel, ended: Callable[[str], None]) -> None:
        self._channel = channel
        self._ended = ended
        self._handlers: dict[int, Handler] = {}
        self._numbers = count(1)
        self._closed = threading.Event()
        self._unsent: SimpleQueue[bytes | None] = SimpleQueue()
        self._threads = (
            threading.Thread(target=self._read, name="memkernel-relay", daemon=True),
            threading.Thread(target=self._send, name="memkernel-relay-out", daemon=True),
        )
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Give the lease back: all that runs in the place ends."""
        self._close_channel()
        for thread in self._threads:
            if threading.current_thread() is not thread:
                thread.join(5)

    def write(self, data: bytes) -> None:
        """Send frames; a thread of its own does, so that neither a helper that reads nothing nor an interrupt can
        hold a caller or cut a frame.

        Raises:
            RelayClosedError: the channel has closed.
        """
        if self._closed.is_set():
            raise RelayClosedError(SILENT)
        self._unsent.put(data)

    def _send(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while (data := self._unsent.get()) is not None:
                self._channel.write(data)
        self._close_channel()

    def _close_channel(self) -> None:
        self._closed.set()
        self._unsent.put(None)
        with contextlib.suppress(OSError):
            self._channel.close()

    def stream(self, name: str, receive: Callable[[bytes], None]) -> int:
        """A stream to a socket of the kernel, which may still come: its number. `receive` is handed what comes."""

        def handle(kind: int, payload: bytes) -> None:
            if kind == protocol.DATA:
                receive(payload)

        number = self._number(handle)
        self.write(frame(protocol.OPEN, number, name.encode()))
        return number

    def command(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        cwd: str,
        environment: Mapping[str, str],
        timeout_s: float | None,
        handle: Handler,
        serves: bool = False,
    ) -> int:
        """Start a command; `handle` is told STDOUT, STDERR and, last, EXIT with `{"code", "timed_out"}`.

        One that `serves` is fed later, adopts its own orphans, and takes all that it started with it when it ends.
        """
        request = {"argv": list(argv), "cwd": cwd, "environment": dict(environment), "timeout_s": timeout_s}
        request["serves"] = serves
        data = json.dumps(request).encode()
        if len(data) % PIECE == 0:
            data += b" "  # a request of several frames ends with one that is not full

        def handle_and_forget(kind: int, payload: bytes) -> None:
            if kind == protocol.EXIT:
                self._handlers.pop(number, None)
            handle(kind, payload)

        number = self._number(handle_and_forget)
        self.write(frame(protocol.EXEC, number, data))
        if stdin:
            self.write(frame(protocol.INPUT, number, stdin))
        if not serves:
            self.write(frame(protocol.INPUT_END, number))
        return number

    def feed(self, number: int, data: bytes) -> None:
        """Bytes for the stdin of a command that serves."""
        self.write(frame(protocol.INPUT, number, data))

    def signal(self, number: int, signal_number: int) -> None:
        """A signal to a command and its group."""
        self.write(frame(protocol.SIGNAL, number, bytes([signal_number])))

    def kill(self, number: int, timeout_s: float) -> bool:
        """Kill a command and all that it started, also shortly after its end; whether that was done in time."""
        self.write(frame(protocol.KILL, number))
        return self._ask(protocol.ASK, timeout_s) is not None

    def interrupt(self) -> None:
        """Interrupt the kernel, as Jupyter does."""
        self.write(frame(protocol.INTERRUPT, 0))

    def kill_since_mark(self, timeout_s: float) -> int | None:
        """Kill what was started since the last mark; how many, or None where no answer came in time."""
        return self._ask(protocol.KILL_SINCE, timeout_s)

    def refused_starts(self, timeout_s: float) -> int:
        """How many processes and threads the sandbox's limit has refused; 0 where nobody counts, or answers."""
        return self._ask(protocol.ASK, timeout_s) or 0

    def _ask(self, kind: int, timeout_s: float) -> int | None:
        """The number that answers a question; None where no answer came in time."""
        answer: SimpleQueue[bytes] = SimpleQueue()
        number = self._number(lambda _, payload: answer.put(payload))
        try:
            self.write(frame(kind, number))
            return int(answer.get(timeout=timeout_s)[:_DIGITS])
        except (Empty, ValueError):
            return None
        finally:
            self._handlers.pop(number, None)

    def _number(self, handler: Handler) -> int:
        number = next(self._numbers)
        self._handlers[number] = handler
        return number

    def _read(self) -> None:
        reason = SILENT
        received = bytearray()
        while data := self._next():
            received += data
            if not self._deliver(received):
                reason = GARBAGE
                break
        self._close_channel()
        self._ended(reason)

    def _next(self) -> bytes:
        try:
            return self._channel.read()
        except (OSError, ValueError):
            return b""

    def _deliver(self, received: bytearray) -> bool:
        """Hand out the whole frames at the front; whether they can be frames at all."""
        at, size = 0, len(received)
        while size - at >= HEADER.size:
            kind, number, length = HEADER.unpack_from(received, at)
            if length > PIECE:
                return False
            end = at + HEADER.size + length
            if end > size:
                break
            handler = self._handlers.get(number)
            if handler is not None:
                # A sandbox may send anything under any number: what a handler cannot read is dropped.
                with contextlib.suppress(Exception):
                    handler(kind, bytes(received[at + HEADER.size : end]))
            at = end
        del received[:at]
        return True


class Tail:
    """The last bytes of a stream."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self.truncated = False

    def add(self, data: bytes) -> None:
        """One more piece."""
        if not data:
            return
        self._pieces.append(data)
        self._size += len(data)
        while self._size - len(self._pieces[0]) >= self._limit:
            self._size -= len(self._pieces.popleft())
            self.truncated = True

    def bytes(self) -> bytes:
        """What is kept."""
        data = b"".join(self._pieces)
        if len(data) > self._limit:
            self.truncated = True
            return data[-self._limit :]
        return data
