"""bash: one shell that lives from call to call, with its folder, its variables and its jobs."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import shlex
import subprocess
import time
import uuid
from typing import Any, Dict, Optional

from memkernel.sandbox.inside.tools_children import Children
from memkernel.sandbox.inside.tools_paths import Places, ToolError, file_error

OUTPUT_BYTES = 100 * 1024
SECONDS = 120.0
_PIECE = 1 << 16
_LAST_PIECES = 16  # of a shell that has ended
_LOOK_S = 0.5
_HIGH = 200
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_GONE = "bash: bash session terminated; restart required"


class Shell:
    """A bash; it is over when it has ended, or a command in it took too long."""

    def __init__(self, children: Children, folder: str) -> None:
        self._children = children
        self._output, said = os.pipe()
        self._said = fcntl.fcntl(said, fcntl.F_DUPFD, _HIGH)  # scripts use the low numbers themselves
        os.close(said)
        try:
            self._process = children.start(
                ["/bin/bash", "--noprofile", "--norc"],
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=self._said,
                stderr=self._said,
                pass_fds=(self._said,),
                environment={"PS1": "", "PS2": "", "TERM": "dumb"},
            )
        except BaseException:
            os.close(self._output)
            os.close(self._said)
            raise
        assert self._process.stdin is not None
        self._input = self._process.stdin
        for fd in (self._output, self._input.fileno()):
            os.set_blocking(fd, False)
        self._buffer = bytearray()
        self._is_cut = False
        self._is_over = False

    @property
    def is_over(self) -> bool:
        """Whether it takes no more commands."""
        return self._is_over or self._process.returncode is not None

    def close(self) -> None:
        """End it, and all else that runs below the server."""
        if not self._is_over:
            self._is_over = True
            self._children.kill()
            self._input.close()
            os.close(self._output)
            os.close(self._said)

    def run(self, command: str, seconds: float) -> str:
        """What a command says on both streams.

        Raises:
            ToolError: it failed, or the time was up.
        """
        marker = "__MK_BASH_%s_DONE__" % uuid.uuid4().hex
        self._buffer.clear()
        self._is_cut = False
        end = re.compile(rb"\n" + marker.encode() + rb"(\d+)\n")
        found = self._until(end, self._script(command, marker), time.monotonic() + seconds)
        if found is None and not self.is_over:
            self.close()
            raise ToolError("bash: bash command timed out after %ss" % seconds)
        if found is None:
            raise ToolError(self._text(len(self._buffer)).strip() or _GONE)
        text, code = self._text(found.start()), int(found[1])
        if code != 0:
            raise ToolError(text if text.strip() else "bash: exit status %d" % code)  # the API wants a text
        return text

    def _script(self, command: str, marker: str) -> bytes:
        """The command, and a line that tells its end. `eval` keeps a command that is not whole to itself; the streams
        are named anew each time, so that no `exec >file` of the command hides its end; nor does `set -x` show it, nor
        a function of the same name.
        """
        told = "{ builtin printf '\\n%s''%s%%d\\n' $? >&%d; } 2>/dev/null" % (marker[:8], marker[8:], self._said)
        return (
            "builtin eval -- %s </dev/null >&%d 2>&%d; %s\n" % (_quoted(command), self._said, self._said, told)
        ).encode()

    def _until(self, end: "re.Pattern[bytes]", script: bytes, deadline: float) -> "Optional[re.Match[bytes]]":
        """The end of the command; None where there is none in time, or the shell has ended."""
        unsent = memoryview(script)
        while True:
            found = end.search(self._buffer)
            if found is not None or self.is_over or time.monotonic() >= deadline:
                return found
            patience = max(0.0, min(_LOOK_S, deadline - time.monotonic()))
            reading = [self._output, self._children.ended]
            ready, writable, _ = select.select(reading, [self._input] if unsent else [], [], patience)
            if writable:
                unsent = unsent[self._write(unsent) :]
            if self._children.ended in ready:
                self._children.reap()
            self._read(_LAST_PIECES if self.is_over else 1)

    def _write(self, data: memoryview) -> int:
        try:
            return os.write(self._input.fileno(), data[:_PIECE])
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            return len(data)

    def _read(self, pieces: int) -> None:
        with contextlib.suppress(BlockingIOError):
            for _ in range(pieces):  # a job in the background may write without an end
                self._buffer += os.read(self._output, _PIECE)
                if len(self._buffer) > OUTPUT_BYTES:
                    del self._buffer[: len(self._buffer) - OUTPUT_BYTES]
                    self._is_cut = True

    def _text(self, end: int) -> str:
        text = _ANSI.sub("", self._buffer[:end].decode("utf-8", "replace")).rstrip("\n")
        return "[output truncated]\n" + text if self._is_cut else text


class Bash:
    """The tool. `is_lost`: there was a shell in an earlier server, and what it held is gone."""

    def __init__(self, places: Places, children: Children, is_lost: bool) -> None:
        self._places, self._children = places, children
        self._is_lost = is_lost
        self._shell: Optional[Shell] = None

    def __call__(self, given: Dict[str, Any]) -> Dict[str, Any]:
        """Run a command, or begin a new shell."""
        try:
            if given.get("restart"):
                self._restart()
                return {"text": "bash session restarted"}
            if not given.get("command"):
                raise ToolError("bash: command is required")
            timeout_ms = given.get("timeout_ms")
            seconds = timeout_ms / 1000.0 if timeout_ms else SECONDS
            return {"text": self._living().run(given["command"], seconds)}
        except OSError as error:
            raise file_error("bash", self._places.shown(error.filename or "/bin/bash"), error) from error

    def _restart(self) -> None:
        if self._shell is not None:
            self._shell.close()
        self._children.kill()
        self._is_lost = False
        self._shell = Shell(self._children, str(self._places.workdir))

    def _living(self) -> Shell:
        if self._is_lost or (self._shell is not None and self._shell.is_over):
            raise ToolError(_GONE)
        if self._shell is None:
            self._shell = Shell(self._children, str(self._places.workdir))
        return self._shell


def _quoted(command: str) -> str:
    return shlex.quote(command.replace("\0", ""))
