"""What a model may hand over, what a server may answer, how searches are bounded: all without a sandbox."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel.models import ToolAnswer
from memkernel.sandbox import inside, toolbox
from memkernel.sandbox.base import HOME, Process
from memkernel.sandbox.toolbox import Toolbox
from memkernel.sandbox.toolcalls import NAMES, problem_with
from tests.sandbox import bare_tools
from tests.sandbox.bare_tools import BareBackend

Server = Callable[..., Toolbox]
Call = tuple[str, dict[str, Any]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path.resolve() / "home"
    made.mkdir()
    return made


@pytest.fixture
def server(home: Path) -> Iterator[Server]:
    """Makes a Toolbox on a server of this machine; it is ended with the test."""
    made: list[Toolbox] = []

    def make(**how: Any) -> Toolbox:
        made.append(bare_tools.toolbox(BareBackend((), home, **how)))
        return made[-1]

    yield make
    for each in made:
        each.close()


# -- what a model hands over ----------------------------------------------------------------------------------

BAD: dict[str, Call] = {
    "web_search: there is no such tool; there are bash, read, write, edit, glob, grep": ("web_search", {}),
    "bash: cwd is no input; there are command, restart, timeout_ms": ("bash", {"command": "x", "cwd": "/"}),
    "bash: command must be a string, not list": ("bash", {"command": ["ls"]}),
    "bash: restart must be true or false, not str": ("bash", {"restart": "yes"}),
    "bash: timeout_ms must be a whole number, not str": ("bash", {"command": "x", "timeout_ms": "5s"}),
    "bash: timeout_ms must be a whole number, not bool": ("bash", {"command": "x", "timeout_ms": True}),
    "bash: timeout_ms must not be negative": ("bash", {"command": "x", "timeout_ms": -1}),
    "read: file_path is required": ("read", {"file_path": None}),
    "read: file_path has a null byte in it": ("read", {"file_path": "a\0b"}),
    "read: view_range is out of range": ("read", {"file_path": "a", "view_range": [1, 10**400]}),
    "read: view_range must be a list of whole numbers": ("read", {"file_path": "a", "view_range": "1-2"}),
    "write: content is required": ("write", {"file_path": "a"}),
    "write: content is no text: it has half a character in it": ("write", {"file_path": "a", "content": "\ud800"}),
    "edit: new_string is required": ("edit", {"file_path": "a", "old_string": "b"}),
    "edit: replace_all must be true or false, not int": (
        "edit",
        {"file_path": "a", "old_string": "b", "new_string": "c", "replace_all": 1},
    ),
    "glob: pattern is required": ("glob", {"path": "x"}),
    "grep: path must be a string, not int": ("grep", {"pattern": "x", "path": 1}),
}


@pytest.mark.parametrize(("words", "call"), BAD.items(), ids=BAD)
def test_bad_input_is_answered_in_a_sentence_and_nothing_is_started(words: str, call: Call) -> None:
    no_backend: Any = None
    assert Toolbox(no_backend).call(*call) == ToolAnswer(words, is_error=True)


@given(
    st.sampled_from(NAMES),
    st.dictionaries(
        st.sampled_from(["command", "file_path", "pattern", "x"]),
        st.none() | st.text() | st.floats() | st.lists(st.none()),
    ),
)
def test_whatever_is_handed_over_there_is_a_sentence_or_nothing(name: str, handed: dict[str, object]) -> None:
    problem = problem_with(name, handed)
    assert problem == "" or problem.startswith(f"{name}: ")
    assert "\n" not in problem


def test_a_time_limit_may_be_of_any_size(server: Server) -> None:
    tools = server(environment={"PATH": os.environ["PATH"]})
    assert tools.call("bash", {"command": "echo x", "timeout_ms": 10**15}) == ToolAnswer("x")
    assert tools.call("bash", {"command": "echo x", "timeout_ms": 2**53}) == ToolAnswer("x")
    answer = tools.call("bash", {"command": "echo x", "timeout_ms": 10**400})
    assert answer == ToolAnswer("bash: timeout_ms is out of range", is_error=True)


# -- what a server answers -------------------------------------------------------------------------------------


class Liar(Process):
    """A server that says what a test wants, whatever it is asked."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines = list(lines)
        self.alive_ = True
        self.asked: list[dict[str, Any]] = []

    @property
    def alive(self) -> bool:
        return self.alive_

    def write(self, data: bytes) -> None:
        self.asked.append(json.loads(data))

    def read_line(self, timeout_s: float) -> bytes:
        return self._lines.pop(0) if self._lines else b""

    def kill(self) -> None:
        self.alive_ = False


