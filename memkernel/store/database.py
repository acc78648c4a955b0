"""The record layer's door: one `Database` a server."""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Self

import psycopg

from memkernel.errors import WorkspaceRoleError
from memkernel.models import DEFAULT_WORKSPACE, Limits, ServerStatus, Verified
from memkernel.store import checks, queries, rows, verifying, workspaces
from memkernel.store.api_keys import ApiKeys
from memkernel.store.connections import Pool, StoreConnection
from memkernel.store.contact import Contact, Settled, Unsettled
from memkernel.store.dumping import Row, dump
from memkernel.store.memories import Memories
from memkernel.store.memory_stores import MemoryStores
from memkernel.store.memory_versions import MemoryVersions
from memkernel.store.migrate import prepare_schema
from memkernel.store.mounts import Mounts
from memkernel.store.pruning import Pruning
from memkernel.store.runs import Runs
from memkernel.store.sessions import Sessions
from memkernel.store.timeline import Timeline
from memkernel.store.translate import translate


class Database:
    """A PostgreSQL database that holds memory stores. Safe to share between threads, and across a fork.

    Attributes:
        memory_stores: the stores.
        memories: their memories.
        memory_versions: the versions of those.
        timeline: the stores as of any point of their history.
        sessions: the sessions that attach stores.
        mounts: what those have mounted.
        runs: the runs of agents.
        keys: the keys to the HTTP API.
        pruning: takes old versions out of the stores.
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
        workspace_id: str = DEFAULT_WORKSPACE,
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
            workspace_id: of the stores and sessions that are listed and made; an id reaches any.

        Raises:
            InvalidInputError: the workspace's id is illegal.
        """
        self._prepare = prepare
        self._limits = Limits() if limits is None else limits
        self._pool = Pool(
            dsn,
            prepare=prepare,
            max_connections=max_connections,
            first=lambda connection: _prepare_schema(connection, migrate),
        )
        self._api_pool = Pool(
            dsn,
            prepare=prepare,
            max_connections=workspaces.CONNECTIONS,
            first=lambda connection: _prepare_workspaces(connection, migrate),
        )
        self._views: dict[str, Self] = {}
        self._page_key: list[bytes] = []  # asked for once; a list, so that the views of workspaces share it
        self._owner = Contact(self._pool, reconnect_s, checks.workspace_id(workspace_id))
        self.keys = ApiKeys(self._owner)
        self._use(self._owner)

    def _use(self, contact: Contact) -> None:
        self._contact = contact
        self.memory_stores = MemoryStores(contact)
        self.memories = Memories(contact, self._limits)
        self.memory_versions = MemoryVersions(contact, self._limits)
        self.timeline = Timeline(contact)
        self.sessions = Sessions(contact, self._limits)
        self.mounts = Mounts(contact, self._limits)
        self.runs = Runs(contact)
        self.pruning = Pruning(contact)

    def open(self) -> None:
        """Connect, and see to it that the schema is there.

        Raises:
            DatabaseUnavailableError: it cannot be reached; at once, nothing is waited for.
            ServerTooOldError, SchemaTooOldError, SchemaTooNewError, DatabaseError: it cannot be used.
        """
        with self._pool.connection():
            pass

    @property
    def workspace_id(self) -> str:
        """The workspace whose stores and sessions are listed and made."""
        return self._contact.workspace_id

    def ping(self) -> None:
        """Ask the server for nothing.

        Raises:
            DatabaseUnavailableError: it does not answer.
        """
        self._contact.read(lambda connection: connection.run(queries.NOTHING))

    def in_workspace(self, workspace_id: str) -> Self:
        """These rows as the API sees them: those of one workspace, whatever a query asks for.

        Its connections are others, at most 16, and run as the role memkernel_api, which is made with the first
        workspace. Changes go one by one: PostgreSQL copies no batch into a table that it guards.

        Raises:
            InvalidInputError: the workspace's id is illegal.
            WorkspaceRoleError: the role cannot be made, or a pooler stands before the server (`prepare=False`).
            DatabaseUnavailableError: for the first workspace: the server cannot be reached.
        """
        return self._views.get(workspace_id) or self._enter(checks.workspace_id(workspace_id))

    def _enter(self, workspace_id: str) -> Self:
        if not self._prepare:
            raise WorkspaceRoleError(
                "behind a pooler, workspaces cannot be kept apart: a role stays with its server connection",
                hint="Give the server's own address.",
            )
        with self._api_pool.connection():
            pass  # the first one makes the role
        pool = workspaces.WorkspacePool(self._api_pool, workspace_id)
        view = copy.copy(self)
        view._use(self._owner.kept_to(pool, workspace_id))
        return self._views.setdefault(workspace_id, view)

    def page_key(self) -> bytes:
        """The 32 bytes with which the API signs page tokens: the same for every server on this database.

        Raises:
            DatabaseUnavailableError: it cannot be reached.
        """
        if not self._page_key:
            self._page_key.append(self._owner.read(_page_key))
        return self._page_key[0]

    def status(self) -> ServerStatus:
        """The server, memkernel's schema in it, and what the workspace holds.

        Raises:
            DatabaseUnavailableError: it cannot be reached.
        """
        workspace_id = self._contact.workspace_id
        return self._contact.read(lambda connection: _status(connection, workspace_id))

    def verify(self, memory_store_id: str) -> Verified:
        """Whether a store is as memkernel writes it: its numbers, the hashes of its texts, its memories.

        The numbers of its changes have no gap above what was pruned; each text has the hash that it was written with;
        each memory shows its newest version. It reads every text of the store, and changes nothing.

        Raises:
            StoreNotFoundError: there is no such store.
        """
        return verifying.verify(self._contact, memory_store_id)

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
        """Tables with the columns asked for, the workspace's rows, all from one snapshot; see `dumping.dump`."""
        self.ping()  # what is lost already is made anew
        yield from dump(self._contact.pool, tables, self._contact.workspace_id)

    def close(self) -> None:
        """Close every connection; a later call opens a new one."""
        self._pool.drop_all()
        self._api_pool.drop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _prepare_schema(connection: StoreConnection, migrate: bool) -> None:
    try:
        prepare_schema(connection, migrate=migrate)
    except psycopg.Error as error:
        raise translate(error) from error


def _prepare_workspaces(connection: StoreConnection, migrate: bool) -> None:
    _prepare_schema(connection, migrate)
    workspaces.prepare_role(connection)


def _page_key(connection: StoreConnection) -> bytes:
    return connection.run(queries.PAGE_KEY).get_value(0, 0) or b""


def _status(connection: StoreConnection, workspace_id: str) -> ServerStatus:
    result = connection.run(queries.STATUS, workspace_id)
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
