"""The sandboxes of the notebook: start, stop, ls, status, mounts, sync, reset, logs."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from IPython.core.error import UsageError

from memkernel.errors import MemkernelError, SandboxError
from memkernel.handle.records import Records
from memkernel.jupyter.arguments import Parser, gives_result, takes_limit
from memkernel.jupyter.command import Command
from memkernel.jupyter.commands.sandbox_options import (
    ask_of,
    makes_sandbox,
    puts_result,
    started,
    takes_policy,
    takes_sandbox,
)
from memkernel.jupyter.done import Done
from memkernel.jupyter.facts import Facts
from memkernel.jupyter.notebook import Notebook
from memkernel.jupyter.reports import show_report
from memkernel.jupyter.sandboxes import FIRST_NAME, Ask
from memkernel.models import Access, SessionRecord, SessionStatus, SyncReport

if TYPE_CHECKING:
    from memkernel.handle.mounts import MountState
    from memkernel.handle.panel import Panel
    from memkernel.handle.sandbox import Sandbox
    from memkernel.runtime import Home

_SESSIONS: Final = 20
_NONE: Final = "No sandbox is running: `%sandbox start`, or a `%%sandbox` cell, starts one."
_ACCESSES: Final[dict[Access, str]] = {"read_write": "read-write", "read_only": "read-only"}


# -- start and stop ----------------------------------------------------------------------------------


def _declare_start(parser: Parser) -> None:
    parser.add_argument("sandbox", metavar="NAME", nargs="?", help="a name of your choice; default: main")
    takes_sandbox(parser, "the same")
    makes_sandbox(parser)
    takes_policy(parser, "what its cells do unless they say otherwise; default: error")
    gives_result(parser)


def start(notebook: Notebook, args: Namespace, body: str | None) -> Sandbox:
    """Start a sandbox; it is the current one from now on."""
    name = _name(args, "start") or FIRST_NAME
    if name in notebook.sandboxes.names:
        raise UsageError(
            f"the sandbox {name} is running already\n"
            f"`%sandbox status` tells of it; `%sandbox stop {name}` ends it; another NAME starts one beside it."
        )
    ask = ask_of(notebook, args)
    if args.on_conflict is not None:
        ask = Ask(ask.stores, {**ask.options, "on_conflict": args.on_conflict})
    return started(notebook, name, ask, silent=True)  # the sandbox itself is shown: its first line


def _declare_stop(parser: Parser) -> None:
    parser.add_argument("sandbox", metavar="SANDBOX", nargs="?", help="which one; default: the one started last")
    parser.add_argument("-a", "--all", action="store_true", help="all of them")
    takes_sandbox(parser, "the same")
    puts_result(parser, "the report of the last sync")


def stop(notebook: Notebook, args: Namespace, body: str | None) -> Done | None:
    """Save what is in a sandbox, and end it."""
    name = _name(args, "stop")
    if args.all and name:
        raise UsageError("%sandbox stop: a SANDBOX and --all\nName one, or take all.")
    boxes = notebook.sandboxes.open if args.all else [notebook.sandboxes.find(name)]
    for box in boxes:
        _sync(notebook, args, box, box.stop)
    names = ", ".join(box.name for box in boxes) or "none"
    return None if args.silent else Done(len(boxes), f"Stopped: {names}.")


def _name(args: Namespace, command: str) -> str | None:
    """The sandbox that the line names, as its argument or as all other commands do, with --name."""
    if args.sandbox and args.name:
        raise UsageError(f"%sandbox {command}: a name and --name\nName one sandbox.")
    return args.sandbox or args.name


# -- what there is -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session, as `%sandbox ls` lists it. `sandbox` is its name where it runs in this notebook."""

    sandbox: str
    state: str
    stores: str
    started: datetime
    id: str


def _declare_ls(parser: Parser) -> None:
    parser.add_argument("-a", "--all", action="store_true", help="ended sessions too")
    takes_limit(parser, "sessions")
    gives_result(parser, rows=True)


def ls(notebook: Notebook, args: Namespace, body: str | None) -> Records[SessionRow]:
    """The sandboxes of this notebook, and the sessions of others on the same database, newest first."""
    from memkernel.runtime import Home

    here = {box.id: box for box in notebook.sandboxes.open}
    statuses: tuple[SessionStatus, ...] | None = None if args.all else ("running", "idle", "rescheduling")
    most = args.limit or _SESSIONS
    page = notebook.connection.database.sessions.list(statuses=statuses, limit=min(most, 100))
    home = Home.of(notebook.connection.settings.home)
    rows = Records([_session_row(record, here, home) for record in page.data], kind=SessionRow, empty=_NONE)
    if page.next_page is not None:
        print(f"The newest {len(rows)} are shown; -n N shows more.")
    return rows


def _session_row(record: SessionRecord, here: dict[str, Sandbox], home: Home) -> SessionRow:
    from memkernel.runtime import stores_of, whereabouts

    box = here.get(record.id)
    state = box.status().state if box else "ended" if record.status == "terminated" else whereabouts(record, home)
    return SessionRow(box.name if box else "", state, stores_of(record), record.created_at, record.id)


def _declare_one(parser: Parser) -> None:
    takes_sandbox(parser)
    gives_result(parser)


