"""The memory tool for the official SDK's tool runners: adapters of its two abstract classes.

    tool = memory_tool(database, store.id)
    client.beta.messages.tool_runner(model=…, messages=…, tools=[tool])

`MemoryTool(backend)` does the same for a back end of your own (`memkernel.MemoryBackend`).
"""

from __future__ import annotations

from typing import Final, TypedDict, Unpack, cast

# The SDK's own thread hop; unlike asyncio's it also works under trio, and waits for the thread when cancelled.
import anyio.to_thread
from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anthropic.types.beta import BetaCacheControlEphemeralParam, BetaMemoryTool20250818Command

from memkernel.agent import checks
from memkernel.agent.lost import KeepsLost
from memkernel.errors import DatabaseError, DatabaseUnavailableError, InvalidInputError, MemkernelError, MemoryToolError
from memkernel.models import Actor, Cause
from memkernel.store import Database
from memkernel.tool.commands import MemoryBackend, run
from memkernel.tool.paths import DotDot
from memkernel.tool.postgres import OnExisting, PostgresBackend
from memkernel.tool.words import Profile

NOTHING_CHANGED: Final = "Memory is unavailable right now; nothing was changed."
UNKNOWN_WHETHER_SAVED: Final = "Memory is unavailable right now; it is unknown whether this was saved."


class _Adapter(KeepsLost):
    """What both colours share: every answer is a text, every failure a `ToolError`."""

    backend: MemoryBackend
    session_id: str | None
    """The session that the changes are by; None where the back end is not memkernel's own."""

    def _adopt(self, backend: object, session_id: str | None) -> None:
        if not isinstance(backend, MemoryBackend):
            raise InvalidInputError(f"backend is a memkernel.MemoryBackend, not {type(backend).__name__}")
        self.backend = backend
        self.session_id = None if session_id is None else checks.session_id(session_id)

    @property
    def cause(self) -> Cause | None:
        """The tool call that is being answered. The agent loop sets it before each call."""
        return self.backend.cause

    @cause.setter
    def cause(self, cause: Cause | None) -> None:
        self.backend.cause = cause

    def _answer(self, command: object) -> str:
        try:
            return run(self.backend, command)
        except MemoryToolError as error:
            raise ToolError(str(error)) from None
        except Exception as error:  # a back end of any kind: nothing of it may reach the model
            self.keep_lost(error)
            raise ToolError(NOTHING_CHANGED if _changed_nothing(error, command) else UNKNOWN_WHETHER_SAVED) from None


def _changed_nothing(error: Exception, command: object) -> bool:
    if isinstance(command, dict) and cast("dict[str, object]", command).get("command") == "view":
        return True
    if isinstance(error, DatabaseUnavailableError):
        return error.saved is False
    return isinstance(error, MemkernelError) and not isinstance(error, DatabaseError)


class MemoryTool(_Adapter, BetaAbstractMemoryTool):
    """A memory back end as a tool for `client.beta.messages.tool_runner`."""

    def __init__(
        self,
        backend: MemoryBackend,
        *,
        session_id: str | None = None,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._adopt(backend, session_id)

    def call(self, input: object) -> str:
        return self._answer(input)

    def execute(self, command: BetaMemoryTool20250818Command) -> str:
        return self._answer(dict(command))

    view = create = str_replace = insert = delete = rename = execute

    def clear_all_memory(self) -> str:
        self.backend.clear()
        return "All memory cleared"


class AsyncMemoryTool(_Adapter, BetaAsyncAbstractMemoryTool):
    """The same for the async client's tool runner: a thread hop over the same code."""

    def __init__(
        self,
        backend: MemoryBackend,
        *,
        session_id: str | None = None,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._adopt(backend, session_id)

    async def call(self, input: object) -> str:
        return await anyio.to_thread.run_sync(self._answer, input)

    async def execute(self, command: BetaMemoryTool20250818Command) -> str:
        return await self.call(dict(command))

    view = create = str_replace = insert = delete = rename = execute

    async def clear_all_memory(self) -> str:
        await anyio.to_thread.run_sync(self.backend.clear)
        return "All memory cleared"


class MemoryToolOptions(TypedDict, total=False):
    """The options of `memory_tool`, for those who hand them on."""

    session_id: str | None
    scope: str | None
    profile: Profile
    on_existing: OnExisting
    dotdot: DotDot
    cache_control: BetaCacheControlEphemeralParam | None


def memory_tool(
    database: Database,
    memory_store_id: str,
    *,
    session_id: str | None = None,
    scope: str | None = None,
    profile: Profile = "sdk",
    on_existing: OnExisting = "error",
    dotdot: DotDot = "resolve",
    cache_control: BetaCacheControlEphemeralParam | None = None,
) -> MemoryTool:
    """The memory tool on a memory store (CONTRACT 0.3, row 20).

    Args:
        database: where the store is.
        memory_store_id: `memstore_…`.
        session_id: the session that the changes are by: `sesn_` and up to 64 letters, digits, `_` or `-`. One is
            minted where none is given.
        scope: one path segment; the tool then sees only the tree under `/{scope}/`, as its `/memories`.
        profile: whose sentences the model reads: those of the SDK's own tool, or of the documentation.
        on_existing: whether `create` refuses or replaces a file that exists.
        dotdot: whether `..` in a path is resolved or refused.
        cache_control: sent with the tool's declaration.

    Raises:
        InvalidInputError: an option has an unknown value, or the session's id is none.
    """
    session_id = checks.session_id(session_id)
    backend = PostgresBackend(
        database,
        memory_store_id,
        actor=Actor("session_actor", session_id),
        scope=scope,
        profile=profile,
        on_existing=on_existing,
        dotdot=dotdot,
    )
    return MemoryTool(backend, session_id=session_id, cache_control=cache_control)


def async_memory_tool(
    database: Database, memory_store_id: str, **options: Unpack[MemoryToolOptions]
) -> AsyncMemoryTool:
    """`memory_tool` for the async client."""
    tool = memory_tool(database, memory_store_id, **options)
    return AsyncMemoryTool(tool.backend, session_id=tool.session_id, cache_control=options.get("cache_control"))
