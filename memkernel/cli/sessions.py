"""`memkernel session ls | end`: the sandbox sessions of a database."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from memkernel import config
from memkernel.cli.commands import Commands
from memkernel.cli.connecting import connected

if TYPE_CHECKING:
    from memkernel.runtime import Recovered


def add(commands: Commands) -> None:
    """The commands' lines."""
    session = commands.add_parser("session", help="the sandbox sessions of this database, and their end")
    inner = session.add_subparsers(required=True, metavar="COMMAND")
    ls = inner.add_parser("ls", help="the sessions that have not ended, and where each runs")
    ls.set_defaults(run=_ls)
    end = inner.add_parser("end", help="end a session whose process is gone; what it left is saved before")
    end.add_argument("session", help="sesn_…")
    end.add_argument("--force", action="store_true", help="also if its machine is gone, with what was not saved there")
    end.set_defaults(run=_end)


def _ls(_: argparse.Namespace) -> int:
    from memkernel import runtime

    settings = config.load()
    with connected(settings) as (database, _line):
        found = runtime.unended_sessions(database, runtime.Home.of(settings.home))
    for record, state in found:
        print(f"{record.id}  {record.title or '-'}  {runtime.stores_of(record)}  {state}")
    if not found:
        print("No session is open.")
    return 0


def _end(options: argparse.Namespace) -> int:
    from memkernel import runtime

    settings = config.load()
    with connected(settings) as (database, line):
        home = runtime.Home.of(settings.home)
        ended = runtime.end_session(database, line, settings, home, options.session, force=options.force)
    print(f"{ended.title or 'The session'} ({ended.session_id}) has ended: {saved(ended)}.")
    return 0


def saved(one: Recovered) -> str:
    """What became of what a session had left."""
    stores = one.report.stores
    saved = sum(len(store.created) + len(store.modified) + len(store.deleted) + len(store.merged) for store in stores)
    aside = sum(len(store.conflicts) for store in stores)
    told = (
        "1 change was saved" if saved == 1 else f"{saved:,} changes were saved" if saved else "nothing was left to save"
    )
    return f"{told}, {aside:,} put aside" if aside else told
