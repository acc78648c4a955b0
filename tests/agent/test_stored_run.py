"""A stored run that is shown again: its events in their order, and its end; nothing is asked."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memkernel.agent import events
from memkernel.agent.event_rows import data_of
from memkernel.agent.stored_run import StoredRun
from memkernel.agent.transcript import BADGES, SHOWN_AGAIN
from memkernel.errors import InvalidInputError
from memkernel.models import RunEvent, RunKind, RunRecord, Usage

BEGAN = datetime(2026, 11, 30, 9, 21, tzinfo=UTC)
RECORD = RunRecord(
    id="run_1",
    session_id="sesn_1",
    kind="live",
    model="claude-sonnet-5-5",
    prompt="Go",
    status="done",
    turns=1,
    stop_reason="end_turn",
    usage=Usage(5, 7),
    cost_usd=0.25,
    memory_store_ids=(),
    previous_run_id=None,
    error="",
    started_at=BEGAN,
    seen_at=BEGAN,
    ended_at=BEGAN + timedelta(seconds=9),
)
HAPPENED: tuple[events.Event, ...] = (
    events.RunStarted("run_1", "Go", "claude-sonnet-5-5"),
    events.TurnStarted(1),
    events.TextDelta("Well."),
    events.Replied(1, [{"type": "text", "text": "Well."}]),
    events.TurnEnded(1, "end_turn", Usage(5, 7)),
    events.RunEnded("run_1", "done", 1, Usage(5, 7)),
)


def rows(happened: Sequence[events.Event], *, apart_s: float = 0) -> list[RunEvent]:
    """Each event so long after the one before."""
    times = [BEGAN + timedelta(seconds=apart_s * n) for n in range(len(happened))]
    return [
        RunEvent(n, event.type, data_of(event), at) for n, (event, at) in enumerate(zip(happened, times, strict=True))
    ]


def heard(run: StoredRun) -> list[Any]:
    told: list[Any] = []
    run.subscribe(told.append)
    return told


def test_its_events_are_handed_on_and_it_ends_as_it_has_ended() -> None:
    run = StoredRun(RECORD, rows(HAPPENED))
    told = heard(run)
    assert run.play() is run
    assert tuple(told) == tuple(run.events) == HAPPENED
    assert (run.id, run.status, run.turns, run.usage) == ("run_1", "done", 1, Usage(5, 7))
    assert (run.text, run.cost_usd, run.record()) == ("Well.", 0.25, RECORD)
    assert run.wait(0) is run


@pytest.mark.parametrize("kind", ["live", "scripted", "recorded"])
def test_it_says_that_it_is_one_of_before_and_who_answered(kind: RunKind) -> None:
    run = StoredRun(replace(RECORD, kind=kind), rows(HAPPENED)).play()
    shown = run._repr_mimebundle_()  # pyright: ignore[reportPrivateUsage]  # IPython's protocol
    for words in (SHOWN_AGAIN, BADGES[kind], "$0.25"):
        assert words in shown["text/plain"]
        assert words in shown["text/html"]


def test_a_run_whose_process_was_killed_ends_where_it_was_lost() -> None:
    run = StoredRun(replace(RECORD, status="lost", ended_at=None), rows(HAPPENED[:4]))
    told = heard(run)
    run.play()
    assert told[-1] == events.RunEnded("run_1", "lost", 1, Usage(5, 7))


def test_what_is_not_known_is_left_out() -> None:
    unknown = RunEvent(9, "of_tomorrow", {}, BEGAN)
    run = StoredRun(RECORD, [unknown, *rows(HAPPENED)])
    told = heard(run)
    run.play()
    assert tuple(told) == HAPPENED


class Clock:
    """Stands where the waiting is done, and takes notes of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, run: StoredRun) -> None:
        self.waited: list[float] = []
        self.interrupts = False
        monkeypatch.setattr(run, "_hurries", self)
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def wait(self, pause_s: float) -> bool:
        self.waited.append(0 if self._is_set else pause_s)
        if self.interrupts:
            self.interrupts = False
            raise KeyboardInterrupt
        return self._is_set


@pytest.mark.parametrize(
    ("speed", "apart_s", "pause_s"), [(1, 2, 2.0), (10, 2, 0.2), (0, 2, 0.0), (1, 3_600, 3.0), (2, 3_600, 1.5)]
)
def test_pauses_are_as_they_were_but_for_long_ones(
    monkeypatch: pytest.MonkeyPatch, speed: float, apart_s: float, pause_s: float
) -> None:
    run = StoredRun(RECORD, rows(HAPPENED, apart_s=apart_s))
    clock = Clock(monkeypatch, run)
    run.play(speed)
    assert clock.waited == [0.0, *[pause_s] * 4]


def test_an_interrupt_shows_the_rest_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run = StoredRun(RECORD, rows(HAPPENED, apart_s=2))
    clock = Clock(monkeypatch, run)
    clock.interrupts = True
    told = heard(run)
    run.play(1)
    assert clock.waited == [0] * 5
    assert tuple(told) == HAPPENED


def test_so_does_a_stop_from_another_thread() -> None:
    run = StoredRun(RECORD, rows(HAPPENED, apart_s=3_600))
    run.subscribe(lambda event: threading.Thread(target=run.stop).start())
    assert run.play(0.000_1).status == "done"


@pytest.mark.parametrize("speed", [-1, float("nan"), float("inf")])
def test_a_speed_that_is_none_is_refused(speed: float) -> None:
    with pytest.raises(InvalidInputError, match="the speed is"):
        StoredRun(RECORD, []).play(speed)
