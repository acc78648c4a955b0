"""The agents of one notebook: whose conversation a cell goes on with, and which of their runs go on."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from memkernel.errors import AgentError
from memkernel.handle.runs import running

if TYPE_CHECKING:
    from memkernel.agent.run import Run
    from memkernel.handle.agent import Agent
    from memkernel.handle.sandbox import Sandbox
    from memkernel.handle.store import Store


_PATIENCE_S: Final = 10.0

Options: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Known:
    """An agent and the options that its line had."""

    agent: Agent
    options: Options


class Agents:
    """One conversation for each pair of a store and a sandbox; a recording has one of its own each time.

    Attributes:
        current: the agent of the newest cell.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], _Known] = {}
        self.current: Agent | None = None

    @property
    def running(self) -> list[Run]:
        """The runs that go on in this kernel, also those that were begun in Python, oldest first."""
        return running()

    def take(
        self, store: Store | None, box: Sandbox | None, options: Options, *, otherwise: Options, new: bool
    ) -> Agent:
        """The agent that a cell means: with other options than before it is another one in the same conversation.

        Args:
            store: of its memory tool.
            box: its sandbox.
            options: what the line says.
            otherwise: what holds where it says nothing.
            new: begin a new conversation.

        Raises:
            AgentError: its run goes on, in the background.
            MemkernelError: an option is none.
        """
        place = (store.id if store else "", box.id if box else "")
        known = None if new or "replay" in options else self._known.get(place)
        if known is not None:
            _check_free(known.agent)
        if known is None or known.options != options:
            made = _made(store, box, {**otherwise, **options}, known.agent if known else None)
            known = _Known(made, options)
            if "replay" not in options:
                self._known[place] = known
        self.current = known.agent
        return known.agent

    def clear(self) -> None:
        """Forget all of them; runs that go on do so."""
        self._known.clear()
        self.current = None


def _made(store: Store | None, box: Sandbox | None, options: Options, before: Agent | None) -> Agent:
    from memkernel.handle.agent import Agent

    if before is None:
        return Agent(store=store, sandbox=box, **options)
    session_id = None if box else before.session_id  # with a sandbox it is the sandbox's
    made = Agent(store=store, sandbox=box, session_id=session_id, **options)
    made.messages, made.last_run = before.messages, before.last_run
    return made


def _check_free(agent: Agent) -> None:
    last = agent.last_run
    if last is not None and last.status == "running":
        raise AgentError(
            "this conversation's run goes on in the background",
            hint="`%agent stop` ends it; `%%agent --new` begins another conversation beside it.",
        )
    with suppress(Exception):  # what it failed with was told
        if last is not None:  # it has ended, and may still be putting things away
            last.wait(_PATIENCE_S)
