"""The loop on the SDK's own tool runner, against a scripted model: what is published, run, kept and raised."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from typing import Any

import pytest
from anthropic import beta_tool
from anthropic.lib.tools import BetaBuiltinFunctionTool, ToolError

from memkernel.agent.events import (
    Event,
    Notice,
    Replied,
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
from memkernel.agent.limits import RunLimits
from memkernel.agent.run import Run
from memkernel.agent.script import Thinking, ToolUse, reply
from memkernel.errors import DatabaseUnavailableError, ModelRequestError
from memkernel.models import Cause
from tests.fix_agent import Play


class Recorder:
    """A tool that remembers its calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def tool(self) -> Any:
        """The tool `note`, which echoes."""

        @beta_tool
        def note(text: str) -> str:
            """Note a text.

            Args:
                text: what to note
            """
            self.calls.append(text)
            return f"noted {text} as {len(self.calls)}"

        return note


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


# -- what is published -----------------------------------------------------------------------------


def test_events_come_in_the_order_in_which_things_happen(play: Play, recorder: Recorder) -> None:
    call = ToolUse("note", {"text": "SI"})
    played = play(
        [reply(Thinking("units matter"), "I note it.", call), reply("Done.")], [recorder.tool()], prompt="Note SI"
    )
    kinds = [type(event) for event in played.run.events]
    assert kinds == [
        RunStarted,
        *[TurnStarted, ThinkingDelta, TextDelta, Replied, ToolCalled, ToolReturned, TurnEnded],
        *[TurnStarted, TextDelta, Replied, TurnEnded],
        RunEnded,
    ]
    assert played.run.events[0] == RunStarted(played.run.id, "Note SI", "claude-sonnet-5-5", "live")
    assert played.events(ToolCalled) == [ToolCalled(call.id, "note", {"text": "SI"})]
    (returned,) = played.events(ToolReturned)
    assert isinstance(returned, ToolReturned)
    assert (returned.tool_use_id, returned.content, returned.is_error) == (call.id, "noted SI as 1", False)
    assert [returned.result] == played.results()
    spoken = [message["content"] for message in played.run.messages if message["role"] == "assistant"]
    assert [event.content for event in played.run.events if isinstance(event, Replied)] == spoken
    assert returned.duration_s >= 0


def test_text_arrives_while_the_model_still_speaks(play: Play) -> None:
    run = Run("Go", model="claude-sonnet-5-5")
    words: list[str] = []
    run.subscribe(lambda event: words.append(event.text) if isinstance(event, TextDelta) else None)
    play([reply("one two three")], run=run)
    assert words == ["one", " two", " three"]
    assert [event for event in run.events if isinstance(event, TextDelta)] == [TextDelta("one two three")]


def test_a_tool_is_announced_before_it_runs_and_reported_before_the_next_request(play: Play) -> None:
    seen: list[str] = []

    @beta_tool
    def look() -> str:
        """Look."""
        seen.append("runs")
        return "it"

    run = Run("Go", model="claude-sonnet-5-5")
    run.subscribe(lambda event: seen.append(type(event).__name__))
    play([reply(ToolUse("look")), reply("Done.")], [look], run=run)
    assert seen[2:8] == ["Replied", "ToolCalled", "runs", "ToolReturned", "TurnEnded", "TurnStarted"]


def test_usage_and_stop_reason_are_there_at_the_end(play: Play, recorder: Recorder) -> None:
    played = play([reply(ToolUse("note", {"text": "a"})), reply("Done.")], [recorder.tool()])
    turns = [event for event in played.run.events if isinstance(event, TurnEnded)]
    assert [turn.stop_reason for turn in turns] == ["tool_use", "end_turn"]
    assert played.run.usage == turns[0].usage + turns[1].usage
    assert played.run.usage.input_tokens > 0 < played.run.usage.output_tokens
    assert played.run.stop_reason == "end_turn"
    assert played.run.events[-1] == RunEnded(played.run.id, "done", 2, played.run.usage)
    assert (played.run.status, played.run.text, played.run.turns) == ("done", "Done.", 2)


def test_usage_adds_up_and_reads_well() -> None:
    total = Usage(1000, 20, 3, 4) + Usage(1, 1, 1, 1)
    assert total == Usage(1001, 21, 4, 5)
    assert str(total) == "1,001 tokens in, 21 out, 9 through the cache"
    assert str(Usage(5, 1)) == "5 tokens in, 1 out"


