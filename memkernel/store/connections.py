"""Connections to PostgreSQL that survive a fork, a lost server and an interrupted call."""

from __future__ import annotations

import atexit
import os
import select
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from typing import Any, Final

import psycopg
from psycopg import errors, pq

from memkernel.cluster import environment
from memkernel.errors import ClusterError, DatabaseUnavailableError
from memkernel.store.refusals import read_dsn, unreachable, unreadable
from memkernel.store.statements import Parameter, Statement, encode

_BINARY: Final = 1
# A member of an enum costs a fifth of a microsecond each time.
_FATAL_ERROR: Final = pq.ExecStatus.FATAL_ERROR
_ACTIVE: Final = pq.TransactionStatus.ACTIVE
_IDLE: Final = pq.TransactionStatus.IDLE
_IDLE_S: Final = 60.0
_SPIN_NS: Final = 100_000
_spinning: Final = threading.Lock()
_CANCEL_S: Final = 5.0
_SOON_S: Final = 0.05
_CONNECT_S: Final = 5
_RECONNECT_PAUSE_S: Final = 0.1


class StoreConnection(psycopg.Connection[Any]):
    """A connection that runs `Statement`s.

    Attributes:
        prepares: whether statements may be prepared; not behind a pooler that hands each transaction to another
            server connection.
        workspace_id: the one that PostgreSQL keeps it to; None: it is the owner's.
        generation: the pool's when the connection was made; after a loss of the server it is another.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.prepares = True
        self.workspace_id: str | None = None
        self.generation: object = None
        self._prepared_names: set[bytes] = set()
        self._wait_readable = _waiter(self.pgconn.socket, None)
        self._readable_now = _waiter(self.pgconn.socket, 0)
        self._readable_soon = _waiter(self.pgconn.socket, _SOON_S)

    def run(self, statement: Statement, *parameters: Parameter) -> pq.abc.PGresult:
        """Run a statement; its result has binary columns. Ctrl-C cancels it and leaves the connection usable.

        Raises:
            psycopg.Error: what the server answered, or that it is gone.
        """
        values = [encode(parameter) for parameter in parameters]
        formats = [_BINARY] * len(values)
        if not (statement.name and self.prepares):
            return self._answer(self.pgconn.send_query_params, statement.sql, values, None, formats, _BINARY)
        if statement.name not in self._prepared_names:
            self._answer(self.pgconn.send_prepare, statement.name, statement.sql)
            self._prepared_names.add(statement.name)
        return self._answer(self.pgconn.send_query_prepared, statement.name, values, formats, _BINARY)

    def is_gone(self) -> bool:
        """Whether the server has hung up meanwhile: then nothing more can be sent to it."""
        try:
            while self._readable_now():  # first its farewell, then the end
                self.pgconn.consume_input()
                if self.closed:
                    return True
        except psycopg.OperationalError:
            return True
        return False

    def _answer(self, send: Callable[..., None], *arguments: object) -> pq.abc.PGresult:
        # psycopg's own wait does the same for 25 us more.
        try:
            send(*arguments)
            result = self._last_result()
        except BaseException:
            self._give_up()
            raise
        if result is None:
            raise psycopg.OperationalError("the server sent no answer")
        if result.status == _FATAL_ERROR:
            raise errors.error_from_result(result)
        return result

    def _last_result(self) -> pq.abc.PGresult | None:
        """Send what was queued and read the answer to its end; a signal handler's exception comes through."""
        pgconn, last = self.pgconn, None
        while pgconn.flush():
            select.select([pgconn.socket], [pgconn.socket], [])
            pgconn.consume_input()
        while True:
            while pgconn.is_busy():  # libpq would wait inside get_result, holding the interpreter's lock
                self._wait()
                pgconn.consume_input()
            result = pgconn.get_result()
            if result is None:
                return last
            last = result

    def _wait(self) -> None:
        """Wait until there is something to read; one thread of the process spins for a moment before it sleeps.

        A CPU that has gone to sleep takes longer to wake than most answers take to come: between two calls of the
        SDK, a memory is read in 95 us instead of 160.
        """
        if _spinning.acquire(blocking=False):
            try:
                until = time.perf_counter_ns() + _SPIN_NS
                while time.perf_counter_ns() < until:
                    if self._readable_now():
                        return
            finally:
                _spinning.release()
        self._wait_readable()

    def _give_up(self) -> None:
        """Cancel what runs and read its end; a connection where that fails is closed."""
        if self.pgconn.transaction_status != _ACTIVE:
            return
        deadline = time.monotonic() + _CANCEL_S
        try:
            self.cancel_safe(timeout=_CANCEL_S)
            while not self._ends_soon():
                if time.monotonic() > deadline:
                    raise TimeoutError
                self.cancel_safe(timeout=_CANCEL_S)  # a backend that had not begun yet has let the first one pass
        except Exception:  # what is raised is the interrupt that led here
            self.pgconn.finish()
        except BaseException:
            self.pgconn.finish()
            raise

    def _ends_soon(self) -> bool:
        """Whether what runs has come to its end, now or within a moment."""
        while True:
            while self.pgconn.is_busy():
                self.pgconn.flush()
                if not self._readable_soon():
                    return False
                self.pgconn.consume_input()
            if self.pgconn.get_result() is None:
                return True


def _waiter(socket: int, timeout_s: float | None) -> Callable[[], object]:
    """A function that waits until there is something to read; what it returns is false after the time-out."""
    if not hasattr(select, "poll"):  # Windows
        return lambda: select.select([socket], [], [], timeout_s)[0]
    events = select.poll()
    events.register(socket, select.POLLIN)
    return partial(events.poll, None if timeout_s is None else timeout_s * 1_000)


