"""Changes of the memories: put, replace, mv, rm. Each makes versions, and loses none."""

from __future__ import annotations

from argparse import Namespace
from typing import Final

from IPython.core.error import UsageError

from memkernel.jupyter.arguments import (
    Parser,
    asks,
    gives_result,
    parse_address,
    read_file,
    takes_path,
    takes_store,
    variable,
)
from memkernel.jupyter.command import Command
from memkernel.jupyter.confirm import confirm
from memkernel.jupyter.done import Done, counted
from memkernel.jupyter.notebook import Notebook, Place
from memkernel.models import ABSENT, Absent, Memory


def _declare_put(parser: Parser) -> None:
    takes_path(parser)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--from", dest="file", metavar="FILE", help="take the text from a file")
    source.add_argument(
        "--var", metavar="VAR", type=variable, help="take the text from a variable, perhaps an empty one"
    )
    parser.add_argument("--expect", metavar="SHA", help="write only over this sha256, or `absent`: only a new memory")
    takes_store(parser)
    gives_result(parser)


def put(notebook: Notebook, args: Namespace, body: str | None) -> Memory:
    """Create or replace a memory: the cell's body, a file or a variable is its text."""
    text = _text_of(notebook, args, body)
    place = notebook.place_now(args.path, args)
    memory = place.store.write(place.path, text, expect=_expected(args.expect))
    notebook.heads.note(place.store.id, place.path, memory.memory_version_id)
    return memory


def _text_of(notebook: Notebook, args: Namespace, body: str | None) -> str | bytes:
    named = args.file is not None or args.var is not None
    if body and named:
        raise UsageError("put takes its text from one place: the cell's body, --from or --var\nLeave one out.")
    if args.file is not None:
        return read_file(args.file)
    if args.var is not None:
        return notebook.value_of(args.var)
    if not body:
        raise UsageError(
            "put has no text\nWrite it below `%%memory put PATH`, or name it with --from FILE or --var NAME."
        )
    return body


def _expected(text: str | None) -> str | Absent | None:
    return ABSENT if text == "absent" else text


def _declare_replace(parser: Parser) -> None:
    takes_path(parser)
    parser.add_argument("old", metavar="OLD", help="a text that occurs exactly once")
    parser.add_argument("new", metavar="NEW", help="what takes its place")
    parser.add_argument("--all", action="store_true", help="replace every occurrence")
    takes_store(parser)
    gives_result(parser)


def replace(notebook: Notebook, args: Namespace, body: str | None) -> Memory:
    """Replace a piece of a memory's text."""
    place = notebook.place_now(args.path, args)
    memory = place.store.replace(place.path, args.old, args.new, every=args.all)
    notebook.heads.note(place.store.id, place.path, memory.memory_version_id)
    return memory


def _declare_mv(parser: Parser) -> None:
    takes_path(parser, help="a memory or a directory")
    parser.add_argument("new_path", metavar="NEW_PATH", help="where it will be, in the same store")
    takes_store(parser)
    gives_result(parser)


def mv(notebook: Notebook, args: Namespace, body: str | None) -> Done:
    """Rename a memory, or a directory with all that lies below it."""
    place = notebook.place_now(args.path, args)
    target = parse_address(args.new_path)
    if target.store is not None or target.version not in (None, "head"):
        raise UsageError(
            f"{args.new_path} is no plain path\nmv renames within one store: `%memory mv STORE:/old /new`."
        )
    moved = place.store.rename(place.path, target.path)
    notebook.heads.forget(place.store.id, place.path)
    return Done(moved, f"Moved {counted(moved)} from {place.path} to {target.path} in {place.store.slug}.")


def _declare_rm(parser: Parser) -> None:
    takes_path(parser, help="a memory, or with -r a directory")
    parser.add_argument("-r", "--recursive", action="store_true", help="also everything below the path")
    asks(parser)
    takes_store(parser)
    gives_result(parser)


def rm(notebook: Notebook, args: Namespace, body: str | None) -> Done:
    """Delete a memory or a directory; the versions stay."""
    place = notebook.place_now(args.path, args)
    what = _doomed(place, args.recursive)
    confirm(
        f"rm of {place.path}", yes=args.yes, question=f"Delete {what} in {place.store.slug}? The versions stay. [y/N]"
    )
    gone = place.store.delete(place.path, recursive=args.recursive)
    notebook.heads.forget(place.store.id, place.path)
    return Done(gone, f"Deleted {counted(gone)} in {place.store.slug}; the versions stay.")


def _doomed(place: Place, recursive: bool) -> str:
    """What would be deleted, in words."""
    found = place.store.ls(place.path, depth=0)
    if [each.path for each in found] == [place.path]:
        return place.path
    below = f"{counted(len(found))} below {place.path}"
    if not recursive:
        raise UsageError(f"%memory rm: {place.path} is a directory\nAdd -r to delete {below}.")
    return below


COMMANDS: Final = (
    Command(
        "put",
        "Create or replace a memory.",
        _declare_put,
        put,
        (
            "%%memory put /units.md",
            "%memory put /plan.md --from plan.md",
            "%memory put /a.md --var text --expect absent",
        ),
        body="either",
    ),
    Command(
        "replace",
        "Replace a piece of a memory's text.",
        _declare_replace,
        replace,
        ('%memory replace /units.md "feet" "metres"',),
    ),
    Command("mv", "Rename a memory or a directory.", _declare_mv, mv, ("%memory mv /units.md /prefs/units.md",)),
    Command("rm", "Delete a memory or a directory; the versions stay.", _declare_rm, rm, ("%memory rm /old -r -y",)),
)
