"""One suite for every way in: in process, over HTTP, and over HTTP with the oldest SDK that has memory stores.

The last is a run of its own, started by `test_oldest.py`: there, SDK_SERVER names a server, SDK_KEYS keys to it, one a
test, and of what the tests need only pytest and that SDK are used.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

import anthropic
import pytest

from tests.sdk.python.blocking import Blocking

SERVER: Final = os.environ.get("SDK_SERVER", "")
WAYS: Final = ["over HTTP"] if SERVER else ["in process", "in process, asynchronous", "over HTTP"]
Serving = Callable[[], tuple[str, str]]

_KEYS: Final = iter(cast(list[str], json.loads(os.environ.get("SDK_KEYS", "[]"))))


def pytest_report_header() -> str:
    """Which SDK it is that is tested."""
    return f"SDK {anthropic.__version__}"


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    """Which way a test's requests go."""
    return request.param


_numbers: Final = itertools.count()


@pytest.fixture
def workspace() -> str:
    """The id of a workspace that holds nothing."""
    return f"w{next(_numbers)}"


@pytest.fixture(scope="session")
def shared_dsn(request: pytest.FixtureRequest) -> Iterator[str]:
    """The database of all tests; each has a workspace of its own there."""
    postgres = request.getfixturevalue("servers")(18)
    name = postgres.create_migrated_database()
    yield postgres.dsn(name)
    postgres.drop_database(name)


@pytest.fixture(scope="session")
def serving(request: pytest.FixtureRequest) -> Iterator[Serving]:
    """The address of one server for all tests, and with each call the key of a workspace that holds nothing."""
    if SERVER:
        yield lambda: (SERVER, next(_KEYS))
        return
    from tests.fix_server import MemoryServer

    with MemoryServer(request.getfixturevalue("shared_dsn")) as server:
        yield lambda: (server.url, server.key(f"k{next(_numbers)}"))


@pytest.fixture
def sdk(way: str, workspace: str, request: pytest.FixtureRequest) -> Iterator[anthropic.Anthropic]:
    """The official client on a workspace that holds nothing."""
    if way == "over HTTP":
        serving: Serving = request.getfixturevalue("serving")
        url, key = serving()
        direct = anthropic.DefaultHttpxClient(trust_env=False)  # the way to 127.0.0.1 leads through no proxy
        with anthropic.Anthropic(base_url=url, api_key=key, http_client=direct) as client:
            yield client
        return
    from memkernel.handle.connection import connect

    with connect(request.getfixturevalue("shared_dsn"), workspace=workspace) as connection:
        if way == "in process":
            with connection.anthropic() as client:
                yield client
            return
        with asyncio.Runner() as runner, Blocking(connection.async_anthropic(), runner) as blocking:
            yield cast(anthropic.Anthropic, blocking)


@pytest.fixture
def sent(sdk: anthropic.Anthropic, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The requests that the client has sent, oldest first."""
    requests = list[Any]()
    http_client = getattr(getattr(sdk, "inner", sdk), "_client")  # noqa: B009  # the one place where all of them pass
    send = http_client.send

    def noted(request: Any, **options: Any) -> Any:
        requests.append(request)
        return send(request, **options)

    monkeypatch.setattr(http_client, "send", noted)
    return requests


@pytest.fixture
def store(sdk: anthropic.Anthropic) -> str:
    """The id of an empty store."""
    return sdk.beta.memory_stores.create(name="Notes").id


@pytest.fixture
def write(sdk: anthropic.Anthropic, store: str) -> Callable[..., Any]:
    """Creates a memory in that store."""

    def create(path: str, content: str = "text\n", **options: Any) -> Any:
        return sdk.beta.memory_stores.memories.create(store, path=path, content=content, **options)

    return create
