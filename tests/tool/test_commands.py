"""What the model sent -> a call of the back end, or a sentence on the field (CONTRACT A.2, A.9). No database."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel.errors import MemoryToolError
from memkernel.tool.commands import MemoryBackend, run
from memkernel.tool.paths import MemoryPath


class Recorder(MemoryBackend):
    """A back end of one's own that remembers what it was called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def _record(self, *call: object) -> str:
        self.calls.append(call)
        return f"{call[0]} done"

    def view(self, path: MemoryPath, view_range: tuple[int, int] | None = None) -> str:
        return self._record("view", path.path, view_range)

    def create(self, path: MemoryPath, file_text: str) -> str:
        return self._record("create", path.path, file_text)

    def str_replace(self, path: MemoryPath, old_str: str, new_str: str) -> str:
        return self._record("str_replace", path.path, old_str, new_str)

    def insert(self, path: MemoryPath, insert_line: int, insert_text: str) -> str:
        return self._record("insert", path.path, insert_line, insert_text)

    def delete(self, path: MemoryPath) -> str:
        return self._record("delete", path.path)

    def rename(self, old_path: MemoryPath, new_path: MemoryPath) -> str:
        return self._record("rename", old_path.path, new_path.path)


def call(command: object) -> tuple[object, ...]:
    recorder = Recorder()
    run(recorder, command)
    return recorder.calls[0]


def refused(command: object) -> str:
    recorder = Recorder()
    with pytest.raises(MemoryToolError) as caught:
        run(recorder, command)
    assert recorder.calls == []
    return str(caught.value)


PATH = {"path": "/memories/a"}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ({"command": "view", **PATH}, ("view", "/memories/a", None)),
        ({"command": "view", **PATH, "view_range": [2, -1]}, ("view", "/memories/a", (2, -1))),
        ({"command": "view", **PATH, "view_range": ["1", "+2"]}, ("view", "/memories/a", (1, 2))),
        ({"command": "create", **PATH, "file_text": ""}, ("create", "/memories/a", "")),
        ({"command": "str_replace", **PATH, "old_str": "x", "new_str": "y"}, ("str_replace", "/memories/a", "x", "y")),
        ({"command": "insert", **PATH, "insert_line": 0, "insert_text": "t"}, ("insert", "/memories/a", 0, "t")),
        ({"command": "insert", **PATH, "insert_line": "-1", "insert_text": "t"}, ("insert", "/memories/a", -1, "t")),
        ({"command": "delete", **PATH}, ("delete", "/memories/a")),
        (
            {"command": "rename", "old_path": "/memories/a", "new_path": "/memories//b/"},
            ("rename", "/memories/a", "/memories/b"),
        ),
        ({"command": "view", **PATH, "reason": {"because": 1}, "file_text": 5}, ("view", "/memories/a", None)),
    ],
)
def test_good_input_reaches_the_back_end_checked(command: object, expected: tuple[object, ...]) -> None:
    """Keys that are not known are ignored (fault 8)."""
    assert call(command) == expected


@pytest.mark.parametrize("new_str", [{}, {"new_str": None}])
def test_f070_absent_or_null_new_str_is_empty(new_str: dict[str, None]) -> None:
    """Fault 6."""
    assert call({"command": "str_replace", **PATH, "old_str": "x", **new_str})[-1] == ""


@pytest.mark.parametrize("view_range", [[1], [1, 2, 3], [], None, ["x"], (1, 2, 3)])
def test_f045_a_view_range_of_another_length_counts_as_none(view_range: object) -> None:
    assert call({"command": "view", **PATH, "view_range": view_range})[-1] is None


