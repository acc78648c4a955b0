"""The loop: a prompt, then turns of the SDK's own tool runner until the model asks for no more tools.

Everything is published as it happens, and the conversation is what the events make of it. However a run ends (done,
interrupted, refused, cut off, failed), the API takes that conversation, so that the next prompt can follow.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

import anthropic
from anthropic.lib.tools import BetaBuiltinFunctionTool, BetaFunctionTool, BetaFunctionToolResultType

from memkernel.agent import conversation, limits, long_runs, prices, retry, unanswered
from memkernel.agent.arguments import arguments
from memkernel.agent.events import Notice, NoticeKind, RunStarted, Status, TurnEnded
from memkernel.agent.limits import Allowance, Budget, Reached, Spent
from memkernel.agent.request import Request, Tool
from memkernel.agent.turn import RunnableTool, TracedTool, Turn, TurnFailedError, UnderneathError, WatchedTool
from memkernel.errors import MemkernelError

if TYPE_CHECKING:
    from anthropic.lib.streaming import BetaMessageStream
    from anthropic.lib.tools import BetaStreamingToolRunner
    from anthropic.types.beta.parsed_beta_message import ParsedBetaMessage

    from memkernel.agent.conversation import Block
    from memkernel.agent.run import Run

STOPPED: Final = Notice("stopped", "Stopped by the user.")

_CUT = {"max_tokens": "max_tokens", "model_context_window_exceeded": "the model's context window"}


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
        DatabaseUnavailableError: what happens cannot be kept, or a memory tool lost the database; raised before the
            model is asked again.
    """
    _Loop(run, request).play()