class LyingBackend(BareBackend):
    def __init__(self, *lines: bytes) -> None:
        super().__init__((), Path("/nowhere"))
        self.liar = Liar(lines)

    def process(self, argv: Sequence[str]) -> Process:
        return self.liar


IMAGE = {"type": "base64", "media_type": "image/png", "data": "AAAA"}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"no json",
        b"[" * 100_000,
        b"[]",
        b"3",
        b'"text"',
        b"{}",
        b'{"id": 2, "text": "of another call"}',
        b'{"id": 1}',
        b'{"id": 1, "text": ["no text"]}',
        b'{"id": 1, "media_type": "text/html", "data": "AAAA"}',
        b'{"id": 1, "media_type": ["image/png"], "data": "AAAA"}',
        b'{"id": 1, "media_type": "image/png", "data": "no base64!"}',
        b'{"id": 1, "media_type": "image/png", "data": {"type": "url", "url": "http://elsewhere"}}',
        b'{"id": 1, "content": [{"type": "image", "source": {"type": "url", "url": "http://elsewhere"}}]}',
        b"\xff\xfe",
    ],
)
def test_what_is_no_answer_is_passed_over(line: bytes) -> None:
    """A block is made here: one that makes the API fetch something can never come out of a sandbox."""
    backend = LyingBackend(line, b'{"id": 1, "media_type": "image/png", "data": "AAAA", "more": 1}')
    answer = bare_tools.toolbox(backend).call("read", {"file_path": "x.png"})
    if line:
        assert answer == ToolAnswer(({"type": "image", "source": IMAGE},))
    else:
        assert answer.is_error
        assert "ended before it answered" in str(answer.content)
        assert not backend.liar.alive


def test_an_answer_is_a_text_that_a_request_can_hold() -> None:
    backend = LyingBackend(b'{"id": 1, "text": "\\ud800 \\u0000 \\ud83d\\ude00", "is_error": "perhaps"}')
    assert bare_tools.toolbox(backend).call("read", {"file_path": "x"}) == ToolAnswer("\ufffd \0 \U0001f600")


@given(st.binary(max_size=200))
def test_no_answer_at_all_raises(line: bytes) -> None:
    answer = toolbox._read(line, 1)  # pyright: ignore[reportPrivateUsage] - what is read of a line
    assert answer is None or isinstance(answer, ToolAnswer)


def test_an_interrupt_while_the_server_is_being_started_is_kept() -> None:
    """What would run then is not even asked for; the next call is another one."""

    class Slow(LyingBackend):
        def process(self, argv: Sequence[str]) -> Process:
            tools.interrupt()
            return self.liar

    backend = Slow(b'{"id": 1, "text": "done"}')
    tools = bare_tools.toolbox(backend)
    interrupted = ToolAnswer("bash: interrupted by the user", is_error=True)
    assert tools.call("bash", {"command": "rm -rf ."}) == interrupted
    assert [asked for asked in backend.liar.asked if "name" in asked] == []
    assert tools.call("bash", {"command": "ls"}) == ToolAnswer("done")


def test_an_interrupt_of_the_kill_itself_leaves_it_to_the_next_call() -> None:
    class Stubborn(Liar):
        kills = 0

        def read_line(self, timeout_s: float) -> bytes:
            if self.kills == 0:
                raise KeyboardInterrupt
            return b'{"id": 2, "text": "done"}'

        def kill(self) -> None:
            self.kills += 1
            if self.kills == 1:
                self.alive_ = False
                raise KeyboardInterrupt
            self.alive_ = True

    backend = LyingBackend()
    stubborn = backend.liar = Stubborn(())
    tools = bare_tools.toolbox(backend)
    with pytest.raises(KeyboardInterrupt):
        tools.call("bash", {"command": "sleep 60"})
    assert tools.call("bash", {"command": "ls"}) == ToolAnswer("done")
    assert stubborn.kills == 2


# -- bounded searches ------------------------------------------------------------------------------------------


def quick(program: str) -> str:
    """The server with a limit of half a second for what has 30."""
    assert "SECONDS = 30\\n" in program
    return program.replace("SECONDS = 30\\n", "SECONDS = 0.5\\n")


