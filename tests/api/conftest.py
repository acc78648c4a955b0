"""The API on a database of the test's own, without HTTP: `call` sends a request to `dispatch`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from memkernel.api.dispatch import Api, Strictness
from memkernel.models import Change, Limits
from memkernel.store import Database
from tests.api.calls import KEY, PRINCIPAL, Caller
from tests.fix_postgres import PostgresServer


@pytest.fixture
def api(database: Database) -> Api:
    """The API, every request being made with one key."""
    return Api(database, lambda _: PRINCIPAL)


@pytest.fixture
def call(api: Api) -> Caller:
    """Sends a request to `api`."""
    return Caller(api.dispatch)


@pytest.fixture(scope="session")
def shared_database(servers: Callable[[int], PostgresServer]) -> Iterator[Database]:
    """A database for all tests that look into stores of their own only."""
    server = servers(18)
    name = server.create_migrated_database()
    with Database(server.dsn(name)) as database:
        yield database
    server.drop_database(name)


@pytest.fixture(scope="session")
def shared(shared_database: Database) -> Caller:
    """Sends a request to an API over that database."""
    return Caller(Api(shared_database, lambda _: PRINCIPAL).dispatch)


@pytest.fixture
def fill(shared_database: Database) -> Callable[[str, int], None]:
    """Makes so many memories, `/0000` and so on, in a store of that database."""

    def fill(store: str, count: int) -> None:
        changes = [Change(f"/{number:04}", "text") for number in range(count)]
        shared_database.memories.apply(store, changes, actor=KEY)

    return fill


@pytest.fixture
def strict(database: Database) -> Callable[..., Caller]:
    """Sends a request to an API that is strict where it is told to be."""

    def strict(**how: bool) -> Caller:
        return Caller(Api(database, lambda _: PRINCIPAL, Strictness(**how)).dispatch)

    return strict


@pytest.fixture
def limited(dsn: str) -> Iterator[Callable[..., Caller]]:
    """Sends a request to an API whose stores have other capacities."""
    with ExitStack() as opened:

        def limited(**limits: int) -> Caller:
            database = opened.enter_context(Database(dsn, limits=Limits(**limits)))
            return Caller(Api(database, lambda _: PRINCIPAL).dispatch)

        yield limited
