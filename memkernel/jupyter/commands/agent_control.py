"""`%agent`: the runs that go on: stop, approve, deny."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Final

from IPython.core.error import UsageError

from memkernel.agent.transcript import call_line, status_words
from memkernel.errors import AgentError
from memkernel.jupyter.arguments import Parser, gives_result
from memkernel.jupyter.command import Command
from memkernel.jupyter.commands.agent_choice import run_of
from memkernel.jupyter.commands.agent_options import LAST
from memkernel.jupyter.done import Done
from memkernel.jupyter.notebook import Notebook

if TYPE_CHECKING:
    from memkernel.agent.events import ApprovalAsked
    from memkernel.agent.run import Run

_PATIENCE_S: Final = 10.0
_NONE: Final = "no run goes on in this kernel\n`%agent ls --status running` lists those of others."


def _declare_stop(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", nargs="?", help="an id; default: the one that goes on in this kernel")
    gives_result(parser)


def stop(notebook: Notebook, args: Namespace, body: str | None) -> Done:
    """Stop a run of this kernel at once, or one of another kernel before its next step."""
    here = _running(notebook, args.run)
    if here is not None:
        return _stopped(here)
    if args.run is None:
        raise UsageError(_NONE)
    record = notebook.connection.stop_run(run_of(notebook, args.run).id)
    if record.status != "running":
        return Done(0, f"{record.id} has ended already: {status_words(record.status)}.")
    return Done(1, f"{record.id} runs in another kernel, which was asked to stop it before its next step.")


def _stopped(run: Run) -> Done:
    run.stop()
    try:
        run.wait(_PATIENCE_S)
    except Exception:  # what it failed with meanwhile is in its transcript
        return Done(1, f"{run.id} has ended: {status_words(run.status)}.")
    if run.status == "running":
        return Done(1, f"{run.id} stops as soon as the tool that it runs has ended.")
    return Done(1, f"{run.id} has ended: {status_words(run.status)}.")


def _running(notebook: Notebook, ref: str | None) -> Run | None:
    """The run of this kernel that is meant, if it goes on."""
    running = notebook.agents.running
    if ref is None and len(running) > 1:
        raise UsageError(f"{len(running)} runs go on here\nName one: {', '.join(run.id for run in running)}")
    found = [run for run in running if ref in (None, LAST, run.id)]
    return found[-1] if found else None


# -- approval ------------------------------------------------------------------------------------------


def _declare_answer(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", nargs="?", help="an id; default: the one that goes on in this kernel")


def _declare_approve(parser: Parser) -> None:
    _declare_answer(parser)
    parser.add_argument("-a", "--all", action="store_true", help="from now on all calls of this tool")
    gives_result(parser)


def approve(notebook: Notebook, args: Namespace, body: str | None) -> Done:
    """Let the call run that a run waits with."""
    run, asked = _waiting(notebook, args.run)
    run.approve(asked.tool_use_id, whole_tool=args.all)
    return Done(1, f"Approved: {call_line(asked.name, asked.input)}.")


def _declare_deny(parser: Parser) -> None:
    _declare_answer(parser)
    parser.add_argument("--reason", metavar="TEXT", default="", help="what the model is told")
    gives_result(parser)


def deny(notebook: Notebook, args: Namespace, body: str | None) -> Done:
    """Do not let it run; the model is told so, and the run goes on."""
    run, asked = _waiting(notebook, args.run)
    run.deny(asked.tool_use_id, reason=args.reason)
    return Done(1, f"Denied: {call_line(asked.name, asked.input)}.")


def _waiting(notebook: Notebook, ref: str | None) -> tuple[Run, ApprovalAsked]:
    run = _running(notebook, ref)
    if run is None:
        raise UsageError(_NONE)
    waiting = run.approvals.waiting
    if not waiting:
        raise AgentError(f"{run.id} waits for no approval", hint="`%agent show` shows how far it has come.")
    return run, waiting[0]


COMMANDS: Final = (
    Command("stop", "Stop a run that goes on.", _declare_stop, stop, ("%agent stop", "%agent stop run_…"), of="agent"),
    Command(
        "approve", "Let the call run that a run waits with.", _declare_approve, approve, ("%agent approve",), of="agent"
    ),
    Command(
        "deny",
        "Do not let it run; the model is told so.",
        _declare_deny,
        deny,
        ('%agent deny --reason "not that folder"',),
        of="agent",
    ),
)
