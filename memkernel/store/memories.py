"""The memories of a store (CONTRACT B.5 to B.8)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import psycopg
from psycopg import pq

from memkernel import content as contents
from memkernel import ids, paths
from memkernel.errors import InvalidContentError, MemoryNotFoundError, StoreNotFoundError
from memkernel.models import Absent, Actor, Cause, Limits, Memory, MemoryPrefix, Page
from memkernel.store import checks, memory_stores, pages, queries, rows
from memkernel.store.connections import StoreConnection
from memkernel.store.contact import Contact
from memkernel.store.statements import Parameter, Statement
from memkernel.store.translate import TOO_FEW_IDS, facts

_CHUNK: Final = 100
_CONTENT: Final = 7  # the column after those of queries.MEMORY


class Memories:
    """The memories of the stores of a database. Contents go in as text or UTF-8 bytes and come out as text."""

    def __init__(self, contact: Contact, limits: Limits) -> None:
        self._contact = contact
        self._limits = limits

    # -- reading ------------------------------------------------------------------------------------

    def retrieve(self, memory_id: str, *, memory_store_id: str, view: str = "full") -> Memory:
        """The live memory with this id.

        Raises:
            StoreNotFoundError: there is no such store.
            MemoryNotFoundError: there is no such memory in it.
            InvalidInputError: an unknown view.
        """
        statement = queries.MEMORY_GET_FULL if checks.view(view) == "full" else queries.MEMORY_GET
        store_id = memory_stores.known(memory_store_id)
        return self._one(statement, store_id, _known(memory_id))

    def at_path(self, memory_store_id: str, path: str, *, view: str = "full") -> Memory:
        """The live memory at this path.

        Raises:
            StoreNotFoundError: there is no such store.
            MemoryNotFoundError: nothing is there.
            InvalidInputError: an unknown view; InvalidPathError: no memory can have this path.
        """
        statement = queries.MEMORY_AT_FULL if checks.view(view) == "full" else queries.MEMORY_AT
        return self._one(statement, memory_stores.known(memory_store_id), checks.path(path))

    def _one(self, statement: Statement, store_id: str, ref: str) -> Memory:
        def read(connection: StoreConnection) -> Memory:
            result = connection.run(statement, store_id, ref)
            if not result.ntuples:
                raise _nothing(connection, store_id, ref)
            return _memory(result, 0, store_id)

        return self._contact.read(read)

    def entries(self, memory_store_id: str, path: str = "/") -> list[tuple[str, int]]:
        """Path and size in bytes of every memory at or below a path, ascending bytewise; empty where nothing is.

        Raises:
            StoreNotFoundError: there is no such store.
            InvalidPathError: no memory can have this path.
        """
        store_id, root = memory_stores.known(memory_store_id), _tree(path)

        def read(connection: StoreConnection) -> list[tuple[str, int]]:
            result = connection.run(queries.ENTRIES, store_id, root)
            get = result.get_value
            found = [(rows.text(get(row, 0)), rows.number(get(row, 1))) for row in range(result.ntuples)]
            if not found and memory_stores.missing(connection, store_id):
                raise StoreNotFoundError(store_id)
            return found

        return self._contact.read(read)

    def contents(
        self, memory_store_id: str, prefix: str = "/", containing: bytes | None = None
    ) -> Iterator[tuple[str, str]]:
        """Path and text of each memory below a prefix, ascending bytewise, read in chunks as they are consumed.

        Args:
            memory_store_id: the store.
            prefix: `/`, or a directory that ends with `/`.
            containing: only texts that hold these bytes.

        Raises:
            StoreNotFoundError: there is no such store.
            InvalidPathError: the prefix is none.
        """
        store_id = memory_stores.known(memory_store_id)
        after, end = checks.prefix(prefix), _end(prefix)
        if containing is None or containing == b"":
            containing = None
        while True:
            chunk = self._chunk(store_id, after, end, containing)
            yield from chunk
            if len(chunk) < _CHUNK:
                return
            after = chunk[-1][0]

    def _chunk(self, store_id: str, after: str, end: str, containing: bytes | None) -> list[tuple[str, str]]:
        def read(connection: StoreConnection) -> list[tuple[str, str]]:
            result = connection.run(queries.CONTENTS, store_id, after, end, containing, _CHUNK)
            if not result.ntuples and memory_stores.missing(connection, store_id):
                raise StoreNotFoundError(store_id)
            return [
                (rows.text(result.get_value(row, 0)), rows.text(result.get_value(row, 1)))
                for row in range(result.ntuples)
            ]

        return self._contact.read(read)

    def list(
        self,
        memory_store_id: str,
        *,
        path_prefix: str | None = None,
        depth: int = 0,
        view: str = "basic",
        limit: int = 20,
        page: str | None = None,
    ) -> Page[Memory | MemoryPrefix]:
        """The memories below a prefix in ascending bytewise path order.

        Args:
            memory_store_id: the store.
            path_prefix: `/` (also None), or a directory that ends with `/`.
            depth: 0 is the whole subtree; 1 the direct children, what lies deeper rolled up into prefixes.
            view: `full` brings the contents, and at most 20 items a page.
            limit: 1-100; prefixes count too.
            page: the `next_page` of the page before.

        Raises:
            StoreNotFoundError: there is no such store.
            InvalidInputError: a value is illegal; InvalidPathError, InvalidPageError.
        """
        store_id = memory_stores.known(memory_store_id)
        prefix = checks.prefix("/" if path_prefix is None else path_prefix)
        full = checks.view(view) == "full"
        limit = checks.page_size(limit, full=full)
        rolled_up = checks.depth(depth) == 1
        bound_to = pages.binding("memories", store=store_id, prefix=prefix, depth=depth, view=view)
        after = pages.position(page, bound_to, str)
        start = prefix if after is None else _after(str(after[0]))
        values: tuple[Parameter, ...] = (store_id, start, _end(prefix), limit + 1)
        if rolled_up:
            statement, item = queries.ROLL_UP_FULL if full else queries.ROLL_UP_BASIC, _rolled_up
            values += (prefix,)
        else:
            statement, item = queries.LIST_FULL if full else queries.LIST_BASIC, _memory

        def read(connection: StoreConnection) -> list[Memory | MemoryPrefix]:
            result = connection.run(statement, *values)
            if not result.ntuples and memory_stores.missing(connection, store_id):
                raise StoreNotFoundError(store_id)
            return [item(result, row, store_id) for row in range(result.ntuples)]

        return pages.cut(self._contact.read(read), limit, bound_to, lambda item: [item.path])

    # -- changing -----------------------------------------------------------------------------------

    def create(
        self,
        memory_store_id: str,
        *,
        path: str,
        content: str | bytes,
        actor: Actor,
        cause: Cause | None = None,
        view: str = "basic",
    ) -> Memory:
        """A new memory.

        Raises:
            StoreNotFoundError: there is no such store.
            StoreArchivedError: it is archived.
            PathConflictError: the path is taken, or lies above or below a memory.
            CapacityError: the store is full.
            InvalidInputError: a value is illegal; InvalidPathError, InvalidContentError.
        """
        store_id, full = memory_stores.known(memory_store_id), checks.view(view) == "full"
        path, data = checks.path(path), self._bytes(content)
        version_id = ids.mint("memver")
        values = (
            *(store_id, path, paths.ancestors(path), data, _digest(data), ids.mint("mem"), version_id),
            *(self._limits.memories_per_store, *checks.actor(actor), *checks.cause(cause)),
        )
        return self._head(queries.MEMORY_CREATE, values, store_id, version_id, data if full else None)

    def update(
        self,
        memory_id: str,
        *,
        memory_store_id: str,
        content: str | bytes | None = None,
        path: str | None = None,
        precondition: str | None = None,
        actor: Actor,
        cause: Cause | None = None,
        view: str = "basic",
    ) -> Memory:
        """Change a memory's content, its path, or both in one version (CONTRACT B.7).

        What is there already is left alone, whatever the precondition says.

        Args:
            memory_id: the memory.
            memory_store_id: its store.
            content: None leaves it.
            path: None leaves it.
            precondition: the content_sha256 that the memory must have now.
            actor: who does it.
            cause: the tool call that it comes from.
            view: `full` brings the content back.

        Raises:
            StoreNotFoundError, StoreArchivedError, MemoryNotFoundError: in this order.
            PreconditionFailedError: the content is another one; then
            PathConflictError: the path overlaps with another memory.
            InvalidInputError: a value is illegal; InvalidPathError, InvalidContentError.
        """
        store_id, full = memory_stores.known(memory_store_id), checks.view(view) == "full"
        data = None if content is None else self._bytes(content)
        path = None if path is None else checks.path(path)
        version_id = ids.mint("memver")
        values = (
            *(store_id, _known(memory_id), path, None if path is None else paths.ancestors(path), data),
            *(None if data is None else _digest(data), checks.optional_sha256("precondition", precondition)),
            *(version_id, *checks.actor(actor), *checks.cause(cause)),
        )
        memory = self._head(queries.MEMORY_UPDATE, values, store_id, version_id, data if full else None)
        return self._with_content(memory) if full and data is None else memory

    def write(
        self,
        memory_store_id: str,
        path: str,
        content: str | bytes,
        *,
        expect: str | Absent | None = None,
        actor: Actor,
        cause: Cause | None = None,
        view: str = "basic",
    ) -> Memory:
        """Create the memory at a path, or replace its content.

        A path that holds this content already is left alone, whatever is expected.

        Args:
            memory_store_id: the store.
            path: where.
            content: what it holds afterwards.
            expect: the content_sha256 that is there now, or ABSENT; None expects nothing.
            actor: who does it.
            cause: the tool call that it comes from.
            view: `full` brings the content back.

        Raises:
            StoreNotFoundError, StoreArchivedError: no such store; a read-only one.
            PreconditionFailedError: what is there is not what was expected.
            PathConflictError: the path lies above or below a memory.
            CapacityError: the store is full.
            InvalidInputError: a value is illegal; InvalidPathError, InvalidContentError.
        """
        store_id, full = memory_stores.known(memory_store_id), checks.view(view) == "full"
        path, data = checks.path(path), self._bytes(content)
        version_id = ids.mint("memver")
        values = (
            *(store_id, path, paths.ancestors(path), data, _digest(data), *checks.expectation(expect)),
            *(ids.mint("mem"), version_id, self._limits.memories_per_store),
            *(*checks.actor(actor), *checks.cause(cause)),
        )
        return self._head(queries.MEMORY_WRITE, values, store_id, version_id, data if full else None)

    def delete(
        self,
        memory_id: str,
        *,
        memory_store_id: str,
        expected_content_sha256: str | None = None,
        actor: Actor,
        cause: Cause | None = None,
    ) -> None:
        """Delete a memory; its versions stay, and its path is free. An archived store allows it.

        Raises:
            StoreNotFoundError, MemoryNotFoundError: no such store; no such live memory.
            PreconditionFailedError: its content is not the expected one.
            InvalidInputError: the hash is malformed.
        """
        store_id, version_id = memory_stores.known(memory_store_id), ids.mint("memver")
        expected = checks.optional_sha256("expected_content_sha256", expected_content_sha256)
        values = (store_id, _known(memory_id), expected, version_id, *checks.actor(actor), *checks.cause(cause))
        self._count(queries.MEMORY_DELETE, lambda _: values, store_id, [version_id])

    def rename_tree(
        self, memory_store_id: str, old_path: str, new_path: str, *, actor: Actor, cause: Cause | None = None
    ) -> int:
        """Move a memory, or everything below a directory, in one transaction.

        Returns:
            How many memories moved; 0 where the two paths are the same.

        Raises:
            StoreNotFoundError, StoreArchivedError: no such store; a read-only one.
            MemoryNotFoundError: nothing is at or below the old path.
            PathConflictError: the new path overlaps with a memory; nothing moved.
            InvalidPathError: a path is illegal, or would become so, or a directory would move into itself.
        """
        store_id = memory_stores.known(memory_store_id)
        old, new = checks.path(old_path), checks.path(new_path)
        who = (*checks.actor(actor), *checks.cause(cause))
        return self._count(
            queries.MEMORIES_RENAME,
            lambda version_ids: (store_id, old, new, paths.ancestors(new), version_ids, *who),
            store_id,
            [ids.mint("memver")],
        )

    def delete_tree(self, memory_store_id: str, path: str, *, actor: Actor, cause: Cause | None = None) -> int:
        """Delete a memory, or everything below a directory (`/`: everything), in one transaction.

        Returns:
            How many memories were deleted.

        Raises:
            StoreNotFoundError: there is no such store.
            MemoryNotFoundError: nothing is at or below the path (never for `/`).
            InvalidPathError: no memory can have this path.
        """
        store_id, root = memory_stores.known(memory_store_id), _tree(path)
        who = (*checks.actor(actor), *checks.cause(cause))
        return self._count(
            queries.MEMORIES_DELETE,
            lambda version_ids: (store_id, root, version_ids, *who),
            store_id,
            [ids.mint("memver")],
        )

    def _bytes(self, content: object) -> bytes:
        if not isinstance(content, str | bytes):
            raise InvalidContentError(f"the content is text or bytes, not {type(content).__name__}")
        return contents.encode(content, self._limits.content_bytes)

    def _head(
        self, statement: Statement, values: Sequence[Parameter], store_id: str, version_id: str, data: bytes | None
    ) -> Memory:
        """Run a change that answers with the memory's new head."""
        text = None if data is None else data.decode()

        def change(connection: StoreConnection) -> Memory:
            return rows.memory(connection.run(statement, *values), 0, store_id, text)

        def saved(connection: StoreConnection) -> Memory | None:
            result = connection.run(queries.VERSION_RESULT, store_id, version_id)
            return rows.memory(result, 0, store_id, text) if result.ntuples else None

        return self._contact.change(change, saved, memory_store_id=store_id, version_id=version_id)

    def _count(
        self,
        statement: Statement,
        values: Callable[[list[str]], Sequence[Parameter]],
        store_id: str,
        version_ids: list[str],
    ) -> int:
        """Run a change that answers with a number of memories, with as many version ids as it needs."""

        def change(connection: StoreConnection) -> int:
            try:
                return rows.number(connection.run(statement, *values(version_ids)).get_value(0, 0))
            except psycopg.Error as error:
                if error.sqlstate != TOO_FEW_IDS:
                    raise
                needed = int(facts(error)["needed"])
            version_ids.extend(ids.mint("memver") for _ in range(needed - len(version_ids)))
            return change(connection)

        def saved(connection: StoreConnection) -> int | None:
            result = connection.run(queries.VERSIONS_SAVED, store_id, version_ids)
            return rows.number(result.get_value(0, 0)) or None

        return self._contact.change(change, saved, memory_store_id=store_id, version_id=version_ids[0])

    def _with_content(self, memory: Memory) -> Memory:
        def read(connection: StoreConnection) -> Memory:
            result = connection.run(queries.VERSION_CONTENT, memory.memory_store_id, memory.memory_version_id)
            return replace(memory, content=rows.text(result.get_value(0, 0)) if result.ntuples else None)

        return self._contact.read(read)


