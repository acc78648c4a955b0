"""`%%agent`: the cell's text is the prompt; the agent works with a store's memory, a sandbox's tools, or both."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from IPython.core.error import UsageError

from memkernel.agent.asking import ask
from memkernel.agent.events import Event, RunStarted
from memkernel.errors import AgentError, StoreNotFoundError
from memkernel.jupyter.command import Command
from memkernel.jupyter.commands import agent_options
from memkernel.jupyter.commands.agent_choice import run_of
from memkernel.jupyter.commands.agent_request import DryRun, dry_run
from memkernel.jupyter.notebook import Notebook
from memkernel.jupyter.presenters import show_once
from memkernel.jupyter.shell import can_update

if TYPE_CHECKING:
    from memkernel.agent.run import Run
    from memkernel.handle.agent import Agent
    from memkernel.handle.sandbox import Sandbox
    from memkernel.handle.store import Store
    from memkernel.models import RunRecord


def agent(notebook: Notebook, args: Namespace, body: str | None) -> DryRun | None:
    """Let the agent of this kernel and store answer, going on with its conversation unless `--new` is given."""
    agent_options.check(args)
    prompt = _prompt(args, (body or "").strip())
    if args.dry_run:
        return _Cell.of(notebook, args).look(prompt)
    if _Cell.of(notebook, args).run(prompt).status == "stopped":
        raise stopped()
    return None


def stopped() -> AgentError:
    """What a cell ends with whose run was stopped: an error, so that the cells below do not run."""
    return AgentError("the run was stopped", hint="The conversation goes on with the next %%agent cell.")


def _prompt(args: Namespace, written: str) -> str:
    if not written and args.replay:
        from memkernel.agent.recording import load

        return load(args.replay).prompt
    if not written and not args.resume:
        raise UsageError("%%agent has no prompt\nWrite it below: Remember that I prefer SI units")
    return written


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell, the agent that it means, and the run that it goes on with."""

    notebook: Notebook
    args: Namespace
    agent: Agent
    before: RunRecord | None

    @classmethod
    def of(cls, notebook: Notebook, args: Namespace) -> _Cell:
        """What the line says.

        Raises:
            UsageError, MemkernelError: it names what is not there, or cannot be.
        """
        before = run_of(notebook, args.resume) if args.resume else None
        options = agent_options.options_of(notebook, args)
        otherwise = {"model": before.model} if before is not None and before.kind != "recorded" else {}
        box = None if args.sandbox is None else notebook.sandboxes.find(args.sandbox or None)
        store = _store(notebook, args, box, before)
        new = args.new or before is not None
        chosen = notebook.agents.take(store, box, options, otherwise=otherwise, new=new)
        return cls(notebook, args, chosen, before)

    def look(self, prompt: str) -> DryRun | None:
        """The request as it would be sent."""
        shown = dry_run(self.agent, prompt)
        if self.args.run:
            self.notebook.shell.push({self.args.run: shown})
        return None if self.args.silent else shown

    def run(self, prompt: str) -> Run:
        """Run it, and hand over the run, also one that failed or was stopped: what it did is worth looking at."""
        last, live = self.agent.last_run, self._is_live()
        try:
            run = self._begin(prompt, show=live and not self.args.silent)
            if self.args.bg and not (live or self.args.silent):
                print(f"{run.id} goes on in the background: `%agent show {run.id}`, `%agent stop`.")
            return run
        finally:
            if self.agent.last_run is not last:
                self._hand_over(self.agent.last_run, shown=live or self.args.bg)

    def _is_live(self) -> bool:
        """Whether its output can follow it: one in the background needs an output that can be replaced."""
        if self.args.bg:
            return can_update(self.notebook.shell)
        return self.notebook.preferences["render"] != "static"

    def _begin(self, prompt: str, *, show: bool) -> Run:
        sink = None if show else self._ask_unshown
        if self.before is not None:
            return self.agent.resume(self.before.id, prompt or None, show=show, sink=sink, wait=not self.args.bg)
        return (self.agent.start if self.args.bg else self.agent.run)(prompt, show=show, sink=sink)

    def _ask_unshown(self, event: Event) -> None:
        """A run that is not shown asks nobody: in Python other threads answer, but a cell holds up all that could."""
        if isinstance(event, RunStarted):
            self.agent.approvals.asker = ask

    def _hand_over(self, run: Run | None, *, shown: bool) -> None:
        if run is None:
            return
        if self.args.run:
            self.notebook.shell.push({self.args.run: run})
        if not shown and not self.args.silent:
            show_once(run)


def _store(notebook: Notebook, args: Namespace, box: Sandbox | None, before: RunRecord | None) -> Store | None:
    """The store of the memory tool: the one that is named, else that of the run before, else the one in use.

    With a sandbox it has to be named: the folders there are the memory already.
    """
    if args.store is None and before is not None and before.memory_store_ids and box is None:
        return _store_of(notebook, before)
    if args.store is None and box is not None:
        return None
    return notebook.store(args.store)


def _store_of(notebook: Notebook, before: RunRecord) -> Store:
    try:
        return notebook.connection.store(before.memory_store_ids[0])
    except StoreNotFoundError:
        raise UsageError(
            f"the store of {before.id} was deleted\n`--store STORE` goes on with its conversation on another one."
        ) from None


_EXAMPLES: Final[Any] = (
    "%%agent",
    "%%agent -s team-notes --new -o run",
    "%%agent --sandbox main --max-turns 20 --max-cost 0.50 --approve-tool bash=ask",
    "%agent --replay demo --speed 5",
    "%agent --resume",
    "%%agent --bg",
)

AGENT: Final = Command(
    "",
    "Give the cell's text to an agent: it works with the memory, with a sandbox, or with both.",
    agent_options.declare,
    agent,
    _EXAMPLES,
    body="either",
    of="agent",
)
