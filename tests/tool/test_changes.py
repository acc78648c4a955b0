"""create, str_replace, insert, delete and rename on a real store: CONTRACT F.4 to F.7, and the profile `docs`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memkernel.models import ABSENT, Cause, Limits
from memkernel.store import Database
from tests.tool.calls import ACTOR, Calls

MakeTool = Callable[..., Calls]

MISSING = "The path {} does not exist. Please provide a valid path."
EDITED = "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
RANGE = "Invalid `insert_line` parameter: {}. It should be within the range [0, {}]."


@pytest.fixture
def docs(make_tool: MakeTool) -> Calls:
    return make_tool(profile="docs")


# -- create (F.4) ----------------------------------------------------------------------------------


def test_f051_create_says_where(tool: Calls) -> None:
    assert tool("create", path="/memories/a", file_text="x") == "File created successfully at: /memories/a"


def test_f052_parents_are_made(tool: Calls) -> None:
    tool.file("/memories/a/b/c", "x")
    assert tool.listing() == ["/memories", "/memories/a/", "/memories/a/b/"]


def test_f053_an_existing_file_is_kept(tool: Calls) -> None:
    tool.file("/memories/a", "old")
    assert tool.refused("create", path="/memories/a", file_text="new") == "File /memories/a already exists"
    assert tool.refused("create", path="/memories/a", file_text="old") == "File /memories/a already exists"
    assert tool.text("/memories/a") == "old"


@pytest.mark.parametrize("path", ["/memories/d", "/memories", "/memories/", "/memories/."])
def test_f054_a_directory_is_occupied_too(tool: Calls, path: str) -> None:
    tool.file("/memories/d/x", "x")
    assert tool.refused("create", path=path, file_text="") == f"File {path} already exists"


def test_f055_overwrite_replaces_a_file(make_tool: MakeTool) -> None:
    tool = make_tool(on_existing="overwrite")
    tool.file("/memories/a", "old")
    assert tool("create", path="/memories/a", file_text="new") == "File created successfully at: /memories/a"
    assert tool.text("/memories/a") == "new"


@pytest.mark.parametrize("path", ["/memories/d", "/memories"])
def test_f056_overwrite_leaves_directories_alone(make_tool: MakeTool, path: str) -> None:
    tool = make_tool(on_existing="overwrite")
    tool.file("/memories/d/x", "x")
    assert tool.refused("create", path=path, file_text="") == f"File {path} already exists"
    assert tool.text("/memories/d/x") == "x"


@pytest.mark.parametrize("text", ["a\r\nb\r\n", "a", "", "\n", " \t\n\n", "\U0001f600é"])
def test_f057_contents_are_kept_to_the_byte(tool: Calls, database: Database, store_id: str, text: str) -> None:
    tool.file("/memories/a", text)
    assert database.memories.at_path(store_id, "/a").content == text


@pytest.mark.parametrize("on_existing", ["error", "overwrite"])
def test_f058_a_file_cannot_be_a_parent(make_tool: MakeTool, on_existing: str) -> None:
    tool = make_tool(on_existing=on_existing, scope="me")
    tool.file("/memories/a", "x")
    sentence = tool.refused("create", path="/memories//a/b/c", file_text="")
    assert sentence == "Cannot create /memories//a/b/c: /memories/a is not a directory"


def test_f059_a_trailing_slash_is_echoed_and_not_stored(tool: Calls) -> None:
    assert tool("create", path="/memories/a/", file_text="x") == "File created successfully at: /memories/a/"
    assert tool.listing() == ["/memories", "/memories/a"]


def test_f060_a_lone_surrogate_is_refused_and_nothing_is_stored(tool: Calls) -> None:
    sentence = tool.refused("create", path="/memories/a", file_text="x\ud800")
    assert sentence == "invalid memory tool input: file_text holds a lone surrogate at character 1"
    assert tool.listing() == ["/memories"]


def test_f007_create_without_text_makes_no_file(tool: Calls) -> None:
    sentence = tool.refused("create", path="/memories/a")
    assert sentence == "invalid memory tool input: file_text is missing, it must be a string"
    assert tool.listing() == ["/memories"]


def test_docs_create_on_an_existing_file(docs: Calls) -> None:
    docs.file("/memories/a", "x")
    assert docs.refused("create", path="/memories/a", file_text="") == "Error: File /memories/a already exists"


# -- str_replace (F.5) -----------------------------------------------------------------------------


def test_f061_a_unique_match_answers_with_a_snippet(tool: Calls) -> None:
    tool.file("/memories/a", "1\n2\n3\n4\n5\n6\n7\n")
    assert tool("str_replace", path="/memories/a", old_str="4", new_str="four") == (
        f"{EDITED}     2\t2\n     3\t3\n     4\tfour\n     5\t5\n     6\t6"
    )
    assert tool.text("/memories/a") == "1\n2\n3\nfour\n5\n6\n7\n"


@pytest.mark.parametrize(("line", "rows"), [(1, (1, 3)), (10, (8, 12)), (20, (18, 20)), (19, (17, 20))])
def test_f062_the_snippet_is_clipped_to_the_file(tool: Calls, line: int, rows: tuple[int, int]) -> None:
    tool.file("/memories/a", "\n".join(f"line {number}." for number in range(1, 21)))
    answer = tool("str_replace", path="/memories/a", old_str=f"line {line}.", new_str="x")
    numbers = [int(row[:6]) for row in answer.split("\n")[1:]]
    assert numbers == list(range(rows[0], rows[1] + 1))


def test_f063_no_match_quotes_what_was_sought(tool: Calls) -> None:
    tool.file("/memories/a", "x")
    assert tool.refused("str_replace", path="/memories//a", old_str="`y`\n", new_str="") == (
        "No replacement was performed, old_str ``y`\n` did not appear verbatim in /memories//a."
    )


def test_f064_f065_several_matches_name_the_line_of_each(tool: Calls) -> None:
    tool.file("/memories/a", "foo bar foo\nx\nfoofoo")
    assert tool.refused("str_replace", path="/memories/a", old_str="foo", new_str="y") == (
        "No replacement was performed. Multiple occurrences of old_str `foo` in lines: 1, 1, 3, 3. "
        "Please ensure it is unique"
    )
    assert tool.text("/memories/a") == "foo bar foo\nx\nfoofoo"


def test_f066_overlapping_matches_count_once(tool: Calls) -> None:
    """Fault 5: parity with the oracle."""
    tool.file("/memories/a", "aaa")
    tool("str_replace", path="/memories/a", old_str="aa", new_str="b")
    assert tool.text("/memories/a") == "ba"


def test_f067_an_empty_old_str_matches_once_in_an_empty_file_only(tool: Calls) -> None:
    """Fault 7."""
    tool.file("/memories/empty", "")
    tool("str_replace", path="/memories/empty", old_str="", new_str="text")
    assert tool.text("/memories/empty") == "text"
    assert "old_str `` in lines: 1, 1, 1, 1, 1. " in tool.refused("str_replace", path="/memories/empty", old_str="")


def test_f068_several_lines_match(tool: Calls) -> None:
    """Fault 6."""
    tool.file("/memories/a", "## Notes\n- (none)\nfoo foo")
    tool("str_replace", path="/memories/a", old_str="## Notes\n- (none)", new_str="N")
    assert tool.text("/memories/a") == "N\nfoo foo"
    assert "in lines: 2, 2." in tool.refused("str_replace", path="/memories/a", old_str="foo", new_str="x")


@pytest.mark.parametrize("new_str", ["$&", "\\1", "$1 \\g<0>", "\\n", "{}"])
def test_f069_new_str_is_literal(tool: Calls, new_str: str) -> None:
    tool.file("/memories/a", "<x>")
    tool("str_replace", path="/memories/a", old_str="x", new_str=new_str)
    assert tool.text("/memories/a") == f"<{new_str}>"


@pytest.mark.parametrize("new_str", [{}, {"new_str": None}])
def test_f070_no_new_str_deletes_the_match(tool: Calls, new_str: dict[str, None]) -> None:
    """Fault 6: never the words None, undefined or null."""
    tool.file("/memories/a", "a-N-b")
    tool("str_replace", path="/memories/a", old_str="-N-", **new_str)
    assert tool.text("/memories/a") == "ab"


def test_f071_f082_a_missing_file_and_a_directory(tool: Calls) -> None:
    tool.file("/memories/d/x", "x")
    for command in ({"old_str": "x", "new_str": "y"}, {"insert_line": 0, "insert_text": "y"}):
        name = "insert" if "insert_line" in command else "str_replace"
        assert tool.refused(name, path="/memories/no", **command) == MISSING.format("/memories/no")
        assert tool.refused(name, path="/memories/d/x/y", **command) == MISSING.format("/memories/d/x/y")
        assert tool.refused(name, path="/memories/d/", **command) == "The path /memories/d/ is not a file."
        assert tool.refused(name, path="/memories", **command) == "The path /memories is not a file."


def test_an_lf_needle_does_not_match_crlf_and_line_ends_stay(tool: Calls) -> None:
    """Fault 10: the first is the oracle's answer."""
    tool.file("/memories/a", "a\r\nb\r\n")
    assert "did not appear verbatim" in tool.refused("str_replace", path="/memories/a", old_str="a\nb", new_str="x")
    tool("str_replace", path="/memories/a", old_str="b", new_str="c")
    assert tool.text("/memories/a") == "a\r\nc\r\n"


