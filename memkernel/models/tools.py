"""What a tool answers a model with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The content of a `tool_result`: a text, or content blocks (an image, a document) as the API has them.

    The text of an error is never empty: the API refuses such a result.
    """

    content: str | tuple[Mapping[str, object], ...]
    is_error: bool = False
