"""The versions of memories (CONTRACT B.10)."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from datetime import datetime
from typing import Final, NoReturn

from memkernel import ids
from memkernel.errors import (
    HistoryPrunedError,
    InvalidInputError,
    StoreNotFoundError,
    VersionNotFoundError,
)
from memkernel.models import Absent, Actor, Cause, Limits, Memory, MemoryVersion, Page
from memkernel.store import checks, memory_stores, pages, prune_queries, queries, rows, run_queries
from memkernel.store.connections import StoreConnection
from memkernel.store.contact import Contact
from memkernel.store.lineages import LineageReading
from memkernel.store.memories import saved_memory
from memkernel.store.statements import Parameter, Statement

_OPERATIONS: Final = ("created", "modified", "deleted")


class MemoryVersions(LineageReading):
    """The versions of the memories of the stores of a database."""

    def __init__(self, contact: Contact, limits: Limits) -> None:
        super().__init__(contact)
        self._limits = limits

    def retrieve(self, memory_version_id: str, *, memory_store_id: str, view: str = "full") -> MemoryVersion:
        """The version with this id.

        Raises:
            StoreNotFoundError, VersionNotFoundError: no such store; no such version in it.
            InvalidInputError: an unknown view.
        """
        statement = queries.VERSION_GET_FULL if checks.view(view) == "full" else queries.VERSION_GET
        store_id, version_id = memory_stores.known(memory_store_id), _known(memory_version_id)

        return self._one(statement, store_id, version_id, named=version_id)

    def list(
        self,
        memory_store_id: str,
        *,
        memory_id: str | None = None,
        path: str | None = None,
        operation: str | None = None,
        session_id: str | None = None,
        api_key_id: str | None = None,
        user_id: str | None = None,
        service_account_id: str | None = None,
        created_at_gte: datetime | None = None,
        created_at_lte: datetime | None = None,
        seq_lt: int | None = None,
        view: str = "basic",
        limit: int = 20,
        page: str | None = None,
    ) -> Page[MemoryVersion]:
        """The versions of a store, newest first; all filters must hold.

        Args:
            memory_store_id: the store.
            memory_id: of this memory, alive or not.
            path: of the lineage that is now at this path, else of the last one that ended there.
            operation: created, modified or deleted.
            session_id: made by this session.
            api_key_id: made with this key.
            user_id: made by this person.
            service_account_id: made by this workload.
            created_at_gte: not older than this.
            created_at_lte: not newer than this.
            seq_lt: made by a change of the store before this one.
            view: `full` brings the contents, and at most 20 versions a page.
            limit: 1-100.
            page: the `next_page` of the page before.

        Raises:
            StoreNotFoundError: there is no such store.
            InvalidInputError: a value is illegal; InvalidPathError, InvalidPageError.
        """
        store_id = memory_stores.known(memory_store_id)
        full = checks.view(view) == "full"
        limit = checks.page_size(limit, full=full)
        filters: dict[str, Parameter] = {
            "memory_id": memory_id,
            "path": None if path is None else checks.path(path),
            "operation": None if operation is None else checks.one_of("operation", operation, _OPERATIONS),
            "session_actor": session_id,
            "api_actor": api_key_id,
            "user_actor": user_id,
            "service_account_actor": service_account_id,
            "since": checks.moment("created_at_gte", created_at_gte),
            "until": checks.moment("created_at_lte", created_at_lte),
            "below": seq_lt,
        }
        bound_to = pages.binding("memory_versions", store=store_id, view=view, **filters)
        before = pages.position(page, bound_to, int)
        filters["before"] = before[0] if before else None
        statement, values = queries.version_list(store_id, filters, limit + 1, full=full)

        def read(connection: StoreConnection) -> builtins.list[MemoryVersion]:
            result = connection.run(statement, *values)
            if not result.ntuples and memory_stores.missing(connection, store_id):
                raise StoreNotFoundError(store_id)
            return [rows.version_in_view(result, row, store_id) for row in range(result.ntuples)]

        return pages.cut(self._contact.read(read), limit, bound_to, lambda version: [version.seq])

    def at_ordinal(self, memory_store_id: str, path: str, ordinal: int, *, view: str = "full") -> MemoryVersion:
        """The n-th version of the lineage that is at a path, else of the last one that ended there.

        Args:
            memory_store_id: the store.
            path: the memory's path.
            ordinal: from 1; negative numbers count back from the head, -1 being its predecessor.
            view: `full` or `basic`.

        Raises:
            StoreNotFoundError, VersionNotFoundError: no such store; no such version.
            HistoryPrunedError: it was pruned.
            InvalidInputError: an unknown view; InvalidPathError.
        """
        store_id, path, full = memory_stores.known(memory_store_id), checks.path(path), checks.view(view) == "full"
        number = checks.ordinal(ordinal)
        return self._one(queries.VERSION_AT_ORDINAL, store_id, path, number, named=f"@{ordinal}", path=path, full=full)

    def at_time(self, memory_store_id: str, path: str, moment: datetime, *, view: str = "full") -> MemoryVersion:
        """The version that was at a path at a time.

        Raises:
            StoreNotFoundError, VersionNotFoundError: no such store; nothing was there.
            HistoryPrunedError: what was there may have been pruned.
            InvalidInputError: an unknown view, or no datetime; InvalidPathError.
        """
        store_id, path, full = memory_stores.known(memory_store_id), checks.path(path), checks.view(view) == "full"
        then = checks.moment("moment", moment)
        if then is None:
            raise InvalidInputError("moment is a datetime, not null")
        named = f"@{then.isoformat()}"
        return self._one(queries.VERSION_AT_TIME, store_id, path, then, named=named, path=path, full=full)

    def before(self, memory_version_id: str, *, memory_store_id: str, view: str = "full") -> MemoryVersion:
        """The version before this one in its lineage.

        Raises:
            StoreNotFoundError, VersionNotFoundError: no such store; no such version, or none before it.
            HistoryPrunedError: the one before it was pruned.
            InvalidInputError: an unknown view.
        """
        store_id, version_id = memory_stores.known(memory_store_id), _known(memory_version_id)
        full = checks.view(view) == "full"
        return self._one(queries.VERSION_BEFORE, store_id, version_id, named=f"before {version_id}", full=full)

    def list_by_run(
        self, memory_store_id: str, run_id: str, *, tool_use_id: str | None = None, view: str = "basic"
    ) -> builtins.list[MemoryVersion]:
        """What a run changed, or one tool call of it, oldest first; empty for an unknown run.

        Raises:
            StoreNotFoundError: there is no such store.
            InvalidInputError: an unknown view.
        """
        store_id, full = memory_stores.known(memory_store_id), checks.view(view) == "full"

        def read(connection: StoreConnection) -> builtins.list[MemoryVersion]:
            result = connection.run(queries.VERSIONS_BY_RUN, store_id, run_id, tool_use_id)
            if not result.ntuples and memory_stores.missing(connection, store_id):
                raise StoreNotFoundError(store_id)
            return [rows.version_in_view(result, row, store_id, full=full) for row in range(result.ntuples)]

        return self._contact.read(read)

    def changes_by_call(self, memory_store_id: str, run_id: str) -> dict[str, builtins.list[MemoryVersion]]:
        """What a run changed, by the tool call (its `tool_use_id`) that did, oldest first, without contents.

        Raises:
            StoreNotFoundError: there is no such store.
        """
        store_id = memory_stores.known(memory_store_id)

        def read(connection: StoreConnection) -> dict[str, builtins.list[MemoryVersion]]:
            result = connection.run(run_queries.CHANGES_BY_CALL, store_id, run_id)
            if not result.ntuples and memory_stores.missing(connection, store_id):
                raise StoreNotFoundError(store_id)
            found: dict[str, builtins.list[MemoryVersion]] = {}
            for row in range(result.ntuples):
                tool_use_id = rows.text(result.get_value(row, result.nfields - 1))
                found.setdefault(tool_use_id, []).append(rows.version(result, row, store_id, None))
            return found

        return self._contact.read(read)

    def cause(self, memory_store_id: str, memory_version_id: str) -> Cause | None:
        """The tool call that made a version; None where a person or a program did.

        Raises:
            StoreNotFoundError, VersionNotFoundError: no such store; no such version in it.
        """
        store_id, version_id = memory_stores.known(memory_store_id), _known(memory_version_id)

        def read(connection: StoreConnection) -> Cause | None:
            result = connection.run(run_queries.CAUSE_OF_VERSION, store_id, version_id)
            if not result.ntuples:
                _refuse_absent(connection, run_queries.CAUSE_OF_VERSION, store_id, (), VersionNotFoundError(version_id))
            return rows.causes(result).get(rows.number(result.get_value(0, 0)))

        return self._contact.read(read)

    def causes(self, memory_store_id: str, seqs: Sequence[int]) -> dict[int, Cause]:
        """The tool calls that made these changes of a store, by the changes' numbers; others are left out."""
        store_id, numbers = memory_stores.known(memory_store_id), [str(int(seq)) for seq in seqs]
        return self._contact.read(lambda connection: rows.causes(connection.run(run_queries.CAUSES, store_id, numbers)))

    def redact(self, memory_version_id: str, *, memory_store_id: str, actor: Actor) -> MemoryVersion:
        """Erase a version's text, hash, size and path for ever; again, it returns the same record.

        The row that held them is vacuumed away at once, as far as this role may and no older snapshot needs it, else
        by the server's next vacuum. Write-ahead logs, replicas and backups keep it for as long as they are kept.

        Raises:
            StoreNotFoundError, VersionNotFoundError: no such store; no such version.
            HeadRedactionError: it is the head of a live memory.
            InvalidInputError: the actor is a session (CONTRACT B.11).
        """
        store_id, version_id = memory_stores.known(memory_store_id), _known(memory_version_id)
        who = checks.redactor(actor)

        def change(connection: StoreConnection) -> MemoryVersion:
            connection.run(queries.VERSION_REDACT, store_id, version_id, *who)
            result = connection.run(queries.VERSION_GET, store_id, version_id)
            return rows.version_in_view(result, 0, store_id)

        version = self._contact.change(change, lambda _: None, memory_store_id=store_id)
        self._contact.clear_versions()
        return version

    def restore(
        self,
        memory_version_id: str,
        *,
        memory_store_id: str,
        path: str | None = None,
        actor: Actor,
        cause: Cause | None = None,
        expect: str | Absent | None = None,
    ) -> Memory:
        """Write a version's text again, as the newest version of its memory; its path stays what it is now.

        A deleted memory begins anew, with a new id. A memory that holds the text already is left alone.

        Args:
            memory_version_id: the version whose text is wanted.
            memory_store_id: its store.
            path: where a deleted memory comes back; None is where it was at that version.
            actor: who does it.
            cause: the tool call that it comes from.
            expect: the content_sha256 that the memory has now, or ABSENT for a deleted one.

        Raises:
            StoreNotFoundError, StoreArchivedError, VersionNotFoundError: in this order.
            RedactedError: its text is gone.
            PreconditionFailedError: the memory is not what was expected.
            PathConflictError, CapacityError: a deleted memory has no room any more.
            InvalidInputError: the version is a deletion, or a value is illegal; InvalidPathError.
        """
        store_id, old_id = memory_stores.known(memory_store_id), _known(memory_version_id)
        path, version_id = None if path is None else checks.path(path), ids.mint("memver")
        values = (
            *(store_id, old_id, path, *checks.expectation(expect), ids.mint("mem"), version_id),
            *(self._limits.memories_per_store, *checks.author(actor, cause)),
        )
        return self._contact.change(
            lambda connection: rows.memory(connection.run(queries.VERSION_RESTORE, *values), 0, store_id, None),
            lambda connection: saved_memory(connection, store_id, version_id),
            memory_store_id=store_id,
            version_id=version_id,
        )

    def _one(
        self, statement: Statement, store_id: str, *values: Parameter, named: str, path: str = "", full: bool = True
    ) -> MemoryVersion:
        def read(connection: StoreConnection) -> MemoryVersion:
            result = connection.run(statement, store_id, *values)
            if not result.ntuples:
                _refuse_absent(connection, statement, store_id, values, VersionNotFoundError(named, path))
            return rows.version_in_view(result, 0, store_id, full=full)

        return self._contact.read(read)


def _refuse_absent(
    connection: StoreConnection,
    asked: Statement,
    store_id: str,
    values: Sequence[Parameter],
    absent: VersionNotFoundError,
) -> NoReturn:
    """Why nothing was found: there is no such store, what was asked for is pruned, or it never was."""
    if memory_stores.missing(connection, store_id):
        raise StoreNotFoundError(store_id)
    if asked in prune_queries.PRUNED:
        pruned = connection.run(prune_queries.PRUNED[asked], store_id, *values)
        if pruned.ntuples:
            raise HistoryPrunedError(rows.number(pruned.get_value(0, 0)), str(absent))
    raise absent


def _known(memory_version_id: object) -> str:
    if isinstance(memory_version_id, str) and ids.is_id("memver", memory_version_id):
        return memory_version_id
    raise VersionNotFoundError(memory_version_id if isinstance(memory_version_id, str) else repr(memory_version_id))
