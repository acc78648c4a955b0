"""The versions of memories (CONTRACT B.10)."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from psycopg import pq

from memkernel import ids
from memkernel.errors import StoreNotFoundError, VersionNotFoundError
from memkernel.models import Limits, MemoryVersion, Page
from memkernel.store import checks, memory_stores, pages, queries, rows
from memkernel.store.connections import StoreConnection
from memkernel.store.contact import Contact
from memkernel.store.statements import Parameter

_CONTENT: Final = 14  # the column after those of queries.VERSION
_OPERATIONS: Final = ("created", "modified", "deleted")


class MemoryVersions:
    """The versions of the memories of the stores of a database."""

    def __init__(self, contact: Contact, limits: Limits) -> None:
        self._contact = contact
        self._limits = limits

    def retrieve(self, memory_version_id: str, *, memory_store_id: str, view: str = "full") -> MemoryVersion:
        """The version with this id.

        Raises:
            StoreNotFoundError, VersionNotFoundError: no such store; no such version in it.
            InvalidInputError: an unknown view.
        """
        statement = queries.VERSION_GET_FULL if checks.view(view) == "full" else queries.VERSION_GET
        store_id, version_id = memory_stores.known(memory_store_id), _known(memory_version_id)

        def read(connection: StoreConnection) -> MemoryVersion:
            result = connection.run(statement, store_id, version_id)
            if not result.ntuples:
                raise _nothing(connection, store_id, version_id)
            return _version(result, 0, store_id)

        return self._contact.read(read)

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
        }
        bound_to = pages.binding("memory_versions", store=store_id, view=view, **filters)
        before = pages.position(page, bound_to, int)
        filters["before"] = before[0] if before else None
        statement, values = queries.version_list(store_id, filters, limit + 1, full=full)

        def read(connection: StoreConnection) -> list[MemoryVersion]:
            result = connection.run(statement, *values)
            if not result.ntuples and memory_stores.missing(connection, store_id):
                raise StoreNotFoundError(store_id)
            return [_version(result, row, store_id) for row in range(result.ntuples)]

        return pages.cut(self._contact.read(read), limit, bound_to, lambda version: [version.seq])


def _known(memory_version_id: object) -> str:
    if isinstance(memory_version_id, str) and ids.is_id("memver", memory_version_id):
        return memory_version_id
    raise VersionNotFoundError(memory_version_id if isinstance(memory_version_id, str) else repr(memory_version_id))


def _nothing(connection: StoreConnection, store_id: str, version_id: str) -> StoreNotFoundError | VersionNotFoundError:
    missing = memory_stores.missing(connection, store_id)
    return StoreNotFoundError(store_id) if missing else VersionNotFoundError(version_id)


def _version(result: pq.abc.PGresult, row: int, store_id: str) -> MemoryVersion:
    """A row of queries.VERSION, and of its content where that was asked for."""
    content = result.get_value(row, _CONTENT) if result.nfields > _CONTENT else None
    return rows.version(result, row, store_id, None if content is None else content.decode())