def test_docs_str_replace(docs: Calls) -> None:
    docs.file("/memories/d/x", "one\ntwo")
    answer = docs("str_replace", path="/memories/d/x", old_str="two", new_str="2")
    assert answer == "The memory file has been edited.\n     1\tone\n     2\t2"
    edit = {"old_str": "x", "new_str": "y"}
    for path in ("/memories/no", "/memories/d"):
        assert docs.refused("str_replace", path=path, **edit) == f"Error: {MISSING.format(path)}"
    assert docs.refused("str_replace", path="/memories/d/x", **edit) == (
        "No replacement was performed, old_str `x` did not appear verbatim in /memories/d/x."
    )
    assert docs.refused("str_replace", path="/memories/d/x", old_str="", new_str="").startswith(
        "No replacement was performed. Multiple occurrences of old_str `` in lines: "
    )


# -- insert (F.6) ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "added", "result"),
    [
        pytest.param("a\nb\n", 0, "x", "x\na\nb\n", id="f072-top"),
        pytest.param("a\nb\n", 2, "x", "a\nb\nx\n", id="f072-end"),
        pytest.param("A\nB", 2, "N2\n", "A\nB\nN2\n", id="f073"),
        pytest.param("", 0, "x\n\n\n", "x\n", id="f074, fault 4"),
        pytest.param("a\nb\n", 1, "x\n\n", "a\nx\nb\n", id="f074-inside"),
        pytest.param("", 0, "x", "x\n", id="f077"),
        pytest.param("a\nb\n", 1, "", "a\n\nb\n", id="f079"),
        pytest.param("a\nd\n", 1, "b\nc", "a\nb\nc\nd\n", id="f080"),
        pytest.param("a\r\nb\r\n", 1, "x", "a\r\nx\nb\r\n", id="f081"),
        pytest.param("a\n\n", 2, "x", "a\n\nx\n", id="after a blank line"),
        pytest.param("a\nb\nc\n", 3, "x", "a\nb\nc\nx\n", id="fault 3"),
    ],
)
def test_f072_to_f081_insert(tool: Calls, text: str, line: int, added: str, result: str) -> None:
    tool.file("/memories/a", text)
    answer = tool("insert", path="/memories/a/", insert_line=line, insert_text=added)
    assert answer == "The file /memories/a/ has been edited."
    assert tool.text("/memories/a") == result


