"""Tagged ids: mint and recognise. A UUID version 7 (RFC 9562) inside, so that ids sort by time."""

from __future__ import annotations

import os
import re
import threading
import time
from typing import Final, Literal

Tag = Literal["memstore", "mem", "memver", "sesn", "run", "user", "apikey"]

_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32, in ASCII order
_PAIRS: Final = [a + b for a in _ALPHABET for b in _ALPHABET]
_BODY: Final = re.compile(r"[0-9a-hjkmnp-tv-z]{26}")
_COUNTER_BITS: Final = 12


class _Clock:
    """60-bit numbers that only grow in this process: milliseconds, then a counter."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def tick(self) -> int:
        with self._lock:
            self._last = max(self._last + 1, (time.time_ns() // 1_000_000) << _COUNTER_BITS)
            return self._last


_clock = _Clock()


def mint(tag: Tag) -> str:
    """A new id, `{tag}_` and 26 characters; later ones of one process sort later."""
    tick = _clock.tick()
    milliseconds, counter = tick >> _COUNTER_BITS, tick & 0xFFF
    noise = int.from_bytes(os.urandom(8)) >> 2
    number = (milliseconds << 80) | (7 << 76) | (counter << 64) | (2 << 62) | noise
    return f"{tag}_" + "".join(_PAIRS[(number >> shift) & 1023] for shift in range(120, -1, -10))


def is_id(tag: Tag, text: str) -> bool:
    """Whether the text has the form of an id of this kind; says nothing of its existence."""
    head, _, body = text.partition("_")
    return head == tag and _BODY.fullmatch(body) is not None
