"""The house rules (DESIGN sections 3, 5 and 7) that a machine can check."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import memkernel

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "memkernel").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))

HEAVY = ("anthropic", "anywidget", "docker", "duckdb", "ipywidgets", "pandas", "pyarrow", "starlette", "uvicorn")
NAMELESS = {"utils", "util", "helpers", "helper", "common", "manager", "misc", "base"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), named(path))


def loaded_by(statement: str) -> set[str]:
    """What a fresh interpreter has loaded after the statement."""
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


# -- floors and imports --------------------------------------------------------------------------


def test_every_floor_imports_only_from_below() -> None:
    """DESIGN section 3: the contracts of pyproject.toml hold."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_importing_memkernel_loads_nothing_of_its_own_and_no_library() -> None:
    loaded = loaded_by("import memkernel")
    assert {name for name in loaded if name.startswith("memkernel")} == {"memkernel"}
    assert loaded.isdisjoint({*HEAVY, "IPython", "psycopg"})


@pytest.mark.parametrize("module", ["memkernel.jupyter.extension", "memkernel.handle.connection", "memkernel.cli"])
def test_what_load_ext_and_the_command_reach_loads_no_heavy_library(module: str) -> None:
    """PERFORMANCE P18."""
    assert loaded_by(f"import {module}").isdisjoint(HEAVY)


# -- the public names ----------------------------------------------------------------------------


def test_there_are_at_most_twenty_public_names_in_order() -> None:
    assert len(memkernel.__all__) <= 20
    assert sorted(memkernel.__all__) == memkernel.__all__


@pytest.mark.parametrize("name", memkernel.__all__)
def test_a_public_name_is_there_and_is_listed(name: str) -> None:
    assert getattr(memkernel, name) is not None
    assert name in dir(memkernel)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'memkernel' has no attribute 'nothing'"):
        memkernel.nothing  # noqa: B018  # reading it is the test


# -- sizes and names -----------------------------------------------------------------------------


def functions(module: ast.Module) -> Iterator[Function]:
    return (node for node in ast.walk(module) if isinstance(node, Function))


def lines_of(function: Function) -> int:
    """The function's lines without its docstring."""
    first = function.body[0]
    documented = ast.get_docstring(function) is not None
    docstring = (first.end_lineno or 0) - first.lineno + 1 if documented else 0
    return (function.end_lineno or 0) - function.lineno + 1 - docstring


def test_no_module_is_over_400_lines_and_no_function_over_60() -> None:
    assert [named(path) for path in MODULES if len(path.read_text().splitlines()) > 400] == []
    long = [(path, function) for path in MODULES for function in functions(tree(path)) if lines_of(function) > 60]
    assert [f"{named(path)}: {function.name}" for path, function in long] == []


def test_every_module_begins_with_a_docstring_and_postpones_its_annotations() -> None:
    with_code = [path for path in MODULES if tree(path).body]
    assert [named(path) for path in with_code if not ast.get_docstring(tree(path))] == []
    with_more = [path for path in with_code if len(tree(path).body) > 1]
    assert [named(path) for path in with_more if "from __future__ import annotations" not in path.read_text()] == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    said = [named(path) for path in MODULES if path.stem in NAMELESS or path.parent.name in NAMELESS]
    assert [path for path in said if path != "memkernel/sandbox/base.py"] == []


# -- one place for the environment, no test left out ---------------------------------------------


def attributes(path: Path) -> set[str]:
    """The names that follow a dot, anywhere in the module."""
    return {node.attr for node in ast.walk(tree(path)) if isinstance(node, ast.Attribute)}


def test_only_config_reads_the_environment() -> None:
    """The cluster and the demo hand a cleaned copy on to what they start; sandbox/inside runs in another machine."""
    modules = [path for path in MODULES if "memkernel/sandbox/inside/" not in named(path)]
    readers = {named(path) for path in modules if attributes(path) & {"environ", "environb", "getenv"}}
    assert readers <= {"memkernel/config.py", "memkernel/cluster/environment.py", "memkernel/cli/demo.py"}


def test_no_test_is_skipped_or_expected_to_fail() -> None:
    leaving_out = {"skip", "skipif", "xfail", "importorskip", "skipTest"}
    assert [named(path) for path in TESTS if attributes(path) & leaving_out] == []
