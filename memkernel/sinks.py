"""Who is told what happens to a run or a sandbox; a listener that fails cannot stop what it listens to."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

_log = logging.getLogger(__name__)

E = TypeVar("E")


class Sinks(Generic[E]):
    """The listeners of one thing.

    Args:
        name: what they listen to, for the log.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._sinks: list[Callable[[E], None]] = []

    def add(self, sink: Callable[[E], None]) -> Callable[[], None]:
        """From now on, hand every event to the sink; the answer ends that."""
        self._sinks.append(sink)
        return lambda: self._drop(sink)

    def hand(self, event: E) -> None:
        """Tell all of an event, in this thread. One that raises is logged and gets no more."""
        for sink in tuple(self._sinks):
            try:
                sink(event)
            except Exception:
                _log.warning("a subscriber of %s failed and gets no more events", self._name, exc_info=True)
                self._drop(sink)

    def _drop(self, sink: Callable[[E], None]) -> None:
        self._sinks = [other for other in self._sinks if other is not sink]
