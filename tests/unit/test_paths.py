"""Memory paths (CONTRACT B.5, B.6, B.8, C.5): which are legal, which exclude each other, a store's mount slug."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memkernel.errors import InvalidPathError
from memkernel.paths import MAX_PATH_BYTES, MAX_SEGMENTS, ancestors, check_path, check_prefix, mount_path, overlap, slug

SEGMENTS = st.text(alphabet="ab.-é日", min_size=1, max_size=4).filter(lambda text: text not in (".", ".."))
PATHS = st.lists(SEGMENTS, min_size=1, max_size=MAX_SEGMENTS).map(lambda segments: "/" + "/".join(segments))


def reason(path: str) -> str:
    with pytest.raises(InvalidPathError) as caught:
        check_path(path)
    assert caught.value.path == path
    return caught.value.reason


@pytest.mark.parametrize(
    "path",
    [
        "/a",
        "/notes/todo.md",
        "/.hidden/..b/c..",
        "/...",
        "/a b/it's #1 (x) [y] {z}.md",
        '/what?"<>|*\\`%2e.md',
        "/caf\u00e9/日本語/👩",
        "/~",
        "/-x",
        "/ ",
        "/a\u00a0b",
    ],
)
def test_a_legal_path_is_given_back_as_it_is(path: str) -> None:
    assert check_path(path) is path


@pytest.mark.parametrize(
    ("path", "broken"),
    [
        ("notes", "it must start with /"),
        ("", "it must start with /"),
        ("\\a", "it must start with /"),
        ("/", "it is the root, where no memory can be"),
        ("//a", "it has an empty segment"),
        ("/a/", "it has an empty segment"),
        ("/a//b", "it has an empty segment"),
        ("/./a", "it has a . or .. segment"),
        ("/a/../b", "it has a . or .. segment"),
        ("/a/..", "it has a . or .. segment"),
    ],
)
def test_f147_a_path_is_absolute_and_its_segments_are_names(path: str, broken: str) -> None:
    assert reason(path) == broken


@pytest.mark.parametrize("name", ["a", "é", ".a"])
def test_f148_twenty_segments_are_legal_and_one_more_is_not(name: str) -> None:
    assert check_path(f"/{name}" * 20)
    assert reason(f"/{name}" * 21) == "it has 21 segments, the limit is 20"


def test_f149_the_limit_counts_bytes() -> None:
    assert check_path("/" + "a" * 1_023)
    assert reason("/" + "a" * 1_024) == "it has 1,025 bytes, the limit is 1,024"
    assert check_path("/a" + "é" * 511)
    assert reason("/" + "é" * 512) == "it has 1,025 bytes, the limit is 1,024"


@pytest.mark.parametrize(
    "character",
    ["\x00", "\x07", "\n", "\t", "\x1b", "\x7f", "\x85", "\u200b", "\u202e", "\ufeff", "\u2028", "\u2029", "\ud800"],
)
def test_f150_control_and_format_characters_and_line_separators_are_refused(character: str) -> None:
    """A NUL too (fault 14)."""
    assert reason(f"/a{character}b") == f"it holds U+{ord(character):04X}"


def test_f151_a_path_is_in_normal_form_c_and_is_never_changed_to_it() -> None:
    """Fault 15: two spellings of one name never make two memories."""
    assert reason("/cafe\u0301") == "it is not in Unicode normal form C"
    assert check_path("/caf\u00e9") == "/caf\u00e9"


def test_f152_case_matters() -> None:
    assert not overlap(check_path("/A.md"), check_path("/a.md"))


@given(st.text(max_size=30).map(lambda text: "/" + text))
@example("/a\n")
@example("/a\x00")
def test_no_short_cut_lets_through_what_the_rules_refuse(path: str) -> None:
    try:
        check_path(path)
    except InvalidPathError:
        return
    segments = path.split("/")[1:]
    assert not {"", ".", ".."} & set(segments)
    assert not {"Cc", "Cf", "Cs", "Zl", "Zp"} & set(map(unicodedata.category, path))
    assert unicodedata.normalize("NFC", path) == path
    assert len(path.encode()) <= MAX_PATH_BYTES
    assert len(segments) <= MAX_SEGMENTS


@pytest.mark.parametrize("prefix", ["/", "/a/", "/a/b%_/"])
def test_a_prefix_is_the_root_or_a_path_with_a_slash_behind_it(prefix: str) -> None:
    assert check_prefix(prefix) == prefix


@pytest.mark.parametrize("prefix", ["", "/a", "a/", "//", "/a//", "/../", "/a\x00/"])
def test_f186_anything_else_is_no_prefix(prefix: str) -> None:
    with pytest.raises(InvalidPathError):
        check_prefix(prefix)


def test_the_paths_above_a_path_come_outermost_first() -> None:
    assert ancestors("/a/b/c") == ["/a", "/a/b"]
    assert ancestors("/a") == []


@pytest.mark.parametrize(
    ("one", "other", "overlapping"),
    [
        ("/notes", "/notes", True),
        ("/notes", "/notes/todo.md", True),
        ("/a/b", "/a/b/c/d", True),
        ("/notes", "/notes-archive", False),
        ("/notes", "/notes2/x", False),
        ("/a/b", "/a/c", False),
        ("/a/b", "/b", False),
    ],
)
def test_f160_paths_overlap_by_whole_segments(one: str, other: str, overlapping: bool) -> None:
    assert overlap(one, other) is overlapping
    assert overlap(other, one) is overlapping


@given(PATHS, PATHS)
def test_paths_overlap_where_one_is_the_other_or_above_it(one: str, other: str) -> None:
    assert overlap(one, other) == (one == other or one in ancestors(other) or other in ancestors(one))


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("Demo Memory", "demo-memory"),
        ("  A -- B!!c_9 ", "a-b-c-9"),
        ("Café Notes", "caf-notes"),
        ("x" * 255, "x" * 255),
        ("日本語", ""),
        ("../..", ""),
        ("memstore_01ab", "memstore-01ab"),
    ],
)
def test_f231_the_slug_of_a_name_is_lowercase_ascii_with_single_hyphens(name: str, folder: str) -> None:
    """Statements 230, 231 and 232; an empty one is replaced where it becomes a folder (233)."""
    assert slug(name) == folder


@given(st.text(max_size=50))
def test_a_slug_is_one_plain_segment_whatever_the_name(name: str) -> None:
    found = slug(name)
    assert set(found) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert not found.startswith("-")
    assert not found.endswith("-")
    assert "--" not in found
    assert slug(found) == found


@pytest.mark.parametrize("name", ["日本語", "", "--", "İ" * 255, "a" * 256])
def test_f233_a_name_without_a_slug_that_a_folder_may_have_is_mounted_by_its_id(name: str) -> None:
    assert mount_path(name, "memstore_01ab") == "/mnt/memory/memstore-01ab"


@pytest.mark.parametrize(
    ("name", "path"), [("Demo Memory", "/mnt/memory/demo-memory"), ("a" * 255, "/mnt/memory/" + "a" * 255)]
)
def test_f230_a_store_is_mounted_by_its_names_slug(name: str, path: str) -> None:
    assert mount_path(name, "memstore_01ab") == path


@given(st.text(max_size=255))
def test_a_mount_path_ends_in_a_name_that_every_file_system_takes(name: str) -> None:
    folder = mount_path(name, "memstore_01ab").removeprefix("/mnt/memory/")
    assert 0 < len(folder.encode()) <= 255
    assert "/" not in folder
