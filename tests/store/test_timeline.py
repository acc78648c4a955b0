"""A store as of a point of its history, and what differs between two: always what replaying its log says."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memkernel.errors import (
    HistoryPrunedError,
    InvalidInputError,
    InvalidPathError,
    MemkernelError,
    StoreNotFoundError,
)
from memkernel.models import MemoryStore, MemoryVersion, Point, StoreChange
from memkernel.store import Database, timeline
from tests.store.people import ANN
from tests.store.test_histories import STEPS, Step, all_versions
from tests.store.test_prune import History

YEAR = timedelta(days=365)

State = dict[str, MemoryVersion]
"""The current version of each memory by the memory's id."""

Known = Mapping[str, tuple[str, str | None]]
"""By path the id and the hash of each version that is not redacted."""


def replayed(versions: list[MemoryVersion], seq: int) -> State:
    """What the log says was there after a change."""
    state: State = {}
    for version in versions:
        if version.seq <= seq:
            state.pop(version.memory_id, None)
            if version.operation != "deleted":
                state[version.memory_id] = version
    return state


def known(state: State) -> Known:
    """What is not redacted of it."""
    return {each.path: (each.id, each.content_sha256) for each in state.values() if each.path}


def as_of(database: Database, store_id: str, seq: int) -> tuple[Known, set[str]]:
    """The same by the statement, and the redacted versions' ids."""
    found = database.timeline.as_of(store_id, seq)
    paths = [memory.path for memory in found.memories]
    assert paths == sorted(paths, key=str.encode)
    memories = {memory.path: (memory.memory_version_id, memory.content_sha256) for memory in found.memories}
    return memories, {version.id for version in found.redacted}


def _applied(old: State, changes: list[StoreChange]) -> Known:
    """The known part of a state after the changes."""
    left = dict(known(old))
    for change in changes:
        if change.old and change.old.path:
            del left[change.old.path]
    for change in changes:
        if change.kind != "deleted" and change.new and change.new.path:
            assert change.new.path not in left
            left[change.new.path] = (change.new.id, change.new.content_sha256)
    return left


def _hashes(state: Known) -> dict[str, str | None]:
    return {path: sha256 for path, (_, sha256) in state.items()}


def check_timeline(database: Database, store_id: str) -> None:
    """Every point, and every two of them."""
    versions = all_versions(database, store_id)
    states = [replayed(versions, seq) for seq in range(len(versions) + 1)]
    for seq, state in enumerate(states):
        assert as_of(database, store_id, seq) == (known(state), {each.id for each in state.values() if not each.path})
    for old, new in product(range(len(states)), repeat=2):
        _check_changes(database.timeline.compare(store_id, old, new), states[old], states[new])


def _check_changes(changes: list[StoreChange], old: State, new: State) -> None:
    assert _hashes(_applied(old, changes)) == _hashes(known(new))
    for change in changes:
        there = {"created": (False, True), "deleted": (True, False)}.get(change.kind, (True, True))
        alive = [bool(side and side.operation != "deleted") for side in (change.old, change.new)]
        assert tuple(alive) == there
        assert (change.old_path is not None) == (change.kind == "renamed")
        if change.kind == "modified" and change.old and change.new and change.old.path and change.new.path:
            assert change.old.content_sha256 != change.new.content_sha256
    paths = [change.path for change in changes if change.path]
    assert paths == sorted(paths, key=str.encode)
    assert all(change.path is None for change in changes[len(paths) :])


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, max_size=9))
def test_any_point_of_any_history_is_what_its_log_says(database: Database, steps: list[Step]) -> None:
    store_id = database.memory_stores.create(name="history").id
    for step in steps:
        with suppress(MemkernelError):
            step(database, store_id)
    check_timeline(database, store_id)


@settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=st.lists(STEPS, max_size=8), after=st.lists(STEPS, max_size=5), keep=st.integers(1, 2))
def test_pruning_changes_no_point_that_can_still_be_asked_for(
    database: Database, shared_dsn: str, before: list[Step], after: list[Step], keep: int
) -> None:
    history = History(database, shared_dsn, database.memory_stores.create(name="history").id)
    for steps in (before, after):
        history.age(365)
        for step in steps:
            with suppress(MemkernelError):
                step(database, history.id)
    newest = database.memory_stores.retrieve(history.id).head_seq
    points = {seq: as_of(database, history.id, seq) for seq in range(newest + 1)}
    pruned = history.prune(keep=keep)
    through = pruned.pruned_through_seq if pruned else 0
    for seq, seen in points.items():
        if seq >= through:
            assert as_of(database, history.id, seq) == seen
            assert database.timeline.point(history.id, seq).seq == seq
            continue
        for refused in (database.timeline.as_of, database.timeline.point):
            with pytest.raises(HistoryPrunedError, match=f"change {seq}") as caught:
                refused(history.id, seq)
            assert caught.value.pruned_through_seq == through
        for pair in ((seq, newest), (newest, seq)):
            with pytest.raises(HistoryPrunedError):
                database.timeline.compare(history.id, *pair)


# -- a known history -------------------------------------------------------------------------------


