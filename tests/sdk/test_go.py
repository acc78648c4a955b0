"""The official Go SDK against a real server (F.98 to F.102, F.112, F.116; CONTRACT B and C).

What is asserted stands in tests/sdk/go, in the SDK's own language.
"""

from __future__ import annotations

import pytest

from tests.fix_server import MemoryServer
from tests.suites import GO, GO_TEST, run_suite

pytestmark = pytest.mark.go


def test_the_lifecycle_and_every_error(memory_server: MemoryServer) -> None:
    """F.116, F.100: every response decodes, each error is the SDK's own, and an older SDK's requests are answered."""
    told = run_suite(memory_server, (*GO_TEST, "-v", "."), GO)
    assert "--- PASS" in told
    assert "--- SKIP" not in told
