"""The official TypeScript SDK against a real server (F.98 to F.102, F.112, F.116; CONTRACT B and C).

What is asserted stands in tests/sdk/typescript, in the SDK's own language.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fix_server import MemoryServer
from tests.sdk.suites import run_suite

pytestmark = pytest.mark.node

SUITE = Path(__file__).parent / "typescript"


def test_the_lifecycle_and_every_error(memory_server: MemoryServer) -> None:
    """F.116, F.100: every response decodes, and each error is the SDK's own, by an older SDK's requests, too."""
    told = run_suite(memory_server, ["node", "--test", "--test-reporter=spec"], SUITE)
    assert "ℹ fail 0" in told
    assert "ℹ skipped 0" in told


def test_the_tables_of_fields_are_those_of_the_sdk() -> None:
    """F.116: `tsc` compares them with the SDK's types, so that no field of a response is left out."""
    run_suite(None, ["npm", "run", "--silent", "check"], SUITE)
