"""The official TypeScript SDK against a real server (F.98 to F.102, F.112, F.116; CONTRACT B and C).

What is asserted stands in tests/sdk/typescript, in the SDK's own language.
"""

from __future__ import annotations

import pytest

from tests.fix_server import MemoryServer
from tests.suites import NODE, TYPESCRIPT, run, run_suite

pytestmark = pytest.mark.node


def test_the_lifecycle_and_every_error(memory_server: MemoryServer) -> None:
    """F.116, F.100: every response decodes, each error is the SDK's own, and an older SDK's requests are answered."""
    told = run_suite(memory_server, (NODE, "--test", "--test-reporter=spec"), TYPESCRIPT)
    assert "ℹ fail 0" in told
    assert "ℹ skipped 0" in told


def test_the_tables_of_fields_are_those_of_the_sdk() -> None:
    """F.116: the compiler compares them with the SDK's types, so that no field of a response is left out."""
    assert run((NODE, "node_modules/typescript/bin/tsc"), TYPESCRIPT) == ""
