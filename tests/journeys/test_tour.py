"""The tour where a visitor of a hosted demo has it: an ordinary user, an empty HOME, no Docker, no network."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
TOUR: Final = "00_tour.ipynb"

# Neither package tells its types.
nbformat: Any = import_module("nbformat")

_ALONE: Final = """\
import ctypes, fcntl, os, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
assert libc.unshare(0x40000000) == 0, os.strerror(ctypes.get_errno())  # CLONE_NEWNET: a network of its own
loopback = struct.pack("16sh", b"lo", 1)  # SIOCSIFFLAGS, IFF_UP: all that there is
fcntl.ioctl(socket.socket(), 0x8914, loopback)
os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[1]))
os.execvp(sys.argv[3], sys.argv[3:])
"""
"""Runs a command as another user, with no network but 127.0.0.1."""


@pytest.fixture
def home() -> Iterator[Path]:
    """The HOME of the account nobody, empty, where nobody can get at it."""
    home = Path(tempfile.mkdtemp(prefix="mk-home-"))
    shutil.chown(home, "nobody")
    yield home
    _run(home, sys.executable, "-m", "memkernel", "stop")
    shutil.rmtree(home)


def _run(home: Path, *command: str) -> str:
    nobody = pwd.getpwnam("nobody")
    done = subprocess.run(
        [sys.executable, "-c", _ALONE, str(nobody.pw_uid), str(nobody.pw_gid), *command],
        env={
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "DOCKER_HOST": f"unix://{home}/no-engine",
            "MEMKERNEL_LINGER_S": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.as_root
def test_it_runs_from_top_to_bottom_on_binder(home: Path) -> None:
    """binder/start and nothing else around it; in under two minutes (the time-out above)."""
    start = shutil.copy(ROOT / "binder" / "start", home)
    shutil.copytree(ROOT / "notebooks", home / "notebooks")
    os.chmod(home / "notebooks", 0o777)
    execute = ("-m", "nbconvert", "--to", "notebook", "--execute", "--output-dir", str(home / "done"))
    _run(home, str(start), sys.executable, *execute, str(home / "notebooks" / TOUR))
    book = nbformat.read(home / "done" / TOUR, as_version=4)
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    text = "\n".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs)
    for said in ("recorded", "scripted, not a language model", "not isolated", "put aside", "redacted"):
        assert said in text, said
    assert "4711" not in "".join(output.get("data", {}).get("text/html", "") for output in outputs)
    errors = [output.ename for output in outputs if output.output_type == "error"]
    assert errors == ["SyncConflictError"]  # the one that the tour makes, and resolves
