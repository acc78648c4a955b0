"""The rows that the page draws: both sides can be rebuilt from them, and the worst texts stay small."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel.jupyter.widgets.diff_rows import (
    MOST_PIECES,
    NO_NEWLINE,
    PAGE,
    STATE,
    Room,
    Row,
    lines_page,
    page_of,
    row_count,
)
from memkernel.textdiff import TextDiff, diff
from memkernel.textdiff.lines import lines_of

LINES = st.lists(
    st.sampled_from(
        ["a", "b", "", " ", "one two three", "one  two three", "two three four", "d\r", "\ufeffé", "x\fy\u202e"]
    )
)
TEXTS = st.builds("".join, st.tuples(st.builds("\n".join, LINES), st.sampled_from(["", "\n"]))) | st.text(max_size=40)
ROOMS = st.sampled_from([PAGE, Room(1, 10**9, (10**9,)), Room(3, 60, (10**9,)), Room(7, 400, (10**9,))])


def all_rows(found: TextDiff, room: Room = PAGE) -> list[Row]:
    """The rows of all pages."""
    rows: list[Row] = []
    start: int | None = 0
    while start is not None:
        page = page_of(found, start, room)
        assert 0 < len(page.rows) <= room.rows or not row_count(found)
        assert page.next in (None, start + len(page.rows))
        rows += page.rows
        start = page.next
    return rows


def characters(marked: Any) -> Iterator[str]:
    """What was stored, from what is shown: a mark's title names its character."""
    for piece in [marked] if isinstance(marked, str) else marked:
        if isinstance(piece, str):
            yield piece
        elif piece == NO_NEWLINE:
            yield "\b"  # takes the line end away again
        else:
            assert piece[1].startswith("U+"), piece
            yield chr(int(piece[1].split()[0][2:], 16))


def line(*texts: Any) -> str:
    return ("".join("".join(characters(text)) for text in texts) + "\n").replace("\b\n", "")


def rebuilt(rows: list[Row], texts: tuple[str, str]) -> tuple[str, str]:
    """Both texts from the rows alone, and for the folds from their lines."""
    sides: tuple[list[str], list[str]] = ([], [])
    for sign, *parts in rows:
        match sign:
            case "=":
                for side, number in zip(sides, parts, strict=False):
                    assert number == len(side) + 1
                    side.append(line(parts[2]))
            case "f":
                for side, number, text in zip(sides, parts, texts, strict=False):
                    assert number == len(side) + 1
                    side.extend(map(line, lines_page(lines_of(text), number, parts[2])))
            case "~":
                for side, number, spans in zip(sides, parts[:2], parts[2:], strict=True):
                    assert number == len(side) + 1
                    side.append(line(*(text for _, text in spans)))
            case _:
                side = sides["-+".index(sign)]
                assert parts[0] == len(side) + 1
                side.append(line(parts[1]))
    return "".join(sides[0]), "".join(sides[1])


# -- properties ------------------------------------------------------------------------------------


@given(TEXTS, TEXTS, st.integers(0, 4), st.booleans(), ROOMS)
def test_both_sides_can_be_rebuilt_from_the_rows_and_the_lines_of_the_folds(
    old: str, new: str, context: int, by_word: bool, room: Room
) -> None:
    rows = all_rows(diff(old, new, context=context, words=by_word), room)
    assert rebuilt(rows, (old, new)) == (old, new)


@given(TEXTS, TEXTS)
def test_with_white_space_ignored_the_new_side_can_be_rebuilt(old: str, new: str) -> None:
    found = diff(old, new, ignore_whitespace=True)
    assert rebuilt(all_rows(found), (old, new))[1] == new


@given(TEXTS, TEXTS, st.integers(0, 3))
def test_the_rows_are_counted_beforehand_and_are_json(old: str, new: str, context: int) -> None:
    found = diff(old, new, context=context)
    rows = all_rows(found)
    assert len(rows) == row_count(found)
    assert json.loads(json.dumps(rows)) == rows


@given(TEXTS, TEXTS)
def test_only_words_that_the_other_side_lacks_are_marked_as_changed(old: str, new: str) -> None:
    for row in all_rows(diff(old, new)):
        if row[0] == "~":
            kept = [line(*(text for changed, text in spans if not changed)) for spans in row[3:]]
            assert "".join(kept[0].split()) == "".join(kept[1].split())


@given(st.text(max_size=300), st.text(max_size=300))
def test_the_first_rows_always_fit_into_the_state(old: str, new: str) -> None:
    page = page_of(diff(old, new), 0, STATE)
    assert len(json.dumps(page.rows)) <= STATE.bytes + 2 * len(page.rows)


# -- what the rows are -----------------------------------------------------------------------------


def test_each_kind_of_row() -> None:
    old = "".join(f"{n}\n" for n in range(9)) + "be brief today\ngone for ever\n"
    new = "".join(f"{n}\n" for n in range(9)) + "be very brief today\nand so on, quite differently\nmore"
    assert all_rows(diff(old, new, context=1)) == [
        ["f", 1, 1, 8],
        ["=", 9, 9, "8"],
        ["~", 10, 10, [[0, "be brief today"]], [[0, "be "], [1, "very "], [0, "brief today"]]],
        ["-", 11, "gone for ever"],
        ["+", 11, "and so on, quite differently"],
        ["+", 12, ["more", NO_NEWLINE]],
    ]


