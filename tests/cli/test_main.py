"""What every command has in common."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.fix_kernel import kernel_environment


def test_a_reader_that_has_seen_enough_is_no_error(dsn: str, tmp_path: Path) -> None:
    """`memkernel keys ls | true`."""
    command = [sys.executable, "-W", "error", "-m", "memkernel", "keys", "ls"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=kernel_environment(tmp_path, MEMKERNEL_DSN=dsn),
        cwd=Path(__file__).parents[2],
    ) as listing:
        assert listing.stdout is not None
        listing.stdout.close()
        _, complaint = listing.communicate(timeout=60)
    assert (listing.returncode, complaint) == (141, b"")
