"""Waits for what runs in a sandbox, shows what it says, and presses harder and harder where it does not end.

Decision 6: a time-out interrupts; two seconds later all that was started is killed; where it is still busy then, the
kernel is given up. A person's interrupt only interrupts; a second one kills at once.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from memkernel.sandbox.base import OutputSink
from memkernel.sandbox.relay import RelayClosedError
from memkernel.sandbox.work import Cell, Work

GRACE_S: Final = 2.0
"""Between the interrupt of a time-out and the kill."""

GIVE_UP_S: Final = 1.0
"""Between the kill and the end of the kernel."""

_LOOK_S: Final = 0.5


@dataclass
class Followed:
    """How the following went."""

    timed_out: bool = False
    interrupted: bool = False
    given_up: bool = False
    sink_error: Exception | None = None


class Follower:
    """Follows one piece of work to its end; `interrupt` may be called from any thread."""

    def __init__(self, work: Work, timeout_s: float | None, sink: OutputSink | None) -> None:
        self._work = work
        self._sink = sink
        self._pressure = 0  # 1: interrupted, 2: killed, 3: given up
        self._pressing = threading.RLock()
        self._deadline = math.inf if timeout_s is None else time.monotonic() + timeout_s
        self._due = self._deadline
        self.outcome = Followed()

    def interrupt(self) -> None:
        """What a person's interrupt does."""
        with self._pressing:
            self.outcome.interrupted = True
            if self._pressure == 0:
                self._press()
                self._due = self._deadline
            else:
                self._due = time.monotonic()
        self._work.wake()

    def follow(self, begin: Callable[[], None]) -> Followed:
        """Begin it, and follow it until it has ended or was given up.

        A KeyboardInterrupt in here interrupts the work. One that comes before it was sent leaves it undone; what was
        perhaps half sent is killed if the interrupt does not end it.
        """
        try:
            begin()
        except RelayClosedError:
            self._work.end()
        except KeyboardInterrupt:
            self.interrupt()
            if self._work.sent:
                self._due = time.monotonic() + GRACE_S
            else:
                self._work.end()
        while True:
            try:
                if self._step():
                    return self.outcome
            except KeyboardInterrupt:
                self.interrupt()

    def _step(self) -> bool:
        work = self._work
        if not work.over:
            work.wait(min(_LOOK_S, self._due - time.monotonic()))
        over = work.over
        self._show()
        if over:
            return True
        with self._pressing:
            if (now := time.monotonic()) >= self._due:
                self.outcome.timed_out = self.outcome.timed_out or now >= self._deadline
                self._press()
        if isinstance(work, Cell):
            work.end_if_quiet()
        return self.outcome.given_up

    def _show(self) -> None:
        for event in self._work.shown():
            if self._sink is not None and self.outcome.sink_error is None:
                try:
                    self._sink(event)
                except Exception as error:  # the caller's own; it is raised when the work has ended
                    self.outcome.sink_error = error
                    with self._pressing:
                        self._press()

    def _press(self) -> None:
        self._pressure += 1
        try:
            if self._pressure == 1:
                self._due = time.monotonic() + GRACE_S
                self._work.interrupt()
            elif self._pressure == 2:
                self.outcome.given_up = not self._work.kill()
                self._due = time.monotonic() + GIVE_UP_S
            else:
                self.outcome.given_up = True
        except RelayClosedError:
            self._due = math.inf  # its end is on the way
