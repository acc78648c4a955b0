"""The command line as a person types it, in an empty HOME: the demo, what the doctor says, stopping."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

IS_ROOT = os.geteuid() == 0


@dataclass(frozen=True)
class Visitor:
    """Somebody with an empty HOME; `user` is None for the one who runs the tests."""

    home: Path
    user: str | None

    def environment(self) -> dict[str, str]:
        """HOME, and for root a memkernel home: /var/lib/memkernel does not follow HOME."""
        own = {"MEMKERNEL_HOME": str(self.home / "memkernel")} if self.user is None and IS_ROOT else {}
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "MEMKERNEL_LINGER_S": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            **own,
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """`memkernel …` of this person's."""
        return subprocess.Popen(
            [sys.executable, "-m", "memkernel", *arguments],
            env=self.environment(),
            cwd=self.home,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            user=self.user,
            group=pwd.getpwnam(self.user).pw_gid if self.user else None,
            extra_groups=[] if self.user else None,
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        """The exit status and all that was printed."""
        process = self.start(*arguments)
        output, _ = process.communicate(timeout=240)
        return process.returncode, output


@pytest.fixture(
    params=[
        pytest.param(None, id="tester"),
        pytest.param("nobody", id="ordinary_user", marks=pytest.mark.as_root),
    ]
)
def visitor(request: pytest.FixtureRequest) -> Iterator[Visitor]:
    """The one who runs the tests; and, where that is root, an ordinary user too."""
    home = Path(tempfile.mkdtemp(prefix="mk-home-"))
    home.chmod(0o755)  # root's PostgreSQL runs as another account, which has to get in
    if request.param:
        shutil.chown(home, request.param)
    somebody = Visitor(home, request.param)
    yield somebody
    somebody.run("stop")
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(home)


def test_the_demo_runs_without_a_browser_and_tells_what_it_did(visitor: Visitor) -> None:
    status, output = visitor.run("demo", "--execute")
    assert status == 0, output
    assert "In > %load_ext memkernel" in output
    assert "embedded" in output
    assert "scripted" in output
    assert "Traceback" not in output


def test_the_doctor_says_what_is_used_and_stop_stops_nothing(visitor: Visitor) -> None:
    status, output = visitor.run("doctor")
    assert status == 0, output
    assert "PostgreSQL 18" in output
    assert visitor.run("stop") == (0, "No embedded PostgreSQL was running.\n")


def test_the_demo_opens_jupyterlab_on_the_notebook(visitor: Visitor) -> None:
    process = visitor.start("demo", "--no-browser", "--ServerApp.port=0", "--ServerApp.ip=127.0.0.1")
    try:
        address = _address(process)
        contents = _get(address.replace("/lab/tree/00_tour.ipynb?", "/api/contents?"))
        assert "00_tour.ipynb" in [entry["name"] for entry in json.loads(contents)["content"]]
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)


def _get(url: str) -> bytes:
    """What a server answers that is about to listen."""
    for _ in range(300):
        with contextlib.suppress(urllib.error.URLError), urllib.request.urlopen(url) as answer:
            return answer.read()
        time.sleep(0.1)
    raise AssertionError(f"{url} does not answer")


def _address(process: subprocess.Popen[str]) -> str:
    """The link that JupyterLab prints, which leads to the notebook."""
    assert process.stdout
    said: list[str] = []
    patience = threading.Timer(60, process.kill)  # ends the reading where no link comes
    patience.start()
    try:
        for line in process.stdout:
            said.append(line)
            if found := re.search(r"http://127\.0\.0\.1:\d+/lab/tree/00_tour\.ipynb\?token=\w+", line):
                return found[0]
    finally:
        patience.cancel()
    raise AssertionError("".join(said))


def test_an_unknown_command_is_a_usage_error(visitor: Visitor) -> None:
    status, output = visitor.run("frobnicate")
    assert status == 2
    assert "usage: memkernel" in output


def test_a_server_that_was_chosen_and_is_away_is_an_error_in_two_lines(visitor: Visitor) -> None:
    status, output = visitor.run("migrate", "postgresql://memkernel@127.0.0.1:1/memkernel?connect_timeout=3")
    assert status == 1
    assert "Traceback" not in output
    assert "DatabaseUnavailableError" in output
