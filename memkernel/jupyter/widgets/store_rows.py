"""What the StoreBrowser reads of a store, as rows for the page."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

from memkernel.errors import HistoryPrunedError, InvalidInputError, MemoryNotFoundError
from memkernel.handle.browse import memories_of
from memkernel.handle.diff import version_text
from memkernel.handle.history import History
from memkernel.handle.records import Records
from memkernel.handle.store import Store
from memkernel.jupyter.widgets.memory_text import content_of
from memkernel.jupyter.widgets.rows import iso, marked, memory_row, version_row
from memkernel.models import Memory, MemoryPrefix, MemoryStore, MemoryVersion
from memkernel.textdiff import diff
from memkernel.textsearch import spans, words_of

PAGE: Final = 100
HITS: Final = 50
MEMORIES: Final = 2_000
MEMORIES_BYTES: Final = 400_000
DELETED: Final = 500
"""So many of the last deletions are looked through for memories to list."""
COUNTED: Final = 60
COUNTED_BYTES: Final = 2_000_000
"""Of so many texts the lines are counted in one request: a number less does no harm, a page that waits does."""
_DESCRIPTION_CHARACTERS: Final = 200


class Versions(NamedTuple):
    """A page of a history, newest first; `next` is the id of its last one where there are more."""

    rows: list[Any]
    next: str | None
    total: int


class StoreRows:
    """The rows of one store.

    Args:
        store: the store.
        prefix: the directory that is looked at.
    """

    def __init__(self, store: Store, prefix: str) -> None:
        self.store = store
        self._prefix = prefix
        self._history = History(store)
        self._database = store.connection.database

    def record(self) -> MemoryStore:
        """The store as it is now."""
        return self._database.memory_stores.retrieve(self.store.id)

    # -- memories ------------------------------------------------------------------------------------

    def live(self) -> Records[Memory | MemoryPrefix]:
        """The memories below the prefix."""
        try:
            return memories_of(self.store, self._prefix)
        except MemoryNotFoundError:  # the last one there is gone
            return Records(kind=Memory, empty=f"There is no memory below {self._prefix} any more.")

    def memories(self, live: Iterable[Memory | MemoryPrefix], *, with_deleted: bool) -> list[tuple[str, Any]]:
        """Path as it is stored and row of each memory, in path order.

        Args:
            live: those that are there.
            with_deleted: those that were deleted and whose paths are free, too.
        """
        rows = [(each.path, _keyed(memory_row(each), each.path)) for each in live if isinstance(each, Memory)]
        return rows if not with_deleted else sorted([*rows, *self._deleted({path for path, _ in rows})], key=_PATH)

    def _deleted(self, taken: set[str]) -> list[tuple[str, Any]]:
        found: dict[str, Any] = {}
        page: str | None = None
        for _ in range(DELETED // PAGE):
            listed = self._database.memory_versions.list(self.store.id, operation="deleted", limit=PAGE, page=page)
            for version in listed.data:
                if version.path is not None and version.path.startswith(self._prefix) and version.path not in taken:
                    row = [marked(version.path), None, iso(version.created_at), version.id]
                    found.setdefault(version.path, _keyed(row, version.path))
            page = listed.next_page
            if page is None:
                break
        return list(found.items())

    def memories_after(self, after: str, *, with_deleted: bool) -> dict[str, Any]:
        """The rows behind a path, as many as go in one answer."""
        rows = self.memories(self.live(), with_deleted=with_deleted)
        rest = rows[bisect_right(rows, after, key=_PATH) :]
        shown = fitting([row for _, row in rest], MEMORIES, MEMORIES_BYTES)
        more = len(shown) < len(rest)
        return {"memories": shown, "next": rest[len(shown) - 1][0] if more and shown else None, "total": len(rows)}

    def hits(self, query: str) -> dict[str, Any]:
        """The memories in which all words occur, best first."""
        if not query.strip():
            return {"hits": [], "total": 0, "words": []}
        words = words_of(query)
        result = self._database.memories.search(self.store.id, query, self._prefix, limit=HITS)
        hits: list[Any] = []
        for hit in result.hits:
            lines = [[each.line, _spans(each.text, words)] for each in hit.lines] or [[0, _spans(hit.path, words)]]
            hits.append(_keyed([marked(hit.path), hit.memory_version_id, hit.count, lines], hit.path))
        return {"hits": hits, "total": result.total, "words": words}

    # -- versions ------------------------------------------------------------------------------------

    def timeline(self, path: str, before: str) -> Versions:
        """The versions of a memory, alive or the last one deleted there, or of the whole store (`""`).

        Args:
            path: of the memory.
            before: the id of the version that the page begins behind; `""` for the newest.
        """
        edge = self._history.version(before, view="basic") if before else None
        if path:
            memory_id = (edge or self.newest_at(path)).memory_id
            lineage = self._history.lineage(memory_id, before=edge.ordinal if edge else None, limit=PAGE)
            last = lineage.versions[-1]
            total = lineage.last_ordinal - lineage.first_ordinal + 1
            more = last.ordinal > lineage.first_ordinal
            return Versions(list(map(version_row, lineage.versions)), last.id if more else None, total)
        listed = self._database.memory_versions.list(self.store.id, seq_lt=edge.seq if edge else None, limit=PAGE)
        next_id = listed.data[-1].id if listed.next_page else None
        return Versions(list(map(version_row, listed.data)), next_id, self.record().head_seq)

    def newest_at(self, path: str) -> MemoryVersion:
        """The head of the memory at a path, or the deletion of the last one there, without its content.

        Raises:
            MemoryNotFoundError: there is none, and was none.
        """
        return self.store.log(path, limit=1)[0]

    def version(self, memory_version_id: str) -> MemoryVersion:
        """The version with this id, without its content."""
        return self._history.version(memory_version_id, view="basic")

    def content(self, path: str, version: str, *, readonly: bool) -> dict[str, Any]:
        """What is shown of a version; without one of the newest at the path."""
        if not path and not version:
            raise InvalidInputError("there is nothing to read: neither a path nor a version is given")
        shown = self._history.version(version or self.newest_at(path).id)
        return content_of(shown, self._history.newest(shown.memory_id), readonly=readonly)

    def line_changes(self, versions: Sequence[str]) -> dict[str, list[int]]:
        """By the version's id, how many lines it added and removed; where that is not known it is left out."""
        found: dict[str, list[int]] = {}
        left = COUNTED_BYTES
        for memory_version_id in versions[:COUNTED]:
            new = self._history.version(memory_version_id)
            try:
                old = self._history.before(new, view="full")
            except HistoryPrunedError:
                continue
            texts = version_text(old), version_text(new)
            if None in texts:
                continue
            left -= sum(len(text or "") for text in texts)
            if left < 0:
                break
            difference = diff(texts[0] or "", texts[1] or "", context=0)
            found[memory_version_id] = [difference.added, difference.removed]
        return found


_PATH: Final = itemgetter(0)


def store_row(store: MemoryStore) -> list[Any]:
    """[id, name, description, memory_count, updated_at, archived_at]"""
    return [
        *(store.id, marked(store.name), marked(_shortened(store.description))),
        *(store.memory_count, iso(store.updated_at), iso(store.archived_at) if store.archived_at else None),
    ]


def fitting(rows: Sequence[Any], most: int, most_bytes: int) -> list[Any]:
    """The first rows, at most so many and so many bytes of JSON; one at least."""
    kept: list[Any] = []
    for row in rows[:most]:
        most_bytes -= len(json.dumps(row))
        if most_bytes < 0 and kept:
            break
        kept.append(row)
    return kept


def _keyed(row: list[Any], path: str) -> list[Any]:
    """The row; where the page cannot read the path from its marks, the path as it is stored comes last."""
    return row if isinstance(row[0], str) else [*row, path]


def _spans(text: str, words: Sequence[str]) -> list[Any]:
    return [[int(is_hit), marked(piece)] for is_hit, piece in spans(text, words)]


def _shortened(text: str) -> str:
    return text if len(text) <= _DESCRIPTION_CHARACTERS else f"{text[: _DESCRIPTION_CHARACTERS - 1]}…"
