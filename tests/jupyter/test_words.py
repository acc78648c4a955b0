"""Words of a magic's line: quotes, apostrophes, escapes, and what is half typed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel.jupyter import words


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", []),
        ("   ", []),
        ("cat /a.md", ["cat", "/a.md"]),
        ('cat "/my notes/it\'s.md"', ["cat", "/my notes/it's.md"]),
        ("cat /it's.md", ["cat", "/it's.md"]),
        ("cat 'tis", ["cat", "'tis"]),
        ('cat "open', ["cat", '"open']),
        ("grep 'it's fine' /", ["grep", "it's fine", "/"]),
        (r"cat /my\ notes/a.md", ["cat", "/my notes/a.md"]),
        ('cat "Team notes":/a.md@1', ["cat", "Team notes:/a.md@1"]),
        ('cat Team:"/my notes/a.md"@-1', ["cat", "Team:/my notes/a.md@-1"]),
        ('create x --description="House rules"', ["create", "x", "--description=House rules"]),
        (r'replace /a "say \"hi\"" "back\\slash"', ["replace", "/a", 'say "hi"', r"back\slash"]),
        (r"grep \d+\.md", ["grep", r"\d+\.md"]),
        (r'grep "\d"', ["grep", r"\d"]),
        ('put /a ""', ["put", "/a", ""]),
        ("cat\t/a\u00a0b", ["cat", "/a", "b"]),
        ('a"b"c', ['a"b"c']),
        ("end\\", ["end\\"]),
    ],
)
def test_fault_42_a_line_is_split_into_the_words_that_were_meant(line: str, expected: list[str]) -> None:
    assert words.split(line) == expected


@given(st.text(min_size=1))
def test_a_quoted_text_is_one_word_and_means_itself(text: str) -> None:
    assert words.split(words.quote(text)) == [text]


@given(st.lists(st.text()))
def test_quoted_texts_side_by_side_are_as_many_words(texts: list[str]) -> None:
    assert words.split(" ".join(map(words.quote, texts))) == texts


@given(st.text(), st.sampled_from(["", '"', "'", "/x"]))
def test_a_text_quoted_in_the_manner_begun_means_itself(text: str, typed: str) -> None:
    assert words.split(words.quote_like(text, typed)) == [text]


@given(st.text())
def test_no_line_breaks_the_splitter(line: str) -> None:
    finished, fragment = words.unfinished(line)
    assert line.endswith(fragment)
    assert len(finished) <= len(line)


@pytest.mark.parametrize(
    ("line", "finished", "fragment", "meaning"),
    [
        ("", [], "", ""),
        ("cat ", ["cat"], "", ""),
        ("cat /pro", ["cat"], "/pro", "/pro"),
        ('cat "/my no', ["cat"], '"/my no', "/my no"),
        (r"cat /my\ no", ["cat"], r"/my\ no", "/my no"),
        ('cat Team:"/my no', ["cat"], 'Team:"/my no', "Team:/my no"),
        ('cat "/my notes/a.md"', ["cat"], '"/my notes/a.md"', "/my notes/a.md"),
        ('cat "/my notes/a.md" ', ["cat", "/my notes/a.md"], "", ""),
        ("cat /it's", ["cat"], "/it's", "/it's"),
    ],
)
def test_the_word_being_typed_is_found(line: str, finished: list[str], fragment: str, meaning: str) -> None:
    assert words.unfinished(line) == (finished, fragment)
    assert words.meant(fragment) == meaning
