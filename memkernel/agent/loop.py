"""The loop: a prompt, then turns of the SDK's own tool runner until the model asks for no more tools.

Everything is published as it happens. However a run ends (done, interrupted, refused, cut off, failed), its
conversation is one that the API takes, so that the next prompt can follow.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import anthropic
from anthropic.lib.tools import (
    BetaBuiltinFunctionTool,
    BetaFunctionTool,
    BetaFunctionToolResultType,
    BetaRunnableToolset,
)

from memkernel.agent import checks, conversation, retry, unanswered
from memkernel.agent.clients import Client
from memkernel.agent.events import Notice, NoticeKind, RunStarted, Status, TurnEnded, Usage
from memkernel.agent.turn import RunnableTool, TracedTool, Turn, TurnFailedError, UnderneathError, WatchedTool
from memkernel.errors import InvalidInputError
from memkernel.render import counted

if TYPE_CHECKING:
    from anthropic.lib.streaming import BetaMessageStream
    from anthropic.lib.tools import BetaStreamingToolRunner
    from anthropic.types.beta import BetaToolUnionParam, BetaUsage
    from anthropic.types.beta.parsed_beta_message import ParsedBetaMessage

    from memkernel.agent.conversation import Block
    from memkernel.agent.run import Run

Tool: TypeAlias = "RunnableTool | BetaRunnableToolset | BetaToolUnionParam"

STOPPED: Final = Notice("stopped", "Stopped by the user.")

_CUT = {"max_tokens": "max_tokens", "model_context_window_exceeded": "the model's context window"}


@dataclass(frozen=True)
class Request:
    """What stays the same over the turns of a run.

    Attributes:
        client: a checked client (`clients.checked`); its `max_retries` bounds the retries of a turn.
        model: the model's name.
        tools: functions (`@beta_tool`), memory tools, toolsets, or declarations of server tools.
        system: the system prompt. Memory never gets into it.
        max_turns: replies of the model at most, paused ones included.
        max_tokens: of one reply.
        saved: whether a version with this tool_use_id as its cause is in memory, once and for all; asked after an
            interrupt.
        reading: the names of the tools that only read.
        options: further arguments of `client.beta.messages.tool_runner`, such as `thinking`.
    """

    client: Client
    model: str
    tools: Sequence[Tool] = ()
    system: str | None = None
    max_turns: int = 50
    max_tokens: int = 32_000
    saved: Callable[[str], bool] | None = None
    reading: Set[str] = frozenset()
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


def checked_request(
    client: Client,
    model: str,
    tools: object,
    *,
    system: object = None,
    max_turns: object = 50,
    max_tokens: object = 32_000,
    options: object = None,
) -> Request:
    """What a person asked for, if it can be sent.

    Raises:
        InvalidInputError: a value of the wrong kind; an option that the runner does not have, or that is set here; a
            tool that is a bare or an asynchronous function, or has the name of another.
    """
    return Request(
        client,
        model,
        checked_tools(checks.each("tools", tools)),
        system=checks.text_or_none("system", system, hint="Leave it out where there is none."),
        max_turns=checks.count("max_turns", max_turns),
        max_tokens=checks.count("max_tokens", max_tokens),
        options=checks.options(options, client.beta.messages.tool_runner),
    )


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
    raise InvalidInputError(f"{tool!r} is no tool", hint="Decorate a function with anthropic.beta_tool.")


def _name(tool: Tool) -> object:
    return tool.get("name") if isinstance(tool, Mapping) else getattr(tool, "name", tool)


@contextmanager
def ending(run: Run) -> Generator[None]:
    """However the block is left, the run has ended: also by an interrupt that came before its loop, or a second one.

    Raises:
        KeyboardInterrupt: the run had ended already.
        BaseException: what the block raised, an interrupt of the run excepted.
    """
    try:
        yield
    except KeyboardInterrupt:
        if run.status != "running":
            raise
        if STOPPED not in run.events:
            run.publish(STOPPED)
        run.end("stopped")
    except BaseException as error:
        run.error = error
        if run.status == "running":
            run.end("error")
        raise


def play(run: Run, request: Request) -> None:
    """Carry a run to its end. An interrupt (KeyboardInterrupt) ends it as `stopped`.

    Raises:
        ModelRequestError: the API refused a request, or failed more often than `client.max_retries`.
        DatabaseUnavailableError: a memory tool lost the database; raised before the model is asked again.
    """
    _Loop(run, request).play()


class _Loop:
    def __init__(self, run: Run, request: Request) -> None:
        self._run = run
        self._request = request
        self._client = request.client
        self._tools = [_watched(tool, self._call) for tool in request.tools]
        self._turn = Turn(run)
        self._failures = 0

    def play(self) -> None:
        run = self._run
        try:
            run.publish(RunStarted(run.id, run.prompt, run.model, run.kind))
            run.stopping.open()
            # One attempt a request: what is tried again is decided, and shown, here.
            self._client = self._request.client.with_options(max_retries=0)
            status = self._turns()
        except KeyboardInterrupt:
            self._turn.break_off()
            self._turn.stop(self._why_stopped)
            run.publish(STOPPED)
            status = "stopped"
        except BaseException as error:
            self._turn.stop(lambda _: unanswered.not_run("error"))
            self._notice("error", str(error) or type(error).__name__)
            run.end("error")
            raise
        run.end(status)

    # -- turns -------------------------------------------------------------------------------------

    def _turns(self) -> Status:
        status = None
        while status is None:
            try:
                status = self._follow(self._runner())
            except TurnFailedError as failed:
                self._wait_after(failed.error)
        return status

    def _runner(self) -> BetaStreamingToolRunner[None]:
        runner = self._client.beta.messages.tool_runner(
            model=self._request.model,
            max_tokens=self._request.max_tokens,
            messages=cast("Any", self._run.messages),
            tools=self._tools,
            max_iterations=self._request.max_turns - self._run.turns,
            system=anthropic.omit if self._request.system is None else self._request.system,
            stream=True,
            thread=False,  # the conversation stays here, and each request is complete
            **self._request.options,
        )
        return cast("BetaStreamingToolRunner[None]", runner)

    def _follow(self, runner: BetaStreamingToolRunner[None]) -> Status | None:
        """The turns of one runner: how the run ended, or None where another runner has to go on."""
        run, status = self._run, None
        try:
            while (stream := self._next(runner)) is not None:
                turn = self._turn
                status = self._take(runner, turn.read(stream))
                if status is None and turn.is_rewritten():
                    return None  # the runner would send the turn as it came
        finally:
            run.stopping.let_go(runner.close)
        if status is None:
            turns = counted(run.turns, "turn")
            self._notice("max_turns", f"Stopped after {turns} (max_turns). Run it again to go on.")
        return status or "max_turns"

    def _next(self, runner: BetaStreamingToolRunner[None]) -> BetaMessageStream[None] | None:
        try:
            return self._run.stopping.wait_for(lambda: next(runner, None))
        except anthropic.APIError as error:
            raise TurnFailedError(error) from error

    def _take(self, runner: BetaStreamingToolRunner[None], reply: ParsedBetaMessage[None]) -> Status | None:
        """Take a reply that is complete: how it ends the run, or None where the run goes on."""
        run, usage = self._run, _usage(reply.usage)
        run.usage, run.turns, run.stop_reason, self._failures = run.usage + usage, run.turns + 1, reply.stop_reason, 0
        called = reply.stop_reason == "tool_use" and self._answer(runner)
        run.publish(TurnEnded(run.turns, reply.stop_reason, usage))
        self._turn = Turn(run)
        for tool in self._request.tools:
            if isinstance(tool, TracedTool):
                tool.raise_lost()
        if called or reply.stop_reason in conversation.PAUSED:
            return None
        return self._ending(reply)

    def _ending(self, reply: ParsedBetaMessage[None]) -> Status:
        if reply.stop_reason == "refusal":
            category = reply.stop_details.category if reply.stop_details else None
            self._notice("refusal", f"The model refused to answer{f' ({category})' if category else ''}.")
            return "refused"
        if reply.stop_reason in _CUT:
            calls = any(block.type == "tool_use" for block in reply.content)
            limit = _CUT[reply.stop_reason]
            self._notice("max_tokens", f"The reply was cut off at {limit}.{' Its calls did not run.' if calls else ''}")
            return "max_tokens"
        return "done"

    def _wait_after(self, error: Exception) -> None:
        self._turn = Turn(self._run)
        self._failures += 1
        retries = self._request.client.max_retries
        if self._failures > retries or not retry.is_transient(error):
            raise retry.final(error) from error
        delay_s = retry.delay_s(error, self._failures)
        again = f"trying again in {delay_s:.1f} s ({self._failures} of {retries})"
        self._notice("retry", f"{retry.sentence(error)}; {again}.")
        self._run.stopping.sleep(delay_s)

    # -- tools -------------------------------------------------------------------------------------

    def _call(self, tool: RunnableTool, given: object) -> BetaFunctionToolResultType:
        return self._turn.call(tool, given)

    def _answer(self, runner: BetaStreamingToolRunner[None]) -> bool:
        """Let the runner run the calls of its reply, in order; whether there were any."""
        with warnings.catch_warnings():
            # An unknown tool is told to the model, and shown; it is no fault of the code that a warning would name.
            warnings.filterwarnings("ignore", r"Tool(set)? '", UserWarning)
            try:
                response = runner.generate_tool_call_response()
            except UnderneathError as failed:
                raise failed.error from None
        if response is not None:
            self._turn.take_answers(cast("Any", response["content"]))
        return response is not None

    def _why_stopped(self, call: Block) -> str:
        if unanswered.only_reads(call, self._request.reading):
            return unanswered.broken_off("stopped", "unchanged")
        return unanswered.broken_off("stopped", unanswered.fate(call, is_saved=self._is_saved(call["id"])))

    def _is_saved(self, tool_use_id: str) -> bool | None:
        try:
            return None if self._request.saved is None else self._request.saved(tool_use_id)
        except Exception:  # the database is lost as well: then it is unknown
            return None

    def _notice(self, kind: NoticeKind, text: str) -> None:
        self._run.publish(Notice(kind, text[:1].upper() + text[1:]))


def _watched(tool: Tool, call: Callable[[RunnableTool, object], BetaFunctionToolResultType]) -> Any:
    return WatchedTool(tool, call) if isinstance(tool, BetaBuiltinFunctionTool | BetaFunctionTool) else tool


def _usage(counted: BetaUsage) -> Usage:
    return Usage(
        counted.input_tokens,
        counted.output_tokens,
        counted.cache_read_input_tokens or 0,
        counted.cache_creation_input_tokens or 0,
    )
