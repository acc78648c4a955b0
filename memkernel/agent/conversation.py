"""What a conversation may look like, as pure functions: the API refuses one in which a tool_use has no answer, a
message is empty, or a text is blank. Messages and blocks are the API's JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from memkernel.agent import unanswered
from memkernel.agent.events import Event, Replied, RunEnded, ToolReturned, TurnEnded
from memkernel.models import RunStatus

Block: TypeAlias = dict[str, Any]
Message: TypeAlias = dict[str, Any]

_OPEN_ENDS = ("thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use")

PAUSED = ("pause_turn", "compaction")
"""Stop reasons after which the API is asked to go on with the same turn."""


def asked(messages: Sequence[Message], prompt: str) -> list[Message]:
    """The conversation with the prompt at its end.

    What a run left open is closed first; a prompt that follows a user's message (results of tools, after a stop)
    joins it, since the API takes results only where they directly follow their calls.
    """
    before = _closed(messages)
    said: Block = {"type": "text", "text": prompt}
    if before and before[-1]["role"] == "user":
        return [*before[:-1], {"role": "user", "content": [*blocks(before[-1]), said]}]
    return [*before, {"role": "user", "content": [said]}]


def _closed(messages: Sequence[Message]) -> list[Message]:
    if not messages or messages[-1]["role"] != "assistant":
        return list(messages)
    spoken = reply(blocks(messages[-1]))
    answer = answers(tool_uses(spoken), {}, lambda _: unanswered.NOT_REACHED)
    return [*messages[:-1], *(message for message in (spoken, answer) if message)]


def blocks(message: Message) -> list[Block]:
    """The blocks of a message; a plain text is one."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def tool_uses(message: Message | None) -> list[Block]:
    """The calls in a message that the client has to answer, in order."""
    return [block for block in blocks(message) if block["type"] == "tool_use"] if message else []


def text_of(message: Message) -> str:
    """The texts of a message."""
    return "".join(block["text"] for block in blocks(message) if block["type"] == "text")


def reply(content: Iterable[Block], *, paused: bool = False) -> Message | None:
    """The assistant's message of a turn, or None where nothing of it can stay.

    Blank texts go, since the API refuses to take them back. A thought that led to nothing, and a server tool's call
    without its result, cannot end a message, unless the turn is only paused.
    """
    kept = [block for block in content if block["type"] != "text" or block["text"].strip()]
    while kept and not paused and kept[-1]["type"] in _OPEN_ENDS:
        kept.pop()
    return {"role": "assistant", "content": kept} if kept else None


def cut(content: Sequence[Block], completed: int) -> list[Block]:
    """What can stay of a reply that stopped while it streamed: its completed blocks, and the words of an unfinished
    text. An unfinished tool_use has half an input, an unfinished thought no signature."""
    return [*content[:completed], *(block for block in content[completed : completed + 1] if block["type"] == "text")]


def answers(calls: Sequence[Block], results: Mapping[str, Block], why: Callable[[Block], str]) -> Message | None:
    """The user's message that answers every call: with its result, or with an error that says why there is none."""
    if not calls:
        return None
    return {"role": "user", "content": [results.get(call["id"]) or _not_run(call, why(call)) for call in calls]}


def _not_run(call: Block, why: str) -> Block:
    return {"type": "tool_result", "tool_use_id": call["id"], "content": why, "is_error": True}


def rebuilt(
    start: Sequence[Message], events: Iterable[Event], why: Callable[[Block], str] = lambda _: unanswered.NOT_REACHED
) -> list[Message]:
    """The conversation that a run's events make of what it started with.

    Args:
        start: the conversation with the prompt at its end.
        events: all of them so far, in order.
        why: what a call without a result is told where the events break off before the run's end.
    """
    messages, content, results = list(start), list[Block](), dict[str, Block]()
    for event in events:
        match event:
            case Replied():
                content, results = [dict(block) for block in event.content], {}
            case ToolReturned(result=result) if result is not None:
                results[event.tool_use_id] = dict(result)
            case TurnEnded():
                paused = event.stop_reason in PAUSED
                messages += _exchange(content, results, lambda _: unanswered.CUT_OFF, paused=paused)
                content = []
            case RunEnded(status=status):
                why = _ended(status)
            case _:
                pass
    return messages + _exchange(content, results, why)


def begun(before: Sequence[Message], prompt: str) -> list[Message]:
    """What a run starts with; without a prompt the model is asked to go on with what is there."""
    return asked(before, prompt) if prompt else list(before)


def to_go_on(
    before: list[Message], start: Sequence[Message], messages: list[Message], status: RunStatus
) -> list[Message]:
    """What a next prompt should follow: the run's messages, or what was before where the model refused or said nothing.

    To send a refused prompt again, joined to the next one, would have that refused as well.

    Args:
        before: the conversation before the run's prompt.
        start: the same with the prompt.
        messages: the conversation after the run.
        status: how it ended.
    """
    has_spoken = any(message["role"] == "assistant" for message in messages[len(start) :])
    return messages if has_spoken and status != "refused" else before


def is_due(messages: Sequence[Message], events: Iterable[Event]) -> bool:
    """Whether it is the model's turn after a run: to answer, or to go on with a turn that it paused."""
    reasons = [event.stop_reason for event in events if isinstance(event, TurnEnded)]
    is_paused = bool(reasons) and reasons[-1] in PAUSED
    return bool(messages) and (messages[-1]["role"] == "user" or is_paused)


def _ended(status: RunStatus) -> Callable[[Block], str]:
    return lambda _: unanswered.not_run(status)


def _exchange(
    content: Sequence[Block], results: Mapping[str, Block], why: Callable[[Block], str], *, paused: bool = False
) -> list[Message]:
    """The reply of a turn, and the answers to its calls."""
    spoken = reply(content, paused=paused)
    answer = answers(tool_uses(spoken), results, why)
    return [message for message in (spoken, answer) if message]


def complaint(messages: Sequence[Message]) -> str | None:
    """Why the API would refuse the conversation, or None where it would take it."""
    if not messages:
        return "messages: at least one message is required"
    if messages[0]["role"] != "user":
        return "messages: first message must use the user role"
    return next((found for at in range(len(messages)) if (found := _complaint_at(messages, at))), None)


def _complaint_at(messages: Sequence[Message], at: int) -> str | None:
    message = messages[at]
    content = blocks(message)
    if not content:
        return f"messages.{at}: content must not be empty"
    if any(block["type"] == "text" and not block["text"].strip() for block in content):
        return f"messages.{at}: text content blocks must contain non-whitespace text"
    calls = [block["id"] for block in tool_uses(messages[at - 1])] if at else []
    results = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
    if message["role"] == "user" and results != [block.get("tool_use_id") for block in content[: len(results)]]:
        return f"messages.{at}: tool_result blocks must come first"
    if sorted(results) != sorted(calls):
        return f"messages.{at}: `tool_use` ids {calls} and `tool_result` ids {results} do not match"
    if at == len(messages) - 1 and tool_uses(message):
        return f"messages.{at}: `tool_use` without `tool_result` blocks immediately after"
    return None