class _Loop:
    def __init__(self, run: Run, request: Request) -> None:
        self._run = run
        self._request = replace(request, tools=[_watched(tool, self._call) for tool in request.tools])
        self._traced = [tool for tool in request.tools if isinstance(tool, TracedTool)]
        self._client = request.client
        self._budget = Budget(run.limits, run.price)
        self._turn = Turn(run)
        self._failures = 0
        self._sent_messages = 0
        self._counted = (0, 0)  # the tokens of the last prompt, and how many messages it had: the next one holds it

    def play(self) -> None:
        run = self._run
        try:
            self._begin()
            with limits.clock(run.limits.max_time_s, lambda: run.stopping.ask("max_time")):
                status = self._turns()
        except KeyboardInterrupt:
            status = self._stop()
        except BaseException as error:
            run.error = error
            self._turn.stop("error", lambda _: unanswered.not_run("error"))
            self._notice("error", str(error) or type(error).__name__)
            run.end("error")
            raise
        run.end(status)

    def _begin(self) -> None:
        run = self._run
        for tool in self._traced:
            with suppress(Exception):  # what it kept in an earlier run, which ended before that was told
                tool.raise_lost()
        run.publish(RunStarted(run.id, run.prompt, run.model, run.kind))
        if self._request.recording:
            self._notice("recording", self._request.recording)
        run.stopping.open()
        # One attempt a request: what is tried again is decided, and shown, here.
        self._client = self._request.client.with_options(max_retries=0)

    def _stop(self) -> Status:
        run = self._run
        self._turn.break_off()
        self._turn.stop(run.stopping.reason, self._why_stopped)
        if run.stopping.reason == "max_time":
            return self._reach(limits.out_of_time(run.limits.max_time_s))
        run.publish(STOPPED)
        return "stopped"

    # -- turns -------------------------------------------------------------------------------------

    def _turns(self) -> Status:
        status = None
        while status is None:
            allowance = self._allowance()
            if allowance.max_tokens == 0 and allowance.reached is not None:
                return self._reach(allowance.reached)
            try:
                status = self._ask(allowance)
            except TurnFailedError as failed:
                self._wait_after(failed.error)
        return status

    def _allowance(self) -> Allowance:
        run, asked = self._run, self._request
        spent = Spent(run.usage, run.cost_usd or 0.0, run.turns)
        known, among = self._counted
        new = run.messages[among:]
        least_tokens = 0 if long_runs.shortens(asked.options) else known + limits.least_tokens(new)
        smallest = limits.smallest_reply(asked.max_tokens, asked.options)
        return self._budget.allow(spent, least_tokens, asked.max_tokens, smallest)

    def _ask(self, allowance: Allowance) -> Status | None:
        """One request and its turn: how it ends the run, or None where the run goes on."""
        runner = self._runner(allowance.max_tokens)
        try:
            return self._take(runner, self._turn.read(self._stream(runner)), allowance)
        finally:
            self._run.stopping.let_go(runner.close)

    def _runner(self, max_tokens: int) -> BetaStreamingToolRunner[None]:
        # One request a runner: each is made of the conversation as the events make it.
        messages = self._run.messages
        self._sent_messages = len(messages)
        asked = arguments(self._request, messages, max_tokens)
        runner = self._client.beta.messages.tool_runner(**asked, max_iterations=1, stream=True, thread=False)
        return cast("BetaStreamingToolRunner[None]", runner)

    def _stream(self, runner: BetaStreamingToolRunner[None]) -> BetaMessageStream[None]:
        try:
            return self._run.stopping.wait_for(lambda: next(runner))
        except anthropic.AnthropicError as error:
            raise TurnFailedError(error) from error
        except Exception as error:  # the client itself failed: it cannot sign
            raise retry.not_sent(error) from error

    def _take(
        self, runner: BetaStreamingToolRunner[None], reply: ParsedBetaMessage[None], allowance: Allowance
    ) -> Status | None:
        """Take a reply that is complete."""
        run, usage = self._run, prices.usage_of(reply.usage)
        run.usage, run.turns, run.stop_reason, self._failures = run.usage + usage, run.turns + 1, reply.stop_reason, 0
        if run.price is not None:
            run.cost_usd = (run.cost_usd or 0.0) + prices.cost_usd(reply.usage, run.price)
        self._counted = prices.prompt_tokens(reply.usage), self._sent_messages
        called = reply.stop_reason == "tool_use" and self._answer(runner)
        self._end_turn(TurnEnded(run.turns, reply.stop_reason, usage))
        if called or reply.stop_reason in conversation.PAUSED:
            return None
        if reply.stop_reason == "max_tokens" and allowance.reached is not None:
            return self._reach(allowance.reached)
        return self._ending(reply)

    def _end_turn(self, ended: TurnEnded) -> None:
        try:
            self._run.publish(ended)
        except MemkernelError:  # what a tool has lost says more of it than that the ledger is lost as well
            self._raise_lost()
            raise
        self._turn = Turn(self._run)
        self._raise_lost()

    def _raise_lost(self) -> None:
        for tool in self._traced:
            tool.raise_lost()

    def _reach(self, reached: Reached) -> Status:
        self._notice(cast("NoticeKind", reached.status), reached.sentence)
        return reached.status

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
        without = long_runs.compaction_refused(error, self._request.options)
        if without is not None:
            self._request = replace(self._request, options=long_runs.without_compaction(self._request.options))
            self._notice("compaction", without)
            return
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
        status = self._run.stopping.reason
        if unanswered.only_reads(call, self._request.reading):
            return unanswered.broken_off(status, "unchanged")
        return unanswered.broken_off(status, unanswered.fate(call, is_saved=self._is_saved(call["id"])))

    def _is_saved(self, tool_use_id: str) -> bool | None:
        try:
            return None if self._request.saved is None else self._request.saved(tool_use_id)
        except Exception:  # the database is lost as well: then it is unknown
            return None

    def _notice(self, kind: NoticeKind, text: str) -> None:
        self._run.publish(Notice(kind, text[:1].upper() + text[1:]))


def _watched(tool: Tool, call: Callable[[RunnableTool, object], BetaFunctionToolResultType]) -> Any:
    return WatchedTool(tool, call) if isinstance(tool, BetaBuiltinFunctionTool | BetaFunctionTool) else tool
