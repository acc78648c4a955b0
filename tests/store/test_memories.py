"""Memories created and read: CONTRACT F.138-F.155 at the record layer; faults 13, 14, 15, 26."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from memkernel import ids
from memkernel.errors import (
    CapacityError,
    ContentTooLargeError,
    InvalidContentError,
    InvalidInputError,
    InvalidPathError,
    MemoryNotFoundError,
)
from memkernel.models import ABSENT, Actor, Cause, Change, Memory, MemoryStore
from memkernel.store import Database
from tests.store.people import ANN, CAUSE


def test_f138_create_answers_basic_with_hash_and_size(database: Database, store: MemoryStore) -> None:
    memory = database.memories.create(store.id, path="/a.md", content="é\n", actor=ANN)
    assert ids.is_id("mem", memory.id)
    assert ids.is_id("memver", memory.memory_version_id)
    assert (memory.memory_store_id, memory.path, memory.content) == (store.id, "/a.md", None)
    assert memory.content_sha256 == hashlib.sha256("é\n".encode()).hexdigest()
    assert memory.content_size_bytes == 3
    assert memory.created_at == memory.updated_at


def test_f139_the_full_view_brings_the_content_back(database: Database, store: MemoryStore) -> None:
    memory = database.memories.create(store.id, path="/a", content="one", actor=ANN, view="full")
    assert memory.content == "one"

    def update(**changes: Any) -> str | None:
        return database.memories.update(memory.id, memory_store_id=store.id, actor=ANN, view="full", **changes).content

    assert update(content="two") == "two"
    assert update(path="/b") == "two"
    assert update() == "two"
    assert database.memories.write(store.id, "/b", b"three", actor=ANN, view="full").content == "three"
    assert database.memories.write(store.id, "/c", "four", actor=ANN, view="full").content == "four"
    assert database.memories.edit(store.id, "/c", str.upper, actor=ANN, view="full").content == "FOUR"


def test_f140_retrieve_is_full_by_default(database: Database, store: MemoryStore, write: Callable[..., Memory]) -> None:
    memory = write("/a.md", "text")
    full = database.memories.retrieve(memory.id, memory_store_id=store.id)
    basic = database.memories.retrieve(memory.id, memory_store_id=store.id, view="basic")
    assert full.content == "text"
    assert basic == memory
    assert database.memories.at_path(store.id, "/a.md") == full
    assert database.memories.at_path(store.id, "/a.md", view="basic") == basic


@pytest.mark.parametrize("view", ["other", "", None, "FULL", 1])
def test_f141_an_unknown_view_is_refused(database: Database, store: MemoryStore, view: Any) -> None:
    memory_id, version_id = ids.mint("mem"), ids.mint("memver")
    memories, versions = database.memories, database.memory_versions
    for call in (
        lambda: memories.create(store.id, path="/a", content="", actor=ANN, view=view),
        lambda: memories.retrieve(memory_id, memory_store_id=store.id, view=view),
        lambda: memories.at_path(store.id, "/a", view=view),
        lambda: memories.update(memory_id, memory_store_id=store.id, actor=ANN, view=view),
        lambda: memories.write(store.id, "/a", "", actor=ANN, view=view),
        lambda: memories.edit(store.id, "/a", str, actor=ANN, view=view),
        lambda: memories.list(store.id, view=view),
        lambda: versions.list(store.id, view=view),
        lambda: versions.retrieve(version_id, memory_store_id=store.id, view=view),
        lambda: versions.at_ordinal(store.id, "/a", 1, view=view),
        lambda: versions.before(version_id, memory_store_id=store.id, view=view),
        lambda: versions.list_by_run(store.id, "run", view=view),
    ):
        with pytest.raises(InvalidInputError, match="view"):
            call()
    assert database.memories.entries(store.id) == []


@pytest.mark.parametrize(
    "text", ["", "plain", "naïve 日本 🎉", "a\r\nb\r\n", "\ufeffbom\n", "nul\0in\0side", "e\u0301 NFD"]
)
def test_f142_f145_fault_13_every_text_comes_back_as_it_was(
    database: Database, store: MemoryStore, write: Callable[..., Memory], text: str
) -> None:
    memory = write("/a.md", text)
    read = database.memories.at_path(store.id, "/a.md")
    assert read.content == text
    assert read.content_sha256 == memory.content_sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert read.content_size_bytes == len(text.encode())
    assert write("/a.md", text.encode()) == memory  # nothing was changed: no version


def test_f143_an_empty_content_is_legal(database: Database, store: MemoryStore, write: Callable[..., Memory]) -> None:
    assert write("/a.md", "").content_size_bytes == 0
    assert database.memories.at_path(store.id, "/a.md").content == ""


@pytest.mark.parametrize("content", [None, 7, ["text"], bytearray(b"x"), object()])
def test_f143_a_content_that_is_no_text_is_refused(database: Database, store: MemoryStore, content: Any) -> None:
    with pytest.raises(InvalidContentError):
        database.memories.create(store.id, path="/a", content=content, actor=ANN)
    if content is not None:
        with pytest.raises(InvalidContentError):
            database.memories.update(ids.mint("mem"), memory_store_id=store.id, content=content, actor=ANN)
    assert database.memories.entries(store.id) == []


def test_f144_fault_26_the_limit_counts_bytes(
    database: Database, store: MemoryStore, write: Callable[..., Memory]
) -> None:
    assert write("/a", "x" * 102_400).content_size_bytes == 102_400
    assert write("/b", "é" * 51_200).content_size_bytes == 102_400
    for content in ("x" * 102_401, "é" * 51_200 + "x", b"x" * 102_401):
        with pytest.raises(ContentTooLargeError) as refused:
            write("/c", content)
        assert (refused.value.size_bytes, refused.value.limit_bytes) == (102_401, 102_400)
    assert [path for path, _ in database.memories.entries(store.id)] == ["/a", "/b"]


@pytest.mark.parametrize("content", ["lone \ud800", b"\xff\xfe", "\udfff".encode("utf-8", "surrogatepass")])
def test_f146_what_is_no_utf8_is_refused(database: Database, store: MemoryStore, content: Any) -> None:
    with pytest.raises(InvalidContentError):
        database.memories.create(store.id, path="/a", content=content, actor=ANN)
    assert database.memories.entries(store.id) == []


BROKEN_PATHS = ["notes", "/", "//a", "/a/", "/a//b", "/./a", "/a/../b", "", "/a/.", "/.."]
FORBIDDEN_CHARACTERS = ["/a\x07", "/a\u200b", "/a\u2028", "/a\u2029", "/a\x00.md", "/a\ud800", "/\u202e.md"]
NO_PATHS = [None, 7, b"/a", ["/a"]]


@pytest.mark.parametrize("path", [*BROKEN_PATHS, *FORBIDDEN_CHARACTERS, *NO_PATHS, "/cafe\u0301.md"])
def test_f147_f150_f151_fault_14_fault_15_a_broken_path_is_refused_everywhere(
    database: Database, store: MemoryStore, write: Callable[..., Memory], path: Any
) -> None:
    memory = write("/ok.md")
    memories, versions = database.memories, database.memory_versions
    for call in (
        lambda: memories.create(store.id, path=path, content="", actor=ANN),
        lambda: memories.write(store.id, path, "", actor=ANN),
        lambda: memories.at_path(store.id, path),
        lambda: memories.edit(store.id, path, str, actor=ANN),
        lambda: memories.rename_tree(store.id, path, "/new.md", actor=ANN),
        lambda: memories.rename_tree(store.id, "/ok.md", path, actor=ANN),
        lambda: memories.apply(store.id, [Change(path, "")], actor=ANN),
        lambda: versions.at_ordinal(store.id, path, 1),
        lambda: versions.at_time(store.id, path, store.created_at),
        *(
            []
            if path is None
            else [
                lambda: memories.update(memory.id, memory_store_id=store.id, path=path, actor=ANN),
                lambda: versions.list(store.id, path=path),
            ]
        ),
    ):
        with pytest.raises(InvalidPathError):
            call()
    assert memories.entries(store.id) == [("/ok.md", 4)]


def test_f148_a_path_has_at_most_20_segments(
    database: Database, store: MemoryStore, write: Callable[..., Memory]
) -> None:
    path = "/s" * 20
    assert write(path).path == path
    with pytest.raises(InvalidPathError):
        write("/t" * 21)
    assert len(database.memories.entries(store.id)) == 1


def test_f149_a_path_has_at_most_1024_bytes(write: Callable[..., Memory]) -> None:
    path = "/" + "é" * 511 + "a"
    assert len(path.encode()) == 1_024
    assert write(path).path == path
    with pytest.raises(InvalidPathError):
        write(path + "b")


def test_f151_fault_15_the_composed_form_is_fine(write: Callable[..., Memory]) -> None:
    assert write("/caf\u00e9.md").path == "/café.md"


def test_f152_paths_differ_by_case(database: Database, store: MemoryStore, write: Callable[..., Memory]) -> None:
    assert write("/A.md").id != write("/a.md").id
    assert [path for path, _ in database.memories.entries(store.id)] == ["/A.md", "/a.md"]


def test_f153_a_memory_of_another_store_is_not_found(
    database: Database, store: MemoryStore, write: Callable[..., Memory]
) -> None:
    memory, other = write("/a.md"), database.memory_stores.create(name="other")
    for call in (
        lambda: database.memories.retrieve(memory.id, memory_store_id=other.id),
        lambda: database.memories.update(memory.id, memory_store_id=other.id, content="x", actor=ANN),
        lambda: database.memories.delete(memory.id, memory_store_id=other.id, actor=ANN),
        lambda: database.memories.at_path(other.id, "/a.md"),
    ):
        with pytest.raises(MemoryNotFoundError):
            call()


def test_f154_f155_fault_26_at_the_limit_only_creations_fail(
    limited: Callable[..., Database], store: MemoryStore
) -> None:
    database = limited(memories_per_store=2)
    one = database.memories.create(store.id, path="/1", content="", actor=ANN)
    two = database.memories.write(store.id, "/2", "", actor=ANN)
    for refused in (
        lambda: database.memories.create(store.id, path="/3", content="", actor=ANN),
        lambda: database.memories.write(store.id, "/3", "", expect=ABSENT, actor=ANN),
    ):
        with pytest.raises(CapacityError) as full:
            refused()
        assert full.value.limit == 2
    database.memories.update(one.id, memory_store_id=store.id, content="new", path="/1/moved", actor=ANN)
    database.memories.write(store.id, "/2", "new", actor=ANN)
    database.memories.rename_tree(store.id, "/2", "/2b", actor=ANN)
    database.memories.delete(two.id, memory_store_id=store.id, actor=ANN)
    restored = database.memory_versions.restore(two.memory_version_id, memory_store_id=store.id, actor=ANN)
    assert restored.path == "/2"
    with pytest.raises(CapacityError):
        database.memories.create(store.id, path="/3", content="", actor=ANN)
    assert database.memory_stores.retrieve(store.id).memory_count == 2


def test_f155_the_limit_is_2000_by_default(database: Database, store: MemoryStore) -> None:
    database.memories.apply(store.id, [Change(f"/{number}", "") for number in range(2_000)], actor=ANN)
    with pytest.raises(CapacityError, match="2,000"):
        database.memories.create(store.id, path="/one-more", content="", actor=ANN)
    assert database.memory_stores.retrieve(store.id).memory_count == 2_000


def test_a_lowered_limit_leaves_what_is_there(limited: Callable[..., Database], store: MemoryStore) -> None:
    for number in range(3):
        limited().memories.create(store.id, path=f"/{number}", content="", actor=ANN)
    small = limited(memories_per_store=2)
    small.memories.write(store.id, "/0", "edited", actor=ANN)
    with pytest.raises(CapacityError):
        small.memories.create(store.id, path="/new", content="", actor=ANN)


def test_content_has_a_limit_that_can_be_set(limited: Callable[..., Database], store: MemoryStore) -> None:
    database = limited(content_bytes=4)
    memory = database.memories.create(store.id, path="/a", content="four", actor=ANN)
    with pytest.raises(ContentTooLargeError):
        database.memories.update(memory.id, memory_store_id=store.id, content="fives", actor=ANN)
    with pytest.raises(ContentTooLargeError):
        database.memories.edit(store.id, "/a", lambda text: text + "s", actor=ANN)


@pytest.mark.parametrize(
    "actor",
    [None, "user_ann", Actor("user_actor", ""), Actor("user_actor", "nul\0"), Actor("user_actor", "\ud800")],
)
def test_an_actor_that_is_none_is_refused(database: Database, store: MemoryStore, actor: Any) -> None:
    with pytest.raises(InvalidInputError, match="actor"):
        database.memories.create(store.id, path="/a", content="", actor=actor)
    with pytest.raises(InvalidInputError, match="actor"):
        database.memories.create(store.id, path="/a", content="", actor=Actor("root", "x"))  # type: ignore[arg-type]  # no such type


@pytest.mark.parametrize("cause", ["run", Cause("nul\0", "t"), Cause("r", "\ud800")])
def test_a_cause_that_is_none_is_refused(database: Database, store: MemoryStore, cause: Any) -> None:
    with pytest.raises(InvalidInputError, match="cause"):
        database.memories.create(store.id, path="/a", content="", actor=ANN, cause=cause)


def test_entries_are_what_lies_at_or_below_in_bytewise_order(
    database: Database, store: MemoryStore, write: Callable[..., Memory]
) -> None:
    for path in ("/b/c.md", "/b-c.md", "/b.md", "/B", "/b/a/x", "/é", "/bb"):
        write(path, "12")
    entries = database.memories.entries
    assert [path for path, _ in entries(store.id)] == ["/B", "/b-c.md", "/b.md", "/b/a/x", "/b/c.md", "/bb", "/é"]
    assert entries(store.id, "/b") == [("/b/a/x", 2), ("/b/c.md", 2)]
    assert entries(store.id, "/b.md") == [("/b.md", 2)]
    assert entries(store.id, "/nothing") == []


def test_contents_stream_what_lies_at_or_below(
    database: Database, store: MemoryStore, write: Callable[..., Memory]
) -> None:
    texts = {f"/d/{number:03}": f"text {number}" for number in range(205)}
    for path, text in texts.items():
        write(path, text)
    write("/d-other", "text 7")
    write("/e\u00e9", "needle \0 ünïcode")
    contents = database.memories.contents
    assert dict(contents(store.id, "/d")) == dict(contents(store.id, "/d/")) == texts
    assert [path for path, _ in contents(store.id)] == ["/d-other", *texts, "/eé"]
    assert list(contents(store.id, "/d/007")) == [("/d/007", "text 7")]
    assert [path for path, _ in contents(store.id, containing=b"text 7")][:2] == ["/d-other", "/d/007"]
    assert list(contents(store.id, containing="ünï".encode())) == [("/eé", "needle \0 ünïcode")]
    assert list(contents(store.id, "/d/", b"\0")) == []
    assert len(list(contents(store.id, containing=b""))) == 207
    with pytest.raises(InvalidPathError):
        contents(store.id, "d")


def test_an_edit_sees_the_newest_text_and_undoes_itself(
    database: Database, store: MemoryStore, write: Callable[..., Memory]
) -> None:
    memory = write("/a.md", "one")
    edited = database.memories.edit(store.id, "/a.md", lambda text: text + " two", actor=ANN, cause=CAUSE, view="full")
    assert (edited.content, edited.id) == ("one two", memory.id)

    class MisgivingError(Exception):
        pass

    def fail(_: str) -> str:
        raise MisgivingError

    with pytest.raises(MisgivingError):
        database.memories.edit(store.id, "/a.md", fail, actor=ANN)
    with pytest.raises(InvalidContentError):
        database.memories.edit(store.id, "/a.md", lambda _: "\ud800", actor=ANN)
    with pytest.raises(MemoryNotFoundError):
        database.memories.edit(store.id, "/b.md", str, actor=ANN)
    assert database.memories.edit(store.id, "/a.md", str, actor=ANN).memory_version_id == edited.memory_version_id
    assert database.memory_stores.retrieve(store.id).head_seq == 2
