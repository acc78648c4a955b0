"""What the README says works: its Python runs as it stands there, its links lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
    printed = run(python_blocks(docker=True)[number], dsn, tmp_path, **sandbox)
    assert printed.startswith("ok ")
    assert "/plan.md" in printed


def run(code: str, dsn: str, home: Path, **more: str) -> str:
    """What a Python of its own prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC", "MEMKERNEL"))}
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=environment | {"MEMKERNEL_DSN": dsn, "HOME": str(home)} | more,
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


def test_every_command_of_the_readme_is_one() -> None:
    named = set(re.findall(r"`memkernel ([a-z]+)", README))
    finished = subprocess.run(
        [sys.executable, "-m", "memkernel", "--help"], capture_output=True, text=True, timeout=60, check=True
    )
    assert named
    assert [name for name in named if name not in finished.stdout] == []