def test_a_subscriber_that_raises_never_breaks_the_run(play: Play, caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: Event) -> None:
        calls.append(event)
        raise RuntimeError("no front end")

    calls: list[Event] = []
    others: list[Event] = []
    run = Run("Go", model="claude-sonnet-5-5")
    run.subscribe(broken)
    run.subscribe(others.append)
    assert play([reply("Fine.")], run=run).run.status == "done"
    assert len(calls) == 1  # it gets no more
    assert isinstance(others[-1], RunEnded)
    assert "a subscriber" in caplog.text


# -- tools -----------------------------------------------------------------------------------------


def test_f8_calls_of_one_turn_run_in_order_and_each_sees_what_the_one_before_did(
    play: Play, recorder: Recorder
) -> None:
    calls = [ToolUse("note", {"text": word}) for word in ("a", "b", "c")]
    played = play([reply(*calls), reply("Done.")], [recorder.tool()])
    assert recorder.calls == ["a", "b", "c"]
    assert [result["content"] for result in played.results()] == ["noted a as 1", "noted b as 2", "noted c as 3"]
    assert [result["tool_use_id"] for result in played.results()] == [call.id for call in calls]


def test_two_equal_calls_in_one_turn_are_told_apart(play: Play, recorder: Recorder) -> None:
    calls = [ToolUse("note", {"text": "same"}), ToolUse("note", {"text": "same"})]
    played = play([reply(*calls), reply("Done.")], [recorder.tool()])
    assert [event.tool_use_id for event in played.events(ToolCalled) if isinstance(event, ToolCalled)] == [
        call.id for call in calls
    ]
    assert [result["content"] for result in played.results()] == ["noted same as 1", "noted same as 2"]


def test_the_result_goes_back_to_the_model_with_the_whole_conversation(play: Play, recorder: Recorder) -> None:
    played = play([reply("So.", ToolUse("note", {"text": "a"})), reply("Done.")], [recorder.tool()])
    first, second = played.model.requests
    assert first["messages"] == second["messages"][:1]
    assert second["messages"] == played.run.messages[:3]
    assert first["stream"] is True
    assert "thread" not in first  # the server holds nothing of the conversation


def test_what_a_tool_error_says_reaches_the_model_verbatim(play: Play) -> None:
    @beta_tool
    def fail() -> str:
        """Fail."""
        raise ToolError("Path must start with /memories, got: /etc")

    played = play([reply(ToolUse("fail")), reply("I see.")], [fail])
    (result,) = played.results()
    assert (result["content"], result["is_error"]) == ("Path must start with /memories, got: /etc", True)
    (returned,) = played.events(ToolReturned)
    assert isinstance(returned, ToolReturned)
    assert (returned.content, returned.is_error) == (result["content"], True)
    assert played.run.status == "done"


def test_a_tool_that_fails_otherwise_does_not_end_the_run(play: Play, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "memkernel")

    @beta_tool
    def fail() -> str:
        """Fail."""
        raise ZeroDivisionError("by zero")

    played = play([reply(ToolUse("fail")), reply("I see.")], [fail])
    assert played.results()[0]["content"] == "ZeroDivisionError('by zero')"
    assert played.results()[0]["is_error"]
    assert played.run.status == "done"
    assert "the tool fail failed" in caplog.text  # where a developer looks
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []  # nothing else is printed


def test_arguments_of_the_wrong_type_are_an_error_result(play: Play, recorder: Recorder) -> None:
    """fault 8"""
    inputs: list[dict[str, Any]] = [{}, {"text": ["x"]}, {"txt": "x"}]
    played = play([reply(*(ToolUse("note", given) for given in inputs)), reply("I see.")], [recorder.tool()])
    assert recorder.calls == []
    assert all(result["is_error"] for result in played.results())
    assert len(played.results()) == 3


@pytest.mark.parametrize("number", [1e999, -1e999, float("nan")])
def test_a_number_that_no_request_can_hold_does_not_end_the_conversation(play: Play, number: float) -> None:
    played = play([reply(ToolUse("gone", {"how": {"many": [number, 2]}})), reply("I see.")])
    assert played.run.status == "done"
    sent = played.model.requests[1]["messages"][1]["content"]
    assert [block["input"] for block in sent] == [{"how": {"many": [None, 2]}}]
    assert played.run.messages[1]["content"] == sent


