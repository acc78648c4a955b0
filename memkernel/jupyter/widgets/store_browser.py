"""`StoreBrowser`: a store in the page: its memories, their texts and history, search, edit, restore, redact."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Final, cast

from traitlets import Any as AnyTrait
from traitlets import Bool, Dict, Enum, Int, List, Unicode, observe

from memkernel.errors import (
    MemkernelError,
    MemoryNotFoundError,
    PreconditionFailedError,
    RefusedError,
    VersionNotFoundError,
)
from memkernel.handle.browse import Browse, browsed_html, browsed_text, memories_of, stores_of
from memkernel.handle.records import Records
from memkernel.handle.store import Store
from memkernel.jupyter.preferences import Preferences
from memkernel.jupyter.widgets.comparing import Comparing, Text
from memkernel.jupyter.widgets.memory_text import by_whom
from memkernel.jupyter.widgets.rows import iso, marked, version_row
from memkernel.jupyter.widgets.store_rows import StoreRows, Versions, fitting, store_row
from memkernel.jupyter.widgets.widget import request, slow_request
from memkernel.models import ABSENT
from memkernel.render import one_line

# What the state holds at most, for its 64 KB and 200 rows: rows and bytes.
STATE_MEMORIES: Final = (120, 20_000)
STATE_VERSIONS: Final = (60, 14_000)
STATE_STORES: Final = (150, 50_000)
STATE_CONTENT_BYTES: Final = 20_000

_DRAFT: Final = "draft:"


class StoreBrowser(Comparing):
    """A store to look through, or the stores to choose from.

    Attributes:
        reason: why nothing can be changed; `""` where it can.
        store: the id of the store; `""` while one is chosen.
        store_name: its name, marked.
        stores: [id, name, description, memory_count, updated_at, archived_at], to choose from.
        prefix: the directory that is looked at.
        memories: the first rows in path order, [path, size, updated_at, memory_version_id], and the path as it is
            stored where it has marks; of a deleted memory [path, None, deleted_at, the deletion's id].
        total: how many there are below the prefix.
        versions: the newest rows of the selected memory's history; where none is selected, of the store's.
        versions_total: how many there are.
        selected: the path of the memory that is looked at; `""` for none.
        selected_version: the id of the version of it; `""` for the head.
        base_version: the id of the version that others are compared with; `""` for none.
        content: what is selected, where it is small enough for the state.
        show_deleted: deleted memories are among the others.
        tab, view, query, height: of the page.
    """

    kind = Unicode("browser").tag(sync=True)
    reason = Unicode().tag(sync=True)
    store = Unicode().tag(sync=True)
    store_name: Any = AnyTrait("").tag(sync=True)
    stores = List[Any]().tag(sync=True)
    prefix = Unicode("/").tag(sync=True)
    memories = List[Any]().tag(sync=True)
    total = Int().tag(sync=True)
    versions = List[Any]().tag(sync=True)
    versions_total = Int().tag(sync=True)
    selected = Unicode().tag(sync=True)
    selected_version = Unicode().tag(sync=True)
    base_version = Unicode().tag(sync=True)
    content: Any = Dict().tag(sync=True)
    show_deleted = Bool(False).tag(sync=True)
    tab = Unicode("memories").tag(sync=True)
    view = Enum(["preview", "source"], "preview").tag(sync=True)
    query = Unicode().tag(sync=True)
    height = Int(420).tag(sync=True)

    def __init__(self, looked_at: Browse) -> None:
        self._connection = looked_at.connection
        self._is_for_reading = looked_at.readonly
        self._shows_in: int | None = None
        self._seen = ("", "")
        self._rows: StoreRows | None = None
        self._records: Records[Any] = looked_at.records
        self._drafts: dict[str, str] = {}
        self._draft_numbers = itertools.count(1)
        super().__init__(prefix=looked_at.prefix, selected=looked_at.selected)
        self._show(looked_at.store, looked_at.records)

    @classmethod
    def of(cls, looked_at: Browse, preferences: Preferences) -> StoreBrowser:
        """The widget of a Browse."""
        return cls(looked_at)

    def plain(self) -> str:
        """The table of the memories, or of the stores."""
        return browsed_text(self._store, self._records)

    def static_html(self) -> str:
        """The same as HTML."""
        return browsed_html(self._store, self._records)

    # -- the state -----------------------------------------------------------------------------------

    def _show(self, store: Store | None, records: Records[Any]) -> None:
        """Set all traits for a store and its memories, or for the stores to choose from."""
        self.compared_store, self._records = store, records
        self._rows = StoreRows(store, self.prefix) if store else None
        with self._one_message():
            self.as_of = iso(datetime.now(UTC))
            self.store, self.store_name = (store.id, marked(store.name)) if store else ("", "")
            self.stores = [] if store else fitting(list(map(store_row, records)), *STATE_STORES)
            self.reason = self._why_readonly()
            self.readonly = bool(self.reason)
            self._show_memories()
            self._show_selected()

    @contextmanager
    def _one_message(self) -> Generator[None]:
        """What is set meanwhile goes to the page at once, and nobody takes it for the person's doing."""
        before, self._shows_in = self._shows_in, threading.get_ident()
        try:
            with cast("Any", self).hold_sync():  # of ipywidgets, which has no types
                yield
        finally:
            self._shows_in = before

    def _why_readonly(self) -> str:
        if self._rows and self._rows.record().archived_at:
            return "archived, so read only"
        return "opened to be read only" if self._is_for_reading else ""

    def _show_memories(self) -> None:
        rows = self._rows.memories(self._records, with_deleted=self.show_deleted) if self._rows else []
        self.memories = fitting([row for _, row in rows], *STATE_MEMORIES)
        self.total = len(rows)

    def _show_selected(self) -> None:
        """What is selected; nothing any more where it is gone."""
        versions, content = Versions([], None, 0), dict[str, Any]()
        if self._rows:
            try:
                versions, content = self._selected_of(self._rows)
            except (MemoryNotFoundError, VersionNotFoundError):
                self.selected = self.selected_version = ""
                versions, content = self._selected_of(self._rows)
        self._seen = self.selected, self.selected_version
        self.versions = fitting(versions.rows, *STATE_VERSIONS)
        self.versions_total = versions.total
        self.content = content if len(json.dumps(content)) <= STATE_CONTENT_BYTES else {}

    def _selected_of(self, rows: StoreRows) -> tuple[Versions, dict[str, Any]]:
        is_something = self.selected or self.selected_version
        content = rows.content(self.selected, self.selected_version, readonly=self.readonly) if is_something else {}
        return rows.timeline(self.selected, ""), content

    @observe("selected", "selected_version")
    def _on_look(self, change: Any) -> None:
        """The person looks at something else, or somebody in Python does: it is what the notebook keeps."""
        if self._is_of_us() or (self.selected, self.selected_version) == self._seen:  # both came in one message
            return
        with self._turn, suppress(MemkernelError), self._one_message():  # a request of the page tells what fails
            self._show_selected()
        self.happened("select", path=self.selected, version=self.selected_version)

    @observe("show_deleted")
    def _on_show_deleted(self, change: Any) -> None:
        if not self._is_of_us():
            with self._turn, suppress(MemkernelError), self._one_message():
                self._show_memories()

    def _is_of_us(self) -> bool:
        return self._rows is None or self._shows_in == threading.get_ident()

    def changed(self) -> None:
        """Something was changed from here: show what there is now."""
        self._show(self._store, self._rows.live() if self._rows else stores_of(self._connection))
        self.refresh_static()

    @property
    def _store(self) -> Store | None:
        return self._rows.store if self._rows else None

    @property
    def _shelf(self) -> StoreRows:
        if self._rows is None:
            raise RefusedError("no store is chosen yet", hint="Choose one of the list.")
        return self._rows

    def _writable_store(self) -> Store:
        if self.readonly:
            raise RefusedError(f"this view can be read only: {self.reason}")
        return self._shelf.store

    def own_text(self, text_id: str) -> Text | None:
        """What the person typed, to be compared with what somebody else wrote meanwhile."""
        if not text_id.startswith(_DRAFT) or text_id not in self._drafts:
            return None
        return Text(self._drafts[text_id], "mine")

    # -- what the page asks for ----------------------------------------------------------------------

    @request
    def choose(self, *, store: str) -> dict[str, Any]:
        """Look at another store; `""` is the choice of one."""
        with self._one_message():
            self.prefix, self.show_deleted = "/", False
            self.selected = self.selected_version = self.base_version = self.query = ""
        if store:
            chosen = self._connection.store(store)
            self._show(chosen, memories_of(chosen))
        else:
            self._show(None, stores_of(self._connection))
        self.refresh_static()
        return {}

    @request
    def refresh(self) -> dict[str, Any]:
        """Read everything again."""
        self.changed()
        return {}

    @request
    def memories_after(self, *, after: str) -> dict[str, Any]:
        """{memories: the rows behind a path, next: a path or null, total}"""
        return self._shelf.memories_after(after, with_deleted=self.show_deleted)

    @request
    def timeline(self, *, path: str, before: str = "") -> dict[str, Any]:
        """{versions, next: an id or null, total} of a memory, or of the whole store, newest first."""
        rows, next_id, total = self._shelf.timeline(path, before)
        return {"versions": rows, "next": next_id, "total": total}

    @request
    def read(self, *, path: str, version: str = "") -> dict[str, Any]:
        """What is shown of a version (memory_text.py); without one, of the newest at the path."""
        return self._shelf.content(path, version, readonly=self.readonly)

    @slow_request
    def changes(self, *, versions: list[str]) -> dict[str, Any]:
        """{changes: {id: [lines added, lines removed]}}"""
        return {"changes": self._shelf.line_changes(versions)}

    @slow_request
    def search(self, *, text: str) -> dict[str, Any]:
        """{hits: [path, id of the head, count, [[line, spans], …]], total, words}; line 0 is the path itself."""
        return self._shelf.hits(text)

    @request
    def edit(self, *, path: str) -> dict[str, Any]:
        """The text as it is, and the hash that a save of it expects."""
        memory = self._shelf.store.memory(path)
        version = self._shelf.version(memory.memory_version_id)
        return {"text": memory.content, "sha256": memory.content_sha256, "version": version_row(version)}

    @request
    def draft(self, *, text: str) -> dict[str, str]:
        """Keep one text of the person, to compare it; its id."""
        text_id = f"{_DRAFT}{next(self._draft_numbers)}"
        self._drafts = {text_id: text}
        return {"id": text_id}

    @request
    def compared(self, *, old: str, new: str) -> dict[str, Any]:
        """The person looks at a diff."""
        self.happened("open_diff", old=old, new=new)
        return {}

    @request
    def save(self, *, path: str, text: str, expect: str) -> dict[str, Any]:
        """Write a text over the one with this hash; over nothing where that is `""`.

        Returns:
            version, or conflict: what is there meanwhile (`version` and `sha256`, none where nothing is), in `words`.
        """
        store = self._writable_store()
        try:
            memory = store.write(path, text, expect=expect or ABSENT)
        except PreconditionFailedError:
            how = "was changed while you edited it," if expect else "is there already: written"
            return {"conflict": self._conflict(path, how)}
        return self._done("edit_saved", path, memory.memory_version_id)

    @request
    def delete(self, *, path: str, expect: str) -> dict[str, Any]:
        """Delete the memory, if it has the content with this hash; else tell what is there (see `save`)."""
        store = self._writable_store()
        try:
            store.delete(path, expect=expect)
        except PreconditionFailedError:
            conflict = self._conflict(path, "was changed meanwhile,")
            return {"conflict": {**conflict, "words": f"{conflict['words']} Delete it all the same?"}}
        return self._done("deleted", path, self._shelf.newest_at(path).id)

    @request
    def rename(self, *, path: str, new_path: str) -> dict[str, Any]:
        """Move a memory, or all that lies below a directory."""
        moved = self._writable_store().rename(path, new_path)
        with self._one_message():
            if self.selected == path:
                self.selected, self.selected_version = new_path, ""
        self.changed()
        self.happened("renamed", path=path, new_path=new_path)
        return {"moved": moved}

    def _done(self, event: str, path: str, version: str) -> dict[str, Any]:
        self.changed()
        self.happened(event, path=path, version=version)
        return {"version": version_row(self._shelf.version(version))}

    def _conflict(self, path: str, how: str) -> dict[str, Any]:
        """What is at the path in place of what the person thought."""
        name = one_line(path)
        try:
            memory = self._shelf.store.memory(path)
        except MemoryNotFoundError:
            return {"version": None, "sha256": "", "words": f"{name} is not there any more: {self._end_of(path)}."}
        version = self._shelf.version(memory.memory_version_id)
        words = f"{name} {how} {by_whom(version)}."
        return {"version": version_row(version), "sha256": memory.content_sha256, "words": words}

    def _end_of(self, path: str) -> str:
        try:
            return f"deleted {by_whom(self._shelf.newest_at(path))}"
        except MemoryNotFoundError:
            return "it was renamed"
