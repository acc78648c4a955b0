"""Words of a query, and the lines of a text that hold them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel.errors import InvalidInputError
from memkernel.textsearch import EXCERPT_CHARS, MOST_WORDS, excerpts, spans, words_of

WORDS = st.lists(st.text("abAB*.( \n", min_size=1), min_size=1, max_size=3)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("one two", ["one", "two"]),
        ("  one\ttwo\none ", ["one", "two"]),
        ('"one two" three', ["one two", "three"]),
        ('an"other" open" end', ['an"other"', 'open"', "end"]),
        ('"" one', ["one"]),
        ("a+b [c]", ["a+b", "[c]"]),
    ],
)
def test_words(query: str, words: list[str]) -> None:
    assert words_of(query) == words


@pytest.mark.parametrize("query", ["", " ", '""', '"  "', " ".join(map(str, range(MOST_WORDS + 1)))])
def test_no_word_or_too_many(query: str) -> None:
    with pytest.raises(InvalidInputError):
        words_of(query)


def test_the_lines_with_most_different_words_are_taken_in_their_order() -> None:
    text = "red\nred red red\ngreen and Red\n\nblue green red\nred"
    assert excerpts(text, ["red", "green", "blue"], 2) == [(3, "green and Red"), (5, "blue green red")]
    assert excerpts(text, ["red"], 2) == [(1, "red"), (2, "red red red")]
    assert excerpts(text, ["none"], 2) == []


def test_a_long_line_is_cut_around_its_first_word() -> None:
    (inside,) = excerpts("a" * 1_000 + "needle" + "b" * 1_000, ["needle"], 3)
    (at_begin,) = excerpts("needle" + "b" * 1_000, ["needle"], 3)
    (at_end,) = excerpts("a" * 1_000 + "needle", ["needle"], 3)
    for _, line in (inside, at_begin, at_end):
        assert "needle" in line
        assert len(line.strip("…")) == EXCERPT_CHARS
    assert [(line[0] == "…", line[-1] == "…") for _, line in (inside, at_begin, at_end)] == [
        (True, True),
        (False, True),
        (True, False),
    ]


def test_spans_mark_the_longer_word() -> None:
    assert spans("A note, notes", ["note", "notes"]) == [
        (False, "A "),
        (True, "note"),
        (False, ", "),
        (True, "notes"),
    ]


@given(st.text("abAB*.( \n"), WORDS)
def test_spans_lose_nothing_and_lines_are_where_they_are_said_to_be(text: str, words: list[str]) -> None:
    pieces = spans(text, words)
    assert "".join(piece for _, piece in pieces) == text
    assert all(piece.casefold() in {word.casefold() for word in words} for is_hit, piece in pieces if is_hit)
    lines = text.split("\n")
    assert all(lines[number - 1] == line for number, line in excerpts(text, words, 3))
