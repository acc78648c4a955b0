"""Entries -> listing (CONTRACT A.6, A.7). No database."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel.tool.listing import render
from memkernel.tool.words import WORDS

SDK, DOCS = WORDS["sdk"], WORDS["docs"]
HEADER = "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:"


def rows(*entries: tuple[str, int]) -> list[str]:
    header, *below = render("/memories", entries, SDK).split("\n")
    assert header == HEADER
    return below


def test_an_empty_directory_is_one_row() -> None:
    assert rows() == ["4K\t/memories"]


def test_a_directory_comes_right_before_what_it_holds() -> None:
    assert rows(("a-b", 1), ("a.txt", 2), ("a/x", 3), ("B", 4)) == [
        "4K\t/memories",
        "4B\t/memories/B",
        "4K\t/memories/a/",
        "3B\t/memories/a/x",
        "1B\t/memories/a-b",
        "2B\t/memories/a.txt",
    ]


def test_the_third_level_only_shows_that_the_second_is_there() -> None:
    assert rows(("a/b/c", 1), ("a/b/d/e", 1), ("a/f", 1)) == [
        "4K\t/memories",
        "4K\t/memories/a/",
        "4K\t/memories/a/b/",
        "1B\t/memories/a/f",
    ]


def test_a_directory_of_hidden_items_is_listed_and_a_hidden_one_is_not() -> None:
    assert rows(("a/.x", 1), ("a/.y/z", 1), (".b/c", 1), (".d", 1)) == ["4K\t/memories", "4K\t/memories/a/"]


def test_paths_are_cut_to_the_directory() -> None:
    listing = render("/memories/sub/", [("/s/sub/a.md", 10), ("/s/sub/d/e", 20)], SDK, cut=len("/s/sub/"))
    assert listing.split("\n")[1:] == [
        "4K\t/memories/sub/",
        "10B\t/memories/sub//a.md",
        "4K\t/memories/sub//d/",
        "20B\t/memories/sub//d/e",
    ]


@pytest.mark.parametrize(
    ("size_bytes", "sdk", "docs"),
    [
        (0, "0B", "0B"),
        (1, "1B", "1B"),
        (1_023, "1023B", "1023B"),
        (1_024, "1K", "1.0K"),
        (1_025, "1.0K", "1.0K"),
        (1_536, "1.5K", "1.5K"),
        (4_096, "4K", "4.0K"),
        (10_240, "10K", "10.0K"),
        (102_400, "100K", "100.0K"),
        (1_048_575, "1024.0K", "1024.0K"),
        (1_048_576, "1M", "1.0M"),
        (1_572_864, "1.5M", "1.5M"),
        (2**30, "1G", "1.0G"),
        (2**40, "1024G", "1024.0G"),
    ],
)
def test_f049_sizes(size_bytes: int, sdk: str, docs: str) -> None:
    assert SDK.size(size_bytes) == sdk
    assert DOCS.size(size_bytes) == docs


NAMES = st.sampled_from(["a", "a-b", "a.txt", "B", ".h", "é", "\U0001f600", "\uffee", "node_modules", "z"])


@given(st.sets(st.lists(NAMES, min_size=1, max_size=4).map(tuple), max_size=12))
def test_a_listing_is_the_walk_of_a_tree(paths: set[tuple[str, ...]]) -> None:
    files = {path for path in paths if not any(other[: len(path)] == path for other in paths if other != path)}
    expected = ["4K\t/memories"]

    def walk(above: tuple[str, ...]) -> None:
        depth = len(above)
        for name in sorted({path[depth] for path in files if path[:depth] == above and len(path) > depth}):
            here = (*above, name)
            if name.startswith("."):
                continue
            shown = "/memories/" + "/".join(here)
            if here in files:
                expected.append(f"7B\t{shown}")
            else:
                expected.append(f"4K\t{shown}/")
                if depth == 0:
                    walk(here)

    walk(())
    assert rows(*(("/".join(path), 7) for path in files)) == expected
