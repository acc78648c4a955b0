"""`memkernel serve` with many clients, slow ones, huge ones, and ones that speak no HTTP."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Final
from urllib.parse import urlsplit

import anthropic
import pytest

from memkernel.api.app import body_limit
from memkernel.models import Limits
from memkernel.store import Database
from tests.api.calls import Answer, Caller, at
from tests.api.held import held
from tests.fix_postgres import PostgresServer
from tests.fix_server import MemoryServer
from tests.runtime.processes import wait_until

CREDENTIAL = {"x-api-key": "any"}
TOO_MUCH = body_limit(Limits()) + 1


@pytest.fixture(scope="module")
def shared(servers: Callable[[int], PostgresServer]) -> Iterator[MemoryServer]:
    """A server for all tests that leave it as it was."""
    postgres = servers(18)
    name = postgres.create_migrated_database()
    with MemoryServer(postgres.dsn(name)) as server:
        yield server
    postgres.drop_database(name)


@pytest.fixture
def call(shared: MemoryServer) -> Caller:
    """Calls the API on it."""
    return Caller(shared.dispatch, CREDENTIAL)


@contextmanager
def wire(server: MemoryServer) -> Generator[socket.socket]:
    """A bare connection."""
    where = urlsplit(server.url)
    with socket.create_connection((where.hostname or "", where.port or 0), timeout=30) as connection:
        yield connection


def answer_to(server: MemoryServer, sent: bytes) -> bytes:
    """All that comes back until the server hangs up."""
    answer = bytearray()
    with wire(server) as connection, suppress(ConnectionError):  # it may hang up while too much is still sent
        connection.sendall(sent)
        while piece := connection.recv(65536):
            answer += piece
    return bytes(answer)


def parsed(answer: bytes) -> Answer:
    """An answer with its JSON."""
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return Answer(int(first.split()[1]), headers, json.loads(body))


# -- slow and huge ---------------------------------------------------------------------------------


def test_slow_bodies_do_not_stop_the_others(shared: MemoryServer, call: Caller) -> None:
    """Forty bodies that come a byte a second, more than there are threads: all the others are served."""
    head = b"POST /v1/memory_stores HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: any\r\nContent-Length: 16\r\n\r\n"
    body = b'{"name":"slowly"}'[:16]
    over = threading.Event()
    with ExitStack() as open_ones:
        slow = [open_ones.enter_context(wire(shared)) for _ in range(40)]
        for connection in slow:
            connection.sendall(head)

        def drip() -> None:
            for byte in body[:-1]:
                for connection in slow:
                    connection.sendall(bytes([byte]))
                if over.wait(1.0):
                    return

        dripping = threading.Thread(target=drip)
        dripping.start()
        store = call.store()
        for number in range(30):
            call.memory(store, f"/{number}.md")
        assert len(call.all(f"{at(store)}/memories")) == 30
        over.set()
        dripping.join()
    assert "slowly" not in {each["name"] for each in call.all("/v1/memory_stores")}


def test_huge_bodies_do_not_stop_the_others(shared: MemoryServer, call: Caller) -> None:
    store = call.store()
    refused = list[int]()

    def send_much() -> None:
        connection = shared.connect()
        chunks = (b"a" * 65536 for _ in range(160))  # 10 MiB
        connection.request("POST", f"{at(store)}/memories", chunks, CREDENTIAL, encode_chunked=True)
        refused.append(connection.getresponse().status)
        connection.close()

    with ThreadPoolExecutor(8) as threads:
        sending = [threads.submit(send_much) for _ in range(8)]
        for number in range(30):
            call.memory(store, f"/{number}.md")
        for one in sending:
            one.result()
    assert refused == [413] * 8


def test_a_huge_body_is_told_to_the_official_client(shared: MemoryServer, call: Caller) -> None:
    client = shared.client(max_retries=0)
    with pytest.raises(anthropic.APIStatusError) as refused:
        client.beta.memory_stores.memories.create(call.store(), path="/a.md", content="a" * 5_000_000)
    assert refused.value.status_code == 413
    assert refused.value.request_id


def test_a_declared_length_is_refused_without_a_100_continue(shared: MemoryServer) -> None:
    lines = [
        "POST /v1/memory_stores HTTP/1.1",
        "Host: localhost",
        f"Content-Length: {TOO_MUCH}",
        "Expect: 100-continue",
    ]
    answer = parsed(answer_to(shared, "\r\n".join([*lines, "", ""]).encode()))
    assert answer.error(413, "request_too_large")
    assert answer.headers["connection"] == "close"


# -- many ------------------------------------------------------------------------------------------


def test_sixteen_requests_go_on_while_one_waits_for_a_lock(shared: MemoryServer, call: Caller) -> None:
    locked, store = call.store("Locked"), call.store("Free")
    with ThreadPoolExecutor(17) as threads:
        with held(shared.dsn, locked) as waiting:
            blocked = threads.submit(call.memory, locked)
            wait_until(waiting)
            made = list(threads.map(partial(call.memory, store), (f"/{number}.md" for number in range(64))))
            assert len({memory["id"] for memory in made}) == 64
            assert not blocked.done()
        assert blocked.result(30)["path"] == "/a.md"


def test_a_store_that_is_locked_for_long_does_not_stop_the_others(shared: MemoryServer, call: Caller) -> None:
    """More changes and sessions wait for it than there are threads; a percent-encoded id is the same store."""
    locked, store = call.store("Locked"), call.store("Free")
    attaching = {
        "agent": "a",
        "environment_id": "e",
        "resources": [{"type": "memory_store", "memory_store_id": locked}],
    }
    places = [f"/v1/memory_stores/{each}/memories" for each in (locked, locked.replace("_", "%5F"))]
    with ThreadPoolExecutor(48) as threads:
        with held(shared.dsn, locked) as waiting:
            blocked = [
                *(threads.submit(call, "POST", places[n % 2], {"path": f"/{n}", "content": ""}) for n in range(24)),
                *(threads.submit(call, "POST", "/v1/sessions", attaching) for _ in range(24)),
            ]
            wait_until(lambda: waiting() == 8)
            memory = call.memory(store)
            assert call("GET", at(store, memory["id"])).ok["content"] == "text"
            assert not any(one.done() for one in blocked)
        assert [one.result(30).status for one in blocked] == [200] * 48


def test_eight_clients_that_move_a_counter_lose_no_step(shared: MemoryServer, call: Caller) -> None:
    """FAULTS 19: who was too late is refused, reads again, and tries once more."""
    counter = call.memory(call.store(), "/counter", "0 steps")
    place = at(counter["memory_store_id"], counter["id"])

    def step(number: int) -> None:
        while True:
            read = call("GET", place, view="full").ok
            guard = {"type": "content_sha256", "content_sha256": read["content_sha256"]}
            # Signed: that the text is there already is a success (CONTRACT B.7), and two may count to the same number.
            text = f"{int(read['content'].split()[0]) + 1} steps, the last one is step {number}"
            answer = call.update(counter, content=text, precondition=guard)
            if answer.status == 200:
                return
            assert answer.error(409, "memory_precondition_failed_error")

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(step, range(80)))
    assert call("GET", place, view="full").ok["content"].startswith("80 steps")
    assert len(call.versions(counter["memory_store_id"], limit=100)) == 81


def test_requests_on_one_connection_are_answered_in_their_order(shared: MemoryServer) -> None:
    names = ("healthz", "nothing", "readyz")
    asked = [f"GET /{name} HTTP/1.1\r\nHost: localhost\r\n" for name in names]
    answers = answer_to(shared, ("\r\n".join(asked) + "Connection: close\r\n\r\n").encode())
    assert re.findall(rb"HTTP/1.1 (\d+)", answers) == [b"200", b"401", b"200"]


# -- who may not come in ----------------------------------------------------------------------------


def test_a_web_page_does_not_reach_a_server_without_keys_by_a_name_of_its_own(memory_server: MemoryServer) -> None:
    """DNS rebinding: the page's own name leads to 127.0.0.1, and its Host header tells."""

    def visit(*lines: str, version: str = "1.1") -> Answer:
        head = [f"GET /v1/memory_stores HTTP/{version}", *lines, "X-Api-Key: any", "Connection: close", "", ""]
        return parsed(answer_to(memory_server, "\r\n".join(head).encode()))

    for name in ("localhost", "localhost:1", "127.0.0.1:8765", "[::1]:8765", "LOCALHOST"):
        assert visit(f"Host: {name}").ok["data"] == []
    assert visit(version="1.0").ok["data"] == []
    for name in ("evil.example", "127.0.0.1.evil.example:8765", "localhost.evil.example", "evil.example:localhost"):
        assert visit(f"Host: {name}").error(403, "permission_error")
    secret = memory_server.key()
    head = ["GET /v1/memory_stores HTTP/1.1", "Host: evil.example", f"X-Api-Key: {secret}", "Connection: close", "", ""]
    assert parsed(answer_to(memory_server, "\r\n".join(head).encode())).ok["data"] == []


