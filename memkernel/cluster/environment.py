"""The environment that the server's processes are given: none of the user's PG*, LC_*, LD_* or TZ, no secret."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager

_KEPT = ("PATH", "HOME", "USER", "LOGNAME")
_KEPT_FOR_PYTHON = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH")


def for_postgres() -> dict[str, str]:
    """For initdb and postgres."""
    return _only(_KEPT)


def for_supervisor() -> dict[str, str]:
    """For the supervisor: a Python of a module system may not start without its library path."""
    return _only(_KEPT + _KEPT_FOR_PYTHON)


@contextmanager
def without(names: Iterable[str]) -> Generator[None]:
    """Variables taken out for a block: libpq reads its own whatever the DSN says, and PGSERVICE names another server.

    One thread at a time; a thread that looks for them meanwhile misses them.
    """
    with _taking:
        taken = {name: os.environ.pop(name) for name in names if name in os.environ}
        try:
            yield
        finally:
            os.environ.update(taken)


_taking = threading.Lock()


def _only(names: tuple[str, ...]) -> dict[str, str]:
    return {name: os.environ[name] for name in names if name in os.environ} | {"LC_ALL": "C"}
