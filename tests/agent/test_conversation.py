"""Conversations that the API takes: pure functions, tried on whatever a run may leave behind."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel.agent import conversation
from memkernel.agent.conversation import Block, Message

TEXT: Block = {"type": "text", "text": "So."}
BLANK: Block = {"type": "text", "text": " \n"}
CALL: Block = {"type": "tool_use", "id": "toolu_1", "name": "memory", "input": {}}
THOUGHT: Block = {"type": "thinking", "thinking": "hm", "signature": "s"}
SERVER: Block = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
MCP: Block = {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "find", "server_name": "library", "input": {}}


def user(*blocks: Block) -> Message:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Block) -> Message:
    return {"role": "assistant", "content": list(blocks)}


def result(tool_use_id: str) -> Block:
    return {"type": "tool_result", "tool_use_id": tool_use_id, "content": "ok"}


def test_a_prompt_begins_a_conversation() -> None:
    assert conversation.asked([], "Hi") == [user({"type": "text", "text": "Hi"})]


def test_a_prompt_follows_an_answer() -> None:
    before = [user(TEXT), assistant(TEXT)]
    assert conversation.asked(before, "Hi") == [*before, user({"type": "text", "text": "Hi"})]


def test_a_prompt_joins_results_that_nobody_has_read() -> None:
    before = [user(TEXT), assistant(CALL), user(result("toolu_1"))]
    assert conversation.asked(before, "Hi")[-1] == user(result("toolu_1"), {"type": "text", "text": "Hi"})


def test_a_prompt_joins_a_plain_text() -> None:
    (joined,) = conversation.asked([{"role": "user", "content": "One"}], "Two")
    assert [block["text"] for block in joined["content"]] == ["One", "Two"]


def test_a_conversation_that_was_left_open_is_closed() -> None:
    closed = conversation.asked([user(TEXT), assistant(TEXT, CALL)], "Hi")
    assert closed[-1]["content"][0] == {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": "Not run: the run ended before it.",
        "is_error": True,
    }
    assert conversation.complaint(closed) is None


def test_the_conversation_given_is_not_changed() -> None:
    before = [user(TEXT)]
    conversation.asked(before, "Hi")
    assert before == [user(TEXT)]


@pytest.mark.parametrize(
    ("content", "paused", "kept"),
    [
        ([TEXT, CALL], False, [TEXT, CALL]),
        ([BLANK, CALL], False, [CALL]),
        ([BLANK], False, None),
        ([], False, None),
        ([TEXT, THOUGHT], False, [TEXT]),
        ([THOUGHT], False, None),
        ([THOUGHT, TEXT], False, [THOUGHT, TEXT]),
        ([TEXT, SERVER], False, [TEXT]),
        ([TEXT, MCP], False, [TEXT]),
        ([TEXT, SERVER], True, [TEXT, SERVER]),
        ([BLANK], True, None),
    ],
)
def test_what_stays_of_a_reply(content: list[Block], paused: bool, kept: list[Block] | None) -> None:
    assert conversation.reply(content, paused=paused) == (None if kept is None else assistant(*kept))


@pytest.mark.parametrize(
    ("content", "completed", "kept"),
    [
        ([TEXT, CALL], 2, [TEXT, CALL]),
        ([TEXT, CALL], 1, [TEXT]),
        ([CALL, TEXT], 1, [CALL, TEXT]),
        ([THOUGHT], 0, []),
        ([TEXT], 0, [TEXT]),
        ([], 0, []),
    ],
)
def test_what_stays_of_a_reply_that_was_cut(content: list[Block], completed: int, kept: list[Block]) -> None:
    assert conversation.cut(content, completed) == kept


def test_answers_come_in_the_order_of_the_calls() -> None:
    calls = [CALL | {"id": name} for name in ("a", "b", "c")]
    answered = conversation.answers(calls, {"b": result("b")}, lambda call: f"not {call['id']}")
    assert answered is not None
    assert [block["content"] for block in answered["content"]] == ["not a", "ok", "not c"]
    assert conversation.answers([], {}, str) is None


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ([], "at least one message"),
        ([assistant(TEXT)], "first message"),
        ([user()], "must not be empty"),
        ([user(BLANK)], "non-whitespace"),
        ([user(TEXT), assistant()], "must not be empty"),
        ([user(TEXT), assistant(CALL)], "without `tool_result`"),
        ([user(TEXT), assistant(CALL), user(TEXT)], "do not match"),
        ([user(result("toolu_1"))], "do not match"),
        ([user(TEXT), assistant(CALL), user(TEXT, result("toolu_1"))], "must come first"),
        ([user(TEXT), assistant(CALL), user(result("toolu_1"), result("toolu_1"))], "do not match"),
    ],
)
def test_what_the_api_refuses_is_found(messages: list[Message], found: str) -> None:
    assert found in (conversation.complaint(messages) or "")


ids = st.integers(0, 3).map(lambda number: f"toolu_{number}")
any_block: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([TEXT, BLANK, THOUGHT, SERVER]), ids.map(lambda name: CALL | {"id": name})
)


def _unique_calls(content: list[Block]) -> list[Block]:
    names = [block.get("id") for block in content]
    return [block for at, block in enumerate(content) if block["type"] != "tool_use" or block["id"] not in names[:at]]


@given(st.lists(any_block, max_size=6).map(_unique_calls), st.integers(0, 6), st.booleans(), st.lists(ids))
def test_whatever_a_turn_leaves_the_next_prompt_can_follow(
    content: list[Block], completed: int, complete: bool, answered: list[str]
) -> None:
    left = content if complete else conversation.cut(content, completed)
    spoken = conversation.reply(left)
    results = {name: result(name) for name in answered}
    answer = conversation.answers(conversation.tool_uses(spoken), results, lambda _: "stopped")
    messages = [user(TEXT), *(message for message in (spoken, answer) if message)]
    assert conversation.complaint(conversation.asked(messages, "Go on")) is None


@given(st.lists(any_block, max_size=6).map(_unique_calls))
def test_whatever_is_left_open_the_next_prompt_can_follow(content: list[Block]) -> None:
    messages = [user(TEXT), assistant(*content)] if content else [user(TEXT)]
    assert conversation.complaint(conversation.asked(messages, "Go on")) is None
