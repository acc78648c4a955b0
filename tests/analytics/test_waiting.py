"""Fault 22: Ctrl-C ends a query, and the next one works."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

import pytest

from memkernel.analytics import waiting
from memkernel.analytics.engine import Engine
from memkernel.analytics.tables import Source
from memkernel.analytics.waiting import interruptibly
from tests.analytics.made import EndlessRows, MadeRows

ENDLESS = "SELECT sum(a.range + b.range) FROM range(1000000000) a, range(1000000000) b"


@contextmanager
def ctrl_c(after: Callable[[], object]) -> Generator[None]:
    """Interrupts the main thread, as a notebook's stop button does, once `after` has returned."""

    def press() -> None:
        after()
        os.kill(os.getpid(), signal.SIGINT)

    finger = threading.Thread(target=press)
    finger.start()
    try:
        yield
    finally:
        finger.join()


def a_moment() -> None:
    time.sleep(0.3)


def run(source: Source, sql: str) -> list[tuple[object, ...]]:
    engine = Engine()
    return interruptibly(lambda: engine.answer(source, sql, None), engine.stop).rows


@pytest.mark.parametrize(
    "sql",
    [
        ENDLESS,
        "SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE random() < 0",
        "SELECT a.range FROM range(1000000000) a, range(1000000000) b WHERE hash(a.range, b.range) = random()",
        "WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM r) SELECT count(*) FROM r",
        f"EXPLAIN ANALYZE {ENDLESS}",
    ],
)
def test_an_endless_query_ends_soon_after_ctrl_c_and_the_next_one_works(sql: str) -> None:
    """Fault 22."""
    with ctrl_c(a_moment), pytest.raises(KeyboardInterrupt):
        run(MadeRows(), sql)
    pressed = time.monotonic()
    assert run(MadeRows(), "SELECT count(*) FROM memories") == [(2,)]
    assert time.monotonic() - pressed < 5
    assert not _working(), "no query goes on in the background"


def test_ctrl_c_before_the_query_has_begun_is_not_lost() -> None:
    """Fault 22: DuckDB forgets an interrupt that comes before its query."""
    engine = Engine()
    begun = threading.Event()

    def work() -> None:
        begun.set()
        time.sleep(0.3)
        engine.answer(MadeRows(), ENDLESS, None)

    with ctrl_c(begun.wait), pytest.raises(KeyboardInterrupt):
        interruptibly(work, engine.stop)
    assert not _working()


def test_ctrl_c_while_the_rows_are_loaded_ends_their_reading() -> None:
    """Fault 22: PostgreSQL's connection goes back to its pool."""
    rows = EndlessRows()
    with ctrl_c(rows.begun.wait), pytest.raises(KeyboardInterrupt):
        run(rows, "SELECT count(*) FROM memory_versions")
    assert rows.closed == ["rows", "dump"]
    assert not _working()


def test_work_that_cannot_be_stopped_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_GRACE_S", 0.2)
    let_go = threading.Event()
    with ctrl_c(a_moment), pytest.raises(KeyboardInterrupt):
        interruptibly(lambda: let_go.wait(60), lambda: None)
    let_go.set()


def test_what_the_work_raises_is_raised_to_the_caller() -> None:
    def fail() -> None:
        raise TimeoutError("of its own")

    with pytest.raises(TimeoutError, match="of its own"):
        interruptibly(fail, lambda: None)


def test_an_engine_that_has_ended_can_be_stopped_again() -> None:
    engine = Engine()
    engine.answer(MadeRows(), "SELECT 1", None)
    engine.stop()


def _working() -> bool:
    deadline = time.monotonic() + 2
    while any(thread.name == "memkernel-sql" for thread in threading.enumerate()):
        if time.monotonic() > deadline:
            return True
        time.sleep(0.01)
    return False
