"""What a panel of a sandbox tells the page, in words: the page (frontend/src/sandbox/view.js) only draws them.

mount     [slug, folder, access and state, store_id, the button to reset it]
cell      [key, title, how it ended, class, code, time, notes]
change    [key of its cell, class, outcome, path, version_id, what it changed or why it was not saved]
conflict  [id, path, what and when, reason, the ways to settle it]
button    [request, label, title, the question that comes first]
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from memkernel.handle.panel import access_words, state_words
from memkernel.jupyter.widgets.rows import Marked, marked
from memkernel.models import StoreReport
from memkernel.render import (
    LineCounts,
    counted,
    duration_text,
    line_facts,
    moment_text,
    one_line,
    outcome_text,
    size_text,
)

if TYPE_CHECKING:
    from memkernel.handle.mounts import Attached, MountState
    from memkernel.handle.panel import Entry
    from memkernel.handle.rejected import RejectedChange

Row: TypeAlias = "list[Any]"

MOST_CHANGES: Final = 200
MOST_ENTRIES: Final = 100
MOST_CONFLICTS: Final = 40
_ENTRY_BYTES: Final = 14_000
_CHANGE_BYTES: Final = 26_000
_CONFLICT_BYTES: Final = 12_000
_PATH_BYTES: Final = 1_500
_WORDS: Final = 200
_NAMED: Final = 3


SYNC: Final = ["sync", "Sync now", "Save what was changed here, bring what was changed in the stores", ""]
INTERRUPT: Final = ["interrupt", "Interrupt", "Interrupt the cell that runs", ""]
STOP: Final = [
    *("stop", "Stop", "Save all and end the sandbox"),
    "Stop the sandbox? Everything is saved first; what its variables hold is gone then.",
]
LOOK: Final = ["refresh", "⟳", "Look anew at the stores", ""]
DELETE: Final = ["delete_held_back", "Delete them after all", "Carry out the deletions that were held back", ""]
BUTTONS: Final[dict[str, list[Row]]] = {
    "running": [SYNC, STOP, LOOK],
    "dead": [SYNC, STOP, LOOK],
    "busy": [INTERRUPT, STOP],
    "lost": [STOP],
}
CHOICES: Final[dict[str, Row]] = {
    "mine": ["resolve", "Mine", "Make the store's as it was put aside", ""],
    "both": ["resolve", "Both", "Save it beside the store's, under another name", ""],
    "theirs": [
        *("resolve", "Discard", "Keep the store's and forget what was put aside"),
        "Forget what was put aside? Nobody else has it.",
    ],
}
_CLASSES: Final = {"created": "mk-made", "deleted": "mk-gone", "pulled": "mk-faint", "removed": "mk-faint"}
_BAD: Final = frozenset({"refused", "not saved", "restored", "not synced"})
_ENDED_WELL: Final = frozenset({"running", "ok", "synced", "restarted", "stopped"})


class Told(NamedTuple):
    """The newest cells, newest first, and what became of their files; `left_out` earlier ones are not among them."""

    entries: list[Row]
    changes: list[Row]
    left_out: int


def mount_row(attached: Attached, folder: str, state: MountState | None, put_aside: int, *, may_reset: bool) -> Row:
    """A mounted store."""
    slug = attached.store.slug
    question = f"Make {folder} equal to its store? What is not saved there is put aside."
    button = ["reset", "Reset…", f"Make {folder} equal to its store", question]
    how = " · ".join((access_words(attached.access), state_words(state, put_aside)))
    return [slug, folder, how, attached.store.id, button if may_reset else None]


def held_row(state: MountState, *, may_delete: bool) -> Row:
    """What the wipe guard has held back: a sentence, and the button."""
    held = state.held_back
    named = ", ".join([*(one_line(path, _WORDS) for path in held[:_NAMED]), *(["…"] if len(held) > _NAMED else [])])
    said = f"{counted(len(held), 'deletion')} held back in {state.store.slug} ({named})."
    why = "A cell left no file at all there, so nothing was deleted."
    return [f"{said} {why}", *(DELETE if may_delete else [])]


def conflict_rows(put_aside: Sequence[RejectedChange], *, may_settle: bool) -> list[Row]:
    """What was put aside, newest first, as much as there is room for."""
    newest = put_aside[-MOST_CONFLICTS:]
    return _fitting((_conflict_row(change, may_settle) for change in reversed(newest)), _CONFLICT_BYTES)


def told_rows(entries: Sequence[Entry], counts: LineCounts, *, named: bool) -> Told:
    """The newest of these entries (they come oldest first), as many as there is room for.

    `named` is whether paths are told with their store.
    """
    newest = entries[::-1][:MOST_ENTRIES]
    rows = _fitting((_entry_row(entry) for entry in newest), _ENTRY_BYTES)
    told = newest[: len(rows)]
    changes = (change for entry in told for change in _change_rows(entry, counts, named))
    shown = _fitting(islice(changes, MOST_CHANGES), _CHANGE_BYTES)
    for row, entry in zip(rows, told, strict=True):
        left = sum(len(store.lines()) for store in _stores(entry)) - sum(change[0] == entry.key for change in shown)
        row[-1] += [f"{counted(left, 'more file')}, not shown here"] if left else []
    return Told(rows, shown, len(entries) - len(rows))


def _fitting(rows: Iterable[Row], room: int) -> list[Row]:
    """The first rows, as many as have room in so many bytes of JSON."""
    kept: list[Row] = []
    for row in rows:
        room -= len(json.dumps(row)) + 2
        if room < 0:
            break
        kept.append(row)
    return kept


def _conflict_row(change: RejectedChange, may_settle: bool) -> Row:
    size = [] if change.content is None else [size_text(len(change.content))]
    facts = " · ".join([change.operation, *size, f"put aside {moment_text(change.at)} UTC"])
    hows = [how for how in CHOICES if how != "both" or change.content is not None]
    path = _shown(f"{change.store}:{change.path}")
    return [change.id, path, facts, one_line(change.reason, _WORDS), hows if may_settle else []]


def _entry_row(entry: Entry) -> Row:
    exit_status = f"exit status {entry.exit_code}" if entry.exit_code else ""
    took = "" if entry.duration_s is None else duration_text(entry.duration_s)
    return [
        *(entry.key, entry.title, " · ".join(part for part in (entry.words, exit_status, took) if part)),
        "mk-facts" if entry.status in _ENDED_WELL else "mk-bad",
        one_line(entry.code, _WORDS),
        f"{entry.at.astimezone(UTC):%H:%M:%S}",
        [one_line(note, 2 * _WORDS) for note in (*entry.notes, *_notes_of(entry))[:8]],
    ]


def _notes_of(entry: Entry) -> list[str]:
    return [note for store in _stores(entry) for note in store.notes]


def _change_rows(entry: Entry, counts: LineCounts, named: bool) -> Iterator[Row]:
    for store in _stores(entry):
        for line in store.lines():
            kind = "mk-bad" if line.outcome in _BAD else _CLASSES.get(line.outcome, "mk-facts")
            yield [
                *(entry.key, kind, outcome_text(line)),
                _shown(f"{store.slug}:{line.path}" if named else line.path),
                line.version.id if line.version else None,
                one_line(line_facts(line, counts) or line.reason, _WORDS),
            ]


def _stores(entry: Entry) -> Sequence[StoreReport]:
    return entry.report.stores if entry.report else ()


def _shown(path: str) -> Marked:
    """The path as the page shows it; one of nothing but marks would fill the state alone."""
    shown = marked(path)
    return shown if len(json.dumps(shown)) <= _PATH_BYTES else one_line(path, _WORDS)
