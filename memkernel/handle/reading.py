"""What can be read of a memory store: its memories, its history, what is looked for in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from memkernel import paths
from memkernel.errors import InvalidInputError, MemoryNotFoundError, VersionNotFoundError
from memkernel.handle.diff import Diff
from memkernel.handle.finding import Expression, near, without_last_slash
from memkernel.handle.points import PointSpec, find_point
from memkernel.handle.records import Records
from memkernel.handle.snapshot import Snapshot
from memkernel.handle.store_diff import StoreDiff
from memkernel.handle.verified import Problems
from memkernel.handle.versions import VersionSpec, find_version, version_before
from memkernel.models import GrepMatch, Memory, MemoryPrefix, MemoryStore, MemoryVersion, Page, SearchHit
from memkernel.render import html_of, text_of

if TYPE_CHECKING:
    from memkernel.handle.connection import Connection

T = TypeVar("T")

_PAGE = 100


class StoreReading:
    """The half of `Store` that changes nothing."""

    def __init__(self, connection: Connection, record: MemoryStore) -> None:
        self.connection = connection
        self.record = record
        self._memories = connection.database.memories
        self._versions = connection.database.memory_versions
        self._actor = connection.actor

    @property
    def id(self) -> str:
        """`memstore_…`"""
        return self.record.id

    @property
    def name(self) -> str:
        """The display name; not unique."""
        return self.record.name

    @property
    def description(self) -> str:
        """What the store is for; `""` when unset."""
        return self.record.description

    @property
    def slug(self) -> str:
        """The name of its folder under /mnt/memory, also good for `%memory use` (CONTRACT C.5)."""
        return paths.mount_slug(self.name, self.id)

    def __repr__(self) -> str:
        return f"<memkernel.Store {self.slug} {self.id}>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": text_of(self.record), "text/html": html_of(self.record)}

    # -- read --------------------------------------------------------------------------------------

    def memory(self, path: str) -> Memory:
        """The live memory at a path, with its content.

        Raises:
            MemoryNotFoundError: nothing is there; `near` names paths that look like it.
        """
        try:
            return self._memories.at_path(self.id, path)
        except MemoryNotFoundError:
            raise self._missing(path) from None

    def read(self, path: str) -> str:
        """The text of the memory at a path, exactly as it was written."""
        return self.memory(path).content or ""

    def read_bytes(self, path: str) -> bytes:
        """The bytes of the memory at a path, exactly as they were written."""
        return self.read(path).encode()

    def ls(self, path: str = "/", depth: int = 1) -> Records[Memory | MemoryPrefix]:
        """What lies at or below a path, in path order, without contents.

        Args:
            path: `/`, a directory with or without its last slash, or a memory.
            depth: 1 rolls deeper memories up into one MemoryPrefix a directory; 0 is the whole subtree.

        Raises:
            MemoryNotFoundError: nothing is at or below the path.
        """
        at = without_last_slash(path)
        prefix = at if at == "/" else at + "/"
        found = Records[Memory | MemoryPrefix](
            _each(lambda page: self._memories.list(self.id, path_prefix=prefix, depth=depth, limit=_PAGE, page=page)),
            kind=(Memory, MemoryPrefix) if depth == 1 else Memory,
        )
        if found or at == "/":
            return found
        return Records([self._memory_or_missing(at)], kind=Memory)

    def _memory_or_missing(self, path: str) -> Memory:
        try:
            return self._memories.at_path(self.id, path, view="basic")
        except MemoryNotFoundError:
            raise self._missing(path) from None

    def grep(self, pattern: str, path: str = "/", *, ignore_case: bool = False) -> Records[GrepMatch]:
        """The lines that a regular expression (Python's `re`) matches, in path order.

        Args:
            pattern: the expression; plain text finds itself.
            path: search only at or below this path.
            ignore_case: match letters whatever their case.

        Raises:
            InvalidInputError: the expression is malformed.
        """
        searched = Expression.of(pattern, ignore_case=ignore_case)
        # PostgreSQL leaves out the memories that cannot match, where plain text is looked for.
        contents = self._memories.contents(self.id, without_last_slash(path), containing=searched.plain)
        return Records(searched.matches(contents), kind=GrepMatch)

    def search(self, query: str, path: str = "/", *, limit: int = 20) -> Records[SearchHit]:
        """The memories in which all words of a query occur, in content or path, whatever their letters' case.

        Those come first whose path holds most of the words, then those that hold them most often. `grep` looks for
        lines that an expression matches.

        Args:
            query: words between spaces; what stands in double quotes is one word.
            path: search only at or below this path.
            limit: 1-100 memories; the list's `total` tells of the others.

        Raises:
            InvalidInputError: no word, or more than 16.
        """
        found = self._memories.search(self.id, query, path, limit=limit)
        return Records(found.hits, kind=SearchHit, total=found.total)

    # -- history -----------------------------------------------------------------------------------

    def log(self, path: str | None = None, limit: int | None = None) -> Records[MemoryVersion]:
        """Versions, newest first, without contents: of one memory, or of the whole store.

        Args:
            path: the memory that is there, or the last one that was deleted there (CONTRACT 0.3, row 19); None is
                the whole store.
            limit: at most so many.

        Raises:
            MemoryNotFoundError: no memory is there, and none was deleted there.
        """
        if limit is not None and limit < 1:
            raise InvalidInputError(f"limit is {limit}; it must be 1 or more")
        versions = Records(
            _each(
                lambda page: self._versions.list(self.id, path=path, limit=min(_PAGE, limit or _PAGE), page=page),
                limit,
            ),
            kind=MemoryVersion,
        )
        if path is not None and not versions:
            raise self._missing(path)
        return versions

    def version(self, path: str | None, version: VersionSpec) -> MemoryVersion:
        """One version with its content. An id needs no path.

        Raises:
            MemoryNotFoundError: no memory is at the path, and none was deleted there.
            VersionNotFoundError: there is no such version.
        """
        try:
            return find_version(self.connection.database, self.id, path or "/", version)
        except VersionNotFoundError:
            if path and not self._versions.list(self.id, path=path, limit=1).data:
                raise self._missing(path) from None
            raise

    def verify(self) -> Problems:
        """Whether the store is as memkernel writes it: its numbers, the hashes of its texts, its memories.

        Returns:
            What is wrong, change by change, at most 1,000 of them; empty where the store is whole.
        """
        return Problems(self.connection.database.verify(self.id))

    def diff(self, path: str, old: VersionSpec | None = None, new: VersionSpec | None = None) -> Diff:
        """What changed between two versions of a memory; by default between the last two.

        Args:
            path: the memory.
            old: a version; alone it is compared with the head.
            new: another version.
        """
        newer = self.version(path, "head" if new is None else new)
        database = self.connection.database
        older = version_before(database, newer) if old is None else self.version(path, old)
        return Diff.of(path, older, newer, self, self._versions.cause(self.id, newer.id))

    # -- the whole store, then and now -------------------------------------------------------------

    def at(self, moment: PointSpec | None = None, *, seq: int | None = None) -> Snapshot:
        """The store as it was, to be read only.

        Args:
            moment: a moment (`"2026-11-30T10:00Z"`; without a zone it is UTC), `"yesterday"`, a version.
            seq: instead, the number of one of the store's changes: after that one. 0 is before the first, -1 before
                the newest.

        Raises:
            InvalidInputError: neither is given, or both; or there is no such point.
            HistoryPrunedError: what was there then was pruned.
        """
        asked = seq if moment is None else moment
        if asked is None or (moment is not None and seq is not None):
            raise InvalidInputError("a snapshot is of one point: give a moment or a seq", hint="store.at(seq=41)")
        return Snapshot(self, find_point(self.connection.database, self.id, asked))

    def compare(self, old: PointSpec, new: PointSpec | None = None) -> StoreDiff:
        """What differs between two points of the store's history.

        Args:
            old: the number of a change, a moment, a version, or a Snapshot.
            new: the same; None is now.

        Raises:
            InvalidInputError: there is no such point.
            HistoryPrunedError: what was there then was pruned.
        """
        database = self.connection.database
        older, newer = (find_point(database, self.id, spec) for spec in (old, "head" if new is None else new))
        return StoreDiff(self, older, newer, database.timeline.compare(self.id, older.seq, newer.seq))

    def span(self) -> tuple[int, int]:
        """The numbers of the first and the last change after which the store can be read: pruning moves the first."""
        return self.connection.database.timeline.span(self.id)

    def _missing(self, path: str) -> MemoryNotFoundError:
        return MemoryNotFoundError(path, self.slug, near(path, (entry for entry, _ in self._memories.entries(self.id))))


def _each(fetch: Callable[[str | None], Page[T]], limit: int | None = None) -> Iterator[T]:
    """The rows of all pages, or the first `limit` of them."""
    page: str | None = None
    left = limit
    while True:
        found = fetch(page)
        yield from found.data if left is None else found.data[:left]
        left = None if left is None else left - len(found.data)
        page = found.next_page
        if page is None or (left is not None and left <= 0):
            return
