"""The memory stores (CONTRACT B.3, B.4)."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from enum import Enum
from functools import lru_cache
from typing import Final, TypeVar

from psycopg import pq

from memkernel import ids, paths
from memkernel.errors import AmbiguousStoreError, StoreNotFoundError
from memkernel.models import MemoryStore, Page
from memkernel.store import checks, pages, queries, rows, statements
from memkernel.store.connections import StoreConnection
from memkernel.store.contact import Contact

T = TypeVar("T")


class Unset(Enum):
    """The type of `UNSET`."""

    UNSET = "unset"


UNSET: Final = Unset.UNSET
"""As an argument of an update: leave it as it is."""

# Every reading brings one of a few ids.
_is_id = lru_cache(256)(ids.is_id)


class MemoryStores:
    """The memory stores of a database. Those of one workspace are listed and made; an id reaches any."""

    def __init__(self, contact: Contact) -> None:
        self._contact = contact

    def create(
        self,
        *,
        name: str,
        description: str = "",
        metadata: dict[str, str] | None = None,
        unique: bool = False,
    ) -> MemoryStore:
        """A new store; names need not be unique.

        Args:
            name: 1-255 characters, no control characters.
            description: at most 1,024 characters.
            metadata: at most 16 pairs; keys 1-64, values at most 512 characters.
            unique: refuse a name that an active store has.

        Raises:
            InvalidInputError: one of these is broken.
            AlreadyExistsError: `unique` is set, and the name is taken.
        """
        store_id = ids.mint("memstore")
        values = (
            *(self._contact.workspace_id, store_id, checks.name(name), checks.description(description)),
            *(json.dumps(checks.metadata({} if metadata is None else metadata)), bool(unique)),
        )
        return self._repeat(lambda connection: rows.store(connection.run(queries.STORE_CREATE, *values), 0), store_id)

    def retrieve(self, memory_store_id: str) -> MemoryStore:
        """The store with this id.

        Raises:
            StoreNotFoundError: there is none.
        """
        store_id = known(memory_store_id)
        store = self._contact.read(lambda connection: _found(connection, store_id))
        if store is None:
            raise StoreNotFoundError(store_id)
        return store

    def update(
        self,
        memory_store_id: str,
        *,
        name: str | Unset | None = UNSET,
        description: str | Unset | None = UNSET,
        metadata: dict[str, str | None] | Unset | None = UNSET,
    ) -> MemoryStore:
        """Change a store; what changes nothing leaves `updated_at`.

        Args:
            memory_store_id: the store.
            name: None leaves it (CONTRACT 0.3, row 7).
            description: None or `""` clears it.
            metadata: a patch: a string sets, None removes, absent keys stay. None leaves all.

        Raises:
            InvalidInputError: a value is illegal, or the result has more than 16 pairs.
            StoreNotFoundError: there is no such store.
            StoreArchivedError: it is archived.
        """
        store_id = known(memory_store_id)
        values = (
            store_id,
            None if name is UNSET or name is None else checks.name(name),
            None if description is UNSET else checks.description(description or ""),
            None if metadata is UNSET or metadata is None else json.dumps(checks.metadata_patch(metadata)),
            checks.MAX_METADATA_PAIRS,
        )
        return self._repeat(lambda connection: rows.store(connection.run(queries.STORE_UPDATE, *values), 0), store_id)

    def archive(self, memory_store_id: str) -> MemoryStore:
        """Make a store read-only, for ever; again, it returns the same record.

        Raises:
            StoreNotFoundError: there is no such store.
        """
        store_id = known(memory_store_id)
        return self._repeat(lambda connection: rows.store(connection.run(queries.STORE_ARCHIVE, store_id), 0), store_id)

    def delete(self, memory_store_id: str) -> None:
        """Remove a store with its memories and their whole history.

        Raises:
            StoreNotFoundError: there is no such store.
            StoreAttachedError: a session that has not ended attaches it.
        """
        store_id = known(memory_store_id)

        def gone(connection: StoreConnection) -> bool | None:
            return True if _found(connection, store_id) is None else None

        def delete(connection: StoreConnection) -> bool:
            connection.run(queries.STORE_DELETE, store_id)
            return True

        self._contact.change(delete, gone, memory_store_id=store_id)

    def list(
        self,
        *,
        include_archived: bool = False,
        created_at_gte: datetime | None = None,
        created_at_lte: datetime | None = None,
        limit: int = 20,
        page: str | None = None,
    ) -> Page[MemoryStore]:
        """The stores, newest first.

        Args:
            include_archived: also the archived ones.
            created_at_gte: not older than this.
            created_at_lte: not newer than this.
            limit: 1-100.
            page: the `next_page` of the page before.

        Raises:
            InvalidInputError: a value is illegal; InvalidPageError for the token.
        """
        limit = checks.limit(limit)
        since = checks.moment("created_at_gte", created_at_gte)
        until = checks.moment("created_at_lte", created_at_lte)
        bound_to = pages.binding("memory_stores", archived=bool(include_archived), gte=since, lte=until)
        after = pages.position(page, bound_to, int, str) or (None, None)
        values = (bool(include_archived), since, until, *after, limit + 1, self._contact.workspace_id)
        found = self._contact.read(lambda connection: _all(connection.run(queries.STORE_LIST, *values)))
        return pages.cut(found, limit, bound_to, lambda store: (statements.micros(store.created_at), store.id))

    def find(self, ref: str) -> MemoryStore:
        """The store with this id, else of exactly this name, else of this slug; active before archived.

        Raises:
            StoreNotFoundError: with the names that are near.
            AmbiguousStoreError: several answer; the ids are the candidates.
        """
        if not isinstance(ref, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # a notebook passes anything
            raise StoreNotFoundError(repr(ref))
        if not checks.is_storable(ref):
            raise StoreNotFoundError(ref)
        if ids.is_id("memstore", ref):
            return self.retrieve(ref)
        workspace_id = self._contact.workspace_id
        return self._contact.read(lambda connection: _by_name(connection, workspace_id, ref))

    def get_or_create(self, ref: str, *, description: str = "") -> MemoryStore:
        """The store with this id, or the active one of exactly this name, else of this slug, or a new one of this name.

        Safe from two kernels at once.

        Raises:
            StoreNotFoundError: `ref` has the form of an id, and there is no such store.
            InvalidInputError: the name or the description is illegal.
            AmbiguousStoreError: several answer; the ids are the candidates.
        """
        name, description = checks.name(ref), checks.description(description)
        if ids.is_id("memstore", name):
            return self.retrieve(name)
        store_id, workspace_id = ids.mint("memstore"), self._contact.workspace_id

        def work(connection: StoreConnection) -> list[MemoryStore]:
            with connection.transaction():
                # The slug's lock against other spellings, the name's against `create` with `unique`.
                for key in (paths.slug(name), name):
                    connection.run(queries.NAME_LOCK, workspace_id, key)
                named = _named(connection, workspace_id, name)
                found = _active(named) or _active(_slugged(connection, workspace_id, name))
                if found:
                    return found
                values = (workspace_id, store_id, name, description, "{}", False)
                return _all(connection.run(queries.STORE_CREATE, *values))

        return _only(name, self._repeat(work, store_id))

    def _repeat(self, work: Callable[[StoreConnection], T], store_id: str) -> T:
        """Run a change that does no harm when it is run twice."""
        return self._contact.change(work, lambda _: None, memory_store_id=store_id)


def known(memory_store_id: object) -> str:
    """The id, if it can be one of a store.

    Raises:
        StoreNotFoundError: nothing can have this id.
    """
    if isinstance(memory_store_id, str) and _is_id("memstore", memory_store_id):
        return memory_store_id
    raise StoreNotFoundError(memory_store_id if isinstance(memory_store_id, str) else repr(memory_store_id))


def missing(connection: StoreConnection, store_id: str) -> bool:
    """Whether there is no such store."""
    return connection.run(queries.STORE_EXISTS, store_id).ntuples == 0


def _all(result: pq.abc.PGresult) -> list[MemoryStore]:
    return [rows.store(result, row) for row in range(result.ntuples)]


def _found(connection: StoreConnection, store_id: str) -> MemoryStore | None:
    result = connection.run(queries.STORE_GET, store_id)
    return rows.store(result, 0) if result.ntuples else None


def _by_name(connection: StoreConnection, workspace_id: str, ref: str) -> MemoryStore:
    found = _named(connection, workspace_id, ref) or _slugged(connection, workspace_id, ref)
    if not found:
        names = _names(connection, workspace_id).values()
        raise StoreNotFoundError(ref, difflib.get_close_matches(ref, names, cutoff=0.5))
    return _only(ref, _active(found) or found)


def _named(connection: StoreConnection, workspace_id: str, name: str) -> list[MemoryStore]:
    return _all(connection.run(queries.STORE_BY_NAME, workspace_id, name))


def _slugged(connection: StoreConnection, workspace_id: str, slug: str) -> list[MemoryStore]:
    names = _names(connection, workspace_id)
    slugged = [store_id for store_id, name in names.items() if paths.mount_slug(name, store_id) == slug]
    return [store for store_id in slugged if (store := _found(connection, store_id))]


def _active(stores: Sequence[MemoryStore]) -> list[MemoryStore]:
    return [store for store in stores if store.archived_at is None]


def _names(connection: StoreConnection, workspace_id: str) -> dict[str, str]:
    result = connection.run(queries.STORE_NAMES, workspace_id)
    get = result.get_value
    return {rows.text(get(row, 0)): rows.text(get(row, 1)) for row in range(result.ntuples)}


def _only(ref: str, found: Sequence[MemoryStore]) -> MemoryStore:
    if len(found) > 1:
        raise AmbiguousStoreError(ref, [store.id for store in found])
    return found[0]
