"""Windows has no flock: memkernel can be imported there, and says what to do instead."""

from __future__ import annotations

import subprocess
import sys

# As Windows looks to Python, as far as an import can tell.
AS_WINDOWS = """
import sys
import ctypes, os, platformdirs, pathlib, shutil, socket, subprocess, threading, urllib.parse
sys.modules["fcntl"] = sys.modules["pwd"] = None
sys.platform = "win32"
for name in ("register_at_fork", "geteuid", "getegid", "fork"):
    delattr(os, name)
import memkernel.cluster as cluster
from memkernel.errors import ServerStartError
from memkernel.models import Settings
"""


def run_as_windows(code: str) -> str:
    """What the code prints."""
    done = subprocess.run([sys.executable, "-c", AS_WINDOWS + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_embedded_server_is_refused_with_the_way_out() -> None:
    said = run_as_windows(
        "try: cluster.choose(None, Settings())\nexcept ServerStartError as error: print(*error.lines(), sep='\\n')"
    )
    assert said.splitlines()[0] == "ServerStartError: the embedded PostgreSQL does not run on Windows"
    assert "MEMKERNEL_DSN" in said.splitlines()[1]


def test_a_server_of_ones_own_is_used() -> None:
    said = run_as_windows("print(cluster.choose(None, Settings(dsn='postgresql://a:b@db/notes')).line)")
    assert said == "PostgreSQL at db/notes (MEMKERNEL_DSN)\n"


def test_the_doctor_says_it_too() -> None:
    said = run_as_windows("for found in cluster.diagnose(Settings()): print(found.what, found.state, found.hint)")
    assert [line.split()[:2] for line in said.splitlines()] == [["DSN", "ok"], ["server", "missing"]]
