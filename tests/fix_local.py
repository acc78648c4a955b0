"""Who runs local sandboxes in the tests, and which levels this machine allows them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memkernel.sandbox.base import SandboxSpec
from memkernel.sandbox.local import LocalSandbox
from memkernel.sandbox.local_place import Level
from tests.cluster.people import Person, account, current_user, packages_of

IS_ROOT = os.geteuid() == 0
SPEC = SandboxSpec(session_id="sesn_01TestOfALocalSandbox", installation_id="tests")
_NAMESPACES = LocalSandbox(SPEC).level == 1
LEVELS: list[Level] = [1, 2] if _NAMESPACES else [2]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was left out."""
    if not _NAMESPACES:
        terminalreporter.write_line("not checked: level 1 of the local sandbox (no namespaces here)")


@pytest.fixture(scope="session")
def open_ground() -> Iterator[Path]:
    """A folder that every account can enter."""
    path = Path(tempfile.mkdtemp(prefix="mk-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def ordinary_user(open_ground: Path) -> Person:
    """Somebody without privileges, with a Python that has ipykernel."""
    if not IS_ROOT:
        return current_user()
    return account("nobody", open_ground, ["memkernel", *packages_of("ipykernel", "jupyter-client")])
