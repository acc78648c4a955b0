"""The record layer is tested on both PostgreSQL versions that memkernel promises: the wheel's 18 and Debian's 15."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fix_postgres import PostgresServer


@pytest.fixture(params=[18, 15], ids=["pg18", "pg15"])
def server(request: pytest.FixtureRequest, servers: Callable[[int], PostgresServer]) -> PostgresServer:
    """The server that a test's databases are on, once for each version."""
    return servers(request.param)
