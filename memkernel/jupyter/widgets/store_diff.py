"""`StoreCompare`: what differs in a store between two points, which can be moved along its history."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from traitlets import Dict, Int, List, Unicode, Union

from memkernel import render
from memkernel.errors import MemkernelError
from memkernel.handle.points import PointSpec
from memkernel.handle.store import Store
from memkernel.handle.store_diff import StoreDiff
from memkernel.jupyter.preferences import Preferences
from memkernel.jupyter.widgets.comparing import Comparing
from memkernel.jupyter.widgets.rows import iso, marked
from memkernel.jupyter.widgets.widget import request
from memkernel.models import Point, StoreChange
from memkernel.render.marks import cut, one_line

MOST_CHANGES: Final = 200
_STATE_BYTES: Final = 36_000
_PATH_CHARACTERS: Final = 300
_NOTE_CHARACTERS: Final = 200


class StoreCompare(Comparing):
    """Two points of a store's history, the memories that are not the same at both, and the diff of one of them.

    Events: `compared` (old, new), `select` (path).

    Attributes:
        store, store_name: the store's id, and what is compared: its name, perhaps with a path, marked.
        old, new: the numbers of the changes after which the store is compared; 0 is before the first one.
        query: only the memories whose path holds this text, whatever its letters' case.
        selected: the id of the change whose diff is shown; "" is none.
        view: what is seen: the points in words, how many changes there are and match, rows of the first 200 of those.
    """

    store = Unicode().tag(sync=True)
    store_name = Union([Unicode(), List()]).tag(sync=True)
    old = Int(min=0).tag(sync=True)
    new = Int(min=0).tag(sync=True)
    query = Unicode().tag(sync=True)
    selected = Unicode().tag(sync=True)
    view = Dict().tag(sync=True)

    def __init__(self, found: StoreDiff) -> None:
        self._found = found
        super().__init__(
            kind="compare",
            readonly=not isinstance(found.store, Store),
            store=found.store.id,
            store_name=marked(cut(found.title, _PATH_CHARACTERS)),
        )
        self.compared_store = found.store
        self._show(found)
        self.observe(self._on_point, ["old", "new"])
        self.observe(self._on_query, "query")
        self.observe(self._on_select, "selected")

    @classmethod
    def of(cls, found: StoreDiff, preferences: Preferences) -> StoreCompare:
        """The widget of a difference."""
        return cls(found)

    # -- what the page asks for ----------------------------------------------------------------------

    @request
    def look(self, *, old: PointSpec | None = None, new: PointSpec | None = None, query: str | None = None) -> None:
        """Compare other points (changes' numbers, or what a person has typed), or only other paths: `view` follows."""
        if query is not None:
            self.query = query
        if old is not None or new is not None:
            self._compare(self.old if old is None else old, self.new if new is None else new)

    @request
    def more(self, *, start: int) -> dict[str, Any]:
        """Rows of the matching changes from `start` on, 200 at most."""
        return self._rows(self._matching(), max(start, 0), None)

    @request
    def counts(self, *, changes: list[str]) -> dict[str, str]:
        """How many lines came and went, by the ids of changes: of the first ones, as many as take little time."""
        asked = set(changes)
        counts = self._found.lines_soon([change for change in self._found if change.id in asked])
        return {changed: render.lines_text(lines) for changed, lines in counts.items()}

    # -- what is looked at ---------------------------------------------------------------------------

    def changed(self) -> None:
        """After a redaction: the same points, as they are told now."""
        self._compare(self.old, self.new)

    def _compare(self, old: PointSpec, new: PointSpec) -> None:
        self._show(self._found.store.compare(old, new).below(self._found.path))
        self.refresh_static()
        self.happened("compared", old=self.old, new=self.new)

    def _show(self, found: StoreDiff) -> None:
        with self._turn, self.hold_sync():
            self._found = found
            with self.hold_trait_notifications():  # one point is never looked at without the other
                self.old, self.new = found.old.seq, found.new.seq
            if self.selected and self.selected not in {change.id for change in found}:
                self.selected = ""
            self._draw()

    def _draw(self) -> None:
        first, head = self._found.store.span()
        matching = self._matching()
        self.view = {
            "old": _point(self._found.old),
            "new": _point(self._found.new),
            "first": first,
            "head": head,
            "total": len(self._found),
            "summary": render.changes_summary(matching),
            **self._rows(matching, 0, _STATE_BYTES),
        }
        self.as_of = iso(datetime.now(UTC))

    def _matching(self) -> list[StoreChange]:
        wanted = self.query.casefold()
        return [change for change in self._found if wanted in render.change_path(change).casefold()]

    def _rows(self, matching: Sequence[StoreChange], start: int, room: int | None) -> dict[str, Any]:
        """Rows of the changes from `start` on; what of them has room, and where the next ones begin."""
        part = matching[start : start + MOST_CHANGES]
        counts = self._found.lines_soon(part)
        rows = list(_fitting([_row(change, counts) for change in part], room))
        end = start + len(rows)
        return {"rows": rows, "matching": len(matching), "next": end if end < len(matching) else None}

    # -- what a person does --------------------------------------------------------------------------

    def _on_point(self, change: object) -> None:
        shown = self._found.old.seq, self._found.new.seq
        if (self.old, self.new) == shown:
            return
        try:
            self._compare(self.old, self.new)
        except MemkernelError:
            with self.hold_trait_notifications():
                self.old, self.new = shown
            raise

    def _on_query(self, change: object) -> None:
        with self._turn, self.hold_sync():
            self._draw()

    def _on_select(self, change: Mapping[str, Any]) -> None:
        for each in self._found:
            if each.id == change["new"]:
                self.happened("select", path=each.path)

    # -- without a kernel ----------------------------------------------------------------------------

    def plain(self) -> str:
        """The table of what differs."""
        return str(self._found)

    def static_html(self) -> str:
        """The same as HTML."""
        return self._found._repr_html_()  # pyright: ignore[reportPrivateUsage]  # IPython's protocol


def _point(point: Point) -> list[Any]:
    """[seq, in words]"""
    return [point.seq, render.point_text(point)]


def _row(change: StoreChange, counts: render.LineCounts) -> list[Any]:
    """[id, sign, kind, path, lines, note, by, at, old, new]

    `lines` is null where they were not counted yet, and "" where they never will be: the note says why.
    """
    told = change.new or change.old
    note = one_line(render.change_note(change), _NOTE_CHARACTERS)
    lines = render.lines_text(counts[change.id]) if change.id in counts else "" if note else None
    return [
        *(change.id, render.CHANGE_SIGNS[change.kind], change.kind),
        marked(cut(render.change_path(change), _PATH_CHARACTERS)),
        *(lines, note),
        told.created_by.id if told and told.created_by else "",
        iso(told.created_at) if told else "",
        *(side.id if side else "" for side in (change.old, change.new)),
    ]


def _fitting(rows: list[list[Any]], room: int | None) -> Iterator[list[Any]]:
    """The first rows, as many as there is room for in bytes; None is room for all."""
    left = room
    for row in rows:
        if left is not None:
            left -= len(json.dumps(row))
            if left < 0:
                return
        yield row
