"""An interrupt ends a run cleanly, wherever it comes: every open call is answered, and the conversation goes on."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
from anthropic import beta_tool
from anthropic.lib.tools import BetaBuiltinFunctionTool

from memkernel.agent import loop
from memkernel.agent.events import (
    Event,
    Notice,
    RunEnded,
    RunStarted,
    TextDelta,
    ToolCalled,
    ToolReturned,
    TurnEnded,
    TurnStarted,
)
from memkernel.agent.run import Run
from memkernel.agent.script import Failure, Reply, Thinking, ToolUse, reply
from memkernel.errors import DatabaseUnavailableError
from memkernel.models import Cause
from tests.fix_agent import Play, Scripted

HANGS_S = 60.0


def interrupted(cue: type | Event, interrupt: Callable[[], None]) -> Run:
    """A run that is interrupted a moment after its first event of this kind, or like this one."""
    run = Run("Go", model="claude-sonnet-5-5")
    pending = [interrupt]

    def watch(event: Event) -> None:
        if pending and (isinstance(event, cue) if isinstance(cue, type) else event == cue):
            pending.pop()()

    run.subscribe(watch)
    return run


@beta_tool
def quick() -> str:
    """Return at once."""
    return "quick result"


@beta_tool
def slow() -> str:
    """Never return."""
    time.sleep(HANGS_S)
    return "late"


def test_while_the_model_speaks_its_words_are_kept(play: Play, interrupt: Callable[[], None]) -> None:
    played = play([reply("Once upon a time", breaks="hangs")], run=interrupted(TextDelta(" time"), interrupt))
    assert played.error is None
    assert (played.run.status, played.run.text) == ("stopped", "Once upon a time")
    assert played.events(Notice) == [Notice("stopped", "Stopped by the user.")]
    assert isinstance(played.run.events[-1], RunEnded)


def test_while_the_model_speaks_a_complete_call_is_answered_and_does_not_run(
    play: Play, interrupt: Callable[[], None]
) -> None:
    call = ToolUse("quick")
    run = interrupted(TextDelta(" then"), interrupt)
    played = play([reply("I look.", call, "And then", breaks="hangs")], [quick], run=run)
    assert played.results() == [
        {
            "type": "tool_result",
            "tool_use_id": call.id,
            "content": "Stopped by the user before this ran.",
            "is_error": True,
        }
    ]
    assert played.events(ToolCalled) == []


@pytest.mark.parametrize("blocks", [(), (Thinking("hm"),)])
def test_before_the_first_word_nothing_is_kept(
    play: Play, interrupt: Callable[[], None], blocks: tuple[Any, ...]
) -> None:
    played = play([reply(*blocks, breaks="hangs")], run=interrupted(TurnStarted, interrupt))
    assert (played.run.status, played.run.text) == ("stopped", "")
    assert [message["role"] for message in played.run.messages] == ["user"]


def test_before_the_api_has_answered(scripted: Scripted, interrupt: Callable[[], None]) -> None:
    def answer(_: object) -> Reply:
        time.sleep(0.5)
        return reply("late")

    run = interrupted(RunStarted, interrupt)
    loop.play(run, loop.Request(scripted(answers=answer).client(), run.model))
    assert (run.status, run.turns) == ("stopped", 0)


def test_while_a_tool_runs_every_call_of_the_turn_is_answered(play: Play, interrupt: Callable[[], None]) -> None:
    calls = [ToolUse("quick"), ToolUse("slow"), ToolUse("quick")]
    started = time.monotonic()
    run = Run("Go", model="claude-sonnet-5-5")
    run.subscribe(lambda event: interrupt() if isinstance(event, ToolCalled) and event.name == "slow" else None)
    played = play([reply(*calls), reply("never asked for")], [quick, slow], run=run)
    assert time.monotonic() - started < HANGS_S / 2
    assert [result["content"] for result in played.results()] == [
        "quick result",
        "Stopped by the user while this ran; it is unknown whether it took effect.",
        "Stopped by the user before this ran.",
    ]
    assert [result.get("is_error", False) for result in played.results()] == [False, True, True]
    assert [result["tool_use_id"] for result in played.results()] == [call.id for call in calls]
    assert (run.status, len(played.model.requests)) == ("stopped", 1)


def test_a_call_that_was_stopped_is_reported_as_returned(play: Play, interrupt: Callable[[], None]) -> None:
    played = play([reply(ToolUse("slow"))], [slow], run=interrupted(ToolCalled, interrupt))
    (returned,) = played.events(ToolReturned)
    assert isinstance(returned, ToolReturned)
    assert returned.is_error
    assert returned.content.startswith("Stopped by the user while this ran")


class SlowMemory(BetaBuiltinFunctionTool):
    """Stands where the memory tool stands, and hangs as one does on a lock."""

    cause: Cause | None = None

    def raise_lost(self) -> None:
        pass

    def to_dict(self) -> Any:
        return {"type": "memory_20250818", "name": "memory"}

    def call(self, input: object) -> str:
        time.sleep(HANGS_S)
        return "late"


VIEW = {"command": "view", "path": "/memories"}
CREATE = {"command": "create", "path": "/memories/a.md", "file_text": "a"}


def yes(_: str) -> bool:
    return True


def no(_: str) -> bool:
    return False


def lost(_: str) -> bool:
    raise DatabaseUnavailableError


@pytest.mark.parametrize(
    ("given", "saved", "told"),
    [
        (VIEW, no, "Stopped by the user while this ran; nothing was changed."),
        (CREATE, yes, "Stopped by the user while this ran; the change was saved."),
        (CREATE, no, "Stopped by the user while this ran; nothing was changed."),
        (CREATE, lost, "Stopped by the user while this ran; it is unknown whether it took effect."),
    ],
)
def test_while_the_memory_tool_runs_the_model_is_told_what_is_known(
    play: Play, interrupt: Callable[[], None], given: dict[str, Any], saved: Callable[[str], bool], told: str
) -> None:
    tool = SlowMemory()
    played = play([reply(ToolUse("memory", given))], [tool], run=interrupted(ToolCalled, interrupt), saved=saved)
    assert [result["content"] for result in played.results()] == [told]
    assert tool.cause is None


def test_in_a_subscriber_it_is_an_interrupt_like_any_other(play: Play) -> None:
    def stop(event: Event) -> None:
        if isinstance(event, TurnEnded):
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run = Run("Go", model="claude-sonnet-5-5")
        run.subscribe(stop)
        played = play([reply(ToolUse("quick")), reply("never asked for")], [quick], run=run)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (run.status, len(played.model.requests)) == ("stopped", 1)
    assert [result["content"] for result in played.results()] == ["quick result"]  # kept once, not twice


def test_while_it_waits_to_try_again(play: Play, interrupt: Callable[[], None]) -> None:
    busy = Failure(529, "overloaded_error", headers={"retry-after": "60"})
    played = play([busy, reply("never asked for")], run=interrupted(Notice, interrupt))
    assert (played.run.status, len(played.model.requests)) == ("stopped", 1)


def test_the_conversation_goes_on_after_an_interrupt(play: Play, interrupt: Callable[[], None]) -> None:
    stopped = play([reply("I look.", ToolUse("slow"))], [slow], run=interrupted(ToolCalled, interrupt)).run
    again = Run("Never mind", model="claude-sonnet-5-5", messages=stopped.messages)
    played = play([reply("As you wish.")], run=again)
    assert played.run.text == "As you wish."
    joined = played.model.requests[0]["messages"][-1]
    assert [block["type"] for block in joined["content"]] == ["tool_result", "text"]


def test_an_exit_inside_a_tool_passes_and_leaves_a_valid_conversation(play: Play) -> None:
    @beta_tool
    def leave() -> str:
        """Leave."""
        raise SystemExit(3)

    run = Run("Go", model="claude-sonnet-5-5")
    with pytest.raises(SystemExit):
        play([reply(ToolUse("leave"))], [leave], run=run)
    assert run.status == "error"
    assert run.messages[-1]["content"][0]["content"] == "Not run: the run failed before this."


class LosingMemory(SlowMemory):
    """Loses its database, and then is interrupted."""

    lost: Exception | None = None

    def call(self, input: object) -> str:
        self.lost = DatabaseUnavailableError()
        return super().call(input)

    def raise_lost(self) -> None:
        error, self.lost = self.lost, None
        if error is not None:
            raise error


def test_what_a_tool_lost_in_a_run_that_was_stopped_does_not_fail_the_next_one(
    play: Play, interrupt: Callable[[], None]
) -> None:
    tool = LosingMemory()
    stopped = play([reply(ToolUse("memory", CREATE))], [tool], run=interrupted(ToolCalled, interrupt)).run
    assert (stopped.status, tool.lost is None) == ("stopped", False)
    again = Run("And now?", model="claude-sonnet-5-5", messages=stopped.messages)
    played = play([reply("Fine.")], [tool], run=again)
    assert (again.status, played.error) == ("done", None)
