"""Requests that fail: what is tried again, what is shown, what is raised."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, Literal

import anthropic
import pytest
from anthropic import beta_tool

from memkernel.agent import loop, retry
from memkernel.agent.events import Notice, Replied, TextDelta, ToolCalled, TurnEnded, TurnStarted
from memkernel.agent.run import Run
from memkernel.agent.script import Failure, Reply, ToolUse, reply
from memkernel.errors import ModelRequestError
from tests.fix_agent import Play, Scripted

AT_ONCE = {"retry-after-ms": "1"}


@pytest.fixture(autouse=True)
def _no_long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "_FIRST_S", 0.001)


def counting() -> tuple[Any, list[str]]:
    """A tool, and the list of its calls."""
    calls: list[str] = []

    @beta_tool
    def note(text: str) -> str:
        """Note a text.

        Args:
            text: what to note
        """
        calls.append(text)
        return "noted"

    return note, calls


@pytest.mark.parametrize(
    ("status", "error_type"),
    [
        (429, "rate_limit_error"),
        (529, "overloaded_error"),
        (500, "api_error"),
        (503, "api_error"),
        (408, "timeout_error"),
    ],
)
def test_what_passes_later_is_tried_again_and_shown(play: Play, status: int, error_type: str) -> None:
    played = play([Failure(status, error_type, "Busy", AT_ONCE), reply("Here I am.")])
    assert (played.run.status, played.run.text, played.run.turns) == ("done", "Here I am.", 1)
    assert played.events(Notice) == [
        Notice("retry", f"The API answered {status} ({error_type}): Busy; trying again in 0.0 s (1 of 2).")
    ]


def test_retries_are_bounded_by_the_clients_max_retries(play: Play) -> None:
    busy = Failure(529, "overloaded_error", "Overloaded", AT_ONCE)
    played = play([busy] * 9, client={"max_retries": 3})
    assert len(played.model.requests) == 4
    assert [notice.kind for notice in played.events(Notice) if isinstance(notice, Notice)] == ["retry"] * 3 + ["error"]
    assert isinstance(played.error, ModelRequestError)
    assert played.error.lines() == [
        "ModelRequestError: the API answered 529 (overloaded_error): Overloaded",
        "Run the agent again: it goes on where it stopped.",
    ]
    assert isinstance(played.error.__cause__, anthropic.OverloadedError)


def test_with_max_retries_0_nothing_is_tried_again(play: Play) -> None:
    played = play([Failure(529, "overloaded_error"), reply("never asked for")], client={"max_retries": 0})
    assert (played.run.status, len(played.model.requests)) == ("error", 1)


def test_failures_are_counted_a_turn(play: Play) -> None:
    note, calls = counting()
    busy = [Failure(529, "overloaded_error", headers=AT_ONCE)] * 2
    played = play([*busy, reply(ToolUse("note", {"text": "a"})), *busy, reply("Done.")], [note])
    assert (played.run.status, calls, len(played.model.requests)) == ("done", ["a"], 6)


@pytest.mark.parametrize(
    ("status", "error_type", "hint"),
    [
        (400, "invalid_request_error", "The API says what it refused; another request may pass."),
        (
            401,
            "authentication_error",
            "Check ANTHROPIC_API_KEY, or what the client that was given identifies itself with.",
        ),
        (403, "permission_error", "This key may not use the model."),
        (404, "not_found_error", "Check the model's name, and the client's base_url if it has one."),
    ],
)
def test_what_will_not_pass_is_raised_at_once(play: Play, status: int, error_type: str, hint: str) -> None:
    played = play([Failure(status, error_type, "No."), reply("never asked for")])
    assert len(played.model.requests) == 1
    assert isinstance(played.error, ModelRequestError)
    assert (played.error.status_code, played.error.hint) == (status, hint)
    assert str(played.error) == f"the API answered {status} ({error_type}): No"


def test_the_servers_word_on_retries_counts(play: Play) -> None:
    final = Failure(529, "overloaded_error", headers={"x-should-retry": "false"})
    assert len(play([final, reply("never asked for")]).model.requests) == 1
    willing = Failure(400, "invalid_request_error", headers={"x-should-retry": "true", **AT_ONCE})
    assert play([willing, reply("Fine.")]).run.status == "done"


Breaks = Literal["error", "cut", "ends"]


@pytest.mark.parametrize("breaks", ["error", "cut", "ends"])
def test_fault_53_a_reply_that_breaks_is_dropped_and_asked_for_again(play: Play, breaks: Breaks) -> None:
    """fault 53"""
    note, calls = counting()
    call = ToolUse("note", {"text": "a"})
    played = play([reply("Let me", call, breaks=breaks), reply("Now.", call), reply("Done.")], [note])
    assert calls == ["a"]  # by the whole reply alone
    assert played.run.status == "done"
    assert [block["text"] for block in played.run.messages[1]["content"] if block["type"] == "text"] == ["Now."]
    (notice,) = played.events(Notice)
    assert isinstance(notice, Notice)
    assert notice.kind == "retry"
    assert re.search(r"; trying again in 0\.0 s \(1 of 2\)\.$", notice.text)
    assert len(played.model.requests) == 3
    assert played.model.requests[0] == played.model.requests[1]
    assert {headers["x-stainless-retry-count"] for headers in played.model.headers} == {"0"}  # the SDK tries once


def test_fault_53_an_error_event_says_what_it_was(play: Play) -> None:
    """fault 53"""
    played = play([reply("Let me", breaks="error"), reply("Done.")])
    assert played.events(Notice) == [
        Notice(
            "retry",
            "The API broke off its reply (overloaded_error): scripted failure in the middle of a reply; "
            "trying again in 0.0 s (1 of 2).",
        )
    ]
    kinds = [type(event) for event in played.run.events[1:-1]]
    assert kinds == [TurnStarted, TextDelta, Notice, TurnStarted, TextDelta, Replied, TurnEnded]


def test_fault_53_an_error_event_that_will_not_pass_is_raised_at_once(play: Play) -> None:
    """fault 53"""
    played = play([reply("Let me", breaks="error", error_type="invalid_request_error"), reply("never asked for")])
    assert len(played.model.requests) == 1
    assert isinstance(played.error, ModelRequestError)
    assert [message["role"] for message in played.run.messages] == ["user"]


def test_fault_53_replies_that_always_break_end_the_run(play: Play) -> None:
    """fault 53"""
    played = play([reply("Let me", breaks="cut")] * 9)
    assert (played.run.status, len(played.model.requests)) == ("error", 3)
    assert isinstance(played.error, ModelRequestError)
    assert str(played.error).startswith("the reply broke off while it streamed")
    assert [message["role"] for message in played.run.messages] == ["user"]


def test_a_call_whose_input_is_no_json_is_asked_for_again(play: Play) -> None:
    """fault 8"""
    note, calls = counting()
    broken, whole = ToolUse("note", '{"text": no}'), ToolUse("note", {"text": "a"})
    played = play([reply(broken), reply(whole), reply("Done.")], [note])
    assert (played.run.status, calls) == ("done", ["a"])
    assert len(played.events(ToolCalled)) == 1


def test_a_call_whose_input_ends_too_early_is_an_error_result(play: Play) -> None:
    """fault 8"""
    note, calls = counting()
    played = play([reply(ToolUse("note", '{"text": "ha')), reply("I see.")], [note])
    assert (played.run.status, calls) == ("done", [])
    assert played.results()[0]["is_error"]


def test_fault_53_a_reply_that_hangs_is_given_up_and_asked_for_again(scripted: Scripted) -> None:
    """fault 53: the client's own timeout counts from event to event."""
    asked: list[Any] = []

    def answers(body: Any) -> Reply:
        asked.append(body)
        return reply("Half a", breaks="hangs") if len(asked) == 1 else reply("Whole.")

    run = Run("Go", model="claude-sonnet-5-5")
    client = scripted(answers=answers).client(timeout=2.0, max_retries=9)
    loop.play(run, loop.Request(client, run.model))
    assert (run.status, run.text) == ("done", "Whole.")
    assert asked[0] == asked[1]
    first = next(event for event in run.events if isinstance(event, Notice))
    assert first.text.startswith("The reply broke off while it streamed: ")


