"""FAULTS 31: what editors leave behind follows one rule."""

from __future__ import annotations

import pytest

from memkernel.sync.strays import is_stray

STRAYS = [
    "/4913",
    "/notes/.todo.md.swp",
    "/.swp",
    "/todo.md~",
    "/a/#todo.md#",
    "/.#todo.md",
    "/todo.md___jb_tmp___",
    "/.goutputstream-ABC123",
    "/.~lock.plan.odt#",
    "/.fs-0f3a.tmp",
    "/.nfs000000000012ab34",
    "/a/.DS_Store",
    "/a/.ipynb_checkpoints/notes-checkpoint.ipynb",
    "/.anthropic-memory-store",
    "/.memkernel-probe-0011aabb-in",
]
MEMORIES = [
    "/notes.md",
    "/~",
    "/49130",
    "/sedatives",
    "/swp",
    "/a.swp",
    "/.env",
    "/.git/config",
    "/#hash",
    "/tmp",
    "/a/.anthropic-memory-store",
    "/a/.memkernel-probe-1",
    "/DS_Store",
    "/nfs",
    "/draft~/text.md",
]


@pytest.mark.parametrize("path", STRAYS)
def test_an_editors_temporary_file_is_a_stray(path: str) -> None:
    assert is_stray(path)


@pytest.mark.parametrize("path", MEMORIES)
def test_a_name_that_only_looks_like_one_is_none(path: str) -> None:
    assert not is_stray(path)
