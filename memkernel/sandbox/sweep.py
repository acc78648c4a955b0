"""Removes containers that nobody owns any more: of this installation, their session dead (fault 37)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from memkernel.sandbox import walls
from memkernel.sandbox.engine import Engine

_LOOK_S: Final = 600.0
"""A container that looks at an image is there for a second; one of that age was left by a process that was killed."""


def sweep(engine: Engine, installation_id: str, is_alive: Callable[[str], bool]) -> list[str]:
    """Remove the containers of this installation's dead sessions, running or not; another's are never touched.

    Args:
        engine: where.
        installation_id: whose.
        is_alive: whether somebody holds the session. It is asked after the containers were listed, and a session
            is held before its container is made: what lives is never taken for dead.

    Returns:
        The sessions whose containers were removed.

    Raises:
        EngineError: the engine refused or went away.
    """
    removed: dict[str, None] = {}
    for container, labels in engine.labelled(f"{walls.LABEL_INSTALLATION}={installation_id}"):
        session = labels.get(walls.LABEL_SESSION, "")
        if walls.LABEL_LOOK in labels:
            if _is_old(labels[walls.LABEL_LOOK]):
                engine.remove(container)
        elif session and not is_alive(session):
            engine.remove(container)
            removed[session] = None
    return list(removed)


def _is_old(moment: str) -> bool:
    return moment.isdecimal() and time.time() - int(moment) > _LOOK_S
