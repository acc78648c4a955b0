"""StoreCompare behind the page, and `%memory diff --since`: two points of a store's history, and what differs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import pytest
from IPython.core.error import UsageError
from traitlets import TraitError

import memkernel as mk
from memkernel import errors
from memkernel.handle.store_diff import StoreDiff
from memkernel.jupyter.preferences import Preferences
from memkernel.jupyter.widgets.store_diff import MOST_CHANGES, StoreCompare
from memkernel.models import Change
from tests.fix_kernel import Kernel, Shell
from tests.store.ageing import let_pass

STATE_BYTES = 64 * 1024
Open = Callable[..., Any]  # traitlets types what a trait holds by unions of unknowns


@pytest.fixture
def notes(dsn: str) -> Iterator[mk.Store]:
    """A store whose changes 4 to 7 are one of each kind."""
    with mk.connect(dsn) as connection:
        store = connection.store("Team notes", create=True)
        for path in ("/gone.md", "/moved.md", "/text.md"):
            store.write(path, f"{path}\ntwo\n")
        store.write("/text.md", "/text.md\n2\nthree\n")
        store.rename("/moved.md", "/plans/here.md")
        store.delete("/gone.md")
        store.write("/plans/new.md", "new\n")
        yield store


@pytest.fixture
def open_(notes: mk.Store) -> Iterator[Open]:
    """The widget of a comparison of the store; it is closed at the end."""
    opened: list[StoreCompare] = []

    def open_(found: StoreDiff | None = None) -> StoreCompare:
        opened.append(StoreCompare.of(notes.compare(3) if found is None else found, Preferences()))
        return opened[-1]

    yield open_
    for widget in opened:
        widget.close()


def paths(widget: Any) -> list[str]:
    """What is in the first rows."""
    return [row[3] for row in widget.view["rows"]]


def events(widget: Any) -> list[tuple[str, dict[str, Any]]]:
    """What its observers are told from now on."""
    told: list[tuple[str, dict[str, Any]]] = []

    def note(name: str, facts: Mapping[str, Any]) -> None:
        told.append((name, dict(facts)))

    widget.on_event(note)
    return told


def ask(widget: Any, monkeypatch: pytest.MonkeyPatch, method: str, **params: Any) -> Any:
    """What the page is answered."""
    answers: list[Any] = []
    monkeypatch.setattr(widget, "send", answers.append)
    widget._handle_custom_msg({"id": 1, "method": method, "params": params}, [])
    return answers[-1].get("result", answers[-1].get("error"))


# -- what it shows ---------------------------------------------------------------------------------


def test_the_state_holds_what_is_seen_first(open_: Open, notes: mk.Store) -> None:
    widget = open_()
    assert (widget.kind, widget.store, widget.store_name, widget.old, widget.new) == (
        *("compare", notes.id, "Team notes"),
        *(3, 7),
    )
    view = widget.view
    assert [row[1:5] for row in view["rows"]] == [
        ["−", "deleted", "/gone.md", "+0 −2"],
        ["→", "renamed", "/moved.md → /plans/here.md", "±0"],
        ["+", "created", "/plans/new.md", "+1 −0"],
        ["~", "modified", "/text.md", "+2 −1"],
    ]
    assert view["summary"] == "1 created, 1 modified, 1 renamed, 1 deleted"
    assert (view["first"], view["head"], view["total"], view["matching"], view["next"]) == (0, 7, 4, 4, None)
    assert view["old"][0] == 3
    assert view["new"][1].startswith("change 7, 20")
    log = {version.seq: version for version in notes.log()}
    deleted = view["rows"][0]
    assert deleted[0] == deleted[9] == log[6].id
    assert deleted[8] == log[1].id
    assert deleted[6] == notes.connection.actor.id
    assert view["rows"][2][8] == ""


def test_every_row_can_be_compared(open_: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    widget = open_()
    for row in widget.view["rows"]:
        found = ask(widget, monkeypatch, "diff", old=row[8], new=row[9])
        assert row[4] in ("±0", f"+{found['added']} −{found['removed']}")


def test_a_redacted_version_has_its_reason(open_: Open, notes: mk.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    notes.redact("/text.md", 1)
    widget = open_()
    row = widget.view["rows"][-1]
    assert (row[3], row[4]) == ("/text.md", "")
    assert row[5].startswith("@1 redacted by ")
    assert "its text is gone" in ask(widget, monkeypatch, "diff", old=row[8], new=row[9])["notes"][0]
    nowhere = open_(notes.compare(2, 3))
    assert nowhere.view["rows"][0][3] == "(redacted)"


def test_what_cannot_be_seen_in_a_path_is_marked(open_: Open, notes: mk.Store) -> None:
    notes.write("/a\xa0b.md", "")
    row = open_(notes.compare(-1)).view["rows"][0]
    assert row[3] == ["/a", ["␣", "U+00A0 NO-BREAK SPACE"], "b.md"]


# -- what a person does ----------------------------------------------------------------------------


def test_the_points_move_by_number_and_by_what_is_typed(
    open_: Open, dsn: str, notes: mk.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_pass(dsn, timedelta(days=3))
    notes.write("/today.md", "")
    widget = open_()
    told = events(widget)
    assert ask(widget, monkeypatch, "look", old=5, new=7) is None
    assert (widget.old, widget.new, paths(widget)) == (5, 7, ["/gone.md", "/plans/new.md"])
    ask(widget, monkeypatch, "look", old="yesterday")
    ask(widget, monkeypatch, "look", new="head")
    assert (widget.old, widget.new, paths(widget)) == (7, 8, ["/today.md"])
    refused = ask(widget, monkeypatch, "look", old="nonsense")
    assert "names no point" in refused["message"]
    assert "@41" in refused["hint"]
    assert (widget.old, widget.new, paths(widget)) == (7, 8, ["/today.md"])
    assert told == [
        ("compared", {"old": 5, "new": 7}),
        ("compared", {"old": 7, "new": 7}),
        ("compared", {"old": 7, "new": 8}),
    ]


def test_python_moves_the_points_too(open_: Open) -> None:
    widget = open_()
    told = events(widget)
    widget.old = 6
    assert paths(widget) == ["/plans/new.md"]
    widget.new = 5
    assert widget.view["rows"][0][2] == "created"  # back from 6 to 5
    assert [name for name, _ in told] == ["compared", "compared"]
    with pytest.raises(errors.InvalidInputError):
        widget.new = 99
    assert (widget.old, widget.new) == (6, 5)
    with pytest.raises(TraitError):
        widget.old = -1


def test_the_newest_change_is_followed(open_: Open, notes: mk.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    widget = open_()
    notes.write("/later.md", "")
    assert widget.view["head"] == 7
    ask(widget, monkeypatch, "look", old=4)
    assert (widget.new, widget.view["head"]) == (7, 8)


def test_paths_are_filtered_by_python(open_: Open, notes: mk.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    widget = open_()
    ask(widget, monkeypatch, "look", query="PLANS")
    assert paths(widget) == ["/moved.md → /plans/here.md", "/plans/new.md"]
    assert (widget.view["total"], widget.view["matching"], widget.view["summary"]) == (4, 2, "1 created, 1 renamed")
    ask(widget, monkeypatch, "look", old=6)
    assert paths(widget) == ["/plans/new.md"]
    widget.query = "nowhere"
    assert paths(widget) == []


def test_what_is_selected_stays_while_it_differs(open_: Open) -> None:
    widget = open_()
    told = events(widget)
    widget.selected = widget.view["rows"][3][0]
    assert told == [("select", {"path": "/text.md"})]
    widget.old = 2
    assert widget.selected
    widget.old = 6
    assert widget.selected == ""


def test_a_redaction_is_seen_at_once(open_: Open, notes: mk.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    widget = open_()
    first = notes.version("/text.md", 1)
    ask(widget, monkeypatch, "redact", version=first.id, confirm="1")
    assert widget.view["rows"][-1][5].startswith("@1 redacted by ")
    assert "@1 redacted by" in widget.plain()
    assert "@1 redacted by" in widget.static_html()


# -- much ------------------------------------------------------------------------------------------


def _apply(notes: mk.Store, changes: list[Change]) -> None:
    notes.connection.database.memories.apply(notes.id, changes, actor=notes.connection.actor)


def test_the_first_rows_are_in_the_state_and_the_others_come_by_request(
    open_: Open, notes: mk.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    _apply(notes, [Change(f"/many/{number:04}.md", f"{number}\n") for number in range(450)])
    widget = open_(notes.compare(7))
    assert len(json.dumps(widget.view)) < STATE_BYTES
    found = paths(widget)
    assert 0 < len(found) <= MOST_CHANGES
    start = widget.view["next"]
    while start is not None:
        answer = ask(widget, monkeypatch, "more", start=start)
        assert len(answer["rows"]) <= MOST_CHANGES
        found += [row[3] for row in answer["rows"]]
        start = answer["next"]
    assert found == [f"/many/{number:04}.md" for number in range(450)]


def test_long_paths_stay_within_the_state(open_: Open, notes: mk.Store) -> None:
    _apply(notes, [Change(f"/{'é' * 400}{number}", "") for number in range(250)])
    assert len(json.dumps(open_(notes.compare(7)).view)) < STATE_BYTES


def test_lines_of_large_texts_are_counted_on_request(
    open_: Open, notes: mk.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "line\n" * 20_000
    _apply(notes, [Change(f"/large/{number:02}.md", text) for number in range(25)])
    widget = open_(notes.compare(7))
    counted = [row for row in widget.view["rows"] if row[4] is not None]
    unknown = [row[0] for row in widget.view["rows"] if row[4] is None]
    assert 0 < len(counted) < 25
    while unknown:
        counts = ask(widget, monkeypatch, "counts", changes=unknown)
        assert set(counts.values()) == {"+20,000 −0"}
        unknown = [each for each in unknown if each not in counts]
    assert ask(widget, monkeypatch, "counts", changes=["memver_unknown"]) == {}


# -- %memory diff --since --------------------------------------------------------------------------


def test_since_compares_the_store(shell: Shell, notes: mk.Store) -> None:
    found = shell.run("%memory diff --since @3")
    assert [change.path for change in found] == ["/gone.md", "/plans/here.md", "/plans/new.md", "/text.md"]
    assert [change.path for change in shell.run("%memory diff --since @3 --until @5")] == ["/plans/here.md", "/text.md"]
    assert len(shell.run("%memory diff --since yesterday")) == 3
    assert len(shell.run("%memory diff --since 2020-01-01 --until 2020-01-02")) == 0
    assert len(shell.run("%memory diff --since @-1 -s team-notes -o last")) == 1
    assert len(shell.value("last")) == 1


def test_since_compares_a_part_of_the_store(shell: Shell, notes: mk.Store) -> None:
    for line in ("/plans --since @3", "--since @3 /plans/", "team-notes:/plans --since @3"):
        found = shell.run(f"%memory diff {line}")
        assert [change.path for change in found] == ["/plans/here.md", "/plans/new.md"]
        assert str(found).startswith("Team notes:/plans · change 3")
    assert [change.kind for change in shell.run("%memory diff /moved.md --since @3")] == ["renamed"]
    assert len(shell.run("%memory diff /nowhere --since @3")) == 0
    with pytest.raises(errors.InvalidPathError):
        shell.run("%memory diff plans --since @3")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--until @3", "--until needs --since"),
        ("/text.md @1 --since @3", "has versions"),
        ("/text.md@1 --since @3", "names a version"),
        ("--since soon", "'soon' is not a point"),
        ("--since", "expected one argument"),
        ("", "no memory is named"),
    ],
)
def test_a_faulty_line_is_told_in_two_lines(shell: Shell, notes: mk.Store, line: str, told: str) -> None:
    with pytest.raises(UsageError, match=told) as caught:
        shell.run(f"%memory diff {line}")
    assert len(str(caught.value).splitlines()) == 2


def test_a_part_of_the_store_stays_the_part(open_: Open, notes: mk.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    widget = open_(notes.compare(3).below("/plans"))
    assert widget.store_name == "Team notes:/plans"
    ask(widget, monkeypatch, "look", old=0)
    assert paths(widget) == ["/plans/here.md", "/plans/new.md"]


# -- in a kernel -----------------------------------------------------------------------------------


def test_a_cell_shows_the_widget_and_its_static_copy(kernel: Kernel, notes: mk.Store) -> None:
    reply = kernel.run("%memory diff --since @3")
    assert reply.status == "ok", reply
    shown, copy = reply.outputs
    assert "application/vnd.jupyter.widget-view+json" in shown
    assert "mk-static" in copy["text/html"]
    assert "/moved.md → /plans/here.md" in copy["text/html"]
    assert copy["text/plain"].startswith("Team notes · change 3, ")


def test_the_static_copy_follows(kernel: Kernel, notes: mk.Store) -> None:
    code = "found = get_ipython().run_line_magic('memory', 'diff --since @3')\nwidget = found.show()\n"
    reply = kernel.run(code + "widget.old = 6\nwidget.refresh_static(at_once=True)\nwidget")
    assert reply.status == "ok", reply
    assert len(reply.outputs) == 2
    assert reply.outputs[1]["text/plain"].startswith("Team notes · change 6, ")


def test_a_static_kernel_makes_no_widget(kernel: Kernel, notes: mk.Store) -> None:
    kernel.run("%memory config render static")
    (output,) = kernel.run("%memory diff --since @3").outputs
    assert set(output) == {"text/plain", "text/html"}
