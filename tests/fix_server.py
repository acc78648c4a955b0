"""A real `memkernel serve`, in a process of its own, on a database of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import pytest

from memkernel.api.messages import Request, Response
from memkernel.store import Database
from tests.fix_kernel import kernel_environment
from tests.fix_postgres import end_with_parent

if TYPE_CHECKING:
    import anthropic

PATIENCE_S = 30.0
_IDLE_S = 5.0
"""As long as the SDKs keep an idle connection."""


class MemoryServer:
    """`memkernel serve` on a free port of 127.0.0.1; a context manager that starts and ends it.

    Attributes:
        dsn: its database.
        url: where it answers, the `base_url` of a client.
        told: what it has printed when it began to serve.
    """

    def __init__(self, dsn: str, *arguments: str, **environment: str) -> None:
        """Nothing runs yet.

        Args:
            dsn: a database that has the schema.
            arguments: further ones of the command.
            environment: further variables.
        """
        self.dsn = dsn
        self.url = ""
        self.told: list[str] = []
        self._arguments = arguments
        self._environment = environment
        self._home = tempfile.TemporaryDirectory(prefix="mk-serve-")
        self._process: subprocess.Popen[str] | None = None
        self._clients: list[anthropic.Anthropic] = []
        self._connections: list[HTTPConnection] = []
        self._threads = threading.local()

    def start(self) -> Self:
        """Start it, and wait until it serves. After a `kill` it takes the port of before."""
        self._threads = threading.local()  # connections to the one of before lead nowhere
        port = self.url.rpartition(":")[2] or "0"
        where = [] if {"--uds", "--port", "--host"} & set(self._arguments) else ["--port", port]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-W", "error", "-m", "memkernel", "serve", *where, *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=kernel_environment(Path(self._home.name), MEMKERNEL_DSN=self.dsn, **self._environment),
                cwd=Path(__file__).parents[1],
                start_new_session=True,  # Ctrl-C at the test run ends the tests, and those end the server
                preexec_fn=end_with_parent,  # noqa: PLW1509  # one call of the C library; a killed run leaves no server
            )
        assert self._process.stdout is not None
        self.told = [self._process.stdout.readline().rstrip("\n") for _ in range(3)]
        if not self.told[-1]:
            self.wait()
            raise AssertionError(self.log)
        self.url = self.told[0].partition(" ")[0]
        return self

    @property
    def process(self) -> subprocess.Popen[str]:
        """The server's process."""
        assert self._process is not None, "the server was not started"
        return self._process

    @property
    def log(self) -> str:
        """What it has written to stderr: a line a request, and whatever it complains of."""
        return self._log.read_text()

    @property
    def _log(self) -> Path:
        return Path(self._home.name) / "log"

    def key(self, workspace: str = "default", **options: Any) -> str:
        """A new key's secret; with the first one the server asks for keys."""
        with Database(self.dsn) as database:
            return database.keys.create(workspace, **options)[1]

    def client(self, **options: Any) -> anthropic.Anthropic:
        """The official client for this server, closed with it; the options are those of `anthropic.Anthropic`."""
        import anthropic

        # The way to 127.0.0.1 leads through no proxy, whatever the environment says.
        given: dict[str, Any] = {"base_url": self.url, "api_key": "any", **options}
        if "http_client" not in given:
            given["http_client"] = anthropic.DefaultHttpxClient(trust_env=False)
        self._clients.append(anthropic.Anthropic(**given))
        return self._clients[-1]

    def dispatch(self, request: Request) -> Response:
        """What `Api.dispatch` does, over HTTP; each thread keeps a connection.

        Raises:
            OSError, HTTPException: the server does not answer; the next call connects anew.
        """
        connection = getattr(self._threads, "connection", None)
        if connection is None:
            connection = self._threads.connection = self.connect()
        elif time.monotonic() - self._threads.used > _IDLE_S:
            connection.close()  # and opens with the request
        self._threads.used = time.monotonic()
        target = f"{request.path}?{request.query}" if request.query else request.path
        try:
            connection.request(request.method, target, request.body, dict(request.headers))
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, HTTPException):
            connection.close()
            raise
        return Response(answer.status, {name.lower(): value for name, value in answer.getheaders()}, body)

    def connect(self) -> HTTPConnection:
        """A bare HTTP connection to it, closed with it."""
        where = urlsplit(self.url)
        self._connections.append(HTTPConnection(where.hostname or "", where.port, timeout=PATIENCE_S))
        return self._connections[-1]

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Signal it, and wait until it is gone; its exit status."""
        if self.process.poll() is None:
            os.kill(self.process.pid, how)
        return self.wait()

    def wait(self) -> int:
        """Wait until it is gone; its exit status."""
        status = self.process.wait(PATIENCE_S)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return status

    def kill(self) -> None:
        """End it as a power cut would."""
        self.end(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in (*self._clients, *self._connections):
            client.close()
        try:
            if self._process is not None:
                self.end()
        finally:
            if self._process is not None and self._process.poll() is None:
                self.kill()
            self._home.cleanup()


Serve = Callable[..., MemoryServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers: `serve(dsn, "--strict-beta")`; they end with the test."""
    with ExitStack() as running:

        def start(dsn: str, *arguments: str, **environment: str) -> MemoryServer:
            return running.enter_context(MemoryServer(dsn, *arguments, **environment))

        yield start


@pytest.fixture
def memory_server(serve: Serve, dsn: str) -> MemoryServer:
    """A server on the test's database, which holds no key."""
    return serve(dsn)
