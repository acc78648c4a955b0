"""`Connection.anthropic()` and `.async_anthropic()`: what is answered here, what goes out, and where it works."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import psycopg
import pytest

from memkernel.api import client as clients
from memkernel.api.messages import Principal
from memkernel.handle.connection import Connection, connect
from memkernel.models import Actor, Settings
from memkernel.store import Database
from tests.api.real_api import RealApi
from tests.fix_kernel import Kernel
from tests.fix_postgres import DURABLE, PostgresServer

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No key, no login, no proxy."""
    for name in os.environ:
        if name.startswith("ANTHROPIC_") or name.lower() in PROXIES:
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def real_api(monkeypatch: pytest.MonkeyPatch) -> Iterator[RealApi]:
    """Where ANTHROPIC_BASE_URL leads: a path of a proxy's."""
    with RealApi() as api:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"{api.url}/proxy")
        yield api


@pytest.fixture
def open_connection(dsn: str) -> Iterator[Callable[[], Connection]]:
    """Connects to the test's database, with the environment of that moment."""
    opened = list[Connection]()

    def opening() -> Connection:
        opened.append(connect(dsn))
        return opened[-1]

    yield opening
    for connection in opened:
        connection.close()


@pytest.fixture
def connection(open_connection: Callable[[], Connection]) -> Connection:
    """A connection, no key being set."""
    return open_connection()


Open = Callable[[], Connection]


def speak(client: anthropic.Anthropic, headers: dict[str, Any] | None = None) -> anthropic.types.Message:
    """A call that only the real API can answer."""
    message: Any = {"role": "user", "content": "hello"}
    return client.messages.create(model="m", max_tokens=5, messages=[message], extra_headers=headers)


def use_memory(client: anthropic.Anthropic) -> None:
    """Calls that are answered here."""
    store = client.beta.memory_stores.create(name="Notes")
    memory = client.beta.memory_stores.memories.create(store.id, path="/a.md", content="text")
    assert client.beta.memory_stores.memories.retrieve(memory.id, memory_store_id=store.id).content == "text"
    client.beta.sessions.create(agent="agent_x", environment_id="env_x")
    with pytest.raises(anthropic.NotFoundError):
        client.beta.sessions.events.list("sesn_none")


# -- what stays and what goes out ------------------------------------------------------------------


def test_the_classes_are_the_sdks_own(connection: Connection) -> None:
    assert type(connection.anthropic()) is anthropic.Anthropic
    assert type(connection.async_anthropic()) is anthropic.AsyncAnthropic


def test_without_a_key_nothing_goes_out(real_api: RealApi, open_connection: Open) -> None:
    client = open_connection().anthropic()
    use_memory(client)
    calls: list[Callable[[], object]] = [
        lambda: speak(client),
        lambda: list(client.models.list()),
        lambda: list(client.beta.agents.list()),
        lambda: client.get("/v1/memory_store", cast_to=object),
        lambda: client.with_options(max_retries=5).get("/v1/sessionsx", cast_to=object),
        lambda: speak(client, {"Authorization": anthropic.omit}),
    ]
    for call in calls:
        with pytest.raises(anthropic.AuthenticationError, match="ANTHROPIC_API_KEY is not set") as caught:
            call()
        assert caught.value.type == "authentication_error"
        assert caught.value.request_id is not None
    message: Any = {"role": "user", "content": "hello"}
    with (
        pytest.raises(anthropic.AuthenticationError, match="POST /proxy/v1/messages is for the real API"),
        client.messages.stream(model="m", max_tokens=5, messages=[message]),
    ):
        pass
    assert real_api.seen == []


