"""A notebook's process, which a test can kill: it runs the lines that it is sent, and answers each with one."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

_PROGRAM: Final = """
import json, sys
import memkernel as mk
connection = mk.connect(sys.argv[1])
notes = connection.store("Team notes", create=True)
box = mk.Sandbox(notes, backend=sys.argv[2], **json.loads(sys.argv[3]))
def tried(work, *values):
    try:
        return work(*values)
    except mk.MemkernelError as error:
        return error
for line in sys.stdin:
    value = eval(json.loads(line))
    print("=" + json.dumps(value, default=str), flush=True)
"""


class NotebookProcess:
    """A Python process with a connection, the store `notes` and a sandbox `box` that is not started yet."""

    def __init__(self, dsn: str, backend: str, **options: Any) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", _PROGRAM, dsn, backend, json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
            start_new_session=True,  # a kill of its group is a kill of nobody else
        )
        self.pid = self._process.pid

    def begin(self, expression: str) -> None:
        """Let it evaluate an expression; do not wait."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(expression) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """What the expression came to."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        for line in self._process.stdout:
            if line.startswith("="):
                return json.loads(line[1:])
        raise AssertionError(self._process.stderr.read())

    def ask(self, expression: str) -> Any:
        """Evaluate an expression, and wait for its value."""
        self.begin(expression)
        return self.answer()

    def start(self) -> str:
        """Start the sandbox; the session's id."""
        return self.ask("box.start().id")

    def kill(self, how: signal.Signals = signal.SIGKILL) -> int:
        """Kill it, and wait until it is gone; its exit status."""
        os.kill(self.pid, how)
        return self.wait()

    def leave(self) -> tuple[int, str]:
        """Let it end by itself, as a notebook that is shut down; its exit status and what it complained of."""
        assert self._process.stdin is not None
        assert self._process.stderr is not None
        self._process.stdin.close()
        status = self._process.wait(30)
        return status, self._process.stderr.read()

    def wait(self) -> int:
        """Wait for its end, and close what was open."""
        status = self._process.wait(30)
        self.close()
        return status

    def close(self) -> None:
        """Kill it if it lives."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


def wait_until(condition: Callable[[], object], timeout_s: float = 10.0) -> None:
    """Wait until the condition holds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
