"""The record layer is tested on both PostgreSQL versions that memkernel promises: the wheel's 18 and Debian's 15.

One database a version serves most tests, each with a store of its own; `fresh_database` is for those that look
at all stores, or break something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from memkernel.models import Limits, Memory, MemoryStore
from memkernel.store import Database
from tests.fix_postgres import PostgresServer
from tests.store.people import ANN


@pytest.fixture(scope="session", params=[18, 15], ids=["postgres18", "postgres15"])
def server(request: pytest.FixtureRequest, servers: Callable[[int], PostgresServer]) -> PostgresServer:
    """The server that a test's databases are on, once for each version."""
    return servers(request.param)


@pytest.fixture(scope="session")
def shared_dsn(server: PostgresServer) -> Iterator[str]:
    """The database of most tests."""
    name = server.create_migrated_database()
    yield server.dsn(name)
    server.drop_database(name)


@pytest.fixture(scope="session")
def database(shared_dsn: str) -> Iterator[Database]:
    """The record layer on the shared database."""
    with Database(shared_dsn) as database:
        yield database


@pytest.fixture
def fresh_database(dsn: str) -> Iterator[Database]:
    """The record layer on a database of the test's own."""
    with Database(dsn) as database:
        yield database


@pytest.fixture
def limited(shared_dsn: str) -> Iterator[Callable[..., Database]]:
    """The record layer on the shared database with other capacities."""
    with ExitStack() as opened:

        def limited(**limits: int) -> Database:
            return opened.enter_context(Database(shared_dsn, limits=Limits(**limits)))

        yield limited


@pytest.fixture
def store(database: Database) -> MemoryStore:
    """A store of the test's own."""
    return database.memory_stores.create(name="Notes")


@pytest.fixture
def write(database: Database, store: MemoryStore) -> Callable[..., Memory]:
    """Write a memory into the test's store."""

    def write(path: str, content: str | bytes = "text") -> Memory:
        return database.memories.write(store.id, path, content, actor=ANN)

    return write
