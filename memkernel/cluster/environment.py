"""The environment that the server's processes are given: none of the user's PG*, LC_*, LD_* or TZ, no secret."""

from __future__ import annotations

import os

_KEPT = ("PATH", "HOME", "USER", "LOGNAME")
_KEPT_FOR_PYTHON = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH")


def for_postgres() -> dict[str, str]:
    """For initdb and postgres."""
    return _only(_KEPT)


def for_supervisor() -> dict[str, str]:
    """For the supervisor: a Python of a module system may not start without its library path."""
    return _only(_KEPT + _KEPT_FOR_PYTHON)


def _only(names: tuple[str, ...]) -> dict[str, str]:
    return {name: os.environ[name] for name in names if name in os.environ} | {"LC_ALL": "C"}
