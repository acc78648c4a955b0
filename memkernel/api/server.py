"""uvicorn around the rim, on a thread: in the foreground for `memkernel serve`, in a kernel for `%memory serve`."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import stat
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import uvicorn

from memkernel.api.app import App, body_limit
from memkernel.api.auth import KeyAuthenticator, Reach
from memkernel.api.dispatch import Api, Strictness
from memkernel.api.protocol import Protocol
from memkernel.errors import ServeError
from memkernel.models import Limits
from memkernel.store import Database

_START_S: Final = 20.0
_ENDING_S: Final = 10
_KEEP_ALIVE_S: Final = 30
"""Longer than the SDKs keep an idle connection: whose end would cross a request otherwise."""
_HEAD_BYTES: Final = 32 * 1024
_BACKLOG: Final = 128
_ELSEWHERE: Final = "`--port N` takes another one; `--port 0` takes one that is free."
_HERE: Final = "`--host` takes a name or an address of this machine."


@dataclass(frozen=True, slots=True)
class BoundSocket:
    """A socket that is bound, and does not listen yet; `url` is what a client takes as its `base_url`."""

    listener: socket.socket
    url: str
    reach: Reach
    path: Path | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def listen(self) -> None:
        """Let clients in.

        Raises:
            ServeError: another server listens there since this one is bound.
        """
        try:
            self.listener.listen(_BACKLOG)
        except OSError as error:
            raise ServeError(f"{self.path or self.url} cannot be used: {_reason(error)}", hint=_ELSEWHERE) from None

    def close(self) -> None:
        """Close it, and remove a unix socket's file."""
        self.listener.close()
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def told(self, line: str, *, has_keys: bool) -> list[str]:
        """What a person wants to know: where what is served, for whom, and how it is used.

        Args:
            line: what a person calls the database.
            has_keys: whether it holds a key, so that one is asked for.
        """
        asked = "A key is asked for: `memkernel keys create` makes one."
        passes = "No key is asked for: on this machine any api_key passes."
        key = "mk_…" if has_keys else "any"
        use = f'client = anthropic.Anthropic(base_url="{self._visited}", api_key="{key}")'
        if self.path is not None:
            use = f'curl --unix-socket {self.path} -H "x-api-key: {key}" {self.url}/v1/memory_stores'
        return [f"{self.path or self.url} serves the Memory API of {line}", asked if has_keys else passes, f"  {use}"]

    @property
    def _visited(self) -> str:
        """The URL from elsewhere, too: an address that means all of a machine's is none to go to."""
        host, port = self.listener.getsockname()[:2] if self.path is None else ("", 0)
        return f"http://{socket.gethostname()}:{port}" if host in ("0.0.0.0", "::") else self.url


def open_port(host: str, port: int) -> BoundSocket:
    """An address to listen on; port 0 takes a free one.

    Raises:
        ServeError: the address is none of this machine's, or the port is taken.
    """
    family, address = _resolve(host)[0]
    # Only where the protocol is named, asyncio sets TCP_NODELAY; without that an answer's body waits for 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address[0], port, *address[2:]))
    except (OSError, OverflowError) as error:
        listener.close()
        foreign = isinstance(error, OSError) and error.errno == errno.EADDRNOTAVAIL
        hint = _HERE if foreign else _ELSEWHERE
        raise ServeError(f"port {port} of {host} cannot be used: {_reason(error)}", hint=hint) from None
    name = f"[{host}]" if ":" in host else host
    reach = "loopback" if ipaddress.ip_address(address[0]).is_loopback else "network"
    return BoundSocket(listener, f"http://{name}:{listener.getsockname()[1]}", reach)


