"""view and paths on a real store: CONTRACT F.2 and F.3, and the profile `docs`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memkernel.models import Limits
from memkernel.store import Database
from memkernel.tool.postgres import PostgresBackend
from tests.tool.calls import ACTOR, Calls

MakeTool = Callable[..., Calls]

HEADER = "Here're the files and directories up to 2 levels deep in {}, excluding hidden items:"
MISSING = "The path {} does not exist. Please provide a valid path."

# -- paths (F.2) -----------------------------------------------------------------------------------


def test_f012_both_spellings_view_the_root(tool: Calls) -> None:
    assert tool("view", path="/memories").endswith("\n4K\t/memories")
    assert tool("view", path="/memories/").endswith("\n4K\t/memories/")


@pytest.mark.parametrize("path", ["memories/a", "", "/etc/passwd"])
def test_f013_another_root_is_refused(tool: Calls, path: str) -> None:
    assert tool.refused("view", path=path) == f"Path must start with /memories, got: {path}"


@pytest.mark.parametrize("path", ["/memoriesX/a", "/memories_evil"])
def test_f014_a_name_that_only_begins_like_the_root_is_refused_by_all_six(tool: Calls, path: str) -> None:
    tool.file("/memories/a", "x")
    sentence = f"Path must start with /memories, got: {path}"
    assert tool.refused("view", path=path) == sentence
    assert tool.refused("create", path=path, file_text="") == sentence
    assert tool.refused("str_replace", path=path, old_str="x", new_str="y") == sentence
    assert tool.refused("insert", path=path, insert_line=0, insert_text="y") == sentence
    assert tool.refused("delete", path=path) == sentence
    assert tool.refused("rename", old_path=path, new_path="/memories/b") == sentence
    assert tool.refused("rename", old_path="/memories/a", new_path=path) == sentence
    assert tool.listing() == ["/memories", "/memories/a"]


def test_f015_a_way_out_is_refused(tool: Calls) -> None:
    path = "/memories/../etc/passwd"
    assert tool.refused("view", path=path) == f"Path {path} would escape /memories directory"


def test_f016_a_way_out_as_a_destination_changes_nothing(tool: Calls) -> None:
    tool.file("/memories/a", "x")
    sentence = tool.refused("rename", old_path="/memories/a", new_path="/memories/../../x")
    assert sentence == "Path /memories/../../x would escape /memories directory"
    assert tool.text("/memories/a") == "x"


def test_f017_dots_are_resolved_and_the_spelling_is_echoed(tool: Calls) -> None:
    tool.file("/memories/b/c.txt", "x")
    path = "/memories/./b/../b/c.txt"
    assert tool("view", path=path) == f"Here's the content of {path} with line numbers:\n     1\tx"


def test_f018_a_dot_dot_that_stays_inside_is_accepted_or_refused(make_tool: MakeTool) -> None:
    make_tool().file("/memories/a.txt", "x")
    path = "/memories/../memories/a.txt"
    assert make_tool().text(path) == "x"
    assert make_tool(dotdot="reject").refused("view", path=path) == f"Invalid path {path}: it has a .. segment"


@pytest.mark.parametrize("path", ["/memories/%2e%2e/x", "/memories/%252e%252e/x"])
def test_f019_encoded_dots_are_refused(tool: Calls, path: str) -> None:
    assert tool.refused("create", path=path, file_text="") == f"Path {path} would escape /memories directory"
    assert tool.listing() == ["/memories"]


def test_f020_a_backslash_way_out_is_refused(tool: Calls) -> None:
    assert tool.refused("view", path="/memories/..\\x") == "Path /memories/..\\x would escape /memories directory"


def test_f021_a_harmless_percent_is_a_character(tool: Calls) -> None:
    tool.file("/memories/100%25.txt", "x")
    assert tool.text("/memories/100%25.txt") == "x"
    assert tool.listing() == ["/memories", "/memories/100%25.txt"]


def test_f022_a_nul_in_the_path_is_a_clean_refusal(tool: Calls) -> None:
    """Fault 14."""
    assert tool.refused("create", path="/memories/a\0b", file_text="") == "Invalid path /memories/a�b: it holds U+0000"


def test_f023_case_makes_two_files(tool: Calls) -> None:
    """Fault 16."""
    tool.file("/memories/A", "upper")
    tool.file("/memories/a", "lower")
    assert (tool.text("/memories/A"), tool.text("/memories/a")) == ("upper", "lower")


def test_f024_slashes_make_no_second_file(tool: Calls) -> None:
    """Fault 1."""
    tool.file("/memories/a.txt", "x")
    assert tool.text("/memories//a.txt") == tool.text("/memories/a.txt/") == "x"
    assert tool.refused("create", path="/memories//a.txt", file_text="") == "File /memories//a.txt already exists"


def test_nfc_and_nfd_are_one_file(tool: Calls) -> None:
    """Fault 15."""
    tool.file("/memories/cafe\u0301.md", "x")
    assert tool.text("/memories/caf\u00e9.md") == "x"
    assert tool.listing() == ["/memories", "/memories/caf\u00e9.md"]
    assert "already exists" in tool.refused("create", path="/memories/caf\u00e9.md", file_text="")


# -- view (F.3) ------------------------------------------------------------------------------------


def test_f025_an_empty_root_is_a_header_and_itself(tool: Calls) -> None:
    assert tool("view", path="/memories") == HEADER.format("/memories") + "\n4K\t/memories"


def test_f026_the_header_says_what_is_left_out(make_tool: MakeTool) -> None:
    assert make_tool()("view", path="/memories").split("\n")[0].endswith("excluding hidden items:")
    docs = make_tool(profile="docs")("view", path="/memories").split("\n")[0]
    assert docs.endswith("excluding hidden items and node_modules:")


def test_f027_two_levels_are_listed(tool: Calls) -> None:
    tool.file("/memories/a/b/c/d.md", "x")
    tool.file("/memories/a/b/e.md", "x")
    tool.file("/memories/a/f.md", "x")
    assert tool.listing() == ["/memories", "/memories/a/", "/memories/a/b/", "/memories/a/f.md"]


def test_f028_directories_end_with_a_slash_except_the_one_asked_for(tool: Calls) -> None:
    tool.file("/memories/a/b/c.md", "x")
    assert tool.listing("/memories/a") == ["/memories/a", "/memories/a/b/", "/memories/a/b/c.md"]


def test_f029_rows_are_sorted_by_code_point_directory_by_directory(tool: Calls) -> None:
    for name in ("a.txt", "a-b", "B", "a/z", "a/Z", "é"):
        tool.file(f"/memories/{name}", "x")
    names = ["", "/B", "/a/", "/a/Z", "/a/z", "/a-b", "/a.txt", "/é"]
    assert tool.listing() == [f"/memories{name}" for name in names]


def test_f030_hidden_items_are_viewed_by_path_only(tool: Calls) -> None:
    tool.file("/memories/.secret", "s")
    tool.file("/memories/.dir/in", "i")
    tool.file("/memories/a/.h", "h")
    assert tool.listing() == ["/memories", "/memories/a/"]
    assert tool.text("/memories/.secret") + tool.text("/memories/.dir/in") + tool.text("/memories/a/.h") == "sih"
    assert tool.listing("/memories/.dir") == ["/memories/.dir", "/memories/.dir/in"]


def test_f031_node_modules_is_hidden_in_the_docs_profile_only(make_tool: MakeTool) -> None:
    sdk, docs = make_tool(), make_tool(profile="docs")
    sdk.file("/memories/node_modules/x", "x")
    sdk.file("/memories/a/node_modules/y", "y")
    assert len(sdk.listing()) == 5
    assert docs.listing() == ["/memories", "/memories/a/"]
    assert docs.text("/memories/node_modules/x") == "x"


def test_f032_a_sub_directory_starts_the_two_levels_again(tool: Calls) -> None:
    tool.file("/memories/b/c/d/e", "x")
    assert tool.listing("/memories/b") == ["/memories/b", "/memories/b/c/", "/memories/b/c/d/"]


def test_f033_children_follow_the_spelling(tool: Calls) -> None:
    tool.file("/memories/name", "x")
    assert tool.listing("/memories/") == ["/memories/", "/memories//name"]


def test_f034_a_view_range_changes_nothing_on_a_directory(tool: Calls) -> None:
    tool.file("/memories/name", "x")
    assert tool("view", path="/memories", view_range=[5, 9]) == tool("view", path="/memories")


@pytest.fixture
def three(tool: Calls) -> Calls:
    tool.file("/memories/f", "l1\nl2\nl3\n")
    return tool


ROWS = ["     1\tl1", "     2\tl2", "     3\tl3", "     4\t"]


def test_f035_a_final_newline_yields_an_empty_row(three: Calls) -> None:
    assert three("view", path="/memories/f") == (
        "Here's the content of /memories/f with line numbers:\n     1\tl1\n     2\tl2\n     3\tl3\n     4\t"
    )


def test_f036_without_one_there_is_no_extra_row(tool: Calls) -> None:
    tool.file("/memories/f", "l1\nl2")
    assert tool.lines("/memories/f") == ROWS[:2]


def test_f037_an_empty_file_is_one_empty_row(tool: Calls) -> None:
    tool.file("/memories/f", "")
    assert tool("view", path="/memories/f") == "Here's the content of /memories/f with line numbers:\n     1\t"


def test_f038_numbers_are_six_columns_wide(tool: Calls) -> None:
    tool.file("/memories/f", "\n" * 20)
    assert tool.lines("/memories/f")[11] == "    12\t"


def test_f039_carriage_returns_stay(tool: Calls) -> None:
    tool.file("/memories/f", "a\r\nb\rc\r\n")
    assert tool.lines("/memories/f") == ["     1\ta\r", "     2\tb\rc\r", "     3\t"]


@pytest.mark.parametrize(
    ("view_range", "rows"),
    [
        pytest.param([2, 3], ROWS[1:3], id="f040"),
        pytest.param([2, -1], ROWS[1:], id="f041"),
        pytest.param([0, 2], ROWS[:2], id="f042-zero"),
        pytest.param([-1, 2], ROWS[:2], id="f042-negative"),
        pytest.param([1, 100], ROWS, id="f043"),
        pytest.param([2, -2], ROWS[1:2], id="end as a slice"),
        pytest.param(["1", "2"], ROWS[:2], id="numeric strings, fault 12"),
        pytest.param([1, -1], ROWS, id="to the end, fault 12"),
        pytest.param([-3, -2], ROWS[:2], id="both negative, fault 12"),
    ],
)
def test_f040_to_f043_a_view_range_shows_those_rows(three: Calls, view_range: list[object], rows: list[str]) -> None:
    assert three.lines("/memories/f", view_range) == rows


@pytest.mark.parametrize("view_range", [[3, 2], [0, 0], [1, 0], [5, 9]])
def test_f044_a_range_without_rows_is_an_empty_body(three: Calls, view_range: list[int]) -> None:
    answer = three("view", path="/memories/f", view_range=view_range)
    assert answer == "Here's the content of /memories/f with line numbers:\n"


@pytest.mark.parametrize("view_range", [[1], [1, 2, 3], [], None])
def test_f045_a_range_of_another_length_is_none(three: Calls, view_range: list[int] | None) -> None:
    assert three.lines("/memories/f", view_range) == ROWS


def test_f046_a_missing_path(tool: Calls) -> None:
    assert tool.refused("view", path="/memories/no") == MISSING.format("/memories/no")


def test_f047_a_path_below_a_file_is_missing(three: Calls) -> None:
    assert three.refused("view", path="/memories/f/x") == MISSING.format("/memories/f/x")


def test_f048_a_million_lines_are_too_many(limited_tool: Callable[[Limits], Calls]) -> None:
    tool = limited_tool(Limits(content_bytes=2_000_000))
    tool.file("/memories/f", "\n" * 999_999)
    tool.file("/memories/g", "\n" * 999_998)
    sentence = "File /memories/f exceeds maximum line limit of 999,999 lines."
    assert tool.refused("view", path="/memories/f") == sentence
    assert tool("view", path="/memories/g").endswith("\n999999\t")


def test_f050_sizes_are_bytes_of_utf8(tool: Calls) -> None:
    tool.file("/memories/e", "é")
    assert tool("view", path="/memories").endswith("\n2B\t/memories/e")


def test_a_byte_order_mark_and_a_nul_are_kept(tool: Calls) -> None:
    """Faults 13 and 14."""
    tool.file("/memories/bom", "\ufeffhello\n")
    tool("str_replace", path="/memories/bom", old_str="hello", new_str="bye")
    assert tool.text("/memories/bom") == "\ufeffbye\n"
    tool.file("/memories/nul", "a\0b")
    assert tool.text("/memories/nul") == "a\0b"


def test_many_memories_are_listed_the_same_way_each_time(tool: Calls) -> None:
    """Fault 11: two levels bound the listing; the words are the SDK's."""
    for folder in range(20):
        tool.file(f"/memories/d{folder}/x/deep.md", "x")
        tool.file(f"/memories/d{folder}/f.md", "x")
    assert len(tool.listing()) == 1 + 20 * 3
    assert tool("view", path="/memories") == tool("view", path="/memories")


