"""What of a kernel's output leaves a sandbox. Decision 3."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel.models import CellStatus
from memkernel.sandbox.output import ALLOWED, Outputs, clean, size
from memkernel.sandbox.work import Work

LIMIT = 1_000


def outputs(limit: int = LIMIT) -> Outputs:
    return Outputs(limit, "sandbox-x")


def display(data: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"data": data, "metadata": {}} | more


# -- text ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["plain", "a\rb\n\tc\b", "żółw 🐢", "\x1b[1;31mred\x1b[0m", "\x1b[38;5;4mx\x1b[2K\x1b[1A\x1b[0;38:2m"],
)
def test_text_colours_and_progress_bars_leave_as_they_are(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "\x1b]0;title\x07",
        "\x1b]52;c;cm0gLXJm\x07",
        "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
        "\x1b[2J",
        "\x1b[6n",
        "\x1bc",
        "\x1bP+q\x1b\\",
        "\x9b2J",
        "\x1b",
        "\x1b[?1049h",
        "\x1b[1;1H",
    ],
)
def test_what_does_things_to_a_terminal_stays(text: str) -> None:
    assert "\N{REPLACEMENT CHARACTER}" in clean(text)
    assert "\x9b" not in clean(text)


def test_half_characters_become_question_marks() -> None:
    assert clean("a\ud800b") == "a?b"


# -- data ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mime",
    [
        "text/html",
        "image/svg+xml",
        "text/markdown",
        "application/javascript",
        "application/vnd.jupyter.widget-view+json",
        "application/vnd.plotly.v1+json",
        "application/pdf",
        "video/mp4",
        "TEXT/HTML",
        "text/html; charset=utf-8",
        "text/plain\n",
    ],
)
def test_other_types_stay_and_it_is_said(mime: str) -> None:
    found = outputs()
    assert found.add("display_data", display({mime: "<b>x</b>"})) is None
    assert found.kept() == ()
    assert found.notes()[0].startswith("left out: ")


def test_the_text_beside_them_leaves() -> None:
    found = outputs()
    found.add("execute_result", display({"text/html": "<table>", "text/plain": "table"}, execution_count=3))
    assert found.result == "table"
    assert found.kept() == (
        {"output_type": "execute_result", "data": {"text/plain": "table"}, "metadata": {}, "execution_count": 3},
    )
    assert found.notes() == ["left out: text/html; only text, images, LaTeX and JSON leave a sandbox"]


@pytest.mark.parametrize("value", ['x"><script>alert(1)</script>', "data:text/html,x", 5, None, ["iVBOR"], "żółw"])
def test_an_image_that_is_no_base64_stays(value: Any) -> None:
    found = outputs()
    assert found.add("display_data", display({"image/png": value})) is None


@pytest.mark.parametrize(
    "latex",
    [
        r"\href{javascript:alert(1)}{x}",
        r"\style{position:fixed}{x}",
        r"\class{y}{x}",
        r"\require{html}",
        r"\data{a}{b}",
        r"\let\a\href",
        r"\url{javascript:x}",
        r'\mmlToken{mi}[href="javascript:alert(1)"]{x}',
        r"\bbox[background:url(https://x)]{y}",
    ],
)
def test_latex_that_links_or_styles_stays(latex: str) -> None:
    assert outputs().add("display_data", display({"text/latex": latex})) is None


@pytest.mark.parametrize("latex", [r"$\frac{1}{2}$", r"\hrefs", r"$$\sum_{i}^{n} \database$$", "plain"])
def test_other_latex_leaves(latex: str) -> None:
    found = outputs()
    found.add("display_data", display({"text/latex": latex}))
    assert found.kept()[0]["data"]["text/latex"] == latex


def test_of_metadata_only_an_images_size_leaves() -> None:
    found = outputs()
    metadata = {"image/png": {"width": 3, "height": 4.5, "unconfined": True, "class": "x"}, "isolated": True}
    found.add("display_data", {"data": {"image/png": "eA=="}, "metadata": metadata})
    assert found.kept()[0]["metadata"] == {"image/png": {"width": 3, "height": 4.5}}


@pytest.mark.parametrize("count", [True, -1, 10**400, 1.5, "3", None])
def test_a_count_that_is_none_stays(count: Any) -> None:
    found = outputs()
    found.add("execute_result", display({"text/plain": "x"}, execution_count=count))
    assert found.kept()[0]["execution_count"] is None


def test_a_size_that_is_no_number_stays() -> None:
    found = outputs()
    metadata = {"image/png": {"width": float("nan"), "height": float("inf")}, "image/gif": {"width": True}}
    found.add("display_data", {"data": {"image/png": "eA==", "image/gif": "eA=="}, "metadata": metadata})
    assert found.kept()[0]["metadata"] == {}


def test_a_display_id_is_the_sandboxs_own() -> None:
    found = outputs()
    event = found.add("display_data", display({"text/plain": "x"}, transient={"display_id": "theirs"}))
    assert event is not None
    assert event["transient"] == {"display_id": "sandbox-x-theirs"}
    assert "transient" not in found.kept()[0]


def test_the_pager_shows_text_and_nothing_else() -> None:
    found = outputs()
    event = found.page({"source": "page", "data": {"text/plain": "help", "text/html": "<b>"}})
    assert event is not None
    assert event["data"] == {"text/plain": "help"}
    assert found.page({"source": "set_next_input", "text": "rm"}) is None
    assert found.page({"source": "edit_magic", "filename": "/etc/passwd"}) is None
    assert found.page("nonsense") is None
    assert found.notes() == ["left out: set_next_input, edit_magic; only text, images, LaTeX and JSON leave a sandbox"]


# -- how much --------------------------------------------------------------------------------------


def test_streams_are_cut_at_the_limit_and_it_is_said() -> None:
    found = outputs()
    for _ in range(100):
        found.add("stream", {"name": "stdout", "text": "é" * 100})
    assert found.stream("stdout") == "é" * 500
    assert found.notes() == ["left out: 0.0 MB of output beyond 0.0 MB"]


def test_a_display_beyond_the_limit_is_left_out_and_a_small_one_after_it_is_not() -> None:
    found = outputs()
    found.add("display_data", display({"text/plain": "x" * 2_000}))
    found.add("display_data", display({"text/plain": "small"}))
    assert [output["data"]["text/plain"] for output in found.kept()] == ["small"]


def test_what_was_cleared_makes_room() -> None:
    found = outputs()
    for number in range(50):
        found.add("clear_output", {"wait": True})
        found.add("stream", {"name": "stdout", "text": f"{number:03}" + "x" * 800})
    assert found.stream("stdout").startswith("049")
    assert found.notes() == []


def test_clear_output_that_waits_clears_with_the_next_output() -> None:
    found = outputs()
    found.add("stream", {"name": "stdout", "text": "old"})
    found.add("clear_output", {"wait": True})
    assert found.stream("stdout") == "old"
    found.add("stream", {"name": "stdout", "text": "new"})
    assert found.stream("stdout") == "new"


def test_many_errors_are_bounded_and_the_first_is_kept() -> None:
    found = outputs()
    error = {"ename": "E" * 5_000, "evalue": "v" * 5_000, "traceback": ["t" * 5_000]}
    for _ in range(100):
        found.add("error", error)
    assert found.error is not None
    assert found.error["ename"][:3] == "EEE"
    assert size(found.kept()) < 3 * LIMIT
    assert "left out" in found.notes()[-1]


def test_of_what_is_left_out_a_few_names_are_told() -> None:
    found = outputs()
    for number in range(1_000):
        found.add("display_data", display({f"text/x{number}": ""}))
        found.page({"source": f"source {number}"})
    [note] = found.notes()
    assert "other data (1992)" in note
    assert len(note) < 300


def test_an_update_of_many_displays_keeps_the_limit() -> None:
    found = outputs()
    for _ in range(50):
        found.add("display_data", display({"text/plain": "x"}, transient={"display_id": "d"}))
    assert found.add("update_display_data", display({"text/plain": "y" * 900}, transient={"display_id": "d"})) is None
    assert found.add("update_display_data", display({"text/plain": "y"}, transient={"display_id": "d"})) is not None
    assert size(found.kept()) < 5 * LIMIT


def test_updates_of_other_cells_displays_are_bounded_as_a_whole_and_not_each() -> None:
    found = outputs(10_000)

    def update(name: int) -> bool:
        content = display({"text/plain": "x" * 100}, transient={"display_id": name})
        return found.add("update_display_data", content) is not None

    assert all(update(1) for _ in range(1_000))
    assert sum(update(name) for name in range(1_000)) < 50


def test_many_small_outputs_are_bounded() -> None:
    found = outputs(256_000)
    for _ in range(10_000):
        found.add("stream", {"name": "stdout", "text": "o"})
        found.add("stream", {"name": "stderr", "text": "e"})
    assert len(found.kept()) <= 2_001
    assert "left out" in found.notes()[0]


@pytest.mark.parametrize("depth", [200, 900])
def test_json_that_is_nested_without_end_is_cut(depth: int) -> None:
    found = outputs()
    nested: Any = "x"
    for _ in range(depth):
        nested = [nested]
    assert found.add("display_data", display({"application/json": nested})) is not None
    assert json.dumps(found.kept()[0]["data"]["application/json"]) == "[" * 100 + "null" + "]" * 100


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
names = st.sampled_from([*ALLOWED, "text/html", "name", "text", "data", "metadata", "transient", "display_id", "wait"])
bundles = st.dictionaries(names, values, max_size=5)
contents = st.fixed_dictionaries(
    {}, optional={"data": bundles | values, "metadata": bundles | values, "transient": bundles | values}
) | st.dictionaries(st.sampled_from(["name", "text", "ename", "evalue", "traceback", "wait", "data"]), values)
kinds = st.sampled_from(
    ["stream", "display_data", "execute_result", "update_display_data", "error", "clear_output", "comm_msg", "x"]
)


@given(messages=st.lists(st.tuples(kinds, contents), max_size=12))
def test_whatever_comes_what_leaves_is_allowed_and_bounded(messages: list[tuple[str, dict[str, Any]]]) -> None:
    found = outputs()
    for kind, content in messages:
        found.add(kind, content)
        found.page(content)
    for output in found.kept():
        json.dumps(output, allow_nan=False).encode()
        assert set(output.get("data", {})) <= set(ALLOWED)
    assert size([output for output in found.kept() if output["output_type"] != "error"]) <= 20 * LIMIT


# -- what a slow front end is shown ----------------------------------------------------------------


class Told(Work):
    """Work that only tells."""

    def status(self, *, died: bool) -> CellStatus:
        return "ok"

    def interrupt(self) -> None: ...

    def kill(self) -> bool:
        return True


def shown(*events: dict[str, Any]) -> list[dict[str, Any]]:
    work = Told()
    for event in events:
        work.show(event)
    return work.shown()


def text(value: str, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": value}


def clear(wait: bool) -> dict[str, Any]:
    return {"output_type": "clear_output", "wait": wait}


def test_texts_of_one_stream_are_joined() -> None:
    assert shown(text("a"), text("b"), text("c", "stderr"), text("d")) == [
        text("ab"),
        text("c", "stderr"),
        text("d"),
    ]


def test_what_a_clear_would_wipe_away_is_not_shown() -> None:
    assert shown(text("a"), clear(False)) == [clear(False)]
    assert shown(text("a"), clear(True)) == [text("a"), clear(True)]
    assert shown(text("a"), clear(True), clear(True), text("b")) == [clear(True), text("b")]
    assert shown(text("a"), clear(False), text("b")) == [clear(True), text("b")]


def test_of_the_updates_of_a_display_the_last_is_shown() -> None:
    def update(name: str, value: str) -> dict[str, Any]:
        return {"output_type": "update_display_data", "data": value, "transient": {"display_id": name}}

    assert shown(update("x", "1"), update("y", "1"), update("x", "2")) == [update("y", "1"), update("x", "2")]


def test_nothing_is_shown_twice() -> None:
    work = Told()
    work.show(text("a"))
    assert work.shown() == [text("a")]
    work.show(text("b"))
    assert work.shown() == [text("b")]
