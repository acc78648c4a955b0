"""The Python side of the StoreBrowser: its state, the page's requests, and what observers are told."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

import memkernel as mk
from memkernel import errors
from memkernel.handle.browse import Browse
from memkernel.jupyter.preferences import Preferences
from memkernel.jupyter.widgets.store_browser import StoreBrowser
from memkernel.render import HTML_BYTES
from tests.fix_kernel import Kernel

STATE_BYTES = 64 * 1024
VIEW = "application/vnd.jupyter.widget-view+json"

Facts = tuple[str, dict[str, Any]]


@pytest.fixture
def notes(dsn: str) -> Iterator[mk.Store]:
    with mk.connect(dsn) as connection:
        yield connection.store("Team notes", create=True)


@pytest.fixture
def browse() -> Iterator[Callable[..., StoreBrowser]]:
    """Make the widget of a Browse; `happened` of it are its events so far."""
    made: list[StoreBrowser] = []

    def browse(store: mk.Store, path: str = "/", **options: bool) -> StoreBrowser:
        made.append(StoreBrowser.of(store.browse(path, **options), Preferences()))
        return made[-1]

    yield browse
    for widget in made:
        widget.close()


Open = Callable[..., StoreBrowser]


def state_of(widget: StoreBrowser) -> dict[str, Any]:
    """What is saved with the notebook, without what is every anywidget's."""
    made: Any = widget
    return {name: value for name, value in made.get_state().items() if name not in ("_esm", "_css")}


def events_of(widget: StoreBrowser) -> list[Facts]:
    told: list[Facts] = []

    def observe(name: str, facts: Mapping[str, Any]) -> None:
        told.append((name, dict(facts)))

    widget.on_event(observe)
    return told


def paths(rows: list[Any]) -> list[Any]:
    return [row[0] for row in rows]


def sha_of(store: mk.Store, path: str) -> str:
    return store.memory(path).content_sha256


# -- the state -----------------------------------------------------------------------------------


def test_the_first_paint_is_in_the_state(notes: mk.Store, browse: Open) -> None:
    notes.write("/a.md", "# A\n")
    memory = notes.write("/d/b.md", "B")
    widget = browse(notes)
    assert (widget.store, widget.store_name, widget.total, widget.readonly) == (notes.id, "Team notes", 2, False)
    assert paths(widget.memories) == ["/a.md", "/d/b.md"]
    assert widget.memories[1][1:] == [1, widget.memories[1][2], memory.memory_version_id]
    assert [(row[1], row[2], row[3]) for row in widget.versions] == [(1, "created", "/d/b.md"), (1, "created", "/a.md")]
    assert (widget.versions_total, widget.selected, widget.content) == (2, "", {})
    assert widget.as_of.endswith("Z")


def test_a_memory_is_looked_at_from_the_beginning(notes: mk.Store, browse: Open) -> None:
    notes.write("/a.md", "# one\n")
    notes.write("/a.md", "# two\n")
    widget = browse(notes, "/a.md")
    assert (widget.selected, widget.prefix, widget.versions_total) == ("/a.md", "/", 2)
    content = widget.content
    assert (content["path"], content["text"], content["state"], content["live"]) == ("/a.md", "# two\n", "", True)
    assert content["nodes"] == [["h4", [["", "two"]]]]
    assert content["sha256"] == sha_of(notes, "/a.md")
    assert content["facts"].startswith("@2 · modified 2")
    assert content["facts"].endswith(" · 6 B")
    assert " · person user_" in content["facts"]


def test_a_directory_shows_what_is_below_it(notes: mk.Store, browse: Open) -> None:
    for path in ("/a.md", "/d/b.md", "/d/c.md", "/d0.md"):
        notes.write(path, path)
    widget = browse(notes, "/d")
    assert (widget.prefix, paths(widget.memories), widget.total) == ("/d/", ["/d/b.md", "/d/c.md"], 2)
    assert paths(widget.memories_after(after="/d/b.md")["memories"]) == ["/d/c.md"]
    assert widget.search(text="md")["total"] == 2


