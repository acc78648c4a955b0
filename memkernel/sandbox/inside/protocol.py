"""Frames between the host and the helper: kind, number, length, payload.

Numbers are the host's: of a stream to one of the kernel's sockets, of a command, of a question.
"""

from __future__ import annotations

import struct

HEADER = struct.Struct("<BII")
PIECE = 1 << 16
"""The longest payload of a frame, in bytes."""

# To the helper.
OPEN, EXEC, INPUT, INPUT_END, SIGNAL, KILL, MARK, KILL_SINCE, INTERRUPT, ASK = range(1, 11)
# Both ways.
DATA, CLOSE = 16, 17
# From the helper.
STDOUT, STDERR, EXIT, ANSWER = range(32, 36)


def frame(kind: int, number: int, payload: bytes = b"") -> bytes:
    """The bytes of one frame, or of several where the payload is longer than a PIECE."""
    if len(payload) <= PIECE:
        return HEADER.pack(kind, number, len(payload)) + payload
    pieces = (payload[at : at + PIECE] for at in range(0, len(payload), PIECE))
    return b"".join(HEADER.pack(kind, number, len(piece)) + piece for piece in pieces)
