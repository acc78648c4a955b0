"""At the interpreter's end: what the open sandboxes hold is saved, and their containers go."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from memkernel.errors import MemkernelError

if TYPE_CHECKING:
    from memkernel.runtime.session import RunningSession

_open: list[RunningSession] = []
_lock = threading.Lock()
_watched_pids: set[int] = set()


def register(session: RunningSession) -> None:
    """From now on, this session is stopped at the interpreter's end, if nobody stops it before."""
    with _lock:
        _open.append(session)
        if os.getpid() not in _watched_pids:
            _watched_pids.add(os.getpid())
            atexit.register(stop_all, os.getpid())


def forget(session: RunningSession) -> None:
    """It was stopped."""
    with _lock, suppress(ValueError):
        _open.remove(session)


def open_sessions() -> list[RunningSession]:
    """The sessions of this process that were started and not stopped, oldest first."""
    with _lock:
        return [session for session in _open if session.is_open]


def stop_all(pid: int) -> None:
    """Stop the sessions of the process with this pid, if it is this one."""
    if os.getpid() != pid:  # a forked child ends; its parent's sandboxes live on
        return
    for session in open_sessions():
        name = session.record.title or session.record.id
        try:
            session.stop()
        except MemkernelError as error:
            print("\n".join([f"sandbox {name}:", *error.lines()]), file=sys.stderr)
        except Exception as error:  # one that fails must not keep the others from being saved
            print(f"sandbox {name}: {error!r}", file=sys.stderr)


os.register_at_fork(after_in_child=lambda: globals().update(_lock=threading.Lock()))
