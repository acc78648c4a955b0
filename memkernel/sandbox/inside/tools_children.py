"""The processes below the tools' server: each is reaped here, and all can be ended at once."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from typing import Any, Dict, List, NamedTuple

from memkernel.sandbox.inside.processes import below, kill_all

_PIECE = 1 << 16
_LOOK_S = 0.5

Popen = subprocess.Popen


class Done(NamedTuple):
    """A program that has ended; `cut`: it was ended because it said too much."""

    code: int
    stdout: bytes
    stderr: bytes
    timed_out: bool
    cut: bool


class Children:
    """Orphans become children of the server, too: nobody else may wait for a process here."""

    def __init__(self) -> None:
        self.ended, end = os.pipe()
        for fd in (self.ended, end):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(end, warn_on_full_buffer=False)
        self._known: Dict[int, Any] = {}

    def start(self, argv: List[str], **how: Any) -> "Popen[bytes]":
        """Start a program in a session of its own, without what is the agent's provider's."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ANTHROPIC_")}
        environment.update(how.pop("environment", {}))
        process: Any = Popen(argv, env=environment, start_new_session=True, **how)
        self._known[process.pid] = process
        return process

    def reap(self) -> None:
        """Let go of what has ended."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.ended, 4096)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self._known:
                code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
                self._known.pop(pid).returncode = code

    def kill(self) -> None:
        """Kill all that runs below here, whatever session or group it is in."""
        me = os.getpid()
        kill_all(lambda processes: below([me], processes))
        self.reap()

    def run(self, argv: List[str], seconds: float, most: int) -> Done:
        """Run a program to its end; it is killed when the time is up, or when it has said more than `most` bytes."""
        process = self.start(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        said = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
        out, err = said
        reading = set(said)
        deadline = time.monotonic() + seconds
        while reading and len(said[out]) <= most and time.monotonic() < deadline:
            for fd in select.select(list(reading), [], [], _LOOK_S)[0]:
                piece = os.read(fd, _PIECE)
                said[fd] += piece if len(said[fd]) <= most else b""
                if not piece:
                    reading.discard(fd)
        timed_out, cut = time.monotonic() >= deadline, len(said[out]) > most
        if timed_out or cut:
            process.kill()
        while process.returncode is None:
            select.select([self.ended], [], [], _LOOK_S)
            self.reap()
        process.stdout.close()
        process.stderr.close()
        return Done(process.returncode, bytes(said[out]), bytes(said[err]), timed_out, cut)
