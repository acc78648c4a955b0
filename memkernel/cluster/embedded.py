"""EmbeddedCluster: the PostgreSQL that nobody had to install (POSTGRES.md 5)."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote
from weakref import WeakSet

from memkernel.cluster import binaries as postgres
from memkernel.cluster import processes
from memkernel.cluster.accounts import server_account
from memkernel.cluster.binaries import Binaries
from memkernel.cluster.filesystem import warnings_for
from memkernel.cluster.initdb import DATABASE, ROLE
from memkernel.cluster.launch import make_place, start_supervisor
from memkernel.cluster.places import (
    PORT,
    USE_ANOTHER_HOME,
    Place,
    check_host,
    existing_majors,
    home_directory,
    places_below,
)
from memkernel.cluster.supervisor import CLIENTS_LOCK, command_line, lock
from memkernel.cluster.trouble import ErrorFile, start_error
from memkernel.errors import BinariesNotFoundError, ClusterError, ServerStartError

_LOOK_EVERY_S = 0.01
_MAX_STARTS = 5  # of supervisors that die without a word, as on a disk so full that they cannot tell their error
# Named, or the user's PG* variables would decide: PGHOSTADDR leads elsewhere, the others break what they were not
# made for (PGCHANNELBINDING=require is what a hosted PostgreSQL tells its users to set).
_AGAINST_VARIABLES = "hostaddr=&options=&channel_binding=disable&target_session_attrs=any&client_encoding=UTF8"


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """What is known of an embedded PostgreSQL without starting it. `clients` is None where the system does not tell."""

    home: Path
    data_directory: Path
    socket_directory: Path
    log: Path
    binaries: Binaries
    running: bool
    postmaster_pid: int | None
    supervised: bool
    clients: int | None
    warnings: tuple[str, ...]
    """Why the home's disk is a poor place for a database."""


class EmbeddedCluster:
    """A PostgreSQL of one's own: started on demand, shared by every kernel of this user, stopped when nobody needs it.

    Args:
        home: where it lies; the user's data directory if None, /var/lib/memkernel for root.
        pg_bin: the directory of initdb and postgres; the first of POSTGRES.md 1.3 if None.
        pg_user: for root only, the account that PostgreSQL runs as; else postgres, else nobody.
        linger_s: how long the server waits for another client after its last one has gone.

    Raises:
        ServerStartError: on Windows, where only a server of one's own can be used.
    """

    def __init__(
        self,
        *,
        home: Path | str | None = None,
        pg_bin: Path | str | None = None,
        pg_user: str | None = None,
        linger_s: float = 60.0,
    ) -> None:
        if sys.platform == "win32":
            raise ServerStartError(
                "the embedded PostgreSQL does not run on Windows",
                hint="Set MEMKERNEL_DSN to a server, for example postgresql://user@localhost/notes.",
            )
        self.home = home_directory(home)
        self._pg_bin, self._pg_user, self._linger_s = pg_bin, pg_user, linger_s
        self._registration: int | None = None
        self._registering = threading.Lock()
        _clusters.add(self)

    @property
    def dsn(self) -> str:
        """The DSN, whether the server runs or not; it holds no secret.

        It names all that the user's PG* variables could redirect.

        Raises:
            ClusterError: there is no PostgreSQL for the data in the home, or none at all.
        """
        return _dsn(self._place())

    def ensure(self, timeout_s: float = 60.0) -> str:
        """The DSN of a server that runs and opens sessions: a running one, or one started now.

        The server runs on while this process lives and has not called `release`. Safe to call again and again, from
        any thread, and after a fork. An interrupt does not hurt: a first start goes on in the background.

        Raises:
            BinariesNotFoundError: there is no PostgreSQL on this machine.
            ServerStartError: it did not start, or not in time.
            ClusterError: the home cannot be used.
        """
        deadline = time.monotonic() + timeout_s
        place = self._place()
        self._register(place, deadline)
        if not processes.is_serving(place):
            self._bring_up(place, deadline)
        elif not processes.is_supervised(place):
            with suppress(ClusterError):  # it serves; that nobody watches over it is no reason to fail
                self._start_supervisor(place)
        return _dsn(place)

    def release(self) -> None:
        """Say that this process needs the server no longer; once nobody does, it stops after a while."""
        with self._registering:
            self._unregister()

    def stop(self, timeout_s: float = 30.0) -> bool:
        """Stop the server, whoever uses it. False when none ran.

        Raises:
            ClusterError: it still runs after `timeout_s`.
        """
        deadline = time.monotonic() + timeout_s
        stopped = [_stop(place, deadline) for place in places_below(self.home)]
        return any(stopped)

    def status(self) -> ClusterStatus:
        """What is there, without starting or making anything.

        Raises:
            ClusterError: there is no PostgreSQL for the data in the home, or none at all.
        """
        place = self._place()
        pid = processes.postmaster_pid(place)
        return ClusterStatus(
            home=self.home,
            data_directory=place.data,
            socket_directory=place.socket_directory,
            log=place.log,
            binaries=self._binaries(place.major),
            running=pid > 0,
            postmaster_pid=pid or None,
            supervised=processes.is_supervised(place),
            clients=processes.client_count(place),
            warnings=warnings_for(place.directory),
        )

    def _place(self) -> Place:
        """The existing data decides which major it is; only a new home takes that of the best binaries."""
        majors = existing_majors(self.home)
        if len(majors) == 1 and self._pg_bin is None:
            return Place(self.home, majors[0])  # a running server is found without running a program
        return Place(self.home, self._binaries(*majors).major)

    def _binaries(self, *majors: int) -> Binaries:
        """The best binaries of one of these majors; of any major if none is given."""
        found = postgres.find(self._pg_bin)
        chosen = next((binaries for binaries in found if not majors or binaries.major in majors), None)
        if chosen:
            return chosen
        raise _binaries_missing(self.home, majors) if majors else BinariesNotFoundError()

    def _start_supervisor(self, place: Place) -> bool:
        account = server_account(self._pg_user)
        return start_supervisor(place, self._binaries(place.major), account, self._linger_s)

    def _bring_up(self, place: Place, deadline: float) -> None:
        check_host(place)
        errors = ErrorFile(place)
        started = 0
        while not processes.is_serving(place):
            supervised = processes.is_supervised(place)
            errors.raise_news()  # a supervisor tells its error before it goes
            if not supervised:
                started += self._start_supervisor(place)
            if time.monotonic() > deadline or started > _MAX_STARTS:
                raise _not_ready(place, errors.log_start)
            time.sleep(_LOOK_EVERY_S)

    def _register(self, place: Place, deadline: float) -> None:
        """Become a client: the server's supervisor sees the lock, and the operating system drops it when we die."""
        with self._registering:
            if self._registration is not None and os.fstat(self._registration).st_nlink == 0:
                self._unregister()  # somebody has deleted the home meanwhile
            if self._registration is None:
                make_place(place, server_account(self._pg_user))
                self._registration = _client_lock(place, deadline)

    def _unregister(self) -> None:
        if self._registration is not None:
            os.close(self._registration)
            self._registration = None

    def after_fork(self) -> None:
        """In a child: the registration is the parent's, and another thread may have held the lock."""
        self._registering = threading.Lock()
        self._unregister()


