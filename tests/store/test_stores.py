"""Memory stores: CONTRACT F.117-F.137 at the record layer."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memkernel import ids
from memkernel.errors import (
    AlreadyExistsError,
    AmbiguousStoreError,
    InvalidInputError,
    InvalidPageError,
    MemoryNotFoundError,
    StoreArchivedError,
    StoreNotFoundError,
    VersionNotFoundError,
)
from memkernel.models import Memory, MemoryStore
from memkernel.store import Database
from tests.store.people import ANN


def test_f117_a_store_needs_a_name_only(database: Database) -> None:
    store = database.memory_stores.create(name="Team notes")
    assert ids.is_id("memstore", store.id)
    assert (store.name, store.description, store.metadata, store.archived_at) == ("Team notes", "", {}, None)
    assert store.created_at == store.updated_at
    assert store.created_at.tzinfo is UTC
    assert (store.head_seq, store.memory_count) == (0, 0)
    assert database.memory_stores.retrieve(store.id) == store


@pytest.mark.parametrize("name", ["", "n" * 256, "bell\x07", "tab\t", "nul\0", "lone \ud800", None, 7, b"bytes"])
def test_f118_a_broken_name_is_refused_by_field(database: Database, store: MemoryStore, name: Any) -> None:
    with pytest.raises(InvalidInputError, match="name"):
        database.memory_stores.create(name=name)
    if name is not None:
        with pytest.raises(InvalidInputError, match="name"):
            database.memory_stores.update(store.id, name=name)
    assert database.memory_stores.retrieve(store.id) == store


def test_f118_a_name_counts_characters_not_bytes(database: Database) -> None:
    assert database.memory_stores.create(name="é" * 255).name == "é" * 255


def test_f119_two_stores_may_share_a_name(database: Database) -> None:
    assert database.memory_stores.create(name="Twin").id != database.memory_stores.create(name="Twin").id


def test_f120_a_description_has_at_most_1024_characters(database: Database) -> None:
    assert database.memory_stores.create(name="n", description="é" * 1_024).description == "é" * 1_024
    with pytest.raises(InvalidInputError, match="description"):
        database.memory_stores.create(name="n", description="d" * 1_025)


@pytest.mark.parametrize("description", [None, 3, "nul\0", "\udfff"])
def test_a_description_that_is_no_storable_text_is_refused(database: Database, description: Any) -> None:
    with pytest.raises(InvalidInputError, match="description"):
        database.memory_stores.create(name="n", description=description)


@pytest.mark.parametrize(
    "metadata",
    [
        {str(number): "v" for number in range(17)},
        {"k" * 65: "v"},
        {"": "v"},
        {"k": "v" * 513},
        {"k": 1},
        {"k": None},
        {"k": {"nested": "v"}},
        {1: "v"},
        {"k": "nul\0"},
        {"k\0": "v"},
        {"k": "\ud800"},
        ["k"],
        "k",
    ],
)
def test_f121_fault_14_broken_metadata_is_refused(database: Database, metadata: Any) -> None:
    with pytest.raises(InvalidInputError, match="metadata"):
        database.memory_stores.create(name="n", metadata=metadata)


def test_f121_metadata_up_to_its_limits_is_kept(database: Database) -> None:
    metadata = {f"{number:02}" + "k" * 62: 'é"\\\n' * 128 for number in range(16)}
    store = database.memory_stores.create(name="n", metadata=metadata)
    assert store.metadata == metadata
    assert database.memory_stores.retrieve(store.id).metadata == metadata


def test_f122_a_metadata_patch_sets_removes_and_leaves(database: Database) -> None:
    store = database.memory_stores.create(name="n", metadata={"a": "1", "b": "2", "c": "3"})
    patched = database.memory_stores.update(store.id, metadata={"a": "one", "b": None, "d": "4", "unknown": None})
    assert patched.metadata == {"a": "one", "c": "3", "d": "4"}


def test_f123_a_patch_whose_result_has_too_many_pairs_changes_nothing(database: Database) -> None:
    store = database.memory_stores.create(name="n", metadata={str(number): "v" for number in range(15)})
    with pytest.raises(InvalidInputError, match="metadata"):
        database.memory_stores.update(store.id, name="other", metadata={"x": "1", "y": "2"})
    assert database.memory_stores.retrieve(store.id) == store
    replaced = database.memory_stores.update(store.id, metadata={"0": None, "x": "1", "y": "2"})
    assert len(replaced.metadata) == 16


@pytest.mark.parametrize("nothing", ["", None])
def test_f124_f125_an_empty_or_null_description_clears_it(database: Database, nothing: str | None) -> None:
    store = database.memory_stores.create(name="n", description="d")
    assert database.memory_stores.update(store.id, description=nothing).description == ""


def test_f125_a_null_name_or_metadata_leaves_it(database: Database) -> None:
    store = database.memory_stores.create(name="n", description="d", metadata={"k": "v"})
    assert database.memory_stores.update(store.id, name=None, metadata=None) == store


def test_f126_only_a_real_update_moves_updated_at(database: Database) -> None:
    store = database.memory_stores.create(name="n", description="d", metadata={"k": "v"})
    assert database.memory_stores.update(store.id) == store
    assert database.memory_stores.update(store.id, name="n", description="d", metadata={"k": "v", "x": None}) == store
    changed = database.memory_stores.update(store.id, name="m")
    assert changed.updated_at > store.updated_at
    assert changed.created_at == store.created_at


def test_f127_memories_leave_the_stores_updated_at(
    database: Database, store: MemoryStore, write: Callable[..., Memory]
) -> None:
    memory = write("/a.md")
    write("/a.md", "other")
    database.memories.delete(memory.id, memory_store_id=store.id, actor=ANN)
    after = database.memory_stores.retrieve(store.id)
    assert after.updated_at == store.updated_at
    assert (after.head_seq, after.memory_count) == (3, 0)


def test_f128_stores_are_listed_newest_first_over_pages_of_one(fresh_database: Database) -> None:
    stores = fresh_database.memory_stores
    made = [stores.create(name=f"store {number}").id for number in range(5)]
    seen: list[str] = []
    page = None
    while True:
        listing = stores.list(limit=1, page=page)
        seen += [store.id for store in listing.data]
        page = listing.next_page
        if page is None:
            break
    assert seen == made[::-1]


def test_f129_archived_stores_are_listed_on_request(fresh_database: Database) -> None:
    stores = fresh_database.memory_stores
    kept, gone = stores.create(name="kept"), stores.create(name="gone")
    gone = stores.archive(gone.id)
    assert stores.list().data == [kept]
    assert stores.list(include_archived=True).data == [gone, kept]


def test_f130_bounds_in_time_are_inclusive(fresh_database: Database) -> None:
    stores = fresh_database.memory_stores
    first, middle, last = (stores.create(name=str(number)) for number in range(3))
    at = middle.created_at
    assert stores.list(created_at_gte=at).data == [last, middle]
    assert stores.list(created_at_lte=at).data == [middle, first]
    assert stores.list(created_at_gte=at, created_at_lte=at).data == [middle]
    assert stores.list(created_at_gte=at.replace(tzinfo=None)).data == [last, middle]
    assert stores.list(created_at_gte=at + timedelta(microseconds=1)).data == [last]


@pytest.mark.parametrize("limit", [0, 101, -1, "abc", "20", 20.0, True, None])
def test_f131_a_limit_is_a_number_from_1_to_100(database: Database, limit: Any) -> None:
    with pytest.raises(InvalidInputError, match="limit"):
        database.memory_stores.list(limit=limit)


def test_f131_a_page_holds_20_by_default(fresh_database: Database) -> None:
    for number in range(21):
        fresh_database.memory_stores.create(name=str(number))
    assert len(fresh_database.memory_stores.list().data) == 20
    assert len(fresh_database.memory_stores.list(limit=100).data) == 21


@pytest.mark.parametrize("field", ["created_at_gte", "created_at_lte"])
def test_a_bound_that_is_no_time_is_refused(database: Database, field: str) -> None:
    with pytest.raises(InvalidInputError, match=field):
        database.memory_stores.list(**{field: "2026-11-30"})  # type: ignore[arg-type]  # what a caller must not pass


def test_fault_17_a_token_of_another_listing_is_refused(fresh_database: Database) -> None:
    stores = fresh_database.memory_stores
    for number in range(3):
        stores.create(name=str(number))
    token = stores.list(limit=1).next_page
    assert token
    assert stores.list(limit=2, page=token).data  # the limit is not part of the binding
    for listing in (
        lambda: stores.list(include_archived=True, page=token),
        lambda: stores.list(created_at_lte=datetime.now(UTC), page=token),
        lambda: stores.list(page=token + "x"),
        lambda: stores.list(page="page_"),
    ):
        with pytest.raises(InvalidPageError):
            listing()


def test_f132_archiving_again_returns_the_same_record(database: Database, store: MemoryStore) -> None:
    archived = database.memory_stores.archive(store.id)
    assert archived.archived_at
    assert archived.updated_at >= store.updated_at
    assert database.memory_stores.archive(store.id) == archived
    assert database.memory_stores.retrieve(store.id) == archived


def test_f133_an_archived_store_cannot_be_updated(database: Database, store: MemoryStore) -> None:
    database.memory_stores.archive(store.id)
    with pytest.raises(StoreArchivedError):
        database.memory_stores.update(store.id, name="other")
    with pytest.raises(StoreArchivedError):
        database.memory_stores.update(store.id)


def test_f134_deleting_a_store_takes_everything(
    database: Database, store: MemoryStore, write: Callable[..., Memory]
) -> None:
    memory = write("/a.md")
    write("/a.md", "other")
    database.memory_stores.delete(store.id)
    with pytest.raises(StoreNotFoundError):
        database.memory_stores.retrieve(store.id)
    with pytest.raises(StoreNotFoundError):
        database.memories.retrieve(memory.id, memory_store_id=store.id)
    with pytest.raises(StoreNotFoundError):
        database.memory_versions.retrieve(memory.memory_version_id, memory_store_id=store.id)
    with pytest.raises(StoreNotFoundError):
        database.memory_stores.delete(store.id)
    tables = database.dump({"memories": ["memory_store_id"], "memory_versions": ["memory_store_id"]})
    assert not [row for _, rows in tables for row in rows if row[0] == store.id]


def test_f136_an_archived_store_takes_no_writes_not_even_without_effect(
    database: Database, store: MemoryStore, write: Callable[..., Memory]
) -> None:
    memory = write("/a.md", "text")
    database.memory_stores.archive(store.id)
    memories = database.memories
    for change in (
        lambda: memories.create(store.id, path="/b.md", content="", actor=ANN),
        lambda: memories.update(memory.id, memory_store_id=store.id, content="other", actor=ANN),
        lambda: memories.update(memory.id, memory_store_id=store.id, actor=ANN),
        lambda: memories.update(ids.mint("mem"), memory_store_id=store.id, actor=ANN),
        lambda: memories.write(store.id, "/a.md", "text", actor=ANN),
        lambda: memories.rename_tree(store.id, "/a.md", "/c.md", actor=ANN),
        lambda: memories.edit(store.id, "/a.md", str.upper, actor=ANN),
        lambda: database.memory_versions.restore(memory.memory_version_id, memory_store_id=store.id, actor=ANN),
    ):
        with pytest.raises(StoreArchivedError):
            change()
    assert database.memories.at_path(store.id, "/a.md").memory_version_id == memory.memory_version_id


def test_f137_an_archived_store_is_read_lets_memories_go_and_is_redacted(
    database: Database, store: MemoryStore, write: Callable[..., Memory]
) -> None:
    memory, other = write("/a.md"), write("/d/b.md")
    database.memory_stores.archive(store.id)
    assert database.memories.retrieve(memory.id, memory_store_id=store.id).content == "text"
    assert len(database.memories.list(store.id).data) == 2
    database.memories.delete(memory.id, memory_store_id=store.id, actor=ANN)
    assert database.memories.delete_tree(store.id, "/d", actor=ANN) == 1
    redacted = database.memory_versions.redact(other.memory_version_id, memory_store_id=store.id, actor=ANN)
    assert redacted.redacted_at
    database.memory_stores.delete(store.id)


@pytest.mark.parametrize("ident", ["", "memstore_", "memstore_" + "0" * 26, "x\0y", "\ud800", "../a?b", None, 7])
def test_f153_a_store_id_that_names_nothing_is_not_found(database: Database, ident: Any) -> None:
    memory_id, version_id = ids.mint("mem"), ids.mint("memver")
    for call in (
        lambda: database.memory_stores.retrieve(ident),
        lambda: database.memory_stores.update(ident, name="n"),
        lambda: database.memory_stores.archive(ident),
        lambda: database.memory_stores.delete(ident),
        lambda: database.memories.create(ident, path="/a", content="", actor=ANN),
        lambda: database.memories.retrieve(memory_id, memory_store_id=ident),
        lambda: database.memories.update(memory_id, memory_store_id=ident, content="", actor=ANN),
        lambda: database.memories.delete(memory_id, memory_store_id=ident, actor=ANN),
        lambda: database.memories.at_path(ident, "/a"),
        lambda: database.memories.entries(ident),
        lambda: list(database.memories.contents(ident)),
        lambda: database.memories.list(ident),
        lambda: database.memories.list(ident, depth=1),
        lambda: database.memories.write(ident, "/a", "", actor=ANN),
        lambda: database.memories.edit(ident, "/a", str, actor=ANN),
        lambda: database.memories.rename_tree(ident, "/a", "/b", actor=ANN),
        lambda: database.memories.delete_tree(ident, "/a", actor=ANN),
        lambda: database.memory_versions.retrieve(version_id, memory_store_id=ident),
        lambda: database.memory_versions.list(ident),
        lambda: database.memory_versions.list_by_run(ident, "run_1"),
        lambda: database.memory_versions.at_ordinal(ident, "/a", 1),
        lambda: database.memory_versions.at_time(ident, "/a", datetime.now(UTC)),
        lambda: database.memory_versions.before(version_id, memory_store_id=ident),
        lambda: database.memory_versions.redact(version_id, memory_store_id=ident, actor=ANN),
        lambda: database.memory_versions.restore(version_id, memory_store_id=ident, actor=ANN),
    ):
        with pytest.raises(StoreNotFoundError):
            call()


@pytest.mark.parametrize("ident", ["", "mem_" + "0" * 26, "memver_" + "0" * 26, "x\0y", "\ud800", "/a", None, 7])
def test_f153_f210_an_id_that_names_nothing_in_the_store_is_not_found(
    database: Database, store: MemoryStore, ident: Any
) -> None:
    for call in (
        lambda: database.memories.retrieve(ident, memory_store_id=store.id),
        lambda: database.memories.update(ident, memory_store_id=store.id, content="", actor=ANN),
        lambda: database.memories.delete(ident, memory_store_id=store.id, actor=ANN),
    ):
        with pytest.raises(MemoryNotFoundError):
            call()
    for call in (
        lambda: database.memory_versions.retrieve(ident, memory_store_id=store.id),
        lambda: database.memory_versions.before(ident, memory_store_id=store.id),
        lambda: database.memory_versions.redact(ident, memory_store_id=store.id, actor=ANN),
        lambda: database.memory_versions.restore(ident, memory_store_id=store.id, actor=ANN),
    ):
        with pytest.raises(VersionNotFoundError):
            call()


# -- by name -------------------------------------------------------------------------------------


def test_a_store_is_found_by_id_then_name_then_slug(fresh_database: Database) -> None:
    stores = fresh_database.memory_stores
    notes, slugged = stores.create(name="Team notes"), stores.create(name="team-plans")
    assert stores.find(notes.id) == notes
    assert stores.find("Team notes") == notes
    assert stores.find("team-notes") == notes
    assert stores.find("team-plans") == slugged
    stores.create(name="Team plans")
    assert stores.find("team-plans") == slugged  # the exact name comes before a slug


def test_a_store_without_a_slug_of_its_own_is_found_by_its_ids_slug(fresh_database: Database) -> None:
    store = fresh_database.memory_stores.create(name="日本語")
    assert fresh_database.memory_stores.find(store.id.replace("_", "-")) == store


def test_active_stores_are_found_before_archived_ones(fresh_database: Database) -> None:
    stores = fresh_database.memory_stores
    old = stores.archive(stores.create(name="Notes").id)
    assert stores.find("Notes") == old
    assert stores.find("notes") == old
    new = stores.create(name="Notes")
    assert stores.find("Notes") == new
    assert stores.find("notes") == new


def test_an_ambiguous_name_lists_the_candidates(fresh_database: Database) -> None:
    stores = fresh_database.memory_stores
    one, other = stores.create(name="Notes"), stores.create(name="Notes")
    for ref in ("Notes", "notes"):
        with pytest.raises(AmbiguousStoreError) as refused:
            stores.find(ref)
        assert set(refused.value.candidates) == {one.id, other.id}
    with pytest.raises(AmbiguousStoreError):
        stores.get_or_create("Notes")


@pytest.mark.parametrize("ref", ["Tema notes", "team-note", "", "\0", "\ud800", "memstore_" + "0" * 26, None, 3])
def test_a_name_that_names_nothing_says_what_is_near(fresh_database: Database, ref: Any) -> None:
    fresh_database.memory_stores.create(name="Team notes")
    with pytest.raises(StoreNotFoundError) as missing:
        fresh_database.memory_stores.find(ref)
    assert missing.value.near in ((), ("Team notes",))
    assert (missing.value.near == ("Team notes",)) == (isinstance(ref, str) and ref.lower().startswith("te"))


def test_fault_29_getting_or_creating_at_once_makes_one_store(fresh_database: Database) -> None:
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(fresh_database.memory_stores.get_or_create, ["Notes"] * 16))
    assert len({store.id for store in found}) == 1
    assert len(fresh_database.memory_stores.list().data) == 1


def test_getting_or_creating_makes_a_new_store_beside_an_archived_one(fresh_database: Database) -> None:
    stores = fresh_database.memory_stores
    old = stores.archive(stores.get_or_create("Notes", description="old").id)
    new = stores.get_or_create("Notes", description="new")
    assert (new.id != old.id, new.description) == (True, "new")
    assert stores.get_or_create("Notes", description="ignored") == new


def test_a_unique_name_is_refused_where_an_active_store_has_it(fresh_database: Database) -> None:
    stores = fresh_database.memory_stores
    first = stores.create(name="Notes", unique=True)
    with pytest.raises(AlreadyExistsError):
        stores.create(name="Notes", unique=True)
    stores.archive(first.id)
    assert stores.create(name="Notes", unique=True)


def test_a_unique_name_asked_for_at_once_is_given_once(fresh_database: Database) -> None:
    def create(_: int) -> bool:
        try:
            fresh_database.memory_stores.create(name="Notes", unique=True)
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(create, range(8))) == 1