def _kinds(database: Database, history: History, old: int, new: int) -> list[tuple[str, str | None, str | None]]:
    return [(each.kind, each.old_path, each.path) for each in database.timeline.compare(history.id, old, new)]


@pytest.fixture
def history(database: Database, shared_dsn: str, store: MemoryStore) -> History:
    """An empty store."""
    return History(database, shared_dsn, store.id)


def test_each_kind_of_change_is_told_as_what_it_is(database: Database, history: History) -> None:
    gone = history.write("/gone.md", "1")
    history.write("/moved.md", "2")
    history.write("/same.md", "3")
    history.write("/text.md", "4")
    history.write("/text.md", "5")
    history.rename("/moved.md", "/moved/here.md")
    history.delete(gone)
    history.write("/new.md", "8")
    assert _kinds(database, history, 4, 8) == [
        ("deleted", None, "/gone.md"),
        ("renamed", "/moved.md", "/moved/here.md"),
        ("created", None, "/new.md"),
        ("modified", None, "/text.md"),
    ]
    assert _kinds(database, history, 8, 4) == [
        ("created", None, "/gone.md"),
        ("renamed", "/moved/here.md", "/moved.md"),
        ("deleted", None, "/new.md"),
        ("modified", None, "/text.md"),
    ]
    assert _kinds(database, history, 8, 8) == []
    deleted = database.timeline.compare(history.id, 4, 8)[0]
    assert deleted.old
    assert (deleted.old.seq, deleted.new and deleted.new.seq) == (1, 7)  # the deletion says by whom and when
    assert deleted.new
    assert deleted.new.created_by == ANN


def test_what_came_and_went_between_the_points_is_no_difference(database: Database, history: History) -> None:
    history.write("/a.md", "one")
    history.delete(history.write("/short.md", "lived"))
    history.write("/a.md", "two")
    history.write("/a.md", "one")
    assert _kinds(database, history, 1, 5) == []
    assert _kinds(database, history, 2, 4) == [("modified", None, "/a.md"), ("deleted", None, "/short.md")]


def test_a_path_that_is_used_again_is_one_change(database: Database, history: History) -> None:
    history.delete(history.write("/a.md", "one"))
    again = history.write("/a.md", "two")
    (change,) = database.timeline.compare(history.id, 1, 3)
    assert (change.kind, change.path) == ("modified", "/a.md")
    assert change.old
    assert change.new
    assert change.old.memory_id != change.new.memory_id == again.id
    history.delete(again)
    history.write("/a.md", "one")
    assert _kinds(database, history, 1, 5) == []


def test_a_rename_onto_a_deleted_path_is_a_rename_and_a_deletion(database: Database, history: History) -> None:
    history.write("/a.md", "a")
    history.delete(history.write("/b.md", "b"))
    history.rename("/a.md", "/b.md")
    assert _kinds(database, history, 2, 4) == [("deleted", None, "/b.md"), ("renamed", "/a.md", "/b.md")]


def test_a_redacted_version_is_told_apart_from_what_never_was(database: Database, history: History) -> None:
    memory = history.write("/a.md", "secret")
    history.write("/a.md", "clean")
    database.memory_versions.redact(memory.memory_version_id, memory_store_id=history.id, actor=ANN)
    found = database.timeline.as_of(history.id, 1)
    assert found.memories == []
    assert [version.id for version in found.redacted] == [memory.memory_version_id]
    assert found.redacted[0].redacted_by == ANN
    assert database.timeline.as_of(history.id, 1, "/elsewhere").redacted == found.redacted  # it may have been there
    (change,) = database.timeline.compare(history.id, 1, 2)
    assert (change.kind, change.path) == ("modified", "/a.md")
    (change,) = database.timeline.compare(history.id, 0, 1)
    assert (change.kind, change.path) == ("created", None)


def test_a_memory_of_then_is_as_it_was_then(database: Database, history: History) -> None:
    one = history.write("/a.md", "one")
    history.write("/a.md", "two")
    gone = history.write("/gone.md", "three")
    history.delete(gone)
    memories = database.timeline.as_of(history.id, 3).memories
    assert [replace(each, content=None) for each in (database.memories.at_path(history.id, "/a.md"), gone)] == memories
    (memory,) = database.timeline.as_of(history.id, 1).memories
    assert memory == replace(one, content=None)


@pytest.mark.parametrize(
    ("path", "found"),
    [("/", ["/d.md", "/d/a", "/d/b/c", "/d0"]), ("/d", ["/d/a", "/d/b/c"]), ("/d/b/", ["/d/b/c"]), ("/d0", ["/d0"])],
)
def test_a_part_of_the_store(database: Database, history: History, path: str, found: list[str]) -> None:
    for each in ("/d/a", "/d/b/c", "/d.md", "/d0"):
        history.write(each, "text")
    assert [memory.path for memory in database.timeline.as_of(history.id, 4, path).memories] == found


# -- points ----------------------------------------------------------------------------------------