def _known(memory_id: object) -> str:
    if isinstance(memory_id, str) and ids.is_id("mem", memory_id):
        return memory_id
    raise MemoryNotFoundError(memory_id if isinstance(memory_id, str) else repr(memory_id))


def _nothing(connection: StoreConnection, store_id: str, ref: str) -> StoreNotFoundError | MemoryNotFoundError:
    return StoreNotFoundError(store_id) if memory_stores.missing(connection, store_id) else MemoryNotFoundError(ref)


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _tree(path: str) -> str:
    """A file or directory as the SQL of trees wants it: the root is `''`."""
    return "" if path == "/" else checks.path(path)


def _end(prefix: str) -> str:
    """The first text that sorts after everything below a prefix: `0` is the character after `/`."""
    return prefix[:-1] + "0"


def _after(item: str) -> str:
    """Where a listing goes on after an item: behind a memory's path, or behind all that lies in a prefix."""
    return _end(item) if item.endswith("/") else item + "\x01"


def _memory(result: pq.abc.PGresult, row: int, store_id: str) -> Memory:
    """A row of queries.MEMORY, and of its content where that was asked for."""
    content = rows.text(result.get_value(row, _CONTENT)) if result.nfields > _CONTENT else None
    return rows.memory(result, row, store_id, content)


def _rolled_up(result: pq.abc.PGresult, row: int, store_id: str) -> Memory | MemoryPrefix:
    """A row of queries.ROLL_UP_*: a prefix has no memory id, and its path comes after the memory's columns."""
    if result.get_value(row, 0) is None:
        return MemoryPrefix(rows.text(result.get_value(row, result.nfields - 1)))
    content = rows.text(result.get_value(row, _CONTENT)) if result.nfields > _CONTENT + 1 else None
    return rows.memory(result, row, store_id, content)
