"""Mounts of a store whose history is pruned behind their backs: CONTRACT 0.3, row 18."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from tests.store.ageing import let_pass
from tests.sync.mounted import Mounted, Mounter

LINES = "".join(f"{word}\n" for word in ("one", "two", "three", "four", "five", "six"))
THREE = (("/a.md", LINES), ("/b.md", "second\n"), ("/c.md", "third\n"))


def prune(mounted: Mounted, dsn: str) -> list[int]:
    """A year later, what can go goes; the numbers of the changes that are left."""
    let_pass(dsn, timedelta(days=365))
    pruned = list(mounted.database.pruning.prune(older_than=timedelta(days=30), keep=1))
    assert [each.memory_store_id for each in pruned] == [mounted.store_id]
    return [version.seq for version in mounted.versions()]


@pytest.mark.parametrize("reopens", [False, True])
def test_a_mount_that_was_last_synced_before_the_prune_comes_up_to_the_store(
    mounter: Mounter, dsn: str, reopens: bool
) -> None:
    mounted = mounter(*THREE)
    mounted.remote(("/a.md", "changed\n"))
    mounted.remote(("/b.md", None))
    mounted.remote(("/a.md", "changed again\n"), ("/d.md", "new\n"))
    assert prune(mounted, dsn) == [3, 6, 7]  # nothing tells of /b.md any more
    if reopens:
        mounted.reopen()
    report = mounted.sync()
    assert report.ok
    assert mounted.on_disk() == mounted.in_store()
    assert set(mounted.on_disk()) == {"/a.md", "/c.md", "/d.md"}
    assert not mounted.sync().pulled


@pytest.mark.parametrize("reopens", [False, True])
def test_edits_of_such_a_mount_are_saved_where_nobody_else_was(mounter: Mounter, dsn: str, reopens: bool) -> None:
    mounted = mounter(*THREE)
    mounted.remote(("/b.md", "changed\n"))
    mounted.remote(("/b.md", None))
    assert prune(mounted, dsn) == [1, 3]
    if reopens:
        mounted.reopen()
    mounted.write("/c.md", "edited\n")
    mounted.write("/e.md", "new\n")
    report = mounted.sync()
    assert report.ok
    assert mounted.in_store() == {"/a.md": LINES.encode(), "/c.md": b"edited\n", "/e.md": b"new\n"}
    assert mounted.on_disk() == mounted.in_store()


def test_an_edit_of_what_was_deleted_in_pruned_history_is_put_aside(mounter: Mounter, dsn: str) -> None:
    mounted = mounter(*THREE)
    mounted.remote(("/b.md", None))
    prune(mounted, dsn)
    mounted.write("/b.md", "edited\n")
    report = mounted.sync()
    assert [one.path for one in report.conflicts] == ["/b.md"]
    assert mounted.put_aside() == {"/b.md": b"edited\n"}
    assert mounted.on_disk() == mounted.in_store()


def test_a_merge_whose_base_was_pruned_is_a_conflict(mounter: Mounter, dsn: str) -> None:
    mounted = mounter(*THREE)
    mounted.remote(("/a.md", LINES.replace("six", "SIX")))
    prune(mounted, dsn)
    edited = LINES.replace("two", "TWO")
    mounted.write("/a.md", edited)
    report = mounted.sync(on_conflict="merge")
    assert [one.reason for one in report.conflicts] == [
        "was edited both here and in the store: the text that it was made from was redacted or pruned"
    ]
    assert mounted.put_aside() == {"/a.md": edited.encode()}
    assert mounted.on_disk() == mounted.in_store()


def test_a_text_that_the_store_had_brought_and_then_pruned_is_put_aside_and_never_saved(
    mounter: Mounter, dsn: str
) -> None:
    mounted = mounter(*THREE)
    mounted.remote(("/a.md", "brought\n"))
    mounted.remote(("/a.md", "newest\n"))
    # As a process leaves it that ends in mid-pull: the file is ahead of its entry.
    mounted.write("/a.md", "brought\n")
    with psycopg.connect(dsn) as owner:
        owner.execute("UPDATE memkernel.mount_baselines SET is_pulling = true")
    assert prune(mounted, dsn) == [2, 3, 5]
    mounted.reopen()
    mounted.sync()
    assert mounted.on_disk() == mounted.in_store()
    assert mounted.on_disk()["/a.md"] == b"newest\n"
    assert mounted.put_aside() == {"/a.md": b"brought\n"}