class Pool:
    """At most so many connections; the one that was used last is used next.

    psycopg_pool hands them out in turn, through a queue and a worker thread, for 15 us a time; here that
    is a quarter of a reading, and a backend that has just been at work is still on its CPU.

    `dsn` may be a function: it is asked whenever a connection is made, and may start the server. `first` sees the
    first connection before any other use.
    """

    def __init__(
        self,
        dsn: str | Callable[[], str],
        *,
        prepare: bool,
        max_connections: int,
        first: Callable[[StoreConnection], None],
    ) -> None:
        self._dsn = dsn
        self._prepare = prepare
        self._first = first
        self._opened = False
        self._max_connections = max_connections
        self._inherited: list[object] = []
        self._reset()
        _pools.add(self)

    def _reset(self) -> None:
        self._idle: deque[tuple[StoreConnection, float]] = deque()
        # A semaphore in C: threading's costs 3 us more at each use.
        self._free: SimpleQueue[None] = SimpleQueue()
        for _ in range(self._max_connections):
            self._free.put(None)
        self._generation = object()

    def forget_inherited(self) -> None:
        """In a forked child: the sockets are the parent's. They are kept, unused, so that nothing closes them."""
        self._inherited.append(self._idle)
        self._reset()

    def connect(self) -> StoreConnection:
        """A connection outside the pool.

        Raises:
            DatabaseUnavailableError: it cannot be made.
            InvalidInputError: the DSN cannot be read.
        """
        dsn = self._dsn if isinstance(self._dsn, str) else self._dsn()
        try:
            connection = self._connect(dsn)
        except psycopg.OperationalError as error:
            raise unreachable(dsn, error, reached=self._opened) from error
        except psycopg.ProgrammingError:  # it quotes what it cannot read, which may be the password
            raise unreadable() from None
        connection.prepares, connection.generation = self._prepare, self._generation
        if self._prepare:
            _configure(connection)
        self._see_first(connection)
        return connection

    def _connect(self, dsn: str) -> StoreConnection:
        arguments = read_dsn(dsn)
        # The embedded server is this one and no other, whatever the person's variables say.
        with environment.without([] if dsn is self._dsn else _variables()):
            return StoreConnection.connect(
                dsn,
                connect_timeout=arguments.get("connect_timeout") or _CONNECT_S,
                autocommit=True,
                prepare_threshold=None,  # psycopg's own preparing would now and then deallocate ours
                client_encoding="utf8",
            )

    def _see_first(self, connection: StoreConnection) -> None:
        if not self._opened:
            try:
                self._first(connection)
            except BaseException:
                connection.close()
                raise
            self._opened = True

    def reconnect(self, patience_s: float) -> StoreConnection:
        """A connection outside the pool to a server that may be starting.

        Raises:
            DatabaseUnavailableError: it could not be made in that time, or is refused.
        """
        deadline = time.monotonic() + patience_s
        while True:
            try:
                return self.connect()
            except DatabaseUnavailableError as error:
                if error.refused or time.monotonic() > deadline:
                    raise
            except ClusterError as error:
                if time.monotonic() > deadline:
                    raise DatabaseUnavailableError() from error
            time.sleep(_RECONNECT_PAUSE_S)

    @contextmanager
    def connection(self) -> Generator[StoreConnection]:
        """A connection, for a block.

        Raises:
            DatabaseUnavailableError: there is none.
        """
        connection = self.take()
        try:
            yield connection
        finally:
            self.give_back(connection)

    def take(self) -> StoreConnection:
        """A connection, to be given back.

        Raises:
            DatabaseUnavailableError: there is none.
        """
        self._free.get()
        try:
            return self._pop() or self.connect()
        except BaseException:
            self._free.put(None)
            raise

    def give_back(self, connection: StoreConnection) -> None:
        """Take a connection back; one that is not idle, or from before the server was lost, is closed."""
        try:
            self._push(connection)
        finally:
            self._free.put(None)

    def _pop(self) -> StoreConnection | None:
        try:
            return self._idle.pop()[0]
        except IndexError:
            return None

    def _push(self, connection: StoreConnection) -> None:
        if connection.pgconn.transaction_status != _IDLE or connection.generation is not self._generation:
            connection.close()
            return
        now = time.monotonic()
        self._idle.append((connection, now))
        if len(self._idle) > 1 and self._idle[0][1] < now - _IDLE_S:
            self._idle.popleft()[0].close()

    def drop_all(self) -> None:
        """Close every connection, those at work as soon as they come back: the next one is made anew."""
        self._generation = object()
        while (connection := self._pop()) is not None:
            connection.close()


def _variables() -> list[str]:
    """The environment variables that libpq reads."""
    options = pq.Conninfo.get_defaults()
    return [option.envvar.decode() for option in options if option.envvar]


def _configure(connection: StoreConnection) -> None:
    # The functions lock first and read then: they need a new snapshot for each statement.
    connection.execute("SET default_transaction_isolation TO 'read committed'")
    # A plan that was made while a table was small would go on reading all of it when it has grown.
    connection.execute("SET enable_seqscan TO off")
    connection.execute("SET search_path TO pg_catalog")


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def _after_fork() -> None:
    for pool in _pools:
        pool.forget_inherited()


def _at_exit() -> None:
    for pool in _pools:
        pool.drop_all()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
