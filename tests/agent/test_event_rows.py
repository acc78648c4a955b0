"""Events as the JSON that PostgreSQL keeps: each comes back as it was, and what is not known is left out."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel.agent import events
from memkernel.agent.event_rows import data_of, event_of, events_of
from memkernel.models import RunEvent, Usage

TEXT = st.text(max_size=20)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(TEXT, JSON, max_size=3)
COUNT = st.integers(0, 10**9)
USAGE = st.builds(Usage, COUNT, COUNT, COUNT, COUNT)
KINDS = ("live", "scripted", "recorded")
EVENTS: st.SearchStrategy[events.Event] = st.one_of(
    st.builds(events.RunStarted, TEXT, TEXT, TEXT, st.sampled_from(KINDS)),
    st.builds(events.TurnStarted, COUNT),
    st.builds(events.TextDelta, TEXT),
    st.builds(events.ThinkingDelta, TEXT),
    st.builds(events.Replied, COUNT, st.lists(OBJECTS, max_size=3)),
    st.builds(events.ToolCalled, TEXT, TEXT, OBJECTS),
    st.builds(events.ApprovalAsked, TEXT, TEXT, OBJECTS),
    st.builds(events.ApprovalAnswered, TEXT, st.just("denied"), st.just("person"), TEXT),
    st.builds(events.ToolReturned, TEXT, TEXT, TEXT, st.booleans(), st.floats(0, 1e6), st.none() | OBJECTS),
    st.builds(events.TurnEnded, COUNT, st.none() | TEXT, USAGE),
    st.builds(events.Notice, st.just("retry"), TEXT),
    st.builds(events.RunEnded, TEXT, st.just("done"), COUNT, USAGE),
)


def row(kind: str, data: dict[str, Any]) -> RunEvent:
    return RunEvent(1, kind, data, datetime(2026, 11, 30, tzinfo=UTC))


@given(EVENTS)
def test_an_event_comes_back_as_it_was(event: events.Event) -> None:
    kept = json.loads(json.dumps(data_of(event)))
    assert event_of(row(event.type, kept)) == event


def test_every_kind_of_event_is_known() -> None:
    assert len({kind.type for kind in get_args(events.Event)}) == len(get_args(events.Event))


def test_what_is_no_json_is_told_as_it_prints() -> None:
    data = data_of(events.ToolCalled("toolu_1", "add", {"to": Decimal("1.5")}))
    assert data == {"tool_use_id": "toolu_1", "name": "add", "input": {"to": "1.5"}}


@pytest.mark.parametrize(
    ("kind", "data"),
    [("of_tomorrow", {}), ("text_delta", {}), ("text_delta", {"words": "Well"})],
    ids=["an unknown kind", "nothing of it", "another field"],
)
def test_what_another_version_has_written_is_left_out(kind: str, data: dict[str, Any]) -> None:
    assert event_of(row(kind, data)) is None


def test_a_field_that_is_not_known_does_no_harm() -> None:
    rows = [row("text_delta", {"text": "Well", "of_tomorrow": 1}), row("of_tomorrow", {})]
    usage = row("turn_ended", {"turn": 1, "stop_reason": None, "usage": {"input_tokens": 3, "thoughts": 4}})
    assert events_of([*rows, usage]) == [events.TextDelta("Well"), events.TurnEnded(1, None, Usage(3))]
