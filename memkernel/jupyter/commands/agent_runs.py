"""`%agent`: the runs that the database keeps, and those that go on here: ls, show, replay, cost, context, rm."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, get_args

from IPython.core.error import UsageError

from memkernel import present
from memkernel.errors import AgentError
from memkernel.handle.points import DAYS, parse_point
from memkernel.handle.records import Records
from memkernel.jupyter.arguments import Parser, asks, gives_result, speed, takes_limit, takes_store
from memkernel.jupyter.command import Command
from memkernel.jupyter.commands.agent_choice import run_of, stored, takes_run
from memkernel.jupyter.confirm import confirm
from memkernel.jupyter.done import Done
from memkernel.jupyter.notebook import Notebook
from memkernel.models import RunKind, RunRecord, RunStatus, Usage
from memkernel.render import counted, dollars, dollars_text, row_of, tokens, who_answered

if TYPE_CHECKING:
    from memkernel.agent.run import Run
    from memkernel.agent.stored_run import StoredRun

_RUNS: Final = 20
_NONE: Final = "No run was kept since then."


# -- which there are, and what they cost -------------------------------------------------------------


def _declare_ls(parser: Parser) -> None:
    parser.add_argument("--status", choices=get_args(RunStatus), help="only those that stand so")
    takes_store(parser)
    takes_limit(parser, f"runs; default: {_RUNS}")
    gives_result(parser, rows=True)


def ls(notebook: Notebook, args: Namespace, body: str | None) -> Records[RunRecord]:
    """The runs of all kernels, newest first."""
    return notebook.connection.runs(store=args.store, status=args.status, limit=args.limit or _RUNS)


def moment(text: str) -> datetime:
    """An argparse type: a moment of the past."""
    found = _moment(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time: {', '.join(DAYS)} or @2026-11-30T10:00")
    return found


def _moment(text: str) -> datetime | None:
    try:
        found = parse_point(text)
    except ValueError:
        return None
    return found if isinstance(found, datetime) else None


@dataclass(frozen=True, slots=True)
class ModelCost:
    """What the runs of one model cost. `unpriced`: how many of them have no known price, and are not in `cost_usd`."""

    model: str
    kind: RunKind
    runs: int
    turns: int
    usage: Usage
    cost_usd: float
    unpriced: int


@row_of.register
def _(row: ModelCost) -> Mapping[str, object]:
    known = row.runs - row.unpriced
    remark = f"without {counted(row.unpriced, 'run')}: no price is known" if row.unpriced else ""
    return {
        "model": who_answered(row.model, row.kind),
        "runs": row.runs,
        "turns": row.turns,
        "tokens": tokens(row.usage),
        "cost": dollars(row.cost_usd) if known else dollars(None),
        **({"remark": remark} if remark else {}),
    }


def _declare_cost(parser: Parser) -> None:
    parser.add_argument(
        "--since", metavar="TIME", type=moment, help="today, yesterday or @2026-11-30T10:00; default: all"
    )
    takes_store(parser)
    gives_result(parser, rows=True)


def cost(notebook: Notebook, args: Namespace, body: str | None) -> Records[ModelCost]:
    """What the runs have used and cost, a row a model."""
    rows = costs(notebook.connection.runs(store=args.store, since=args.since))
    if len(rows) > 1 and not args.quiet:
        print(f"{dollars_text(sum(row.cost_usd for row in rows))} in all, for {sum(row.runs for row in rows):,} runs.")
    return Records(rows, kind=ModelCost, empty=_NONE)


def costs(records: Iterable[RunRecord]) -> list[ModelCost]:
    """The sums of each model, the dearest first."""
    groups: dict[tuple[str, RunKind], list[RunRecord]] = {}
    for record in records:
        groups.setdefault((record.model, record.kind), []).append(record)
    rows = [_cost_of(model, kind, runs) for (model, kind), runs in groups.items()]
    return sorted(rows, key=lambda row: (-row.cost_usd, row.model, row.kind))


def _cost_of(model: str, kind: RunKind, runs: list[RunRecord]) -> ModelCost:
    return ModelCost(
        model,
        kind,
        runs=len(runs),
        turns=sum(run.turns for run in runs),
        usage=sum((run.usage for run in runs), Usage()),
        cost_usd=sum(run.cost_usd or 0.0 for run in runs),
        unpriced=sum(run.cost_usd is None for run in runs),
    )


# -- one of them ---------------------------------------------------------------------------------------


def _declare_show(parser: Parser) -> None:
    takes_run(parser, "`last`, or an id from `%%agent ls`; default: last", optional=True)
    gives_result(parser)


def show(notebook: Notebook, args: Namespace, body: str | None) -> Run | None:
    """What happened in a run: all of it at once, or as far as it has come."""
    record = run_of(notebook, args.run)
    here = next((run for run in notebook.agents.running if run.id == record.id), None)
    return here or _play(notebook, args, stored(notebook, record), speed=0.0)


def _declare_replay(parser: Parser) -> None:
    takes_run(parser, "`last`, or an id from `%%agent ls`")
    parser.add_argument("--speed", metavar="N", type=speed, default=1.0, help="so many times as fast; default: 1")
    gives_result(parser)


def replay(notebook: Notebook, args: Namespace, body: str | None) -> Run | None:
    """Show a run again as it went; nothing is asked and nothing is done."""
    record = run_of(notebook, args.run)
    if record.status == "running":
        raise AgentError(f"{record.id} has not ended", hint=f"`%agent show {record.id}` shows how far it has come.")
    return _play(notebook, args, stored(notebook, record), speed=args.speed)


def _play(notebook: Notebook, args: Namespace, again: StoredRun, *, speed: float) -> StoredRun | None:
    """Show a run of before; what is shown once is not given back, for that would show it twice."""
    follows = notebook.preferences["render"] != "static" and not args.quiet
    if follows:
        present.show(again)
    again.play(speed if follows else 0.0)
    if args.out:
        notebook.shell.push({args.out: again})
        args.out = None
    return None if follows else again


def context(notebook: Notebook, args: Namespace, body: str | None) -> Records[Any]:
    """How many tokens each part of the conversation of the newest cell takes."""
    agent = notebook.agents.current
    if agent is None:
        raise UsageError("no agent has a conversation here\nAn `%%agent` cell begins one.")
    return agent.context()


def _declare_rm(parser: Parser) -> None:
    takes_run(parser, "`last`, or an id from `%%agent ls`")
    asks(parser)
    gives_result(parser)


def rm(notebook: Notebook, args: Namespace, body: str | None) -> Done:
    """Delete a run's record: its prompt and all that happened in it. The versions that it made stay."""
    record = run_of(notebook, args.run)
    confirm(
        f"rm of {record.id}",
        yes=args.yes,
        question=f"Delete {record.id} and all that happened in it? The versions that it made stay. [y/N]",
    )
    notebook.connection.delete_run(record.id)
    return Done(1, f"Deleted {record.id}. The versions that it made are still there.")


COMMANDS: Final = (
    Command(
        "ls",
        "The runs of all kernels, newest first.",
        _declare_ls,
        ls,
        ("%agent ls", "%agent ls -s team-notes --status error", "%agent ls -n 100 --df"),
        of="agent",
    ),
    Command(
        "show", "All that happened in a run.", _declare_show, show, ("%agent show", "%agent show run_…"), of="agent"
    ),
    Command(
        "replay",
        "Show a run again as it went; nothing is done.",
        _declare_replay,
        replay,
        ("%agent replay last --speed 5",),
        of="agent",
    ),
    Command(
        "cost",
        "What the runs used and cost, a row a model.",
        _declare_cost,
        cost,
        ("%agent cost", "%agent cost --since yesterday"),
        of="agent",
    ),
    Command(
        "context",
        "The tokens of each part of the conversation.",
        gives_result,
        context,
        ("%agent context",),
        of="agent",
    ),
    Command("rm", "Delete a run's record; its versions stay.", _declare_rm, rm, ("%agent rm run_… -y",), of="agent"),
)
