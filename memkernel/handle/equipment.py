"""What an agent works with: a memory store, a sandbox, tools of its own."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memkernel.agent import checks
from memkernel.errors import InvalidInputError
from memkernel.handle import runs

if TYPE_CHECKING:
    from memkernel.agent.request import Request
    from memkernel.handle.sandbox import Sandbox
    from memkernel.handle.store import Store
    from memkernel.models import RunKind
    from memkernel.store import Database


class Equipment:
    """What an agent works with.

    Attributes:
        store: the memory of its memory tool, if any.
        sandbox: where its other tools work, if any.
    """

    def __init__(self, store: object, sandbox: object, own_tools: object, **memory_options: Any) -> None:
        """Args:
            store: a `memkernel.Store` or None.
            sandbox: a `memkernel.Sandbox` or None.
            own_tools: a person's.
            **memory_options: of `store.memory_tool`.

        Raises:
            InvalidInputError: one is of another kind, or they are of two databases.
        """
        self.store = _checked_store(store)
        self.sandbox = _checked_sandbox(sandbox)
        self._own_tools = checks.each("tools", own_tools)
        self._memory_options = memory_options
        databases = {id(one.connection.database) for one in self.stores}
        if len(databases) > 1:
            raise InvalidInputError(
                "the store and the sandbox's stores are of two connections", hint="Take all from one `mk.connect()`."
            )

    @property
    def stores(self) -> list[Store]:
        """All stores, the memory tool's first; each once."""
        mounted = [one.store for one in self.sandbox.stores] if self.sandbox else []
        return list({one.id: one for one in [*([self.store] if self.store else []), *mounted]}.values())

    @property
    def database(self) -> Database | None:
        """Where they are; None where there is neither a store nor a sandbox."""
        return self.stores[0].connection.database if self.stores else None

    def check_isolation(self, kind: RunKind, *, allow_unisolated: bool) -> None:
        """Refuse a live model in a sandbox that does not isolate, unless that is allowed; also by its tools alone.

        Raises:
            UnisolatedModelError: it is not.
            InvalidInputError: `allow_unisolated` is neither True nor False.
        """
        from memkernel.agent.toolset import SandboxTool, check_isolation

        allowed = checks.flag("allow_unisolated", allow_unisolated)
        tools = [tool for tool in self._own_tools if isinstance(tool, SandboxTool)]
        for each in [*([self.sandbox] if self.sandbox else []), *tools]:
            check_isolation(kind, each.backend, allow_unisolated=allowed)

    def start(self, session_id: str) -> str:
        """Start the sandbox: whose session everything is by; without one it is this one.

        Raises:
            SandboxError: it cannot be started.
        """
        return session_id if self.sandbox is None else self.sandbox.start().id

    def introduced(self, request: Request) -> Request:
        """The request with what its system prompt says of the mounted stores (CONTRACT C.6)."""
        from memkernel.agent.prompt import system_prompt

        resources = self.sandbox.session.resources if self.sandbox else ()
        return replace(request, system=system_prompt(request.system, resources))

    @property
    def reading(self) -> Set[str]:
        """The tools that only read, besides the memory tool's view."""
        from memkernel.agent.toolset import READING

        return READING if self.sandbox else frozenset()

    def tools(self, session_id: str) -> list[object]:
        """The tools, memory first; what the memory tool changes is by this session."""
        memory = [self.store.memory_tool(session_id=session_id, **self._memory_options)] if self.store else []
        return [*memory, *(self.sandbox.tools() if self.sandbox else ()), *self._own_tools]

    def is_saved(self, memory_store_ids: Sequence[str], run_id: str, tool_use_id: str) -> bool | None:
        """Whether a call has changed one of the stores, once and for all; None where nobody can tell.

        Raises:
            DatabaseUnavailableError: nobody can say yet.
        """
        if self.database is None:
            return None
        saved = runs.is_saved(self.database, memory_store_ids, run_id, tool_use_id)
        # A memory tool that is not of a store here changes what no store knows of.
        return saved if saved or self.store is not None else None


def _checked_store(store: object) -> Store | None:
    from memkernel.handle.store import Store

    if store is None or isinstance(store, Store):
        return store
    raise InvalidInputError(
        f"store is a memkernel.Store, not {type(store).__name__}",
        hint='Take one with mk.connect().store("Team notes"); a back end of your own goes into tools, as a MemoryTool.',
    )


def _checked_sandbox(sandbox: object) -> Sandbox | None:
    if sandbox is None:
        return None
    from memkernel.handle.sandbox import Sandbox

    if isinstance(sandbox, Sandbox):
        return sandbox
    raise InvalidInputError(
        f"sandbox is a memkernel.Sandbox, not {type(sandbox).__name__}", hint="`mk.Sandbox(store)` makes one."
    )
