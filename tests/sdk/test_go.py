"""The official Go SDK against a real server (F.98 to F.102, F.112, F.116; CONTRACT B and C).

What is asserted stands in tests/sdk/go, in the SDK's own language.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fix_server import MemoryServer
from tests.sdk.suites import run_suite

pytestmark = pytest.mark.go

SUITE = Path(__file__).parent / "go"


def test_the_lifecycle_and_every_error(memory_server: MemoryServer) -> None:
    """F.116, F.100: every response decodes, and each error is the SDK's own, by an older SDK's requests, too."""
    told = run_suite(memory_server, ["go", "test", "-count=1", "-v", "./..."], SUITE)
    assert "--- PASS" in told
    assert "--- SKIP" not in told


def test_the_suite_is_formatted() -> None:
    """`gofmt` has nothing to say."""
    assert run_suite(None, ["gofmt", "-l", "."], SUITE) == ""
