"""VersionDiff behind the page: what it shows, its limits, and what a person does there (faults 25, 45)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from traitlets import TraitError

import memkernel as mk
from memkernel.handle.diff import Diff
from memkernel.jupyter.preferences import Preferences
from memkernel.jupyter.widgets.living import LivingWidgets
from memkernel.jupyter.widgets.version_diff import VersionDiff
from tests.fix_kernel import Kernel

PATIENCE_S = 30.0
STATE_BYTES = 64 * 1024
Open = Callable[..., Any]  # traitlets types what a trait holds by unions of unknowns


@pytest.fixture
def store(dsn: str) -> Iterator[mk.Store]:
    with mk.connect(dsn) as connection:
        yield connection.store("Team notes", create=True)


@pytest.fixture
def open_(store: mk.Store) -> Iterator[Open]:
    """The widget of a diff of the store; it is closed at the end."""
    opened: list[VersionDiff] = []

    def open_(path: str = "/a.md", *versions: Any, preferences: Preferences | None = None) -> VersionDiff:
        widget = VersionDiff.of(store.diff(path, *versions), preferences or Preferences())
        assert widget is not None
        opened.append(widget)
        return widget

    yield open_
    for widget in opened:
        widget.close()


def write(store: mk.Store, *texts: str, path: str = "/a.md") -> list[str]:
    """The ids of the versions with these texts."""
    return [store.write(path, text).memory_version_id for text in texts]


def state(widget: Any) -> dict[str, Any]:
    """What is saved of it with a notebook, without the bundle and what ipywidgets adds."""
    names = [name for name in widget.trait_names(sync=True) if not name.startswith("_")]
    return {name: getattr(widget, name) for name in names if name not in ("layout", "tooltip", "tabbable")}


def pair(widget: Any) -> tuple[int, int]:
    """The ordinals of what is shown; 0 is nothing."""
    ordinals = {row[0]: row[1] for row in widget.versions}
    return ordinals.get(widget.view["old"], 0), ordinals[widget.view["new"]]


def events(widget: Any) -> list[tuple[str, dict[str, Any]]]:
    """What its observers are told from now on."""
    told: list[tuple[str, dict[str, Any]]] = []

    def note(name: str, facts: Mapping[str, Any]) -> None:
        told.append((name, dict(facts)))

    widget.on_event(note)
    return told


class Page:
    """The page's end of a widget: what it sends, and what it is answered."""

    def __init__(self, widget: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self._widget = widget
        self._answers: list[Any] = []
        self.waiting = threading.Event()
        monkeypatch.setattr(widget, "send", self._answers.append)

    def ask(self, method: str, **params: Any) -> Any:
        """The result of a request, or the error."""
        number = threading.get_ident()
        self._widget._handle_custom_msg({"id": number, "method": method, "params": params}, [])
        (answer,) = [each for each in self._answers if each["id"] == number]
        self._answers.remove(answer)
        return answer.get("result", answer.get("error"))

    def set(self, **traits: Any) -> None:
        """Traits that the page has set, in one message."""
        self._widget.set_state(traits)


@pytest.fixture
def page_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Page]:
    return lambda widget: Page(widget, monkeypatch)


PageOf = Callable[[Any], Page]

# -- what it shows at first ----------------------------------------------------------------------


def test_the_first_view_is_in_the_state(store: mk.Store, open_: Open) -> None:
    first, second = write(store, "SI\nbe brief\n", "SI\nbe very brief\n")
    widget = open_()
    assert (widget.kind, widget.path, widget.store, widget.store_name) == ("diff", "/a.md", store.id, "Team notes")
    assert (widget.index, widget.base, widget.first, widget.total) == (1, "prev", 1, 2)
    assert [row[:3] for row in widget.versions] == [[second, 2, "modified"], [first, 1, "created"]]
    assert widget.view["rows"] == [
        ["=", 1, 1, "SI"],
        ["~", 2, 2, [[0, "be brief"]], [[0, "be "], [1, "very "], [0, "brief"]]],
    ]
    assert [widget.view[name] for name in ("old", "new", "start", "next", "cut")] == [first, second, 0, None, False]
    assert [widget.view[name] for name in ("added", "removed", "places", "notes")] == [1, 1, 1, []]
    assert widget.as_of.endswith("Z")
    assert not widget.readonly


