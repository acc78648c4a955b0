"""What an agent asks for: the same over all turns of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from anthropic.lib.tools import BetaBuiltinFunctionTool, BetaFunctionTool, BetaRunnableToolset

from memkernel.agent import approval, cache_marks, checks, long_runs, prices
from memkernel.agent.approval import Policy
from memkernel.agent.clients import Client, Speaker
from memkernel.agent.prices import Price
from memkernel.errors import InvalidInputError
from memkernel.models import RunKind

if TYPE_CHECKING:
    from anthropic.types.beta import BetaToolUnionParam

    from memkernel.agent.turn import RunnableTool

Tool: TypeAlias = "RunnableTool | BetaRunnableToolset | BetaToolUnionParam"


@dataclass(frozen=True)
class Request:
    """What stays the same over the turns of a run.

    Attributes:
        client: a checked client (`clients.checked`); its `max_retries` bounds the retries of a turn.
        model: the model's name.
        tools: functions (`@beta_tool`), memory tools, toolsets, or declarations of server tools.
        system: the system prompt. Memory never gets into it.
        max_tokens: of one reply.
        saved: whether a version with this tool_use_id as its cause is in memory, once and for all, or None where
            nobody can tell; asked after an interrupt.
        reading: the names of the tools that only read.
        recording: what is said of the recording that answers; "" where none does.
        cache: whether the requests are marked for the API's cache.
        options: further arguments of `client.beta.messages.tool_runner`, such as `thinking`.
    """

    client: Client
    model: str
    tools: Sequence[Tool] = ()
    system: str | None = None
    max_tokens: int = 32_000
    saved: Callable[[str], bool | None] | None = None
    reading: Set[str] = frozenset()
    recording: str = ""
    cache: bool = False
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


def checked(speaker: Speaker, *, system: object, max_tokens: object, options: object, cache: object = True) -> Request:
    """What a person asked for, if it can be sent; still without tools.

    Raises:
        InvalidInputError: a value of the wrong kind; an option that the runner does not have, or that is set here.
    """
    return Request(
        speaker.client,
        speaker.model,
        system=checks.text_or_none("system", system, hint="Leave it out where there is none."),
        max_tokens=checks.count("max_tokens", max_tokens),
        recording=speaker.recording.sentence if speaker.recording else "",
        options=checks.options(options, speaker.client.beta.messages.tool_runner),
        cache=checks.flag("cache", cache),
    )


def price(request: Request, kind: RunKind, own: object, environment: str | None) -> Price | None:
    """What the model's tokens cost, or None where that is not known.

    Args:
        request: whose model is asked.
        kind: who answers.
        own: a person's prices.
        environment: the same, from MEMKERNEL_PRICES.

    Raises:
        InvalidInputError: prices that are none.
    """
    known = prices.checked(own, environment)
    return prices.price_of(request.model, kind, prices=known, options=request.options)


def with_tools(request: Request, tools: Sequence[object]) -> Request:
    """The same with these tools.

    Raises:
        InvalidInputError: one is none, or two have one name; or there are too many marks for the API's cache.
    """
    checked = checked_tools(tools)
    cache_marks.refuse_too_many([declaration(tool) for tool in checked], request.options)
    return replace(request, tools=checked)


def shortened(request: Request, clear_tool_results: object, compaction: object) -> Request:
    """The same, for a conversation that the API may shorten.

    Raises:
        InvalidInputError: a setting that is none.
    """
    options = long_runs.checked(clear_tool_results, compaction, request.options, names(request.tools))
    return replace(request, options=options)


def policy(request: Request, approve: object) -> Policy:
    """Which of the tools' calls a person has to approve of.

    Raises:
        InvalidInputError: it cannot be kept.
    """
    return approval.checked_policy(approve, names(request.tools), run_elsewhere(request.tools))


def checked_tools(tools: Sequence[object]) -> list[Tool]:
    """The tools, if the runner can use them.

    Raises:
        InvalidInputError: one is a bare or an asynchronous function, or two have one name.
    """
    checked = [_checked_tool(tool) for tool in tools]
    names = [_name(tool) for tool in checked]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidInputError(f"two tools are called {twice!r}", hint="Give one of them another name.")
    return checked


def _checked_tool(tool: object) -> Tool:
    if isinstance(tool, BetaBuiltinFunctionTool | BetaFunctionTool | BetaRunnableToolset | Mapping):
        return cast("Tool", tool)
    raise InvalidInputError(
        f"{getattr(tool, '__name__', repr(tool)):.80} is no tool", hint="Decorate a function with anthropic.beta_tool."
    )


def names(tools: Sequence[Tool]) -> list[str]:
    """What the tools are called."""
    return [_name(tool) for tool in tools]


def run_elsewhere(tools: Sequence[Tool]) -> list[str]:
    """The names of those whose calls the loop does not see before they run: of the API's servers, and of toolsets."""
    return names([tool for tool in tools if isinstance(tool, BetaRunnableToolset | Mapping)])


def _name(tool: Tool) -> str:
    if isinstance(tool, BetaRunnableToolset):
        return tool.toolset_name
    if isinstance(tool, Mapping):
        given = cast("Mapping[str, object]", tool)
        return str(given.get("name") or given.get("mcp_server_name") or given.get("type"))
    return tool.name


def declaration(tool: Tool) -> Mapping[str, Any]:
    """What the API is told of a tool."""
    if isinstance(tool, Mapping):
        return cast("Mapping[str, Any]", tool)
    return cast("Mapping[str, Any]", tool.to_dict())
