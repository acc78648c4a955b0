"""Every word and edge of the sandbox's tools against the SDK's own, run on a folder of this machine (CONTRACT.md E)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkernel.models import ToolAnswer
from memkernel.sandbox.base import Mount
from memkernel.sandbox.toolbox import Toolbox
from tests.sandbox.bare_tools import BareBackend, Oracle, contents, date, plant, toolbox

Call = tuple[str, dict[str, Any]]
NOTES, RULES = "/mnt/memory/notes", "/mnt/memory/rules"


class Pair:
    """Ours and the SDK's, each with a tree of its own; the trees begin equal."""

    def __init__(self, base: Path) -> None:
        self.ours, self.theirs = base / "ours", base / "theirs"
        own, other = plant(self.ours), plant(self.theirs)
        mounts = [Mount(own["notes"], NOTES), Mount(own["rules"], RULES, read_only=True)]
        self.box: Toolbox = toolbox(BareBackend(mounts, own["home"]))
        self.oracle = Oracle(other["home"], {NOTES: other["notes"], RULES: other["rules"]}, read_only=[RULES])

    def both(self, name: str, given: dict[str, Any]) -> tuple[ToolAnswer, ToolAnswer]:
        return self.box.call(name, given), self.oracle.call(name, given)

    def date(self) -> None:
        """`glob` says what is newest: the same in both."""
        date(self.ours)
        date(self.theirs)

    def close(self) -> None:
        self.box.close()
        self.oracle.close()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """No ripgrep is found: a machine that has one searches as one that has none."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PATH", str(tmp_path_factory.mktemp("no-programs")))
        made = Pair(tmp_path_factory.mktemp("pair").resolve())
        yield made
        made.close()


def read(path: str, *view_range: int) -> Call:
    return "read", {"file_path": path} | ({"view_range": list(view_range)} if view_range else {})


def write(path: str, content: str) -> Call:
    return "write", {"file_path": path, "content": content}


def edit(path: str, old: str, new: str, **more: Any) -> Call:
    return "edit", {"file_path": path, "old_string": old, "new_string": new, **more}


def glob(pattern: str, **more: Any) -> Call:
    return "glob", {"pattern": pattern, **more}


def grep(pattern: str, **more: Any) -> Call:
    return "grep", {"pattern": pattern, **more}


def bash(command: str, **more: Any) -> Call:
    return "bash", {"command": command, **more}


PATHS: Final = [
    "a.txt",
    "./dir/../a.txt",
    "/home/sandbox/a.txt",
    "//home/sandbox//a.txt",
    "",
    ".",
    "dir",
    "dir/",
    "missing",
    "missing/deeper",
    "a.txt/below",
    "link.txt",
    "linkdir/x.py",
    "self/self/a.txt",
    "out",
    "outdir/passwd",
    "/etc/passwd",
    "/",
    "..",
    "loop",
    "loop/x",
    "dangling",
    "danglingout",
    "fifo",
    "sp ace.txt",
    "n\u00e9.txt",
    "-dash",
    "q'uo\"te",
    "new\nline.txt",
    "x" * 300,
    "y/" * 2_100,
    "~/a.txt",
    "$HOME/a.txt",
    "notes-link/first.md",
    f"{NOTES}/first.md",
    f"{NOTES}/../rules/first.md",
    f"{NOTES}x/first.md",
    "/mnt/memory",
    RULES,
]

READS: Final[list[Call]] = [
    *(read(path) for path in PATHS),
    *(read(name) for name in ("crlf.txt", "cr.txt", "empty.txt", "bom.txt", "nul.txt", "binary.bin", "latin.txt")),
    *(read(name) for name in ("big.txt", "long.txt", "limit.txt", "pic.png", "PIC.JPG", "pic.gif", "pic.webp")),
    *(read(name) for name in ("doc.pdf", "big.png", "most.png", "big.pdf")),
    *(read("a.txt", *lines) for lines in ((1, 1), (2, 3), (0, 2), (-5, 0), (1, -1), (3, 2), (9, 12), (2, 99))),
    *(read("a.txt", *lines) for lines in ((1,), (1, 2, 3))),
    ("read", {"file_path": "a.txt", "view_range": []}),
    *(read("big.txt", *lines) for lines in ((1, 3), (19_999, 0), (20_001, 0), (20_002, 0), (5, 4), (1, 15_000))),
    *(read("long.txt", *lines) for lines in ((1, 1), (2, 2), (1, 2), (2, 0), (4, 9))),
    *(read("big.bin", *lines) for lines in ((1, 1), (2, 2))),
    *(read("limit.txt", *lines) for lines in ((1, 1), (2, 2))),
    read("pic.png", 1, 2),
    read("doc.pdf", 1, 2),
    read("crlf.txt", 1, 1),
]

WRITES: Final[list[Call]] = [
    write("f", "\u00e9"),
    write("new/folders/on/the/way.txt", "text\r\nas it is\n"),
    write("a.txt", ""),
    write("link.txt", "through a link"),
    write("dangling", "made through a link"),
    *(write(path, "x") for path in PATHS if path != "fifo"),
    write("a.txt/below", "x"),
    write(f"{RULES}/new.md", "x"),
    write(f"{RULES}/first.md", "x"),
    write("notes-link/made.md", "x"),
    write("emoji", "\U0001f600" * 3),
]

EDITS: Final[list[Call]] = [
    edit("a.txt", "two", "2"),
    edit("a.txt", "missing", "x"),
    edit("a.txt", "e", "E"),
    edit("a.txt", "e", "E", replace_all=True),
    edit("a.txt", "e", "E", replace_all=False),
    edit("a.txt", "", "x"),
    edit("a.txt", "", "-", replace_all=True),
    edit("empty.txt", "", "begun"),
    edit("crlf.txt", "\r\n", "\n", replace_all=True),
    edit("bom.txt", "\U0001f600", "\u00e9"),
    edit("binary.bin", "x", "y"),
    edit("latin.txt", "gr", "x"),
    edit("big.txt", "line 1 ", "x"),
    edit("limit.txt", "z", "y", replace_all=True),
    edit("nul.txt", "\x00", " "),
    edit("a.txt", "one", "one"),
    edit("a.txt", "aa", "a"),
    *(edit(path, "o", "0") for path in PATHS),
    edit(f"{RULES}/first.md", "needle", "x"),
    edit("linkdir/x.py", "needle", "pin"),
]

SEARCHES: Final[list[Call]] = [
    *(glob(pattern) for pattern in ("*.txt", "**/*.py", "*", "**", "nothing*", "dir/*", "linkdir/*", "outdir/*")),
    *(glob(pattern) for pattern in ("out", "loop", "fifo", ".*", "*.[ch]", "?.txt", "[!a]*", "[", "**/", "", "***")),
    *(glob(pattern) for pattern in ("/etc/*", "../*", "dir/../*", "a/..", "..", "x..", "self/*.txt", "a.txt/*")),
    *(glob("*", path=path) for path in PATHS),
    *(grep(pattern) for pattern in ("needle", "^import", "caf.", "nothing at all", "hidden$", "\\bof\\b.*rules")),
    *(grep(pattern) for pattern in ("(", "[", "*", "(?P<x>", "a{2", "\\", "two\x00", "\u00fc")),
    *(grep("needle", path=path) for path in PATHS),
    grep("line 1999.", path="big.txt"),
    grep("ok", path="big.bin"),
    grep("one", path="nul.txt"),
    grep("one.", path="crlf.txt"),
]

COMMANDS: Final[list[Call]] = [
    bash("echo hello"),
    bash("echo out; echo err >&2; echo out again"),
    bash("printf 'no end of line'"),
    bash("printf 'two ends\\n\\n'"),
    bash("printf '\\n\\nfirst'"),
    bash("printf '  indented  '"),
    bash("true"),
    bash("echo why >&2; exit_code() { return 3; }; exit_code"),
    bash("X=kept; cd dir; pwd"),
    bash("echo $X; pwd"),
    bash("cd .. && pwd"),
    bash('read line; echo "[$line] $?"'),
    bash("printf '\\033[31mred\\033[0m \\033[1;2Hx\\033]0;title\\007'"),
    bash("printf '\\xff\\xfe\\n'"),
    bash("echo \u00e9 '\U0001f600'"),
    bash('echo "it\'s" \'a "quoted"\' \\$X'),
    bash("for i in 1 2 3; do\n  echo $i\ndone"),
    bash("f() {\n  echo in f\n}\nf"),
    bash("f"),
    bash("echo a # a comment at the end"),
    bash("echo a \\\n  b"),
    bash("cat_() { while read -r l; do echo \"<$l>\"; done; }; cat_ <<'EOF'\none $X\ntwo\nEOF"),
    bash("echo ${PS1:-none} $TERM"),
    bash("echo lost; (echo and said; exit 7)"),
    bash("false || echo saved"),
    bash("x=$(echo inner); echo $x"),
    bash("echo {a,b}{1,2}"),
    bash("shopt -s nullglob; echo *.nothing; shopt -u nullglob"),
    bash(""),
    ("bash", {}),
    ("bash", {"command": "echo x", "restart": False}),
    ("bash", {"command": "echo not run", "restart": True}),
    bash("echo ${X:-gone}; pwd"),
    bash("while :; do :; done", timeout_ms=300),
    bash("echo x"),
    ("bash", {"restart": True}),
    bash("echo back", timeout_ms=0),
    bash("echo in time", timeout_ms=60_000),
    bash("echo last words; exit 3"),
    ("bash", {"restart": True}),
]


@pytest.mark.parametrize("calls", [READS, WRITES, EDITS, SEARCHES], ids=["read", "write", "edit", "search"])
def test_every_answer_and_every_file_is_the_sdks(pair: Pair, calls: list[Call]) -> None:
    """F.274-277, and what else section E says."""
    pair.date()
    for call in calls:
        ours, theirs = pair.both(*call)
        assert (call, ours) == (call, theirs)
    assert contents(pair.ours) == contents(pair.theirs)


def test_a_shells_answers_are_the_sdks_from_call_to_call(pair: Pair) -> None:
    """F.272, F.273."""
    for call in COMMANDS:
        ours, theirs = pair.both(*call)
        assert (call, ours) == (call, theirs)


# -- where the SDK's tools would hang, break their shell, or answer what the API refuses ------------------

GONE: Final = "bash: bash session terminated; restart required"
BETTER: Final = {
    "a comment alone": [(bash("# only a comment"), "")],
    "silent failures": [
        (bash("false"), "bash: exit status 1"),
        (bash("! true"), "bash: exit status 1"),
        (bash("(exit 7)"), "bash: exit status 7"),
        (bash("echo ' '; (exit 8)"), "bash: exit status 8"),
    ],
    "a quote that does not end": [
        (bash("X=kept; echo 'begun"), "unexpected EOF while looking for matching `''"),
        (bash("echo ${X:-never ran}"), "never ran"),
    ],
    "a document that does not end": [(bash("read -r x <<EOF\nline\n$x"), "delimited by end-of-file (wanted `EOF')")],
    "half a loop": [(bash("for i in 1 2; do"), "syntax error: unexpected end of file")],
    "a brace too many": [(bash("}; echo x"), "syntax error near unexpected token `}'")],
    "an option": [(bash("-x"), "-x: command not found")],
    "its output led away": [(bash("exec >/dev/null 2>&1; echo hidden"), ""), (bash("echo seen"), "seen")],
    "its output closed": [(bash("exec >&- 2>&-"), ""), (bash("echo seen"), "seen")],
    "functions of the same names": [
        (bash("printf() { :; }; eval() { :; }; echo on"), "on"),
        (bash("unset -f printf eval; echo off"), "off"),
    ],
    "low descriptors": [
        (bash("exec 3>/dev/null 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; echo on"), "on"),
        (bash("echo on"), "on"),
    ],
    "tracing": [(bash("set -x"), ""), (bash(":; set +x"), "+ set +x")],
    "an end of no words": [(bash("exit 3"), GONE), (bash("echo x"), GONE)],
    "a shell that kills itself": [(bash("kill -KILL $BASHPID; echo on"), GONE), (bash("echo x"), GONE)],
    "an error that ends it": [(bash("set -e; echo before; false; echo after"), "before"), (bash("echo x"), GONE)],
    "a null byte": [(bash("echo a\0b"), "ab")],
    "a fifo": [(write("fifo", "x"), "write: fifo: not a regular file")],
    "a pattern of the SDK's that has no name": [(glob("."), "glob: ")],
    "a number without an end": [(grep("x{99999999999}"), "grep: invalid regex: the repetition number is too large")],
    "another file system's words": [(glob("*", path="x" * 300), "glob: path 'xxx")],
}


@pytest.mark.parametrize("calls", BETTER.values(), ids=BETTER)
def test_what_would_hang_or_break_the_shell_is_answered(pair: Pair, calls: list[tuple[Call, str]]) -> None:
    pair.box.call("bash", {"restart": True})
    for call, words in calls:
        answer = pair.box.call(*call)
        assert words in str(answer.content)
        assert answer.content or not answer.is_error


# -- random files, ranges and edits ------------------------------------------------------------------

TEXTS = st.text(st.sampled_from("ab\n\r\t \u00e9\U0001f600\x00"), max_size=40)
LINES = st.lists(st.integers(-3, 12), max_size=3)


@settings(max_examples=150, deadline=None)
@given(text=TEXTS, lines=LINES, old=st.text("ab\n\u00e9", max_size=3), new=TEXTS, everywhere=st.none() | st.booleans())
def test_any_text_is_written_read_and_edited_as_by_the_sdk(pair: Pair, **drawn: Any) -> None:
    text, lines, old, new, everywhere = (drawn[name] for name in ("text", "lines", "old", "new", "everywhere"))
    changed = (
        edit("random.txt", old, new) if everywhere is None else edit("random.txt", old, new, replace_all=everywhere)
    )
    for call in (write("random.txt", text), read("random.txt", *lines), changed, read("random.txt"), grep("a.?b")):
        ours, theirs = pair.both(*call)
        assert (call, ours) == (call, theirs)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from(["a.txt", "dir", "self", "linkdir", "..", ".", "", "x", "loop"]), max_size=6))
def test_any_path_is_resolved_as_by_the_sdk(pair: Pair, parts: list[str]) -> None:
    path = "/home/sandbox/" + "/".join(parts)
    pair.date()
    for call in (read(path), glob("*.py", path=path)):
        ours, theirs = pair.both(*call)
        assert (call, ours) == (call, theirs)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.sampled_from(["*", "**", "/", "a", ".", "?", "[a-d]", "txt", "dir", "linkdir"]), min_size=2, max_size=6)
)
def test_any_pattern_finds_what_the_sdk_finds(pair: Pair, parts: list[str]) -> None:
    pattern = "".join(parts)
    pair.date()
    ours, theirs = pair.both(*glob(pattern if pattern.strip("./") else "*"))
    assert (pattern, ours) == (pattern, theirs)
