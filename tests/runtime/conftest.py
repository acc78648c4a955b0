"""Notebook processes that are gone at the end of a test."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.processes import NotebookProcess

Launch = Callable[..., NotebookProcess]


@pytest.fixture
def launch(dsn: str, sandbox_home: Path) -> Iterator[Launch]:
    """Starts notebook processes on the test's database and home."""
    started: list[NotebookProcess] = []

    def start(backend: str = "local", **options: Any) -> NotebookProcess:
        started.append(NotebookProcess(dsn, backend, **options))
        return started[-1]

    yield start
    for process in started:
        process.close()


@pytest.fixture
def no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """DOCKER_HOST names a socket where nobody is.

    The SDK leaves the socket of a failed connection to the garbage collector: a test ignores that by its mark.
    """
    path = tmp_path / "nothing.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    yield path
    gc.collect()
