"""`mk.Store`: a memory store as a person holds it. Paths in, texts out; every change is a version."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, Unpack

from memkernel.cluster import home_directory
from memkernel.errors import InvalidInputError, MemoryNotFoundError
from memkernel.handle.browse import Browse
from memkernel.handle.finding import without_last_slash
from memkernel.handle.reading import StoreReading
from memkernel.handle.versions import VersionSpec
from memkernel.models import Absent, Memory, MemoryVersion

if TYPE_CHECKING:
    from memkernel.agent.memory_tool import AsyncMemoryTool, MemoryTool, MemoryToolOptions
    from memkernel.sync.rejected import RejectedFolder

T = TypeVar("T")


class Store(StoreReading):
    """A memory store. Its name and description are as of when it was got; its memories are always live."""

    # -- change ------------------------------------------------------------------------------------

    def write(self, path: str, content: str | bytes, *, expect: str | Absent | None = None) -> Memory:
        """Create or replace a memory; a content that is there already makes no version.

        Args:
            path: its path.
            content: text, or bytes of UTF-8, kept exactly; at most 102,400 bytes.
            expect: the sha256 that its content must have now, or `mk.ABSENT`: it must not be there.

        Raises:
            PreconditionFailedError: `expect` does not hold: another content, no memory, or with `mk.ABSENT` one.
            PathConflictError: the path lies above or below another memory.
            InvalidInputError: an illegal path or content.
            RefusedError: the store is archived, or full.
        """
        return self._memories.write(self.id, path, content, expect=expect, actor=self._actor)

    def replace(self, path: str, old: str, new: str, *, every: bool = False) -> Memory:
        """Replace a text that occurs exactly once, or `every` occurrence of it.

        Raises:
            InvalidInputError: the text does not occur, or more than once.
            PreconditionFailedError: somebody changed the memory meanwhile.
        """
        memory = self.memory(path)
        text = memory.content or ""
        count = text.count(old) if old else 0
        if count == 0:
            raise InvalidInputError(f"{old!r} does not occur in {path}", hint="Nothing was changed.")
        if count > 1 and not every:
            raise InvalidInputError(
                f"{old!r} occurs {count} times in {path}", hint="Give more of the text around it, or replace every one."
            )
        return self.write(path, text.replace(old, new), expect=memory.content_sha256)

    def rename(self, path: str, new_path: str) -> int:
        """Move a memory, or a directory with all that lies below it, in one transaction.

        Args:
            path: a memory, or a directory with or without its last slash.
            new_path: where it will be.

        Returns:
            The number of memories moved; they keep their ids and histories.

        Raises:
            MemoryNotFoundError: nothing is at or below the path.
            PathConflictError: the new path is taken or overlaps.
        """
        old, new = without_last_slash(path), without_last_slash(new_path)
        return self._at(old, lambda: self._memories.rename_tree(self.id, old, new, actor=self._actor))

    def delete(self, path: str, *, recursive: bool = False, expect: str | None = None) -> int:
        """Delete a memory; its versions stay.

        Args:
            path: a memory, or with `recursive` a directory, with or without its last slash (`/`: all).
            recursive: also delete all that lies below the path.
            expect: the sha256 that the memory's content must have now; not for a directory.

        Returns:
            The number of memories deleted.

        Raises:
            MemoryNotFoundError: nothing is there.
            PreconditionFailedError: `expect` does not hold.
            InvalidInputError: `expect` together with `recursive`.
        """
        if recursive and expect is not None:
            raise InvalidInputError("a hash can be expected of one memory, not of a directory", hint="Leave one out.")
        if recursive:
            at = without_last_slash(path)
            return self._at(at, lambda: self._memories.delete_tree(self.id, at, actor=self._actor))
        memory = self._memory_or_missing(path)
        self._memories.delete(memory.id, memory_store_id=self.id, expected_content_sha256=expect, actor=self._actor)
        return 1

    # -- history -----------------------------------------------------------------------------------

    def restore(self, path: str, version: VersionSpec, *, expect: str | None = None) -> Memory:
        """Write an earlier version's text again, as a new version; a deleted memory comes back.

        Args:
            path: the memory.
            version: the version whose text is wanted.
            expect: the sha256 that the memory's content must have now.

        Raises:
            RedactedError: that version's text is gone.
            PreconditionFailedError: the memory changed meanwhile.
        """
        found = self.version(path, version)
        return self._versions.restore(found.id, memory_store_id=self.id, path=path, expect=expect, actor=self._actor)

    def redact(self, path: str | None, version: VersionSpec) -> MemoryVersion:
        """Erase one version's text and path for ever; what happened, when and by whom stays.

        So are the texts that sandboxes of this machine put aside, where they are this one or were made from it.

        Raises:
            HeadRedactionError: it is the current text of a live memory.
        """
        found = self.version(path, version)
        redacted = self._versions.redact(found.id, memory_store_id=self.id, actor=self._actor)
        if found.content_sha256 is not None:
            self._put_aside().erase(self.id, {found.content_sha256})
        return redacted

    # -- the store itself --------------------------------------------------------------------------

    def browse(self, prefix: str = "/", *, readonly: bool = False) -> Browse:
        """The store to look at: a table in a terminal; in a notebook its memories, their history and their texts.

        Args:
            prefix: a directory, with or without its last slash, or the memory that is looked at first.
            readonly: nothing is to be changed from there.

        Raises:
            MemoryNotFoundError: nothing is at or below the path.
        """
        return Browse(self.connection, self, prefix, readonly=readonly)

    def archive(self) -> None:
        """Make the store read-only, for ever."""
        self.record = self.connection.database.memory_stores.archive(self.id)

    def drop(self) -> None:
        """Delete the store with its memories, their whole history, and what sandboxes of this machine put aside.

        Raises:
            StoreAttachedError: a session uses it.
        """
        self.connection.database.memory_stores.delete(self.id)
        self._put_aside().erase(self.id)

    def _put_aside(self) -> RejectedFolder:
        from memkernel.sync.rejected import RejectedFolder

        return RejectedFolder.of(home_directory(self.connection.settings.home))

    def memory_tool(self, **options: Unpack[MemoryToolOptions]) -> MemoryTool:
        """The tool `memory_20250818` on this store, for the official SDK's tool runner (CONTRACT 0.3, row 20).

        Args:
            **options: all by name, all optional: `session_id` (who writes, a `sesn_` id; one is minted where it is
                left out), `scope` (one path segment: the tool sees only the tree below `/{scope}/`, as its
                `/memories`), `profile` (`"sdk"` or `"docs"`: whose wording), `on_existing` (`"error"` or
                `"overwrite"`: what `create` does where a file is), `dotdot` (`"resolve"` or `"reject"`) and
                `cache_control` (the mark of the prompt cache).

        Raises:
            InvalidInputError: an option has an unknown value.
        """
        from memkernel.agent.memory_tool import memory_tool

        return memory_tool(self.connection.database, self.id, **options)

    def async_memory_tool(self, **options: Unpack[MemoryToolOptions]) -> AsyncMemoryTool:
        """The same for the asynchronous client's tool runner."""
        from memkernel.agent.memory_tool import async_memory_tool

        return async_memory_tool(self.connection.database, self.id, **options)

    # -- errors that help --------------------------------------------------------------------------

    def _at(self, path: str, change: Callable[[], T]) -> T:
        try:
            return change()
        except MemoryNotFoundError:
            raise self._missing(path) from None
