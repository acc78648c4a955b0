"""The record layer's door: one `Database` a server."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Self

import psycopg

from memkernel.models import Limits, ServerStatus
from memkernel.store import queries, rows
from memkernel.store.connections import Pool, StoreConnection
from memkernel.store.contact import Contact, Settled, Unsettled
from memkernel.store.dumping import Row, dump
from memkernel.store.memories import Memories
from memkernel.store.memory_stores import MemoryStores
from memkernel.store.memory_versions import MemoryVersions
from memkernel.store.migrate import prepare_schema
from memkernel.store.mounts import Mounts
from memkernel.store.sessions import Sessions
from memkernel.store.translate import translate


class Database:
    """A PostgreSQL database that holds memory stores. Safe to share between threads, and across a fork.

    Attributes:
        memory_stores: the stores.
        memories: their memories.
        memory_versions: the versions of those.
        sessions: the sessions that attach stores.
        mounts: what those have mounted.
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
        """Nothing is connected yet: that happens with the first use, or in `open`.

        Args:
            dsn: a libpq connection string; a function is asked again whenever the server was lost.
            limits: the capacities of a store.
            migrate: whether an older schema is brought forward.
            prepare: False where a pooler like pgbouncer hands each transaction to another server connection:
                nothing is then prepared and no session setting is made.
            max_connections: at most so many at a time.
            reconnect_s: for so long a lost server is waited for.
        """
        self._pool = Pool(
            dsn,
            prepare=prepare,
            max_connections=max_connections,
            first=lambda connection: _prepare_schema(connection, migrate),
        )
        self._contact = Contact(self._pool, reconnect_s)
        limits = Limits() if limits is None else limits
        self.memory_stores = MemoryStores(self._contact)
        self.memories = Memories(self._contact, limits)
        self.memory_versions = MemoryVersions(self._contact, limits)
        self.sessions = Sessions(self._contact, limits)
        self.mounts = Mounts(self._contact, limits)

    def open(self) -> None:
        """Connect, and see to it that the schema is there.

        Raises:
            DatabaseUnavailableError: it cannot be reached; at once, nothing is waited for.
            ServerTooOldError, SchemaTooOldError, SchemaTooNewError, DatabaseError: it cannot be used.
        """
        with self._pool.connection():
            pass

    def in_workspace(self, workspace_id: str) -> Database:
        """These rows as the API sees them: those of one workspace, whatever a query asks for."""
        return self

    def status(self) -> ServerStatus:
        """The server, memkernel's schema in it, and what that holds.

        Raises:
            DatabaseUnavailableError: it cannot be reached.
        """
        return self._contact.read(_status)

    def unsettled(self) -> list[Unsettled]:
        """The changes that were sent, and of which a lost server never said whether they were saved."""
        return self._contact.unsettled()

    def settle(self) -> list[Settled]:
        """Ask what became of the unsettled changes, and forget them.

        Raises:
            DatabaseUnavailableError: the server still does not answer; they are kept.
        """
        return self._contact.settle()

    def dump(self, tables: Mapping[str, Sequence[str]]) -> Generator[tuple[str, Iterator[Row]]]:
        """Tables with the columns asked for, all from one snapshot; see `dumping.dump`."""
        self._contact.read(lambda connection: connection.run(queries.NOTHING))  # what is lost already is made anew
        yield from dump(self._pool, tables)

    def close(self) -> None:
        """Close every connection; a later call opens a new one."""
        self._pool.drop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _prepare_schema(connection: StoreConnection, migrate: bool) -> None:
    try:
        prepare_schema(connection, migrate=migrate)
    except psycopg.Error as error:
        raise translate(error) from error


def _status(connection: StoreConnection) -> ServerStatus:
    result = connection.run(queries.STATUS)
    words = [rows.text(result.get_value(0, column)) for column in range(3)]
    counts = [rows.number(result.get_value(0, column)) for column in range(3, 7)]
    return ServerStatus(
        server_version=words[0],
        host=connection.info.host,
        database=words[1],
        user=words[2],
        schema_version=counts[3],
        memory_stores=counts[0],
        memories=counts[1],
        memory_versions=counts[2],
    )
