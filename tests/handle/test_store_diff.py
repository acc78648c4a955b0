"""`Store.compare`: what became of the memories between two points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import memkernel as mk
from memkernel import errors, present
from memkernel.models import Change, StoreChange
from memkernel.render import HTML_BYTES, TEXT_LINES


@pytest.fixture
def notes(dsn: str) -> Iterator[mk.Store]:
    """A store whose changes 5 to 9 are one of each kind."""
    with mk.connect(dsn) as connection:
        store = connection.store("Team notes", create=True)
        for path in ("/gone.md", "/moved.md", "/same.md", "/text.md"):
            store.write(path, f"{path}\ntwo\n")
        store.write("/text.md", "/text.md\n2\nthree\n")
        store.rename("/moved.md", "/moved/here.md")
        store.delete("/gone.md")
        store.write("/new.md", "new\n")
        store.write("/moved/here.md", "/moved.md\n")
        yield store


def _bundle(thing: Any) -> dict[str, str]:
    return thing._repr_mimebundle_()


def _told(changes: Any) -> list[tuple[str, str | None]]:
    return [(change.kind, change.path) for change in changes]


def test_each_kind_of_change(notes: mk.Store) -> None:
    found = notes.compare(4)
    assert _told(found) == [
        ("deleted", "/gone.md"),
        ("renamed", "/moved/here.md"),
        ("created", "/new.md"),
        ("modified", "/text.md"),
    ]
    assert (found.old.seq, found.new.seq, len(found)) == (4, 9, 4)
    assert found[1].old_path == "/moved.md"
    text = found.at("/text.md")
    assert (text.old and text.old.id, text.new and text.new.id) == (
        notes.version("/text.md", 1).id,
        notes.version("/text.md", 2).id,
    )


def test_the_points_are_numbers_moments_versions_or_snapshots(notes: mk.Store) -> None:
    log = notes.log()[::-1]
    expected = _told(notes.compare(4, 6))
    for old in (4, "@4", "@-5", log[3], log[3].id, notes.at(seq=4), log[3].created_at):
        assert _told(notes.compare(old, 6)) == _told(notes.compare(old, notes.at(seq=6))) == expected
    assert len(notes.compare(0)) == 4
    assert list(notes.compare("head")) == list(notes.compare(3, 3)) == []
    assert [change.kind for change in notes.compare(9, 4)] == ["created", "renamed", "deleted", "modified"]


def test_the_difference_of_one_memory(notes: mk.Store) -> None:
    found = notes.compare(4)
    diff = found.diff("/text.md")
    assert (diff.added, diff.removed) == (2, 1)
    assert "-two\n+2\n+three" in diff.patch
    assert "renamed: /moved.md → /moved/here.md" in str(found.diff("/moved.md"))
    assert found.diff("/gone.md").removed == 2
    assert "deleted by" in str(found.diff(found[0]))
    assert found.diff("/new.md").added == 1
    with pytest.raises(errors.MemoryNotFoundError) as caught:
        found.diff("/tex.md")
    assert caught.value.near[0] == "/text.md"
    with pytest.raises(errors.MemoryNotFoundError):
        found.diff("/same.md")


def test_lines_are_counted_when_they_are_asked_for(notes: mk.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    found = notes.compare(4)
    asked: list[str] = []
    contents = type(notes.connection.database.timeline).contents

    def counting(timeline: Any, store_id: str, ids: Any) -> Any:
        asked.extend(ids)
        return contents(timeline, store_id, ids)

    monkeypatch.setattr(type(notes.connection.database.timeline), "contents", counting)
    assert asked == []
    assert found.lines([found.at("/text.md")]) == {found.at("/text.md").id: (2, 1)}
    assert len(asked) == 2
    assert {found[n].path: lines for n, lines in enumerate(found.lines().values())} == {
        "/gone.md": (0, 2),
        "/moved/here.md": (0, 1),
        "/new.md": (1, 0),
        "/text.md": (2, 1),
    }
    known = len(asked)
    found.lines()
    assert len(asked) == known


def test_two_memories_at_one_path_are_found_by_what_is_there_now(notes: mk.Store) -> None:
    notes.delete("/text.md")
    notes.rename("/same.md", "/text.md")
    found = notes.compare(4)
    assert found.at("/text.md").kind == "renamed"
    assert found.at("/same.md").kind == "renamed"
    assert ("deleted", "/text.md") in _told(found)


def test_a_frame(notes: mk.Store) -> None:
    frame = notes.compare(4).df()
    assert list(frame["kind"]) == ["deleted", "renamed", "created", "modified"]
    assert {"old_version_id", "new_version_id", "changed_by_id", "old_size_bytes"} <= set(frame.columns)
    assert "added" not in frame
    with_lines = notes.compare(4).df(lines=True)
    assert list(with_lines["removed"]) == [2, 1, 0, 1]
    assert list(notes.compare("head").df().columns) == list(frame.columns)
    assert len(notes.compare("head").df()) == 0


def test_a_redacted_version_has_its_reason_in_place_of_lines(notes: mk.Store) -> None:
    notes.redact("/text.md", 1)
    found = notes.compare(4)
    change = found.at("/text.md")
    assert change.id not in found.lines()
    assert "@1 redacted by" in str(found)
    assert "@1 redacted by" in _bundle(found)["text/html"]
    assert "its text is gone" in str(found.diff(change))
    assert found.df(lines=True)["added"].isna().sum() == 1
    nowhere = notes.compare(3, 4)[0]
    assert (nowhere.kind, nowhere.path) == ("created", None)
    assert "(redacted)" in str(notes.compare(3, 4))


# -- how it looks ----------------------------------------------------------------------------------


def test_it_reads_as_text(notes: mk.Store) -> None:
    found = notes.compare(4)
    lines = str(found).splitlines()
    assert lines[0].startswith("Team notes · change 4, 20")
    assert lines[0].endswith(" · 1 created, 1 modified, 1 renamed, 1 deleted")
    assert lines[1].split() == ["change", "path", "lines", "size", "by", "time"]
    assert lines[4].startswith("→ renamed   /moved.md → /moved/here.md  +0 −1")
    assert repr(found).startswith("<memkernel.StoreDiff team-notes change 4, ")
    assert str(notes.compare("head")).endswith("no difference")
    assert str(notes.compare(0, 1)).startswith("Team notes · the beginning → change 1")


def test_it_is_a_table_in_a_page(notes: mk.Store) -> None:
    notes.write("/<b>&.md", "\x1b[0m\n")
    html = _bundle(notes.compare(4))["text/html"]
    assert "<strong>Team notes</strong> · change 4, " in html
    assert "&lt;b&gt;&amp;.md" in html
    assert "<script" not in html


def test_a_large_difference_stays_within_its_limits(notes: mk.Store) -> None:
    with notes.connection.database as database:
        changes = [_large(n) for n in range(300)]
        database.memories.apply(notes.id, changes, actor=notes.connection.actor)
        found = notes.compare(9)
        assert len(found) == 300
        assert len(str(found).splitlines()) <= TEXT_LINES
        assert "of 300 shown" in str(found)
        html = _bundle(found)["text/html"]
        assert len(html.encode()) <= HTML_BYTES
        assert "of 300 shown" in html


def _large(number: int) -> Change:
    return Change(f"/many/{'x' * 200}/{number}.md", f"text {number}\n" * 1_500)


def test_without_a_notebook_it_is_shown_as_text(
    notes: mk.Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(present, "_presenters", {})  # what a notebook has registered in this process
    assert notes.compare(4).show() is None
    assert "1 renamed" in capsys.readouterr().out


def test_a_part_of_the_store(notes: mk.Store) -> None:
    found = notes.compare(4)
    assert _told(found.below("/moved")) == _told(found.below("/moved/")) == [("renamed", "/moved/here.md")]
    assert _told(found.below("/moved.md")) == [("renamed", "/moved/here.md")]
    assert _told(found.below("/tex")) == []
    assert found.below("/") is found
    assert str(found.below("/moved")).startswith("Team notes:/moved · change 4")
    with pytest.raises(errors.InvalidPathError):
        found.below("moved")


def test_a_change_is_named_by_its_newer_version(notes: mk.Store) -> None:
    forth, back = notes.compare(4), notes.compare(9, 4)
    assert [change.id for change in forth] == [change.new and change.new.id for change in forth]
    deleted = back.at("/new.md")
    assert (deleted.kind, deleted.new) == ("deleted", None)
    assert deleted.old
    assert deleted.id == deleted.old.id
    assert isinstance(deleted, StoreChange)
    assert back.diff(deleted).removed == 1


def test_lines_that_are_counted_soon_are_no_more_when_asked_again(notes: mk.Store) -> None:
    """A static copy is made of them again and again."""
    begun = notes.at(seq=-1)
    for number in range(12):
        notes.write(f"/large/{number:02}.md", "x" * 99_999 + "\n")
    found = notes.compare(begun)
    counted = found.lines_soon(found)
    assert 0 < len(counted) < len(found)
    assert found.lines_soon(found) == counted
    assert len(found.lines()) == len(found)
    assert len(found.lines_soon(found)) == len(found)
