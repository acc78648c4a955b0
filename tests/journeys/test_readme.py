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

_NOT_RUN = re.compile(r"<!-- needs .*: not run by the tests.* -->\n")
_FENCE = re.compile(r"(?P<before>[^\n]*\n)```python\n(?P<code>.*?)```", re.DOTALL)


def python_blocks() -> list[str]:
    """The Python of the README, except magics and what needs a key."""
    found = _FENCE.finditer(README)
    blocks = [match["code"] for match in found if not _NOT_RUN.fullmatch(match["before"])]
    return [block for block in blocks if not block.startswith("%")]


@pytest.mark.parametrize("number", range(len(python_blocks())))
def test_the_python_of_the_readme_runs(number: int, dsn: str, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC", "MEMKERNEL"))}
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", python_blocks()[number]],
        env=environment | {"MEMKERNEL_DSN": dsn, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr


def test_there_is_python_in_the_readme() -> None:
    assert len(python_blocks()) >= 2


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
