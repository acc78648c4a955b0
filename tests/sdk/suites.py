"""Suites in other languages: run with a server's address and keys as their environment, shown whole when they fail."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

from tests.fix_server import MemoryServer

PATIENCE_S: Final = 240.0
"""Shorter than a test's own time-out, so that what a suite said until then is shown."""


def run_suite(server: MemoryServer | None, command: list[str], directory: Path) -> str:
    """What a suite printed; an AssertionError with all of it where it failed.

    The server gets keys, so that it asks for them: two that may write, and one that may only read.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANTHROPIC_")}
    if server:
        environment |= {
            "MEMORY_SERVER": server.url,
            "MEMORY_KEY": server.key(),
            "MEMORY_SECOND_KEY": server.key(),
            "MEMORY_READ_ONLY_KEY": server.key(read_only=True),
        }
    suite = subprocess.run(
        command,
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert suite.returncode == 0, f"{' '.join(command)} ended with {suite.returncode}:\n{suite.stdout}"
    return suite.stdout