@pytest.mark.parametrize(
    ("versions", "shown", "base"),
    [
        ((), (3, 4), "prev"),
        ((1,), (1, 4), 0),
        ((1, 3), (1, 3), 0),
        ((2, 3), (2, 3), "prev"),
        ((4, 2), (4, 2), 3),
        ((-2, "head"), (2, 4), 1),
    ],
)
def test_any_two_versions(
    store: mk.Store, open_: Open, versions: tuple[Any, ...], shown: tuple[int, int], base: Any
) -> None:
    write(store, "one\n", "two\n", "three\n", "four\n")
    widget = open_("/a.md", *versions)
    assert pair(widget) == shown
    assert widget.base == base


def test_a_version_of_a_moment(store: mk.Store, open_: Open) -> None:
    write(store, "one\n")
    moment = store.version("/a.md", 1).created_at
    write(store, "two\n", "three\n")
    widget = open_("/a.md", moment)
    assert pair(widget) == (1, 3)
    assert pair(open_("/a.md", moment.isoformat())) == (1, 3)


def test_the_first_version_comes_from_nothing(store: mk.Store, open_: Open) -> None:
    write(store, "one\n", "two\n")
    widget = open_("/a.md", 1, 1)
    widget.base = "prev"
    assert pair(widget) == (0, 1)
    assert widget.view["rows"] == [["+", 1, "one"]]
    assert "nothing → @1" in widget.static_html()
    assert widget.view["names"][0] == "nothing"
    assert widget.view["names"][1].startswith(f"@1 created by {store.connection.actor} 20")


def test_a_version_of_another_memory_is_a_base_as_well(store: mk.Store, open_: Open) -> None:
    (other,) = write(store, "one\n", path="/b.md")
    write(store, "two\n")
    widget = open_("/a.md", other)
    assert widget.base == other
    assert widget.view["rows"] == [["-", 1, "one"], ["+", 1, "two"]]
    assert "/b.md@1 → @1" in widget.static_html()
    assert [name.split(" modified")[0].split(" created")[0] for name in widget.view["names"]] == [
        "@1 /b.md",
        "@1 /a.md",
    ]
    assert [row[1] for row in widget.versions] == [1]


def test_a_deleted_memory_tells_who_deleted_it(store: mk.Store, open_: Open) -> None:
    write(store, "one\n")
    store.delete("/a.md")
    widget = open_()
    assert widget.view["rows"] == [["-", 1, "one"]]
    assert widget.view["notes"][0].startswith(f"@2: deleted by {store.connection.actor}")


def test_a_diff_of_two_records_alone_has_no_widget(store: mk.Store) -> None:
    first, second = (store.version(None, version) for version in write(store, "one\n", "two\n"))
    assert VersionDiff.of(Diff.of("/a.md", first, second), Preferences()) is None
    assert VersionDiff.of(Diff.of("/a.md", first, None, store), Preferences()) is None


# -- limits --------------------------------------------------------------------------------------


def test_of_1000_versions_200_are_in_the_state_and_history_brings_the_rest(
    store: mk.Store, open_: Open, page_of: PageOf
) -> None:
    write(store, *(f"text {number}\n" for number in range(1_000)))
    widget = open_()
    page = page_of(widget)
    assert widget.total == 1_000
    assert 50 < len(widget.versions) <= 200
    known = {row[1]: row[0] for row in widget.versions}
    assert max(known) == 1_000
    while min(known) > 1:
        answer = page.ask("history", version=known[1_000], before=min(known))
        assert (answer["total"], answer["first"]) == (1_000, 1)
        assert len(answer["versions"]) == min(200, min(known) - 1)
        known |= {row[1]: row[0] for row in answer["versions"]}
    assert sorted(known) == list(range(1, 1_001))
    page.set(index=499)
    assert pair(widget) == (499, 500)
    assert min(row[1] for row in widget.versions) < 500 < max(row[1] for row in widget.versions)
    assert len(json.dumps(state(widget))) <= STATE_BYTES


