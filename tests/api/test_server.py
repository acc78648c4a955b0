"""`memkernel serve` as a person starts and ends it: what it tells, what it refuses, what it leaves behind."""

from __future__ import annotations

import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path

import anthropic
import httpx2
import psycopg
import pytest

from memkernel.api.server import open_port
from memkernel.store import Database
from tests.api.calls import Caller, at
from tests.api.held import held
from tests.fix_kernel import kernel_environment
from tests.fix_postgres import PostgresServer
from tests.fix_server import MemoryServer, Serve
from tests.runtime.processes import wait_until

CREDENTIAL = {"x-api-key": "any"}


@pytest.fixture
def over_http(memory_server: MemoryServer) -> Caller:
    """Calls the API over HTTP."""
    return Caller(memory_server.dispatch, CREDENTIAL)


@pytest.fixture
def refused(tmp_path: Path, dsn: str) -> Callable[..., list[str]]:
    """What `memkernel serve` says on stderr where it cannot serve; it ends with 1."""

    def refused(*arguments: str, dsn: str = dsn) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-m", "memkernel", "serve", *arguments],
            capture_output=True,
            text=True,
            env=kernel_environment(tmp_path, MEMKERNEL_DSN=dsn),
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stdout) == (1, ""), done
        return done.stderr.splitlines()

    return refused


# -- what it tells ---------------------------------------------------------------------------------


def test_it_tells_where_what_and_how(memory_server: MemoryServer) -> None:
    first, second, third = memory_server.told
    assert first.startswith(f"{memory_server.url} serves the Memory API of PostgreSQL at ")
    assert second == "No key is asked for: on this machine any api_key passes."
    assert third == f'  client = anthropic.Anthropic(base_url="{memory_server.url}", api_key="any")'
    assert memory_server.url.startswith("http://127.0.0.1:")


def test_the_example_of_a_server_on_all_addresses_is_no_address_that_means_all() -> None:
    with open_port("0.0.0.0", 0) as bound:
        first, _, example = bound.told("a database", has_keys=True)
    port = first.partition(" ")[0].rpartition(":")[2]
    assert example == f'  client = anthropic.Anthropic(base_url="http://{socket.gethostname()}:{port}", api_key="mk_…")'


def test_with_a_key_it_asks_for_keys_and_says_so(dsn: str, serve: Serve) -> None:
    """F.99."""
    with Database(dsn) as database:
        secret = database.keys.create("default")[1]
    server = serve(dsn)
    assert server.told[1] == "A key is asked for: `memkernel keys create` makes one."
    assert server.told[2].endswith('api_key="mk_…")')
    assert list(server.client(api_key=secret).beta.memory_stores.list()) == []
    with pytest.raises(anthropic.AuthenticationError):
        server.client(api_key="mk_other").beta.memory_stores.list()


def test_its_answers_do_not_wait_for_more_to_send() -> None:
    """asyncio turns Nagle's algorithm off only where the protocol is named: 40 ms a request, otherwise."""
    with open_port("127.0.0.1", 0) as bound:
        assert bound.listener.proto == socket.IPPROTO_TCP


def test_a_password_in_the_dsn_is_told_to_nobody(dsn: str, serve: Serve) -> None:
    server = serve(dsn.replace("postgres@", "postgres:hunter2@"))
    assert "hunter2" not in "".join([*server.told, server.log])


def test_strictness_is_the_commands_to_choose(dsn: str, serve: Serve) -> None:
    """F.103."""
    server = serve(dsn, "--strict-beta", "--strict-full-limit")
    call = Caller(server.dispatch, CREDENTIAL)
    assert "anthropic-beta" in call("GET", "/v1/memory_stores").refusal("anthropic-beta")
    strict = Caller(server.dispatch, {**CREDENTIAL, "anthropic-beta": "agent-memory-2026-07-22"})
    assert strict("GET", f"{at(strict.store())}/memories", view="full", limit=50).refusal("limit")


def test_the_limits_are_the_environments(dsn: str, serve: Serve) -> None:
    server = serve(dsn, MEMKERNEL_MAX_CONTENT_BYTES="10")
    call = Caller(server.dispatch, CREDENTIAL)
    store = call.store()
    assert call("POST", f"{at(store)}/memories", {"path": "/a.md", "content": "a" * 11}).refusal("content")
    assert call("POST", f"{at(store)}/memories", body=b" " * 200_000).error(413, "request_too_large")


# -- how it ends -----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_0_and_nothing_to_complain_of(memory_server: MemoryServer, how: signal.Signals) -> None:
    assert list(memory_server.client().beta.memory_stores.list()) == []
    assert memory_server.end(how) == 0
    assert [line.split()[1] for line in memory_server.log.splitlines()] == ["INFO"]


def test_requests_in_flight_end_before_it_does(memory_server: MemoryServer, over_http: Caller) -> None:
    store = over_http.store()
    with ThreadPoolExecutor() as threads:
        with held(memory_server.dsn, store) as waiting:
            writing = threads.submit(over_http.memory, store)
            wait_until(waiting)
            ending = threads.submit(memory_server.end)
            wait_until(lambda: not _answers(memory_server))
            assert not writing.done()
        assert writing.result(30)["path"] == "/a.md"
        assert ending.result(30) == 0


