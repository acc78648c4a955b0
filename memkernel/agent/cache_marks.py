"""Where a request is marked for the API's cache. Pure.

The API takes four marks a request, and none that lasts five minutes before one that lasts an hour. A person's own are
kept, the oldest in the conversation left out where there are too many; what is free then marks the conversation's end,
the system prompt and the tools.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from memkernel.agent import conversation
from memkernel.agent.conversation import Block, Message
from memkernel.errors import InvalidInputError

Control: TypeAlias = Mapping[str, Any]

MOST: Final = 4

_KEY: Final = "cache_control"
_USUAL: Final[Control] = {"type": "ephemeral"}
_AN_HOUR: Final[Control] = {"type": "ephemeral", "ttl": "1h"}
_UNMARKABLE: Final = ("thinking", "redacted_thinking")


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of one request.

    Attributes:
        tool: which tool gets which mark.
        system: the system prompt's mark.
        conversation: the request's own `cache_control`, which marks the end of the conversation.
        messages: the conversation as it is to be sent.
    """

    tool: tuple[int, Control] | None
    system: Control | None
    conversation: Control | None
    messages: Sequence[Message]


def refuse_too_many(tools: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
    """Refuse more marks than the API takes, before anything is sent.

    Raises:
        InvalidInputError: the tools and the options of a request have more than four.
    """
    found = len(_fixed(tools, options))
    if found > MOST:
        raise InvalidInputError(
            f"the tools and options have {found} cache_control marks, and the API takes {MOST}",
            hint="Leave some out: without any, the agent sets them itself.",
        )


def marks(
    system: str | None,
    tools: Sequence[Mapping[str, Any]],
    messages: Sequence[Message],
    options: Mapping[str, Any],
    *,
    automatic: bool = True,
) -> Marks:
    """The marks of a request.

    Args:
        system: the system prompt.
        tools: the declarations of all tools.
        messages: the conversation; it is not changed.
        options: a person's further arguments of the request.
        automatic: whether the API takes a mark of the request itself; else its last block is marked.
    """
    fixed = _fixed(tools, options)
    own_end = _end_mark(options)
    sent = _trimmed(messages, MOST - len(fixed), drop_last=own_end is not None)
    said = [control for *_, control in _in_messages(sent)]
    free = MOST - len(fixed) - len(said)
    end = tool = ours = None
    if own_end is None and free > 0 and not _ends_marked(sent):
        end, free = _USUAL, free - 1
    if system is not None and free > 0:
        ours, free = _lasting(said, own_end), free - 1
    at = _last_tool(tools)
    if at is not None and free > 0:
        tool = at, _lasting(_controls(tools[at + 1 :]), said, own_end)
    if end is not None and not automatic:
        return Marks(tool, ours, None, _marked_at_end(sent, end))
    return Marks(tool, ours, end, sent)


def _lasting(*later: Sequence[Control] | Control | None) -> Control:
    """A mark that may stand before these."""
    flat = [one for some in later if some for one in ([some] if isinstance(some, Mapping) else some)]
    return _AN_HOUR if "1h" in [control.get("ttl") for control in flat] else _USUAL


def complaint(body: Mapping[str, Any]) -> str | None:
    """What the API says to the marks of a request, as JSON; None where it takes them."""
    parts = [body.get(name) for name in ("tools", "system", "messages")]
    said = [*_anywhere(parts), *_anywhere({_KEY: body.get(_KEY)})]
    if len(said) > MOST:
        return f"A maximum of {MOST} blocks with cache_control may be provided. Found {len(said)}."
    lasting = [control.get("ttl") == "1h" for control in said]
    if lasting != sorted(lasting, reverse=True):
        return "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
    return None


# -- a person's own --------------------------------------------------------------------------------


def _fixed(tools: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> list[Control]:
    """Those that no turn of a run changes."""
    return [*_controls(tools), *_anywhere({_KEY: options.get(_KEY), "body": options.get("extra_body")})]


def _end_mark(options: Mapping[str, Any]) -> Control | None:
    body: object = options.get("extra_body")
    own: object = options.get(_KEY) or (
        cast("Mapping[str, Any]", body).get(_KEY) if isinstance(body, Mapping) else None
    )
    return cast("Control", own) if isinstance(own, Mapping) else None


def _controls(tools: Sequence[Mapping[str, Any]]) -> list[Control]:
    return [tool[_KEY] for tool in tools if tool.get(_KEY)]


def _anywhere(value: object) -> Iterator[Control]:
    if isinstance(value, Mapping):
        for name, inner in cast("Mapping[object, object]", value).items():
            if name == _KEY and isinstance(inner, Mapping):
                yield cast("Control", inner)
            else:
                yield from _anywhere(inner)
    elif isinstance(value, list | tuple):
        for inner in cast("Sequence[object]", value):
            yield from _anywhere(inner)


def _last_tool(tools: Sequence[Mapping[str, Any]]) -> int | None:
    """The tool to mark: the last single one that is sent at once, unless it has a mark already."""
    markable = [n for n, tool in enumerate(tools) if _is_markable(tool)]
    return markable[-1] if markable and not tools[markable[-1]].get(_KEY) else None


def _is_markable(tool: Mapping[str, Any]) -> bool:
    return "name" in tool and not tool.get("defer_loading")  # a toolset has no name


# -- the conversation ------------------------------------------------------------------------------

_Place: TypeAlias = tuple[int, int, int]
"""The message, its block, and the block within its result; -1 is the block itself."""


def _in_messages(messages: Sequence[Message]) -> list[tuple[_Place, Control]]:
    found: list[tuple[_Place, Control]] = []
    for m, message in enumerate(messages):
        for b, block in enumerate(conversation.blocks(message)):
            inner = _inner(block)
            found += [((m, b, n), part[_KEY]) for n, part in enumerate(inner) if part.get(_KEY)]
            found += [((m, b, -1), block[_KEY])] if block.get(_KEY) else []
    return found


def _inner(block: Block) -> list[Block]:
    content: object = block.get("content")
    return cast("list[Block]", content) if block["type"] == "tool_result" and isinstance(content, list) else []


def _trimmed(messages: Sequence[Message], most: int, *, drop_last: bool) -> Sequence[Message]:
    """The messages with their newest marks alone, and without one at the very end where the request says that."""
    places = [place for place, _ in _in_messages(messages)]
    if drop_last and places and _ends_marked(messages):
        places, last = places[:-1], places[-1:]
    else:
        last = []
    gone = {*last, *places[: max(0, len(places) - max(0, most))]}
    touched = {m for m, *_ in gone}
    return [_without(message, m, gone) if m in touched else message for m, message in enumerate(messages)]


def _without(message: Message, m: int, gone: set[_Place]) -> Message:
    return {**message, "content": [_bare(block, m, b, gone) for b, block in enumerate(conversation.blocks(message))]}


def _bare(block: Block, m: int, b: int, gone: set[_Place]) -> Block:
    inner = [_unmarked(part) if (m, b, n) in gone else part for n, part in enumerate(_inner(block))]
    kept = {**block, "content": inner} if inner else block
    return _unmarked(kept) if (m, b, -1) in gone else kept


def _unmarked(block: Block) -> Block:
    return {name: value for name, value in block.items() if name != _KEY}


def _ends_marked(messages: Sequence[Message]) -> bool:
    blocks = conversation.blocks(messages[-1]) if messages else []
    at = _last_markable(blocks)
    return at is not None and bool([one for one in (blocks[at], *_inner(blocks[at])[-1:]) if one.get(_KEY)])


def _last_markable(blocks: Sequence[Block]) -> int | None:
    markable = [n for n, block in enumerate(blocks) if block["type"] not in _UNMARKABLE]
    return markable[-1] if markable else None


def _marked_at_end(messages: Sequence[Message], control: Control) -> Sequence[Message]:
    blocks = conversation.blocks(messages[-1]) if messages else []
    at = _last_markable(blocks)
    if at is None:
        return messages
    blocks[at] = {**blocks[at], _KEY: control}
    return [*messages[:-1], {**messages[-1], "content": blocks}]