def test_the_state_stays_small_whatever_a_store_holds(notes: mk.Store, browse: Open) -> None:
    deep = "/".join(["\u3164" * 100] * 3)
    for number in range(150):
        notes.write(f"/{deep}/{number:03}.md", "\u202e" * 30_000)
    widget = browse(notes, f"/{deep}/000.md")
    state = state_of(widget)
    assert len(json.dumps(state).encode()) <= STATE_BYTES
    assert len(widget.memories) + len(widget.versions) <= 200
    assert (widget.total, widget.versions_total, widget.content) == (150, 1, {})
    assert widget.memories[0][4] == f"/{deep}/000.md"
    assert "Team notes: 150 memories" in widget.static_html()
    assert len(widget.static_html().encode()) <= HTML_BYTES
    for number in range(300):
        notes.write("/short.md", f"{number}")
    for number in range(200):
        notes.write(f"/{number:03}.md", "x" * 9_000)
    notes.connection.create_store("x" * 255, description="d" * 1_000)
    widget.refresh()
    widget.selected = "/short.md"
    assert len(json.dumps(state_of(widget)).encode()) <= STATE_BYTES
    assert len(widget.memories) + len(widget.versions) <= 200
    assert (widget.total, len(widget.versions), widget.versions_total) == (351, 60, 300)


def test_many_stores_to_choose_from_stay_small_as_well(notes: mk.Store, browse: Open) -> None:
    for number in range(200):
        notes.connection.create_store(f"{number} " + "\u202e" * 200, description="\u202e" * 1_000)
    widget = StoreBrowser.of(Browse(notes.connection), Preferences())
    assert len(json.dumps(state_of(widget)).encode()) <= STATE_BYTES
    assert 0 < len(widget.stores) <= 200
    widget.close()


def test_a_store_is_chosen_and_left_again(notes: mk.Store) -> None:
    notes.write("/a.md", "A")
    other = notes.connection.create_store("Handbook", description="House rules")
    widget = StoreBrowser.of(Browse(notes.connection), Preferences())
    assert [(row[1], row[2], row[3], row[5]) for row in widget.stores] == [
        ("Handbook", "House rules", 0, None),
        ("Team notes", "", 1, None),
    ]
    assert "Handbook" in widget.plain()
    assert widget.choose(store=notes.id) == {}
    assert (widget.store, paths(widget.memories), widget.stores) == (notes.id, ["/a.md"], [])
    assert "/a.md" in widget.plain()
    assert "/a.md" in widget.static_html()
    widget.choose(store=other.id)
    assert (widget.memories, widget.total, widget.versions) == ([], 0, [])
    widget.choose(store="")
    assert (widget.store, len(widget.stores), widget.memories) == ("", 2, [])
    with pytest.raises(errors.RefusedError, match="no store is chosen"):
        widget.read(path="/a.md")
    widget.close()


# -- what the page asks for ----------------------------------------------------------------------


def test_two_thousand_memories_come_in_few_answers(notes: mk.Store, browse: Open) -> None:
    for number in range(2_000):
        notes.write(f"/{number % 20:02}/{number:04}.md", "x")
    widget = browse(notes)
    assert (len(widget.memories), widget.total) == (120, 2_000)
    rest = widget.memories_after(after=widget.memories[-1][0])
    assert (len(rest["memories"]), rest["next"], rest["total"]) == (1_880, None, 2_000)
    assert sorted(paths([*widget.memories, *rest["memories"]])) == [each.path for each in notes.ls("/", depth=0)]


def test_a_history_of_a_thousand_versions_comes_page_by_page(notes: mk.Store, browse: Open) -> None:
    for number in range(1_000):
        notes.write("/a.md", f"{number}")
    notes.write("/b.md", "b")
    widget = browse(notes)
    for path, total, first in (("/a.md", 1_000, 1_000), ("", 1_001, 1)):
        rows: list[Any] = []
        before: str | None = ""
        while before is not None:
            page = widget.timeline(path=path, before=before)
            assert (page["total"], len(page["versions"]) <= 100) == (total, True)
            rows += page["versions"]
            before = page["next"]
        assert len({row[0] for row in rows}) == len(rows) == total
        assert rows[0][1] == first
        assert rows[-1][1] == 1


