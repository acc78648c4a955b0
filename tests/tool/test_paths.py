"""Spelling -> MemoryPath (CONTRACT A.5). No database."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel.errors import MemoryToolError
from memkernel.tool.paths import MemoryPath, parse


def refused(spelling: str, **options: str) -> str:
    with pytest.raises(MemoryToolError) as caught:
        parse(spelling, **options)  # type: ignore[arg-type]  # the options are literals in each test
    return str(caught.value)


@pytest.mark.parametrize(
    ("spelling", "path"),
    [
        ("/memories", "/memories"),
        ("/memories/", "/memories"),
        ("/memories/.", "/memories"),
        ("/memories/a/..", "/memories"),
        ("/memories//a.txt", "/memories/a.txt"),
        ("/memories/a.txt/", "/memories/a.txt"),
        ("/memories/./b/../b/c.txt", "/memories/b/c.txt"),
        ("/memories/../memories/a.txt", "/memories/a.txt"),
        ("/memories/a/b/../../../memories/x", "/memories/x"),
        ("/memories/.hidden/...", "/memories/.hidden/..."),
        ("/memories/a\\b", "/memories/a\\b"),
        ("/memories/100%25.txt", "/memories/100%25.txt"),
        ("/memories/50%", "/memories/50%"),
        ("/memories/%41", "/memories/%41"),
        ("/memories/cafe\u0301", "/memories/caf\u00e9"),
        ("/memories/x y/ü.md", "/memories/x y/ü.md"),
    ],
)
def test_a_spelling_is_normalised_and_kept(spelling: str, path: str) -> None:
    assert parse(spelling) == MemoryPath(path, spelling)


@pytest.mark.parametrize(
    "spelling", ["", "memories/a", "/etc/passwd", "/memoriesX/a", "/memories_evil", "//memories/a", "/Memories", "/"]
)
def test_another_root_is_refused(spelling: str) -> None:
    assert refused(spelling) == f"Path must start with /memories, got: {spelling}"


@pytest.mark.parametrize(
    "spelling",
    [
        "/memories/../etc/passwd",
        "/memories/../../x",
        "/memories/..",
        "/memories/../memoriesX/a",
        "/memories//../x",
        "/memories/a/../../b",
        "/memories/../../memories/a",
        "/memories/../../../../memories",
    ],
)
def test_a_way_out_is_refused(spelling: str) -> None:
    """Fault 1."""
    assert refused(spelling) == f"Path {spelling} would escape /memories directory"


@pytest.mark.parametrize(
    "spelling",
    [
        "/memories/%2e%2e/x",
        "/memories/%2E./x",
        "/memories/%252e%252e/x",
        "/memories/%25252e%25252e/x",
        "/memories/%%32%65%2e/x",
        "/memories/..%2fx",
        "/memories/a%2fb",
        "/memories/a%5cb",
        "/memories/..\\x",
        "/memories/a\\..\\b",
        "/memories/a\\.",
        "/memories/%2e",
        "/memories/..\\x/../y",
    ],
)
def test_a_disguised_way_out_is_refused(spelling: str) -> None:
    """Fault 1."""
    assert refused(spelling) == f"Path {spelling} would escape /memories directory"


def test_decoding_takes_no_quadratic_time() -> None:
    assert refused("/memories/%" + "25" * 100_000).endswith("it has more than 1,024 bytes")


@pytest.mark.parametrize(
    ("spelling", "reason"),
    [
        ("/memories/a\0b", "it holds U+0000"),
        ("/memories/a\0/../b", "it holds U+0000"),
        ("/memories/a\nb", "it holds U+000A"),
        ("/memories/a\u200bb", "it holds U+200B"),
        ("/memories/a\u2028b", "it holds U+2028"),
        ("/memories/" + "x" * 1_024, "it has 1,025 bytes, the limit is 1,024"),
        ("/memories/" + "ü" * 512, "it has 1,025 bytes, the limit is 1,024"),
        ("/memories" + "/x" * 21, "it has 21 segments, the limit is 20"),
    ],
)
def test_what_no_store_accepts_is_refused_with_its_reason(spelling: str, reason: str) -> None:
    """Fault 14, CONTRACT B.5."""
    sentence = refused(spelling)
    assert sentence.startswith("Invalid path /memories/")
    assert sentence.endswith(f": {reason}")
    assert sentence.isprintable()
    assert len(sentence) < 300


def test_the_longest_legal_paths_are_accepted() -> None:
    assert parse("/memories/" + "x" * 1_023).path.endswith("x")
    assert parse("/memories" + "/x" * 20).path.count("/") == 21


def test_f018_a_dot_dot_that_stays_inside_is_refused_on_request() -> None:
    assert refused("/memories/../memories/a.txt", dotdot="reject").endswith("it has a .. segment")
    assert refused("/memories/a/../b", dotdot="reject").endswith("it has a .. segment")
    assert refused("/memories/../etc", dotdot="reject") == "Path /memories/../etc would escape /memories directory"
    assert parse("/memories/./a..b/...", "reject").path == "/memories/a..b/..."


PIECES = st.sampled_from(["a", "b.txt", ".", "..", "", "%2e", "\\", "..\\", "%2f", "é", "e\u0301", "\0", "x" * 300])


@given(st.lists(PIECES, max_size=12).map("/".join))
def test_what_is_accepted_is_one_canonical_path(rest: str) -> None:
    """Two spellings never make two memories, and nothing accepted is outside (fault 1)."""
    try:
        accepted = parse("/memories/" + rest)
    except MemoryToolError:
        return
    segments = accepted.path.split("/")[1:]
    assert segments[0] == "memories"
    assert not {"", ".", ".."} & set(segments)
    assert unicodedata.is_normalized("NFC", accepted.path)
    assert parse(accepted.path).path == accepted.path
