"""Connections to PostgreSQL: a pool that survives a fork, a lost server and an interrupted call."""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import psycopg
from psycopg import errors, generators, pq
from psycopg_pool import ConnectionPool, PoolTimeout

from memkernel.errors import DatabaseUnavailableError
from memkernel.store.settling import Unsettled
from memkernel.store.statements import Parameter, Statement, encode
from memkernel.store.translate import is_lost, translate

T = TypeVar("T")

_BINARY: Final = 1
_POOL_WAIT_S: Final = 30.0
_RECONNECT_PAUSE_S: Final = 0.1

# The pool's workers log each failed attempt; callers get the failure as an exception instead.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())


class StoreConnection(psycopg.Connection[Any]):
    """A connection that runs `Statement`s."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._prepared_names: set[bytes] = set()

    def run(self, statement: Statement, *parameters: Parameter) -> pq.abc.PGresult:
        """Run a statement; its result has binary columns. Ctrl-C cancels it and leaves the connection usable.

        Raises:
            psycopg.Error: what the server answered, or that it is gone.
        """
        values = [encode(parameter) for parameter in parameters]
        formats = [_BINARY] * len(values)
        if not statement.name or self.prepare_threshold is None:
            self.pgconn.send_query_params(statement.sql, values, None, formats, _BINARY)
            return self._answer()
        if statement.name not in self._prepared_names:
            self.pgconn.send_prepare(statement.name, statement.sql)
            self._answer()
            self._prepared_names.add(statement.name)
        self.pgconn.send_query_prepared(statement.name, values, formats, _BINARY)
        return self._answer()

    def _answer(self) -> pq.abc.PGresult:
        # psycopg's own wait: it polls, so that signals are seen, and cancels and drains on Ctrl-C.
        result = self.wait(generators.execute(self.pgconn))[-1]
        if result.status == pq.ExecStatus.FATAL_ERROR:
            raise errors.error_from_result(result)
        return result


class Connections:
    """Where the record layer gets its connections.

    `dsn` may be a function: it is asked again whenever the server was lost, and may start it anew.
    """

    def __init__(
        self, dsn: str | Callable[[], str], *, prepare: bool, max_connections: int, reconnect_s: float
    ) -> None:
        self._dsn = dsn
        self._arguments: dict[str, Any] = {
            "autocommit": True,
            "prepare_threshold": 5 if prepare else None,
            "client_encoding": "utf8",
        }
        self._max_connections = max_connections
        self.reconnect_s = reconnect_s
        self._lock = threading.Lock()
        self._pool: ConnectionPool[StoreConnection] | None = None
        self._inherited: list[object] = []
        self.unsettled: list[Unsettled] = []
        _living.add(self)

    def forget_inherited(self) -> None:
        """In a forked child: the sockets are the parent's. They are kept, unused, so that nothing closes them."""
        self._lock = threading.Lock()
        self._inherited.append(self._pool)
        self._pool = None

    def connect(self) -> StoreConnection:
        """A connection outside the pool.

        Raises:
            DatabaseUnavailableError: it cannot be made.
        """
        try:
            connection = StoreConnection.connect(self._address(), **self._arguments)
        except psycopg.OperationalError as error:
            raise DatabaseUnavailableError() from error
        self._configure(connection)
        return connection

    def _address(self) -> str:
        return self._dsn if isinstance(self._dsn, str) else self._dsn()

    def _configure(self, connection: StoreConnection) -> None:
        # The functions lock first and read then: they need a new snapshot for each statement.
        if connection.prepare_threshold is not None:
            connection.execute("SET default_transaction_isolation TO 'read committed'")

    def reconnect(self) -> StoreConnection:
        """A connection outside the pool, tried for `reconnect_s` seconds.

        Raises:
            DatabaseUnavailableError: it could not be made in that time.
        """
        deadline = time.monotonic() + self.reconnect_s
        while True:
            try:
                return self.connect()
            except DatabaseUnavailableError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(_RECONNECT_PAUSE_S)

    @contextmanager
    def connection(self) -> Iterator[StoreConnection]:
        """A connection of the pool, for a block.

        Raises:
            DatabaseUnavailableError: there is none.
        """
        pool = self._open_pool()
        try:
            connection = pool.getconn(_POOL_WAIT_S)
        except PoolTimeout as error:
            raise DatabaseUnavailableError() from error
        try:
            yield connection
        finally:
            pool.putconn(connection)

    def _open_pool(self) -> ConnectionPool[StoreConnection]:
        pool = self._pool
        if pool is None:
            with self._lock:
                pool = self._pool
                if pool is None:
                    pool = self._pool = self._new_pool()
        return pool

    def _new_pool(self) -> ConnectionPool[StoreConnection]:
        self.reconnect().close()  # a server that is away says so here, with its reason, not as a pool's time-out
        return ConnectionPool(
            self._address(),
            connection_class=StoreConnection,
            kwargs=self._arguments,
            configure=self._configure,
            min_size=1,
            max_size=self._max_connections,
            max_idle=60,
            reconnect_timeout=self.reconnect_s,
            num_workers=1,
            open=True,
        )

    def drop_pool(self) -> None:
        """Forget every connection: the next one is made anew."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close(timeout=0)

    close = drop_pool

    def read(self, work: Callable[[StoreConnection], T]) -> T:
        """Run a reading; where its connection is lost, reconnect and run it again.

        Raises:
            DatabaseUnavailableError: the server could not be reached again in time.
            MemkernelError: what the server's refusal means.
        """
        try:
            try:
                with self.connection() as connection:
                    return work(connection)
            except psycopg.Error as error:
                if not is_lost(error):
                    raise
            self.drop_pool()
            with self.reconnect() as connection:
                return work(connection)
        except psycopg.Error as error:
            if is_lost(error):
                raise DatabaseUnavailableError() from error
            raise translate(error) from None

    def change(
        self,
        work: Callable[[StoreConnection], T],
        saved: Callable[[StoreConnection], T | None],
        *,
        memory_store_id: str,
        version_id: str = "",
    ) -> T:
        """Run a mutation. Where its connection is lost, ask whether it was saved; if not, run it once more.

        Both may run on the same ids: a version id is a primary key, so a change happens at most once.

        Args:
            work: the mutation, one transaction.
            saved: looks the mutation up under the store's lock: its result, or None.
            memory_store_id: the store that is changed.
            version_id: the (first) version that the mutation makes.

        Raises:
            DatabaseUnavailableError: `saved` is False: it was never sent; None: the server did not come back in
                time, and the change is kept in `unsettled`.
            MemkernelError: what the server's refusal means.
        """
        try:
            with self.connection() as connection:
                return work(connection)
        except psycopg.Error as error:
            if not is_lost(error):
                raise translate(error) from None
        self.drop_pool()
        try:
            with self.reconnect() as connection:
                result = saved(connection)
                return work(connection) if result is None else result
        except psycopg.Error as error:
            if not is_lost(error):
                raise translate(error) from None
            lost: Exception = error
        except DatabaseUnavailableError as error:
            lost = error
        if version_id:
            self.unsettled.append(Unsettled(memory_store_id, version_id))
        raise DatabaseUnavailableError(saved=None, memory_store_id=memory_store_id, version_id=version_id) from lost


_living: weakref.WeakSet[Connections] = weakref.WeakSet()


def _after_fork() -> None:
    for connections in _living:
        connections.forget_inherited()


os.register_at_fork(after_in_child=_after_fork)