# -- the profile docs (A.4.1, A.6) -----------------------------------------------------------------


def test_docs_sizes_have_a_decimal(make_tool: MakeTool) -> None:
    docs = make_tool(profile="docs")
    docs.file("/memories/k", "x" * 4_096)
    docs.file("/memories/s", "x" * 12)
    assert docs("view", path="/memories").split("\n")[1:] == [
        "4.0K\t/memories",
        "4.0K\t/memories/k",
        "12B\t/memories/s",
    ]


def test_docs_a_missing_path_has_no_prefix_in_view(make_tool: MakeTool) -> None:
    assert make_tool(profile="docs").refused("view", path="/memories/no") == MISSING.format("/memories/no")


@pytest.mark.parametrize("view_range", [[0, 2], [-1, 2], [3, 2], [1, 0], [2, -2]])
def test_docs_a_range_that_is_none_is_refused(make_tool: MakeTool, view_range: list[int]) -> None:
    """Fault 12."""
    docs = make_tool(profile="docs")
    docs.file("/memories/f", "l1\nl2\nl3")
    assert docs.refused("view", path="/memories/f", view_range=view_range) == (
        f"Invalid `view_range` parameter: {view_range}. It should be [start, end] with 1 <= start <= end, or end -1."
    )


def test_docs_a_range_past_the_end_names_the_number_of_lines(make_tool: MakeTool) -> None:
    """Fault 12."""
    docs = make_tool(profile="docs")
    docs.file("/memories/f", "l1\nl2\nl3")
    sentence = "view_range starts at line 5, but the file has 3 lines."
    assert docs.refused("view", path="/memories/f", view_range=[5, 9]) == sentence
    assert docs.lines("/memories/f", [2, -1]) == ROWS[1:3]
    assert docs.lines("/memories/f", [3, 9]) == ROWS[2:3]


