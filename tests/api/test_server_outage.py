"""`memkernel serve` while PostgreSQL is away, and after it is back."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.api.calls import Caller, at
from tests.fix_postgres import PostgresServer
from tests.fix_server import MemoryServer, Serve
from tests.runtime.processes import wait_until
from tests.store.proxy import LossyProxy

CREDENTIAL = {"x-api-key": "any"}


@pytest.fixture(scope="module")
def fragile() -> Iterator[PostgresServer]:
    """A PostgreSQL that the tests stop; nobody else's databases are on it."""
    server = PostgresServer(18)
    yield server
    server.remove()


@pytest.fixture
def served(fragile: PostgresServer, serve: Serve) -> MemoryServer:
    """A server on a new database there."""
    return serve(fragile.dsn(fragile.create_migrated_database()))


@pytest.fixture
def call(served: MemoryServer) -> Caller:
    return Caller(served.dispatch, CREDENTIAL)


def test_while_the_database_is_away_it_says_so_and_serves_again_when_it_is_back(
    served: MemoryServer, call: Caller, fragile: PostgresServer
) -> None:
    store = call.store()
    call.memory(store)
    fragile.stop()
    try:
        for request in (
            lambda: call("GET", at(store)),
            lambda: call("POST", f"{at(store)}/memories", {"path": "/b.md", "content": "text"}),
            lambda: call("GET", "/readyz"),
        ):
            answer = request()
            message = answer.error(503, "api_error")["message"]
            assert message == "the database is not available; nothing was changed"
            assert (answer.headers["retry-after"], "x-should-retry" in answer.headers) == ("1", False)
        assert call("GET", "/healthz").ok == {"status": "ok"}
    finally:
        fragile.start()
    assert call("GET", "/readyz").ok == {"status": "ok"}
    assert [memory["path"] for memory in call.all(f"{at(store)}/memories")] == ["/a.md"]
    call.memory(store, "/b.md")
    assert "Traceback" not in served.log
    assert served.end() == 0


def test_the_official_client_bears_a_short_outage(served: MemoryServer, fragile: PostgresServer) -> None:
    memories = served.client(max_retries=10).beta.memory_stores.memories
    store = served.client().beta.memory_stores.create(name="Notes")
    fragile.stop()
    with ThreadPoolExecutor(1) as threads:
        making = threads.submit(memories.create, store.id, path="/a.md", content="text")
        wait_until(lambda: " 503 " in served.log)
        fragile.start()
        made = making.result(60)
    assert memories.retrieve(made.id, memory_store_id=store.id).content == "text"
    assert [memory.path for memory in memories.list(store.id)] == ["/a.md"]


@pytest.fixture
def proxy(fragile: PostgresServer) -> Iterator[LossyProxy]:
    """Stands between the server and the database, and loses what it is told to."""
    proxy = LossyProxy(fragile.directory)
    yield proxy
    proxy.close()


def test_an_unknown_outcome_is_said_so_and_not_tried_again(
    fragile: PostgresServer, proxy: LossyProxy, serve: Serve
) -> None:
    dsn = fragile.dsn(fragile.create_migrated_database())
    call = Caller(serve(dsn.replace(str(fragile.directory), str(proxy.directory))).dispatch, CREDENTIAL)
    store = call.store()
    memory = call.memory(store)
    call.update(memory, content="one")
    proxy.lose("reply", b"memory_update", then_refuse=True)
    answer = call.update(memory, content="two")
    message = answer.error(503, "api_error")["message"]
    assert message == "the database is not available; it is unknown whether this was saved"
    assert (answer.headers["retry-after"], answer.headers["x-should-retry"]) == ("1", "false")
    proxy.refuses = False
    assert call("GET", at(store, memory["id"]), view="full").ok["content"] == "two"


def test_a_database_that_may_only_be_read_is_away_for_writers(
    served: MemoryServer, call: Caller, fragile: PostgresServer
) -> None:
    """As a standby is, or a primary that was demoted."""
    store = call.store()
    name = served.dsn.partition("@/")[2].partition("?")[0]
    with fragile.connect() as admin:
        admin.execute(f"ALTER DATABASE {name} SET default_transaction_read_only TO on".encode())
        served.kill()
        served.start()
        answer = call("POST", f"{at(store)}/memories", {"path": "/b.md", "content": "text"})
        message = answer.error(503, "api_error")["message"]
        assert message == "the database is not available; nothing was changed"
        assert call("GET", at(store)).ok["id"] == store
        admin.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only".encode())
    assert "Traceback" not in served.log
