"""`%%agent`: the cell's text is the prompt, the agent works with the memory tool on a store."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Final

from IPython.core.error import UsageError

from memkernel.errors import AgentError
from memkernel.handle.store import Store
from memkernel.jupyter.arguments import Parser, count, read_file, takes_store, variable
from memkernel.jupyter.command import Command
from memkernel.jupyter.notebook import Notebook
from memkernel.jupyter.presenters import show_once

if TYPE_CHECKING:
    from memkernel.agent.run import Run
    from memkernel.handle.agent import Agent


def _declare_agent(parser: Parser) -> None:
    takes_store(parser)
    parser.add_argument("-m", "--model", metavar="MODEL", help="default: MEMKERNEL_MODEL, or `%%memory config model`")
    system = parser.add_mutually_exclusive_group()
    system.add_argument("--system", metavar="FILE", help="a file with the system prompt")
    system.add_argument("--system-var", metavar="VAR", type=variable, help="a variable with the system prompt")
    parser.add_argument("--max-turns", metavar="N", type=count, help="replies of the model at most")
    parser.add_argument("--scope", metavar="NAME", help="the agent sees only /NAME/ of the store, as its /memories")
    parser.add_argument("--new", action="store_true", help="begin a new conversation")
    # Not `gives_result`: the run is handed over also where it fails, and is shown while it goes on.
    parser.add_argument("-o", "--out", dest="run", metavar="VAR", type=variable, help="put the run into this variable")
    parser.add_argument("-q", "--quiet", dest="silent", action="store_true", help="show nothing")


def agent(notebook: Notebook, args: Namespace, body: str | None) -> None:
    """Let the agent of this kernel and store answer, going on with its conversation unless `--new` is given."""
    prompt = (body or "").strip()
    if not prompt:
        raise UsageError("%%agent has no prompt\nWrite it below: Remember that I prefer SI units")
    try:
        stopped = _run(notebook, args, prompt).status == "stopped"
    except KeyboardInterrupt:  # before the run had begun: later ones end it as stopped
        stopped = True
    if stopped:
        # An error, so that the cells below do not run.
        raise AgentError("the run was stopped", hint="The conversation goes on with the next %%agent cell.")


def _run(notebook: Notebook, args: Namespace, prompt: str) -> Run:
    chosen = _agent_of(notebook, notebook.store(args.store), args)
    live = notebook.preferences["render"] != "static"
    before = chosen.last_run
    try:
        return chosen.run(prompt, show=live and not args.silent)
    finally:
        # Also a run that failed or was stopped: what it did is worth looking at.
        if chosen.last_run is not before:
            _hand_over(notebook, args, chosen.last_run, shown=live)


def _hand_over(notebook: Notebook, args: Namespace, run: Run | None, *, shown: bool) -> None:
    if run is None:
        return
    if args.run:
        notebook.shell.push({args.run: run})
    if not shown and not args.silent:
        show_once(run)


def _agent_of(notebook: Notebook, store: Store, args: Namespace) -> Agent:
    options = {
        "model": args.model or notebook.preferences["model"],
        "system": _system_prompt(notebook, args),
        "max_turns": args.max_turns,
        "scope": args.scope,
    }
    given = {name: value for name, value in options.items() if value is not None}
    return notebook.agent(store, given, new=args.new)


def _system_prompt(notebook: Notebook, args: Namespace) -> str | None:
    if args.system is not None:
        return _text(args.system, read_file(args.system))
    return None if args.system_var is None else _text(args.system_var, notebook.value_of(args.system_var))


def _text(origin: str, value: str | bytes) -> str:
    try:
        return value if isinstance(value, str) else value.decode()
    except UnicodeDecodeError:
        raise UsageError(f"{origin} is not UTF-8\nA system prompt is text.") from None


AGENT: Final = Command(
    "",
    "Give the cell's text to an agent that works with the memory.",
    _declare_agent,
    agent,
    ("%%agent", "%%agent -s team-notes --new -o run", "%%agent --model scripted --max-turns 5"),
    body="always",
    of="agent",
)
