"""Answers for completion, fetched in the background: soon or not at all, and never an error."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_NEVER: Final = float("-inf")


@dataclass
class _Answer(Generic[T]):
    values: list[T] = field(default_factory=list[T])
    fetched_at: float = _NEVER
    fetching: threading.Event | None = None


class Recollection(Generic[T]):
    """Lists by key. A list that is old is fetched anew while the old one can still be given.

    Args:
        patience_s: how long a caller waits for a fetch.
        fresh_s: how long a list is good.
    """

    def __init__(self, *, patience_s: float = 0.25, fresh_s: float = 0.5) -> None:
        self._patience_s, self._fresh_s = patience_s, fresh_s
        self._lock = threading.Lock()
        self._answers: dict[Hashable, _Answer[T]] = {}

    def get(self, key: Hashable, fetch: Callable[[], list[T]]) -> list[T]:
        """The list of this key; the last known one where the fetch takes too long, and none where it fails."""
        with self._lock:
            answer = self._answers.setdefault(key, _Answer())
            if time.monotonic() - answer.fetched_at < self._fresh_s:
                return answer.values
            done = answer.fetching or self._start(answer, fetch)
        done.wait(self._patience_s)
        return answer.values

    def expire(self) -> None:
        """Nothing is fresh any more; what is known is still given where a fetch takes too long."""
        with self._lock:
            for answer in self._answers.values():
                answer.fetched_at = _NEVER

    def _start(self, answer: _Answer[T], fetch: Callable[[], list[T]]) -> threading.Event:
        done = answer.fetching = threading.Event()
        threading.Thread(target=_fetch, args=(answer, fetch, done), name="memkernel-completion", daemon=True).start()
        return done


def _fetch(answer: _Answer[T], fetch: Callable[[], list[T]], done: threading.Event) -> None:
    try:
        answer.values = fetch()
    except Exception:  # completion stays silent whatever went wrong; the next command tells (fault 49)
        answer.values = []
    finally:
        answer.fetched_at = time.monotonic()
        answer.fetching = None
        done.set()
