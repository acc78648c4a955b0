"""One request as the SDK's tool runner is asked for it: all that limits, long runs and the cache have to say in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import anthropic
from anthropic.lib.tools import BetaBuiltinFunctionTool, BetaFunctionTool

from memkernel.agent import cache_marks, long_runs
from memkernel.agent.cache_marks import Control
from memkernel.agent.conversation import Message
from memkernel.agent.request import Request, Tool, declaration

if TYPE_CHECKING:
    from anthropic.lib.tools import BetaFunctionToolResultType
    from anthropic.types.beta import BetaToolUnionParam

    from memkernel.agent.turn import RunnableTool


def arguments(request: Request, messages: Sequence[Message], max_tokens: int | None = None) -> dict[str, Any]:
    """The arguments of `client.beta.messages.tool_runner`, but how it shall run.

    Args:
        request: what stays the same over the turns.
        messages: the conversation; it is not changed.
        max_tokens: of this reply; without it the request's.
    """
    asked: dict[str, Any] = {
        **long_runs.for_request(request.options, messages),
        "model": request.model,
        "max_tokens": request.max_tokens if max_tokens is None else max_tokens,
        "messages": messages,
        "tools": request.tools,
        **({} if request.system is None else {"system": request.system}),
    }
    return _marked(request, asked) if request.cache else asked


def _marked(request: Request, asked: dict[str, Any]) -> dict[str, Any]:
    tools = [declaration(tool) for tool in request.tools]
    # Bedrock and Vertex take marks of blocks alone; their clients are no `anthropic.Anthropic`.
    automatic = isinstance(cast("object", request.client), anthropic.Anthropic)
    marks = cache_marks.marks(request.system, tools, asked["messages"], request.options, automatic=automatic)
    marked = asked | {"messages": marks.messages}
    if marks.system is not None:
        marked["system"] = [{"type": "text", "text": request.system, "cache_control": marks.system}]
    if marks.conversation is not None:
        marked["cache_control"] = marks.conversation
    if marks.tool is not None:
        at, control = marks.tool
        marked["tools"] = [_marked_tool(tool, control) if n == at else tool for n, tool in enumerate(request.tools)]
    return marked


def as_body(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as JSON: what a person can look at before anything is sent."""
    return {**asked, "tools": [dict(declaration(tool)) for tool in asked["tools"]]}


def _marked_tool(tool: Tool, control: Control) -> Tool:
    if isinstance(tool, Mapping):
        return cast("Tool", {**tool, "cache_control": control})
    if isinstance(tool, BetaBuiltinFunctionTool | BetaFunctionTool):
        return _MarkedTool(tool, control)
    return tool  # a toolset


class _MarkedTool(BetaBuiltinFunctionTool):
    """A tool whose declaration has a mark."""

    def __init__(self, tool: RunnableTool, control: Control) -> None:
        self._tool = tool
        self._control = control

    def to_dict(self) -> BetaToolUnionParam:
        """The tool's declaration, marked."""
        return cast("BetaToolUnionParam", {**self._tool.to_dict(), "cache_control": self._control})

    def call(self, input: object) -> BetaFunctionToolResultType:
        """Run the tool."""
        return self._tool.call(input)
