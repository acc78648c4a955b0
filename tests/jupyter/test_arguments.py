"""The grammar of a command's line: options, PATH, VERSION."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.error import UsageError

from memkernel.jupyter import arguments
from memkernel.jupyter.arguments import Address, HelpShown, Parser, parse_address
from memkernel.jupyter.commands import table

VERSION_ID = "memver_01jdqh2n8e7v5r0m3k9w6x4yzb"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/a.md", Address(None, "/a.md", None)),
        ("/", Address(None, "/", None)),
        ("notes:/a.md", Address("notes", "/a.md", None)),
        ("Team notes:/a.md@1", Address("Team notes", "/a.md", "1")),
        ("notes:", Address("notes", "/", None)),
        ("notes:/", Address("notes", "/", None)),
        ("a:b:/c", Address("a:b", "/c", None)),
        ("notes:/a:/b", Address("notes", "/a:/b", None)),
        ("/a:/b", Address(None, "/a:/b", None)),
        ("/a.md@3", Address(None, "/a.md", "3")),
        ("/a.md@-1", Address(None, "/a.md", "-1")),
        ("/a.md@head", Address(None, "/a.md", "head")),
        ("/a.md@2026-11-30T10:00", Address(None, "/a.md", "2026-11-30T10:00")),
        ("/a.md@2026-11-30T10:00:00Z", Address(None, "/a.md", "2026-11-30T10:00:00Z")),
        (f"/a.md@{VERSION_ID}", Address(None, "/a.md", VERSION_ID)),
        ("/ann@example.org", Address(None, "/ann@example.org", None)),
        ("/ann@example.org@2", Address(None, "/ann@example.org", "2")),
        ("/ann@3/b", Address(None, "/ann@3/b", None)),
        ("/odd@3@head", Address(None, "/odd@3", "head")),
        ("/odd@", Address(None, "/odd@", None)),
        ("/odd@0", Address(None, "/odd@0", None)),
        ("a.md", Address(None, "a.md", None)),
        ("@3", Address(None, "@3", None)),
        ("", Address(None, "", None)),
        (VERSION_ID, Address(None, "/", VERSION_ID)),
        (f"@{VERSION_ID}", Address(None, "/", f"@{VERSION_ID}")),
    ],
)
def test_a_path_is_read_with_its_store_and_its_version(text: str, expected: Address) -> None:
    assert parse_address(text) == expected


@given(st.text(alphabet="ab@.-13:/ h").map(lambda tail: f"/{tail}"))
def test_every_path_can_be_written_so_that_it_is_read_back(path: str) -> None:
    read = parse_address(arguments.format_path(path))
    assert (read.store, read.path, read.version or "head") == (None, path, "head")


def _parse(line: str) -> dict[str, object]:
    name, _, rest = line.partition(" ")
    return vars(table.MEMORY.find(name).parser.parse_line(rest))


def _usage_error(line: str) -> str:
    with pytest.raises(UsageError) as caught:
        _parse(line)
    return str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        "diff /a.md @1 @3 -s notes",
        "diff /a.md -s notes @1 @3",
        "diff -s notes /a.md @1 @3",
        "diff --store=notes /a.md @1 @3",
        "diff --store notes -- /a.md @1 @3",
    ],
)
def test_options_may_stand_anywhere(line: str) -> None:
    given = _parse(line)
    assert (given["path"], given["versions"], given["store"]) == ("/a.md", ["@1", "@3"], "notes")


def test_negative_numbers_are_versions_not_options() -> None:
    assert _parse("diff /a.md -2 -1")["versions"] == ["-2", "-1"]
    assert _parse("restore /a.md -1")["version"] == "-1"


def test_fault_42_after_two_dashes_everything_is_a_word() -> None:
    assert _parse("cat -- -x.md")["path"] == "-x.md"
    assert _parse("grep -- -i /")["pattern"] == "-i"


def test_fault_42_an_unknown_option_is_a_usage_error_of_two_lines() -> None:
    message = _usage_error("cat --bogus /a")
    assert message.splitlines() == [
        "%memory cat: unrecognized arguments: --bogus",
        "Usage: %memory cat [-h] [-s STORE] [-o VAR] [-q] PATH",
    ]


def test_a_misspelt_option_is_told_the_near_one_and_never_guessed() -> None:
    assert "(near: --store)" in _usage_error("cat --stor notes /a")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cat", "the following arguments are required: PATH"),
        ("cat /a /b", "unrecognized arguments: /b"),
        ("log -n 0", "'0' is not a positive number"),
        ("log -n -5", "'-5' is not a positive number"),
        ("log -n two", "'two' is not a positive number"),
        ("log -n ²", "'²' is not a positive number"),
        ("ls -o 2x", "'2x' is not a variable's name"),
        ("ls -o class", "'class' is not a variable's name"),
        ("diff /a.md yesterday", "'yesterday' is not a version"),
        ("put /a --from x --var y", "not allowed with argument"),
        ("cat --store", "expected one argument"),
    ],
)
def test_a_faulty_line_names_the_fault_in_its_first_line(line: str, words: str) -> None:
    message = _usage_error(line).splitlines()
    assert words in message[0]
    assert message[1].startswith("Usage: %")
    assert len(message) == 2


def test_help_is_printed_and_nothing_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(HelpShown):
        _parse("diff --help")
    text = capsys.readouterr().out
    assert "What changed between two versions" in text
    assert "%memory diff /units.md@1 @3" in text


def test_an_unknown_command_is_told_what_looks_like_it() -> None:
    assert _usage_error("histroy").splitlines()[0] == "%memory has no command 'histroy'"
    assert "Near: stores" in _usage_error("store")
    assert "Near: log" in _usage_error("history")
    assert "Near: log" in _usage_error("histroy")
    assert "Commands: connect, " in _usage_error("zzz")


@pytest.mark.parametrize("name", list(table.MEMORY.commands))
def test_every_command_explains_itself(name: str) -> None:
    command = table.MEMORY.commands[name]
    text = command.parser.format_help()
    assert command.summary in text
    for example in command.examples:
        words_of_it = example.removeprefix("%%").removeprefix("%").split(maxsplit=2)
        assert words_of_it[:2] == ["memory", name]
        Parser.parse_line(command.parser, words_of_it[2] if len(words_of_it) > 2 else "")
