"""What every widget has: requests of the page, events, a static copy that is kept in step, and an end."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from memkernel.errors import MemoryNotFoundError
from memkernel.jupyter.preferences import Preferences
from memkernel.jupyter.widgets import living, outputs, widget
from memkernel.jupyter.widgets.living import LivingWidgets
from memkernel.jupyter.widgets.rows import marked
from memkernel.jupyter.widgets.widget import MemoryWidget, request, slow_request

PATIENCE_S = 30.0


class Sample(MemoryWidget):
    """A widget with one request of each kind."""

    def __init__(self) -> None:
        super().__init__(kind="sample")
        self.sent: list[Any] = []
        self.may_end = threading.Event()
        self.text = "one"

    def send(self, content: object, buffers: object = None) -> None:
        self.sent.append(content)

    def plain(self) -> str:
        return f"sample {self.text}"

    def static_html(self) -> str:
        return f"<p>sample {self.text}</p>"

    @request
    def add(self, *, first: int, second: int) -> int:
        return first + second

    @request
    def find(self, *, path: str) -> str:
        raise MemoryNotFoundError(path, "team-notes", ["/b.md"])

    @request
    def break_down(self) -> None:
        raise RuntimeError("secret detail")

    @slow_request
    def wait(self) -> str:
        assert self.may_end.wait(PATIENCE_S)
        return "waited"

    def close_all(self) -> str:
        """No request."""
        return "closed"


class Copy:
    """A display handle that keeps what it is given."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []

    def update(self, bundle: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.shown.append(bundle)


def ask(sample: Sample, method: str, **params: Any) -> None:
    """A message as the page sends it."""
    handle: Any = getattr(sample, "_handle_custom_msg")  # noqa: B009  # ipywidgets' own entry, private and untyped
    handle({"id": 7, "method": method, "params": params}, [])


def eventually(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_whether_a_view_may_write_is_not_the_pages_to_say() -> None:
    sample: Any = Sample()
    sample.readonly = True
    sample.set_state({"readonly": False, "kind": "browser", "as_of": "2030-01-01T00:00:00Z"})
    assert (sample.readonly, sample.kind, sample.as_of) == (True, "sample", "")


# -- requests ------------------------------------------------------------------------------------


def test_a_request_is_answered_under_its_id() -> None:
    sample = Sample()
    ask(sample, "add", first=1, second=2)
    assert sample.sent == [{"id": 7, "result": 3}]


def test_an_error_of_memkernel_is_told_with_its_way_out() -> None:
    sample = Sample()
    ask(sample, "find", path="/a.md")
    error = sample.sent[0]["error"]
    assert "/a.md" in error["message"]
    assert "/b.md" in error["message"] + error["hint"]


def test_what_nobody_expected_is_logged_and_told_without_its_details(caplog: pytest.LogCaptureFixture) -> None:
    sample = Sample()
    with caplog.at_level(logging.ERROR, logger="memkernel"):
        ask(sample, "break_down")
    assert "secret detail" in caplog.text
    assert sample.sent == [
        {"id": 7, "error": {"message": "memkernel failed at this", "hint": "The kernel's log tells more."}}
    ]


@pytest.mark.parametrize("params", [{}, {"first": 1}, {"first": 1, "second": 2, "third": 3}])
def test_wrong_parameters_are_an_answer_too(params: dict[str, int], caplog: pytest.LogCaptureFixture) -> None:
    sample = Sample()
    ask(sample, "add", **params)
    assert "error" in sample.sent[0]
    assert "Sample.add" in caplog.text


@pytest.mark.parametrize("method", ["close_all", "close", "send", "__init__", "no_such", "kind"])
def test_only_what_is_marked_can_be_asked_for(method: str) -> None:
    sample = Sample()
    ask(sample, method)
    assert [each.get("result") for each in sample.sent] in ([], [None])
    assert sample.comm is not None


def test_a_slow_request_holds_up_no_other() -> None:
    sample = Sample()
    ask(sample, "wait")
    ask(sample, "add", first=1, second=2)
    assert sample.sent == [{"id": 7, "result": 3}]
    sample.may_end.set()
    eventually(lambda: len(sample.sent) == 2)
    assert sample.sent[1] == {"id": 7, "result": "waited"}


# -- events --------------------------------------------------------------------------------------


def test_observers_are_told_and_one_that_raises_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    sample, told = Sample(), list[Any]()

    def fail(name: str, facts: object) -> None:
        raise ValueError("observer")

    sample.on_event(fail)
    sample.on_event(lambda name, facts: told.append((name, dict(facts))))
    sample.happened("step", version="memver_1")
    assert told == [("step", {"version": "memver_1"})]
    assert "an observer of Sample failed at step" in caplog.text


# -- the static copy -----------------------------------------------------------------------------


def test_the_static_copy_is_text_and_html_and_names_its_widget() -> None:
    sample = Sample()
    bundle = outputs.bundle_of(sample)
    assert bundle["text/plain"] == "sample one"
    assert f'data-mk="{sample.model_id}"' in bundle["text/html"]
    assert "<p>sample one</p>" in bundle["text/html"]


def test_the_static_copy_follows_at_most_once_a_pause_and_ends_with_the_last_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(widget, "STATIC_PAUSE_S", 0.2)
    sample = Sample()
    sample.static_copy = copy = Copy()
    began = time.monotonic()
    for number in range(50):
        sample.text = str(number)
        sample.refresh_static()
    eventually(lambda: "sample 49" in copy.shown[-1]["text/plain"])
    assert len(copy.shown) <= 2 + (time.monotonic() - began) / 0.2


def test_a_copy_that_cannot_be_made_later_is_logged_and_the_next_one_is_made(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(widget, "STATIC_PAUSE_S", 0.05)
    sample = Sample()
    sample.static_copy = copy = Copy()
    with monkeypatch.context() as patch:
        patch.setattr(sample, "plain", lambda: 1 / 0)
        patch.setattr(sample, "_copied_at", time.monotonic())
        sample.refresh_static()
        eventually(lambda: "copy of a Sample was not brought up to date" in caplog.text)
    sample.refresh_static()
    eventually(lambda: len(copy.shown) == 1)


def test_a_copy_that_is_wanted_at_once_does_not_wait() -> None:
    sample = Sample()
    sample.static_copy = copy = Copy()
    sample.refresh_static()
    sample.text = "two"
    sample.refresh_static(at_once=True)
    assert [bundle["text/plain"] for bundle in copy.shown] == ["sample one", "sample two"]


def test_a_widget_that_is_not_shown_or_is_closed_copies_nothing() -> None:
    sample = Sample()
    sample.refresh_static()
    sample.static_copy = copy = Copy()
    sample.close()
    sample.refresh_static()
    assert copy.shown == []


# -- showing -------------------------------------------------------------------------------------


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """What is displayed, in order."""
    bundles: list[dict[str, str]] = []

    def display(bundle: dict[str, str], *, raw: bool, display_id: bool = False) -> Copy:
        bundles.append(bundle)
        return Copy()

    monkeypatch.setattr(outputs, "display", display)
    return bundles


@pytest.fixture
def kernel_outputs() -> outputs.Outputs:
    """The outputs of a shell in a kernel."""
    shell: Any = SimpleNamespace(kernel=object())
    return outputs.Outputs(shell, Preferences())


def test_a_widget_is_two_outputs_itself_and_its_copy(
    kernel_outputs: outputs.Outputs, shown: list[dict[str, str]]
) -> None:
    kernel_outputs.show(Sample())
    assert [sorted(bundle) for bundle in shown] == [[outputs.VIEW_TYPE, "text/plain"], ["text/html", "text/plain"]]
    assert shown[0]["text/plain"] == ""


def test_a_cell_that_gives_back_what_it_has_just_shown_shows_it_once(
    kernel_outputs: outputs.Outputs, shown: list[dict[str, str]]
) -> None:
    kernel_outputs.living.begin_cell(cell("a"))
    kernel_outputs.show(sample := Sample())
    sample._ipython_display_()  # pyright: ignore[reportPrivateUsage]  # IPython's protocol
    assert len(shown) == 2
    kernel_outputs.living.begin_cell(cell("b"))
    sample._ipython_display_()  # pyright: ignore[reportPrivateUsage]  # IPython's protocol
    assert len(shown) == 4


def test_a_widget_that_was_closed_with_its_cell_opens_again_where_it_is_shown(
    kernel_outputs: outputs.Outputs, shown: list[dict[str, str]]
) -> None:
    kernel_outputs.living.begin_cell(cell("a"))
    kernel_outputs.show(sample := Sample())
    kernel_outputs.living.begin_cell(cell("a"))
    assert not is_alive(sample)
    kernel_outputs.show(sample)
    assert is_alive(sample)


class Thing:
    """What has a text and an HTML of its own."""

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": "a thing", "text/html": "<p>a thing</p>"}


def test_where_the_person_wants_static_output_no_widget_is_made(shown: list[dict[str, str]]) -> None:
    shell: Any = SimpleNamespace(kernel=object())
    preferences = Preferences()
    preferences.set("render", "static")
    outputs.Outputs(shell, preferences).show_thing(Thing(), lambda: pytest.fail("a widget was made"))
    assert shown == [{"text/plain": "a thing", "text/html": "<p>a thing</p>"}]


def test_in_a_terminal_no_widget_is_made(shown: list[dict[str, str]]) -> None:
    terminal: Any = SimpleNamespace()
    outputs.Outputs(terminal, Preferences()).show_thing(Thing(), lambda: pytest.fail("a widget was made"))
    assert [bundle["text/plain"] for bundle in shown] == ["a thing"]


def test_without_anywidget_no_widget_is_made(
    kernel_outputs: outputs.Outputs, shown: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault 48."""
    monkeypatch.setattr(outputs, "find_spec", dict[str, object]().get)
    kernel_outputs.show_thing(Thing(), lambda: pytest.fail("a widget was made"))
    assert [bundle["text/plain"] for bundle in shown] == ["a thing"]


# -- which are alive -----------------------------------------------------------------------------


def cell(name: str | None) -> Any:
    """What IPython tells of a cell that begins."""
    return SimpleNamespace(cell_id=name)


def is_alive(sample: Sample) -> bool:
    return sample.comm is not None


def test_a_cell_that_runs_again_closes_what_it_had_shown() -> None:
    alive, first, second = LivingWidgets(), Sample(), Sample()
    alive.begin_cell(cell("a"))
    alive.add(first)
    alive.begin_cell(cell("b"))
    alive.add(second)
    alive.begin_cell(cell("a"))
    assert (is_alive(first), is_alive(second), len(alive)) == (False, True, 1)


def test_cells_without_a_name_close_nothing_of_each_other() -> None:
    alive, first = LivingWidgets(), Sample()
    alive.begin_cell(cell(None))
    alive.add(first)
    alive.begin_cell(cell(None))
    assert is_alive(first)


def test_a_widget_that_is_shown_again_elsewhere_lives_with_its_new_cell() -> None:
    alive, sample = LivingWidgets(), Sample()
    alive.begin_cell(cell("a"))
    alive.add(sample)
    alive.begin_cell(cell("b"))
    alive.add(sample)
    alive.begin_cell(cell("a"))
    assert (is_alive(sample), len(alive)) == (True, 1)


def test_of_too_many_the_oldest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(living, "MOST", 2)
    alive, samples = LivingWidgets(), [Sample() for _ in range(4)]
    for sample in samples:
        alive.add(sample)
    assert [is_alive(sample) for sample in samples] == [False, False, True, True]


# -- what travels --------------------------------------------------------------------------------


def test_text_that_can_be_seen_travels_as_it_is() -> None:
    assert marked("plain\ttext\n") == "plain\ttext\n"


def test_what_cannot_be_seen_travels_as_a_mark_with_its_name() -> None:
    assert marked("a\u202eb\x1b") == [
        "a",
        ["⟨U+202E⟩", "U+202E RIGHT-TO-LEFT OVERRIDE"],
        "b",
        ["⟨ESC⟩", "U+001B CONTROL CHARACTER"],
    ]
    assert json.loads(json.dumps(marked("\x00"))) == [["⟨NUL⟩", "U+0000 CONTROL CHARACTER"]]
