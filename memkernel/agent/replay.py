"""A recording answers in a model's place: the real client asks, the recorded replies come, the tools really run. Pure,
but for `client`.

The replies fit only the run that they were recorded in. Whatever does not fit (another prompt, a tool that is not
there, a call that fails now and worked then, the recording's end) is refused in one sentence, as the API refuses.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from memkernel.agent import conversation
from memkernel.agent.recording import Answer, Exchange, Recording
from memkernel.agent.script import RECORDING_ERROR, Body, Failure, Reply, Thinking, ToolUse
from memkernel.errors import InvalidInputError

if TYPE_CHECKING:
    from memkernel.agent.clients import Client
    from memkernel.agent.conversation import Block, Message

_CHARS_A_PIECE = 8


def client(recording: Recording, speed: float = 1.0) -> Client:
    """The SDK's client, answered by a recording.

    Args:
        recording: what answers.
        speed: 2 is twice as fast as it was recorded, `math.inf` without any pause.

    Raises:
        InvalidInputError: the speed is no number above 0.
    """
    from memkernel.agent.scripted import stand_in

    return stand_in(partial(answer, recording, _checked(speed)))


def _checked(speed: object) -> float:
    if isinstance(speed, int | float) and not isinstance(speed, bool) and speed > 0:
        return float(speed)
    raise InvalidInputError(f"speed is {speed!r:.80}, not a number above 0", hint="2 is twice as fast as recorded.")


def answer(recording: Recording, speed: float, body: Body) -> Reply | Failure:
    """The recorded reply to a request, or why there is none. Nothing is remembered between requests."""
    asked, told = _since_last_prompt(body["messages"])
    exchange = _exchange(recording, asked)
    why = _no_prompt(recording) if exchange is None else _misfit(exchange, told, body)
    if exchange is None or why:
        return Failure(400, RECORDING_ERROR, f"the recording {recording.name} {why}")
    return _paced(exchange.answers[_spoken(told)], speed)


def _since_last_prompt(messages: Iterable[Message]) -> tuple[list[str], list[Message]]:
    """All prompts so far, and what followed the last one."""
    asked: list[str] = []
    told: list[Message] = []
    for message in messages:
        texts = [block["text"] for block in conversation.blocks(message) if block["type"] == "text"]
        if message["role"] == "user" and texts:
            asked.append(texts[-1])
            told = []
        else:
            told.append(message)
    return asked, told


def _exchange(recording: Recording, asked: Sequence[str]) -> Exchange | None:
    """The one that begins with the last prompt: the second one where it is asked for the second time."""
    prompt = _plain(asked[-1]) if asked else ""
    found = [exchange for exchange in recording.exchanges if _plain(exchange.prompt) == prompt]
    before = sum(_plain(earlier) == prompt for earlier in asked[:-1])
    return found[min(before, len(found) - 1)] if found else None


def _plain(prompt: str) -> str:
    return " ".join(prompt.split())


def _no_prompt(recording: Recording) -> str:
    known = " or ".join(f"“{_plain(prompt)[:200]}”" for prompt in recording.prompts[:3])
    return f"has no answer to this prompt, only to {known}"


def _misfit(exchange: Exchange, told: Sequence[Message], body: Body) -> str:
    """Why the exchange cannot go on here; "" where it can."""
    offered = {tool.get("name") for tool in body.get("tools") or ()}
    missing = [name for answer in exchange.answers for name in answer.calls if name not in offered]
    if missing:
        return f"calls the tool {missing[0]}, which this agent does not have"
    spoken = _spoken(told)
    if spoken and (failed := _first_failed(exchange.answers[min(spoken, len(exchange.answers)) - 1], told[-1])):
        return f"does not fit: a call that worked then failed here ({failed})"
    return "ends here: there is no further reply in it" if spoken >= len(exchange.answers) else ""


def _spoken(told: Sequence[Message]) -> int:
    return sum(message["role"] == "assistant" for message in told)


def _first_failed(answer: Answer, last: Message) -> str:
    """The first line of the first result that is an error, though it was none."""
    results = [block for block in conversation.blocks(last) if block["type"] == "tool_result"]
    errors = [block for n, block in enumerate(results) if block.get("is_error") and n not in answer.failed]
    return _first_line(errors[0]) if errors else ""


def _first_line(result: Block) -> str:
    content = result.get("content") or "an error without words"
    text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    return (text.strip().splitlines() or ["no words"])[0][:200].rstrip(".")


def _paced(answer: Answer, speed: float) -> Reply:
    blocks = tuple(_said(block) for block in answer.blocks)
    pieces = sum(max(1, len(json.dumps(block)) // _CHARS_A_PIECE) for block in answer.blocks)
    return Reply(
        blocks,
        stop_reason=answer.stop_reason,
        wait_s=answer.wait_ms / 1000 / speed,
        pause_s=answer.took_ms / 1000 / speed / max(1, pieces),
        usage=answer.usage,
    )


def _said(block: Mapping[str, Any]) -> str | Thinking | ToolUse | Mapping[str, Any]:
    """A block as a script has it, to be streamed piece by piece; a call gets an id of its own."""
    match block:
        case {"type": "text", "text": text} if not block.get("citations"):
            return text
        case {"type": "thinking", "thinking": text}:
            return Thinking(text)
        case {"type": "tool_use", "name": name, "input": given}:
            return ToolUse(name, given)
        case _:
            return block