def test_a_request_that_does_not_end_keeps_it_for_ten_seconds_at_most(
    memory_server: MemoryServer, over_http: Caller
) -> None:
    store = over_http.store()
    with ThreadPoolExecutor() as threads, held(memory_server.dsn, store) as waiting:
        writing = threads.submit(over_http, "POST", f"{at(store)}/memories", {"path": "/a.md", "content": "text"})
        wait_until(waiting)
        assert memory_server.end() == 0
        answer = writing.result(30)
        assert "it is unknown whether this was saved" in answer.error(503, "api_error")["message"]
        assert answer.headers["x-should-retry"] == "false"
    assert "Cancel 1 running task" in memory_server.log
    assert "Traceback" not in memory_server.log


def test_a_second_ctrl_c_does_not_wait_for_it(memory_server: MemoryServer, over_http: Caller) -> None:
    store = over_http.store()
    with ThreadPoolExecutor() as threads, held(memory_server.dsn, store) as waiting:
        writing = threads.submit(over_http, "POST", f"{at(store)}/memories", {"path": "/a.md", "content": "text"})
        wait_until(waiting)
        memory_server.process.send_signal(signal.SIGINT)
        wait_until(lambda: not _answers(memory_server))
        assert memory_server.end(signal.SIGINT) == 0
        assert writing.result(30).error(503, "api_error")
    assert all(" INFO " in line for line in memory_server.log.splitlines())


def _answers(server: MemoryServer) -> bool:
    """Whether it still takes a new connection."""
    connection = server.connect()
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().read() != b""
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


# -- a unix socket ---------------------------------------------------------------------------------


@pytest.fixture
def socket_path() -> Iterator[Path]:
    """Short enough for a socket's path, which has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="mk-uds-") as name:
        yield Path(name) / "api.sock"


def test_a_unix_socket_is_its_owners_alone_and_goes_with_the_server(dsn: str, serve: Serve, socket_path: Path) -> None:
    server = serve(dsn, "--uds", str(socket_path))
    assert server.told[0].startswith(f"{socket_path} serves the Memory API of ")
    assert server.told[2].startswith(f"  curl --unix-socket {socket_path} ")
    assert stat.S_IMODE(socket_path.stat().st_mode) == 0o600
    with httpx2.Client(transport=httpx2.HTTPTransport(uds=str(socket_path))) as visitor:
        client = anthropic.Anthropic(base_url="http://any.name", api_key="any", http_client=visitor)
        assert client.beta.memory_stores.create(name="Notes").name == "Notes"
    assert server.end() == 0
    assert not socket_path.exists()


def test_what_a_killed_server_left_is_replaced_and_nothing_else_is(
    dsn: str, serve: Serve, socket_path: Path, refused: Callable[..., list[str]]
) -> None:
    server = serve(dsn, "--uds", str(socket_path))
    assert refused("--uds", str(socket_path)) == [
        f"ServeError: the unix socket {socket_path} cannot be used: a server listens there",
        "`--uds PATH` takes another one.",
    ]
    server.kill()
    assert socket_path.exists()
    server.start()
    assert server.end() == 0
    socket_path.write_text("somebody's")
    assert "a file of this name is there" in refused("--uds", str(socket_path))[0]
    assert socket_path.read_text() == "somebody's"


# -- what it refuses -------------------------------------------------------------------------------


def test_a_port_that_is_taken_is_told_in_two_lines(refused: Callable[..., list[str]]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert refused("--port", str(port)) == [
            f"ServeError: port {port} of 127.0.0.1 cannot be used: address already in use",
            "`--port N` takes another one; `--port 0` takes one that is free.",
        ]


@pytest.mark.parametrize(
    "arguments", [("--port", "70000"), ("--host", "no.such.host.invalid"), ("--uds", "/no/such/directory/api.sock")]
)
def test_an_address_that_is_none_is_told_in_two_lines(
    refused: Callable[..., list[str]], arguments: tuple[str, str]
) -> None:
    first, second = refused(*arguments)
    assert first.startswith("ServeError: ")
    assert arguments[1] in first
    assert second


def test_a_path_that_is_too_long_for_a_socket_is_told_as_it_is(refused: Callable[..., list[str]]) -> None:
    path = f"/tmp/{'x' * 200}"
    assert refused("--uds", path)[0] == f"ServeError: the unix socket {path} cannot be used: AF_UNIX path too long"


def test_beyond_this_machine_nothing_is_served_without_a_key(refused: Callable[..., list[str]]) -> None:
    assert refused("--host", "0.0.0.0", "--port", "0") == [
        "ServeError: without a key nothing is served beyond this machine",
        "`memkernel keys create` makes one; without --host only this machine is served.",
    ]


def test_a_database_that_is_away_is_told_in_two_lines(refused: Callable[..., list[str]], tmp_path: Path) -> None:
    first, second = refused("--port", "0", dsn=f"postgresql://ann:hunter2@/notes?host={tmp_path}")
    assert first.startswith("DatabaseUnavailableError: ")
    assert "hunter2" not in first + second


def test_a_role_that_cannot_be_made_is_told_with_the_statements_that_make_it(
    refused: Callable[..., list[str]], server: PostgresServer, dsn: str, serve: Serve
) -> None:
    serve(dsn).end()  # the role is there from now on
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute("CREATE ROLE plain LOGIN")
        try:
            admin.execute("ALTER SCHEMA memkernel OWNER TO plain")
            for (table,) in admin.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'memkernel'").fetchall():
                admin.execute(f"ALTER TABLE memkernel.{table} OWNER TO plain".encode())
            told = refused("--port", "0", dsn=dsn.replace("postgres@", "plain@"))
        finally:
            admin.execute("REASSIGN OWNED BY plain TO postgres")
            admin.execute("DROP ROLE plain")
    assert told[0].startswith("WorkspaceRoleError: plain may not become the role memkernel_api")
    assert 'GRANT memkernel_api TO "plain";' in " ".join(told[1:])
