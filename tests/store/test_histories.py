"""Random histories: whatever is done to a store, its log stays a log."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memkernel.errors import MemkernelError
from memkernel.models import ABSENT, Change, MemoryStore, MemoryVersion
from memkernel.store import Database
from tests.store.people import ANN

Step = Callable[[Database, str], object]

PATHS = st.sampled_from(["/a", "/b", "/a/x", "/a/y", "/b/x/z", "/c", "/d/é"])
_TEXTS = st.sampled_from(["", "one", "two", "three\n" * 900])


def _write(path: str, text: str) -> Step:
    return lambda database, store: database.memories.write(store, path, text, actor=ANN)


def _create(path: str, text: str) -> Step:
    return lambda database, store: database.memories.create(store, path=path, content=text, actor=ANN)


def _update(path: str, new_path: str | None, text: str | None) -> Step:
    def update(database: Database, store: str) -> None:
        memory = database.memories.at_path(store, path, view="basic")
        database.memories.update(memory.id, memory_store_id=store, path=new_path, content=text, actor=ANN)

    return update


def _rename(old: str, new: str) -> Step:
    return lambda database, store: database.memories.rename_tree(store, old, new, actor=ANN)


def _delete(path: str) -> Step:
    return lambda database, store: database.memories.delete_tree(store, path, actor=ANN)


def _apply(changes: list[Change]) -> Step:
    return lambda database, store: database.memories.apply(store, changes, actor=ANN)


def _redact_or_restore(number: int, redact: bool) -> Step:
    def change(database: Database, store: str) -> None:
        versions = database.memory_versions.list(store, limit=100).data
        version = versions[number % len(versions)].id
        if redact:
            database.memory_versions.redact(version, memory_store_id=store, actor=ANN)
        else:
            database.memory_versions.restore(version, memory_store_id=store, actor=ANN)

    return lambda database, store: change(database, store) if database.memory_versions.list(store).data else None


_CHANGES = st.lists(
    st.builds(Change, PATHS, st.none() | _TEXTS, st.sampled_from([None, None, ABSENT])),
    unique_by=lambda change: change.path,
    max_size=4,
)
STEPS = st.one_of(
    st.builds(_write, PATHS, _TEXTS),
    st.builds(_create, PATHS, _TEXTS),
    st.builds(_update, PATHS, st.none() | PATHS, st.none() | _TEXTS),
    st.builds(_rename, PATHS, PATHS),
    st.builds(_delete, PATHS | st.just("/")),
    st.builds(_apply, _CHANGES),
    st.builds(_redact_or_restore, st.integers(0, 99), st.booleans()),
)


def all_versions(database: Database, store_id: str) -> list[MemoryVersion]:
    """Oldest first, with their contents."""
    found: list[MemoryVersion] = []
    page = None
    while True:
        answer = database.memory_versions.list(store_id, view="full", page=page)
        found += answer.data
        page = answer.next_page
        if page is None:
            return found[::-1]


def check_log(database: Database, store_id: str) -> None:
    """What must be true of every store at any time; `verify` says the same in SQL."""
    assert database.verify(store_id).problems == ()
    store = database.memory_stores.retrieve(store_id)
    versions = all_versions(database, store_id)
    assert [version.seq for version in versions] == list(range(1, store.head_seq + 1))
    assert all(earlier.created_at <= later.created_at for earlier, later in pairwise(versions))
    lineages: dict[str, list[MemoryVersion]] = {}
    for version in versions:
        _check_version(version)
        lineages.setdefault(version.memory_id, []).append(version)
    heads: dict[str, MemoryVersion] = {}
    for lineage in lineages.values():
        assert [version.ordinal for version in lineage] == list(range(1, len(lineage) + 1))
        assert [version.operation == "created" for version in lineage] == [True] + [False] * (len(lineage) - 1)
        assert all(version.operation != "deleted" for version in lineage[:-1])
        if lineage[-1].operation != "deleted":
            heads[lineage[-1].memory_id] = lineage[-1]
    _check_heads(database, store, heads)


def _check_version(version: MemoryVersion) -> None:
    """A version is whole, or bare because it is a deletion or redacted."""
    text = (version.content, version.content_sha256, version.content_size_bytes)
    if version.redacted_at or version.operation == "deleted":
        assert text == (None, None, None)
        assert (version.path is None) == (version.redacted_at is not None)
    else:
        assert None not in (*text, version.path)


def _check_heads(database: Database, store: MemoryStore, heads: dict[str, MemoryVersion]) -> None:
    memories = database.memories.list(store.id, view="full", limit=20).data
    assert store.memory_count == len(memories) == len(heads)
    for memory in memories:
        head = heads[memory.id]  # type: ignore[union-attr]  # depth 0 lists memories only
        assert (memory.path, memory.content) == (head.path, head.content)  # type: ignore[union-attr]  # the same
        assert (memory.memory_version_id, memory.updated_at) == (head.id, head.created_at)  # type: ignore[union-attr]  # the same
    paths = [memory.path for memory in memories]
    assert paths == sorted(set(paths), key=str.encode)
    assert not [(one, other) for one in paths for other in paths if other.startswith(one + "/")]


# One database serves all examples, each with a store of its own; time says nothing about what is tested.
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, max_size=14))
def test_any_history_is_a_log_whose_projection_are_the_heads(database: Database, steps: list[Step]) -> None:
    store_id = database.memory_stores.create(name="history").id
    for step in steps:
        before = database.memory_stores.retrieve(store_id)
        try:
            step(database, store_id)
        except MemkernelError:
            after = database.memory_stores.retrieve(store_id)
            assert (after.head_seq, after.memory_count) == (before.head_seq, before.memory_count)
    check_log(database, store_id)


def test_the_log_of_a_known_history(database: Database, store: MemoryStore) -> None:
    for step in (_write("/a", "one"), _rename("/a", "/a/x"), _write("/b", "two"), _delete("/a"), _write("/a", "three")):
        step(database, store.id)
    with suppress(MemkernelError):
        _create("/a/x", "refused")(database, store.id)
    check_log(database, store.id)
    with pytest.raises(MemkernelError):
        _create("/b", "refused")(database, store.id)
