"""The watch on how mounts grow. Decision 5."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue

import pytest

from memkernel.sandbox.base import MEBIBYTE, Mount, SandboxLimits
from memkernel.sandbox.watch import Watchdog

LIMITS = SandboxLimits(mount_files=10, mount_bytes=MEBIBYTE)


@contextmanager
def watched(folder: Path, *, busy: bool = True, read_only: bool = False) -> Generator[SimpleQueue[str]]:
    said: SimpleQueue[str] = SimpleQueue()
    watchdog = Watchdog([Mount(folder, "/mnt/memory/x", read_only)], LIMITS, lambda: busy, said.put)
    try:
        yield said
    finally:
        watchdog.stop()


def fill(folder: Path, number: int) -> None:
    for each in range(number):
        (folder / f"{each}-{time.monotonic_ns()}").touch()


def test_too_many_files_are_said(tmp_path: Path) -> None:
    with watched(tmp_path) as said:
        fill(tmp_path, 11)
        assert said.get(timeout=3) == "/mnt/memory/x grew by more than 10 files, the limit"


def test_too_many_bytes_are_said(tmp_path: Path) -> None:
    with watched(tmp_path) as said:
        (tmp_path / "large").write_bytes(bytes(2 * MEBIBYTE))
        assert said.get(timeout=3) == "/mnt/memory/x grew by more than 1 MiB, the limit"


def test_what_was_there_before_does_not_count(tmp_path: Path) -> None:
    fill(tmp_path, 50)
    with watched(tmp_path) as said:
        fill(tmp_path, 10)
        with pytest.raises(Empty):
            said.get(timeout=0.8)
        fill(tmp_path, 1)
        assert "10 files" in said.get(timeout=3)


def test_it_looks_while_nothing_runs_too(tmp_path: Path) -> None:
    with watched(tmp_path, busy=False) as said:
        fill(tmp_path, 11)
        assert "10 files" in said.get(timeout=5)


def test_a_folder_that_cannot_be_written_is_not_watched(tmp_path: Path) -> None:
    with watched(tmp_path, read_only=True) as said:
        fill(tmp_path, 50)
        with pytest.raises(Empty):
            said.get(timeout=0.8)


def test_links_lead_nowhere_and_a_folder_that_goes_is_empty(tmp_path: Path) -> None:
    folder = tmp_path / "mount"
    folder.mkdir()
    with watched(folder) as said:
        (folder / "out").symlink_to("/usr")
        with pytest.raises(Empty):
            said.get(timeout=0.6)
        (folder / "out").unlink()
        folder.rmdir()
        with pytest.raises(Empty):
            said.get(timeout=0.6)