def test_a_pinned_base_stays_in_the_state_however_far_one_steps(store: mk.Store, open_: Open) -> None:
    write(store, *(f"text {number}\n" for number in range(450)))
    widget = open_("/a.md", 1)
    assert pair(widget) == (1, 450)
    widget.index = 224
    assert pair(widget) == (1, 225)


LONG_PATH = "/" + "é" * 500


@pytest.mark.parametrize(
    ("path", "texts"),
    [
        ("/a.md", ("x" * 102_400, "y" * 102_400)),
        ("/a.md", ("a\n" * 51_200, "b\n" * 51_200)),
        ("/a.md", ("\x01" * 102_400, "é" * 51_200)),
        ("/a.md", ("".join(f"- {n % 40}\n" for n in range(9_000)), "".join(f"- {n % 37}\n" for n in range(9_000)))),
        (LONG_PATH, ("\u202e" * 30_000, "\u200b \n" * 20_000)),
    ],
)
def test_the_state_of_the_worst_texts_is_small_and_the_page_gets_the_whole(
    store: mk.Store, open_: Open, page_of: PageOf, path: str, texts: tuple[str, str]
) -> None:
    write(store, *[f"{number}\n" for number in range(60)], *texts, path=path)
    widget = open_(path)
    assert len(json.dumps(state(widget))) <= STATE_BYTES
    assert 0 < len(widget.view["rows"]) <= 200
    assert len(widget.static_html().encode()) <= 24_000
    assert len(widget.plain().split("\n")) <= 60
    page, start, count = page_of(widget), 0, 0
    while start is not None:
        view = page.ask("diff", old="prev", new=widget.view["new"], start=start)
        assert 0 < len(view["rows"]) <= 2_000
        count, start = count + len(view["rows"]), view["next"]
    assert count == widget.view["total"]


def test_what_cannot_be_seen_travels_as_marks(store: mk.Store, open_: Open) -> None:
    write(store, "", "<script>\u202e\n", path="/a\xa0b.md")
    widget = open_("/a\xa0b.md")
    assert widget.path == ["/a", ["␣", "U+00A0 NO-BREAK SPACE"], "b.md"]
    assert widget.versions[0][3] == widget.path
    assert widget.view["rows"] == [["+", 1, ["<script>", ["⟨U+202E⟩", "U+202E RIGHT-TO-LEFT OVERRIDE"]]]]
    assert "&lt;script&gt;" in widget.static_html()
    assert "\u202e" not in widget.static_html() + widget.plain()


# -- steps ---------------------------------------------------------------------------------------


def test_a_step_of_the_page_takes_the_view_the_copy_and_the_observers_along(
    store: mk.Store, open_: Open, page_of: PageOf
) -> None:
    write(store, "one\n", "two\n", "three\n")
    widget = open_()
    told = events(widget)
    page = page_of(widget)
    page.set(index=1)
    assert pair(widget) == (1, 2)
    assert "/a.md@1\n+++ /a.md@2" in widget.plain()
    page.set(index=2, base=0)
    assert pair(widget) == (1, 3)
    assert "@1 → @3" in widget.static_html()
    page.set(base="")
    assert pair(widget) == (0, 3)
    assert told == [
        ("step", {"index": 1, "base": "prev"}),
        ("step", {"index": 2, "base": 0}),
        ("step", {"index": 2, "base": ""}),
    ]


@pytest.mark.parametrize("traits", [{"index": -1}, {"index": 2}, {"base": 2}])
def test_a_step_to_what_is_not_there_is_refused_at_once(store: mk.Store, open_: Open, traits: dict[str, int]) -> None:
    write(store, "one\n", "two\n")
    widget = open_()
    before = state(widget)
    with pytest.raises(TraitError, match=r"versions of /a\.md are 0 to 1"):
        widget.set_trait(*next(iter(traits.items())))
    assert state(widget) == before


def test_a_version_that_came_meanwhile_can_be_stepped_to(store: mk.Store, open_: Open, page_of: PageOf) -> None:
    first, _ = write(store, "one\n", "two\n")
    widget = open_()
    write(store, "three\n")
    page = page_of(widget)
    assert page.ask("history", version=first)["total"] == 3
    page.set(index=2)
    assert pair(widget) == (2, 3)


