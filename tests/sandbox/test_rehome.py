"""Paths of a sandbox that are written down in code become real ones, and nothing else changes."""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel.sandbox.rehome import Rehoming

FOLDERS = {"/mnt/memory": "/real/mem", "/mnt/memory/odd": "/odd", "/home/sandbox": "/real/home", "/data": "/d"}
REHOMING = Rehoming(FOLDERS)
SPACED = Rehoming({"/mnt/memory": "/a b/it's $x"})


def python(code: str) -> str:
    return ast.unparse(REHOMING.visit(ast.parse(code)))


# -- Python ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "real"),
    [
        ("open('/mnt/memory/notes/a.md')", "open('/real/mem/notes/a.md')"),
        ("os.listdir('/mnt/memory')", "os.listdir('/real/mem')"),
        ("Path('/mnt/memory/') / name", "Path('/real/mem/') / name"),
        ("'/mnt/memory/' + slug", "'/real/mem/' + slug"),
        ("f'/mnt/memory/{slug}/a.md'", "f'/real/mem/{slug}/a.md'"),
        ("f'{open(\"/mnt/memory/a\").read()}'", "f\"{open('/real/mem/a').read()}\""),
        ("open(b'/mnt/memory/a')", "open(b'/real/mem/a')"),
        ("open('/mnt/memory/odd/a')", "open('/odd/a')"),
        ("open('/mnt/memory/odder')", "open('/real/mem/odder')"),
        ("open('/home/sandbox/x')", "open('/real/home/x')"),
        ("open('/data')", "open('/d')"),
        ("p == '/mnt/memory/a'", "p == '/real/mem/a'"),
        ("match p:\n    case '/mnt/memory/a':\n        pass", "match p:\n    case '/real/mem/a':\n        pass"),
        ("def f(path='/mnt/memory/a'):\n    pass", "def f(path='/real/mem/a'):\n    pass"),
        ("x = {'/mnt/memory/a': ['/mnt/memory/b']}", "x = {'/real/mem/a': ['/real/mem/b']}"),
    ],
)
def test_a_constant_that_is_or_begins_with_a_path_is_rehomed(code: str, real: str) -> None:
    assert python(code) == real


@pytest.mark.parametrize(
    "code",
    [
        "'see /mnt/memory/a'",
        "'/mnt/memoryless'",
        "'/mnt'",
        "'/database'",
        "'x/mnt/memory/a'",
        "f'{x}/mnt/memory/a'",
        "f'{x:/mnt/memory/a}'",
        "'/mnt/memory/a is a path,\\nthis is a text'",
        "b'/mnt/memory/a\\n'",
        "def f():\n    '/mnt/memory/a'",
        "class C:\n    '/mnt/memory/a'",
        "1 + 2.5j + ... + None",
    ],
)
def test_any_other_constant_stays_as_it_is(code: str) -> None:
    assert python(code) == ast.unparse(ast.parse(code))


@pytest.mark.parametrize(
    ("code", "real"),
    [
        ("get_ipython().system('ls -l /mnt/memory/a')", "get_ipython().system('ls -l /real/mem/a')"),
        ("x = get_ipython().getoutput('ls /mnt/memory')", "x = get_ipython().getoutput('ls /real/mem')"),
        ("get_ipython().run_line_magic('cd', '-q /mnt/memory')", "get_ipython().run_line_magic('cd', '-q /real/mem')"),
        (
            "get_ipython().run_cell_magic('bash', '', 'cd /mnt/memory\\nls\\n')",
            "get_ipython().run_cell_magic('bash', '', 'cd /real/mem\\nls\\n')",
        ),
        (
            "get_ipython().run_cell_magic('python3', '', 'open(\\'/mnt/memory/a\\')\\n')",
            "get_ipython().run_cell_magic('python3', '', \"open('/real/mem/a')\\n\")",
        ),
        (
            "get_ipython().run_cell_magic('writefile', '/mnt/memory/a', 'see /mnt/memory/b\\n')",
            "get_ipython().run_cell_magic('writefile', '/real/mem/a', 'see /mnt/memory/b\\n')",
        ),
        ("os.system('cat /mnt/memory/a')", "os.system('cat /real/mem/a')"),
        (
            "subprocess.run('cat /mnt/memory/a | wc', shell=True)",
            "subprocess.run('cat /real/mem/a | wc', shell=True)",
        ),
        ("subprocess.run(['cat', '/mnt/memory/a'])", "subprocess.run(['cat', '/real/mem/a'])"),
        ("print('cat /mnt/memory/a', shell=False)", "print('cat /mnt/memory/a', shell=False)"),
    ],
)
def test_a_shell_script_in_python_is_rehomed_by_its_words(code: str, real: str) -> None:
    assert python(code) == real


