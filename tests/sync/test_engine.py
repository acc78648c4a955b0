"""One mount and its store, row by row of CONTRACT D.4 and F.16."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from memkernel.models import Actor, Cause
from tests.sync.mounted import ANN, Mounted, Mounter

TWO = (("/a.md", "alpha\n"), ("/notes/b.md", "beta\n"))


def test_f243_at_the_start_the_mount_holds_exactly_the_memories(mounter: Mounter) -> None:
    texts = {"/a.md": "no final newline", "/crlf.md": "a\r\nb\r\n", "/deep/er/é.md": "\ufeffbom\0", "/empty.md": ""}
    mounted = mounter(*texts.items())
    assert mounted.on_disk() == {path: text.encode() for path, text in texts.items()}


def test_f245_files_become_versions_by_the_session(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    mounted.write("/new.md", "new\n")
    mounted.write("/a.md", "other\n")
    mounted.remove("/notes/b.md")
    report = mounted.sync()
    made = mounted.versions()[2:]
    assert [(one.operation, one.path) for one in made] == [
        ("deleted", "/notes/b.md"),
        ("modified", "/a.md"),
        ("created", "/new.md"),
    ]
    assert {one.created_by for one in made} == {Actor("session_actor", mounted.session_id)}
    assert (report.created, report.modified, report.deleted) == ((made[2],), (made[1],), (made[0],))
    assert report.ok
    assert not report.pulled
    assert mounted.in_store() == mounted.on_disk() == {"/a.md": b"other\n", "/new.md": b"new\n"}
