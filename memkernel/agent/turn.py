"""One turn: the reply as it streams, then its calls. It can end at any moment and leaves a valid conversation."""

from __future__ import annotations

import json
import logging
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from anthropic.lib.tools import BetaBuiltinFunctionTool, BetaFunctionTool, BetaFunctionToolResultType, ToolError

from memkernel.agent import conversation, results, unanswered
from memkernel.agent.conversation import Block
from memkernel.agent.events import (
    ApprovalAsked,
    Replied,
    Status,
    TextDelta,
    ThinkingDelta,
    ToolCalled,
    ToolReturned,
    TurnStarted,
)
from memkernel.models import Cause

if TYPE_CHECKING:
    from anthropic.lib.streaming import BetaMessageStream, ParsedBetaMessageStreamEvent
    from anthropic.types.beta import BetaToolUnionParam
    from anthropic.types.beta.parsed_beta_message import ParsedBetaMessage

    from memkernel.agent.run import Run

_log = logging.getLogger(__name__)

RunnableTool: TypeAlias = "BetaBuiltinFunctionTool | BetaFunctionTool[Any]"


@runtime_checkable
class TracedTool(Protocol):
    """A tool whose changes are recorded with their cause, and which keeps a failure that is not the model's."""

    cause: Cause | None

    def raise_lost(self) -> None:
        """Raise what was kept, if anything, once."""
        ...