@pytest.mark.parametrize(
    ("text", "line", "count"),
    [
        pytest.param("a\nb\nc\n", 4, 3, id="f075, fault 3"),
        pytest.param("a\nb\nc\n", -1, 3, id="f075-negative"),
        pytest.param("", 1, 0, id="f077"),
        pytest.param("a\n\n", 3, 2, id="f078"),
    ],
)
def test_f075_a_line_that_is_not_there(tool: Calls, text: str, line: int, count: int) -> None:
    tool.file("/memories/a", text)
    sentence = tool.refused("insert", path="/memories/a", insert_line=line, insert_text="x")
    assert sentence == RANGE.format(line, count)
    assert tool.text("/memories/a") == text
    tool("insert", path="/memories/a", insert_line=count, insert_text="following the message works")


def test_f076_docs_insert(docs: Calls) -> None:
    docs.file("/memories/d/x", "a\n")
    assert docs.refused("insert", path="/memories/d/x", insert_line=5, insert_text="") == (
        "Error: Invalid `insert_line` parameter: 5. It should be within the range of lines of the file: [0, 1]"
    )
    for path in ("/memories/no", "/memories/d"):
        sentence = docs.refused("insert", path=path, insert_line=0, insert_text="")
        assert sentence == f"Error: The path {path} does not exist"


