"""Work that Ctrl-C can end: it runs in a thread, and the caller's thread waits for it (fault 22)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Final, TypeVar

T = TypeVar("T")

_LOOK_S: Final = 0.2  # on Windows a wait sees Ctrl-C only when it ends
_REPEAT_S: Final = 0.05
_GRACE_S: Final = 10.0


def interruptibly(work: Callable[[], T], stop: Callable[[], None]) -> T:
    """The work's result; on Ctrl-C it is stopped first.

    Args:
        work: runs in a thread of its own and cleans up after itself.
        stop: asks it to end; called from here, again and again, until it has or ten seconds are over.

    Raises:
        KeyboardInterrupt: the caller was interrupted.
        Exception: what the work raised.
    """
    future: Future[T] = Future()
    threading.Thread(target=_fulfil, args=(future, work), name="memkernel-sql", daemon=True).start()
    try:
        while not wait([future], timeout=_LOOK_S).done:
            pass
    except KeyboardInterrupt:
        deadline = time.monotonic() + _GRACE_S
        while not future.done() and time.monotonic() < deadline:
            stop()
            wait([future], timeout=_REPEAT_S)
        raise
    return future.result()


def _fulfil(future: Future[T], work: Callable[[], T]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # the waiting thread raises it
        future.set_exception(error)
