"""What a panel of a sandbox tells the page, as arrays; the page's sandbox/rows.js gives the names back.

    mount     [store_id, slug, folder, access, to_save, to_bring, put_aside, held_back, first paths held back]
    entry     [key, title, code, status, words, exit_code, how long it took, at, notes, files that are left out]
    change    [key of its entry, outcome, folder, path, version_id, ordinal, size, added, removed, reason]
    conflict  [id, slug, path, operation, size, at, reason]

`to_save` and `to_bring` are null where they are not known: while a cell runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from memkernel.jupyter.widgets.rows import Marked, iso, marked
from memkernel.models import StoreReport
from memkernel.render import LineCounts, duration_text, one_line

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


class Told(NamedTuple):
    """The newest entries, newest first, and their changes; `left_out` earlier entries are not among them."""

    entries: list[Row]
    changes: list[Row]
    left_out: int


def mount_row(attached: Attached, folder: str, state: MountState | None, put_aside: int) -> Row:
    """A mounted store; without its state while that is not known."""
    held = state.held_back if state else ()
    return [
        *(attached.store.id, attached.store.slug, folder, attached.access),
        *((state.local, state.remote) if state else (None, None)),
        put_aside,
        len(held),
        [one_line(path, _WORDS) for path in held[:_NAMED]],
    ]


def conflict_rows(put_aside: Sequence[RejectedChange]) -> list[Row]:
    """What was put aside, newest first, as much as there is room for."""
    newest = put_aside[-MOST_CONFLICTS:]
    return _fitting((_conflict_row(change) for change in reversed(newest)), _CONFLICT_BYTES)


def told_rows(entries: Sequence[Entry], counts: LineCounts) -> Told:
    """The newest of these entries (they come oldest first), as many as there is room for."""
    newest = entries[::-1][:MOST_ENTRIES]
    rows = _fitting((_entry_row(entry) for entry in newest), _ENTRY_BYTES)
    told = newest[: len(rows)]
    changes = (change for entry in told for change in _change_rows(entry, counts))
    shown = _fitting(islice(changes, MOST_CHANGES), _CHANGE_BYTES)
    for row, entry in zip(rows, told, strict=True):
        row[-1] = _file_count(entry) - sum(change[0] == entry.key for change in shown)
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


def _conflict_row(change: RejectedChange) -> Row:
    return [
        *(change.id, change.store, _shown(change.path), change.operation),
        None if change.content is None else len(change.content),
        iso(change.at),
        one_line(change.reason, _WORDS),
    ]


def _entry_row(entry: Entry) -> Row:
    return [
        *(entry.key, entry.title, one_line(entry.code, _WORDS), entry.status, entry.words, entry.exit_code),
        "" if entry.duration_s is None else duration_text(entry.duration_s),
        iso(entry.at),
        [one_line(note, 2 * _WORDS) for note in (*entry.notes, *_notes_of(entry))[:8]],
        0,
    ]


def _notes_of(entry: Entry) -> list[str]:
    return [note for store in _stores(entry) for note in store.notes]


def _change_rows(entry: Entry, counts: LineCounts) -> Iterator[Row]:
    for store in _stores(entry):
        for line in store.lines():
            version = line.version
            yield [
                *(entry.key, line.outcome, store.slug, _shown(line.path)),
                *((version.id, version.ordinal, version.content_size_bytes) if version else (None, None, None)),
                *(counts.get(version.id, (None, None)) if version else (None, None)),
                one_line(line.reason, _WORDS),
            ]


def _file_count(entry: Entry) -> int:
    return sum(len(store.lines()) for store in _stores(entry))


def _stores(entry: Entry) -> Sequence[StoreReport]:
    return entry.report.stores if entry.report else ()


def _shown(path: str) -> Marked:
    """The path as the page shows it; one of nothing but marks would fill the state alone."""
    shown = marked(path)
    return shown if len(json.dumps(shown)) <= _PATH_BYTES else one_line(path, _WORDS)
