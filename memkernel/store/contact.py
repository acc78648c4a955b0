"""How readings and changes reach PostgreSQL, and what becomes of them when it is lost on the way."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Self, TypeVar

import psycopg

from memkernel.errors import DatabaseUnavailableError
from memkernel.store import queries, rows
from memkernel.store.connections import Pool, StoreConnection
from memkernel.store.translate import is_lost, translate
from memkernel.store.workspaces import WorkspacePool

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Unsettled:
    """A change that was sent and never answered; `version_id` is the (first) version that it would make."""

    memory_store_id: str
    version_id: str


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of an unsettled change."""

    memory_store_id: str
    version_id: str
    saved: bool


class Contact:
    """Runs readings and changes on pooled connections, and bears the loss of the server for a while.

    Attributes:
        pool: where the connections come from.
        owner: the pool of the tables' owner, where `pool` is kept to one workspace.
        workspace_id: whose rows are listed and made.
    """

    def __init__(self, pool: Pool, reconnect_s: float, workspace_id: str) -> None:
        self.pool: Pool | WorkspacePool = pool
        self.owner = pool
        self.workspace_id = workspace_id
        self._reconnect_s = reconnect_s
        self._unsettled: list[Unsettled] = []

    def kept_to(self, pool: WorkspacePool, workspace_id: str) -> Self:
        """The same with connections that PostgreSQL keeps to one workspace; what is unsettled is known to both."""
        kept = copy.copy(self)
        kept.pool, kept.workspace_id = pool, workspace_id
        return kept

    def read(self, work: Callable[[StoreConnection], T]) -> T:
        """Run a reading; where its connection is lost, reconnect and run it again.

        Raises:
            DatabaseUnavailableError: the server could not be reached again in time.
            MemkernelError: what the server's refusal means.
        """
        try:
            connection = self.pool.take()
            try:
                return work(connection)
            finally:
                self.pool.give_back(connection)
        except psycopg.Error as error:
            self._let_lost_pass(error)
        except DatabaseUnavailableError as error:
            self._let_unanswered_pass(error)
        try:
            with self._reconnect() as connection:
                return work(connection)
        except psycopg.Error as error:
            self._let_lost_pass(error)
            raise DatabaseUnavailableError() from error

    def change(
        self,
        work: Callable[[StoreConnection], T],
        saved: Callable[[StoreConnection], T | None],
        *,
        memory_store_id: str,
        version_id: str = "",
    ) -> T:
        """Run a change. Where its connection is lost, ask whether it was saved; if not, run it once more.

        Both times it brings the same version id, which is a primary key: it happens at most once.

        Args:
            work: the change, one transaction.
            saved: looks the change up under the store's lock: its result, or None.
            memory_store_id: the store that is changed.
            version_id: the (first) version that the change makes; `""` where running twice does no harm.

        Raises:
            DatabaseUnavailableError: `saved` is False: it was never sent; None: the server did not come back in
                time, and the change is kept as unsettled.
            MemkernelError: what the server's refusal means.
        """
        maybe_saved = False
        try:
            connection = self.pool.take()
            try:
                if not connection.is_gone():
                    maybe_saved = True
                    return work(connection)
            finally:
                self.pool.give_back(connection)
        except psycopg.Error as error:
            self._let_lost_pass(error)
        except DatabaseUnavailableError as error:
            self._let_unanswered_pass(error)
        try:
            with self._reconnect() as connection:
                result = saved(connection) if maybe_saved else None
                if result is not None:
                    return result
                maybe_saved = True
                return work(connection)
        except psycopg.Error as error:
            self._let_lost_pass(error)
            raise self._unknown(memory_store_id, version_id) from error
        except DatabaseUnavailableError as error:
            if maybe_saved:
                raise self._unknown(memory_store_id, version_id) from error
            raise

    def clear_versions(self) -> None:
        """Vacuum away what redacted and pruned versions were; where it fails, the server's next vacuum does it."""
        with suppress(psycopg.Error, DatabaseUnavailableError), self.owner.connection() as connection:
            connection.run(queries.VERSIONS_CLEAR)

    def _reconnect(self) -> StoreConnection:
        self.pool.drop_all()
        return self.pool.reconnect(self._reconnect_s)

    @staticmethod
    def _let_lost_pass(error: psycopg.Error) -> None:
        if not is_lost(error):
            raise translate(error) from None

    @staticmethod
    def _let_unanswered_pass(error: DatabaseUnavailableError) -> None:
        if error.refused:
            raise error

    def _unknown(self, memory_store_id: str, version_id: str) -> DatabaseUnavailableError:
        if version_id:
            self._unsettled.append(Unsettled(memory_store_id, version_id))
        return DatabaseUnavailableError(saved=None, memory_store_id=memory_store_id, version_id=version_id)

    def unsettled(self) -> list[Unsettled]:
        """The changes whose outcome is not known yet."""
        return list(self._unsettled)

    def settle(self) -> list[Settled]:
        """Look up what became of the unsettled changes, and forget them.

        Raises:
            DatabaseUnavailableError: the server still does not answer; they are kept.
        """
        settled: list[Settled] = []
        while self._unsettled:
            lost = self._unsettled[0]
            count = self.read(lambda connection, lost=lost: _saved_count(connection, lost))
            settled.append(Settled(lost.memory_store_id, lost.version_id, count > 0))
            self._unsettled.remove(lost)
        return settled


def _saved_count(connection: StoreConnection, lost: Unsettled) -> int:
    result = connection.run(queries.VERSIONS_SAVED, lost.memory_store_id, [lost.version_id])
    return rows.number(result.get_value(0, 0))
