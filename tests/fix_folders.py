"""Folders on each kind of disk, and the rights of an ordinary user."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from memkernel.cluster.filesystem import filesystem_of
from memkernel.folders import remove_tree

MEMORY = Path("/dev/shm")
ORDINARY = 12_345  # nobody's number: rights need no name

KINDS = ["disk", *(["memory"] if MEMORY.is_dir() else [])]
ACCOUNTS = ["oneself", *(["ordinary"] if os.geteuid() == 0 else [])]


def on_disk() -> Path:
    """Where temporary folders can be made on a disk."""
    places = [Path(tempfile.gettempdir()), Path("/var/tmp"), Path.home()]
    return next(place for place in places if filesystem_of(place.resolve()) != "tmpfs")


@pytest.fixture
def disk() -> Iterator[Path]:
    """An empty folder on a disk whose times tell of every change; `tempfile`'s own may be in memory."""
    with _made(on_disk()) as folder:
        yield folder


@pytest.fixture(params=KINDS)
def roomy(request: pytest.FixtureRequest, disk: Path) -> Iterator[Path]:
    """An empty folder, on a disk and in memory."""
    if request.param == "disk":
        yield disk
        return
    with _made(MEMORY) as folder:
        yield folder


@pytest.fixture(params=ACCOUNTS)
def account(request: pytest.FixtureRequest, disk: Path) -> Iterator[Path]:
    """An empty folder on a disk, of the account that the test runs as: oneself and, for root, an ordinary one."""
    if request.param == "oneself":
        yield disk
        return
    os.chown(disk, ORDINARY, ORDINARY)
    with ordinary_rights():
        yield disk


@contextlib.contextmanager
def ordinary_rights() -> Generator[None]:
    """While in here root has the rights of an ordinary user."""
    os.setegid(ORDINARY)
    os.seteuid(ORDINARY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@contextlib.contextmanager
def _made(place: Path) -> Generator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="memkernel-", dir=place))
    try:
        yield folder
    finally:
        remove_tree(folder)
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def mounted(folder: Path, *options: str) -> Generator[None]:
    """While in here a file system in memory lies over the folder (root only)."""
    subprocess.run(["mount", "-t", "tmpfs", *options, "none", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)