class TurnFailedError(Exception):
    """The reply did not come, or not as a whole; nothing of the turn counts."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class UnderneathError(BaseException):
    """What the run stands on failed while the runner was at work, which makes a result of every `Exception`."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Turn:
    """The turn under way."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._reading: BetaMessageStream[None] | None = None
        self._stream: BetaMessageStream[None] | None = None
        self._completed_blocks = 0
        self._complete = False
        self._is_told = False
        self._answered: set[str] = set()
        self._announced: Block | None = None  # the call that was reached, until it is answered
        self._begun_s: float | None = None

    # -- the reply ---------------------------------------------------------------------------------

    def read(self, stream: BetaMessageStream[None]) -> ParsedBetaMessage[None]:
        """Read the reply to its end and publish it as it comes.

        Raises:
            TurnFailedError: the stream broke, said an error, or ended too early.
        """
        self._reading = stream
        self._run.publish(TurnStarted(self._run.turns + 1))
        try:
            for event in self._run.stopping.each(stream):
                self._take(event, stream)
        except Exception as error:
            raise TurnFailedError(error) from error
        if not self._complete:
            raise TurnFailedError(ConnectionError("it ended before it was complete"))
        message = stream.get_final_message()
        self.reply(message.stop_reason)
        return message

    def _take(self, event: ParsedBetaMessageStreamEvent[None], stream: BetaMessageStream[None]) -> None:
        match event.type:
            case "message_start":
                self._stream = stream
            case "text":
                self._run.publish(TextDelta(event.text))
            case "thinking":
                self._run.publish(ThinkingDelta(event.thinking))
            case "content_block_stop":
                self._completed_blocks += 1
            case "message_stop":
                self._complete = True
            case _:
                pass

    def break_off(self) -> None:
        """Let the API know that the rest of the reply is not wanted, also while a thread waits for it."""
        # What is complete has given its connection back; one of HTTP/2 may carry the replies of others.
        if self._reading is None or self._complete or self._reading.response.http_version != "HTTP/1.1":
            return
        connection = self._reading.response.extensions.get("network_stream")
        sock = None if connection is None else connection.get_extra_info("socket")
        if sock is not None:
            with suppress(OSError):  # it is closed already
                sock.shutdown(socket.SHUT_RDWR)

    def reply(self, stop_reason: str | None = None) -> None:
        """Say what the model said, as far as it came; once."""
        # The API wants what it refused to be left out from then on.
        content = [] if stop_reason == "refusal" else self._content()
        if content and not self._is_told:
            self._run.publish(Replied(self._run.turns + 1, content))
        self._is_told = True

    # -- its calls ---------------------------------------------------------------------------------

    def call(self, tool: RunnableTool, given: object) -> BetaFunctionToolResultType:
        """Run a tool that the runner calls, with everything that is to be known of it.

        Raises:
            ToolError: it failed, or is not approved of; the runner makes the model's result of it.
            UnderneathError: the run cannot go on.
        """
        self._run.stopping.check()
        block = self._next_call(tool.name)
        try:
            refusal = self._announce(block)
        except Exception as error:
            raise UnderneathError(error) from error
        if refusal is not None:
            raise self._failed(refusal)
        with self._run.stopping.ending(getattr(tool, "interrupt", None)):
            try:
                content = results.checked(self._run_tool(tool, block, given))
            except Exception as error:
                if not isinstance(error, ToolError):
                    _log.info("the tool %s failed", tool.name, exc_info=True)  # the transcript says it in a line
                raise self._failed(results.failure(error)) from error
        self._return(content)
        return results.to_send(content)

    def _announce(self, block: Block) -> str | None:
        """Say that a call is about to run: None, or the sentence that it gets where it may not."""
        self._announced, self._begun_s = block, None
        self._run.publish(ToolCalled(block["id"], block["name"], block["input"]))
        asked = ApprovalAsked(block["id"], block["name"], block["input"])
        return self._run.approvals.decide(asked, self._run.publish, self._run.stopping)

    def _run_tool(self, tool: RunnableTool, block: Block, given: object) -> object:
        self._begun_s = time.perf_counter()
        return _traced(tool, Cause(self._run.id, block["id"]), given)

    def _failed(self, told: str) -> ToolError:
        self._return(told, is_error=True)
        return ToolError(told)

    def _next_call(self, name: str) -> Block:
        # The runner does not say which call it is at; but it takes them in order.
        calls = [block for block in self._content() if block["type"] == "tool_use" and block["name"] == name]
        for call in calls:
            if call["id"] not in self._answered:
                return call
        raise LookupError(f"the reply has no call of {name} that waits")

    def _return(self, content: results.Content, *, is_error: bool = False) -> None:
        block = self._announced
        if block is None:
            return
        duration_s = 0.0 if self._begun_s is None else time.perf_counter() - self._begun_s
        result: Block = {"type": "tool_result", "tool_use_id": block["id"], "content": content}
        self._tell(block, result | ({"is_error": True} if is_error else {}), duration_s)
        self._announced = None  # not before: where an interrupt keeps the answer from being told, `stop` tells of it

    def _tell(self, call: Block, result: Block, duration_s: float) -> None:
        self._answered.add(call["id"])
        text, is_error = results.as_text(result.get("content")), bool(result.get("is_error"))
        self._run.publish(ToolReturned(call["id"], call["name"], text, is_error, duration_s, result))

    def take_answers(self, answers: Iterable[Block]) -> None:
        """Publish the calls that no tool of ours was asked for, with the runner's answers."""
        calls = {block.get("id"): block for block in self._content()}
        for result in answers:
            if result["tool_use_id"] not in self._answered:
                call = calls[result["tool_use_id"]]
                self._run.publish(ToolCalled(call["id"], call["name"], call["input"]))
                self._tell(call, dict(result), 0.0)

    # -- what it leaves ----------------------------------------------------------------------------

    def stop(self, status: Status, why: Callable[[Block], str]) -> None:
        """Close the turn where it is: what was said is told, and so is what became of the call that was reached.

        Args:
            status: how the run ends.
            why: answers a call that had begun.
        """
        self.reply()
        call = self._announced
        if call is not None and not self._has_told(call):
            begun = self._begun_s is not None
            self._return(why(call) if begun else unanswered.not_run(status), is_error=True)

    def _has_told(self, call: Block) -> bool:
        last = self._run.events[-1]
        return isinstance(last, ToolReturned) and last.tool_use_id == call["id"]

    def _content(self) -> list[Block]:
        if self._stream is None:
            return []
        content = [_sendable(block.to_dict()) for block in self._stream.current_message_snapshot.content]
        return content if self._complete else conversation.cut(content, self._completed_blocks)


class WatchedTool(BetaBuiltinFunctionTool):
    """A tool as the runner sees it: every call goes through the turn under way."""

    def __init__(self, tool: RunnableTool, call: Callable[[RunnableTool, object], BetaFunctionToolResultType]) -> None:
        self._tool = tool
        self._call = call

    def to_dict(self) -> BetaToolUnionParam:
        """The tool's declaration, unchanged."""
        return self._tool.to_dict()

    def call(self, input: object) -> BetaFunctionToolResultType:
        """Run the tool."""
        return self._call(self._tool, input)


def _sendable(block: Block) -> Block:
    """A call without NaN and infinity: a model may write such a number (1e999), and no request can hold it."""
    return json.loads(json.dumps(block), parse_constant=lambda _: None) if block["type"] == "tool_use" else block


def _traced(tool: RunnableTool, cause: Cause, given: object) -> BetaFunctionToolResultType:
    if not isinstance(tool, TracedTool):
        return tool.call(given)
    tool.cause = cause
    try:
        return tool.call(given)
    finally:
        tool.cause = None
