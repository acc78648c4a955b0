"""Limits and approvals in runs of the loop: what is asked of the model, and how a run ends that reaches one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
from anthropic import beta_tool
from anthropic.types.beta import BetaUsage

from memkernel.agent import conversation, limits, long_runs, loop, prices
from memkernel.agent.approval import Approvals
from memkernel.agent.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Event,
    Notice,
    RunEnded,
    RunStarted,
    TextDelta,
    ToolCalled,
    ToolReturned,
    TurnEnded,
)
from memkernel.agent.limits import RunLimits
from memkernel.agent.prices import Price
from memkernel.agent.request import Request
from memkernel.agent.run import Run
from memkernel.agent.script import Failure, Reply, ToolUse, reply
from memkernel.agent.scripted import ScriptedModel
from memkernel.models import Usage
from tests.fix_agent import Play, Scripted

pytestmark = pytest.mark.usefixtures("kernel_interrupts")

PATIENCE_S = 30.0
MODEL = "claude-sonnet-5-5"

Played = Callable[[Run, Request], Run]
"""Play a run, here or in a thread of its own, and wait for its end."""


def here(run: Run, request: Request) -> Run:
    loop.play(run, request)
    return run


def apart(run: Run, request: Request) -> Run:
    thread = threading.Thread(target=loop.play, args=(run, request), daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    return run


@pytest.fixture(params=[here, apart])
def played(request: pytest.FixtureRequest) -> Played:
    return request.param


@beta_tool
def look() -> str:
    """Look around."""
    return "a tree " * 100


def notices(run: Run) -> list[Notice]:
    return [event for event in run.events if isinstance(event, Notice)]


def ended_well(run: Run) -> None:
    """The run has ended, and its conversation can go on."""
    assert isinstance(run.events[-1], RunEnded)
    assert conversation.complaint(conversation.asked(run.messages, "And now?")) is None


# -- tokens and cost -------------------------------------------------------------------------------


def endless(body: Any) -> Reply:
    """A model that always looks again, as far as its reply may go."""
    said = reply("I look again, and again, and again.", ToolUse("look"))
    return said if body["max_tokens"] >= 40 else reply("I look again, and", stop_reason="max_tokens")


@pytest.mark.parametrize("limit", [50, 200, 1_000, 3_000, 3_141, 10_000])
def test_no_request_is_sent_that_would_pass_the_limit_by_what_is_known(scripted: Scripted, limit: int) -> None:
    model = scripted(answers=endless)
    run = Run("Go", model=MODEL, limits=RunLimits(max_total_tokens=limit))
    here(run, Request(model.client(), MODEL, [look]))
    ended_well(run)
    assert run.status == "max_total_tokens"
    assert [notice.kind for notice in notices(run)] == ["max_total_tokens"]
    turns = [event.usage for event in run.events if isinstance(event, TurnEnded)]
    used, known, among = Usage(), 0, 0
    for body, usage in zip(model.requests, turns, strict=True):
        least = known + limits.least_tokens(body["messages"][among:])
        assert used.total_tokens + least + body["max_tokens"] <= limit
        # The API counted this prompt: the next one has as many tokens, and its new words.
        used, known, among = used + usage, usage.input_tokens, len(body["messages"])
    unknown = [0, *(after.input_tokens - before.input_tokens for before, after in pairwise([Usage(), *turns]))]
    assert used.total_tokens <= limit + unknown[-1]


def test_a_conversation_that_is_too_long_by_itself_is_not_sent_at_all(scripted: Scripted) -> None:
    model = scripted(answers=endless)
    run = Run("w" * 8_000, model=MODEL, limits=RunLimits(max_total_tokens=1_000))
    here(run, Request(model.client(), MODEL))
    assert model.requests == []
    assert (run.status, run.turns) == ("max_total_tokens", 0)
    assert notices(run)[0].text.startswith("Nothing was asked: the conversation alone takes 1,000 tokens or more")


def test_a_conversation_that_the_api_may_shorten_is_sent_as_long_as_anything_is_left(scripted: Scripted) -> None:
    model = scripted(reply("Done."))
    run = Run("w" * 8_000, model=MODEL, limits=RunLimits(max_total_tokens=1_000))
    here(run, Request(model.client(), MODEL, options=long_runs.checked(True, False, {})))
    assert (run.status, len(model.requests)) == ("done", 1)


def test_a_reply_that_the_limit_cut_off_says_which_limit(scripted: Scripted) -> None:
    def answer(body: Any) -> Reply:
        return reply("It was", stop_reason="max_tokens" if body["max_tokens"] < 32_000 else "end_turn")

    model = scripted(answers=answer)
    run = Run("Go", model=MODEL, limits=RunLimits(max_total_tokens=500))
    here(run, Request(model.client(), MODEL))
    assert (run.status, run.stop_reason) == ("max_total_tokens", "max_tokens")
    assert notices(run) == [
        Notice(
            "max_total_tokens",
            "The reply was cut off where max_total_tokens (500) was reached. The next prompt goes on.",
        )
    ]
    assert run.text == "It was"


def test_a_reply_that_its_own_length_cut_off_is_still_told_so(play: Play) -> None:
    played = play([reply("It was", stop_reason="max_tokens")], limits=RunLimits(max_total_tokens=10**6))
    assert (played.run.status, [notice.kind for notice in notices(played.run)]) == ("max_tokens", ["max_tokens"])


def test_what_a_run_costs_is_the_sum_of_its_replies_and_its_limit_holds(scripted: Scripted) -> None:
    price = Price(input=10.0, output=50.0, cache_write=12.5, cache_read=1.0)
    model = scripted(answers=endless)
    run = Run("Go", model=MODEL, price=price, limits=RunLimits(max_cost_usd=0.05))
    here(run, Request(model.client(), MODEL, [look]))
    ended_well(run)
    assert run.status == "max_cost"
    assert notices(run)[-1].text.startswith(("Stopped at $0.0", "The reply was cut off where max_cost_usd ($0.0500)"))
    said = BetaUsage(input_tokens=run.usage.input_tokens, output_tokens=run.usage.output_tokens)
    assert run.cost_usd == pytest.approx(prices.cost_usd(said, price))
    assert run.cost_usd is not None
    assert 0.02 < run.cost_usd < 0.07


def test_a_script_costs_nothing_and_reaches_no_limit_of_cost(play: Play) -> None:
    run = Run("Go", model="scripted", kind="scripted", price=prices.FREE, limits=RunLimits(max_cost_usd=1e-9))
    assert play([reply(ToolUse("look")), reply("Done.")], [look], run=run).run.status == "done"
    assert run.cost_usd == 0


def test_a_model_without_a_price_has_no_cost(play: Play) -> None:
    assert play([reply("Done.")]).run.cost_usd is None


# -- time ------------------------------------------------------------------------------------------


class Clock:
    """A clock that rings after an event, in a thread of its own, in place of some time."""

    def __init__(self) -> None:
        self._rings: Callable[[], object] | None = None
        self._is_wound = threading.Event()

    @contextmanager
    def __call__(self, seconds: float | None, ring: Callable[[], object]) -> Generator[None]:
        assert seconds == HOURS_S
        self._rings = ring
        self._is_wound.set()
        yield

    def _ring(self) -> None:
        assert self._is_wound.wait(PATIENCE_S)
        assert self._rings is not None
        self._rings()

    def run(self, cue: type | Event, **more: Any) -> Run:
        """A run whose time is over a moment after this event."""
        run = Run("Go", model=MODEL, limits=RunLimits(max_time_s=HOURS_S), **more)

        def watch(event: Event) -> None:
            if event == cue or (isinstance(cue, type) and isinstance(event, cue)):
                threading.Timer(0.05, self._ring).start()

        run.subscribe(watch)
        return run


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(limits, "clock", clock)
    return clock


HOURS_S = 7_200.0
OUT_OF_TIME = Notice("max_time", "Stopped after 7,200 s (max_time_s). The next prompt goes on.")


def test_a_model_that_hangs_is_left_when_the_time_is_over(scripted: Scripted, played: Played) -> None:
    run = Run("Go", model=MODEL, limits=RunLimits(max_time_s=0.2))
    played(run, Request(scripted(reply("Once upon", breaks="hangs")).client(), MODEL))
    ended_well(run)
    assert run.status == "max_time"
    assert notices(run) == [Notice("max_time", "Stopped after 0.2 s (max_time_s). The next prompt goes on.")]


def test_the_words_of_a_model_that_hangs_are_kept(scripted: Scripted, played: Played, clock: Clock) -> None:
    run = clock.run(TextDelta(" upon"))
    played(run, Request(scripted(reply("Once upon", breaks="hangs")).client(), MODEL))
    ended_well(run)
    assert (run.status, run.text) == ("max_time", "Once upon")
    assert notices(run) == [OUT_OF_TIME]


def test_a_model_that_never_begins_to_answer_is_left(scripted: Scripted, played: Played, clock: Clock) -> None:
    go_on = threading.Event()

    def answer(_: object) -> Reply:
        go_on.wait(PATIENCE_S)
        return reply("late")

    try:
        run = played(clock.run(RunStarted), Request(scripted(answers=answer).client(), MODEL))
    finally:
        go_on.set()
    ended_well(run)
    assert (run.status, run.text) == ("max_time", "")


def test_the_time_holds_also_while_it_waits_to_try_again(scripted: Scripted, played: Played, clock: Clock) -> None:
    model = scripted(Failure(529, "overloaded_error", headers={"retry-after": "60"}))
    run = played(clock.run(Notice), Request(model.client(), MODEL))
    assert run.status == "max_time"
    assert [notice.kind for notice in notices(run)] == ["retry", "max_time"]


def test_the_time_holds_also_while_a_person_is_waited_for(scripted: Scripted, played: Played, clock: Clock) -> None:
    call = ToolUse("look")
    run = clock.run(ApprovalAsked, approvals=Approvals({"*": "ask"}))
    played(run, Request(scripted(reply(call)).client(), MODEL, [look]))
    ended_well(run)
    assert run.status == "max_time"
    assert ApprovalAnswered(call.id, "denied", "stop") in run.events
    assert run.messages[-1]["content"][0]["content"] == "Stopped at its time limit before this ran."


def test_in_the_main_thread_a_tool_is_broken_off(scripted: Scripted, clock: Clock) -> None:
    @beta_tool
    def slow() -> str:
        """Never return."""
        time.sleep(2 * PATIENCE_S)
        return "late"

    run = here(clock.run(ToolCalled), Request(scripted(reply(ToolUse("slow"))).client(), MODEL, [slow]))
    ended_well(run)
    assert run.status == "max_time"
    assert "time limit" in run.messages[-1]["content"][0]["content"]
    assert "user" not in run.messages[-1]["content"][0]["content"]


def test_a_run_that_is_done_in_time_is_not_stopped(scripted: Scripted, played: Played) -> None:
    run = Run("Go", model=MODEL, limits=RunLimits(max_time_s=PATIENCE_S))
    assert played(run, Request(scripted(reply("Done.")).client(), MODEL)).status == "done"


# -- approvals -------------------------------------------------------------------------------------


class OnAsked:
    """Does something once a call waits for a person, in a thread of its own."""

    def __init__(self, run: Run, act: Callable[[ApprovalAsked], object]) -> None:
        self._act = act
        run.subscribe(self)

    def __call__(self, event: Event) -> None:
        if isinstance(event, ApprovalAsked):
            threading.Timer(0.05, self._act, [event]).start()


def asked_run(policy: str = "ask") -> Run:
    approvals: Any = Approvals({"*": policy})  # pyright: ignore[reportArgumentType]  # one of the three words
    return Run("Go", model=MODEL, approvals=approvals)


def call_events(run: Run) -> list[type]:
    kinds = (ToolCalled, ApprovalAsked, ApprovalAnswered, ToolReturned)
    return [type(event) for event in run.events if isinstance(event, kinds)]


def results(run: Run) -> list[Any]:
    blocks = [block for message in run.messages for block in conversation.blocks(message)]
    return [block for block in blocks if block["type"] == "tool_result"]


def test_an_approved_call_runs(scripted: Scripted, played: Played) -> None:
    run = asked_run()
    OnAsked(run, lambda asked: run.approve(asked.tool_use_id))
    played(run, Request(scripted(reply(ToolUse("look")), reply("Seen.")).client(), MODEL, [look]))
    assert run.text == "Seen."
    assert call_events(run) == [ToolCalled, ApprovalAsked, ApprovalAnswered, ToolReturned]
    assert results(run)[0]["content"].startswith("a tree")


def test_a_denied_call_answers_the_model_with_one_sentence(scripted: Scripted, played: Played) -> None:
    run, model = asked_run(), scripted(reply(ToolUse("look", id="toolu_1")), reply("Then not."))
    OnAsked(run, lambda asked: run.deny(asked.tool_use_id, "it is dark"))
    played(run, Request(model.client(), MODEL, [look]))
    assert run.status == "done"
    told = {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": "Not run: this call was not approved: it is dark.",
        "is_error": True,
    }
    assert results(run) == [told]
    assert model.requests[1]["messages"][-1]["content"] == [told]
    assert call_events(run) == [ToolCalled, ApprovalAsked, ApprovalAnswered, ToolReturned]


def test_a_call_that_is_never_allowed_answers_the_model_with_one_sentence(scripted: Scripted) -> None:
    run = here(
        asked_run("never"), Request(scripted(reply(ToolUse("look")), reply("So be it.")).client(), MODEL, [look])
    )
    assert [(one["content"], one["is_error"]) for one in results(run)] == [("Not run: look is not allowed here.", True)]
    assert call_events(run) == [ToolCalled, ApprovalAnswered, ToolReturned]


def test_a_stop_while_a_person_is_waited_for_ends_the_run_cleanly(scripted: Scripted, played: Played) -> None:
    run, model = asked_run(), scripted(reply(ToolUse("look"), ToolUse("look")))
    OnAsked(run, lambda _: run.stop())
    played(run, Request(model.client(), MODEL, [look]))
    ended_well(run)
    assert run.status == "stopped"
    assert [one["content"] for one in results(run)] == ["Stopped by the user before this ran."] * 2
    assert call_events(run)[:4] == [ToolCalled, ApprovalAsked, ApprovalAnswered, ToolReturned]
    assert len(model.requests) == 1
    assert run.approvals.waiting == ()


def test_an_interrupt_while_a_person_is_waited_for_ends_the_run_cleanly(
    scripted: Scripted, interrupt: Callable[[], None]
) -> None:
    run = asked_run()
    OnAsked(run, lambda _: interrupt())
    here(run, Request(scripted(reply(ToolUse("look"))).client(), MODEL, [look]))
    ended_well(run)
    assert run.status == "stopped"
    assert notices(run) == [Notice("stopped", "Stopped by the user.")]


def test_the_whole_tool_is_approved_once(scripted: Scripted, played: Played) -> None:
    run, model = asked_run(), scripted(reply(ToolUse("look"), ToolUse("look")), reply(ToolUse("look")), reply("Seen."))
    OnAsked(run, lambda asked: run.approve(asked.tool_use_id, whole_tool=True))
    played(run, Request(model.client(), MODEL, [look]))
    assert run.status == "done"
    assert call_events(run).count(ApprovalAsked) == 1
    assert len(results(run)) == 3


# -- compaction that the model does not offer ------------------------------------------------------

REFUSED = Failure(400, "invalid_request_error", "context_management: compact_20260112 is not supported by this model")


def compacting(model: ScriptedModel) -> Request:
    return Request(model.client(), MODEL, options=long_runs.checked(True, True, {}))


def test_a_refused_compaction_is_told_once_and_left_out(scripted: Scripted) -> None:
    model = scripted(REFUSED, reply("Done."))
    run = here(Run("Go", model=MODEL), compacting(model))
    assert (run.status, run.text, run.turns) == ("done", "Done.", 1)
    assert [notice.kind for notice in notices(run)] == ["compaction"]
    kinds = [[edit["type"] for edit in body["context_management"]["edits"]] for body in model.requests]
    assert kinds == [["clear_tool_uses_20250919", "compact_20260112"], ["clear_tool_uses_20250919"]]
    assert "compact-2026-01-12" in model.headers[0]["anthropic-beta"]
    assert "compact-2026-01-12" not in model.headers[1]["anthropic-beta"]


def test_a_compacted_reply_is_paused_and_goes_on(scripted: Scripted) -> None:
    summary = {"type": "compaction", "content": "So far: a tree."}
    model = scripted(reply(summary, stop_reason="compaction"), reply("Done."))
    run = here(Run("Go", model=MODEL), compacting(model))
    ended_well(run)
    assert (run.status, run.text) == ("done", "Done.")
    assert model.requests[1]["messages"][-1] == {"role": "assistant", "content": [summary]}
    assert TextDelta("Done.") in run.events
