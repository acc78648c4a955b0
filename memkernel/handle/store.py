"""`mk.Store`: a memory store as a person holds it. Paths in, texts out; every change is a version."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar, Unpack

from memkernel import paths
from memkernel.cluster import home_directory
from memkernel.errors import InvalidInputError, MemoryNotFoundError, VersionNotFoundError
from memkernel.handle.diff import Diff
from memkernel.handle.finding import Expression, near, without_last_slash
from memkernel.handle.records import Records
from memkernel.handle.versions import VersionSpec, find_version
from memkernel.models import Absent, GrepMatch, Memory, MemoryPrefix, MemoryStore, MemoryVersion, Page
from memkernel.render import html_of, text_of

if TYPE_CHECKING:
    from memkernel.agent.memory_tool import AsyncMemoryTool, MemoryTool, MemoryToolOptions
    from memkernel.handle.connection import Connection
    from memkernel.sync.rejected import RejectedFolder

T = TypeVar("T")

_PAGE = 100


class Store:
    """A memory store. Its name and description are as of when it was got; its memories are always live."""

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

    def diff(self, path: str, old: VersionSpec | None = None, new: VersionSpec | None = None) -> Diff:
        """What changed between two versions of a memory; by default between the last two.

        Args:
            path: the memory.
            old: a version; alone it is compared with the head.
            new: another version.
        """
        newer = self.version(path, "head" if new is None else new)
        if old is not None:
            return Diff.of(path, self.version(path, old), newer)
        return Diff.of(path, self._before(newer), newer)

    def _before(self, version: MemoryVersion) -> MemoryVersion | None:
        if version.ordinal == 1:
            return None
        return self._versions.before(version.id, memory_store_id=self.id)

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
