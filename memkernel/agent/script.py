"""What a scripted model says, and how the Messages API would send it. Pure.

Token counts are approximations: a quarter of the characters of the JSON.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Event: TypeAlias = dict[str, Any]
Body: TypeAlias = Mapping[str, Any]

RECORDING_ERROR = "recording_error"
"""The type of the error that a recording answers with where it has no reply; no error of the API's."""

_PIECE_CHARS = 24


@dataclass(frozen=True)
class ToolUse:
    """A call. An `input` that is a text is sent as it is, valid JSON or not."""

    name: str
    input: Mapping[str, Any] | str = field(default_factory=dict[str, Any])
    id: str = field(default_factory=lambda: f"toolu_{uuid.uuid4().hex[:24]}")


@dataclass(frozen=True)
class Thinking:
    """A thought, with a signature."""

    text: str


@dataclass(frozen=True)
class Reply:
    """One reply.

    Attributes:
        blocks: texts, thoughts, calls; or blocks as the API's JSON, sent in one piece.
        stop_reason: by default `tool_use` where there is a call, else `end_turn`.
        stop_details: of a refusal.
        breaks: what goes wrong after the blocks were streamed: an `error` event, the connection is `cut`, the stream
            `ends` before `message_delta`, or nothing comes any more (`hangs`).
        error_type: of the `error` event.
        wait_s: before the first event.
        pause_s: between two events.
        usage: the API's count of tokens; without one, they are approximated.
    """

    blocks: tuple[str | Thinking | ToolUse | Mapping[str, Any], ...] = ()
    stop_reason: str | None = None
    stop_details: Mapping[str, Any] | None = None
    breaks: Literal["error", "cut", "ends", "hangs"] | None = None
    error_type: str = "overloaded_error"
    wait_s: float = 0.0
    pause_s: float = 0.0
    usage: Mapping[str, int] | None = None

    @property
    def reason(self) -> str:
        """The stop reason that is sent."""
        calls = any(isinstance(block, ToolUse) for block in self.blocks)
        return self.stop_reason or ("tool_use" if calls else "end_turn")


@dataclass(frozen=True)
class Failure:
    """An HTTP error in place of a reply; `page` is what something between the client and the API says instead."""

    status: int
    error_type: str = "api_error"
    message: str = "scripted failure"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    page: str = ""


def reply(*blocks: str | Thinking | ToolUse | Mapping[str, Any], **more: Any) -> Reply:
    """A reply of these blocks."""
    return Reply(blocks, **more)


def error_envelope(error_type: str, message: str, request_id: str | None = None) -> dict[str, Any]:
    """The body of an error (CONTRACT B.1.1)."""
    envelope: dict[str, Any] = {"type": "error", "error": {"type": error_type, "message": message}}
    return envelope | ({"request_id": request_id} if request_id else {})


def count_tokens(body: Body) -> int:
    """Roughly how many tokens a request has."""
    asked = {name: body[name] for name in ("system", "tools", "messages") if name in body}
    return len(json.dumps(asked, ensure_ascii=False)) // 4 + 1


def message(said: Reply, body: Body) -> dict[str, Any]:
    """The reply in one piece, for a request without `stream`."""
    content = [_block(block) for block in said.blocks]
    return _empty_message(said, body) | {
        "content": content,
        "stop_reason": said.reason,
        "stop_details": said.stop_details,
        "usage": _usage(said, body),
    }


def events(said: Reply, body: Body) -> Iterator[Event]:
    """The reply as the events of a stream; of one that breaks, those before it does."""
    yield {"type": "message_start", "message": _empty_message(said, body)}
    yield {"type": "ping"}
    for index, block in enumerate(said.blocks):
        yield from _block_events(index, block)
    if said.breaks == "error":
        yield error_envelope(said.error_type, "scripted failure in the middle of a reply")
    if said.breaks is not None:
        return
    delta = {"stop_reason": said.reason, "stop_sequence": None, "stop_details": said.stop_details}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": _usage(said, body)["output_tokens"]}}
    yield {"type": "message_stop"}


def sse(event: Event) -> bytes:
    """An event in the form of server-sent events."""
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def _empty_message(said: Reply, body: Body) -> dict[str, Any]:
    return {
        "id": f"msg_{uuid.uuid4().hex[:24]}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _usage(said, body) | {"output_tokens": 1},
    }


def _block(block: str | Thinking | ToolUse | Mapping[str, Any]) -> dict[str, Any]:
    match block:
        case str():
            return {"type": "text", "text": block}
        case Thinking(text=text):
            return {"type": "thinking", "thinking": text, "signature": "scripted"}
        case ToolUse(name=name, input=given, id=id):
            return {"type": "tool_use", "id": id, "name": name, "input": given}
        case _:
            return dict(block)


def _block_events(index: int, block: str | Thinking | ToolUse | Mapping[str, Any]) -> Iterator[Event]:
    whole = _block(block)
    deltas: list[Event] = []
    match block:
        case str():
            whole = whole | {"text": ""}
            deltas = [{"type": "text_delta", "text": word} for word in re.findall(r"\s*\S+|\s+$", block)]
        case Thinking(text=text):
            whole = whole | {"thinking": "", "signature": ""}
            deltas = [
                {"type": "thinking_delta", "thinking": text},
                {"type": "signature_delta", "signature": "scripted"},
            ]
        case ToolUse(input=given):
            whole["input"] = {}
            text = given if isinstance(given, str) else json.dumps(given)
            pieces = [text[at : at + _PIECE_CHARS] for at in range(0, len(text), _PIECE_CHARS)]
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        case _:
            pass
    yield {"type": "content_block_start", "index": index, "content_block": whole}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _usage(said: Reply, body: Body) -> dict[str, int]:
    blocks = json.dumps([_block(block) for block in said.blocks], ensure_ascii=False)
    return {"input_tokens": count_tokens(body), "output_tokens": len(blocks) // 4 + 1} | dict(said.usage or {})
