"""What the context of an agent is made of, in tokens: counted by the API, which is asked once for each part."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import anthropic

from memkernel.agent import conversation, retry
from memkernel.agent.arguments import as_body
from memkernel.agent.clients import Client
from memkernel.agent.conversation import Block, Message
from memkernel.errors import AgentError

Part = Literal[
    "system", "tools", "prompts", "answers", "thinking", "memory results", "other results", "summary", "rest"
]
Arguments: TypeAlias = Mapping[str, Any]

_ASKED: Final[Sequence[Part]] = ("prompts", "answers", "thinking", "memory results", "other results", "summary")
_BARE: Final[list[Message]] = [{"role": "user", "content": "."}]
_NOT_COUNTED: Final = ("cache_control", "context_management")
"""How the API would cache or shorten the conversation changes nothing of what it is."""

_MEMORY: Final = "memory"


@dataclass(frozen=True, slots=True)
class ContextPart:
    """One part of a context.

    Attributes:
        part: `answers` hold the calls of tools; `summary` is what a compaction left; `rest` is what frames the
            messages.
        tokens: what it takes of the context.
    """

    part: Part
    tokens: int


def parts(client: Client, asked: Arguments) -> list[ContextPart]:
    """The parts of a request, which is not sent; their sum is the whole.

    Args:
        client: who counts; nothing is charged for it.
        asked: a request (`arguments.arguments`).

    Raises:
        ModelRequestError: the API refused.
        AgentError: the client's platform does not count.
    """
    count = _counter(client, asked)
    body = as_body(asked)
    body["messages"] = body["messages"] or _BARE  # the API counts no conversation without a word
    whole, bare = count(body), count({"messages": _BARE})
    found: dict[Part, int] = {
        "system": count({"messages": _BARE, "system": body["system"]}) - bare if "system" in body else 0,
        "tools": count({"messages": _BARE, "tools": body["tools"]}) - bare if body["tools"] else 0,
    }
    kinds = kinds_of(body["messages"])
    for part in _ASKED:
        found[part] = whole - count(_without(body, part, kinds)) if part in kinds.values() else 0
    found["rest"] = whole - sum(found.values())
    listed = [ContextPart(part, max(0, tokens)) for part, tokens in found.items()]
    return [one for one in listed if one.tokens or one.part not in ("summary", "rest")]


def _counter(client: Client, asked: Arguments) -> Callable[[Arguments], int]:
    counting = getattr(client.beta.messages, "count_tokens", None)
    if counting is None:
        raise AgentError(f"{type(client).__name__} counts no tokens", hint="anthropic.Anthropic does.")
    known = inspect.signature(counting).parameters.keys() - set(_NOT_COUNTED)
    always = ("model", "betas", "mcp_servers", "extra_headers", "timeout")
    same = {name: asked[name] for name in always if name in asked}

    def count(body: Arguments) -> int:
        sent = {name: value for name, value in {**body, **same}.items() if name in known}
        try:
            return counting(**sent).input_tokens
        except anthropic.APIError as error:
            raise retry.final(error) from error

    return count


# -- which block is of which part ------------------------------------------------------------------

_Place: TypeAlias = tuple[int, int]


def kinds_of(messages: Sequence[Message]) -> dict[_Place, Part]:
    """The part that each block is of, by its message's and its own number."""
    placed = {
        (m, b): (message, block)
        for m, message in enumerate(messages)
        for b, block in enumerate(conversation.blocks(message))
    }
    names = {block["id"]: block.get("name") for _, block in placed.values() if block["type"].endswith("tool_use")}
    return {place: _part_of(message, block, names) for place, (message, block) in placed.items()}


def _part_of(message: Message, block: Block, names: Mapping[str, object]) -> Part:
    if block["type"].endswith("tool_result"):
        return "memory results" if names.get(block.get("tool_use_id", "")) == _MEMORY else "other results"
    if message["role"] == "user":
        return "prompts"
    if block["type"] in ("thinking", "redacted_thinking"):
        return "thinking"
    return "summary" if block["type"] == "compaction" else "answers"


def _without(body: Arguments, part: Part, kinds: Mapping[_Place, Part]) -> Arguments:
    """The request with one part as small as the API takes it."""
    messages = [
        {**message, "content": _emptied(message, [kinds[m, b] == part for b in range(_count(message))])}
        for m, message in enumerate(body["messages"])
    ]
    # With `thinking` the API wants a thought before the last calls.
    left_out = "thinking" if part == "thinking" else ""
    return {**{name: value for name, value in body.items() if name != left_out}, "messages": messages}


def _count(message: Message) -> int:
    return len(conversation.blocks(message))


def _emptied(message: Message, is_part: Sequence[bool]) -> list[Block]:
    blocks = conversation.blocks(message)
    kept = [_smallest(block) if hit else block for block, hit in zip(blocks, is_part, strict=True)]
    return [block for block in kept if block] or [{"type": "text", "text": "."}]


def _smallest(block: Block) -> Block:
    """A block that says nothing, and that a conversation is still whole with; {} where it can go."""
    match block["type"]:
        case "text" | "image" | "document" | "search_result":
            return {"type": "text", "text": "."}
        case "tool_use":
            return {**block, "input": {}}
        case "tool_result":
            return {**block, "content": "."}
        case "thinking" | "redacted_thinking" | "compaction":
            return {}
        case _:
            return block  # what the API's own tools said is checked as a whole