def test_an_unknown_tool_is_told_to_the_model_and_shown(play: Play) -> None:
    call = ToolUse("rm", {"path": "/"})
    played = play([reply(call), reply("I see.")])
    assert played.results() == [
        {"type": "tool_result", "tool_use_id": call.id, "content": "Error: Tool 'rm' not found", "is_error": True}
    ]
    assert played.events(ToolCalled) == [ToolCalled(call.id, "rm", {"path": "/"})]
    assert played.run.status == "done"


def test_blocks_from_a_generator_reach_both_the_model_and_the_person(play: Play) -> None:
    @beta_tool
    def blocks() -> Any:
        """Give blocks."""
        return (block for block in [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}])

    played = play([reply(ToolUse("blocks")), reply("I see.")], [blocks])
    assert [block["text"] for block in played.results()[0]["content"]] == ["one", "two"]
    (returned,) = played.events(ToolReturned)
    assert isinstance(returned, ToolReturned)
    assert returned.content == "one\ntwo"


def test_declarations_of_server_tools_pass_through(play: Play) -> None:
    search: Any = {"type": "web_search_20250305", "name": "web_search"}
    played = play([reply("Hello.")], [search])
    assert played.model.requests[0]["tools"] == [search]


class MemoryStandIn(BetaBuiltinFunctionTool):
    """Stands where the memory tool stands, without a database."""

    def __init__(self, error: Exception | None = None) -> None:
        self.cause: Cause | None = None
        self.lost: Exception | None = None
        self.causes: list[Cause | None] = []
        self._error = error

    def to_dict(self) -> Any:
        return {"type": "memory_20250818", "name": "memory"}

    def raise_lost(self) -> None:
        lost, self.lost = self.lost, None
        if lost is not None:
            raise lost

    def call(self, input: object) -> str:
        self.causes.append(self.cause)
        if self._error is not None:
            self.lost = self._error
            raise ToolError("Memory is unavailable right now; nothing was changed.")
        return "File created successfully at: /memories/a.md"


CREATE = {"command": "create", "path": "/memories/a.md", "file_text": "a"}


def test_each_call_of_a_memory_tool_carries_its_cause(play: Play) -> None:
    tool = MemoryStandIn()
    calls = [ToolUse("memory", CREATE), ToolUse("memory", CREATE)]
    played = play([reply(*calls), reply("Done.")], [tool])
    assert tool.causes == [Cause(played.run.id, call.id) for call in calls]
    assert tool.cause is None


def test_a_lost_database_is_raised_to_the_person_before_the_next_request(play: Play) -> None:
    """CONTRACT 0.3 row 24"""
    lost = DatabaseUnavailableError(saved=False)
    tool = MemoryStandIn(lost)
    played = play([reply(ToolUse("memory", CREATE)), reply("never asked for")], [tool])
    assert played.error is lost
    assert tool.lost is None  # told once
    assert len(played.model.requests) == 1
    assert played.results()[0]["content"] == "Memory is unavailable right now; nothing was changed."
    assert (played.run.status, played.run.events[-1]) == (
        "error",
        RunEnded(played.run.id, "error", 1, played.run.usage),
    )
    assert played.events(Notice) == [Notice("error", str(lost))]


def test_after_a_lost_database_the_conversation_goes_on(play: Play) -> None:
    broken = play([reply(ToolUse("memory", CREATE))], [MemoryStandIn(DatabaseUnavailableError())])
    again = Run("Try again", model="claude-sonnet-5-5", messages=broken.run.messages)
    played = play([reply(ToolUse("memory", CREATE)), reply("Done.")], [MemoryStandIn()], run=again)
    assert (played.run.status, played.error) == ("done", None)


# -- how turns end ---------------------------------------------------------------------------------


def test_fault_51_pause_turn_goes_on_with_the_assistants_message_sent_back(play: Play, recorder: Recorder) -> None:
    """fault 51"""
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "SI"}}
    played = play(
        [
            reply("Searching.", search, stop_reason="pause_turn"),
            reply(ToolUse("note", {"text": "SI"})),
            reply("Done."),
        ],
        [recorder.tool()],
    )
    assert (played.run.status, played.run.turns) == ("done", 3)
    resumed = played.model.requests[1]["messages"]
    assert [block["type"] for block in resumed[-1]["content"]] == ["text", "server_tool_use"]
    assert resumed[-1]["role"] == "assistant"
    assert recorder.calls == ["SI"]