# -- delete (F.7) ----------------------------------------------------------------------------------


def test_f083_a_deleted_file_is_gone(tool: Calls) -> None:
    tool.file("/memories/a", "x")
    assert tool("delete", path="/memories//a") == "Successfully deleted /memories//a"
    assert tool.refused("view", path="/memories/a") == MISSING.format("/memories/a")


def test_f084_a_directory_goes_with_everything_in_it(tool: Calls) -> None:
    for name in ("d/a", "d/.h", "d/e/f/g", "d-too", "d.md", "d0"):
        tool.file(f"/memories/{name}", "x")
    assert tool("delete", path="/memories/d") == "Successfully deleted /memories/d"
    assert tool.listing() == ["/memories", "/memories/d-too", "/memories/d.md", "/memories/d0"]
    assert tool.refused("view", path="/memories/d/.h") == MISSING.format("/memories/d/.h")


@pytest.mark.parametrize("path", ["/memories", "/memories/", "/memories/."])
def test_f085_the_root_is_not_deleted(tool: Calls, path: str) -> None:
    tool.file("/memories/a", "x")
    assert tool.refused("delete", path=path) == "Cannot delete the /memories directory itself"
    assert tool.text("/memories/a") == "x"


def test_f086_deleting_what_is_not_there(tool: Calls) -> None:
    tool.file("/memories/a", "x")
    assert tool.refused("delete", path="/memories/no") == "The path /memories/no does not exist"
    assert tool.refused("delete", path="/memories/a/no") == "The path /memories/a/no does not exist"


def test_f087_a_directory_ends_with_its_last_file(tool: Calls) -> None:
    tool.file("/memories/d/a", "x")
    tool("delete", path="/memories/d/a")
    assert tool.refused("view", path="/memories/d") == MISSING.format("/memories/d")
    assert tool.listing() == ["/memories"]


# -- rename (F.7) ----------------------------------------------------------------------------------


def test_f088_a_file_is_moved_and_parents_are_made(tool: Calls) -> None:
    tool.file("/memories/a", "x")
    answer = tool("rename", old_path="/memories/a/", new_path="/memories/p//q/b")
    assert answer == "Successfully renamed /memories/a/ to /memories/p//q/b"
    assert tool.text("/memories/p/q/b") == "x"
    assert tool.refused("view", path="/memories/a") == MISSING.format("/memories/a")


def test_f089_a_directory_is_moved_with_everything_in_it(tool: Calls) -> None:
    for name in ("d/a", "d/.h", "d/e/f/g", "d-too"):
        tool.file(f"/memories/{name}", name)
    tool("rename", old_path="/memories/d", new_path="/memories/x/y")
    assert tool.text("/memories/x/y/e/f/g") == "d/e/f/g"
    assert tool.text("/memories/x/y/.h") == "d/.h"
    assert tool.listing() == ["/memories", "/memories/d-too", "/memories/x/", "/memories/x/y/"]


