"""One life of a kernel: from the launch of its place until that has ended, for whatever reason."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final, TypeVar

from memkernel.errors import EngineError, SandboxClosedError
from memkernel.models import CellResult
from memkernel.sandbox.base import Exit, Place, SandboxSpec
from memkernel.sandbox.driver import Driver, connection_info
from memkernel.sandbox.relay import Relay, RelayClosedError
from memkernel.sandbox.watch import Watchdog
from memkernel.sandbox.work import Work

_EXIT_S: Final = 1.0  # after the helper's end, how long the place's own word is waited for
_THREAD_S: Final = 5.0
_LEAVE_S: Final = 2.0
_ANSWER_S: Final = 1.0
_ENGINE_AGAIN: Final = (
    "Once Docker answers again, the next `%%sandbox` starts a new sandbox; in Python, make a new one."
)

AnyWork = TypeVar("AnyWork", bound=Work)


class Life:
    """`exit` is None while it lasts."""

    def __init__(self, place: Place, spec: SandboxSpec) -> None:
        """Launch the place; raises what `Place.launch` does."""
        self._place = place
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._closing = False
        self._works: set[Work] = set()
        self._reason = ""
        self._memory_told = False
        self._limits = spec.limits
        self._refused_starts = 0
        self.exit: Exit | None = None
        connection = connection_info()
        self._channel = place.launch(connection)
        self.relay = Relay(self._channel, self._channel_ended)
        self._waiter = threading.Thread(target=self._wait, name="memkernel-exit", daemon=True)
        self._waiter.start()
        _lives.add(self)
        self.driver = Driver(self.relay, connection, output_limit=spec.limits.output_bytes)
        self._watchdog = Watchdog(spec.mounts, spec.limits, lambda: bool(self._works), self.end)

    def wait_until_ready(self, timeout_s: float) -> bool:
        """Whether the kernel answers; False where it ended, or does not in time."""
        try:
            return self.driver.wait_until_ready(timeout_s, self._ended.is_set)
        except RelayClosedError:
            return False

    def end(self, reason: str = "") -> None:
        """End what runs; `reason` is why, for a person."""
        self._reason = self._reason or reason
        self._place.end()

    def close(self) -> None:
        """End it for good: no thread of it is left."""
        self._closing = True
        self._watchdog.stop()
        self._place.end()
        self.relay.close()
        self._waiter.join(_THREAD_S)
        _lives.discard(self)

    def forget(self) -> None:
        """In a forked child: the parent alone holds the lease."""
        self._channel.forget()

    @contextmanager
    def running(self, work: AnyWork) -> Generator[AnyWork]:
        """While in here, the end of this life ends the work."""
        with self._lock:
            self._works.add(work)
            ended = self.exit is not None
        if ended:
            work.end()
        try:
            yield work
        finally:
            with self._lock:
                self._works.discard(work)

    def leave(self) -> None:
        """The code has told the kernel to end: wait until it has, or end it."""
        self._reason = self._reason or "exit() was called"
        if not self._ended.wait(_LEAVE_S):
            self._place.end()
            self._ended.wait(_THREAD_S)

    def look(self) -> None:
        """Hold what runs to its limits now: what has just ended is to answer for it, and not what runs next."""
        if self._place.look():
            self._ended.wait(_THREAD_S)

    def hits(self) -> list[str]:
        """The limits other than memory's that were hit since this was last asked, a sentence each."""
        hits = self._place.hits()
        with suppress(RelayClosedError):
            refused = self.relay.refused_starts(_ANSWER_S)
            if refused > self._refused_starts:
                self._refused_starts = refused
                hits.append(f"the limit of {self._limits.pids:,} processes was hit: no more of them could be started")
        return hits

    def memory_limit_was_hit(self) -> bool:
        """Whether something was killed for memory, the kernel excepted; it is told once, since nobody counts."""
        if self._memory_told or not self._place.memory_limit_was_hit():
            return False
        self._memory_told = True
        return True

    def wait_for_exit(self) -> Exit:
        """How it ended, once the channel has."""
        self._ended.wait(_THREAD_S)
        return self.exit or Exit(None, detail=self._reason)

    def _wait(self) -> None:
        self._over(self._place.wait())

    def _channel_ended(self, reason: str) -> None:
        if not self._closing and not self._ended.wait(_EXIT_S):
            self._reason = self._reason or reason
            self._place.end()
            self._ended.wait(_EXIT_S)
            self._over(Exit(None, detail=reason))

    def _over(self, exit: Exit) -> None:
        with self._lock:
            if self.exit is None:
                self.exit = (
                    replace(exit, exit_code=None, out_of_memory=False, detail=self._reason) if self._reason else exit
                )
            works = list(self._works)
        self._ended.set()
        for work in works:
            work.end()


def how(exit: Exit) -> str:
    """How a kernel ended, for a person."""
    if exit.out_of_memory:
        return "the kernel was killed: the memory limit was hit"
    if exit.detail and exit.exit_code is None:
        return f"the kernel ended: {exit.detail}"
    return "the kernel died" if exit.exit_code is None else f"the kernel died with exit code {exit.exit_code}"


def raise_if_lost(exit: Exit | None, result: CellResult | None = None) -> None:
    """Raise where no other kernel can follow; `result` is what a cell had done until then.

    Raises:
        EngineError: the engine went.
        SandboxClosedError: the container was removed.
    """
    if exit is not None and exit.engine_lost:
        raise EngineError(exit.detail or "the Docker engine went away", hint=_ENGINE_AGAIN, result=_died(result))
    if exit is not None and exit.removed:
        raise SandboxClosedError(exit.detail or "the sandbox's container was removed", result=_died(result))


def _died(result: CellResult | None) -> CellResult | None:
    return None if result is None else replace(result, status="died")


_lives: weakref.WeakSet[Life] = weakref.WeakSet()


def _forget_all() -> None:
    for life in list(_lives):
        with suppress(Exception):
            life.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