def test_lines_that_versions_added_and_removed_are_counted(notes: mk.Store, browse: Open) -> None:
    notes.write("/a.md", "1\n2\n3\n")
    notes.write("/a.md", "1\nzwei\n3\n4\n")
    notes.delete("/a.md")
    notes.write("/b.md", "secret\n")
    notes.write("/b.md", "public\n")
    notes.redact("/b.md", 1)
    widget = browse(notes)
    ids = {(row[3], row[1]): row[0] for row in widget.versions}
    found = widget.changes(versions=list(ids.values()))["changes"]
    assert [found.get(ids["/a.md", ordinal]) for ordinal in (1, 2, 3)] == [[3, 0], [2, 1], [0, 4]]
    assert [found.get(ids[key]) for key in ((None, 1), ("/b.md", 2))] == [None, None]


def test_earlier_versions_and_those_of_a_deleted_memory_are_read(notes: mk.Store, browse: Open) -> None:
    first = notes.write("/a.md", "one").memory_version_id
    notes.write("/a.md", "two")
    widget = browse(notes)
    earlier = widget.read(path="/a.md", version=first)
    assert (earlier["text"], earlier["state"], earlier["restorable"]) == ("one", "not the head", True)
    assert widget.read(path="/a.md")["restorable"] is False
    notes.delete("/a.md")
    gone = widget.read(path="/a.md")
    assert (gone["text"], gone["live"], gone["head"], gone["state"]) == (None, False, False, "deleted")
    assert gone["note"].startswith("@3: deleted by user_")
    assert widget.read(path="", version=first)["state"] == "deleted"
    with pytest.raises(errors.MemoryNotFoundError):
        widget.read(path="/nothing.md")
    with pytest.raises(errors.InvalidInputError):
        widget.read(path="")


def test_what_cannot_be_seen_is_marked_and_only_the_editor_gets_it(notes: mk.Store, browse: Open) -> None:
    notes.write("/a\xa0b.md", "x\0y\u202e")
    widget = browse(notes)
    row = widget.memories[0]
    assert row[0] == ["/a", ["␣", "U+00A0 NO-BREAK SPACE"], "b.md"]
    assert row[4] == "/a\xa0b.md"
    shown = widget.read(path=row[4])
    assert [piece for piece in shown["text"] if isinstance(piece, str)] == ["x", "y"]
    assert shown["path"] == row[4]
    assert widget.edit(path=row[4])["text"] == "x\0y\u202e"
    hit = widget.search(text="y")["hits"][0]
    assert (hit[0], hit[4]) == (row[0], row[4])


def test_deleted_memories_are_shown_among_the_others(notes: mk.Store, browse: Open) -> None:
    for path in ("/a.md", "/b.md", "/c.md", "/d.md"):
        notes.write(path, "x")
    for path in ("/b.md", "/d.md"):
        notes.delete(path)
    notes.write("/d.md", "again")
    widget = browse(notes)
    assert paths(widget.memories) == ["/a.md", "/c.md", "/d.md"]
    widget.show_deleted = True
    assert (paths(widget.memories), widget.total) == (["/a.md", "/b.md", "/c.md", "/d.md"], 4)
    path, size, at, version = widget.memories[1]
    assert (path, size, at.endswith("Z")) == ("/b.md", None, True)
    assert widget.read(path="", version=version)["version"][2] == "deleted"
    assert paths(widget.memories_after(after="/a.md")["memories"]) == ["/b.md", "/c.md", "/d.md"]
    widget.show_deleted = False
    assert widget.total == 3