def test_f005_an_unknown_command_is_named() -> None:
    assert refused({"command": "bogus"}) == "Unknown command: bogus"
    assert refused({"command": "View", **PATH}) == "Unknown command: View"
    assert refused({"command": ""}) == "Unknown command: "
    assert len(refused({"command": "x" * 100_000})) < 300


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ({}, "command is missing, it must be one of view, create, str_replace, insert, delete, rename"),
        ({"command": None}, "command must be one of view, create, str_replace, insert, delete, rename, not null"),
        (
            {"command": ["view"]},
            "command must be one of view, create, str_replace, insert, delete, rename, not an array",
        ),
        ("view", 'it must be an object with a command, not "view"'),
        (None, "it must be an object with a command, not null"),
        ([], "it must be an object with a command, not an array"),
        ({"command": "view"}, "path is missing, it must be a string"),
        ({"command": "view", "path": 5}, "path must be a string, not 5"),
        ({"command": "view", "path": None}, "path must be a string, not null"),
        (
            {"command": "view", **PATH, "view_range": "1-2"},
            'view_range must be two whole numbers, [start, end], not "1-2"',
        ),
        ({"command": "view", **PATH, "view_range": [1, None]}, "view_range must be two whole numbers, [start, end]"),
        ({"command": "view", **PATH, "view_range": [1.5, 2]}, "view_range must be two whole numbers, [start, end]"),
        ({"command": "create", **PATH}, "file_text is missing, it must be a string"),
        ({"command": "create", **PATH, "file_text": None}, "file_text must be a string, not null"),
        ({"command": "create", **PATH, "file_text": {"a": 1}}, "file_text must be a string, not an object"),
        ({"command": "create", "file_text": "x"}, "path is missing, it must be a string"),
        ({"command": "str_replace", **PATH}, "old_str is missing, it must be a string"),
        ({"command": "str_replace", **PATH, "old_str": "x", "new_str": 0}, "new_str must be a string, not 0"),
        ({"command": "insert", **PATH, "insert_text": "x"}, "insert_line is missing, it must be a whole number"),
        (
            {"command": "insert", **PATH, "insert_line": "two", "insert_text": "x"},
            'insert_line must be a whole number, not "two"',
        ),
        (
            {"command": "insert", **PATH, "insert_line": True, "insert_text": "x"},
            "insert_line must be a whole number, not true",
        ),
        (
            {"command": "insert", **PATH, "insert_line": 1.5, "insert_text": "x"},
            "insert_line must be a whole number, not 1.5",
        ),
        (
            {"command": "insert", **PATH, "insert_line": "١", "insert_text": "x"},
            'insert_line must be a whole number, not "١"',
        ),
        (
            {"command": "insert", **PATH, "insert_line": 10**5_000, "insert_text": "x"},
            "insert_line must be a whole number, not so large a number",
        ),
        ({"command": "insert", **PATH, "insert_line": 1}, "insert_text is missing, it must be a string"),
        ({"command": "delete"}, "path is missing, it must be a string"),
        ({"command": "rename", "old_path": "/memories/a"}, "new_path is missing, it must be a string"),
        ({"command": "rename", "new_path": "/memories/a"}, "old_path is missing, it must be a string"),
        ({"command": "create", **PATH, "file_text": "ab\ud800"}, "file_text holds a lone surrogate at character 2"),
        ({"command": "view", "path": "/memories/\udfff"}, "path holds a lone surrogate at character 10"),
        ({"command": "\ud800"}, "command holds a lone surrogate at character 0"),
    ],
)
def test_f006_malformed_input_is_told_by_field_and_expectation(command: object, reason: str) -> None:
    """Fault 8."""
    assert refused(command) == f"invalid memory tool input: {reason}"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)
COMMANDS = st.sampled_from(["view", "create", "str_replace", "insert", "delete", "rename", "fly"])
FIELDS = st.sampled_from(
    ["path", "old_path", "new_path", "file_text", "old_str", "new_str", "insert_line", "insert_text", "view_range"]
)


@given(st.dictionaries(FIELDS, JSON | st.just("/memories/a")), COMMANDS | JSON)
def test_no_json_at_all_raises_anything_else(fields: dict[str, Any], command: object) -> None:
    try:
        answer = run(Recorder(), {**fields, "command": command})
    except MemoryToolError as error:
        answer = str(error)
    json.dumps(answer, ensure_ascii=False).encode()


def test_a_back_end_of_ones_own_has_no_clear_unless_it_defines_it() -> None:
    with pytest.raises(NotImplementedError, match="Recorder does not define clear"):
        Recorder().clear()


def test_f018_dot_dot_is_the_back_ends_choice() -> None:
    recorder = Recorder()
    assert run(recorder, {"command": "view", "path": "/memories/x/../a"}) == "view done"
    recorder.dotdot = "reject"
    with pytest.raises(MemoryToolError, match=r"it has a \.\. segment"):
        run(recorder, {"command": "view", "path": "/memories/x/../a"})


@pytest.mark.parametrize("answer", [5, None, b"text", ["text"]])
def test_f003_a_back_end_that_answers_with_no_text_breaks_its_word(answer: Any) -> None:
    class Wrong(Recorder):
        def delete(self, path: MemoryPath) -> str:
            return answer

    with pytest.raises(TypeError, match=r"Wrong\.delete returned (int|NoneType|bytes|list); .* is a str"):
        run(Wrong(), {"command": "delete", **PATH})