def test_the_log_tells_who_asked_for_what_and_no_secret(memory_server: MemoryServer) -> None:
    secret = memory_server.key()
    call = Caller(memory_server.dispatch, {"authorization": f"Bearer {secret}"})
    store = call.store("hidden name")
    call.memory(store, "/hidden.md", "hidden text")
    call("GET", f"{at(store)}/memories", path_prefix="/hidden/")
    Caller(memory_server.dispatch, {"x-api-key": "mk_hidden"})("GET", "/v1/memory_stores").error(401)
    with Database(memory_server.dsn) as database:
        key = database.keys.list()[0].id
    lines = memory_server.log.splitlines()
    assert [line.split()[2:5] for line in lines] == [
        ["POST", "/v1/memory_stores", "200"],
        ["POST", f"{at(store)}/memories", "200"],
        ["GET", f"{at(store)}/memories", "200"],
        ["GET", "/v1/memory_stores", "401"],
    ]
    assert [line.split()[-1] for line in lines] == [key, key, key, "-"]
    assert "hidden" not in memory_server.log
    assert secret not in memory_server.log


def test_f_110_methods_that_no_route_has_are_405_and_leave_the_connection_usable(call: Caller) -> None:
    """F.110."""
    for method in ("OPTIONS", "PATCH", "PUT", "TRACE"):
        answer = call(method, "/v1/memory_stores")
        assert answer.error(405, "invalid_request_error")
        assert answer.headers["allow"] == "GET, POST"