def test_a_deep_tree_is_rehomed_without_recursion() -> None:
    tree: ast.expr = ast.Constant("/mnt/memory/a")
    for _ in range(20_000):
        tree = ast.UnaryOp(ast.Not(), tree)
    REHOMING.visit(tree)
    while isinstance(tree, ast.UnaryOp):
        tree = tree.operand
    assert isinstance(tree, ast.Constant)
    assert tree.value == "/real/mem/a"


def test_places_in_the_code_stay_where_they_are() -> None:
    code = "x = 1\nopen('/mnt/memory/a'); open(f'/mnt/memory/{x}')\n"
    before = [
        (type(node), vars(node).get("lineno"), vars(node).get("col_offset")) for node in ast.walk(ast.parse(code))
    ]
    tree = REHOMING.visit(ast.parse(code))
    after = [(type(node), vars(node).get("lineno"), vars(node).get("col_offset")) for node in ast.walk(tree)]
    assert after == before


def test_without_folders_nothing_changes() -> None:
    nothing = Rehoming({})
    assert nothing.mapped("/mnt/memory/a") == nothing.unmapped("/mnt/memory/a") == "/mnt/memory/a"
    assert nothing.bash("ls /mnt/memory/a") == nothing.shown("ls /mnt/memory/a") == "ls /mnt/memory/a"
    assert ast.unparse(nothing.visit(ast.parse("x = '/mnt/memory/a'"))) == "x = '/mnt/memory/a'"


def test_its_file_runs_without_memkernel() -> None:
    code = "import runpy, sys; runpy.run_path(sys.argv[1]); assert not any('memkernel' in name for name in sys.modules)"
    file = Path(sys.modules[Rehoming.__module__].__file__ or "")
    subprocess.run([sys.executable, "-I", "-S", "-W", "error", "-c", code, file], check=True)


# -- bash ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "real"),
    [
        ("cat /mnt/memory/a", "cat /real/mem/a"),
        ("cd /mnt/memory&&ls", "cd /real/mem&&ls"),
        ("cat '/mnt/memory/a b' \"/mnt/memory/$x\"", "cat '/real/mem/a b' \"/real/mem/$x\""),
        ("X=/mnt/memory; ls $X /mnt/memory/odd/x", "X=/real/mem; ls $X /odd/x"),
        ("echo x >/mnt/memory/a 2>>/mnt/memory/b", "echo x >/real/mem/a 2>>/real/mem/b"),
        ("grep --file=/mnt/memory/a x", "grep --file=/real/mem/a x"),
        ("PATH=/bin:/mnt/memory/bin", "PATH=/bin:/real/mem/bin"),
        ("cat /mnt/memory/{a,b} {/mnt/memory/c,/data/d}", "cat /real/mem/{a,b} {/real/mem/c,/d/d}"),
        ("(cd /mnt/memory; ls)", "(cd /real/mem; ls)"),
        ('echo "$(cat /mnt/memory/a) `ls /mnt/memory`"', 'echo "$(cat /real/mem/a) `ls /real/mem`"'),
        ("x=$(cat '/mnt/memory/a')", "x=$(cat '/real/mem/a')"),
        ("python3 -c \"open('/mnt/memory/a')\"", "python3 -c \"open('/real/mem/a')\""),
        ("bash -lc 'cat /mnt/memory/a'", "bash -lc 'cat /real/mem/a'"),
        ("python3 - <<'E'\nopen('/mnt/memory/a')\nE\nls /data", "python3 - <<'E'\nopen('/real/mem/a')\nE\nls /d"),
        ("cat <<< /mnt/memory/a", "cat <<< /real/mem/a"),
        ("echo it\\'s /mnt/memory/a", "echo it\\'s /real/mem/a"),
        ("echo $((1<<2)) /mnt/memory", "echo $((1<<2)) /real/mem"),
        ("# don't\nls /mnt/memory", "# don't\nls /real/mem"),
        ("echo 'open /mnt/memory/a", "echo 'open /real/mem/a"),
    ],
)
def test_a_word_of_a_script_that_begins_with_a_path_is_rehomed(script: str, real: str) -> None:
    assert REHOMING.bash(script) == real