@pytest.mark.parametrize(("status", "reason"), [(502, "Bad Gateway"), (504, "Gateway Timeout"), (413, "")])
def test_the_page_of_a_proxy_is_not_shown(play: Play, status: int, reason: str) -> None:
    page = "<html><body><h1>nginx</h1>" + "<p>…</p>" * 99
    played = play([Failure(status, page=page)], client={"max_retries": 0})
    assert isinstance(played.error, ModelRequestError)
    assert str(played.error).startswith(f"the API answered {status}: {reason}")
    assert "<" not in str(played.error)
    assert played.error.hint


def test_after_a_failed_run_the_conversation_goes_on(play: Play) -> None:
    note, _ = counting()
    played = play([reply(ToolUse("note", {"text": "a"})), Failure(401, "authentication_error")], [note])
    assert [message["role"] for message in played.run.messages] == ["user", "assistant", "user"]


def test_an_api_that_cannot_be_reached_is_told(play: Play) -> None:
    played = play([], client={"base_url": "http://127.0.0.1:9", "max_retries": 1})
    assert isinstance(played.error, ModelRequestError)
    assert str(played.error).startswith("the API cannot be reached")
    assert played.error.status_code is None
    assert len(played.events(Notice)) == 2


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "7"}, (7.0, 7.0)),
        ({"retry-after-ms": "1500"}, (1.5, 1.5)),
        ({"retry-after-ms": "1500", "retry-after": "7"}, (1.5, 1.5)),
        ({"retry-after": "999999"}, (999999.0, 999999.0)),
        ({"retry-after": "9999999"}, (4294967.0, 4294967.0)),
        ({"retry-after": format_datetime(datetime.now(UTC) + timedelta(days=1), usegmt=True)}, (86_000.0, 86_400.0)),
        ({"retry-after": "Fri, 28 Nov 2025 09:00:00 GMT"}, (0.00075, 0.001)),
        ({"retry-after": "Fri, 99 Nov 2099 09:00:00 GMT"}, (0.00075, 0.001)),
        ({"retry-after-ms": "soon", "retry-after": "7"}, (7.0, 7.0)),
        ({"retry-after": "soon"}, (0.00075, 0.001)),
        ({"retry-after": "-3"}, (0.00075, 0.001)),
        ({"retry-after": "nan"}, (0.00075, 0.001)),
        ({}, (0.00075, 0.001)),
    ],
)
def test_the_servers_wish_for_a_pause_is_obeyed(
    play: Play, headers: dict[str, str], expected: tuple[float, float]
) -> None:
    played = play([Failure(429, "rate_limit_error", headers=headers)], client={"max_retries": 0})
    assert played.error is not None
    error = played.error.__cause__
    assert isinstance(error, Exception)
    assert expected[0] <= retry.delay_s(error, 1) <= expected[1]


def test_pauses_double_up_to_8_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "_FIRST_S", 0.5)
    lost = ConnectionError("gone")
    longest = [max(retry.delay_s(lost, failures) for _ in range(50)) for failures in (1, 2, 3, 4, 5, 6, 1000)]
    assert all(0.75 * most <= found <= most for found, most in zip(longest, [0.5, 1, 2, 4, 8, 8, 8], strict=True))
