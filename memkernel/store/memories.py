"""The memories of a store (CONTRACT B.5 to B.8)."""

from __future__ import annotations

import builtins
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace

import psycopg

from memkernel import ids, paths
from memkernel.errors import MemoryNotFoundError
from memkernel.models import Absent, Actor, Cause, Change, Limits, Memory, MemoryVersion
from memkernel.store import batches, checks, memory_stores, queries, rows
from memkernel.store.connections import StoreConnection
from memkernel.store.contact import Contact
from memkernel.store.memory_reading import MemoryReading, known
from memkernel.store.statements import Parameter, Statement
from memkernel.store.translate import TOO_FEW_IDS, facts


class Memories(MemoryReading):
    """The memories of the stores of a database. Contents go in as text or UTF-8 bytes and come out as text."""

    def __init__(self, contact: Contact, limits: Limits) -> None:
        super().__init__(contact)
        self._limits = limits

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
        place, data = _place(path), checks.content(content, self._limits.content_bytes)
        version_id = ids.mint("memver")
        values = (
            *(store_id, *place, data, _digest(data), ids.mint("mem"), version_id),
            *(self._limits.memories_per_store, *checks.author(actor, cause)),
        )
        return self._head(queries.MEMORY_CREATE, values, store_id, version_id, data, full=full)

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
        data = None if content is None else checks.content(content, self._limits.content_bytes)
        place = (None, None) if path is None else _place(path)
        version_id = ids.mint("memver")
        values = (
            *(store_id, known(memory_id), *place, data),
            *(None if data is None else _digest(data), checks.optional_sha256("precondition", precondition)),
            *(version_id, *checks.author(actor, cause)),
        )
        return self._head(queries.MEMORY_UPDATE, values, store_id, version_id, data, full=full)

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
        place, data = _place(path), checks.content(content, self._limits.content_bytes)
        version_id = ids.mint("memver")
        values = (
            *(store_id, *place, data, _digest(data), *checks.expectation(expect)),
            *(ids.mint("mem"), version_id, self._limits.memories_per_store, *checks.author(actor, cause)),
        )
        return self._head(queries.MEMORY_WRITE, values, store_id, version_id, data, full=full)

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
        values = (store_id, known(memory_id), expected, version_id, *checks.author(actor, cause))
        self._count(queries.MEMORY_DELETE, lambda _: values, store_id, [version_id])

    def edit(
        self,
        memory_store_id: str,
        path: str,
        edit: Callable[[str], str],
        *,
        actor: Actor,
        cause: Cause | None = None,
        view: str = "basic",
    ) -> Memory:
        """Change a text under the store's lock, so that no other writer comes between reading and writing.

        Args:
            memory_store_id: the store.
            path: the memory.
            edit: makes the new text of the old; what it raises undoes everything and comes out unchanged. It is
                called again where the connection was lost before anything was saved.
            actor: who does it.
            cause: the tool call that it comes from.
            view: `full` brings the content back.

        Raises:
            StoreNotFoundError, StoreArchivedError, MemoryNotFoundError: in this order.
            InvalidContentError: of the new text.
        """
        store_id, full = memory_stores.known(memory_store_id), checks.view(view) == "full"
        path, version_id = checks.path(path), ids.mint("memver")
        who = checks.author(actor, cause)

        def change(connection: StoreConnection) -> Memory:
            with connection.transaction():
                connection.run(queries.STORE_LOCK, store_id, True)
                found = connection.run(queries.MEMORY_AT_FULL, store_id, path)
                if not found.ntuples:
                    raise MemoryNotFoundError(path)
                head = rows.memory_in_view(found, 0, store_id)
                data = checks.content(edit(head.content or ""), self._limits.content_bytes)
                values = (store_id, head.id, None, None, data, _digest(data), None, version_id, *who)
                memory = rows.memory(connection.run(queries.MEMORY_UPDATE, *values), 0, store_id, None)
                return _whole(connection, memory, data) if full else memory

        def saved(connection: StoreConnection) -> Memory | None:
            memory = saved_memory(connection, store_id, version_id)
            return _whole(connection, memory, None) if memory and full else memory

        return self._contact.change(change, saved, memory_store_id=store_id, version_id=version_id)

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
        who = checks.author(actor, cause)
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
        store_id, root = memory_stores.known(memory_store_id), checks.tree(path)
        who = checks.author(actor, cause)
        return self._count(
            queries.MEMORIES_DELETE,
            lambda version_ids: (store_id, root, version_ids, *who),
            store_id,
            [ids.mint("memver")],
        )

    def apply(
        self, memory_store_id: str, changes: Sequence[Change], *, actor: Actor, cause: Cause | None = None
    ) -> builtins.list[MemoryVersion | None]:
        """Make many changes in one transaction, all or none: deletions, then updates, then creations.

        A path that is already as it is wanted is left alone, whatever is expected. Capacity and overlap are judged
        on the result, so that a file may give way to a directory of its name.

        Args:
            memory_store_id: the store.
            changes: what each path shall hold; no path twice.
            actor: who does it.
            cause: the tool call that it comes from.

        Returns:
            The version that each change made, without content; None where nothing had to change.

        Raises:
            StoreNotFoundError: there is no such store.
            PreconditionFailedError: of the first change that does not find what it expects.
            StoreArchivedError: the store is archived, and something would be written.
            CapacityError, PathConflictError: the result would be too many memories, or two that overlap.
            InvalidInputError: a value is illegal, or a path occurs twice; InvalidPathError, InvalidContentError.
        """
        store_id = memory_stores.known(memory_store_id)
        wanted = batches.check(changes, self._limits.content_bytes)
        checks.author(actor, cause)
        if not wanted:
            return []
        version_ids = [ids.mint("memver") for _ in wanted]
        batch = batches.Batch(store_id, wanted, version_ids, self._limits.memories_per_store, actor, cause)
        return self._contact.change(batch.apply, batch.find, memory_store_id=store_id, version_id=version_ids[0])

    def _head(
        self,
        statement: Statement,
        values: Sequence[Parameter],
        store_id: str,
        version_id: str,
        data: bytes | None,
        *,
        full: bool,
    ) -> Memory:
        """Run a change that answers with the memory's new head; `data`: its content, where the caller brings it."""

        def change(connection: StoreConnection) -> Memory:
            memory = rows.memory(connection.run(statement, *values), 0, store_id, None)
            return _whole(connection, memory, data) if full else memory

        def saved(connection: StoreConnection) -> Memory | None:
            memory = saved_memory(connection, store_id, version_id)
            return _whole(connection, memory, data) if memory and full else memory

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


def _place(path: str) -> tuple[str, list[str]]:
    """A legal path, and those above it."""
    return checks.path(path), paths.ancestors(path)


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _whole(connection: StoreConnection, memory: Memory, data: bytes | None) -> Memory:
    """A new head with its content, which is read within the change: lost there, it is no reading that failed."""
    if data is not None:
        return replace(memory, content=data.decode())
    result = connection.run(queries.VERSION_CONTENT, memory.memory_store_id, memory.memory_version_id)
    return replace(memory, content=rows.text(result.get_value(0, 0)) if result.ntuples else None)


def saved_memory(connection: StoreConnection, store_id: str, version_id: str) -> Memory | None:
    """What the change that made this version would have answered; None where there is no such version."""
    result = connection.run(queries.VERSION_RESULT, store_id, version_id)
    return rows.memory(result, 0, store_id, None) if result.ntuples else None