@pytest.mark.parametrize(
    "script",
    [
        "echo /mnt/memoryless /mnt /database",
        "echo ${R}/mnt/memory/a $R/mnt/memory ../mnt/memory /srv/mnt/memory x-/mnt/memory",
        "curl file:///mnt/memory/a",
        "echo 'units are in /mnt/memory/a' \"as /mnt/memory/b says\"",
        "# ls /mnt/memory/a",
        "cat > x <<EOF\nsee /mnt/memory/a\n'/mnt/memory/b\nEOF",
        "cat > x <<-'EOF'\n\tsee /mnt/memory/a\n\tEOF",
        "echo \\/mnt/memory",
        "",
    ],
)
def test_what_is_no_path_of_the_sandbox_stays_as_it_is(script: str) -> None:
    assert REHOMING.bash(script) == script


def test_what_follows_a_here_document_is_read_as_a_script_again() -> None:
    script = 'cat > /mnt/memory/a <<A; cat <<B\nit\'s "/mnt/memory/x\nA\n/mnt/memory/y\nB\nls /mnt/memory/z "'
    real = 'cat > /real/mem/a <<A; cat <<B\nit\'s "/mnt/memory/x\nA\n/mnt/memory/y\nB\nls /real/mem/z "'
    assert REHOMING.bash(script) == real


@pytest.mark.parametrize(
    "script",
    [
        "cat /mnt/memory/f",
        "cat '/mnt/memory/f'",
        'cat "/mnt/memory/f"',
        'echo "$(cat /mnt/memory/f)"',
        "bash -c 'cat /mnt/memory/f'",
        "sh -c \"cat '/mnt/memory/f'\"",
        "cat < /mnt/memory/f",
    ],
)
def test_a_real_path_with_spaces_and_quotes_is_quoted_where_it_stands(script: str, tmp_path: Path) -> None:
    folder = tmp_path / "a b & $HOME `x`"
    folder.mkdir()
    (folder / "f").write_text("found\n")
    real = Rehoming({"/mnt/memory": str(folder)}).bash(script)
    assert subprocess.run(["bash", "-c", real], capture_output=True, text=True, check=True).stdout == "found\n"


def test_an_apostrophe_in_a_real_path_does_not_end_a_quoted_word() -> None:
    assert SPACED.bash("cat '/mnt/memory/f'") == "cat '/a b/it'\\''s $x/f'"
    assert SPACED.bash('cat "/mnt/memory/f"') == 'cat "/a b/it\'s \\$x/f"'
    assert SPACED.bash("cat /mnt/memory/f") == "cat /a\\ b/it\\'s\\ \\$x/f"