def test_a_point_is_a_number_or_a_time(database: Database, history: History) -> None:
    moments = [history.write("/a.md", text).updated_at for text in ("one", "two", "three")]
    point = database.timeline.point
    assert point(history.id, 2) == Point(history.id, 2, moments[1])
    assert database.timeline.span(history.id) == (0, 3)
    assert point(history.id, 0) == Point(history.id, 0, None)
    assert point(history.id, -1) == Point(history.id, 2, moments[1])
    assert point(history.id, -3).seq == 0
    assert point(history.id) == point(history.id, 3) == Point(history.id, 3, moments[2])
    assert point(history.id, moments[1]).seq == 2
    assert point(history.id, moments[1] - timedelta(microseconds=1)).seq == 1
    assert point(history.id, moments[1].replace(tzinfo=None)).seq == 2
    assert point(history.id, moments[0] - YEAR) == Point(history.id, 0, None)
    assert point(history.id, moments[2] + YEAR) == Point(history.id, 3, moments[2])


def test_a_time_among_pruned_changes(database: Database, history: History) -> None:
    """The last change before the cut was a deletion, and nothing of it is left."""
    history.write("/a.md", "kept")
    history.delete(history.write("/b.md", "gone"))
    history.age(100)
    history.write("/a.md", "new")
    pruned = history.prune(keep=1)
    assert pruned
    assert pruned.pruned_through_seq == 3
    now = datetime.now(UTC)
    assert database.timeline.point(history.id, now - timedelta(days=20)) == Point(history.id, 3, None)
    assert database.timeline.point(history.id, now).seq == 4
    assert database.timeline.span(history.id) == (3, 4)
    for days in (31, 99, 400):
        with pytest.raises(HistoryPrunedError):
            database.timeline.point(history.id, now - timedelta(days=days))


@pytest.mark.parametrize("asked", [4, -4, 2**62, -(2**70), True, 1.0, "2", b"2"])
def test_what_is_no_point_is_refused(database: Database, history: History, asked: Any) -> None:
    for text in ("one", "two", "three"):
        history.write("/a.md", text)
    with pytest.raises(InvalidInputError) as caught:
        database.timeline.point(history.id, asked)
    assert caught.value.hint or "seq" in str(caught.value)


def test_a_point_that_is_not_yet_is_refused_by_every_reading(database: Database, history: History) -> None:
    history.write("/a.md", "one")
    for ask in (
        lambda: database.timeline.as_of(history.id, 2),
        lambda: database.timeline.as_of(history.id, -1),
        lambda: database.timeline.compare(history.id, 0, 2),
        lambda: database.timeline.compare(history.id, 2, 0),
    ):
        with pytest.raises(InvalidInputError, match="the newest one of the store is 1"):
            ask()


def test_an_unknown_store_and_an_illegal_path(database: Database, history: History) -> None:
    unknown = "memstore_" + "0" * 26
    for ask in (
        lambda: database.timeline.point(unknown, 0),
        lambda: database.timeline.span(unknown),
        lambda: database.timeline.as_of(unknown, 0),
        lambda: database.timeline.compare(unknown, 0, 0),
    ):
        with pytest.raises(StoreNotFoundError):
            ask()
    with pytest.raises(InvalidPathError):
        database.timeline.as_of(history.id, 0, "no path")


def test_an_empty_store_has_one_point(database: Database, store: MemoryStore) -> None:
    assert database.timeline.as_of(store.id, 0).memories == []
    assert database.timeline.compare(store.id, 0, 0) == []
    assert database.timeline.point(store.id, datetime.now(UTC)) == Point(store.id, 0, None)


# -- texts -----------------------------------------------------------------------------------------


def test_texts_come_in_the_order_asked_for(database: Database, history: History) -> None:
    ids = [history.write("/a.md", f"text {n}").memory_version_id for n in range(205)]
    asked = ids[::-1]
    expected = [(each, f"text {204 - n}") for n, each in enumerate(asked)]
    assert list(database.timeline.contents(history.id, asked)) == expected
    assert [text for _, text in database.timeline.contents(history.id, ids, b"20")] == [
        f"text {n}" for n in (20, 120, 200, 201, 202, 203, 204)
    ]


def test_versions_without_a_text_are_left_out(database: Database, history: History) -> None:
    first = history.write("/a.md", "secret")
    second = history.write("/a.md", "")
    database.memory_versions.redact(first.memory_version_id, memory_store_id=history.id, actor=ANN)
    asked = [first.memory_version_id, second.memory_version_id, "memver_" + "0" * 26]
    assert list(database.timeline.contents(history.id, asked)) == [(second.memory_version_id, "")]


# -- the rule, on its own --------------------------------------------------------------------------


def test_two_memories_of_unknown_paths_are_never_taken_for_one(database: Database, history: History) -> None:
    """Where one ended and another began, and both were redacted, nobody knows whether it was at one path."""
    old = history.write("/a.md", "one")
    history.delete(old)
    new = history.write("/a.md", "two")
    history.write("/a.md", "three")
    for memory in (old, new):
        database.memory_versions.redact(memory.memory_version_id, memory_store_id=history.id, actor=ANN)
    log = {version.seq: version for version in all_versions(database, history.id)}
    assert [change.kind for change in timeline.changes([(log[1], log[2]), (None, log[3])])] == ["deleted", "created"]