def test_a_pattern_that_backtracks_for_ever_is_ended(server: Server, home: Path) -> None:
    (home / "x.txt").write_text("a" * 1_900 + "b\n")
    tools = server(change=quick)
    bash = tools.call("bash", {"command": "X=kept"})
    assert not bash.is_error
    assert tools.call("grep", {"pattern": "(a+)+$"}) == ToolAnswer("grep: timed out after 0s", is_error=True)
    assert tools.call("grep", {"pattern": "a{1,3}b"}).content == f"{HOME}/x.txt:1:{'a' * 1_900}b"
    assert tools.call("bash", {"command": "echo $X"}) == ToolAnswer("kept")


def test_a_line_far_into_a_file_without_lines_is_given_up(server: Server, home: Path) -> None:
    with (home / "sparse.txt").open("wb") as file:
        file.truncate(1 << 42)
    answer = server(change=quick).call("read", {"file_path": "sparse.txt", "view_range": [2, 3]})
    assert answer == ToolAnswer("read: timed out after 0s", is_error=True)


def ripgrep(folder: Path, script: str) -> dict[str, str]:
    """An environment whose only program is a ripgrep that does this."""
    folder.mkdir(exist_ok=True)
    (folder / "rg").write_text(f"#!/bin/bash\n{script}\n")
    (folder / "rg").chmod(0o755)
    return {"PATH": str(folder), "ANTHROPIC_API_KEY": "sk-none"}


@pytest.mark.parametrize(
    ("script", "answer"),
    [
        ('printf "%s\\n" "$@"', "--no-config\n-nH\n--no-heading\n-e\n-x\n--\n/home/sandbox\n"),
        ('echo "$7/a:1:found ${ANTHROPIC_API_KEY-}"; exit 0', "/home/sandbox/a:1:found \n"),
        ("exit 1", "no matches"),
        ("echo why >&2; exit 2", ToolAnswer("grep: rg failed: why\n", is_error=True)),
        ("while :; do :; done", ToolAnswer("grep: timed out after 0s", is_error=True)),
        ("printf '\\xff\\n'", "\ufffd\n"),
    ],
)
def test_ripgrep_searches_where_there_is_one(
    server: Server, tmp_path: Path, script: str, answer: str | ToolAnswer
) -> None:
    tools = server(environment=ripgrep(tmp_path / "bin", script), change=quick)
    expected = answer if isinstance(answer, ToolAnswer) else ToolAnswer(answer)
    assert tools.call("grep", {"pattern": "-x"}) == expected


def test_what_ripgrep_says_without_an_end_is_cut(server: Server, tmp_path: Path) -> None:
    tools = server(environment=ripgrep(tmp_path / "bin", "while :; do echo row; done"))
    text = str(tools.call("grep", {"pattern": "x"}).content)
    assert text.endswith("\n[output truncated at 102400 bytes]")
    assert len(text) == 102_400 + len("\n[output truncated at 102400 bytes]")


def test_a_ripgrep_where_the_agent_can_write_is_not_run(server: Server, home: Path) -> None:
    (home / "text").write_text("needle\n")
    tools = server(environment=ripgrep(home / "bin", "echo mine"))
    assert f"{HOME}/text:1:needle" in str(tools.call("grep", {"pattern": "needle"}).content)


def test_rows_of_a_search_are_cut_at_their_bytes(server: Server, home: Path) -> None:
    (home / "many.txt").write_text("needle\n" * 20_000)
    text = str(server().call("grep", {"pattern": "needle"}).content)
    assert text.endswith("\n[output truncated at 102400 bytes]")
    assert len(text) <= 102_400 + len("\n[output truncated at 102400 bytes]")


def test_at_most_200_paths_are_shown_the_newest_first(server: Server, home: Path) -> None:
    for number in range(250):
        (home / f"{number:03}").touch()
        os.utime(home / f"{number:03}", (number, number))
    rows = str(server().call("glob", {"pattern": "*"}).content).splitlines()
    assert rows == [f"{HOME}/{number:03}" for number in range(249, 49, -1)]


def test_the_program_of_the_tools_fits_into_an_argument() -> None:
    """Linux takes 128 KiB in one."""
    assert len(inside.tools_argv()[-1].encode()) < 100_000
