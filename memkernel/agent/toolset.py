"""The tools of a sandbox for the official SDK's tool runners: bash, read, write, edit, glob, grep (CONTRACT E).

    box = mk.Sandbox(notes)
    client.beta.messages.tool_runner(model=…, messages=…, tools=box.tools())

Their names, their order and what the model reads of them are those of the SDK's own agent toolset; they run inside the
sandbox, and each call is a sync point: what it wrote into the mounts is saved when it ends, and what is not is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

from anthropic.lib.tools import BetaBuiltinFunctionTool, BetaFunctionToolResultType, ToolError
from anthropic.types.beta import (
    BetaManagedAgentsAgentToolset20260401BashInput,
    BetaManagedAgentsAgentToolset20260401EditInput,
    BetaManagedAgentsAgentToolset20260401GlobInput,
    BetaManagedAgentsAgentToolset20260401GrepInput,
    BetaManagedAgentsAgentToolset20260401ReadInput,
    BetaManagedAgentsAgentToolset20260401WriteInput,
    BetaToolParam,
)

from memkernel.agent.lost import KeepsLost
from memkernel.errors import SyncError, UnisolatedModelError
from memkernel.models import Cause, RunKind, ToolAnswer

if TYPE_CHECKING:
    from pydantic import BaseModel

    from memkernel.runtime import RunningSession

READING: Final = frozenset({"read", "glob", "grep"})
"""The tools that change nothing."""

NOT_RUN: Final = "Memory is unavailable right now; this was not run."
UNKNOWN_WHETHER_DONE: Final = "The sandbox is unavailable right now; it is unknown whether this was done."


class _Declared(NamedTuple):
    name: str
    description: str
    given: type[BaseModel]


_DECLARED: Final = (
    _Declared("bash", "Run a command in a persistent bash shell.", BetaManagedAgentsAgentToolset20260401BashInput),
    _Declared("read", "Read a file rooted at the working directory.", BetaManagedAgentsAgentToolset20260401ReadInput),
    _Declared(
        "write",
        "Write a file, creating parent directories as needed.",
        BetaManagedAgentsAgentToolset20260401WriteInput,
    ),
    _Declared("edit", "Replace text in a file by exact string match.", BetaManagedAgentsAgentToolset20260401EditInput),
    _Declared(
        "glob", "List files matching a glob pattern, newest first.", BetaManagedAgentsAgentToolset20260401GlobInput
    ),
    _Declared("grep", "Search file contents for a regular expression.", BetaManagedAgentsAgentToolset20260401GrepInput),
)
"""As the SDK's `beta_agent_toolset_20260401` declares them (a test compares)."""


class SandboxTool(KeepsLost, BetaBuiltinFunctionTool):
    """One of a sandbox's tools, for `client.beta.messages.tool_runner`."""

    cause: Cause | None = None
    """The tool call that is being answered. The agent loop sets it before each call."""

    def __init__(self, session: RunningSession, declared: _Declared) -> None:
        self._session = session
        self._call = self._unwanted = object()  # the call under way; the one that somebody has ended
        self._declaration: BetaToolParam = {
            "name": declared.name,
            "description": declared.description,
            "input_schema": declared.given.model_json_schema(),
        }

    @property
    def backend(self) -> Literal["docker", "local"]:
        """Where it works, of the two kinds of sandboxes."""
        return self._session.backend.kind

    def to_dict(self) -> BetaToolParam:
        """The tool's declaration."""
        return self._declaration

    def call(self, input: object) -> BetaFunctionToolResultType:
        """Run it, and save what it wrote.

        Raises:
            ToolError: it failed, or not all that it wrote is saved: the model reads why.
        """
        name = self._declaration["name"]
        if not isinstance(input, Mapping):
            raise ToolError(f"{name}: the input is no object")
        try:
            answer = self._answer(name, cast("Mapping[str, object]", input))
        except Exception as error:  # nothing of the machine may reach the model
            self.keep_lost(error)
            answer = _of_lost(error)
        if answer.is_error:
            raise ToolError(_content(answer))
        return _content(answer)

    def _answer(self, name: str, given: Mapping[str, object]) -> ToolAnswer:
        self._call = call = object()
        return self._session.call_tool(name, given, cause=self.cause, is_wanted=lambda: self._unwanted is not call)

    def interrupt(self) -> None:
        """End the call under way, from any thread: what it wrote is saved, and its answer says so."""
        self._unwanted = self._call
        self._session.interrupt_tool(self.cause)


def sandbox_tools(session: RunningSession) -> list[SandboxTool]:
    """The tools of a running sandbox, in the SDK's order."""
    return [SandboxTool(session, declared) for declared in _DECLARED]


def check_isolation(kind: RunKind, backend: Literal["docker", "local"], *, allow_unisolated: bool = False) -> None:
    """Refuse to let a live model run code that nothing isolates from this machine (SANDBOX.md, Decision 8).

    Raises:
        UnisolatedModelError: it would, and nobody allowed it.
    """
    if kind == "live" and backend == "local" and not allow_unisolated:
        raise UnisolatedModelError


def _of_lost(error: Exception) -> ToolAnswer:
    """What the model reads where the store, the engine or the disk failed: nothing of the machine."""
    if isinstance(error, SyncError):
        return error.result or ToolAnswer(NOT_RUN, is_error=True)
    return ToolAnswer(UNKNOWN_WHETHER_DONE, is_error=True)


def _content(answer: ToolAnswer) -> Any:
    return answer.content if isinstance(answer.content, str) else [dict(block) for block in answer.content]