def open_unix(path: Path) -> BoundSocket:
    """A unix socket that only its owner can open. One that a killed server left is replaced.

    Raises:
        ServeError: there is something else, or a server that listens.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_left(path)
        listener.bind(str(path))
        path.chmod(0o600)
    except OSError as error:
        listener.close()
        hint = "`--uds PATH` takes another one."
        raise ServeError(f"the unix socket {path} cannot be used: {_reason(error)}", hint=hint) from None
    return BoundSocket(listener, "http://localhost", "unix", path)


class Serving:
    """The Memory API of a database, at work on a thread of its own until `stop`, or until the process ends."""

    def __init__(
        self, database: Database, line: str, bound: BoundSocket, *, limits: Limits, strictness: Strictness | None = None
    ) -> None:
        """Nothing is served yet.

        Args:
            database: what is served.
            line: what a person calls it.
            bound: where; it is closed at the end.
            limits: the database's.
            strictness: lenient by default.

        Raises:
            DatabaseUnavailableError: the database is not available.
            WorkspaceRoleError: the role that keeps workspaces apart cannot be made.
            ServeError: the network reaches it, and there is no key.
        """
        database.in_workspace(database.workspace_id).open()
        if bound.reach == "network" and not database.keys.any():
            hint = "`memkernel keys create` makes one; without --host only this machine is served."
            raise ServeError("without a key nothing is served beyond this machine", hint=hint)
        api = Api(database, KeyAuthenticator(database, reach=bound.reach), strictness)
        self._app = App(api.dispatch, database.ping, body_bytes=body_limit(limits))
        self._database, self._line, self._bound = database, line, bound
        self._server = uvicorn.Server(_config(self._app))
        self._thread = threading.Thread(
            target=self._server.run, args=([bound.listener],), name="memkernel-serve", daemon=True
        )

    @property
    def url(self) -> str:
        """What a client takes as its `base_url`."""
        return self._bound.url

    def told(self) -> list[str]:
        """What a person wants to know: where what is served, for whom, and how it is used."""
        return self._bound.told(self._line, has_keys=self._database.keys.any())

    def start(self) -> None:
        """Begin to serve.

        Raises:
            ServeError: the server did not come up within 20 s.
        """
        self._bound.listen()
        self._thread.start()
        deadline = time.monotonic() + _START_S
        while not self._server.started:
            if time.monotonic() > deadline or not self._thread.is_alive():
                raise ServeError(f"the server at {self.url} did not start", hint="Try it once more.")
            time.sleep(0.005)

    @property
    def is_alive(self) -> bool:
        """Whether it serves."""
        return self._thread.is_alive()

    def end_soon(self) -> None:
        """Take no further request; those in flight end within 10 s, or at once where this is asked for again.

        A signal's handler may call it.
        """
        if self._server.should_exit:
            for task in tuple(self._server.server_state.tasks):
                task.get_loop().call_soon_threadsafe(task.cancel)
        self._server.should_exit = True

    def wait(self) -> bool:
        """Wait for the end; whether every request was answered before it."""
        self._thread.join()
        self._bound.close()
        return self._app.at_work == 0

    def stop(self) -> bool:
        """`end_soon` and `wait`."""
        self.end_soon()
        return self.wait()


def _config(app: App) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        lifespan="off",
        ws="none",
        http=Protocol,  # httptools is faster where it is installed, but takes a head of any length
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_ENDING_S,
        timeout_keep_alive=_KEEP_ALIVE_S,
        h11_max_incomplete_event_size=_HEAD_BYTES,
    )


def _resolve(host: str) -> list[tuple[socket.AddressFamily, tuple[Any, ...]]]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise ServeError(f"{host!r} cannot be served: {_reason(error)}", hint=_HERE) from None
    return [(family, address) for family, _, _, _, address in found]


def _remove_left(path: Path) -> None:
    """Remove a socket that nobody listens on any more.

    Raises:
        OSError: there is something else, or somebody listens.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise FileExistsError(errno.EEXIST, "a file of this name is there")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as visitor:
        try:
            visitor.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
        else:
            raise OSError(errno.EADDRINUSE, "a server listens there")


def _reason(error: Exception) -> str:
    """What the operating system says, small at its beginning; `AF_UNIX` stays as it is."""
    said = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return said if said[1:2].isupper() else said[:1].lower() + said[1:]
