"""The processes below one of this machine: how much memory they take, how they are stopped, killed, and found again."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterable
from pathlib import Path

from memkernel.sandbox.inside.processes import all_processes, below, kill_all

_ROUNDS = 20
_PROC = Path("/proc")


def members(root: int) -> set[int]:
    """The descendants of a process."""
    children = _PROC / str(root) / "task" / str(root) / "children"
    return _walked(root) if children.exists() else below([root], all_processes())


def _walked(root: int) -> set[int]:
    """The same by each process's own list, which costs nothing on a machine with many others."""
    found: set[int] = set()
    ahead = {root}
    while ahead:
        ahead = {child for pid in ahead for child in _children(pid)} - found
        found |= ahead
    return found


def _children(pid: int) -> Iterable[int]:
    with contextlib.suppress(OSError):
        for task in os.listdir(_PROC / str(pid) / "task"):
            with contextlib.suppress(OSError):
                yield from map(int, (_PROC / str(pid) / "task" / task / "children").read_text().split())


# -- ending and stopping ---------------------------------------------------------------------------


def kill(root: int) -> None:
    """Kill all below a process; the process itself goes on."""
    kill_all(lambda _: members(root))


def kill_marked(variable: str) -> None:
    """Kill every process of ours that was started with this variable (`NAME=value`); Linux only."""
    if _PROC.joinpath("self").exists():
        wanted = variable.encode()
        kill_all(lambda processes: {pid for pid in processes if wanted in _environment(pid)})


def _environment(pid: int) -> list[bytes]:
    try:
        return (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def stop(root: int) -> set[int]:
    """Stop all below a process, also what it starts meanwhile; which they are."""
    stopped: set[int] = set()
    for _ in range(_ROUNDS):
        new = members(root) - stopped
        if not new:
            break
        _send(new, signal.SIGSTOP)
        stopped |= new
    return stopped


def go_on(stopped: Iterable[int]) -> None:
    """Let those go on that were stopped."""
    _send(stopped, signal.SIGCONT)


def _send(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


# -- limits ----------------------------------------------------------------------------------------


class Watch:
    """Looks at all below a process, the helper, until it ends; what is above a limit is killed.

    Nothing is looked at where there is no /proc.

    Attributes:
        hits: a sentence each time.
        memory_was_hit: whether something was killed for memory.
        kernel_was_killed: whether the last of those was the kernel.
    """

    def __init__(self, process: subprocess.Popen[bytes], *, memory_bytes: int, processes: int) -> None:
        self._process = process
        self._memory_bytes, self._processes = memory_bytes, processes
        self._looking = threading.Lock()
        self.hits: list[str] = []
        self.memory_was_hit = self.kernel_was_killed = False

    def until_the_end(self, every_s: float) -> int:
        """Look every so often; the exit code."""
        interval = every_s if _PROC.joinpath("self").exists() else None
        while True:
            try:
                return self._process.wait(interval)
            except subprocess.TimeoutExpired:
                self.look()

    def look(self) -> bool:
        """Kill what is above a limit now; whether the kernel was killed, now or before."""
        with self._looking:
            pids = members(self._process.pid)
            if len(pids) > self._processes:
                self._end_all_but_the_kernel()
            elif sum(map(_private_bytes, pids)) > self._memory_bytes:
                sizes = {pid: _fair_bytes(pid) for pid in pids}
                if sum(sizes.values()) > self._memory_bytes:
                    self._end_largest(max(sizes, key=lambda pid: sizes[pid]))
            return self.kernel_was_killed

    def _end_largest(self, pid: int) -> None:
        self.kernel_was_killed = pid == self._kernel()
        self.memory_was_hit = True
        _send([pid], signal.SIGKILL)

    def _end_all_but_the_kernel(self) -> None:
        kernel = self._kernel()
        self.hits.append(f"more than {self._processes} processes: all but the kernel were killed")
        stop(self._process.pid)
        kill_all(lambda _: members(self._process.pid) - {kernel})
        go_on([kernel])

    def _kernel(self) -> int:
        """The helper's first child: it starts the kernel before anything else, and ends with it."""
        helper = self._process.pid
        children = [(process.born, pid) for pid, process in all_processes().items() if process.parent == helper]
        return min(children, default=(0, helper))[1]


def _private_bytes(pid: int) -> int:
    """What a process has in memory that is no file's; what a fork shares counts for each."""
    try:
        _, resident, shared, *_ = map(int, (_PROC / str(pid) / "statm").read_text().split())
    except (OSError, ValueError):
        return 0
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")


def _fair_bytes(pid: int) -> int:
    """The same with what is shared counted in parts; slower."""
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(("Pss_Anon:", "Pss_Shmem:")))
    except (OSError, ValueError, IndexError):
        return _private_bytes(pid)
