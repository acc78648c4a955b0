"""`memkernel prune`: old versions go for ever."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from memkernel import config
from memkernel.cli.commands import Commands
from memkernel.cli.connecting import add_dsn, connected
from memkernel.cli.durations import duration
from memkernel.models import DEFAULT_WORKSPACE
from memkernel.render import counted, one_line, size_text

if TYPE_CHECKING:
    from memkernel.models import Pruned


def add(commands: Commands) -> None:
    """The command's line."""
    prune = commands.add_parser(
        "prune",
        help="delete versions that were superseded long ago, for ever",
        description="Delete, for ever, the versions that were superseded, or whose memory was deleted, before a time. "
        "Current texts stay, and so does what was current at any moment since then.",
    )
    prune.add_argument(
        "--older-than", type=duration, required=True, metavar="TIME", help="30d, 8w, 1y …; at least 30 days"
    )
    prune.add_argument(
        "--keep", type=int, default=3, metavar="N", help="versions that a live memory keeps (default: %(default)s)"
    )
    prune.add_argument("--store", metavar="REF", help="only this store: its id, name or slug")
    prune.add_argument(
        "--workspace", default=DEFAULT_WORKSPACE, metavar="ID", help="whose stores (default: %(default)s)"
    )
    add_dsn(prune)
    prune.add_argument("--dry-run", action="store_true", help="tell what would go, and remove nothing")
    prune.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    total: list[Pruned] = []
    with connected(config.load(), options.dsn, workspace_id=options.workspace) as (database, line):
        store = None if options.store is None else database.memory_stores.find(options.store).id
        print(line)
        for pruned in database.pruning.prune(
            older_than=options.older_than, keep=options.keep, memory_store_id=store, dry_run=options.dry_run
        ):
            print(f"{one_line(pruned.name)}  {pruned.memory_store_id}  {_amount([pruned])}", flush=True)
            total.append(pruned)
    print(_told(total, dry_run=options.dry_run))
    return 0


def _told(total: list[Pruned], *, dry_run: bool) -> str:
    if not total:
        return "Nothing is to be pruned."
    told = "would go; this is a dry run: nothing was removed." if dry_run else "removed."
    return f"{_amount(total)} {told}"


def _amount(pruned: list[Pruned]) -> str:
    versions, content_bytes = sum(one.versions for one in pruned), sum(one.content_bytes for one in pruned)
    return f"{counted(versions, 'version')} ({size_text(content_bytes)})"
