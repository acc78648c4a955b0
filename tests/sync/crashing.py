"""Syncs mounts in processes that are killed. Run as a program, it forks one for each line of JSON that it reads.

A line names a mount and how the sync shall end: `{"dsn", "home", "session_id", "options", "die_at", "die_after_s"}`.
The answer is a line, too: `{"killed": bool, "steps": int}`.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from memkernel.store import Database
from memkernel.store.connections import StoreConnection
from memkernel.sync import renames
from memkernel.sync.rejected import RejectedFolder
from tests.sync.mounted import open_mount

R = TypeVar("R")

_STEPS: Final = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "os.chmod", "os.chown", "open")


class Steps:
    """Counts whatever leaves a trace: on the disk, or in the database; ends the process before one of them."""

    def __init__(self, die_at: int | None) -> None:
        self.count, self._die_at = 0, die_at

    def step(self) -> None:
        if self.count == self._die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.count += 1

    def watch(self) -> None:
        sys.addaudithook(self._see)
        for name in ("place", "swap"):
            setattr(renames, name, self._counted(getattr(renames, name)))
        StoreConnection.run = self._counted(StoreConnection.run)

    def _see(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _STEPS and (event != "open" or arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            self.step()

    def _counted(self, function: Callable[..., R]) -> Callable[..., R]:
        def counted(*arguments: Any, **options: Any) -> R:
            self.step()
            result = function(*arguments, **options)
            self.step()
            return result

        return counted


def _sync(task: dict[str, Any], steps: Steps) -> None:
    home = Path(task["home"])
    with Database(task["dsn"]) as database:
        database.open()
        mount = open_mount(database, task["session_id"], home, RejectedFolder(home.parent / "rejected"))
        steps.watch()
        report = mount.sync(**task["options"])
        if report.trouble:
            raise report.trouble


def _fork(task: dict[str, Any]) -> dict[str, Any]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        steps = Steps(task["die_at"])
        try:
            os.write(writing, b"start\n")
            _sync(task, steps)
            os.write(writing, str(steps.count).encode())
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    os.close(writing)
    if task["die_after_s"] is not None:
        os.read(reading, 6)
        select.select([reading], [], [], task["die_after_s"])
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    count = os.read(reading, 100).removeprefix(b"start\n")
    os.close(reading)
    killed = os.WIFSIGNALED(status)
    return {"killed": killed, "steps": int(count or 0), "failed": not killed and os.WEXITSTATUS(status) != 0}


class Crasher:
    """Talks to such a program."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.sync.crashing"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, die_at: int | None = None, die_after_s: float | None = None, **task: Any) -> dict[str, Any]:
        """Sync once; what became of it."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({**task, "die_at": die_at, "die_after_s": die_after_s}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert not answer["failed"]
        return answer

    def close(self) -> None:
        self._process.communicate()


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(_fork(json.loads(line))), flush=True)