@pytest.mark.parametrize(
    "new_path", ["/memories/f", "/memories/d", "/memories/a", "/memories", "/memories/p", "/memories/"]
)
@pytest.mark.parametrize("old_path", ["/memories/a", "/memories/p/q", "/memories/no", "/memories/p/no"])
def test_f090_f092_an_occupied_destination_moves_nothing(tool: Calls, old_path: str, new_path: str) -> None:
    """The destination is looked at before the source."""
    for name in ("a", "f", "d/x", "p/q/r"):
        tool.file(f"/memories/{name}", name)
    before = tool("view", path="/memories")
    sentence = tool.refused("rename", old_path=old_path, new_path=new_path)
    assert sentence == f"The destination {new_path} already exists"
    assert tool("view", path="/memories") == before


@pytest.mark.parametrize("new_path", ["/memories/p/b", "/memories/no/b", "/memories/no"])
def test_f091_a_missing_source_makes_no_parents(tool: Calls, new_path: str) -> None:
    sentence = tool.refused("rename", old_path="/memories/no", new_path=new_path)
    assert sentence == "The path /memories/no does not exist"
    assert tool.listing() == ["/memories"]


@pytest.mark.parametrize("new_path", ["/memories/b", "/memories", "/memories/b/../.."])
def test_f093_the_root_is_not_renamed(tool: Calls, new_path: str) -> None:
    if new_path.endswith(".."):
        assert "would escape" in tool.refused("rename", old_path="/memories", new_path=new_path)
        return
    sentence = tool.refused("rename", old_path="/memories/.", new_path=new_path)
    assert sentence == "Cannot rename the /memories directory itself"


def test_f094_nothing_is_moved_into_itself(tool: Calls) -> None:
    tool.file("/memories/d/x", "x")
    tool.file("/memories/f", "x")
    before = tool("view", path="/memories")
    for old, new in (("d", "d/e"), ("d", "d/e/f"), ("f", "f/g"), ("d/x", "d/x/y/z")):
        sentence = tool.refused("rename", old_path=f"/memories/{old}", new_path=f"/memories/{new}")
        assert sentence == f"Cannot rename /memories/{old} to a path inside itself: /memories/{new}"
    assert tool("view", path="/memories") == before


@pytest.mark.parametrize("new_path", ["/memories/f/g", "/memories/f/g/h"])
@pytest.mark.parametrize("old_path", ["/memories/a", "/memories/d"])
def test_a_file_cannot_be_a_parent_of_the_destination(make_tool: MakeTool, old_path: str, new_path: str) -> None:
    """CONTRACT 0.3, row 22."""
    tool = make_tool(scope="me")
    for name in ("a", "f", "d/x"):
        tool.file(f"/memories/{name}", "x")
    sentence = tool.refused("rename", old_path=old_path, new_path=new_path)
    assert sentence == f"Cannot rename {old_path} to {new_path}: /memories/f is not a directory"


@pytest.mark.parametrize("new_path", ["/memories/f/g", "/memories/f/g/h", "/memories/no/g"])
@pytest.mark.parametrize("old_path", ["/memories/no", "/memories/no/f", "/memories/f/no", "/memories/d/no"])
def test_a_missing_source_is_told_before_a_file_above_the_destination(
    tool: Calls, old_path: str, new_path: str
) -> None:
    """The SDK says so wherever it answers with a sentence at all."""
    for name in ("f", "d/x"):
        tool.file(f"/memories/{name}", "x")
    assert tool.refused("rename", old_path=old_path, new_path=new_path) == f"The path {old_path} does not exist"


def test_a_directory_is_not_moved_to_where_its_paths_would_be_too_long(tool: Calls) -> None:
    tool.file("/memories/d/" + "x" * 200, "x")
    deep = "/memories" + "/e" * 20
    assert tool.refused("rename", old_path="/memories/d", new_path=deep).startswith(
        f"Cannot rename /memories/d to {deep}: it "
    )
    assert tool.listing() == ["/memories", "/memories/d/", "/memories/d/" + "x" * 200]


def test_docs_delete_and_rename(docs: Calls) -> None:
    docs.file("/memories/a", "x")
    docs.file("/memories/b", "x")
    assert docs.refused("delete", path="/memories/no") == "Error: The path /memories/no does not exist"
    missing = docs.refused("rename", old_path="/memories/no", new_path="/memories/c")
    assert missing == "Error: The path /memories/no does not exist"
    occupied = docs.refused("rename", old_path="/memories/a", new_path="/memories/b")
    assert occupied == "Error: The destination /memories/b already exists"


