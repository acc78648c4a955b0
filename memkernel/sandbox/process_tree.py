"""The processes below one of this machine: how much memory they take, how they are stopped, killed, and found again."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterable
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


# -- memory ----------------------------------------------------------------------------------------


def watch_memory(process: subprocess.Popen[bytes], limit: int, every_s: float, hit: Callable[[], None]) -> bool:
    """Look until the process ends; where all below it take more than `limit` bytes, kill the largest and say so.

    Returns:
        Whether its own child, the kernel, was the last that was killed.
    """
    kernel_was_killed = False
    while process.poll() is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(every_s)
            break
        sizes = {pid: _private_bytes(pid) for pid in members(process.pid)}
        if sum(sizes.values()) > limit and sum((sizes := {pid: _fair_bytes(pid) for pid in sizes}).values()) > limit:
            largest = max(sizes, key=lambda pid: sizes[pid])
            kernel_was_killed = largest in set(_children(process.pid))
            hit()
            _send([largest], signal.SIGKILL)
    return kernel_was_killed


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
