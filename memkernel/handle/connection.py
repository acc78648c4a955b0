"""`mk.connect`: a database, and the memory stores in it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from memkernel import cluster, config, ids
from memkernel.agent import checks
from memkernel.errors import InvalidInputError
from memkernel.handle import runs
from memkernel.handle.records import Records
from memkernel.handle.store import Store
from memkernel.models import (
    DEFAULT_WORKSPACE,
    Actor,
    MemoryStore,
    Pruned,
    RunEvent,
    RunRecord,
    RunStatus,
    Settings,
)
from memkernel.store import Database, ServerStatus

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic

    from memkernel.analytics.sql import SqlResult
    from memkernel.api.messages import Principal


def connect(dsn: str | None = None, *, actor: Actor | None = None, workspace: str = DEFAULT_WORKSPACE) -> Connection:
    """Connect to a PostgreSQL, and make or check memkernel's tables there.

    Args:
        dsn: a server, `postgresql://…`. Without one MEMKERNEL_DSN is taken, and without that the embedded
            PostgreSQL, which is started where it does not run. A server that was chosen and fails is an error;
            no other one is tried.
        actor: who writes; by default a `user_actor` named after the operating system's user.
        workspace: whose stores are listed, found by name and made: 1-64 letters, digits, `_`, `-` and `.`.

    Raises:
        InvalidInputError: the workspace's id, or the DSN, is illegal.
        ClusterError: the embedded PostgreSQL cannot be started.
        DatabaseError: the server does not answer, is too old, or holds another version's tables.
    """
    settings = config.load()
    chosen = cluster.choose(dsn, settings)
    database = Database(chosen.dsn, limits=settings.limits, migrate=chosen.cluster is not None, workspace_id=workspace)
    database.open()
    return Connection(database, chosen, actor or Actor("user_actor", f"user_{settings.user}"), settings)


class Connection:
    """A database that is connected. Safe to use from several threads; close it or leave it to the process's end."""

    def __init__(self, database: Database, chosen: cluster.Chosen, actor: Actor, settings: Settings) -> None:
        self.database = database
        self.actor = actor
        self.settings = settings
        self._chosen = chosen

    @property
    def line(self) -> str:
        """Which server this is, in one line without a password."""
        return self._chosen.line

    def __repr__(self) -> str:
        return f"<memkernel.Connection to {self.line}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; the embedded server stops a minute after its last client."""
        self.database.close()
        if self._chosen.cluster is not None:
            self._chosen.cluster.release()

    def status(self) -> ServerStatus:
        """The server, its schema and what it holds; also a contact that settles writes that were cut off."""
        return self.database.status()

    def store(self, ref: str, *, create: bool = False, description: str = "") -> Store:
        """The store with this id, exact name or slug; active stores before archived ones.

        Args:
            ref: an id, a name or a slug; a name where `create` is set.
            create: make the store where none of this name is there. Two kernels that ask at once get the same one.
            description: of the store that is made.

        Raises:
            StoreNotFoundError: nothing answers to `ref`, and `create` is not set.
            AmbiguousStoreError: several stores do.
        """
        stores = self.database.memory_stores
        return Store(self, stores.get_or_create(ref, description=description) if create else stores.find(ref))

    def create_store(
        self, name: str, *, description: str = "", metadata: dict[str, str] | None = None, unique: bool = False
    ) -> Store:
        """A new store.

        Args:
            name: its name; other stores may have the same (CONTRACT B.3), except where `unique` is set.
            description: what it is for.
            metadata: up to 16 pairs of strings.
            unique: refuse a name that an active store has.

        Raises:
            AlreadyExistsError: `unique` is set and the name is taken.
        """
        made = self.database.memory_stores.create(name=name, description=description, metadata=metadata, unique=unique)
        return Store(self, made)

    def stores(self, *, include_archived: bool = False) -> Records[MemoryStore]:
        """All stores, newest first."""
        return Records(self._each_store(include_archived), kind=MemoryStore)

    def _each_store(self, include_archived: bool) -> Iterator[MemoryStore]:
        page = None
        while True:
            found = self.database.memory_stores.list(include_archived=include_archived, limit=100, page=page)
            yield from found.data
            page = found.next_page
            if page is None:
                return

    def runs(
        self,
        *,
        limit: int | None = None,
        store: str | Store | None = None,
        status: RunStatus | None = None,
        since: datetime | None = None,
    ) -> Records[RunRecord]:
        """The runs of agents, newest first. One whose process is gone is `lost`, not `running`.

        Args:
            limit: at most so many; None: all.
            store: those that work with this store; of one that was deleted, by its id.
            status: those that stand so: running, done, stopped, error, refused, lost, max_turns, …
            since: those that started then or later; one without a zone is UTC.

        Raises:
            StoreNotFoundError, AmbiguousStoreError: nothing, or several stores answer to `store`.
            InvalidInputError: a value is illegal.
        """
        most = None if limit is None else min(checks.count("limit", limit), sys.maxsize)
        self._settle_runs()
        found = self._each_run(memory_store_id=self._id_of(store), status=status, since=since)
        empty = (
            "No run of an agent was kept here." if store is status is since is None else "No such run was kept here."
        )
        return Records(islice(found, most), kind=RunRecord, empty=empty)

    def _each_run(self, **filters: Any) -> Iterator[RunRecord]:
        page = None
        while True:
            found = self.database.runs.list(**filters, limit=100, page=page)
            yield from found.data
            page = found.next_page
            if page is None:
                return

    def _id_of(self, store: str | Store | None) -> str | None:
        if isinstance(store, str):
            return store if ids.is_id("memstore", store) else self.store(store).id
        if store is None:
            return None
        if isinstance(store, Store):  # pyright: ignore[reportUnnecessaryIsInstance]  # a person's own value
            return store.id
        raise InvalidInputError(f"store is a memkernel.Store or its name, not {type(store).__name__}")

    def run(self, run_id: str) -> RunRecord:
        """How a run stands.

        Raises:
            RunNotFoundError: there is no such run.
        """
        self._settle_runs()
        return self.database.runs.retrieve(run_id)

    def _settle_runs(self) -> None:
        """No run is shown as running that has ended: here, while the database was lost, or with its process."""
        runs.settle(self.database.runs)
        self.database.runs.mark_lost()

    def run_events(self, run_id: str) -> list[RunEvent]:
        """What happened in a run, in order: the events of `memkernel.agent.events`, as JSON.

        Raises:
            RunNotFoundError: there is no such run.
        """
        return self.database.runs.events(run_id)

    def stop_run(self, run_id: str) -> RunRecord:
        """Ask a run of any kernel to stop: it does before its next tool, or within half a minute. One that ended stays.

        Raises:
            RunNotFoundError: there is no such run.
        """
        self._settle_runs()
        return self.database.runs.ask_stop(run_id)

    def delete_run(self, run_id: str) -> None:
        """Forget a run that has ended, its prompt and all that happened in it; the memories that it changed stay.

        Raises:
            RunNotFoundError: there is no such run.
            RunRunningError: it runs.
        """
        self.database.runs.delete(run_id)

    def prune(
        self, *, older_than: timedelta, keep: int = 3, store: str | Store | None = None, dry_run: bool = False
    ) -> Records[Pruned]:
        """Delete, for ever, the versions that were superseded or ended before a time (CONTRACT 0.3, row 18).

        Args:
            older_than: 30 days or more. What was current at any moment since then stays, as every head does.
            keep: so many of its newest versions a live memory keeps, however old they are.
            store: one store, archived or not; by default all of the workspace.
            dry_run: only tell what would go.

        Returns:
            What each store lost, or would lose; stores that lose nothing are left out.

        Raises:
            InvalidInputError: less than 30 days, or less than 1 version.
            StoreNotFoundError, AmbiguousStoreError: nothing, or several stores answer to `store`.
        """
        one = self._id_of(store)
        pruned = self.database.pruning.prune(older_than=older_than, keep=keep, memory_store_id=one, dry_run=dry_run)
        return Records(pruned, kind=Pruned, empty="Nothing is to be pruned.")

    def sql(self, query: str, *, limit: int | None = None) -> SqlResult:
        """Read-only SQL (DuckDB's) over the stores, memories, versions and runs of this database.

        Raises:
            QueryRefusedError: the query could write or reach outside, or is not exactly one statement.
        """
        from memkernel.analytics.sql import query as run

        return run(self.database, query, limit=limit)

    def anthropic(self) -> Anthropic:
        """The official client, `anthropic.Anthropic`, on this database.

        `client.beta.memory_stores` and `client.beta.sessions` are answered in process, as this connection's actor
        and without a key; all other calls go to the real API where there is a key (ANTHROPIC_API_KEY, or another
        credential of the SDK's), and raise `anthropic.AuthenticationError` unsent where there is none.

        Where the login may not make the role memkernel_api, which `memkernel serve` insists on, lists are of this
        connection's workspace, and an id of another one is found all the same: the login owns the rows of all.
        """
        from memkernel.api import client

        return client.synchronous(self.database, self._principal(), self.settings)

    def async_anthropic(self) -> AsyncAnthropic:
        """The official asynchronous client on this database; see `anthropic`."""
        from memkernel.api import client

        return client.asynchronous(self.database, self._principal(), self.settings)

    def _principal(self) -> Principal:
        from memkernel.api.messages import Principal

        return Principal(self.database.workspace_id, self.actor)