# -- what the store says no to ---------------------------------------------------------------------


def test_an_archived_store_is_read_and_emptied_only(tool: Calls, database: Database, store_id: str) -> None:
    """CONTRACT 0.3, row 4."""
    tool.file("/memories/a", "x")
    database.memory_stores.archive(store_id)
    why = "the memory store is archived and read-only"
    assert tool.refused("create", path="/memories/b", file_text="") == f"Cannot create /memories/b: {why}"
    assert (
        tool.refused("insert", path="/memories/a", insert_line=0, insert_text="y") == f"Cannot edit /memories/a: {why}"
    )
    renamed = tool.refused("rename", old_path="/memories/a", new_path="/memories/b")
    assert renamed == f"Cannot rename /memories/a to /memories/b: {why}"
    assert tool.text("/memories/a") == "x"
    tool("delete", path="/memories/a")


def test_a_full_store_still_takes_edits(limited_tool: Callable[[Limits], Calls]) -> None:
    tool = limited_tool(Limits(memories_per_store=2))
    tool.file("/memories/a", "x")
    tool.file("/memories/b", "x")
    sentence = tool.refused("create", path="/memories/c", file_text="")
    assert sentence == "Cannot create /memories/c: the memory store is full, it holds 2 files"
    tool("insert", path="/memories/a", insert_line=0, insert_text="y")
    tool("rename", old_path="/memories/a", new_path="/memories/c")


def test_a_file_is_limited_in_bytes(tool: Calls) -> None:
    """Fault 26."""
    tool.file("/memories/a", "é" * 51_200)
    limit = "bytes, the limit is 102,400"
    sentence = tool.refused("create", path="/memories/b", file_text="é" * 51_200 + "x")
    assert sentence == f"Cannot create /memories/b: the file would have 102,401 {limit}"
    sentence = tool.refused("insert", path="/memories/a", insert_line=0, insert_text="y")
    assert sentence == f"Cannot edit /memories/a: the file would have 102,403 {limit}"
    assert tool.listing() == ["/memories", "/memories/a"]


# -- versions --------------------------------------------------------------------------------------


def test_every_change_is_one_version_with_its_actor(make_tool: MakeTool, database: Database, store_id: str) -> None:
    tool = make_tool(cause=Cause("run_1", "toolu_1"))
    tool.file("/memories/a", "x")
    tool("str_replace", path="/memories/a", old_str="x", new_str="y")
    tool("insert", path="/memories/a", insert_line=0, insert_text="z")
    tool("rename", old_path="/memories/a", new_path="/memories/b")
    tool("delete", path="/memories/b")
    versions = database.memory_versions.list(store_id).data
    assert [version.operation for version in versions] == ["deleted", "modified", "modified", "modified", "created"]
    assert {version.created_by for version in versions} == {ACTOR}


def test_an_edit_that_changes_nothing_makes_no_version(tool: Calls, database: Database, store_id: str) -> None:
    """CONTRACT 0.3, row 23; faults 7 and 18."""
    tool.file("/memories/a", "x\n")
    before = database.memories.at_path(store_id, "/a")
    assert tool("str_replace", path="/memories/a", old_str="x", new_str="x") == f"{EDITED}     1\tx\n     2\t"
    assert tool("insert", path="/memories/a", insert_line=1, insert_text="") == "The file /memories/a has been edited."
    assert database.memories.at_path(store_id, "/a") == before


def test_overwriting_with_the_same_text_makes_no_version(
    make_tool: MakeTool, database: Database, store_id: str
) -> None:
    """Fault 18."""
    tool = make_tool(on_existing="overwrite")
    tool.file("/memories/a", "x")
    tool.file("/memories/a", "x")
    assert len(database.memory_versions.list(store_id).data) == 1


def test_tool_and_store_share_one_tree(tool: Calls, database: Database, store_id: str) -> None:
    """CONTRACT A.8."""
    database.memories.write(store_id, "/a/b.md", "x", expect=ABSENT, actor=ACTOR)
    assert tool.text("/memories/a/b.md") == "x"
