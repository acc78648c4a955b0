"""The suite again, over HTTP, with the oldest release of the SDK that has `beta.memory_stores`.

Its keys go in `X-Api-Key`, its routes end in `?beta=true`, its `anthropic-version` is 2023-06-01 (`test_calls.py`).
tests/run puts it into a folder of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from memkernel.store import Database
from tests.fix_server import MemoryServer

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[2]
VERSION: Final = "0.97.0"
FOLDER: Final = Path(sys.prefix) / f"sdk-{VERSION}"
SUITE: Final = ["test_calls.py", "test_errors.py", "test_lifecycle.py", "test_pages.py", "test_sessions.py"]
TESTS_AT_MOST: Final = 100


@pytest.mark.oldest_sdk
def test_the_suite_passes_with_the_oldest_sdk(memory_server: MemoryServer) -> None:
    """F.97, F.98, F.100, F.101, F.112, F.164, F.195."""
    with Database(memory_server.dsn) as database:
        keys = [database.keys.create(f"w{number}")[1] for number in range(TESTS_AT_MOST)]
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC_", "PYTEST_"))}
    command = [sys.executable, "-m", "pytest", "-W", "error", "-c", os.devnull, "--import-mode=importlib"]
    alone = [f"--rootdir={ROOT}", f"--confcutdir={HERE}", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *alone, *[str(HERE / name) for name in SUITE]],
        cwd=ROOT,
        env={
            **ours,
            "PYTHONPATH": os.pathsep.join([str(FOLDER), str(ROOT)]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "SDK_SERVER": memory_server.url,
            "SDK_KEYS": json.dumps(keys),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"SDK {VERSION}" in done.stdout