def test_a_search_brings_hits_with_the_words_marked(notes: mk.Store, browse: Open) -> None:
    notes.write("/a.md", "first\nRetry the policy\n")
    notes.write("/retry.md", "policy")
    widget = browse(notes)
    found = widget.search(text="retry POLICY")
    assert (found["total"], found["words"]) == (2, ["retry", "POLICY"])
    assert found["hits"][0][0] == "/retry.md"
    assert found["hits"][1][2:] == [2, [[2, [[1, "Retry"], [0, " the "], [1, "policy"]]]]]
    only_path = widget.search(text="retry.md")["hits"][0]
    assert only_path[2:] == [0, [[0, [[0, "/"], [1, "retry.md"]]]]]
    assert widget.search(text="  ") == {"hits": [], "total": 0, "words": []}
    with pytest.raises(errors.InvalidInputError):
        widget.search(text=" ".join(map(str, range(20))))


# -- what the page changes -----------------------------------------------------------------------


def test_a_save_writes_over_what_was_edited(notes: mk.Store, browse: Open) -> None:
    notes.write("/a.md", "one\n")
    widget = browse(notes, "/a.md")
    told = events_of(widget)
    opened = widget.edit(path="/a.md")
    assert (opened["text"], opened["version"][1]) == ("one\n", 1)
    answer = widget.save(path="/a.md", text="two\r\n\0", expect=opened["sha256"])
    assert answer["version"][1:4] == [2, "modified", "/a.md"]
    assert notes.read("/a.md") == "two\r\n\0"
    assert (widget.versions_total, widget.content["version"][1]) == (2, 2)
    assert told == [("edit_saved", {"path": "/a.md", "version": answer["version"][0]})]


def test_a_save_over_what_somebody_changed_leaves_three_ways(notes: mk.Store, browse: Open) -> None:
    notes.write("/a.md", "one\n")
    widget = browse(notes, "/a.md")
    told = events_of(widget)
    expect = widget.edit(path="/a.md")["sha256"]
    notes.write("/a.md", "theirs\n")
    conflict = widget.save(path="/a.md", text="mine\n", expect=expect)["conflict"]
    assert notes.read("/a.md") == "theirs\n"
    assert (conflict["version"][1], conflict["sha256"]) == (2, sha_of(notes, "/a.md"))
    assert conflict["words"].startswith("/a.md was changed while you edited it, by person user_")
    assert conflict["words"].endswith(" UTC (@2).")
    assert told == []
    mine = widget.draft(text="mine\n")["id"]
    difference = widget.diff(old=conflict["version"][0], new=mine)
    assert (difference["added"], difference["removed"], difference["notes"]) == (1, 1, [])
    widget.compared(old=conflict["version"][0], new=mine)
    assert told == [("open_diff", {"old": conflict["version"][0], "new": mine})]
    assert widget.save(path="/a.md", text="mine\n", expect=conflict["sha256"])["version"][1] == 3
    assert notes.read("/a.md") == "mine\n"


def test_only_the_last_draft_is_kept(notes: mk.Store, browse: Open) -> None:
    head = notes.write("/a.md", "A").memory_version_id
    widget = browse(notes)
    first, second = widget.draft(text="1")["id"], widget.draft(text="2")["id"]
    assert widget.diff(old=head, new=second)["added"] == 1
    with pytest.raises(errors.MemkernelError):
        widget.diff(old=head, new=first)


def test_a_save_of_what_was_deleted_meanwhile_can_make_it_anew(notes: mk.Store, browse: Open) -> None:
    notes.write("/a.md", "one")
    widget = browse(notes, "/a.md")
    expect = widget.edit(path="/a.md")["sha256"]
    notes.delete("/a.md")
    conflict = widget.save(path="/a.md", text="mine", expect=expect)["conflict"]
    assert (conflict["version"], conflict["sha256"]) == (None, "")
    assert "/a.md is not there any more: deleted by person user_" in conflict["words"]
    assert widget.save(path="/a.md", text="mine", expect="")["version"][2] == "created"
    notes.rename("/a.md", "/b.md")
    conflict = widget.save(path="/a.md", text="more", expect=sha_of(notes, "/b.md"))["conflict"]
    assert conflict["version"] is None


