"""What a sandbox changed, what could not be saved, and how that is settled: changes, resolve."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from IPython.core.error import UsageError

from memkernel.handle.records import Records
from memkernel.jupyter.arguments import Parser, gives_result, parse_address, takes_limit
from memkernel.jupyter.command import Command
from memkernel.jupyter.commands.sandbox_options import takes_sandbox
from memkernel.jupyter.done import Done
from memkernel.jupyter.notebook import Notebook
from memkernel.models import MemoryVersion
from memkernel.render import html_of

if TYPE_CHECKING:
    from memkernel.handle.rejected import RejectedChange
    from memkernel.handle.sandbox import Sandbox
    from memkernel.handle.store import Store

_HOWS: Final = ("mine", "theirs", "both")


def _declare_changes(parser: Parser) -> None:
    parser.add_argument("path", metavar="SETTLED_PATH", nargs="?", help="only what concerns this path")
    takes_limit(parser, "saved changes")
    takes_sandbox(parser)
    gives_result(parser)


@dataclass(frozen=True, slots=True, repr=False)
class Changes:
    """What a sandbox has saved since it was started, newest first, and the texts that it could not save."""

    saved: Records[MemoryVersion]
    rejected: Records[RejectedChange]

    def __repr__(self) -> str:
        saved = repr(self.saved) if self.saved else "Nothing was saved yet."
        return "\n\n".join([saved, *map(str, self.rejected)])

    def _repr_html_(self) -> str:
        saved = self.saved._repr_html_() if self.saved else html_of("Nothing was saved yet.")
        return "".join([saved, *(each._repr_html_() for each in self.rejected)])


def changes(notebook: Notebook, args: Namespace, body: str | None) -> Changes:
    """What was saved, and what was put aside."""
    box = notebook.sandboxes.find(args.name)
    store, path = _place(notebook, box, args.path) if args.path else (None, None)

    def concerns(store_id: str, other: str | None) -> bool:
        return path is None or (other == path and store in (None, store_id))

    versions = (
        version
        for report in reversed(box.history)
        for mount in report.stores
        for version in (*mount.created, *mount.merged, *mount.modified, *mount.deleted)
        if concerns(version.memory_store_id, version.path)
    )
    saved = Records(sorted(versions, key=lambda version: version.created_at, reverse=True), kind=MemoryVersion)
    rejected = Records([each for each in box.rejected if concerns(each.store.id, each.path)])
    return Changes(saved.first(args.limit), rejected)


def _declare_resolve(parser: Parser) -> None:
    parser.add_argument("path", metavar="REJECTED_PATH", help="a path that could not be saved")
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
    store, path = _place(notebook, box, args.path)
    written = box.resolve(path, args.how, store)
    if args.how == "theirs":
        return Done(1, f"The text put aside for {path} was discarded; the store's stays.")
    if written is None:
        return Done(1, f"{path} was deleted in the store, as the cell had done.")
    beside = f", beside {path}" if written != path else ""
    return Done(1, f"The text put aside is {written} in the store now{beside}.")


def _place(notebook: Notebook, box: Sandbox, text: str) -> tuple[Store | None, str]:
    """The store, where one is named, and the path: /a.md, STORE:/a.md, or as the sandbox itself calls it.

    Raises:
        UsageError: the path names a version.
    """
    for mount in box.mounts:
        if text.startswith(f"{mount.mount_path}/"):
            return notebook.store(mount.memory_store_id), text.removeprefix(mount.mount_path)
    address = parse_address(text)
    if address.version not in (None, "head"):
        raise UsageError(f"{text} names a version\nName the path alone: `%sandbox resolve {address.path} mine`.")
    return (None if address.store is None else notebook.store(address.store)), address.path


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
