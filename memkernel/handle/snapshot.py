"""`Store.at(…)`: a store as it was at a point of its history. It can be read, and never changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from memkernel import render
from memkernel.errors import InvalidInputError, MemoryNotFoundError, RedactedError
from memkernel.handle.finding import Expression, near, without_last_slash
from memkernel.handle.records import Records
from memkernel.models import GrepMatch, Memory, MemoryPrefix, MemoryVersion, Point

if TYPE_CHECKING:
    from memkernel.handle.reading import StoreReading


class Snapshot:
    """A store as it was after one of its changes.

    What was redacted since is not in it any more: `redacted` tells of it.

    Attributes:
        store: the store, live.
        point: the number of the change, and when it was made.
    """

    def __init__(self, store: StoreReading, point: Point) -> None:
        self.store = store
        self.point = point
        database = store.connection.database
        self._timeline, self._versions = database.timeline, database.memory_versions

    @property
    def seq(self) -> int:
        """The number of the change that it is after; 0 is before the first one."""
        return self.point.seq

    @property
    def created_at(self) -> datetime | None:
        """When that change was made; None for 0, and where that change itself was pruned."""
        return self.point.created_at

    def __repr__(self) -> str:
        return f"<memkernel.Snapshot {self.store.slug} at {render.point_text(self.point)}>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        facts = list(self._facts())
        title = f"{self.store.name}, as it was"
        return {"text/plain": render.facts_text(title, facts), "text/html": render.facts_html(title, facts)}

    def _facts(self) -> Iterator[tuple[str, object]]:
        found = self._timeline.as_of(self.store.id, self.seq)
        yield "change", self.seq
        yield "time", render.moment(self.created_at)
        yield "memories", len(found.memories)
        if found.redacted:
            yield "redacted since", len(found.redacted)
        yield "store", render.code(self.store.id)

    # -- read --------------------------------------------------------------------------------------

    def memory(self, path: str) -> Memory:
        """The memory that was at a path, with its content of then.

        Raises:
            MemoryNotFoundError: nothing was there; `near` names paths of then that look like it.
            RedactedError: its text was erased since.
        """
        found = self._known(path)
        version = self._versions.retrieve(found.memory_version_id, memory_store_id=self.store.id)
        if version.redacted_at is not None:  # between the two readings
            raise RedactedError(version.id)
        return replace(found, content=version.content)

    def read(self, path: str) -> str:
        """The text that was at a path, exactly as it was written."""
        return self.memory(path).content or ""

    def read_bytes(self, path: str) -> bytes:
        """The bytes that were at a path, exactly as they were written."""
        return self.read(path).encode()

    def ls(self, path: str = "/", depth: int = 1) -> Records[Memory | MemoryPrefix]:
        """What lay at or below a path, in path order, without contents.

        Args:
            path: `/`, a directory with or without its last slash, or a memory.
            depth: 1 rolls deeper memories up into one MemoryPrefix a directory; 0 is the whole subtree.

        Raises:
            MemoryNotFoundError: nothing was at or below the path.
        """
        if depth not in (0, 1):
            raise InvalidInputError(f"depth is {depth!r}; it must be 0 or 1")
        at = without_last_slash(path)
        memories = self._timeline.as_of(self.store.id, self.seq, at).memories
        if not memories and at != "/":
            raise self._missing(at)
        if depth == 0:
            return Records(memories, kind=Memory)
        return Records(_rolled_up(memories, at if at == "/" else at + "/"), kind=(Memory, MemoryPrefix))

    def grep(self, pattern: str, path: str = "/", *, ignore_case: bool = False) -> Records[GrepMatch]:
        """The lines of then that a regular expression (Python's `re`) matches, in path order.

        Args:
            pattern: the expression; plain text finds itself.
            path: search only at or below this path.
            ignore_case: match letters whatever their case.

        Raises:
            InvalidInputError: the expression is malformed.
        """
        searched = Expression.of(pattern, ignore_case=ignore_case)
        memories = self._timeline.as_of(self.store.id, self.seq, without_last_slash(path)).memories
        paths = {memory.memory_version_id: memory.path for memory in memories}
        texts = self._timeline.contents(self.store.id, paths, containing=searched.plain)
        return Records(searched.matches((paths[version_id], text) for version_id, text in texts), kind=GrepMatch)

    @property
    def redacted(self) -> Records[MemoryVersion]:
        """The versions of then whose text and path were erased since."""
        return Records(self._timeline.as_of(self.store.id, self.seq).redacted, kind=MemoryVersion)

    # -- errors that help --------------------------------------------------------------------------

    def _known(self, path: str) -> Memory:
        found = self._timeline.as_of(self.store.id, self.seq, path)
        for memory in found.memories:
            if memory.path == path:
                return memory
        for version in found.redacted:
            if self._was_at(version, path):
                raise RedactedError(version.id)
        raise self._missing(path)

    def _was_at(self, version: MemoryVersion, path: str) -> bool:
        """Whether the memory was ever known to be at this path: what is redacted does not tell where it was."""
        lineage = self._versions.list(self.store.id, memory_id=version.memory_id, limit=100).data
        return any(each.path == path for each in lineage)

    def _missing(self, path: str) -> MemoryNotFoundError:
        known = (memory.path for memory in self._timeline.as_of(self.store.id, self.seq).memories)
        return MemoryNotFoundError(path, f"{self.store.slug} at {render.point_text(self.point)}", near(path, known))


def _rolled_up(memories: list[Memory], prefix: str) -> Iterator[Memory | MemoryPrefix]:
    """The direct children of a directory; what lies deeper as one prefix a directory."""
    last = ""
    for memory in memories:
        child, slash, _ = memory.path[len(prefix) :].partition("/")
        if not slash:
            yield memory
        elif child != last:
            last = child
            yield MemoryPrefix(f"{prefix}{child}/")
