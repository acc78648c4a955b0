"""One running session: its record, its mounts, its sandbox; what happens before and after a cell."""

from __future__ import annotations

import sys

from memkernel.errors import SandboxError

if sys.platform == "win32":
    raise SandboxError("sandboxes need Linux or macOS", hint="Use the Windows Subsystem for Linux.")

from memkernel.runtime.ending import end_session, stores_of, unended_sessions, whereabouts
from memkernel.runtime.folders import dead_sessions, unreadable_sessions
from memkernel.runtime.homes import Home
from memkernel.runtime.journal import CellBegan, CellEnded, LifeChanged, SandboxEvent, Synced
from memkernel.runtime.recovery import Recovered, recover
from memkernel.runtime.request import SandboxRequest, make_request
from memkernel.runtime.session import RunningSession
from memkernel.runtime.starting import Where, recover_before, start

__all__ = [
    "CellBegan",
    "CellEnded",
    "Home",
    "LifeChanged",
    "Recovered",
    "RunningSession",
    "SandboxEvent",
    "SandboxRequest",
    "Synced",
    "Where",
    "dead_sessions",
    "end_session",
    "make_request",
    "recover",
    "recover_before",
    "start",
    "stores_of",
    "unended_sessions",
    "unreadable_sessions",
    "whereabouts",
]
