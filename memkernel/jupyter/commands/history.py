"""The history of memories: log, diff, restore, redact."""

from __future__ import annotations

from argparse import Namespace
from typing import Final

from IPython.core.error import UsageError

from memkernel.handle.diff import Diff
from memkernel.handle.history import History
from memkernel.handle.records import Records
from memkernel.handle.store_diff import StoreDiff
from memkernel.jupyter.arguments import Parser, asks, gives_result, takes_limit, takes_path, takes_store, version
from memkernel.jupyter.caused import CausedVersions
from memkernel.jupyter.command import Command
from memkernel.jupyter.commands.comparing import compare, takes_points
from memkernel.jupyter.confirm import confirm
from memkernel.jupyter.notebook import Notebook, Place
from memkernel.models import Memory, MemoryVersion


def _declare_log(parser: Parser) -> None:
    takes_path(parser, optional=True, help="a memory that is or was there; default: the whole store")
    takes_store(parser)
    takes_limit(parser, "versions")
    gives_result(parser, rows=True)


def log(notebook: Notebook, args: Namespace, body: str | None) -> Records[MemoryVersion]:
    """Versions, newest first; of those that an agent made, which run and call did."""
    place = notebook.place_now(args.path or "/", args)
    if place.path == "/":
        return CausedVersions.of(place.store, place.store.log(limit=args.limit))
    versions = place.store.log(place.path, limit=args.limit)
    notebook.heads.note(place.store.id, place.path, versions[0].id)
    return CausedVersions.of(place.store, versions)


def _declare_diff(parser: Parser) -> None:
    takes_path(parser, optional=True, help="a memory, perhaps @VERSION; or with --since a part of the store")
    parser.add_argument(
        "versions", metavar="VERSION", nargs="*", type=version, help="one: against the head; two: these"
    )
    takes_points(parser)
    takes_store(parser)
    gives_result(parser)


def diff(notebook: Notebook, args: Namespace, body: str | None) -> Diff | StoreDiff:
    """What changed between two versions, by default the last two; or in the store between two points."""
    if args.since is not None or args.until is not None:
        return compare(notebook, args)
    if args.path is None:
        raise UsageError("%memory diff: no memory is named\nThe whole store is compared with --since: `--since @41`.")
    place = notebook.place(args.path, args)
    versions = [*([place.version] if place.version else []), *args.versions]
    if len(versions) > 2:
        raise UsageError(f"%memory diff: {len(versions)} versions\nA diff compares two: `%memory diff /units.md@1 @3`.")
    shown = place.store.diff(place.path, *versions)
    if place.path == "/":  # a redacted version's id: where it was is not known any more
        return shown
    notebook.heads.note(place.store.id, place.path, place.store.version(place.path, "head").id)
    return shown


def _declare_restore(parser: Parser) -> None:
    takes_path(parser, help="a memory that is or was there, perhaps @VERSION; or the id of a version")
    parser.add_argument("version", metavar="VERSION", nargs="?", type=version, help="the version whose text is wanted")
    asks(parser)
    takes_store(parser)
    gives_result(parser)


def restore(notebook: Notebook, args: Namespace, body: str | None) -> Memory:
    """Write an earlier text again, as a new version (fault 25)."""
    place, wanted = _one_version(notebook, args)
    head = place.store.version(place.path, "head")
    if notebook.heads.moved(place.store.id, place.path, head.id):
        confirm(
            f"restore of {place.path}",
            yes=args.yes,
            question=f"{place.path} has changed since you were shown it: its head is now @{head.ordinal}. "
            f"Restore @{wanted.ordinal} all the same? [y/N]",
        )
    memory = place.store.restore(place.path, wanted, expect=head.content_sha256)
    notebook.heads.note(place.store.id, place.path, memory.memory_version_id)
    return memory


def _declare_redact(parser: Parser) -> None:
    takes_path(parser, help="a memory, perhaps @VERSION; or the id of a version")
    parser.add_argument("version", metavar="VERSION", nargs="?", type=version, help="the version to erase")
    asks(parser)
    takes_store(parser)
    gives_result(parser)


def redact(notebook: Notebook, args: Namespace, body: str | None) -> MemoryVersion:
    """Erase one version's text for ever."""
    place, doomed = _one_version(notebook, args)
    confirm(
        f"redaction of @{doomed.ordinal} of {place.path}",
        yes=args.yes,
        question=f"Erase the text of @{doomed.ordinal} of {place.path} for ever? "
        f"Notebooks that show it keep it. Type {doomed.ordinal} to do it:",
        typed=str(doomed.ordinal),
    )
    redacted = place.store.redact(place.path, doomed)
    notebook.outputs.living.erased()
    told = History(place.store).erasure(redacted.id).transcripts
    if told:
        print(told)
    return redacted


def _one_version(notebook: Notebook, args: Namespace) -> tuple[Place, MemoryVersion]:
    """The place and the version that the line names: glued, alone, or by the version's id."""
    place = notebook.place(args.path, args)
    if (place.version is None) == (args.version is None):
        raise UsageError("name one version\nIt is glued to the path or stands alone: `/units.md@1`, or `/units.md @1`.")
    return place, place.store.version(place.path, place.version or args.version)


COMMANDS: Final = (
    Command(
        "log",
        "The versions of a memory or of the store, newest first.",
        _declare_log,
        log,
        ("%memory log /units.md", "%memory log -n 20"),
    ),
    Command(
        "diff",
        "What changed between two versions, by default the last two; or in the store.",
        _declare_diff,
        diff,
        (
            *("%memory diff /units.md", "%memory diff /units.md@1 @3", "%memory diff /units.md @2026-11-30T10:00"),
            *("%memory diff --since yesterday", "%memory diff /plans --since @41 --until @57"),
        ),
    ),
    Command(
        "restore",
        "Write an earlier text again, as a new version.",
        _declare_restore,
        restore,
        ("%memory restore /units.md@1", "%memory restore /units.md @-1 -y"),
    ),
    Command(
        "redact", "Erase the text of one version for ever.", _declare_redact, redact, ("%memory redact /units.md@2",)
    ),
)
