"""Reading the memories of a store (CONTRACT B.5, B.8)."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from typing import Final

from psycopg import pq

from memkernel import textsearch
from memkernel.errors import MemoryNotFoundError, StoreNotFoundError
from memkernel.models import GrepMatch, Memory, MemoryPrefix, Page, SearchHit, SearchResult
from memkernel.store import checks, memory_stores, pages, queries, rows, search_queries
from memkernel.store.connections import StoreConnection
from memkernel.store.contact import Contact
from memkernel.store.statements import Parameter, Statement

_CHUNK: Final = 100
_EXCERPTS: Final = 3


class MemoryReading:
    """The half of `Memories` that changes nothing."""

    def __init__(self, contact: Contact) -> None:
        self._contact = contact

    def retrieve(self, memory_id: str, *, memory_store_id: str, view: str = "full") -> Memory:
        """The live memory with this id.

        Raises:
            StoreNotFoundError: there is no such store.
            MemoryNotFoundError: there is no such memory in it.
            InvalidInputError: an unknown view.
        """
        statement = queries.MEMORY_GET_FULL if checks.view(view) == "full" else queries.MEMORY_GET
        store_id = memory_stores.known(memory_store_id)
        return self._one(statement, store_id, known(memory_id))

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
                missing = memory_stores.missing(connection, store_id)
                raise StoreNotFoundError(store_id) if missing else MemoryNotFoundError(ref)
            return rows.memory_in_view(result, 0, store_id)

        return self._contact.read(read)

    def entries(self, memory_store_id: str, path: str = "/") -> builtins.list[tuple[str, int]]:
        """Path and size in bytes of every memory at or below a path, ascending bytewise; empty where nothing is.

        Raises:
            StoreNotFoundError: there is no such store.
            InvalidPathError: no memory can have this path.
        """
        store_id, root = memory_stores.known(memory_store_id), checks.tree(path)

        def read(connection: StoreConnection) -> builtins.list[tuple[str, int]]:
            told = connection.run(queries.ENTRIES, store_id, root).get_value(0, 0)
            if told is None:
                if memory_stores.missing(connection, store_id):
                    raise StoreNotFoundError(store_id)
                return []
            words = told.decode().split("\n")
            return list(zip(words[::2], map(int, words[1::2]), strict=True))

        return self._contact.read(read)

    def contents(
        self, memory_store_id: str, path: str = "/", containing: bytes | None = None
    ) -> Iterator[tuple[str, str]]:
        """Path and text of each memory at or below a path, ascending bytewise, read in chunks as they are consumed.

        Args:
            memory_store_id: the store.
            path: `/`, a memory, or a directory with or without its last slash.
            containing: only texts that hold these bytes.

        Raises:
            StoreNotFoundError: there is no such store.
            InvalidPathError: no memory can have this path.
        """
        store_id, root = memory_stores.known(memory_store_id), checks.tree(path)
        return self._each(store_id, root, containing or None)

    def _each(self, store_id: str, root: str, containing: bytes | None) -> Iterator[tuple[str, str]]:
        after = ""
        while True:
            chunk = self._chunk(store_id, root, after, containing)
            yield from chunk
            if len(chunk) < _CHUNK:
                return
            after = chunk[-1][0]

    def _chunk(self, store_id: str, root: str, after: str, containing: bytes | None) -> builtins.list[tuple[str, str]]:
        def read(connection: StoreConnection) -> builtins.list[tuple[str, str]]:
            result = connection.run(queries.CONTENTS, store_id, root, after, containing, _CHUNK)
            if not result.ntuples and memory_stores.missing(connection, store_id):
                raise StoreNotFoundError(store_id)
            get = result.get_value
            return [(rows.text(get(row, 0)), rows.text(get(row, 1))) for row in range(result.ntuples)]

        return self._contact.read(read)

    def search(self, memory_store_id: str, query: str, path: str = "/", *, limit: int = 20) -> SearchResult:
        """The memories in which all words of a query occur, in content or path, whatever their letters' case.

        Those come first whose path holds most of the words, then those that hold them most often.

        Args:
            memory_store_id: the store.
            query: words between spaces; what stands in double quotes is one word.
            path: `/`, a memory, or a directory with or without its last slash.
            limit: 1-100 hits.

        Raises:
            StoreNotFoundError: there is no such store.
            InvalidInputError: no word, too many, or an illegal limit; InvalidPathError.
        """
        store_id, root = memory_stores.known(memory_store_id), checks.tree(path)
        words, most = textsearch.words_of(checks.storable("query", query)), checks.limit(limit)

        def read(connection: StoreConnection) -> SearchResult:
            collation = search_queries.ASCII
            if not query.isascii():
                collation = rows.text(connection.run(search_queries.COLLATION).get_value(0, 0))
            result = connection.run(search_queries.search(collation), store_id, root, words, most)
            if not result.ntuples and memory_stores.missing(connection, store_id):
                raise StoreNotFoundError(store_id)
            total = rows.number(result.get_value(0, result.nfields - 1)) if result.ntuples else 0
            return SearchResult(tuple(_hit(result, row, store_id, words) for row in range(result.ntuples)), total)

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
            statement, item = queries.ROLL_UP_FULL if full else queries.ROLL_UP_BASIC, rows.memory_or_prefix
            values += (prefix,)
        else:
            statement, item = queries.LIST_FULL if full else queries.LIST_BASIC, rows.memory_in_view

        def read(connection: StoreConnection) -> builtins.list[Memory | MemoryPrefix]:
            result = connection.run(statement, *values)
            if not result.ntuples and memory_stores.missing(connection, store_id):
                raise StoreNotFoundError(store_id)
            return [item(result, row, store_id) for row in range(result.ntuples)]

        return pages.cut(self._contact.read(read), limit, bound_to, lambda item: [item.path])


def _hit(result: pq.abc.PGresult, row: int, store_id: str, words: Sequence[str]) -> SearchHit:
    memory = rows.memory_in_view(result, row, store_id)
    lines = textsearch.excerpts(memory.content or "", words, _EXCERPTS)
    return SearchHit(
        memory.path,
        memory.memory_version_id,
        memory.content_size_bytes,
        memory.updated_at,
        rows.number(result.get_value(row, result.nfields - 2)),
        tuple(GrepMatch(memory.path, number, line) for number, line in lines),
    )


def known(memory_id: object) -> str:
    """The id, if PostgreSQL can be asked for it: whether the store is there and may be written to is told before.

    Raises:
        MemoryNotFoundError: nothing can have this id.
    """
    if isinstance(memory_id, str) and checks.is_storable(memory_id):
        return memory_id
    raise MemoryNotFoundError(memory_id if isinstance(memory_id, str) else repr(memory_id))


def _end(prefix: str) -> str:
    """The first text that sorts after everything below a prefix: `0` is the character after `/`."""
    return prefix[:-1] + "0"


def _after(item: str) -> str:
    """Where a listing goes on after an item: behind a memory's path, or behind all that lies in a prefix."""
    return _end(item) if item.endswith("/") else item + "\x01"
