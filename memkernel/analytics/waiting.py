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
    # Not thread.join: before Python 3.12, one that is interrupted takes the thread for ended.
    try:
        threading.Thread(target=_fulfil, args=(future, work), name="memkernel-sql", daemon=True).start()
        while not wait([future], timeout=_LOOK_S).done:
            pass
    except KeyboardInterrupt:
        stop()
        future.cancel()  # work that has not begun never will
        deadline = time.monotonic() + _GRACE_S
        while not wait([future], timeout=_REPEAT_S).done and time.monotonic() < deadline:
            stop()
        raise
    return future.result()


def _fulfil(future: Future[T], work: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work())
    except BaseException as error:  # the waiting thread raises it
        future.set_exception(error)