def test_a_refusal_is_not_tried_again(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    client = connection.anthropic()
    answered = list[str]()
    answer = clients.Door.answer

    def noted(door: clients.Door, request: httpx2.Request) -> httpx2.Response:
        answered.append(request.url.path)
        return answer(door, request)

    monkeypatch.setattr(clients.Door, "answer", noted)
    with pytest.raises(anthropic.AuthenticationError):
        speak(client)
    assert answered == ["/v1/messages"]


@pytest.mark.parametrize(("variable", "value"), [("ANTHROPIC_API_KEY", "sk-key"), ("ANTHROPIC_AUTH_TOKEN", "sk-token")])
def test_with_a_credential_all_but_memory_goes_out(
    real_api: RealApi, open_connection: Open, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    client = open_connection().anthropic()
    use_memory(client)
    use_memory(client.with_options(base_url=f"{real_api.url}/v1/another/path"))
    assert real_api.seen == []
    assert speak(client).id == "msg_x"
    assert list(client.models.list()) == []
    client.get("/v1/models?after_id=/v1/sessions", cast_to=object)
    assert real_api.paths == ["/proxy/v1/messages", "/proxy/v1/models", "/proxy/v1/models?after_id=/v1/sessions"]
    assert {headers["authorization"] for _, _, headers in real_api.seen} == {f"Bearer {value}"}
    client.close()


def test_a_key_that_comes_later_is_used(real_api: RealApi, open_connection: Open) -> None:
    client = open_connection().anthropic()
    assert speak(client.with_options(api_key="sk-later")).id == "msg_x"
    assert speak(client, {"X-Api-Key": "sk-header"}).id == "msg_x"
    client.api_key = "sk-set"
    assert speak(client).id == "msg_x"
    told = [(headers.get("authorization"), headers.get("x-api-key")) for _, _, headers in real_api.seen]
    assert told == [("Bearer sk-later", None), (None, "sk-header"), ("Bearer sk-set", None)]
    use_memory(client)
    assert len(real_api.seen) == 3
    client.close()


def log_in(folder: Path, api: RealApi) -> None:
    """A login as the SDK keeps it, whose token has expired."""
    authentication = {"type": "user_oauth", "client_id": "c"}
    config = {"authentication": authentication, "workspace_id": "wrkspc_x", "base_url": api.url}
    credentials = {"type": "oauth_token", "access_token": "old", "refresh_token": "r", "expires_at": 1}
    for kind, content in (("configs", config), ("credentials", credentials)):
        (folder / kind).mkdir(parents=True)
        path = folder / kind / "me.json"
        path.write_text(json.dumps(content))
        path.chmod(0o600)


def test_a_login_is_not_asked_for_what_is_answered_here(
    open_connection: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nor does its workspace, one of the real API, forbid anything here."""
    with RealApi() as api:
        log_in(tmp_path / "anthropic", api)
        monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path / "anthropic"))
        monkeypatch.setenv("ANTHROPIC_PROFILE", "me")
        client = open_connection().anthropic()
        use_memory(client)
        assert api.seen == []
        assert speak(client).id == "msg_x"
        assert api.paths == ["/v1/oauth/token", "/v1/messages"]
        _, _, headers = api.seen[1]
        assert (headers["authorization"], headers["anthropic-workspace-id"]) == ("Bearer fresh", "wrkspc_x")
        with pytest.raises(anthropic.PermissionDeniedError):
            client.beta.memory_stores.list(workspace_id="wrkspc_other")
        client.close()


def test_a_broken_login_keeps_nobody_from_the_memories(open_connection: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_PROFILE", "nonesuch")
    client = open_connection().anthropic()
    use_memory(client)
    with pytest.raises(anthropic.AuthenticationError, match=r"ANTHROPIC_API_KEY is not set, and the login .*nonesuch"):
        speak(client)


# -- on whose behalf -------------------------------------------------------------------------------


def test_changes_are_the_connections(dsn: str) -> None:
    ann = Actor("user_actor", "user_ann")
    with connect(dsn, actor=ann, workspace="here") as here, connect(dsn, workspace="there") as there:
        stores = here.anthropic().beta.memory_stores
        made = stores.create(name="Notes")
        memory = stores.memories.create(made.id, path="/a.md", content="text")
        version: Any = stores.memory_versions.retrieve(memory.memory_version_id, memory_store_id=made.id)
        assert (version.created_by.type, version.created_by.user_id) == ("user_actor", "user_ann")
        assert here.store("Notes").read("/a.md") == "text"
        others = there.anthropic().beta.memory_stores
        assert list(others.list()) == []
        with pytest.raises(anthropic.NotFoundError):
            others.retrieve(made.id)
        told = stores.with_raw_response.retrieve(made.id).headers["anthropic-workspace-id"]
        assert told == "here"


def test_where_the_role_cannot_be_made_the_owner_serves(dsn: str) -> None:
    with Database(dsn, prepare=False, workspace_id="here") as database:
        client = clients.synchronous(database, Principal("here", Actor("user_actor", "user_ann")), Settings())
        use_memory(client)
        assert [store.name for store in client.beta.memory_stores.list()] == ["Notes"]
    with Database(dsn, workspace_id="there") as elsewhere:
        client = clients.synchronous(elsewhere, Principal("there", Actor("user_actor", "user_ann")), Settings())
        assert list(client.beta.memory_stores.list()) == []


# -- loops, threads, processes ---------------------------------------------------------------------


def test_the_synchronous_client_works_inside_a_running_loop(connection: Connection) -> None:
    """FAULTS 23."""
    client = connection.anthropic()
    called = list[str]()

    async def cell() -> None:
        use_memory(client)
        done = asyncio.Event()

        def callback() -> None:
            called.extend(store.name for store in client.beta.memory_stores.list())
            done.set()

        asyncio.get_running_loop().call_soon(callback)
        await done.wait()

    asyncio.run(cell())
    assert called == ["Notes"]


def test_the_asynchronous_client_works_in_one_loop_after_another(connection: Connection) -> None:
    client = connection.async_anthropic()

    async def write(number: int) -> None:
        await client.beta.memory_stores.create(name=str(number))

    async def many() -> None:
        await asyncio.gather(*[write(number) for number in range(20)])

    for _ in range(2):
        asyncio.run(many())
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(asyncio.run, [write(number) for number in range(3)]))

    async def count() -> int:
        return len([store async for store in client.beta.memory_stores.list()])

    assert asyncio.run(count()) == 43


def test_a_client_is_shared_by_threads(connection: Connection) -> None:
    client = connection.anthropic()
    store = client.beta.memory_stores.create(name="Notes").id

    def write(number: int) -> None:
        client.beta.memory_stores.memories.create(store, path=f"/{number:03}", content=str(number))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(80)))
    found: list[Any] = list(client.beta.memory_stores.memories.list(store, view="full"))
    assert [memory.content for memory in found] == [str(number) for number in range(80)]


def _count(client: anthropic.Anthropic, times: int) -> int:
    return sum(len(client.beta.memory_stores.list().data) for _ in range(times))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")  # the test forks on purpose
def test_a_client_survives_a_fork(connection: Connection) -> None:
    """FAULTS 21."""
    client = connection.anthropic()
    client.beta.memory_stores.create(name="Notes")
    _client_to_inherit[:] = [client]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        results = [pool.apply_async(_counted_in_child, (number,)) for number in range(4)]
        assert _count(client, 50) == 50
        assert [result.get(30) for result in results] == [50] * 4
    assert _count(client, 1) == 1


def _counted_in_child(_: int) -> int:
    return _count(_client_to_inherit[0], 50)


_client_to_inherit: list[anthropic.Anthropic] = []


# -- what is broken off ----------------------------------------------------------------------------


@pytest.fixture
def held(dsn: str, connection: Connection) -> Iterator[tuple[psycopg.Connection[Any], str, str]]:
    """Somebody's transaction that holds a store, and a memory of that store."""
    stores = connection.anthropic().beta.memory_stores
    store = stores.create(name="Notes").id
    memory = stores.memories.create(store, path="/a.md", content="one").id
    with psycopg.connect(dsn) as holder:
        holder.execute("SELECT FROM memkernel.memory_stores WHERE id = %s FOR UPDATE", [store])
        yield holder, store, memory


@pytest.mark.parametrize("how", ["cancelled", "out of time"])
def test_a_call_that_is_given_up_leaves_no_broken_connection(
    connection: Connection, held: tuple[psycopg.Connection[Any], str, str], dsn: str, how: str
) -> None:
    """FAULTS 22: over for its caller at once; its thread ends with the database's answer."""
    holder, store, memory = held
    client = connection.async_anthropic()

    async def give_up() -> None:
        memories = client.with_options(max_retries=0).beta.memory_stores.memories
        options: Any = {"timeout": 0.3} if how == "out of time" else {}
        writing = asyncio.ensure_future(memories.update(memory, memory_store_id=store, content="two", **options))
        await asyncio.sleep(0.3)
        if how == "cancelled":
            writing.cancel()
        with pytest.raises((anthropic.APITimeoutError, asyncio.CancelledError)):
            await writing
        holder.rollback()  # before this, nothing is answered
        for _ in range(20):
            assert (await memories.retrieve(memory, memory_store_id=store)).memory_store_id == store

    asyncio.run(give_up())
    content = connection.store(store).read("/a.md")
    assert content == "two"
    connection.anthropic().beta.memory_stores.memories.update(memory, memory_store_id=store, content="three")
    with psycopg.connect(dsn) as looker:
        left = looker.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
            "AND state NOT IN ('idle') AND pid <> %s",
            [holder.info.backend_pid],
        ).fetchone()
    assert left == (0,)


def test_a_database_that_goes_is_a_503_and_serves_again(server: PostgresServer) -> None:
    own = PostgresServer(server.version, DURABLE)
    try:
        dsn = own.dsn(own.create_migrated_database())
        with connect(dsn) as connection:
            connection.database.close()
            client = connection.anthropic().with_options(max_retries=0)
            made = client.beta.memory_stores.create(name="Notes")
            own.stop(signal.SIGQUIT)
            with pytest.raises(anthropic.InternalServerError, match="is not available") as caught:
                client.beta.memory_stores.retrieve(made.id)
            assert (caught.value.status_code, caught.value.type) == (503, "api_error")
            assert caught.value.response.headers["retry-after"] == "1"
            own.start()
            assert client.beta.memory_stores.retrieve(made.id) == made
    finally:
        own.remove()


def test_a_kernel_ends_after_its_cells_used_both_clients(bare_kernel: Kernel, tmp_path: Path) -> None:
    """FAULTS 23: the two lines of any example, in cells; no thread keeps the kernel, which would then be killed."""
    ended = tmp_path / "ended"
    ran = bare_kernel.run(f"import atexit, pathlib; atexit.register(pathlib.Path({str(ended)!r}).touch)")
    assert ran.status == "ok"
    ran = bare_kernel.run("import memkernel as mk; db = mk.connect(); client = db.anthropic()")
    assert ran.status == "ok"
    ran = bare_kernel.run(
        "store = client.beta.memory_stores.create(name='Notes')\n"
        "other = db.async_anthropic()\n"
        "(await other.beta.memory_stores.retrieve(store.id)).name"
    )
    assert (ran.status, ran.text) == ("ok", "'Notes'")
    bare_kernel.shut_down()
    assert ended.exists()
