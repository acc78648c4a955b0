"""Whole lineages from any version on, and who else holds a text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memkernel import ids
from memkernel.errors import InvalidInputError, StoreNotFoundError, VersionNotFoundError
from memkernel.models import Lineage, Memory, MemoryStore
from memkernel.store import Database
from tests.store.people import ANN

Write = Callable[..., Memory]


@pytest.fixture
def lineage(database: Database, store: MemoryStore) -> Callable[..., Lineage]:
    """The versions of a memory."""

    def lineage(memory_id: str, **how: Any) -> Lineage:
        return database.memory_versions.lineage(store.id, memory_id, **how)

    return lineage


def ordinals(found: Lineage) -> list[int]:
    return [version.ordinal for version in found.versions]


def test_a_lineage_is_read_newest_first_from_any_version_on(write: Write, lineage: Callable[..., Lineage]) -> None:
    memory = [write("/a.md", f"text {number}") for number in range(1, 6)][-1]
    write("/b.md", "another")
    found = lineage(memory.id)
    assert (ordinals(found), found.first_ordinal, found.last_ordinal) == ([5, 4, 3, 2, 1], 1, 5)
    assert ordinals(lineage(memory.id, before=4)) == [3, 2, 1]
    assert ordinals(lineage(memory.id, before=4, limit=2)) == [3, 2]
    assert lineage(memory.id, before=4).last_ordinal == 5
    assert {version.content for version in found.versions} == {None}


def test_a_lineage_goes_on_after_a_deletion_and_under_a_new_path(
    database: Database, store: MemoryStore, write: Write, lineage: Callable[..., Lineage]
) -> None:
    memory = write("/a.md", "text")
    database.memories.rename_tree(store.id, "/a.md", "/b.md", actor=ANN)
    database.memories.delete(memory.id, memory_store_id=store.id, actor=ANN)
    write("/b.md", "a new memory")
    found = lineage(memory.id)
    assert [version.operation for version in found.versions] == ["deleted", "modified", "created"]


def test_a_lineage_or_a_store_that_is_not_there(
    database: Database, write: Write, lineage: Callable[..., Lineage]
) -> None:
    memory = write("/a.md", "text")
    for arguments in ({"memory_id": ids.mint("mem")}, {"memory_id": memory.id, "before": 1}):
        with pytest.raises(VersionNotFoundError):
            lineage(**arguments)
    with pytest.raises(InvalidInputError):
        lineage(memory.id, before=0)
    with pytest.raises(StoreNotFoundError):
        database.memory_versions.lineage(ids.mint("memstore"), memory.id)


def test_who_holds_a_text_and_which_of_them_are_heads(database: Database, store: MemoryStore, write: Write) -> None:
    other_store = database.memory_stores.create(name="Others")
    first = write("/a.md", "the key is 4711")
    write("/a.md", "the key is gone")
    write("/b.md", "the key is 4711")
    doomed = write("/c.md", "the key is 4711")
    database.memories.delete(doomed.id, memory_store_id=store.id, actor=ANN)
    database.memories.write(other_store.id, "/a.md", "the key is 4711", actor=ANN)
    holders = database.memory_versions.holders(store.id, first.content_sha256)
    assert [(each.version.path, each.is_head) for each in holders] == [
        ("/a.md", False),
        ("/b.md", True),
        ("/c.md", False),
    ]
    database.memory_versions.redact(holders[0].version.id, memory_store_id=store.id, actor=ANN)
    assert len(database.memory_versions.holders(store.id, first.content_sha256)) == 2


def test_nobody_holds_a_text(database: Database, store: MemoryStore) -> None:
    assert database.memory_versions.holders(store.id, "0" * 64) == []
    with pytest.raises(StoreNotFoundError):
        database.memory_versions.holders(ids.mint("memstore"), "0" * 64)
