"""What the README says works: its Python runs as it stands there, its links lead somewhere."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from memkernel.handle.sandbox import Sandbox
from memkernel.jupyter.commands.table import MAGICS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()

_NEEDS_A_KEY = "<!-- needs a key: not run by the tests -->\n"
_NEEDS_DOCKER = "<!-- needs Docker -->\n"
_FENCE = re.compile(r"(?P<before>[^\n]*\n)```python\n(?P<code>.*?)```", re.DOTALL)


def python_blocks(*, docker: bool = False) -> list[str]:
    """The Python of the README that needs Docker, or that needs nothing; no magics, and nothing that needs a key."""
    found = [match for match in _FENCE.finditer(README) if match["before"] != _NEEDS_A_KEY]
    blocks = [match["code"] for match in found if (match["before"] == _NEEDS_DOCKER) is docker]
    return [block for block in blocks if not block.startswith("%")]


@pytest.mark.parametrize("number", range(len(python_blocks())))
def test_the_python_of_the_readme_runs(number: int, dsn: str, tmp_path: Path) -> None:
    run(python_blocks()[number], dsn, tmp_path)


@pytest.mark.parametrize("number", range(len(python_blocks(docker=True))))
def test_the_sandbox_of_the_readme_runs(
    number: int, dsn: str, docker_host: str, sandbox_image: str, tmp_path: Path
) -> None:
    sandbox = {"MEMKERNEL_SANDBOX_IMAGE": sandbox_image, "DOCKER_HOST": docker_host, "MEMKERNEL_HOME": str(tmp_path)}
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "plan.csv").write_text("2,test\n1,ship\n")
    printed = run(python_blocks(docker=True)[number], dsn, tmp_path, **sandbox)
    assert printed.startswith("ok ")
    assert "created /plan.md" in printed
    assert (tmp_path / "sorted.csv").read_text() == "1,ship\n2,test\n"


def run(code: str, dsn: str, home: Path, **more: str) -> str:
    """What a Python of its own prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC", "MEMKERNEL"))}
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=environment | {"MEMKERNEL_DSN": dsn, "HOME": str(home)} | more,
        cwd=home,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_there_is_python_in_the_readme() -> None:
    assert len(python_blocks()) >= 2
    assert len(python_blocks(docker=True)) == 1


def test_the_links_of_the_readme_lead_to_files() -> None:
    targets = re.findall(r"\]\((?!https?:)([^)]+)\)", README)
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_every_option_of_a_sandbox_in_the_readme_is_one() -> None:
    section = README.partition("## In a sandbox\n")[2].partition("\n## ")[0]
    known = "\n".join(command.parser.format_help() for command in MAGICS["sandbox"].all_commands())
    options, keywords = set(re.findall(r"--[a-z][a-z-]+", section)), set(re.findall(r"`(\w+)=", section))
    assert {"--memory", "--allow-wipe"} <= options
    assert [name for name in options if not re.search(rf"{name}\b", known)] == []
    assert {"packages", "files"} <= keywords
    assert keywords <= inspect.signature(Sandbox).parameters.keys()


def test_every_variable_of_the_readme_is_read() -> None:
    read = (ROOT / "memkernel" / "config.py").read_text()
    named = set(re.findall(r"`(MEMKERNEL_[A-Z_]+)", README))
    assert "MEMKERNEL_SANDBOX_IMAGE" in named
    assert [name for name in named if f'"{name}"' not in read] == []


def test_every_command_of_the_readme_is_one() -> None:
    named = set(re.findall(r"`memkernel ([a-z]+)", README))
    finished = subprocess.run(
        [sys.executable, "-m", "memkernel", "--help"], capture_output=True, text=True, timeout=60, check=True
    )
    assert named
    assert [name for name in named if name not in finished.stdout] == []
