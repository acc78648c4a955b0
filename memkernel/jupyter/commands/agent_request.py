"""`%%agent --dry-run`: the request as it would be sent, and how many tokens each part of it has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memkernel.errors import MemkernelError
from memkernel.handle.records import Records
from memkernel.render import request_html, request_text

if TYPE_CHECKING:
    from memkernel.handle.agent import Agent


@dataclass(frozen=True, slots=True, repr=False)
class DryRun:
    """A request that was not sent.

    Attributes:
        request: its body as the API's JSON.
        parts: the tokens of each part; empty where they could not be counted.
        remark: why they could not, in a sentence; "" else.
    """

    request: Mapping[str, Any]
    parts: Records[Any]
    remark: str = ""

    @property
    def tokens(self) -> int:
        """Of all parts together."""
        return sum(part.tokens for part in self.parts)

    def __repr__(self) -> str:
        return request_text(self._head(), self.parts, self._json())

    def _repr_html_(self) -> str:
        return request_html(self._head(), self.parts, self._json())

    def _head(self) -> str:
        counted = self.remark or f"{self.tokens:,} tokens"
        return f"Not sent. {self.request.get('model')} · {counted}"

    def _json(self) -> str:
        return json.dumps(self.request, ensure_ascii=False, indent=2, default=str)


def dry_run(agent: Agent, prompt: str) -> DryRun:
    """What would be sent next, and its tokens. The conversation stays as it is.

    Raises:
        MemkernelError: nothing could be sent: the prompt or the conversation is none.
    """
    request = agent.preview(prompt)
    try:
        return DryRun(request, agent.context(prompt))
    except MemkernelError as error:
        return DryRun(request, Records([]), f"its tokens could not be counted: {error}")
