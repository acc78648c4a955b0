"""How work that does not end is pressed. Decision 6."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from memkernel.models import CellStatus
from memkernel.sandbox import follow
from memkernel.sandbox.follow import Follower
from memkernel.sandbox.relay import RelayClosedError
from memkernel.sandbox.work import Work


class Stubborn(Work):
    """Work that ends when it has been pressed `presses` times."""

    def __init__(self, presses: int, *, closed: bool = False) -> None:
        super().__init__()
        self.began = time.monotonic()
        self.presses = presses
        self.closed = closed
        self.answers = True
        self.done: list[tuple[str, float]] = []

    def status(self, *, died: bool) -> CellStatus:
        return "ok"

    def interrupt(self) -> None:
        self._press("interrupt")

    def kill(self) -> bool:
        self._press("kill")
        return self.answers

    def _press(self, how: str) -> None:
        if self.closed:
            raise RelayClosedError
        self.done.append((how, round(time.monotonic() - self.began, 1)))
        if len(self.done) == self.presses:
            self.end()


def nothing() -> None:
    """Begins what has begun."""


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "GRACE_S", 0.4)
    monkeypatch.setattr(follow, "GIVE_UP_S", 0.2)


def test_work_that_ends_is_not_pressed() -> None:
    work = Stubborn(1)
    threading.Timer(0.1, work.end).start()
    outcome = Follower(work, 5, None).follow(nothing)
    assert work.done == []
    assert (outcome.timed_out, outcome.interrupted, outcome.given_up) == (False, False, False)


def test_a_time_out_interrupts_then_kills_then_gives_up() -> None:
    work = Stubborn(9)
    outcome = Follower(work, 0.2, None).follow(nothing)
    assert [how for how, _ in work.done] == ["interrupt", "kill"]
    assert work.done[0][1] == pytest.approx(0.2, abs=0.15)
    assert work.done[1][1] - work.done[0][1] == pytest.approx(0.4, abs=0.15)
    assert outcome.timed_out
    assert outcome.given_up


def test_where_nobody_answers_it_is_given_up_at_once() -> None:
    work = Stubborn(9)
    work.answers = False
    outcome = Follower(work, 0.1, None).follow(nothing)
    assert outcome.given_up
    assert [how for how, _ in work.done] == ["interrupt", "kill"]


def test_an_interrupt_only_interrupts() -> None:
    work = Stubborn(9)
    follower = Follower(work, None, None)
    follower.interrupt()
    threading.Timer(1.2, work.end).start()
    outcome = follower.follow(nothing)
    assert [how for how, _ in work.done] == ["interrupt"]
    assert outcome.interrupted
    assert not outcome.timed_out


def test_a_time_out_holds_for_work_that_ignored_an_interrupt() -> None:
    work = Stubborn(2)
    follower = Follower(work, 0.6, None)
    follower.interrupt()
    outcome = follower.follow(nothing)
    assert [how for how, _ in work.done] == ["interrupt", "kill"]
    assert work.done[1][1] == pytest.approx(0.6, abs=0.15)
    assert outcome.timed_out


def test_a_second_interrupt_kills_at_once() -> None:
    work = Stubborn(2)
    follower = Follower(work, None, None)
    follower.interrupt()
    follower.interrupt()
    assert not follower.follow(nothing).given_up
    assert [how for how, _ in work.done] == ["interrupt", "kill"]


def test_where_the_channel_is_gone_its_end_is_waited_for() -> None:
    work = Stubborn(1, closed=True)
    threading.Timer(0.5, work.end).start()
    assert not Follower(work, 0.1, None).follow(nothing).given_up


def test_what_came_last_is_shown() -> None:
    work, seen = Stubborn(1), list[dict[str, Any]]()
    work.show({"output_type": "stream", "name": "stdout", "text": "last"})
    work.end()
    Follower(work, None, seen.append).follow(nothing)
    assert seen == [{"output_type": "stream", "name": "stdout", "text": "last"}]


@pytest.mark.parametrize("sent", [False, True])
def test_an_interrupt_at_the_very_beginning_leaves_nothing_running(sent: bool) -> None:
    work = Stubborn(2)

    def begin() -> None:
        work.sent = sent
        raise KeyboardInterrupt

    outcome = Follower(work, None, None).follow(begin)
    assert outcome.interrupted
    assert [how for how, _ in work.done] == (["interrupt", "kill"] if sent else ["interrupt"])


def test_what_cannot_be_sent_has_ended() -> None:
    def begin() -> None:
        raise RelayClosedError

    work = Stubborn(1)
    Follower(work, None, None).follow(begin)
    assert work.over
