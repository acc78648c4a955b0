"""Many changes in one transaction: CONTRACT D.4 and 0.3 row 12 at the record layer; fault 14."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel.errors import (
    CapacityError,
    ContentTooLargeError,
    InvalidContentError,
    InvalidInputError,
    InvalidPathError,
    PathConflictError,
    PreconditionFailedError,
    StoreArchivedError,
)
from memkernel.models import ABSENT, Change, Memory, MemoryStore, MemoryVersion
from memkernel.store import Database
from memkernel.store.batches import Head, Wanted, decide
from tests.store.people import ANN, CAUSE, SESSION

Apply = Callable[..., list[MemoryVersion | None]]


@pytest.fixture
def apply(database: Database, store: MemoryStore) -> Apply:
    def apply(*changes: Change) -> list[MemoryVersion | None]:
        return database.memories.apply(store.id, changes, actor=SESSION, cause=CAUSE)

    return apply


@pytest.fixture
def texts(database: Database, store: MemoryStore) -> Callable[[], dict[str, str]]:
    return lambda: dict(database.memories.contents(store.id))


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_deletions_come_first_then_updates_then_creations(
    database: Database, store: MemoryStore, write: Callable[..., Memory], apply: Apply
) -> None:
    edited, gone = write("/edited", "one"), write("/gone", "two")
    made = apply(Change("/new", "é\0"), Change("/edited", b"three"), Change("/gone", None))
    assert [version and (version.operation, version.seq, version.ordinal) for version in made] == [
        ("created", 5, 1),
        ("modified", 4, 2),
        ("deleted", 3, 2),
    ]
    assert [version and version.memory_id for version in made[1:]] == [edited.id, gone.id]
    assert len({version and version.created_at for version in made}) == 1
    stored = {version.id: version for version in database.memory_versions.list(store.id).data}
    assert all(version and stored[version.id] == version for version in made)
    by_run = database.memory_versions.list_by_run(store.id, CAUSE.run_id, view="full")
    assert [version.content for version in by_run] == [None, "three", "é\0"]
    after = database.memory_stores.retrieve(store.id)
    assert (after.head_seq, after.memory_count) == (5, 2)
    memory = database.memories.at_path(store.id, "/new")
    assert made[0]
    assert (memory.id, memory.memory_version_id) == (made[0].memory_id, made[0].id)
    assert memory.created_at == memory.updated_at == made[0].created_at


def test_what_is_so_already_is_left_alone_whatever_is_expected(
    database: Database, store: MemoryStore, write: Callable[..., Memory], apply: Apply
) -> None:
    write("/a", "one")
    assert (
        apply(Change("/a", "one", ABSENT), Change("/gone", None, sha256("x")), Change("/never", None, ABSENT))
        == [None] * 3
    )
    assert apply() == []
    assert database.memory_stores.retrieve(store.id).head_seq == 1


@pytest.mark.parametrize(
    "stale",
    [
        Change("/a", "two", sha256("zero")),
        Change("/a", "two", ABSENT),
        Change("/a", None, sha256("zero")),
        Change("/new", "two", sha256("one")),
    ],
)
def test_one_stale_precondition_undoes_the_whole_batch(
    database: Database,
    store: MemoryStore,
    apply: Apply,
    texts: Callable[[], dict[str, str]],
    stale: Change,
) -> None:
    apply(Change("/a", "one"))
    with pytest.raises(PreconditionFailedError) as failed:
        apply(Change("/fine", "text"), stale, Change("/b", None))
    assert failed.value.path == stale.path
    assert failed.value.actual == (sha256("one") if stale.path == "/a" else None)
    assert texts() == {"/a": "one"}
    assert database.memory_stores.retrieve(store.id).head_seq == 1


def test_a_file_gives_way_to_a_directory_and_back(apply: Apply, texts: Callable[[], dict[str, str]]) -> None:
    apply(Change("/a", "file"), Change("/b/c", "below"))
    apply(Change("/a/x", "below"), Change("/a", None), Change("/b", "file"), Change("/b/c", None))
    assert texts() == {"/a/x": "below", "/b": "file"}


@pytest.mark.parametrize(
    ("held", "new", "named"),
    [
        (["/a"], ["/a/b"], ("/a/b", "/a")),
        (["/a/b/c"], ["/a"], ("/a", "/a/b/c")),
        (["/a-b", "/a.c"], ["/a/x", "/a"], ("/a", "/a/x")),
        (["/z/y", "/x"], ["/fine", "/z"], ("/z", "/z/y")),
        ([], ["/a/b", "/a/b/c"], ("/a/b", "/a/b/c")),
    ],
)
def test_a_result_that_overlaps_is_refused(
    apply: Apply, texts: Callable[[], dict[str, str]], held: list[str], new: list[str], named: tuple[str, str]
) -> None:
    apply(*(Change(path, "held") for path in held))
    with pytest.raises(PathConflictError) as conflict:
        apply(*(Change(path, "new") for path in new))
    assert (conflict.value.path, conflict.value.conflicting_path) == named
    assert conflict.value.conflicting_memory_id.startswith("mem_")
    assert sorted(texts()) == sorted(held)


def test_capacity_is_judged_on_the_result(
    limited: Callable[..., Database], store: MemoryStore, texts: Callable[[], dict[str, str]]
) -> None:
    memories = limited(memories_per_store=2).memories
    memories.apply(store.id, [Change("/1", ""), Change("/2", "")], actor=ANN)
    with pytest.raises(CapacityError):
        memories.apply(store.id, [Change("/3", ""), Change("/1", "edited")], actor=ANN)
    memories.apply(store.id, [Change("/3", ""), Change("/1", None), Change("/2", "edited")], actor=ANN)
    assert sorted(texts()) == ["/2", "/3"]


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        (Change("/a\0.md", "x"), InvalidPathError),
        (Change("a", "x"), InvalidPathError),
        (Change("/a", "\ud800"), InvalidContentError),
        (Change("/a", b"\xff"), InvalidContentError),
        (Change("/a", "x" * 102_401), ContentTooLargeError),
        (Change("/a", 7), InvalidContentError),  # type: ignore[arg-type]  # what a caller must not pass
        (Change("/a", "x", "hash"), InvalidInputError),
        (Change("/fine-0", "again"), InvalidInputError),
    ],
)
def test_fault_14_a_broken_member_is_refused_before_anything_is_sent(
    database: Database, store: MemoryStore, apply: Apply, broken: Change, error: type[Exception]
) -> None:
    with pytest.raises(error):
        apply(*(Change(f"/fine-{number}", "text") for number in range(4)), broken)
    assert database.memory_stores.retrieve(store.id).head_seq == 0


def test_fault_14_contents_may_hold_any_utf8(apply: Apply, texts: Callable[[], dict[str, str]]) -> None:
    wanted = {"/nul": "a\0b", "/empty": "", "/bom": "\ufeff", "/large": "é" * 51_200, "/crlf": "a\r\n\t\\N"}
    apply(*(Change(path, text) for path, text in wanted.items()))
    assert texts() == wanted


def test_an_archived_store_lets_go_and_takes_nothing(
    database: Database, store: MemoryStore, write: Callable[..., Memory], apply: Apply
) -> None:
    write("/a", "one")
    write("/b", "two")
    database.memory_stores.archive(store.id)
    with pytest.raises(StoreArchivedError):
        apply(Change("/a", None), Change("/b", "changed"))
    assert apply(Change("/a", None), Change("/b", "two"))[1] is None
    assert [path for path, _ in database.memories.entries(store.id)] == ["/b"]


def test_a_full_store_is_rewritten_and_emptied_at_once(
    database: Database, store: MemoryStore, apply: Apply, texts: Callable[[], dict[str, str]]
) -> None:
    paths = [f"/d{number % 40}/{number}.md" for number in range(2_000)]
    for turn in range(2):
        made = apply(*(Change(path, f"{turn} {path}") for path in paths))
        assert [version and version.seq for version in made] == [turn * 2_000 + n for n in range(1, 2_001)]
    assert texts() == {path: f"1 {path}" for path in paths}
    assert all(apply(*(Change(path, None) for path in paths)))
    after = database.memory_stores.retrieve(store.id)
    assert (after.head_seq, after.memory_count) == (6_000, 0)


# -- the decision, which is pure ------------------------------------------------------------------

_PATHS = st.sampled_from(["/a", "/b", "/c"])
_HASHES = st.sampled_from([bytes([number]) * 32 for number in range(2)])
_HEADS = st.dictionaries(_PATHS, st.builds(Head, st.just("mem_1"), _HASHES, st.integers(1, 9)))


def _wanted(path: str, sha256: bytes | None, expect: Any) -> Wanted:
    return Wanted(path, None if sha256 is None else b"data", sha256, expect)


_WANTED = st.lists(
    st.builds(_wanted, _PATHS, st.none() | _HASHES, st.none() | st.just(ABSENT) | _HASHES),
    unique_by=lambda change: change.path,
)


@given(wanted=_WANTED, heads=_HEADS)
def test_after_a_batch_every_path_is_as_it_was_wanted(wanted: list[Wanted], heads: dict[str, Head]) -> None:
    try:
        decided = decide(wanted, heads)
    except PreconditionFailedError as failed:
        (change,) = (change for change in wanted if change.path == failed.path)
        head = heads.get(change.path)
        assert change.sha256 != (head and head.sha256)
        assert change.expect is not None
        return
    after = {path: head.sha256 for path, head in heads.items()}
    for one in decided:
        head = heads.get(one.wanted.path)
        assert one.operation == ("created" if head is None else "deleted" if one.wanted.data is None else "modified")
        assert one.ordinal == (1 if head is None else head.ordinal + 1)
        after.pop(one.wanted.path, None)
        if one.wanted.sha256 is not None:
            after[one.wanted.path] = one.wanted.sha256
    assert all(after.get(change.path) == change.sha256 for change in wanted)
    order = ["deleted", "modified", "created"]
    assert [order.index(one.operation) for one in decided] == sorted(order.index(one.operation) for one in decided)
