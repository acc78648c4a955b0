"""A run's events -> the entries that the page shows, and numbered changes of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel.agent.events import (
    Event,
    Notice,
    RunEnded,
    RunStarted,
    TextDelta,
    ThinkingDelta,
    ToolCalled,
    ToolReturned,
    TurnEnded,
    TurnStarted,
    Usage,
)
from memkernel.jupyter.widgets.run_log import MOST_ENTRIES, STATE_BYTES, Made, RunLog

STARTED = RunStarted("run_1", "Tidy", "claude-sonnet-5-5", "live")
CALLED = ToolCalled("toolu_1", "memory", {"command": "view", "path": "/memories"})
RETURNED = ToolReturned("toolu_1", "memory", "nothing", is_error=False, duration_s=0.0123)
ENDED = TurnEnded(1, "end_turn", Usage(1, 2))


def taken(*events: Event) -> tuple[RunLog, list[dict[str, Any]]]:
    log = RunLog()
    return log, [change for event in events for change in log.take(event)]


class Page:
    """What a page makes of changes, as the view does: a text is the same whichever way it came."""

    def __init__(self) -> None:
        self.entries: dict[int, dict[str, Any]] = {}

    def take(self, changes: Iterable[dict[str, Any]]) -> None:
        for change in changes:
            if "drop" in change:
                self.entries = {key: entry for key, entry in self.entries.items() if key < change["drop"]}
            elif "add" in change:
                entry = self.entries[change["k"]]
                entry.update(text=entry["text"] + change["add"], n=change["n"])
            else:
                self.entries[change["k"]] = dict(change)

    def texts(self) -> list[tuple[str, str]]:
        return [(entry["kind"], entry["text"]) for _, entry in sorted(self.entries.items())]


def test_words_are_told_one_by_one_and_kept_as_one() -> None:
    log, changes = taken(STARTED, TurnStarted(1), TextDelta("Once"), TextDelta(" upon"))
    assert changes[1:] == [{"k": 2, "n": 2, "kind": "text", "text": "Once"}, {"k": 2, "n": 3, "add": " upon"}]
    assert log.state()["entries"][-1] == {"k": 2, "n": 3, "kind": "text", "text": "Once upon"}


def test_words_of_two_turns_are_two_entries() -> None:
    log, _ = taken(STARTED, TurnStarted(1), TextDelta("One."), ENDED, TurnStarted(2), TextDelta("Two."))
    assert [entry["text"] for entry in log.state()["entries"]] == ["Tidy", "One.", "Two."]


def test_a_call_gets_its_result_and_its_versions() -> None:
    log, _ = taken(STARTED, CALLED)
    running = log.state()["entries"][-1]
    assert (running["text"], running["state"], running["error"]) == ("memory view /memories", "running…", False)
    ((title, arguments),) = running["parts"]
    assert (title, json.loads(arguments)) == ("Arguments", CALLED.input)
    log.take(RETURNED)
    (change,) = log.made("toolu_1", [Made("memver_1", "~ /a\u202e.md @3 +2 −1", "/a.md")])
    assert change == log.state()["entries"][-1]
    assert (change["parts"][1], change["state"], change["n"]) == (["Result", "nothing"], "12 ms", 4)
    line = ["~ /a", ["⟨U+202E⟩", "U+202E RIGHT-TO-LEFT OVERRIDE"], ".md @3 +2 −1"]
    assert change["made"] == [["memver_1", line, "/a.md"]]
    assert log.made("toolu_unknown", []) == []


def test_a_call_that_failed_says_so_in_words() -> None:
    log, _ = taken(CALLED, ToolReturned("toolu_1", "memory", "It is not there.", is_error=True, duration_s=1.52))
    (entry,) = log.state()["entries"]
    assert (entry["state"], entry["error"]) == ("error · 1.5 s", True)
    assert entry["parts"][1] == ["Error", "It is not there."]


def test_a_retry_drops_what_its_turn_had_streamed_and_nothing_else() -> None:
    retry = Notice("retry", "Trying again.")
    log, changes = taken(
        STARTED, TextDelta("Kept."), ENDED, TurnStarted(2), ThinkingDelta("hm"), TextDelta("Ha"), retry
    )
    assert changes[-2:] == [
        {"n": 5, "drop": 3},
        {"k": 5, "n": 6, "kind": "notice", "text": "Trying again."},
    ]
    assert [entry["text"] for entry in log.state()["entries"]] == ["Tidy", "Kept.", "Trying again."]
    assert log.take(retry)[0]["kind"] == "notice"  # there was nothing to drop


def test_a_retry_of_the_first_request_leaves_the_prompt_there() -> None:
    log, changes = taken(STARTED, Notice("retry", "Trying again."))
    assert [change.get("drop") for change in changes] == [None, None]
    assert [entry["text"] for entry in log.state()["entries"]] == ["Tidy", "Trying again."]


def test_what_cannot_be_seen_is_marked() -> None:
    _, changes = taken(TextDelta("a\u202eb"), ToolCalled("toolu_1", "x\u202e", {"a": "\x1b"}))
    assert changes[0]["text"] == ["a", ["⟨U+202E⟩", "U+202E RIGHT-TO-LEFT OVERRIDE"], "b"]
    assert isinstance(changes[1]["text"], list)


def test_the_state_has_the_last_entries_and_says_how_many_it_leaves_out() -> None:
    log, _ = taken(*(Notice("error", str(number)) for number in range(250)))
    state = log.state()
    assert (len(state["entries"]), state["left_out"], state["n"]) == (MOST_ENTRIES, 150, 250)
    earlier = log.state(before=state["entries"][0]["k"])
    assert (earlier["entries"][-1]["text"], len(earlier["entries"]), earlier["left_out"]) == ("149", MOST_ENTRIES, 50)


@pytest.mark.parametrize("text", ["x" * 30_000, "\x1b" * 30_000, "é\u202e" * 15_000, '"' * 30_000])
def test_the_state_stays_within_its_limit_and_the_whole_can_be_asked_for(text: str) -> None:
    returned = [ToolReturned(f"toolu_{number}", "f", text, is_error=False, duration_s=1) for number in range(40)]
    called = [ToolCalled(each.tool_use_id, "f", {"text": text}) for each in returned]
    log, changes = taken(STARTED, *called, *returned, TextDelta(text))
    state = log.state()
    assert len(json.dumps(state)) <= STATE_BYTES + 1_000
    last = state["entries"][-1]
    assert last["kind"] == "text"
    assert last["more"].endswith(" more characters")
    whole = log.whole(last["k"])
    assert whole is not None
    assert "more" not in whole
    assert max(len(json.dumps(change)) for change in changes) < 8_000_000
    assert log.whole(10_000) is None


EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(TextDelta, st.text("ab ", min_size=1)),
    st.builds(ThinkingDelta, st.text("ab ", min_size=1)),
    st.just(CALLED),
    st.just(RETURNED),
    st.just(TurnStarted(1)),
    st.just(ENDED),
    st.just(Notice("retry", "Again.")),
    st.just(Notice("error", "No.")),
    st.just(RunEnded("run_1", "done", 1, Usage())),
)


@given(st.lists(EVENTS))
def test_a_page_that_heard_every_change_shows_what_the_state_says(events: list[Event]) -> None:
    log, page, numbers = RunLog(), Page(), list[int]()
    for event in events:
        changes = log.take(event)
        numbers += [change["n"] for change in changes]
        page.take(changes)
    state = log.state()
    assert numbers == list(range(1, log.n + 1))
    assert state["n"] == log.n
    assert page.texts()[-MOST_ENTRIES:] == [(entry["kind"], entry["text"]) for entry in state["entries"]]
    assert [entry["n"] for entry in page.entries.values()][-MOST_ENTRIES:] == [entry["n"] for entry in state["entries"]]