def test_the_rows_differ_with_white_space_and_without_folds(store: mk.Store, open_: Open, page_of: PageOf) -> None:
    many = "".join(f"{number}\n" for number in range(40))
    write(store, f"be  brief\n{many}c\n", f"be brief\n{many}d\n")
    widget = open_()
    page = page_of(widget)
    assert [row[0] for row in widget.view["rows"]] == ["~", "=", "=", "=", "f", "=", "=", "=", "-", "+"]
    page.set(ignore_ws=True)
    assert [row[0] for row in widget.view["rows"]] == ["f", "=", "=", "=", "-", "+"]
    assert (widget.view["ignore_whitespace"], widget.view["places"]) == (True, 1)
    page.set(context=0)
    assert [row[0] for row in widget.view["rows"]] == ["f", "-", "+"]
    page.set(fold=False)
    assert [row[0] for row in widget.view["rows"]] == [*"=" * 41, "-", "+"]


def test_the_lines_of_a_fold_and_the_patch_are_given(store: mk.Store, open_: Open, page_of: PageOf) -> None:
    many = "".join(f"{number}\n" for number in range(1, 41))
    write(store, f"{many}c\r\n", f"{many}d\r\n")
    widget = open_()
    page = page_of(widget)
    assert widget.view["rows"][0] == ["f", 1, 1, 37]
    assert page.ask("lines", new=widget.view["new"], start=36, count=2) == {"rows": ["36", "37"]}
    answer = page.ask("patch", old="prev", new=widget.view["new"])
    assert answer["text"] == store.diff("/a.md").patch
    assert answer["text"].endswith("-c\r\n+d\r\n")


def test_what_a_person_toggles_is_the_default_of_the_next_diff(store: mk.Store, open_: Open, page_of: PageOf) -> None:
    write(store, "one\n", "two\n")
    preferences = Preferences()
    toggled = {"mode": "unified", "word_level": False, "fold": False, "context": 7, "ignore_ws": True, "wrap": False}
    page_of(open_(preferences=preferences)).set(**toggled)
    following = open_(preferences=preferences)
    assert {name: getattr(following, name) for name in toggled} == toggled
    assert preferences["diff_whitespace"] == "ignore"
    assert preferences["diff_words"] == "off"


