"""The record layer's door: one `Database` a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from memkernel.models import Limits
from memkernel.store.connections import Pool
from memkernel.store.contact import Contact
from memkernel.store.memories import Memories
from memkernel.store.memory_stores import MemoryStores
from memkernel.store.memory_versions import MemoryVersions
from memkernel.store.migrate import prepare_schema


class Database:
    """A PostgreSQL database that holds memory stores. Safe to share between threads, and across a fork.

    Attributes:
        memory_stores: the stores.
        memories: their memories.
        memory_versions: the versions of those.
    """

    def __init__(
        self,
        dsn: str | Callable[[], str],
        *,
        limits: Limits | None = None,
        migrate: bool = False,
        prepare: bool = True,
        max_connections: int = 8,
        reconnect_s: float = 5.0,
    ) -> None:
        """Connect, and see to it that the schema is there.

        Args:
            dsn: a libpq connection string; a function is asked again whenever the server was lost.
            limits: the capacities of a store.
            migrate: whether an older schema is brought forward.
            prepare: False where a pooler like pgbouncer hands each transaction to another server connection:
                nothing is then prepared and no session setting is made.
            max_connections: at most so many at a time.
            reconnect_s: for so long a lost server is waited for.

        Raises:
            DatabaseUnavailableError: it cannot be reached.
            ServerTooOldError, SchemaTooOldError, SchemaTooNewError, DatabaseError: it cannot be used.
        """
        limits = Limits() if limits is None else limits
        self._pool = Pool(dsn, prepare=prepare, max_connections=max_connections)
        with self._pool.connection() as connection:
            prepare_schema(connection, migrate=migrate)
        contact = Contact(self._pool, reconnect_s)
        self._contact = contact
        self.memory_stores = MemoryStores(contact)
        self.memories = Memories(contact, limits)
        self.memory_versions = MemoryVersions(contact, limits)

    def close(self) -> None:
        """Close every connection; a later call opens a new one."""
        self._pool.drop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