def test_paused_turns_count_against_max_turns(play: Play) -> None:
    """fault 51"""
    played = play([reply("Still at it.", stop_reason="pause_turn")] * 5, limits=RunLimits(max_turns=3))
    assert (played.run.status, len(played.model.requests)) == ("max_turns", 3)


def test_a_paused_server_call_that_was_never_resumed_is_left_out_of_the_next_prompt(play: Play) -> None:
    search: dict[str, Any] = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    played = play([reply("Searching.", search, stop_reason="pause_turn")], limits=RunLimits(max_turns=1))
    assert [notice.text[:32] for notice in played.events(Notice) if isinstance(notice, Notice)] == [
        "Stopped after 1 turn (max_turns)"
    ]
    again = Run("And?", model="claude-sonnet-5-5", messages=played.run.messages)
    assert again.messages[-2]["content"] == [{"type": "text", "text": "Searching."}]


def test_fault_52_a_refusal_is_one_notice_no_retry_and_no_empty_message(play: Play) -> None:
    """fault 52"""
    details = {"type": "refusal", "category": "cyber", "explanation": None}
    played = play([reply(stop_reason="refusal", stop_details=details), reply("never asked for")])
    assert played.events(Notice) == [Notice("refusal", "The model refused to answer (cyber).")]
    assert (played.run.status, len(played.model.requests)) == ("refused", 1)
    assert [message["role"] for message in played.run.messages] == ["user"]


def test_a_refusal_in_mid_sentence_is_shown_and_not_kept(play: Play) -> None:
    """fault 52"""
    played = play([reply("First you", stop_reason="refusal")])
    assert played.events(TextDelta) == [TextDelta("First you")]
    assert played.events(Notice) == [Notice("refusal", "The model refused to answer.")]
    assert [message["role"] for message in played.run.messages] == ["user"]


@pytest.mark.parametrize("given", [{"text": "half a sen"}, '{"text": "half a sen'])
def test_a_call_that_max_tokens_cut_never_runs(play: Play, recorder: Recorder, given: Any) -> None:
    """fault 8"""
    played = play([reply("So.", ToolUse("note", given), stop_reason="max_tokens")], [recorder.tool()], max_tokens=20)
    assert recorder.calls == []
    assert played.events(ToolCalled) == []
    assert played.run.status == "max_tokens"
    assert played.events(Notice) == [
        Notice("max_tokens", "The reply was cut off at max_tokens. Its calls did not run.")
    ]
    (result,) = played.results()
    assert (result["content"], result["is_error"]) == (
        "Not run: the reply was cut off before the call was complete.",
        True,
    )


def test_a_text_that_max_tokens_cut_is_kept(play: Play) -> None:
    played = play([reply("Once upon a", stop_reason="max_tokens")])
    assert (played.run.status, played.run.text) == ("max_tokens", "Once upon a")
    assert played.events(Notice) == [Notice("max_tokens", "The reply was cut off at max_tokens.")]


def test_a_full_context_window_is_told(play: Play) -> None:
    played = play([reply("Once upon a", stop_reason="model_context_window_exceeded")])
    assert played.run.status == "max_tokens"
    assert played.events(Notice) == [Notice("max_tokens", "The reply was cut off at the model's context window.")]


def test_max_turns_ends_the_run_after_the_tools_of_its_last_turn(play: Play, recorder: Recorder) -> None:
    played = play([reply(ToolUse("note", {"text": "a"}))] * 5, [recorder.tool()], limits=RunLimits(max_turns=2))
    assert (played.run.status, played.run.turns, len(played.model.requests)) == ("max_turns", 2, 2)
    assert recorder.calls == ["a", "a"]
    (notice,) = played.events(Notice)
    assert isinstance(notice, Notice)
    assert notice.text.startswith("Stopped after 2 turns (max_turns)")


@pytest.mark.parametrize("blocks", [(), ("",), ("  \n",)])
def test_an_empty_answer_leaves_no_empty_message(play: Play, recorder: Recorder, blocks: tuple[str, ...]) -> None:
    played = play([reply(ToolUse("note", {"text": "a"})), reply(*blocks)], [recorder.tool()])
    assert (played.run.status, played.run.text) == ("done", "")
    assert [message["role"] for message in played.run.messages] == ["user", "assistant", "user"]