# -- scopes (0.3, row 20) --------------------------------------------------------------------------


def test_f009_scopes_and_stores_do_not_see_each_other(make_tool: MakeTool, database: Database) -> None:
    one, two = make_tool(scope="one"), make_tool(scope="two")
    one.file("/memories/a", "1")
    two.file("/memories/a", "2")
    assert one.text("/memories/a") == "1"
    assert one.listing() == ["/memories", "/memories/a"]
    assert make_tool().listing() == [
        "/memories",
        *(f"/memories/{rest}" for rest in ("one/", "one/a", "two/", "two/a")),
    ]
    assert make_tool(scope="three").listing() == ["/memories"]
    other = Calls(PostgresBackend(database, database.memory_stores.create(name="Other").id, actor=ACTOR))
    assert other.listing() == ["/memories"]
    assert one.refused("view", path="/memories/../two/a") == "Path /memories/../two/a would escape /memories directory"
    one.backend.clear()
    assert one.listing() == ["/memories"]
    assert two.text("/memories/a") == "2"


@pytest.mark.parametrize("scope", ["", ".", "..", "a/b", "/a", "a\0", "cafe\u0301"])
def test_a_scope_is_one_legal_segment(make_tool: MakeTool, scope: str) -> None:
    with pytest.raises(ValueError, match=r"is not a memory path|not one segment of a path"):
        make_tool(scope=scope)


def test_a_path_that_is_too_deep_below_its_scope_is_refused(make_tool: MakeTool) -> None:
    path = "/memories" + "/d" * 20
    make_tool().file(path, "x")
    scoped = make_tool(scope="me")
    sentence = f"Invalid path {path}: it has 21 segments, the limit is 20"
    assert scoped.refused("view", path=path) == sentence
    assert scoped.refused("create", path=path, file_text="") == sentence
    assert scoped.refused("insert", path=path, insert_line=0, insert_text="") == sentence
    assert scoped.refused("delete", path=path) == sentence
    assert scoped.refused("rename", old_path="/memories/a", new_path=path) == sentence


@pytest.mark.parametrize("option", ["profile", "on_existing", "dotdot"])
def test_an_unknown_option_is_refused(make_tool: MakeTool, option: str) -> None:
    with pytest.raises(ValueError, match=f"{option}='maybe' is none of"):
        make_tool(**{option: "maybe"})
