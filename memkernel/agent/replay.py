"""A recording answers in a model's place: the real client asks, the recorded replies come, the tools really run. Pure,
but for `client`.

The replies fit only the run that they were recorded in. Whatever does not fit (another prompt, a tool that is not
there, a call that fails now and worked then, the recording's end) is refused in one sentence, as the API refuses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from memkernel.agent import asked
from memkernel.agent.asked import Asked
from memkernel.agent.recording import Answer, Exchange, Recording
from memkernel.agent.script import RECORDING_ERROR, Body, Failure, Reply, Thinking, ToolUse
from memkernel.errors import InvalidInputError
from memkernel.paths import MOUNT_ROOT

if TYPE_CHECKING:
    from memkernel.agent.clients import Client
    from memkernel.agent.conversation import Block

_CHARS_A_PIECE = 8
_SHOWN_CHARS = 100
_MOUNT = re.compile(rf"{MOUNT_ROOT}/[\w-]+")


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
    request = asked.read(body)
    exchange = _exchange(recording, request.prompts)
    why = _no_prompt(recording) if exchange is None else _misfit(exchange, request)
    if exchange is None or why:
        return Failure(400, RECORDING_ERROR, f"the recording {recording.name} {why}")
    return _paced(exchange.answers[request.replies], speed, request.mounts)


def _exchange(recording: Recording, prompts: Sequence[str]) -> Exchange | None:
    """The one that begins with the last prompt: the second one where it is asked for the second time."""
    wanted = [_plain(prompt) for prompt in prompts]
    found = [exchange for exchange in recording.exchanges if _plain(exchange.prompt) == (wanted or [""])[-1]]
    return found[min(wanted[:-1].count(wanted[-1]), len(found) - 1)] if found else None


def _plain(prompt: str) -> str:
    return " ".join(prompt.split())


def _no_prompt(recording: Recording) -> str:
    known = " or ".join(f"“{shorten(prompt, _SHOWN_CHARS, placeholder=' …')}”" for prompt in recording.prompts[:3])
    return f"has no answer to this prompt, only to {known}"


def _misfit(exchange: Exchange, request: Asked) -> str:
    """Why the exchange cannot go on here; "" where it can."""
    missing = [name for answer in exchange.answers for name in answer.calls if name not in request.tools]
    if missing:
        return f"calls the tool {missing[0]}, which this agent does not have"
    if request.replies and (broken := _first_failed(exchange.answers[: request.replies][-1], request.newest)):
        return f"does not fit: a call that worked then failed here ({broken})"
    return "ends here: there is no further reply in it" if request.replies >= len(exchange.answers) else ""


def _first_failed(answer: Answer, results: Sequence[Block]) -> str:
    """The first line of the first result that is an error, though it was none."""
    errors = [result for n, result in enumerate(results) if result.get("is_error") and n not in answer.failed]
    return _first_line(asked.text_of(errors[0])) if errors else ""


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or ["without a word"])[0][:200].rstrip(".")


def _paced(answer: Answer, speed: float, mounts: Sequence[str]) -> Reply:
    blocks = tuple(_said(_rerooted(block, mounts)) for block in answer.blocks)
    pieces = sum(max(1, len(json.dumps(block)) // _CHARS_A_PIECE) for block in answer.blocks)
    return Reply(
        blocks,
        stop_reason=answer.stop_reason,
        wait_s=answer.wait_ms / 1000 / speed,
        pause_s=answer.took_ms / 1000 / speed / max(1, pieces),
        usage=answer.usage,
    )


def _rerooted(block: Mapping[str, Any], mounts: Sequence[str]) -> Mapping[str, Any]:
    """A call's paths below the first store that is mounted here, where the recorded one is not: it has another name."""
    if not mounts or block["type"] != "tool_use" or any(mount in str(block["input"]) for mount in mounts):
        return block
    given = _MOUNT.sub(mounts[0], json.dumps(block["input"], ensure_ascii=False))
    return {**block, "input": json.loads(given)}


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