def test_a_blank_text_before_a_call_is_not_sent_back(play: Play, recorder: Recorder) -> None:
    played = play([reply("", ToolUse("note", {"text": "a"})), reply("Done.")], [recorder.tool()])
    assert (played.run.status, recorder.calls) == ("done", ["a"])
    assert [block["type"] for block in played.model.requests[1]["messages"][1]["content"]] == ["tool_use"]


def test_an_unknown_stop_reason_ends_the_run(play: Play) -> None:
    assert play([reply("Hm.", stop_reason="moon_phase")]).run.status == "done"


def test_stop_reason_tool_use_without_a_call_ends_the_run(play: Play) -> None:
    assert play([reply("Hm.", stop_reason="tool_use")]).run.status == "done"


# -- the request -----------------------------------------------------------------------------------


def test_a_request_holds_what_was_asked_for_and_no_more(play: Play) -> None:
    played = play(
        [reply("Hello.")], prompt="Hi", system="Be brief.", max_tokens=99, options={"stop_sequences": ["END"]}
    )
    (request,) = played.model.requests
    assert request == {
        "model": "claude-sonnet-5-5",
        "max_tokens": 99,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
        "system": "Be brief.",
        "stop_sequences": ["END"],
        "tools": [],
        "stream": True,
    }


def test_fault_54_context_clearing_is_off_and_can_leave_the_memory_alone(play: Play) -> None:
    """fault 54"""
    plain = play([reply("Hello.")], [MemoryStandIn()])
    assert "context_management" not in plain.model.requests[0]
    assert "anthropic-beta" not in plain.model.headers[0]
    clearing = {"edits": [{"type": "clear_tool_uses_20250919", "exclude_tools": ["memory"]}]}
    options = {"betas": ["context-management-2025-06-27"], "context_management": clearing}
    cleared = play([reply("Hello.")], [MemoryStandIn()], options=options)
    assert cleared.model.requests[0]["context_management"] == clearing
    assert cleared.model.headers[0]["anthropic-beta"] == "context-management-2025-06-27"


def test_without_a_system_prompt_none_is_sent(play: Play) -> None:
    assert "system" not in play([reply("Hello.")]).model.requests[0]


def test_a_run_continues_a_conversation(play: Play, recorder: Recorder) -> None:
    first = play([reply(ToolUse("note", {"text": "a"})), reply("Done.")], [recorder.tool()])
    again = Run("What did I say?", model="claude-sonnet-5-5", messages=first.run.messages)
    second = play([reply("You said a.")], run=again)
    assert second.model.requests[0]["messages"] == second.run.messages[:-1]
    assert [message["role"] for message in second.run.messages] == ["user", "assistant"] * 3
    assert (second.run.text, first.run.text) == ("You said a.", "Done.")


def test_the_text_of_a_run_is_not_that_of_an_earlier_one(play: Play) -> None:
    first = play([reply("Old answer.")])
    again = Run("Go on", model="claude-sonnet-5-5", messages=first.run.messages)
    assert play([reply()], run=again).run.text == ""


def test_fault_23_the_loop_runs_under_a_live_event_loop(play: Play, recorder: Recorder) -> None:
    """fault 23"""

    async def notebook() -> str:
        return play([reply(ToolUse("note", {"text": "a"})), reply("Done.")], [recorder.tool()]).run.text

    assert asyncio.run(notebook()) == "Done."


def test_the_conversation_is_plain_json(play: Play, recorder: Recorder) -> None:
    played = play([reply(Thinking("hm"), ToolUse("note", {"text": "ü"})), reply("Done.")], [recorder.tool()])
    assert json.loads(json.dumps(played.run.messages)) == played.run.messages


def test_a_run_has_an_id_and_says_how_it_went(play: Play) -> None:
    run = play([reply("Fine.")]).run
    assert re.fullmatch(r"run_[0-9a-z]{26}", run.id)
    assert re.fullmatch(r"<Run run_\w+ done, 1 turn, \d+ tokens in, \d+ out>", repr(run))


def test_an_error_of_the_api_is_raised_with_what_it_said(play: Play) -> None:
    played = play([], prompt="Hi")  # the script has no reply: 400
    assert isinstance(played.error, ModelRequestError)
    assert played.error.status_code == 400
    assert str(played.error) == "the API answered 400 (invalid_request_error): the script has no further reply"
    assert re.fullmatch(r"req_\w+", played.error.request_id or "")
    assert (played.run.status, len(played.model.requests)) == ("error", 1)