def status(notebook: Notebook, args: Namespace, body: str | None) -> Facts | None:
    """How a sandbox stands."""
    if args.name is None and notebook.sandboxes.current is None:
        print(_NONE)
        return None
    box = notebook.sandboxes.find(args.name)
    now = box.status()
    others = [name for name in notebook.sandboxes.names if name != box.name]
    facts: dict[str, object] = {
        "state": now.state,
        "isolation": box.isolation,
        **({"detail": now.detail} if now.detail != box.isolation else {}),
        "stores": ", ".join(f"{each.mount_path} ({_ACCESSES[each.access]})" for each in box.session.resources),
        "session": box.id,
        **({"also running": ", ".join(others)} if others else {}),
    }
    return Facts(f"sandbox {box.name}", facts)


def _declare_panel(parser: Parser) -> None:
    parser.add_argument("sandbox", metavar="SANDBOX", nargs="?", help="which one; default: the one started last")
    takes_sandbox(parser, "the same")
    gives_result(parser)


def panel(notebook: Notebook, args: Namespace, body: str | None) -> Panel:
    """The panel of a sandbox, live where the notebook can show that."""
    return notebook.sandboxes.find(_name(args, "panel")).panel()


def _declare_mounts(parser: Parser) -> None:
    takes_sandbox(parser)
    gives_result(parser, rows=True)


def mounts(notebook: Notebook, args: Namespace, body: str | None) -> Records[MountState]:
    """The stores that a sandbox has, and how far they are in sync."""
    return notebook.sandboxes.find(args.name).mounts


def logs(notebook: Notebook, args: Namespace, body: str | None) -> None:
    """What the kernel's process in the sandbox wrote last."""
    text = notebook.sandboxes.find(args.name).logs()
    print(text.rstrip("\n") or "The kernel's process has written nothing.")


# -- sync --------------------------------------------------------------------------------------------


def _declare_sync(parser: Parser) -> None:
    takes_sandbox(parser)
    takes_policy(parser, "error (default) puts the sandbox's text aside, merge joins both where they do not overlap")
    parser.add_argument("--allow-wipe", action="store_true", help="carry out the deletions that were held back, too")
    puts_result(parser, "the report")


def sync(notebook: Notebook, args: Namespace, body: str | None) -> None:
    """Save what was changed in the sandbox, bring what was changed in the stores."""
    box = notebook.sandboxes.find(args.name)
    if args.allow_wipe and box.report is not None and any(store.held_back for store in box.report.stores):
        _sync(notebook, args, box, box.apply_held_back)
        return
    _sync(notebook, args, box, lambda: box.sync(on_conflict=args.on_conflict, allow_wipe=args.allow_wipe))


def _declare_reset(parser: Parser) -> None:
    parser.add_argument("-s", "--store", metavar="STORE", help="only this store's folder")
    takes_sandbox(parser)
    puts_result(parser, "the report")


def reset(notebook: Notebook, args: Namespace, body: str | None) -> None:
    """Make the folders equal to their stores; what was not saved is put aside."""
    box = notebook.sandboxes.find(args.name)
    _sync(notebook, args, box, lambda: box.reset(args.store))


def _sync(notebook: Notebook, args: Namespace, box: Sandbox, work: Any) -> None:
    """Let something sync, and show its report also where it ends with an error."""
    report: SyncReport | None = None
    try:
        report = work()
    except KeyboardInterrupt:
        raise SandboxError("the sync was interrupted", hint="`%sandbox sync` goes on where it was.") from None
    except MemkernelError as error:
        report = getattr(error, "report", None)
        raise
    finally:
        notebook.sandboxes.synced(box, report)
        if args.variable:
            notebook.shell.push({args.variable: report})
        if report is not None and not args.silent:
            show_report(notebook, box, report)


COMMANDS: Final = (
    Command(
        "start",
        "Start a sandbox, with stores, an image and limits.",
        _declare_start,
        start,
        (
            "%sandbox start",
            "%sandbox start dev --store team-notes --ro handbook --memory 1g",
            "%sandbox start --backend local",
            "%sandbox start --package numpy --network bridge -o box",
        ),
        of="sandbox",
    ),
    Command(
        "stop",
        "Save all, and end a sandbox.",
        _declare_stop,
        stop,
        ("%sandbox stop", "%sandbox stop --all"),
        of="sandbox",
    ),
    Command(
        "ls", "The sandboxes, here and elsewhere.", _declare_ls, ls, ("%sandbox ls", "%sandbox ls --all"), of="sandbox"
    ),
    Command("status", "How a sandbox stands.", _declare_one, status, ("%sandbox status --name dev",), of="sandbox"),
    Command(
        "panel",
        "Its limits, its stores, its cells and what they changed.",
        _declare_panel,
        panel,
        ("%sandbox panel", "%sandbox panel dev"),
        of="sandbox",
    ),
    Command(
        "mounts",
        "Its stores, and how far they are in sync.",
        _declare_mounts,
        mounts,
        ("%sandbox mounts",),
        of="sandbox",
    ),
    Command(
        "sync",
        "Save and refresh now; a cell does it by itself.",
        _declare_sync,
        sync,
        ("%sandbox sync", "%sandbox sync --on-conflict merge", "%sandbox sync --allow-wipe"),
        of="sandbox",
    ),
    Command(
        "reset",
        "Make the folders equal to their stores again.",
        _declare_reset,
        reset,
        ("%sandbox reset", "%sandbox reset --store team-notes"),
        of="sandbox",
    ),
    Command("logs", "What the kernel in the sandbox wrote last.", _declare_one, logs, ("%sandbox logs",), of="sandbox"),
)