def test_a_new_memory_never_replaces_one(notes: mk.Store, browse: Open) -> None:
    widget = browse(notes)
    assert widget.save(path="/n.md", text="new", expect="")["version"][1] == 1
    assert paths(widget.memories) == ["/n.md"]
    conflict = widget.save(path="/n.md", text="other", expect="")["conflict"]
    assert conflict["words"].startswith("/n.md is there already: written by person user_")
    with pytest.raises(errors.PathConflictError):
        widget.save(path="/n.md/below.md", text="x", expect="")
    with pytest.raises(errors.InvalidPathError):
        widget.save(path="no slash", text="x", expect="")
    with pytest.raises(errors.ContentTooLargeError):
        widget.save(path="/big.md", text="x" * 102_401, expect="")


def test_a_deletion_expects_what_was_shown(notes: mk.Store, browse: Open) -> None:
    notes.write("/a.md", "one")
    widget = browse(notes, "/a.md")
    told = events_of(widget)
    shown = widget.content["sha256"]
    notes.write("/a.md", "two")
    conflict = widget.delete(path="/a.md", expect=shown)["conflict"]
    assert "was changed meanwhile, by person user_" in conflict["words"]
    assert conflict["words"].endswith("Delete it all the same?")
    answer = widget.delete(path="/a.md", expect=conflict["sha256"])
    assert answer["version"][1:3] == [3, "deleted"]
    assert (widget.memories, widget.content["state"]) == ([], "deleted")
    assert told == [("deleted", {"path": "/a.md", "version": answer["version"][0]})]
    with pytest.raises(errors.MemoryNotFoundError):
        widget.delete(path="/a.md", expect=conflict["sha256"])


def test_a_memory_and_a_directory_are_renamed(notes: mk.Store, browse: Open) -> None:
    notes.write("/d/a.md", "A")
    widget = browse(notes, "/d/a.md")
    told = events_of(widget)
    assert widget.rename(path="/d/a.md", new_path="/d/b.md") == {"moved": 1}
    assert (widget.selected, paths(widget.memories), widget.content["path"]) == ("/d/b.md", ["/d/b.md"], "/d/b.md")
    assert widget.rename(path="/d", new_path="/e") == {"moved": 1}
    assert paths(widget.memories) == ["/e/b.md"]
    assert [name for name, _ in told] == ["renamed", "renamed"]
    notes.write("/taken.md", "x")
    with pytest.raises(errors.PathConflictError):
        widget.rename(path="/e/b.md", new_path="/taken.md")


def test_restore_and_redact_are_seen_at_once(notes: mk.Store, browse: Open) -> None:
    first = notes.write("/a.md", "secret words").memory_version_id
    notes.write("/a.md", "two")
    widget = browse(notes, "/a.md")
    told = events_of(widget)
    assert widget.restore(version=first, path="/a.md")["version"][1] == 3
    assert (widget.content["text"], widget.versions_total) == ("secret words", 3)
    notes.write("/a.md", "three")
    widget.selected_version = first
    assert widget.content["text"] == "secret words"
    assert widget.redaction(version=first)["others"] == 1
    widget.redact(version=first, confirm="1", others=True)
    assert (widget.content["text"], widget.content["path"], widget.content["restorable"]) == (None, "", False)
    assert "redacted by user_" in widget.content["note"]
    assert "secret words" not in json.dumps(state_of(widget)["content"])
    assert [name for name, _ in told] == ["restored", "select", "redacted"]


def test_an_archived_store_is_only_looked_at(notes: mk.Store, browse: Open) -> None:
    first = notes.write("/a.md", "one").memory_version_id
    notes.write("/a.md", "two")
    widget = browse(notes, "/a.md")
    notes.archive()
    widget.refresh()
    assert (widget.readonly, widget.reason) == (True, "archived, so read only")
    assert widget.read(path="/a.md", version=first)["restorable"] is False
    expect = sha_of(notes, "/a.md")
    for change in (
        lambda: widget.save(path="/a.md", text="x", expect=expect),
        lambda: widget.delete(path="/a.md", expect=expect),
        lambda: widget.rename(path="/a.md", new_path="/b.md"),
        lambda: widget.restore(version=first),
        lambda: widget.redact(version=first, confirm="1"),
    ):
        with pytest.raises(errors.RefusedError, match="read only"):
            change()
    assert [version.ordinal for version in notes.log("/a.md")] == [2, 1]


