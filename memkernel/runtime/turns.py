"""Who works with a session now: one thread at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from memkernel.errors import SandboxError

_LOOK_S: Final = 0.1


class Turns:
    """A lock that tells a thread that holds it, instead of letting it wait for itself."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder: int | None = None

    @contextmanager
    def turn(self) -> Generator[None]:
        """Wait for the lock, and hold it.

        Raises:
            SandboxError: this thread holds it: it asks from within a cell's own output.
        """
        self._check_holder()
        with self._lock:
            self._holder = threading.get_ident()
            try:
                yield
            finally:
                self._holder = None

    @contextmanager
    def turn_while(self, is_wanted: Callable[[], bool]) -> Generator[bool]:
        """Wait for the lock as long as it is wanted, which any thread may change; whether it is held.

        Raises:
            SandboxError: as `turn`.
        """
        self._check_holder()
        while is_wanted():
            with self.turn_if_free(_LOOK_S) as taken:
                if taken:
                    yield True
                    return
        yield False

    def _check_holder(self) -> None:
        if self._holder == threading.get_ident():
            raise SandboxError("the sandbox is busy with the cell whose output this is", hint="Ask when it has ended.")

    @contextmanager
    def turn_if_free(self, patience_s: float = 0.0) -> Generator[bool]:
        """Hold the lock if it is free now, or within the time; whether it is held."""
        taken = False
        try:  # from here on: an interrupt after the lock was taken lets go of it
            taken = self._lock.acquire(timeout=patience_s) if patience_s > 0 else self._lock.acquire(blocking=False)
            if taken:
                self._holder = threading.get_ident()
            yield taken
        finally:
            if taken:
                self._holder = None
                self._lock.release()