@pytest.mark.parametrize(
    ("old", "new", "ends"),
    [
        ("be brief today", "be brief today\n", [[1, [NO_NEWLINE]]]),
        ("be brief today", "be brief now", [[0, [NO_NEWLINE]]]),
    ],
)
def test_a_missing_line_end_is_a_change_where_only_one_side_lacks_it(old: str, new: str, ends: list[Any]) -> None:
    (row,) = all_rows(diff(old, new))
    assert row[3][-1:] == ends


def test_what_cannot_be_seen_is_a_mark_with_its_name() -> None:
    (row,) = all_rows(diff("", "pass\u200bword\n"))
    assert row == ["+", 1, ["pass", ["⟨U+200B⟩", "U+200B ZERO WIDTH SPACE"], "word"]]


def test_texts_that_do_not_differ_are_one_fold() -> None:
    assert all_rows(diff("a\nb\n", "a\nb\n")) == [["f", 1, 1, 2]]
    assert all_rows(diff("", "")) == []


def test_with_white_space_ignored_an_equal_line_is_the_new_one() -> None:
    assert all_rows(diff("a  b\nc\n", "a b\nd\n", ignore_whitespace=True))[0] == ["=", 1, 1, "a b"]


def test_the_lines_of_a_fold_are_given_from_any_number_on() -> None:
    lines = [f"{n}\n" for n in range(1, 11)]
    assert lines_page(lines, 3, 2) == ["3", "4"]
    assert lines_page(lines, 10, 5) == ["10"]
    assert len(lines_page(["x\n"] * 9_000, 1, 9_000)) == PAGE.rows


# -- the worst texts (UX 2.1) ----------------------------------------------------------------------


def shuffled(lines: list[str]) -> list[str]:
    return random.Random(7).sample(lines, len(lines))


REPETITIVE = [f"- {n % 40}\n" for n in range(9_000)]
ONE_LINE = " ".join(f"w{n}" for n in range(17_000))[:102_400]

WORST = {
    "one line of 102,400 bytes, some words changed": (ONE_LINE, ONE_LINE.replace("7 ", "8 ")),
    "one line, another line": ("x" * 102_400, "y" * 102_400),
    "one line of which every second letter changed": ("ab" * 51_200, "ac" * 51_200),
    "one line of control characters": ("\x01" * 102_400, "\x02" * 102_400),
    "one line of quotes": ('"' * 102_400, "\\" * 102_400),
    "letters that JSON writes with six": ("é" * 51_200, "è" * 51_200),
    "50,000 lines of one character": ("a\n" * 51_200, "b\n" * 51_200),
    "50,000 empty lines and nothing": ("\n" * 102_400, ""),
    "9,000 repetitive lines, shuffled": ("".join(REPETITIVE), "".join(shuffled(REPETITIVE))),
    "nothing and lines of marks": ("", "\u200b \n" * 20_000),
    "words of one letter, every second changed": ("a b " * 25_600, "a c " * 25_600),
}


@pytest.mark.parametrize("name", WORST)
def test_a_page_of_the_worst_texts_is_bounded(name: str) -> None:
    page = page_of(diff(*WORST[name]))
    sizes = [len(json.dumps(row)) for row in page.rows]
    assert 0 < len(page.rows) <= 2_000
    assert sum(sizes[:-1]) <= PAGE.bytes
    assert max(sizes) <= 720_000


@pytest.mark.parametrize("name", WORST)
def test_the_first_view_of_the_worst_texts_fits_into_the_state(name: str) -> None:
    page = page_of(diff(*WORST[name]), 0, STATE)
    assert 0 < len(page.rows) <= 200
    assert len(json.dumps(page.rows)) <= STATE.bytes + 1_000
    assert page.next is not None or page.cut or len(page.rows) == row_count(diff(*WORST[name]))


@pytest.mark.parametrize("name", WORST)
def test_no_line_becomes_more_elements_than_a_page_can_bear(name: str) -> None:
    for row in page_of(diff(*WORST[name])).rows:
        sides: list[list[Any]] = row[3:] if row[0] == "~" else [[[0, row[-1]]]]
        for spans in sides:
            pieces = sum(1 if isinstance(text, str) else len(text) for _, text in spans)
            assert pieces <= MOST_PIECES + 3


def test_what_is_left_out_of_a_line_is_counted() -> None:
    (row,) = page_of(diff("", "\x01" * 10_000)).rows
    assert row[2][MOST_PIECES:] == [
        ["⟨… 6,000 more characters⟩", "there is no room here for all of it"],
        NO_NEWLINE,
    ]


def test_a_long_line_is_shortened_in_the_state_only() -> None:
    found = diff("", "x" * 100_000 + "\n")
    first = page_of(found, 0, STATE)
    assert first.cut
    assert first.rows[0][2][1][0] == "⟨… 92,000 more characters⟩"
    assert page_of(found).rows == [["+", 1, "x" * 100_000]]