def test_a_real_path_with_spaces_is_quoted_after_a_magic() -> None:
    spaced = Rehoming({"/mnt/memory": "/a b"})
    tree = spaced.visit(ast.parse("get_ipython().run_line_magic('cd', '/mnt/memory/x')"))
    assert ast.unparse(tree) == "get_ipython().run_line_magic('cd', '\"/a b/x\"')"
    tree = spaced.visit(ast.parse("get_ipython().run_line_magic('time', 'open(\"/mnt/memory/x\")')"))
    assert ast.unparse(tree) == "get_ipython().run_line_magic('time', 'open(\"/a b/x\")')"


def test_a_long_script_is_read_in_no_time() -> None:
    began = time.monotonic()
    REHOMING.bash("echo '/mnt/memory/a' \"x $(ls /mnt/memory) `\n" * 20_000)
    REHOMING.bash("/mnt/memory/a " + "'" * 100_000)
    assert time.monotonic() - began < 5


@given(st.text(alphabet=st.sampled_from("/mnt/memory abc'\"\\$`()<>E\n#|;-=")))
def test_a_script_without_the_paths_is_never_changed_and_nothing_raises(script: str) -> None:
    assert Rehoming({"/nowhere/at-all": "/x"}).bash(script) == script
    REHOMING.bash(script)


PIECES = ["/mnt/memory", "/a", " ", "'", '"', "\\", "$(", ")", "`", "<<E", "E", "\n", "#"]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_only_paths_are_changed_and_back_again_it_is_the_same_script(script: str) -> None:
    plain = Rehoming({"/mnt/memory": "/r-e-a-l"})
    assert plain.bash(script).replace("/r-e-a-l", "/mnt/memory") == script


@pytest.mark.parametrize(
    ("argv", "real"),
    [
        (["cat", "/mnt/memory/a", "-n"], ["cat", "/real/mem/a", "-n"]),
        (["/mnt/memory/run", "--in=/mnt/memory/a", "x=/data"], ["/real/mem/run", "--in=/real/mem/a", "x=/data"]),
        (["bash", "-lc", "cat /mnt/memory/a", "/data"], ["bash", "-lc", "cat /real/mem/a", "/d"]),
        (["/bin/sh", "-c", "cat /mnt/memory/a"], ["/bin/sh", "-c", "cat /real/mem/a"]),
        (["grep", "-c", "in /mnt/memory/a"], ["grep", "-c", "in /mnt/memory/a"]),
        ([], []),
    ],
)
def test_a_command_has_real_paths_where_a_word_is_one(argv: list[str], real: list[str]) -> None:
    assert REHOMING.arguments(argv) == real


# -- single paths, and back ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "real"),
    [
        ("/mnt/memory/a", "/real/mem/a"),
        ("/mnt/memory", "/real/mem"),
        ("/mnt/memory/", "/real/mem"),
        ("//mnt/memory/x/../a", "/real/mem/a"),
        ("/mnt/memory/../memory/odd/./x", "/odd/x"),
        ("/mnt/memory/../x", "/mnt/memory/../x"),
        ("/mnt/memoryless", "/mnt/memoryless"),
        ("/etc/passwd", "/etc/passwd"),
        ("relative/mnt/memory", "relative/mnt/memory"),
        ("-l", "-l"),
        ("", ""),
    ],
)
def test_a_path_is_mapped_where_it_is_the_sandboxs(path: str, real: str) -> None:
    assert REHOMING.mapped(path) == real


@given(st.sampled_from(sorted(FOLDERS)), st.lists(st.text("abc.é ", min_size=1), max_size=3))
def test_a_mapped_path_comes_back(folder: str, names: list[str]) -> None:
    path = "/".join([folder, *(f"n{name}" for name in names)])
    assert REHOMING.unmapped(REHOMING.mapped(path)) == path


def test_what_is_shown_has_the_sandboxs_paths() -> None:
    text = "No such file: '/real/mem/notes/a.md' (/odd/x, /real/memo, /odd2) in /real/home\n"
    shown = "No such file: '/mnt/memory/notes/a.md' (/mnt/memory/odd/x, /real/memo, /odd2) in /home/sandbox\n"
    assert REHOMING.shown(text) == shown
