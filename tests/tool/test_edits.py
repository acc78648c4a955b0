"""Edits and numbering (CONTRACT A.6). No database; the SDK's own tool is the oracle of test_differential.py."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel.tool.edits import (
    LineOutOfRangeError,
    ManyMatchesError,
    NoMatchError,
    insert,
    numbered,
    snippet,
    str_replace,
    view,
)

TEXTS = st.text(st.sampled_from("ab\n\ré"), max_size=30)


def number_plainly(lines: list[str], first: int) -> str:
    return "\n".join(f"{number:6d}\t{line}" for number, line in enumerate(lines, first))


@given(TEXTS, st.text(st.sampled_from("ab\n"), max_size=4), st.text(st.sampled_from("ab\n$\\1&"), max_size=4))
def test_a_replacement_is_what_str_replace_makes(text: str, old: str, new: str) -> None:
    count = text.count(old)
    if count == 0:
        with pytest.raises(NoMatchError):
            str_replace(text, old, new)
    elif count > 1:
        with pytest.raises(ManyMatchesError) as caught:
            str_replace(text, old, new)
        places = [at for at in range(len(text) + 1) if text.startswith(old, at)]
        assert caught.value.lines == [text.count("\n", 0, at) + 1 for at in places]
    else:
        replacement = str_replace(text, old, new)
        assert replacement.text == text.replace(old, new)
        assert replacement.at == text.find(old)


@given(TEXTS, st.data())
def test_a_snippet_is_two_lines_on_either_side(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    line = text.count("\n", 0, at)
    first = max(0, line - 2)
    assert snippet(text, at) == number_plainly(text.split("\n")[first : line + 3], first + 1)


@given(TEXTS, st.integers(-1, 8), st.text(st.sampled_from("x\n"), max_size=4))
def test_an_insertion_is_made_of_whole_lines(text: str, insert_line: int, added: str) -> None:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not 0 <= insert_line <= len(lines):
        with pytest.raises(LineOutOfRangeError) as caught:
            insert(text, insert_line, added)
        assert caught.value.line_count == len(lines)
        return
    lines.insert(insert_line, added.rstrip("\n"))
    joined = "\n".join(lines)
    assert insert(text, insert_line, added) == (joined if joined.endswith("\n") else joined + "\n")


def test_an_insertion_is_never_glued_to_a_line() -> None:
    """Fault 2."""
    assert insert("a\nb", 2, "X") == "a\nb\nX\n"
    assert insert("a\nb\n", 1, "X") == "a\nX\nb\n"


@given(TEXTS, st.none() | st.tuples(st.integers(-4, 8), st.integers(-4, 8)))
def test_a_view_is_a_slice_of_numbered_lines(text: str, view_range: tuple[int, int] | None) -> None:
    lines, first = text.split("\n"), 1
    if view_range is not None:
        first = max(1, view_range[0])
        lines = lines[first - 1 : len(lines) if view_range[1] == -1 else view_range[1]]
    assert view(text, view_range) == "\n" + number_plainly(lines, first)


@pytest.mark.parametrize("count", [0, 1, 2, 16_383, 16_384, 20_000])
@pytest.mark.parametrize("first", [1, 2, 9_999, 999_999])
def test_numbers_are_right_at_every_size(count: int, first: int) -> None:
    assert numbered(["x"] * count, first)[1:] == number_plainly(["x"] * count, first)


def test_a_needle_in_its_thousands_is_reported_in_linear_time() -> None:
    started = time.monotonic()
    with pytest.raises(ManyMatchesError) as caught:
        str_replace("a\n" * 50_000, "\n", "")
    assert caught.value.lines == list(range(1, 50_001))
    assert time.monotonic() - started < 5  # quadratic it takes minutes