_clusters: WeakSet[EmbeddedCluster] = WeakSet()


def _after_fork_in_child() -> None:
    for cluster in _clusters:
        cluster.after_fork()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _dsn(place: Place) -> str:
    host = quote(os.fsencode(place.socket_directory), safe="")
    return f"postgresql://{ROLE}@/{DATABASE}?host={host}&port={PORT}&{_AGAINST_VARIABLES}"


def _client_lock(place: Place, deadline: float) -> int:
    import fcntl

    path = place.directory / CLIENTS_LOCK
    try:
        held = lock(str(path), fcntl.LOCK_SH, timeout_s=deadline - time.monotonic())
    except OSError as error:
        raise ClusterError(f"cannot use {path}: {error.strerror}", hint=USE_ANOTHER_HOME) from None
    if held is None:
        raise ServerStartError(f"the server in {place.directory} is stopping, and has not finished", hint="Try again.")
    return held


def _stop(place: Place, deadline: float) -> bool:
    while not (keeper := _keeper(place)):
        if not processes.is_supervised(place):
            return False
        _pause(place, deadline)  # a supervisor that has not said its pid yet
    pid, number = keeper
    with suppress(ProcessLookupError):
        os.kill(pid, number)
    while command_line(pid):
        _pause(place, deadline)
    return True


def _keeper(place: Place) -> tuple[int, int] | None:
    """The process that ends the server when it is sent this signal."""
    if pid := processes.supervisor_pid(place):
        return pid, signal.SIGTERM
    if pid := processes.postmaster_pid(place):
        return pid, signal.SIGINT
    return None


def _pause(place: Place, deadline: float) -> None:
    if time.monotonic() > deadline:
        raise ClusterError(f"the server in {place.directory} has not stopped yet", hint=f"Its log: {place.log}")
    time.sleep(_LOOK_EVERY_S)


def _binaries_missing(home: Path, majors: tuple[int, ...]) -> ClusterError:
    names = " or ".join(map(str, majors))
    return ClusterError(
        f"the data in {home} is PostgreSQL {names}'s, and no PostgreSQL {names} was found to run it",
        hint=f"Install PostgreSQL {names}, or set MEMKERNEL_PG_BIN to its programs, or MEMKERNEL_HOME to a new home.",
    )


def _not_ready(place: Place, log_start: int) -> ServerStartError:
    pid = processes.postmaster_pid(place)
    if not pid:
        return start_error(place, "it did not become ready", log_start=log_start)
    return ServerStartError(
        f"the embedded PostgreSQL (process {pid}) does not answer at {place.socket_directory}",
        hint="`memkernel stop` ends it, and the next use starts it anew.",
    )
