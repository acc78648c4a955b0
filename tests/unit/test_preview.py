"""Markdown for the page: few tags, no HTML, no link, no image, and nothing of the text is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkernel.jupyter.widgets.diff_rows import MOST_PIECES
from memkernel.jupyter.widgets.preview import MOST_NODES, preview

# What content.js draws; whatever else stood here would be an element that nobody thought of.
TAGS = {
    *("p", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "s", "u", "hr", "br"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}


def each(nodes: list[Any]) -> Iterator[Any]:
    for node in nodes:
        yield node
        if node[0]:
            yield from each(node[1])


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("# One", [["h4", [["", "One"]]]]),
        ("#### Four", [["h6", [["", "Four"]]]]),
        ("a *b* `c`", [["p", [["", "a "], ["em", [["", "b"]]], ["", " "], ["code", [["", "c"]]]]]]),
        ("- [ ] a\n- [x] b", [["ul", [["li", [["", "☐ a"]]], ["li", [["", "☑ b"]]]]]]),
        ("[ ] a", [["p", [["", "[ ] a"]]]]),
        ("[a](http://b.c)", [["p", [["u", [["", "a"]]], ["", " (http://b.c)"]]]]),
        ("<http://b.c>", [["p", [["u", [["", "http://b.c"]]]]]]),
        ("![a](b.png)", [["p", [["", "a (b.png)"]]]]),
        ("~~a~~", [["p", [["s", [["", "a"]]]]]]),
        ("<script>x</script>", [["p", [["", "<script>x</script>"]]]]),
        ("---\na: b\n---\nc", [["pre", [["", "a: b\n"]]], ["p", [["", "c"]]]]),
        ("a\r\n\r\nb", [["p", [["", "a"]]], ["p", [["", "b"]]]]),
        ("\u202ea", [["p", [["", [["⟨U+202E⟩", "U+202E RIGHT-TO-LEFT OVERRIDE"], "a"]]]]]),
    ],
)
def test_nodes(text: str, nodes: list[Any]) -> None:
    assert preview(text) == (nodes, False)


@settings(max_examples=200)
@given(st.text("a*_`~[]()<>#->|:!\n 1.\\&;\"'=+x"))
def test_only_the_tags_that_the_page_knows(text: str) -> None:
    nodes, _ = preview(text)
    assert {node[0] for node in each(nodes)} <= {"", *TAGS}


@pytest.mark.parametrize("text", ["a\n" * 50_000, "*a* " * 25_000, "- a\n" * 25_000, "|a|\n|-|\n" + "|a|\n" * 9_000])
def test_a_long_text_is_cut(text: str) -> None:
    nodes, is_cut = preview(text[:102_400])
    assert is_cut
    assert MOST_NODES <= sum(1 for _ in each(nodes)) <= MOST_NODES + 20


@pytest.mark.parametrize("text", ["\x01" * 102_400, "\x01\n\n" * 30_000, "\x01`\x01` " * 20_000])
def test_characters_that_cannot_be_seen_are_elements_too(text: str) -> None:
    nodes, _ = preview(text)
    drawn = list(each(nodes))
    marks = sum(len(node[1]) for node in drawn if node[0] == "" and isinstance(node[1], list))
    assert len(drawn) + marks <= MOST_NODES + MOST_PIECES + 20
