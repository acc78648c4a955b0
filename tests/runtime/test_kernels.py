"""A notebook's kernel that is shut down, restarted or killed with a sandbox open: no last edit is lost (fault 44)."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import memkernel as mk
from memkernel import runtime
from memkernel.runtime import Home
from tests.fix_kernel import Kernel, kernel_environment
from tests.runtime.processes import wait_until

MOUNT = "/mnt/memory/team-notes"


@pytest.fixture
def kernel(dsn: str, sandbox_home: Path, tmp_path: Path) -> Iterator[Kernel]:
    """A kernel with a sandbox, in which something was written after the last cell's own sync."""
    kernel = Kernel(kernel_environment(tmp_path, MEMKERNEL_HOME=str(sandbox_home)), tmp_path)
    try:
        begun = kernel.run(
            f"import memkernel as mk\nnotes = mk.connect({dsn!r}).store('Team notes', create=True)\n"
            "box = mk.Sandbox(notes, backend='local').start()\n"
            f"box.bash('(sleep 0.3; echo late > {MOUNT}/late.md) >/dev/null 2>&1 &').status"
        )
        assert begun.text == "'ok'", begun
        wait_until(lambda: list(sandbox_home.glob("sessions/*/mnt/memory/team-notes/late.md")))
        yield kernel
    finally:
        kernel.close()


@pytest.mark.parametrize("end", [Kernel.shut_down, Kernel.restart])
def test_a_kernel_that_ends_in_order_saves_all(
    kernel: Kernel, notes: mk.Store, sandbox_home: Path, end: Callable[[Kernel], None]
) -> None:
    begun = time.monotonic()
    end(kernel)
    assert time.monotonic() - begun < 5
    assert notes.read("/late.md") == "late\n"
    assert list((sandbox_home / "sessions").iterdir()) == []


def test_a_kernel_that_is_killed_leaves_it_to_the_next_start(
    kernel: Kernel, notes: mk.Store, sandbox_home: Path
) -> None:
    os.kill(kernel.pid, signal.SIGKILL)
    wait_until(lambda: runtime.dead_sessions(Home(sandbox_home)))
    connection = notes.connection
    assert len(runtime.recover(connection.database, connection.line, connection.settings, Home(sandbox_home))) == 1
    assert notes.read("/late.md") == "late\n"