def test_two_requests_at_once_from_two_threads_are_both_answered(store: mk.Store, open_: Open, page_of: PageOf) -> None:
    ids = write(store, *(f"text {number}\n" for number in range(20)))
    widget = open_()
    page, answers = page_of(widget), dict[str, Any]()
    barrier = threading.Barrier(2)

    def ask(half: list[str]) -> None:
        barrier.wait()
        for version in half:
            answers[version] = page.ask("diff", old="prev", new=version)
            page.set(index=ids.index(version))

    threads = [threading.Thread(target=ask, args=[half]) for half in (ids[1:10], ids[10:])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, version in enumerate(ids[1:], 1):
        assert answers[version]["new"] == version
        assert answers[version]["old"] == ids[number - 1]
    assert widget.view["new"] == ids[widget.index]


def test_a_request_for_what_is_not_there_is_an_error_in_a_sentence(
    store: mk.Store, open_: Open, page_of: PageOf
) -> None:
    write(store, "one\n", "two\n")
    widget = open_()
    for method, params in {
        "diff": {"old": "prev", "new": mk_id()},
        "history": {"version": "nonsense"},
        "patch": {"old": mk_id(), "new": widget.view["new"]},
    }.items():
        error = page_of(widget).ask(method, **params)
        assert error["message"].startswith("there is no version")
        assert error["hint"]


def mk_id() -> str:
    from memkernel import ids

    return ids.mint("memver")


# -- restore -------------------------------------------------------------------------------------


def test_restore_writes_a_new_version_with_the_old_text(store: mk.Store, open_: Open, page_of: PageOf) -> None:
    first, second = write(store, "one\n", "two\n")
    widget = open_()
    told = events(widget)
    answer = page_of(widget).ask("restore", version=first, head=second)
    assert answer["version"][1:3] == [3, "modified"]
    assert store.read("/a.md") == "one\n"
    assert [row[1] for row in widget.versions] == [3, 2, 1]
    assert widget.total == 3
    assert told == [("restored", {"version": answer["version"][0]})]


def test_fault_25_a_head_that_moved_is_told_and_asked_about_once_more(
    store: mk.Store, open_: Open, page_of: PageOf
) -> None:
    """Fault 25."""
    first, second = write(store, "one\n", "two\n")
    page = page_of(open_())
    (third,) = write(store, "three\n")
    answer = page.ask("restore", version=first, head=second)
    assert answer["moved"][:2] == [third, 3]
    assert answer["sentence"].startswith("Meanwhile there is @3 modified by ")
    assert store.read("/a.md") == "three\n"
    assert page.ask("restore", version=first, head=third)["version"][1] == 4
    assert store.read("/a.md") == "one\n"


def test_fault_25_a_deleted_memory_comes_back_where_it_was(store: mk.Store, open_: Open, page_of: PageOf) -> None:
    """Fault 25."""
    (first,) = write(store, "one\n")
    store.delete("/a.md")
    widget = open_()
    answer = page_of(widget).ask("restore", version=first, head=widget.versions[0][0])
    assert answer["version"][2] == "created"
    assert store.read("/a.md") == "one\n"


def test_a_redacted_version_cannot_be_restored(store: mk.Store, open_: Open, page_of: PageOf) -> None:
    first, _ = write(store, "one\n", "two\n")
    store.redact("/a.md", 1)
    error = page_of(open_()).ask("restore", version=first)
    assert error["message"] == f"{first} was redacted: its text is gone"


def test_a_view_that_is_for_reading_only_changes_nothing(store: mk.Store, open_: Open, page_of: PageOf) -> None:
    first, _ = write(store, "one\n", "two\n")
    widget = open_()
    widget.readonly = True
    for answer in (
        page_of(widget).ask("restore", version=first),
        page_of(widget).ask("redact", version=first, confirm="1"),
    ):
        assert "read only" in answer["message"]
    assert len(store.log("/a.md")) == 2
    assert store.version("/a.md", 1).content == "one\n"


# -- redaction -----------------------------------------------------------------------------------

SECRET = "the key is 4711\n"


def test_the_dialog_is_told_what_holds_the_same_text(store: mk.Store, open_: Open, page_of: PageOf) -> None:
    doomed, *_ = write(store, SECRET, "gone\n", SECRET, "gone again\n")
    write(store, SECRET, path="/b.md")
    page = page_of(open_())
    facts = page.ask("redaction", version=doomed)
    assert (facts["ordinal"], facts["others"], facts["is_head"], facts["reason"]) == (1, 1, False, "")
    assert facts["same"] == "also redact the other version holding this text"
    for said in (
        "of @1 are erased for ever",
        "keep what they showed",
        "1 live memory holds this text and keeps it: /b.md.",
    ):
        assert said in facts["sentence"]


def test_a_path_that_was_erased_with_its_version_is_named_no_more(
    store: mk.Store, open_: Open, page_of: PageOf
) -> None:
    (first,) = write(store, "one\n", path="/of-ann.md")
    store.rename("/of-ann.md", "/b.md")
    widget = open_("/of-ann.md", None, first)
    assert widget.path == "/of-ann.md"
    page_of(widget).ask("redact", version=first, confirm="1")
    assert widget.path == "/b.md"
    assert "of-ann" not in json.dumps(state(widget)) + widget.plain() + widget.static_html()


def test_the_head_is_not_redacted_and_the_way_out_is_told(store: mk.Store, open_: Open, page_of: PageOf) -> None:
    *_, head = write(store, "one\n", SECRET)
    page = page_of(open_())
    facts = page.ask("redaction", version=head)
    assert facts["is_head"]
    assert facts["reason"].startswith("@2 is the current text of /a.md")
    assert "Restore another version or edit the memory first" in facts["reason"]
    assert page.ask("redact", version=head, confirm="2")["message"] == facts["reason"]
    assert store.read("/a.md") == SECRET


@pytest.mark.parametrize("typed", ["", "2", "01", "yes", "@", "1 2"])
def test_without_its_number_typed_nothing_is_erased(store: mk.Store, open_: Open, page_of: PageOf, typed: str) -> None:
    doomed, _ = write(store, SECRET, "gone\n")
    error = page_of(open_()).ask("redact", version=doomed, confirm=typed)
    assert error == {"message": "the redaction of @1 was not confirmed", "hint": "Type 1. Nothing was erased."}
    assert store.version("/a.md", 1).content == SECRET


def test_a_redaction_clears_the_view_its_copy_and_what_was_remembered(
    store: mk.Store, open_: Open, page_of: PageOf
) -> None:
    doomed, second = write(store, SECRET, "gone\n")
    widget = open_()
    told = events(widget)
    page = page_of(widget)
    copy = Copy()
    widget.static_copy = copy
    for everywhere in (json.dumps(state(widget)), widget.static_html(), widget.plain(), remembered(widget)):
        assert "4711" in everywhere
    answer = page.ask("redact", version=doomed, confirm=" @1 ")
    assert answer["versions"][0][:2] == [doomed, 1]
    assert answer["versions"][0][9] == str(store.connection.actor)
    copied = json.dumps(copy.shown[-1])
    after = remembered(widget) + json.dumps(state(widget)) + widget.static_html() + widget.plain() + copied
    assert "4711" not in after
    assert f"@1: redacted by {store.connection.actor}" in widget.view["notes"][0]
    assert "notebooks saved earlier keep what they showed" in widget.static_html()
    assert page.ask("diff", old="prev", new=second)["rows"] == []
    assert told == [("redacted", {"version": doomed, "others": []})]


def remembered(widget: Any) -> str:
    """The texts that it keeps in the kernel."""
    return repr(widget._differences.__dict__) + repr(widget._shown)


class Copy:
    """A display handle that keeps what it is given."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []

    def update(self, bundle: dict[str, str], *, raw: bool) -> None:
        self.shown.append(bundle)


def test_the_others_that_hold_the_text_are_erased_where_it_is_asked_for(
    store: mk.Store, open_: Open, page_of: PageOf
) -> None:
    first, _, third, _ = write(store, SECRET, "gone\n", SECRET, "gone again\n")
    (elsewhere,) = write(store, SECRET, path="/b.md")
    page = page_of(open_())
    answer = page.ask("redact", version=first, confirm="1", others=True)
    assert {row[0] for row in answer["versions"]} == {first, third}
    assert "/b.md" in answer["kept"]
    assert [version.redacted_at is None for version in store.log("/a.md")] == [True, False, True, False]
    assert store.version(None, elsewhere).content == SECRET


def test_others_stay_where_it_is_not_asked_for(store: mk.Store, open_: Open, page_of: PageOf) -> None:
    first, _, third, _ = write(store, SECRET, "gone\n", SECRET, "gone again\n")
    answer = page_of(open_()).ask("redact", version=first, confirm="1")
    assert [row[0] for row in answer["versions"]] == [first]
    assert store.version(None, third).content == SECRET


def test_what_somebody_else_redacts_is_not_shown_from_memory(store: mk.Store, open_: Open, page_of: PageOf) -> None:
    first, second, _ = write(store, SECRET, "gone\n", "gone again\n")
    page = page_of(open_())
    assert "4711" in json.dumps(page.ask("diff", old=first, new=second))
    store.redact(None, first)
    assert "4711" not in json.dumps(page.ask("diff", old=first, new=second))
    assert page.ask("patch", old=first, new=second)["hint"] == "Choose another version."


def test_a_redaction_clears_every_view_of_the_kernel(store: mk.Store, open_: Open, page_of: PageOf) -> None:
    (doomed, _), alive = write(store, SECRET, "gone\n"), LivingWidgets()
    asked, other, closed = open_(), open_(), open_()
    for widget in (asked, other):
        alive.add(widget)
        widget.shown_in = SimpleNamespace(living=alive), 0
    told = threading.Event()

    def note(change: object) -> None:
        told.set()

    other.observe(note, "view")
    page_of(asked).ask("redact", version=doomed, confirm="1")
    assert told.wait(PATIENCE_S)
    assert "4711" in remembered(closed)
    for widget in (asked, other):
        assert "4711" not in remembered(widget) + json.dumps(state(widget)) + widget.static_html() + widget.plain()


# -- in a kernel ---------------------------------------------------------------------------------

VIEW = "application/vnd.jupyter.widget-view+json"


def test_a_diff_in_a_kernel_is_a_widget_and_its_copy(kernel: Kernel) -> None:
    kernel.run("%%memory put /a.md\none\n")
    kernel.run("%%memory put /a.md\ntwo\n")
    for cell in ("%memory diff /a.md", "x = %memory diff /a.md\nx.show()", "x.show();"):
        reply = kernel.run(cell)
        assert reply.status == "ok", reply
        assert [VIEW in output for output in reply.outputs] == [True, False], cell
        assert "-one" in reply.outputs[1]["text/plain"]
        assert 'class="mk-static"' in reply.outputs[1]["text/html"]
    assert kernel.run("x = %memory diff /a.md").outputs == []
    assert kernel.run("[x]").text == "[<memkernel.Diff /a.md @1 → @2 +1 −1>]"


def test_a_diff_that_cannot_be_stepped_through_is_text_and_html(kernel: Kernel) -> None:
    kernel.run("%%memory put /a.md\none\n")
    reply = kernel.run("x = %memory diff /a.md\nimport memkernel as mk\nmk.Diff.of('/a.md', x.old, x.new)")
    assert [sorted(output) for output in reply.outputs] == [["text/html", "text/plain"]]


def test_fault_45_static_output_has_no_widget(kernel: Kernel) -> None:
    """Fault 45."""
    kernel.run("%%memory put /a.md\none\n")
    kernel.run("%memory config render static")
    reply = kernel.run("%memory diff /a.md")
    assert [sorted(output) for output in reply.outputs] == [["text/html", "text/plain"]]
    assert kernel.run("import sys; 'anywidget' in sys.modules").text == "False"


def test_what_a_command_redacts_is_gone_from_what_is_shown(kernel: Kernel) -> None:
    kernel.run("%%memory put /a.md\nthe code is 4711\n")
    kernel.run("%%memory put /a.md\nno code\n")
    kernel.run("diff = %memory diff /a.md\nshown = diff.show()")
    kernel.run("browsed = %memory browse /a.md\nlooked = browsed.show()\nlooked.selected_version = diff.old.id")
    seen = "print([str(each).count('4711') for each in (shown.view, shown.plain(), looked.content)])"
    assert kernel.run(seen).stdout == "[1, 1, 2]\n"
    assert kernel.run("%memory redact /a.md@1 -y").status == "ok"
    assert kernel.run(seen).stdout == "[0, 0, 0]\n"


def test_a_step_in_a_kernel_replaces_the_copy_that_is_saved(kernel: Kernel) -> None:
    for text in ("one", "two", "three"):
        kernel.run(f"%%memory put /a.md\n{text}\n")
    kernel.run("x = %memory diff /a.md")
    reply = kernel.run("w = x.show()\nimport time; time.sleep(1.1)\nw.index = 1")
    assert reply.updates == 1
    assert "-one\n+two" in reply.outputs[-1]["text/plain"]


def test_the_environment_says_how_things_are_shown(bare_kernel: Kernel) -> None:
    bare_kernel.run("import os; os.environ['MEMKERNEL_RENDER'] = 'static'")
    bare_kernel.run("%load_ext memkernel")
    assert bare_kernel.run("%memory config render").text.split()[:2] == ["render", "static"]
    bare_kernel.run("%memory config render auto")
    bare_kernel.run("%reload_ext memkernel")
    assert bare_kernel.run("%memory config render").text.split()[:2] == ["render", "auto"]


def test_a_value_of_the_environment_that_is_none_is_told_in_two_lines(bare_kernel: Kernel) -> None:
    bare_kernel.run("import os; os.environ['MEMKERNEL_RENDER'] = 'colour'")
    assert "MEMKERNEL_RENDER='colour' is none of auto, widget, static" in bare_kernel.run("%load_ext memkernel").stdout