def test_a_view_can_be_opened_to_be_read_only(notes: mk.Store, browse: Open) -> None:
    notes.write("/a.md", "one")
    widget = browse(notes, readonly=True)
    assert (widget.readonly, widget.reason) == (True, "opened to be read only")
    with pytest.raises(errors.RefusedError, match="opened to be read only"):
        widget.save(path="/b.md", text="x", expect="")


# -- who looks on --------------------------------------------------------------------------------


def test_python_selects_and_sees_what_is_selected(notes: mk.Store, browse: Open) -> None:
    first = notes.write("/a.md", "one").memory_version_id
    notes.write("/a.md", "two")
    widget = browse(notes)
    told = events_of(widget)
    widget.selected = "/a.md"
    assert (widget.content["text"], widget.versions_total) == ("two", 2)
    widget.selected_version = first
    assert widget.content["text"] == "one"
    widget.selected = "/nothing.md"
    assert (widget.selected, widget.selected_version, widget.content) == ("", "", {})
    assert told[:2] == [
        ("select", {"path": "/a.md", "version": ""}),
        ("select", {"path": "/a.md", "version": first}),
    ]


def test_a_memory_and_its_version_that_come_in_one_message_are_one_step(notes: mk.Store, browse: Open) -> None:
    first = notes.write("/a.md", "one").memory_version_id
    notes.write("/a.md", "two")
    widget = browse(notes)
    told = events_of(widget)
    made: Any = widget
    made.set_state({"selected": "/a.md", "selected_version": first})
    assert (widget.content["text"], widget.versions_total) == ("one", 2)
    assert told == [("select", {"path": "/a.md", "version": first})]


def test_refresh_shows_what_others_did(notes: mk.Store, browse: Open) -> None:
    widget = browse(notes)
    assert "%%memory put" in widget.plain()
    notes.write("/a.md", "A")
    assert widget.refresh() == {}
    assert (paths(widget.memories), widget.versions_total) == (["/a.md"], 1)
    assert "/a.md" in widget.plain()
    notes.drop()
    with pytest.raises(errors.StoreNotFoundError):
        widget.refresh()


def test_the_last_memory_of_a_directory_may_go(notes: mk.Store, browse: Open) -> None:
    notes.write("/d/a.md", "A")
    widget = browse(notes, "/d/")
    widget.delete(path="/d/a.md", expect=sha_of(notes, "/d/a.md"))
    assert (widget.memories, widget.total) == ([], 0)
    assert widget.plain() == "Team notes: 0 memories\nThere is no memory below /d/ any more."


# -- in a kernel ---------------------------------------------------------------------------------


def test_a_bare_memory_shows_the_widget_and_its_copy(kernel: Kernel) -> None:
    kernel.run("%%memory put -q /a.md\nA\n")
    for line in ("%memory", "%memory browse /a.md", "x = %memory\nx"):
        reply = kernel.run(line)
        assert reply.status == "ok", reply
        assert VIEW in reply.outputs[0]
        assert "/a.md" in reply.outputs[1]["text/plain"]
        assert "mk-static" in reply.outputs[1]["text/html"]
        assert len(reply.outputs) == 2
    assert kernel.run("x.df()").status == "ok"
    assert kernel.run("x.show().selected").outputs[-1]["text/plain"] == "''"
    quiet = kernel.run("%memory -q -o y")
    assert (quiet.outputs, kernel.run("len(y)").outputs[0]["text/plain"]) == ([], "1")


def test_static_output_is_the_table_alone(kernel: Kernel) -> None:
    kernel.run("%memory config render static")
    reply = kernel.run("%memory")
    assert [sorted(output) for output in reply.outputs] == [["text/html", "text/plain"]]
