"""Tagged ids: mint and recognise. A UUID version 7 (RFC 9562) inside, so that ids sort by time."""

from __future__ import annotations

import os
import re
import threading
import time
from typing import Final, Literal

Tag = Literal["memstore", "mem", "memver", "sesn", "run", "req", "user", "apikey"]

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
    high = (tick >> _COUNTER_BITS << 16) | 0x7000 | (tick & 0xFFF)
    low = (2 << 62) | (int.from_bytes(os.urandom(8)) >> 2)
    middle, pairs = (high << 4 & 0x3F0) | low >> 60, _PAIRS  # ten bits that lie in both halves
    return (
        f"{tag}_{pairs[high >> 56]}{pairs[high >> 46 & 1023]}{pairs[high >> 36 & 1023]}{pairs[high >> 26 & 1023]}"
        f"{pairs[high >> 16 & 1023]}{pairs[high >> 6 & 1023]}{pairs[middle]}{pairs[low >> 50 & 1023]}"
        f"{pairs[low >> 40 & 1023]}{pairs[low >> 30 & 1023]}{pairs[low >> 20 & 1023]}{pairs[low >> 10 & 1023]}"
        f"{pairs[low & 1023]}"
    )


def is_id(tag: Tag, text: str) -> bool:
    """Whether the text has the form of an id of this kind; says nothing of its existence."""
    head, _, body = text.partition("_")
    return head == tag and _BODY.fullmatch(body) is not None
