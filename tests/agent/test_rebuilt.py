"""A run's conversation is a pure function of what it started with and of its events, wherever these break off."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel.agent import conversation
from memkernel.agent.conversation import Block
from memkernel.agent.event_rows import data_of, event_of
from memkernel.agent.events import (
    Event,
    Notice,
    Replied,
    RunEnded,
    RunStarted,
    TextDelta,
    ToolCalled,
    ToolReturned,
    TurnEnded,
    TurnStarted,
)
from memkernel.models import RunEvent, RunStatus, Usage

NOTHING = Usage()
START = conversation.asked([], "Go")
TEXT: Block = {"type": "text", "text": "So."}
BLANK: Block = {"type": "text", "text": "\n"}
THOUGHT: Block = {"type": "thinking", "thinking": "hm", "signature": "s"}
SERVER: Block = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}


def call(number: int) -> Block:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "memory", "input": {"command": "view"}}


def returned(number: int, content: str = "ok") -> ToolReturned:
    result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": content}
    return ToolReturned(f"toolu_{number}", "memory", content, is_error=False, duration_s=0.0, result=result)


def rebuilt(*events: Event) -> list[Any]:
    return conversation.rebuilt(START, events)[len(START) :]


def told(*events: Event) -> list[str]:
    """What the calls of the last turn are told."""
    return [block["content"] for block in rebuilt(*events)[-1]["content"]]


def test_without_events_it_is_what_it_started_with() -> None:
    assert rebuilt() == []


def test_a_turn_is_a_reply_and_the_answers_to_its_calls() -> None:
    spoken = Replied(1, [TEXT, call(1), call(2)])
    assert rebuilt(spoken, returned(1), returned(2), TurnEnded(1, "tool_use", NOTHING)) == [
        {"role": "assistant", "content": [TEXT, call(1), call(2)]},
        {"role": "user", "content": [returned(1).result, returned(2).result]},
    ]


def test_what_was_streamed_for_a_turn_that_is_begun_anew_is_not_in_it() -> None:
    again = [TurnStarted(1), TextDelta("On"), Notice("retry", "Again."), TurnStarted(1), TextDelta("Once")]
    assert rebuilt(*again, Replied(1, [TEXT])) == [{"role": "assistant", "content": [TEXT]}]


def test_a_reply_that_was_cut_off_has_its_calls_answered() -> None:
    assert told(
        Replied(1, [call(1)]), TurnEnded(1, "max_tokens", NOTHING), RunEnded("run_1", "max_tokens", 1, NOTHING)
    ) == ["Not run: the reply was cut off before the call was complete."]


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        ("stopped", "Stopped by the user before this ran."),
        ("max_time", "Stopped at its time limit before this ran."),
        ("error", "Not run: the run failed before this."),
        ("lost", "Not run: the run ended before it."),
    ],
)
def test_a_call_that_never_began_is_told_how_the_run_ended(status: RunStatus, sentence: str) -> None:
    events = [Replied(1, [call(1), call(2)]), returned(1), RunEnded("run_1", status, 1, NOTHING)]
    assert told(*events) == ["ok", sentence]


def test_where_the_events_break_off_whoever_rebuilds_says_why() -> None:
    messages = conversation.rebuilt(START, [Replied(1, [call(1)])], lambda block: f"{block['id']} was lost")
    assert messages[-1]["content"][0]["content"] == "toolu_1 was lost"


def test_a_paused_turn_stays_open_and_a_stopped_one_does_not() -> None:
    spoken = Replied(1, [TEXT, SERVER])
    assert rebuilt(spoken, TurnEnded(1, "pause_turn", NOTHING))[-1]["content"] == [TEXT, SERVER]
    assert rebuilt(spoken, RunEnded("run_1", "stopped", 0, NOTHING))[-1]["content"] == [TEXT]


# -- any run, broken off anywhere ------------------------------------------------------------------


@st.composite
def turns(draw: st.DrawFn) -> list[Event]:
    """The events of a few turns."""
    events: list[Event] = [RunStarted("run_1", "Go", "m")]
    numbers = iter(range(1000))
    for turn in range(1, draw(st.integers(1, 4)) + 1):
        words = draw(st.lists(st.sampled_from([TEXT, BLANK, THOUGHT, SERVER]), max_size=3))
        calls = [call(next(numbers)) for _ in range(draw(st.integers(0, 3)))]
        events += [TurnStarted(turn), TextDelta("So."), Replied(turn, [*words, *calls])]
        for block in calls:
            number = int(block["id"].removeprefix("toolu_"))
            events += [ToolCalled(block["id"], "memory", block["input"]), returned(number)]
        reason = "tool_use" if calls else draw(st.sampled_from(["end_turn", "pause_turn", "max_tokens"]))
        events.append(TurnEnded(turn, reason, NOTHING))
    return [*events, RunEnded("run_1", "done", 1, NOTHING)]


def is_taken(messages: Sequence[Any]) -> bool:
    return conversation.complaint(conversation.asked(messages, "And now?")) is None


@given(turns(), st.data())
def test_wherever_the_events_break_off_the_api_takes_the_conversation(events: list[Event], data: st.DataObject) -> None:
    count = data.draw(st.integers(0, len(events)))
    assert is_taken(conversation.rebuilt(START, events[:count]))
    ended = RunEnded("run_1", data.draw(st.sampled_from(["stopped", "max_time", "error"])), 1, NOTHING)
    assert is_taken(conversation.rebuilt(START, [*events[:count], ended]))


@given(turns())
def test_the_conversation_only_grows_with_the_events(events: list[Event]) -> None:
    ends = [at + 1 for at, event in enumerate(events) if isinstance(event, TurnEnded)]
    whole = conversation.rebuilt(START, events)
    for at in ends:
        part = conversation.rebuilt(START, events[:at])
        assert whole[: len(part)] == part


@given(turns())
def test_rows_of_the_events_make_the_same_conversation(events: list[Event]) -> None:
    rows = [event_of(row(n, event)) for n, event in enumerate(events)]
    kept = [event for event in rows if event is not None]
    assert conversation.rebuilt(START, kept) == conversation.rebuilt(START, events)


def row(n: int, event: Event) -> RunEvent:
    return RunEvent(n, event.type, data_of(event), datetime(2026, 12, 1, tzinfo=UTC))
