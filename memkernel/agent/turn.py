"""One turn: the reply as it streams, then its calls. It can end at any moment and leaves a valid conversation."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast, runtime_checkable

from anthropic.lib.tools import BetaBuiltinFunctionTool, BetaFunctionTool, BetaFunctionToolResultType, ToolError

from memkernel.agent import conversation
from memkernel.agent.conversation import Block, Message
from memkernel.agent.events import TextDelta, ThinkingDelta, ToolCalled, ToolReturned, TurnStarted
from memkernel.models import Cause

if TYPE_CHECKING:
    from anthropic.lib.streaming import BetaMessageStream, ParsedBetaMessageStreamEvent
    from anthropic.types.beta import BetaToolUnionParam
    from anthropic.types.beta.parsed_beta_message import ParsedBetaMessage

    from memkernel.agent.run import Run

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


class Turn:
    """The turn under way."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._reading: BetaMessageStream[None] | None = None
        self._stream: BetaMessageStream[None] | None = None
        self._completed_blocks = 0
        self._complete = False
        self._results: dict[str, Block] = {}
        self._running: tuple[Block, float] | None = None  # the call and when it began

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
        return stream.get_final_message()

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

    # -- its calls ---------------------------------------------------------------------------------

    def call(self, tool: RunnableTool, given: object) -> BetaFunctionToolResultType:
        """Run a tool that the runner calls, with everything that is to be known of it."""
        self._run.stopping.check()
        block = self._next_call(tool.name)
        self._run.publish(ToolCalled(block["id"], block["name"], block["input"]))
        self._running = block, time.perf_counter()
        try:
            returned = _traced(tool, Cause(self._run.id, block["id"]), given)
        except Exception as error:
            self._return(_told(error), is_error=True)
            raise  # the runner makes the model's result of it
        self._return(returned)
        return returned

    def _next_call(self, name: str) -> Block:
        # The runner does not say which call it is at; but it takes them in order.
        calls = [block for block in self._content() if block["type"] == "tool_use" and block["name"] == name]
        return next(call for call in calls if call["id"] not in self._results)

    def _return(self, content: object, *, is_error: bool = False) -> None:
        if self._running is None:
            return
        (block, started), self._running = self._running, None
        text = _as_text(content)
        # A lone surrogate in a text would break the next request.
        told = text.encode(errors="replace").decode() if isinstance(content, str) else content
        result: Block = {"type": "tool_result", "tool_use_id": block["id"], "content": told}
        self._results[block["id"]] = result | ({"is_error": True} if is_error else {})
        self._run.publish(ToolReturned(block["id"], block["name"], text, is_error, time.perf_counter() - started))

    def take_answers(self, answers: Iterable[Block]) -> None:
        """Take over the runner's answers, and publish the calls that no tool of ours was asked for."""
        content = self._content()
        for result in answers:
            if result["tool_use_id"] not in self._results:
                call = next(block for block in content if block.get("id") == result["tool_use_id"])
                self._run.publish(ToolCalled(call["id"], call["name"], call["input"]))
                told, is_error = _as_text(result.get("content") or ""), bool(result.get("is_error"))
                self._run.publish(ToolReturned(call["id"], call["name"], told, is_error, 0.0))
            self._results[result["tool_use_id"]] = result

    # -- what it leaves ----------------------------------------------------------------------------

    def messages(self, why: Callable[[str], str], *, paused: bool = False) -> list[Message]:
        """The reply and the answers to its calls; `why` (of a tool_use_id) answers a call that has no result."""
        spoken = conversation.reply(self._content(), paused=paused)
        answer = conversation.answers(conversation.tool_uses(spoken), self._results, lambda call: why(call["id"]))
        return [message for message in (spoken, answer) if message]

    def stop(self, why: Callable[[str], str]) -> list[Message]:
        """The messages of a turn that ends now; the call that runs ends with an error."""
        messages = self.messages(why)
        if self._running is not None:
            self._return(why(self._running[0]["id"]), is_error=True)
        return messages

    def is_rewritten(self) -> bool:
        """Whether the reply cannot be sent back as it came."""
        content = self._content()
        return conversation.reply(content, paused=True) != {"role": "assistant", "content": content}

    def is_running(self, tool_use_id: str) -> bool:
        """Whether this call has begun and not ended."""
        return self._running is not None and self._running[0]["id"] == tool_use_id

    def input_of(self, tool_use_id: str) -> dict[str, Any]:
        """What the model sent with a call."""
        return next(block["input"] for block in self._content() if block.get("id") == tool_use_id)

    def _content(self) -> list[Block]:
        if self._stream is None:
            return []
        content = [block.to_dict() for block in self._stream.current_message_snapshot.content]
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


def _traced(tool: RunnableTool, cause: Cause, given: object) -> BetaFunctionToolResultType:
    if not isinstance(tool, TracedTool):
        returned = tool.call(given)
        # Blocks may come from a generator, and are read twice: for the model and for the person.
        return list(returned) if isinstance(returned, Iterator) else returned
    tool.cause = cause
    try:
        return tool.call(given)
    finally:
        tool.cause = None


def _told(error: Exception) -> BetaFunctionToolResultType:
    return error.content if isinstance(error, ToolError) else repr(error)


def _as_text(content: object) -> str:
    if isinstance(content, str):
        return content
    blocks = cast("list[Block]", content) if isinstance(content, list) else []
    return "\n".join(block["text"] if block.get("type") == "text" else f"[{block.get('type')}]" for block in blocks)
