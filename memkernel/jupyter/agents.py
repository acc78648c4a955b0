"""The agents of one notebook: whose conversation a cell goes on with, and which of their runs go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memkernel.errors import AgentError

if TYPE_CHECKING:
    from memkernel.agent.run import Run
    from memkernel.handle.agent import Agent
    from memkernel.handle.sandbox import Sandbox
    from memkernel.handle.store import Store


@dataclass(frozen=True, slots=True)
class _Known:
    """An agent and the options that it was made with."""

    agent: Agent
    options: Mapping[str, Any]


class Agents:
    """One conversation for each pair of a store and a sandbox; a recording has one of its own each time."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], _Known] = {}
        self._made: list[Agent] = []

    @property
    def current(self) -> Agent | None:
        """The agent of the newest cell; None where no cell had one."""
        return self._made[-1] if self._made else None

    @property
    def running(self) -> list[Run]:
        """The runs that go on here, oldest first."""
        return [run for agent in self._made if (run := agent.last_run) is not None and run.status == "running"]

    def take(self, store: Store | None, box: Sandbox | None, options: Mapping[str, Any], *, new: bool) -> Agent:
        """The agent that a cell means: with other options than before it is another one in the same conversation.

        Raises:
            AgentError: its run goes on, in the background.
            MemkernelError: an option is none.
        """
        place = (store.id if store else "", box.id if box else "")
        known = None if new or "replay" in options else self._known.get(place)
        if known is not None:
            _check_free(known.agent)
        if known is None or known.options != options:
            known = _Known(_made(store, box, options, known.agent if known else None), options)
            if "replay" not in options:
                self._known[place] = known
        self._made = [*(each for each in self._made if each is not known.agent and _is_busy(each)), known.agent]
        return known.agent

    def clear(self) -> None:
        """Forget all of them; runs that go on do so."""
        self._known.clear()
        self._made = [agent for agent in self._made if _is_busy(agent)]


def _made(store: Store | None, box: Sandbox | None, options: Mapping[str, Any], before: Agent | None) -> Agent:
    from memkernel.handle.agent import Agent

    place: dict[str, Any] = {"store": store} if box is None else {"store": store, "sandbox": box}
    if before is None:
        return Agent(**place, **options)
    if box is None:  # else it writes as the sandbox's session
        place["session_id"] = before.session_id
    made = Agent(**place, **options)
    made.messages, made.last_run = before.messages, before.last_run
    return made


def _is_busy(agent: Agent) -> bool:
    return agent.last_run is not None and agent.last_run.status == "running"


def _check_free(agent: Agent) -> None:
    if _is_busy(agent):
        raise AgentError(
            "this conversation's run goes on in the background",
            hint="`%agent stop` ends it; `%%agent --new` begins another conversation beside it.",
        )
