"""Commands beside the kernel: started without a shell, heard to their end, killed with all that they started."""

from __future__ import annotations

import json
import os
import subprocess
import time
from typing import IO, Any, Callable, Dict, Optional, Set

from memkernel.sandbox.inside.loop import Loop
from memkernel.sandbox.inside.processes import (
    Processes,
    below,
    has_variable,
    kill_all,
    now_ticks,
    send_signal,
)
from memkernel.sandbox.inside.protocol import EXIT, INPUT, INPUT_END, KILL, PIECE, SIGNAL, STDERR, STDOUT

_REMEMBER_S = 5.0  # a command has ended, and the host may still want the end of what it started
_LINGER_S = 0.1  # a command has ended, and somebody else still holds its stdout
_MARK = "MEMKERNEL_SERVER"  # a variable of what a command that serves has started


class Command:
    """A command that runs, or has ended while what it started still holds its stdout or stderr."""

    def __init__(self, loop: Loop, number: int, request: Dict[str, Any], gone: Callable[[], object]) -> None:
        self._loop = loop
        self._number = number
        self._gone = gone
        self._unsent = bytearray()
        self._input_ended = False
        self._told = False
        self._timed_out = False
        self._code: Optional[int] = None
        self.born = now_ticks()
        self.serves = bool(request.get("serves"))
        environment = {**os.environ, **request["environment"]}
        if self.serves:
            environment[_MARK] = str(number)
        self._process = subprocess.Popen(
            request["argv"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=request["cwd"],
            env=environment,
            start_new_session=True,
        )
        self._open: Dict[int, IO[bytes]] = {}
        self._listen(STDOUT, self._process.stdout)
        self._listen(STDERR, self._process.stderr)
        if self._process.stdin is not None:
            os.set_blocking(self._process.stdin.fileno(), False)
        if request["timeout_s"] is not None:
            loop.at((self, "timeout"), time.monotonic() + request["timeout_s"], self._time_is_up)

    @property
    def pid(self) -> int:
        """Its first process."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether its first process lives."""
        return self._code is None

    def obey(self, kind: int, payload: bytes, others: "Commands") -> None:
        """What the host wants of it."""
        if kind == INPUT:
            self._unsent += payload
        elif kind == INPUT_END:
            self._input_ended = True
        elif kind == SIGNAL:
            send_signal(self.pid, payload[0])
        elif kind == KILL:
            self.kill(others)
        self._feed()

    def _time_is_up(self) -> None:
        self._timed_out = True
        self.kill(self.others)

    others: "Commands"
    """All commands, this one too; whoever starts one says so."""

    def kill(self, others: "Commands") -> None:
        """Kill it and all that it started; its orphans are the helper's children."""
        kill_all(lambda processes: self._tree(processes, others))

    def _tree(self, processes: Processes, others: "Commands") -> Set[int]:
        roots = {pid for pid, each in processes.items() if self.pid in (pid, each.session)}
        roots.discard(os.getpid())
        if self.serves:
            mine = below([os.getpid()], processes)
            roots.update(pid for pid in mine if has_variable(pid, "%s=%d" % (_MARK, self._number)))
        elif not any(each.running for each in others.values() if each is not self and not each.serves):
            known = {each.pid for each in others.values()}
            roots.update(
                pid
                for pid, each in processes.items()
                if each.parent == os.getpid() and each.born >= self.born > 0 and pid not in known
            )
        return roots | below(roots, processes)

    # -- its streams --

    def _listen(self, kind: int, stream: "Optional[IO[bytes]]") -> None:
        if stream is not None:
            os.set_blocking(stream.fileno(), False)
            self._open[kind] = stream
            self._loop.when_readable(stream, lambda: self._read(kind, stream))

    def _read(self, kind: int, stream: "IO[bytes]") -> None:
        try:
            data = os.read(stream.fileno(), PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._loop.forget(stream)
            stream.close()
            del self._open[kind]
            self._tell_if_over()
        elif not self._told:
            self._loop.send(kind, self._number, data)
            self._loop.rest_if_full(stream, lambda: self._read(kind, stream))

    def _feed(self) -> None:
        stream = self._process.stdin
        if stream is None or stream.closed:
            return
        try:
            while self._unsent:
                del self._unsent[: os.write(stream.fileno(), self._unsent)]
        except BlockingIOError:
            self._loop.when_writable(stream, self._feed)
            return
        except OSError:
            self._input_ended = True
        self._loop.forget(stream)
        if self._input_ended:
            stream.close()

    # -- its end --

    def reaped(self, code: int) -> None:
        """Its first process has ended. What is still in its pipes comes first."""
        self._code = self._process.returncode = code
        self._loop.never((self, "timeout"))
        self._loop.at((self, "linger"), time.monotonic() + _LINGER_S, self._tell)
        if self.serves:
            self.kill(self.others)  # what it had adopted is the helper's now
        self._tell_if_over()

    def _tell_if_over(self) -> None:
        if not self._open and self._code is not None:
            self._tell()
            self._loop.at((self, "gone"), time.monotonic() + _REMEMBER_S, self._gone)

    def _tell(self) -> None:
        self._loop.never((self, "linger"))
        if not self._told:
            self._told = True
            told = {"code": self._code, "timed_out": self._timed_out}
            self._loop.send(EXIT, self._number, json.dumps(told).encode())
        self._input_ended = True
        self._unsent.clear()
        self._feed()


Commands = Dict[int, Command]


def start(loop: Loop, number: int, request: Dict[str, Any], commands: Commands) -> None:
    """Start a command; one that cannot be started ends at once, as in a shell."""
    try:
        command = Command(loop, number, request, lambda: commands.pop(number, None))
    except (OSError, ValueError) as error:
        loop.send(STDERR, number, (_why(error, request) + "\n").encode())
        code = 126 if isinstance(error, PermissionError) else 127
        loop.send(EXIT, number, json.dumps({"code": code, "timed_out": False}).encode())
    else:
        command.others = commands
        commands[number] = command


def _why(error: Exception, request: Dict[str, Any]) -> str:
    if not os.path.isdir(request["cwd"]):
        return "%s: no such folder" % request["cwd"]
    if isinstance(error, FileNotFoundError):
        return "%s: command not found" % request["argv"][0]
    return "%s: %s" % (request["argv"][0], getattr(error, "strerror", None) or error)
