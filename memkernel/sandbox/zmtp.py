"""ZMTP 3.0 without security (rfc.zeromq.org/spec/23), the client's side, on plain bytes.

The kernel's sockets are reached through the helper's stream. Their bytes are the sandbox's to choose, so they are read
here, in Python and under limits, and never by libzmq: a person's notebook has no socket, context or C code that they
could reach.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, Literal

_GREETING: Final = b"\xff" + bytes(8) + b"\x7f" + b"\x03\x00" + b"NULL".ljust(20, b"\0") + b"\0" + bytes(31)
_MORE, _LONG, _COMMAND = 1, 2, 4
_PARTS: Final = 64
_COMMAND_BYTES: Final = 4096
_READY: Final = b"\x05READY"

SUBSCRIPTION: Final = b"\x00\x01\x01"
"""The message of a subscriber that wants everything."""


def opening(kind: Literal["DEALER", "SUB"], identity: bytes = b"") -> bytes:
    """What a client sends first. Messages have to wait until the peer is `ready`: libzmq closes on earlier ones."""
    properties = {b"Socket-Type": kind.encode(), b"Identity": identity}
    ready = _READY + b"".join(
        bytes([len(name)]) + name + struct.pack(">I", len(value)) + value for name, value in properties.items()
    )
    return _GREETING + bytes([_COMMAND, len(ready)]) + ready


def message(parts: Sequence[bytes]) -> bytes:
    """The bytes of one message."""
    pieces: list[bytes] = []
    for index, part in enumerate(parts):
        more = _MORE if index < len(parts) - 1 else 0
        if len(part) < 256:
            pieces.append(bytes([more, len(part)]))
        else:
            pieces.append(struct.pack(">BQ", more | _LONG, len(part)))
        pieces.append(part)
    return b"".join(pieces)


class Reader:
    """Takes a peer's bytes as they come and gives its messages.

    A message of more than `limit` bytes or 64 parts is skipped as it comes, and counted in `dropped_bytes`.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._received = bytearray()
        self._greeted = False
        self._parts: list[bytes] = []
        self._size = 0  # of the message that is being read, with what of it is skipped
        self._too_much = False
        self._skip: tuple[int, int] | None = None  # flags of a part that is not wanted, and its bytes still to come
        self.ready = False
        self.dropped_bytes = 0

    def feed(self, data: bytes) -> list[list[bytes]]:
        """The messages that these bytes complete.

        Raises:
            ValueError: the peer does not speak ZMTP 3.
        """
        self._received += data
        if not self._greeted and not self._take_greeting():
            return []
        messages: list[list[bytes]] = []
        while (frame := self._next_frame()) is not None:
            flags, part = frame
            if flags & _COMMAND:
                self.ready = self.ready or (part or b"").startswith(_READY)
                continue
            self._take(part)
            if not flags & _MORE:
                if self._too_much:
                    self.dropped_bytes += self._size
                else:
                    messages.append(self._parts)
                self._parts, self._size, self._too_much = [], 0, False
        return messages

    def _take_greeting(self) -> bool:
        if len(self._received) < len(_GREETING):
            return False
        if self._received[0] != 0xFF or self._received[10] < 3:
            raise ValueError("no ZMTP 3 greeting")
        del self._received[: len(_GREETING)]
        self._greeted = True
        return True

    def _take(self, part: bytes | None) -> None:
        if part is None or self._too_much or len(self._parts) == _PARTS:
            self._parts, self._too_much = [], True
        else:
            self._parts.append(part)
        self._size += len(part or b"")

    def _next_frame(self) -> tuple[int, bytes | None] | None:
        """The next whole frame: flags and payload, None for one that was skipped."""
        received = self._received
        if self._skip is None:
            head = 9 if received and received[0] & _LONG else 2
            if len(received) < head:
                return None
            flags, length = received[0], int.from_bytes(received[1:head], "big")
            if self._is_wanted(flags, length):
                if len(received) < head + length:
                    return None
                payload = bytes(received[head : head + length])
                del received[: head + length]
                return flags, payload
            del received[:head]
            self._size += 0 if flags & _COMMAND else length
            self._skip = (flags, length)
        flags, left = self._skip
        step = min(left, len(received))
        del received[:step]
        self._skip = (flags, left - step) if left > step else None
        return None if self._skip else (flags, None)

    def _is_wanted(self, flags: int, length: int) -> bool:
        return length <= _COMMAND_BYTES if flags & _COMMAND else self._size + length <= self._limit
