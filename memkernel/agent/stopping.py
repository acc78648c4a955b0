"""How a run that goes on is stopped from another thread.

A stop is an interrupt (KeyboardInterrupt) of the run's own thread, and of nothing else, so that a run ends one way
whoever stops it. The main thread is reached by SIGINT wherever it is. No signal gets into any other thread: there, what
waits for the model is done by a thread of its own, which a run that is stopped leaves to itself.
"""

from __future__ import annotations

import contextvars
import logging
import queue
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final, Literal, Protocol, TypeVar

_T = TypeVar("_T")
_END: Final = object()

_log = logging.getLogger(__name__)


StopReason = Literal["stopped", "max_time"]
"""Who asked: a person, or the run's clock. How the run ends then."""


class Stopping:
    """The stop of one run. Its run's thread opens it, waits by it, and closes it; any thread may ask.

    Attributes:
        reason: what an interrupt of the run means.
    """

    def __init__(self) -> None:
        self.reason: StopReason = "stopped"
        self._lock = threading.Lock()
        self._ends: Callable[[], object] | None = None
        self._is_asked = False
        self._is_closed = False
        self._way: _Way | None = None

    def ask(self, reason: StopReason = "stopped") -> None:
        """Stop the run soon; where it has ended nothing happens."""
        with self._lock:
            if self._is_asked or self._is_closed:
                return
            self._is_asked, self.reason, way = True, reason, self._way
            # In its own thread (a tool, a subscriber) the run sees it by itself before it waits again.
            if way is None or way.thread == threading.get_ident():
                return
            way.wake()
            ends = None if isinstance(way, _Signalled) else self._ends
        if ends is not None:
            ends()

    @contextmanager
    def ending(self, ends: Callable[[], object] | None) -> Generator[None]:
        """What the block does ends early by a call of `ends`, where no signal gets to it.

        Raises:
            KeyboardInterrupt: a stop was asked for before.
        """
        self._ends = ends
        try:
            self.check()
            yield
        finally:
            self._ends = None

    def open(self) -> None:
        """From now on a stop interrupts this thread.

        Raises:
            KeyboardInterrupt: it was asked for before.
        """
        way = _Signalled() if _takes_signals() else _Apart()
        with self._lock:
            self._way = way
        self.check()

    def close(self) -> None:
        """From now on no stop interrupts this thread, not even one that is under way."""
        with self._lock:
            self._is_closed = True
        if self._way is not None:
            self._way.close()
            self._way = None

    def check(self) -> None:
        """Raise KeyboardInterrupt where a stop was asked for."""
        if self._is_asked:
            raise KeyboardInterrupt

    def wait_for(self, job: Callable[[], _T]) -> _T:
        """Do what may wait for long, and can be left to itself once the run is stopped.

        Raises:
            KeyboardInterrupt: the run was stopped.
        """
        self.check()
        return job() if self._way is None else self._way.wait_for(job)

    def each(self, source: Iterable[_T]) -> Iterator[_T]:
        """The members of what comes little by little."""
        members = iter(source)
        while (member := self.wait_for(lambda: next(members, _END))) is not _END:
            yield member  # pyright: ignore[reportReturnType]  # all but the mark is of the source

    def sleep(self, seconds: float) -> None:
        """Wait; a stop ends it with a KeyboardInterrupt."""
        self.check()
        (time.sleep if self._way is None else self._way.sleep)(seconds)

    def let_go(self, job: Callable[[], object]) -> None:
        """Close what was waited for: now, or once that wait is over."""
        if self._way is None:
            job()
        else:
            self._way.let_go(job)


def _takes_signals() -> bool:
    """Whether a SIGINT raises something here: in the main thread, where a person's interrupt is Python's own."""
    return threading.current_thread() is threading.main_thread() and callable(signal.getsignal(signal.SIGINT))


class _Way(Protocol):
    thread: int

    def wake(self) -> None: ...
    def wait_for(self, job: Callable[[], _T]) -> _T: ...
    def sleep(self, seconds: float) -> None: ...
    def let_go(self, job: Callable[[], object]) -> None: ...
    def close(self) -> None: ...


class _Signalled:
    """In the main thread: SIGINT. Its handler tells a stop that comes too late from a person's own interrupt."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self._is_sent = False
        self._is_over = False
        self._before: Any = signal.getsignal(signal.SIGINT)
        signal.signal(signal.SIGINT, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if not self._is_sent:
            self._before(number, frame)
        elif not self._is_over:
            raise KeyboardInterrupt

    def wake(self) -> None:
        self._is_sent = True
        signal.pthread_kill(self.thread, signal.SIGINT)

    def wait_for(self, job: Callable[[], _T]) -> _T:
        return job()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def let_go(self, job: Callable[[], object]) -> None:
        job()

    def close(self) -> None:
        self._is_over = True
        # A signal that was sent comes at the end of the next system call, and its handler before that returns.
        signal.pthread_sigmask(signal.SIG_BLOCK, ())
        if signal.getsignal(signal.SIGINT) == self._on_signal:
            signal.signal(signal.SIGINT, self._before)


class _Apart:
    """In any other thread: what waits is done by a thread of its own, and the run waits for its answer or a stop."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any] | None] | None] = queue.SimpleQueue()
        self._news: queue.SimpleQueue[Future[Any] | None] = queue.SimpleQueue()  # an answer, or None for a stop
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(self._serve,), name="memkernel-waits", daemon=True).start()

    def _serve(self) -> None:
        while (asked := self._jobs.get()) is not None:
            job, answer = asked
            if answer is None:
                _close(job)
                continue
            try:
                answer.set_result(job())
            except BaseException as error:
                answer.set_exception(error)
            self._news.put(answer)

    def wake(self) -> None:
        self._news.put(None)

    def wait_for(self, job: Callable[[], _T]) -> _T:
        self._jobs.put((job, Future()))
        answer = self._news.get()
        if answer is None:
            raise KeyboardInterrupt
        return answer.result()

    def sleep(self, seconds: float) -> None:
        with suppress(queue.Empty):
            self._news.get(timeout=seconds)
            raise KeyboardInterrupt

    def let_go(self, job: Callable[[], object]) -> None:
        self._jobs.put((job, None))

    def close(self) -> None:
        self._jobs.put(None)


def _close(job: Callable[[], object]) -> None:
    try:
        job()
    except Exception:
        _log.debug("what a run had waited for could not be closed", exc_info=True)
