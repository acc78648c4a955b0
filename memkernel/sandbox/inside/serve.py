"""The helper: it carries the kernel's messages, runs commands, marks and kills, reaps, and holds the lease.

Its stdin is the lease: at its end all that runs in the sandbox ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from typing import Dict, List, NoReturn, Optional, Set

from memkernel.sandbox.inside.commands import Commands, start
from memkernel.sandbox.inside.links import Link, Links
from memkernel.sandbox.inside.loop import Loop
from memkernel.sandbox.inside.processes import (
    Processes,
    adopt_orphans,
    all_processes,
    below,
    die_with_parent,
    family,
    hide,
    kill_all,
    refused_starts,
)
from memkernel.sandbox.inside.protocol import ANSWER, ASK, CLOSE, DATA, EXEC, INTERRUPT, KILL_SINCE, MARK, OPEN, PIECE

_PARENT_S = 1.0
_LAST_WORDS_S = 0.3  # the kernel has ended: what it still said is sent on


class Helper:
    """`prefix` is that of the kernel's sockets; `kernel` its command where it is started here."""

    def __init__(self, prefix: str, kernel: List[str]) -> None:
        self._prefix = prefix
        self._kernel_argv = kernel
        self._connection = os.environ.pop("MEMKERNEL_CONNECTION", "")  # commands are not to see the key
        self._parent = os.getppid()
        self._kernel: "Optional[subprocess.Popen[bytes]]" = None
        self._kernel_pid = 0
        self._links: Links = {}
        self._commands: Commands = {}
        self._requests: Dict[int, bytes] = {}
        self._loop = Loop(self._obey, self._end_all)
        self._marked: Dict[int, int] = {}

    def run(self) -> NoReturn:
        """Help until the lease ends, or the kernel that was started here does."""
        adopt_orphans()
        hide()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, _nothing)  # no SIG_IGN: what is started here would ignore it, too
        ended, end = os.pipe()
        for fd in (ended, end):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(end, warn_on_full_buffer=False)
        self._loop.when_readable(ended, lambda: self._reap(ended))
        if self._kernel_argv:
            self._start_kernel()
            self._look_at_the_parent()
        self._loop.run()

    def _start_kernel(self) -> None:
        self._kernel = subprocess.Popen(
            self._kernel_argv,
            stdin=subprocess.DEVNULL,
            stdout=2,
            env={**os.environ, "MEMKERNEL_CONNECTION": self._connection},
            start_new_session=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - the helper has one thread
        )
        self._kernel_pid = self._kernel.pid

    def _look_at_the_parent(self) -> None:
        """A child that the host forked may hold our stdin open when the host is gone."""
        if os.getppid() != self._parent:
            self._end_all()
        self._loop.at("parent", time.monotonic() + _PARENT_S, self._look_at_the_parent)

    def _obey(self, kind: int, number: int, payload: bytes) -> None:
        if kind == DATA:
            if number in self._links:
                self._links[number].send(payload)
        elif kind == MARK:
            self._mark()
        elif kind == OPEN:
            path = "%s-%s" % (self._prefix, payload.decode())
            self._links[number] = Link(self._loop, number, path, self._connected, lambda: self._links.pop(number, None))
        elif kind == CLOSE:
            if number in self._links:
                self._links[number].close()
        elif kind == EXEC:
            self._requests[number] = self._requests.get(number, b"") + payload
            if len(payload) < PIECE:
                start(self._loop, number, json.loads(self._requests.pop(number)), self._commands)
        elif kind == INTERRUPT:
            self._interrupt()
        elif kind == KILL_SINCE:
            killed = kill_all(self._new)
            self._loop.send(ANSWER, number, json.dumps(killed).encode())
        elif kind == ASK:
            self._loop.send(ANSWER, number, b"%d" % (refused_starts() if self._kernel is None else 0))
        elif number in self._commands:
            self._commands[number].obey(kind, payload, self._commands)

    def _connected(self, peer: int) -> None:
        if self._kernel is None:
            self._kernel_pid = peer
        with contextlib.suppress(OSError), open(self._prefix + "-attended", "w"):
            pass

    # -- the processes of this sandbox --

    def _mine(self, processes: Processes) -> Set[int]:
        """All but init and the helper."""
        if self._kernel is not None:
            return below([os.getpid()], processes)
        return set(processes) - {1, os.getpid()}

    def _mark(self) -> None:
        """Remember what runs now, before the request that follows can start anything."""
        processes = all_processes() if self._kernel is None else family(os.getpid())
        self._marked = {pid: process.born for pid, process in processes.items()}

    def _new(self, processes: Processes) -> Set[int]:
        """What was started since the mark."""
        return {
            pid for pid in self._mine(processes) - {self._kernel_pid} if self._marked.get(pid) != processes[pid].born
        }

    def _interrupt(self) -> None:
        """As Jupyter does, but only the kernel and what the cell started in its group: what is older goes on."""
        processes = all_processes()
        for pid in [self._kernel_pid, *self._new(processes)]:
            with contextlib.suppress(OSError):
                if self._kernel_pid > 1 and os.getpgid(pid) == os.getpgid(self._kernel_pid):
                    os.kill(pid, signal.SIGINT)

    def _reap(self, ended: int) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(ended, 4096)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._reaped(pid, -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))

    def _reaped(self, pid: int, code: int) -> None:
        if self._kernel is not None and pid == self._kernel.pid:
            self._kernel.returncode = code
            self._until = time.monotonic() + _LAST_WORDS_S
            self._last_words()
        for command in list(self._commands.values()):
            if command.pid == pid and command.running:
                command.reaped(code)

    # -- the end --

    def _last_words(self) -> None:
        if time.monotonic() >= self._until or (not self._links and self._loop.all_sent):
            self._end_all()
        self._loop.at("last words", time.monotonic() + 0.01, self._last_words)

    def _end_all(self) -> NoReturn:
        """The lease is over, or the kernel is: nothing of this sandbox lives on."""
        if self._kernel is not None:
            kill_all(lambda processes: below([os.getpid()], processes))
        elif _in_the_sandboxs_own_namespace():
            with contextlib.suppress(OSError):
                os.kill(-1, signal.SIGKILL)
        elif self._kernel_pid > 1:
            with contextlib.suppress(OSError):
                os.kill(self._kernel_pid, signal.SIGKILL)
        code = self._kernel.returncode if self._kernel is not None else 0
        code = 128 + signal.SIGKILL if code is None else code
        os._exit(code if code >= 0 else 128 - code)


def _in_the_sandboxs_own_namespace() -> bool:
    """Whether the first process here leads to our kernel: `kill(-1)` elsewhere would end a person's whole session."""
    with contextlib.suppress(OSError), open("/proc/1/cmdline", "rb") as file:
        return b"MEMKERNEL_CONNECTION" in file.read()
    return False


def _nothing(number: int, frame: object) -> None:
    """A signal of no meaning for the helper."""


def main(arguments: List[str]) -> None:
    """The prefix of the kernel's sockets, and the kernel's command where it is to be started here."""
    Helper(arguments[0], arguments[1:]).run()
