"""Several syncs of one cell as one report: each path once, as the last of them left it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from memkernel.errors import SyncError
from memkernel.models import Actor, MemoryVersion, Operation, RefusedFile, StoreReport, SyncConflict, SyncReport
from memkernel.runtime import reports

NOTHING = StoreReport("memstore_1", "Team notes", "/mnt/memory/team-notes")


def version(path: str, ordinal: int, operation: Operation) -> MemoryVersion:
    return MemoryVersion(
        id=f"memver_{path}_{ordinal}",
        memory_store_id="memstore_1",
        memory_id=f"mem_{path}",
        seq=ordinal,
        ordinal=ordinal,
        operation=operation,
        path=path,
        content=None,
        content_sha256=None,
        content_size_bytes=None,
        created_at=datetime(2026, 11, 30, tzinfo=UTC),
        created_by=Actor("session_actor", "sesn_1"),
        redacted_at=None,
        redacted_by=None,
    )


def joined(earlier: StoreReport, later: StoreReport) -> StoreReport:
    (store,) = reports.joined(SyncReport((earlier,)), SyncReport((later,))).stores
    return store


def test_a_path_that_both_syncs_saved_is_named_once_by_its_newest_version() -> None:
    earlier = replace(NOTHING, created=(version("/w1.md", 1, "created"), version("/w2.md", 1, "created")))
    later = replace(NOTHING, modified=(version("/w1.md", 2, "modified"),))
    both = joined(earlier, later)
    assert both.created == earlier.created[1:]
    assert both.modified == later.modified
    assert [line.path for line in both.lines()] == ["/w1.md", "/w2.md"]


def test_what_a_later_sync_made_of_a_path_stands_for_what_was_said_of_it_before() -> None:
    earlier = replace(
        NOTHING, pulled=("/a.md", "/b.md"), removed=("/c.md",), refused=(RefusedFile("/d.md", "it is not text"),)
    )
    later = replace(
        NOTHING,
        created=(version("/c.md", 1, "created"), version("/d.md", 1, "created")),
        modified=(version("/a.md", 2, "modified"),),
    )
    both = joined(earlier, later)
    assert (both.pulled, both.removed, both.refused) == (("/b.md",), (), ())
    assert (both.created, both.modified) == (later.created, later.modified)


def test_what_was_put_aside_is_told_although_the_path_was_saved_afterwards() -> None:
    conflict = SyncConflict("/a.md", "was edited both here and in the store", "rej_1")
    both = joined(
        replace(NOTHING, conflicts=(conflict,), notes=("a note",)),
        replace(NOTHING, modified=(version("/a.md", 3, "modified"),), notes=("a note",)),
    )
    assert both.conflicts == (conflict,)
    assert both.notes == ("a note",)
    assert not both.ok


def test_trouble_names_the_mount_once() -> None:
    store = replace(NOTHING, trouble=SyncError("/mnt/memory/team-notes is no longer the folder that was mounted"))
    with pytest.raises(SyncError) as caught:
        reports.raise_what_is_wrong(SyncReport((store,)))
    assert str(caught.value).splitlines()[0] == (
        "/mnt/memory/team-notes is not synced: it is no longer the folder that was mounted"
    )
