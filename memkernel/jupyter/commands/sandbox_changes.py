"""What a sandbox changed, what could not be saved, and how that is settled: changes, resolve."""

from __future__ import annotations

from argparse import Namespace
from typing import Final

from IPython.core.error import UsageError

from memkernel.handle.records import Records
from memkernel.jupyter.arguments import Parser, gives_result, parse_address, takes_limit
from memkernel.jupyter.command import Command
from memkernel.jupyter.commands.sandbox_options import takes_sandbox
from memkernel.jupyter.done import Done
from memkernel.jupyter.notebook import Notebook
from memkernel.jupyter.putaside import SHOWN, Changes, PutAside
from memkernel.models import MemoryVersion
from memkernel.paths import in_mount

_HOWS: Final = ("mine", "theirs", "both")


def _declare_changes(parser: Parser) -> None:
    parser.add_argument("path", metavar="PATH", nargs="?", help="only what concerns this path")
    takes_limit(parser, "saved changes")
    takes_sandbox(parser)
    gives_result(parser)


def changes(notebook: Notebook, args: Namespace, body: str | None) -> Changes:
    """What was saved, and what was put aside."""
    box = notebook.sandboxes.find(args.name)
    slug, path = _place(args.path) if args.path else (None, None)

    def concerns(store: str, other: str | None) -> bool:
        return path is None or (other == path and slug in (None, store))

    versions = (
        version
        for report in box.history
        for store in report.stores
        for version in (*store.created, *store.merged, *store.modified, *store.deleted)
        if concerns(store.slug, version.path)
    )
    saved = Records(sorted(versions, key=lambda version: version.created_at, reverse=True), kind=MemoryVersion)
    rejected = [change for change in reversed(box.rejected) if concerns(change.store, change.path)]
    compared = tuple(PutAside(change, change.diff()) for change in rejected[:SHOWN])
    others = dict.fromkeys(f"{change.store}:{change.path}" for change in rejected[SHOWN:])
    return Changes(saved.first(args.limit), compared, tuple(others))


def _declare_resolve(parser: Parser) -> None:
    parser.add_argument("path", metavar="PATH", help="a path that could not be saved")
    parser.add_argument(
        "how",
        metavar="HOW",
        choices=_HOWS,
        help="mine: save the text that was put aside; theirs: discard it; both: save it beside the store's",
    )
    takes_sandbox(parser)
    gives_result(parser)


def resolve(notebook: Notebook, args: Namespace, body: str | None) -> Done:
    """Settle one text that could not be saved."""
    box = notebook.sandboxes.find(args.name)
    slug, path = _place(args.path)
    there = [each for each in box.rejected if each.path == path and slug in (None, each.store)]
    written = box.resolve(path, args.how, slug)
    if written is None:
        return Done(1, f"What was put aside of {path} is discarded; the store's stays.")
    if there and there[-1].content is None:
        return Done(1, f"{path} is deleted, as it had been in the sandbox.")
    beside = f", beside the store's {path}" if written != path else ""
    return Done(1, f"{written} holds the text that was put aside{beside}.")


def _place(text: str) -> tuple[str | None, str]:
    """The store's slug, where it is named, and the path: /a.md, STORE:/a.md, or as the sandbox itself names it.

    Raises:
        UsageError: the path names a version.
    """
    mounted = in_mount(text)
    if mounted is not None:
        return mounted
    address = parse_address(text)
    if address.version not in (None, "head"):
        raise UsageError(f"{text} names a version\nName the path alone: `%sandbox changes {address.path}`.")
    return address.store, address.path


COMMANDS: Final = (
    Command(
        "changes",
        "What was saved, and both texts of what was not.",
        _declare_changes,
        changes,
        ("%sandbox changes", "%sandbox changes /plan.md"),
        of="sandbox",
    ),
    Command(
        "resolve",
        "Settle a change that could not be saved.",
        _declare_resolve,
        resolve,
        ("%sandbox resolve /plan.md mine", "%sandbox resolve team-notes:/plan.md both"),
        of="sandbox",
    ),
)