def test_a_head_request_has_the_headers_of_its_405_and_no_body(shared: MemoryServer) -> None:
    connection = shared.connect()
    for _ in range(2):
        connection.request("HEAD", "/v1/memory_stores", headers=CREDENTIAL)
        answer = connection.getresponse()
        assert (answer.status, answer.headers["allow"], answer.read()) == (405, "GET, POST", b"")
        assert answer.headers["request-id"]


def test_an_upgrade_is_not_taken_and_leaves_no_trace(shared: MemoryServer, call: Caller) -> None:
    websocket = {
        "upgrade": "websocket",
        "connection": "Upgrade",
        "sec-websocket-key": "x",
        "sec-websocket-version": "13",
    }
    assert call("GET", "/v1/memory_stores", headers=websocket).ok
    assert all(" INFO " in line for line in shared.log.splitlines())


# -- what is no HTTP, or not for here --------------------------------------------------------------


NO_HTTP: Final = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),  # TLS
    b"hello\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/x.y\r\nHost: localhost\r\n\r\n",
    b"GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",  # no Host
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: many\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nmany\r\n",
)


def test_what_is_no_http_is_refused_and_leaves_no_trace(memory_server: MemoryServer) -> None:
    for sent in NO_HTTP:
        answer = answer_to(memory_server, sent)
        assert answer.startswith(b"HTTP/1.1 400 "), sent
        told = parsed(answer)
        assert told.error(400, "invalid_request_error")["message"].startswith("the request cannot be read: ")
    assert memory_server.end() == 0
    assert all(" INFO " in line for line in memory_server.log.splitlines())


def test_endless_headers_are_not_read_to_their_end(shared: MemoryServer, call: Caller) -> None:
    for begun in (b"GET /", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: "):
        answer = answer_to(shared, begun + b"a" * 3_000_000)
        assert answer.startswith(b"HTTP/1.1 400 ") or answer == b""  # cut off: it was still being sent
    assert call("GET", "/healthz").ok
