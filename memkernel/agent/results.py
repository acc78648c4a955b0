"""What a tool gave, as the API takes it: a text, or blocks. Pure.

Whatever is sent once is sent again with every later request: what the API refuses would end the conversation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias, cast

from anthropic.lib.tools import BetaFunctionToolResultType, ToolError

Content: TypeAlias = "str | list[dict[str, Any]]"

# The API's, of a tool_result's content.
_TYPES: Final = frozenset({"text", "image", "document", "search_result", "tool_reference"})
_NEEDED: Final[Mapping[str, tuple[str, type]]] = {
    "text": ("text", str),
    "image": ("source", Mapping),
    "document": ("source", Mapping),
}
_MOST_CHARS: Final = 10_000
_SAID_NOTHING: Final = "The tool failed and said nothing."


def checked(returned: object) -> Content:
    """What a tool returned, if it can be sent; None is an empty text.

    Raises:
        ToolError: it is neither a text nor a list of blocks.
    """
    if returned is None:
        return ""
    if isinstance(returned, str):
        return _well_formed(returned)
    blocks = _blocks(returned)
    if blocks is None:
        raise ToolError(
            f"The tool returned {_shortened(returned)}, which is neither text nor a list of content blocks."
        )
    return blocks


def failure(error: Exception) -> str:
    """What the model is told of a tool that failed: a text that is not empty, as the API wants it of errors."""
    said = as_text(checked(error.content)) if isinstance(error, ToolError) else _shortened(error)
    return _well_formed(said) if said.strip() else _SAID_NOTHING


def as_text(content: object) -> str:
    """A result as a person reads it: its texts, and of other blocks their types."""
    if isinstance(content, str):
        return content
    blocks = cast("list[dict[str, Any]]", content) if isinstance(content, list) else []
    return "\n".join(block["text"] if block.get("type") == "text" else f"[{block.get('type')}]" for block in blocks)


def to_send(content: Content) -> BetaFunctionToolResultType:
    """The same, by the SDK's name for it."""
    return cast("BetaFunctionToolResultType", content)


def _blocks(returned: object) -> list[dict[str, Any]] | None:
    if not isinstance(returned, Iterable) or isinstance(returned, bytes | Mapping):
        return None
    members = list(cast("Iterable[object]", returned))  # a generator is read once: for the model, and for the person
    if not all(_is_block(member) for member in members):
        return None
    said = [member for member in cast("list[Mapping[str, Any]]", members) if _says_something(member)]
    try:
        return json.loads(_well_formed(json.dumps(said, ensure_ascii=False, allow_nan=False)))
    except (TypeError, ValueError, RecursionError):
        return None


def _is_block(member: object) -> bool:
    if not isinstance(member, Mapping):
        return False
    block = cast("Mapping[str, object]", member)
    field, kind = _NEEDED.get(str(block.get("type")), ("type", str))
    return block.get("type") in _TYPES and isinstance(block.get(field), kind)


def _says_something(block: Mapping[str, Any]) -> bool:
    return block["type"] != "text" or bool(block["text"].strip())


def _well_formed(text: str) -> str:
    """The text without lone surrogates: one would break the next request."""
    return text.encode(errors="replace").decode()


def _shortened(value: object) -> str:
    try:
        said = repr(value)
    except Exception:
        return type(value).__name__
    return said if len(said) <= _MOST_CHARS else f"{said[:_MOST_CHARS]}…"
