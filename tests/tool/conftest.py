"""The memory tool on a real store. One database serves all these tests, each has a store of its own in it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from memkernel.models import Limits
from memkernel.store import Database
from memkernel.tool.postgres import PostgresBackend
from tests.fix_postgres import PostgresServer
from tests.tool.calls import ACTOR, Calls

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def shared_dsn(servers: Callable[[int], PostgresServer]) -> Iterator[str]:
    server = servers(18)
    name = server.create_migrated_database()
    yield server.dsn(name)
    server.drop_database(name)


@pytest.fixture(scope="session")
def database(shared_dsn: str) -> Iterator[Database]:
    with Database(shared_dsn) as database:
        yield database


@pytest.fixture
def store_id(database: Database) -> str:
    return database.memory_stores.create(name=f"Notes {next(_numbers)}").id


@pytest.fixture
def make_tool(database: Database, store_id: str) -> Callable[..., Calls]:
    """A tool on the test's store, with the options given."""

    def make(**options: Any) -> Calls:
        return Calls(PostgresBackend(database, store_id, actor=ACTOR, **options))

    return make


@pytest.fixture
def tool(make_tool: Callable[..., Calls]) -> Calls:
    return make_tool()


@pytest.fixture
def limited_tool(shared_dsn: str, store_id: str) -> Iterator[Callable[[Limits], Calls]]:
    """A tool on the test's store, with other capacities."""
    with ExitStack() as opened:

        def make(limits: Limits) -> Calls:
            database = opened.enter_context(Database(shared_dsn, limits=limits))
            return Calls(PostgresBackend(database, store_id, actor=ACTOR))

        yield make
