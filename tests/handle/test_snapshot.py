"""`Store.at`: the whole store as it was."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import memkernel as mk
from memkernel import errors
from memkernel.handle.points import is_point
from memkernel.models import MemoryPrefix
from tests.store.ageing import let_pass


@pytest.fixture
def notes(dsn: str) -> Iterator[mk.Store]:
    """A store with nine changes."""
    with mk.connect(dsn) as connection:
        store = connection.store("Team notes", create=True)
        store.write("/units.md", "SI\n")
        store.write("/plans/a.md", "first\nTODO\n")
        store.write("/plans/deep/b.md", "second\n")
        store.write("/units.md", "imperial\n")
        store.rename("/plans/a.md", "/plans/c.md")
        store.delete("/plans/deep/b.md")
        store.write("/plans/deep/b.md", "anew\nTODO\n")
        store.write("/units.md", "SI again\n")
        store.write("/plan.md", "TODO\n")
        yield store


def _bundle(thing: Any) -> dict[str, str]:
    return thing._repr_mimebundle_()


def _paths(records: Any) -> list[str]:
    return [record.path for record in records]


def test_the_store_as_it_was_after_a_change(notes: mk.Store) -> None:
    then = notes.at(seq=3)
    assert then.seq == 3
    assert _paths(then.ls(depth=0)) == ["/plans/a.md", "/plans/deep/b.md", "/units.md"]
    assert (then.read("/units.md"), then.read_bytes("/plans/deep/b.md")) == ("SI\n", b"second\n")
    assert notes.read("/units.md") == "SI again\n"
    assert then.created_at == notes.log()[-3].created_at
    assert notes.at(seq=0).ls() == []


def test_a_memory_of_then_is_a_memory(notes: mk.Store) -> None:
    then, now = notes.at(seq=4).memory("/units.md"), notes.memory("/units.md")
    assert (then.id, then.content, then.created_at) == (now.id, "imperial\n", now.created_at)
    assert then.created_at < then.updated_at < now.updated_at
    assert notes.version(None, then.memory_version_id).content_sha256 == then.content_sha256


def test_at_the_newest_change_it_is_what_the_store_is(notes: mk.Store) -> None:
    now = notes.at("head")
    for path, depth in (("/", 0), ("/", 1), ("/plans", 1), ("/plans/", 0), ("/plans/deep", 1), ("/units.md", 1)):
        assert now.ls(path, depth) == notes.ls(path, depth)
    assert now.grep("TODO", "/plans") == notes.grep("TODO", "/plans")
    for memory in notes.ls(depth=0):
        assert now.memory(memory.path) == notes.memory(memory.path)


def test_directories_are_rolled_up(notes: mk.Store) -> None:
    then = notes.at(seq=3)
    assert then.ls() == [MemoryPrefix("/plans/"), then.ls("/units.md")[0]]
    assert _paths(then.ls("/plans")) == ["/plans/a.md", "/plans/deep/"]
    assert "type" in then.ls().df()
    with pytest.raises(errors.InvalidInputError, match="depth"):
        then.ls(depth=2)


def test_lines_of_then_are_found(notes: mk.Store) -> None:
    assert [(match.path, match.line) for match in notes.at(seq=3).grep("TODO")] == [("/plans/a.md", 2)]
    assert [match.path for match in notes.at(seq=3).grep("t[oO]do|^si$", ignore_case=True)] == [
        "/plans/a.md",
        "/units.md",
    ]
    assert notes.at(seq=3).grep("TODO", "/units.md") == []
    with pytest.raises(errors.InvalidInputError):
        notes.at(seq=3).grep("(")


def test_a_moment_a_version_and_a_snapshot_name_a_point(notes: mk.Store, dsn: str) -> None:
    let_pass(dsn, timedelta(days=3))
    log = notes.log()[::-1]
    third = log[2]
    for spec in (3, "@3", "3", third, third.id, f"@{third.id}", notes.at(seq=3), notes.at(seq=3).point, -6, "@-6"):
        assert notes.at(spec).seq == 3
    for spec in (0, "0", "@0", "@2020-01-01", datetime(2020, 1, 1)):  # noqa: DTZ001  # without a zone it is UTC
        assert notes.at(spec).seq == 0
    for spec in ("head", "@head", "today", "yesterday", datetime.now(UTC), f"{datetime.now(UTC):%Y-%m-%dT%H:%MZ}"):
        assert notes.at(spec).seq == 9
    exactly = third.created_at.isoformat()
    assert notes.at(exactly).seq == notes.at(f"@{exactly}").seq == 3


def test_today_and_yesterday_begin_at_midnight(notes: mk.Store, dsn: str) -> None:
    let_pass(dsn, timedelta(days=1))
    notes.write("/units.md", "today\n")
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for word, moment in (("today", midnight), ("yesterday", midnight - timedelta(days=1))):
        assert notes.at(word).point == notes.at(moment).point


@pytest.mark.parametrize(
    "spec", ["", "@", "tomorrow", "3.5", "10", "-11", "memver_x", True, 1.5, [3], object(), "2026-13-01", b"3"]
)
def test_what_names_no_point_is_refused(notes: mk.Store, spec: Any) -> None:
    with pytest.raises(errors.InvalidInputError) as caught:
        notes.at(spec)
    assert caught.value.hint


def test_one_point_is_asked_for(notes: mk.Store) -> None:
    for moment, seq in ((None, None), ("head", 3)):
        with pytest.raises(errors.InvalidInputError, match="one point"):
            notes.at(moment, seq=seq)


@pytest.mark.parametrize(
    ("text", "is_one"), [("@41", True), ("yesterday", True), ("@2026-11-30T10:00Z", True), ("/a", False)]
)
def test_the_grammar(text: str, is_one: bool) -> None:
    assert is_point(text) is is_one


def test_a_snapshot_of_another_store_is_refused(notes: mk.Store) -> None:
    other = notes.connection.store("Other", create=True)
    with pytest.raises(errors.InvalidInputError, match=notes.id):
        other.at(notes.at(seq=3))
    with pytest.raises(errors.VersionNotFoundError):
        other.at(notes.log()[0])


def test_what_was_not_there_is_told_with_what_was_near(notes: mk.Store) -> None:
    then = notes.at(seq=2)
    for ask in (then.memory, then.read, then.read_bytes, then.ls):
        with pytest.raises(errors.MemoryNotFoundError, match="team-notes at change 2") as caught:
            ask("/plans/b.md")
        assert caught.value.near == ("/plans/a.md",)
    with pytest.raises(errors.InvalidPathError):
        then.read("no path")


def test_what_was_redacted_since_says_so(notes: mk.Store) -> None:
    secret = notes.version("/units.md", 2)
    notes.redact("/units.md", 2)
    then = notes.at(seq=4)
    with pytest.raises(errors.RedactedError) as caught:
        then.read("/units.md")
    assert caught.value.version == secret.id
    with pytest.raises(errors.MemoryNotFoundError):
        then.read("/elsewhere.md")
    assert "/units.md" not in _paths(then.ls())
    assert [version.id for version in then.redacted] == [secret.id]
    assert "redacted since" in _bundle(then)["text/html"]
    assert notes.at(seq=3).redacted == []
    assert notes.at(seq=3).read("/units.md") == "SI\n"


def test_pruned_history_is_told_apart_from_what_never_was(notes: mk.Store, dsn: str) -> None:
    let_pass(dsn, timedelta(days=60))
    notes.connection.prune(older_than=timedelta(days=30), keep=1)
    for spec in (8, "2026-01-01"):
        with pytest.raises(errors.HistoryPrunedError, match="pruned"):
            notes.at(spec)
    assert notes.at(seq=9).read("/units.md") == "SI again\n"
    assert notes.at(datetime.now(UTC)).read("/units.md") == "SI again\n"


def test_a_snapshot_stays_what_it_is(notes: mk.Store) -> None:
    then = notes.at("head")
    notes.delete("/", recursive=True)
    assert then.read("/units.md") == "SI again\n"
    assert notes.ls() == []


def test_a_snapshot_can_be_looked_at(notes: mk.Store) -> None:
    then = notes.at(seq=3)
    assert repr(then).startswith("<memkernel.Snapshot team-notes at change 3, ")
    assert repr(notes.at(seq=0)) == "<memkernel.Snapshot team-notes at the beginning>"
    bundle = _bundle(then)
    assert "memories  3" in bundle["text/plain"]
    assert "Team notes, as it was" in bundle["text/html"]
    assert not [name for name in dir(then) if name in ("write", "delete", "rename", "restore", "redact")]
