"""Processes as the helper sees them: through /proc, and through `ps` where there is none."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from typing import Dict, List, NamedTuple, Set

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 4, 36
_ROUNDS, _ROUND_S = 100, 0.002  # what is killed may fork meanwhile


class Process(NamedTuple):
    """A process that is no zombie. `born` is in ticks since the machine's start; 0 where it is not known."""

    parent: int
    session: int
    born: int


Processes = Dict[int, Process]


def now_ticks() -> int:
    """Now, as a process's start is written down."""
    return int(time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) * os.sysconf("SC_CLK_TCK"))


def all_processes() -> Processes:
    """Every process that can be seen from here."""
    if not os.path.isdir("/proc/self"):
        return _listed()
    return _read(int(name) for name in os.listdir("/proc") if name.isdigit())


def family(root: int) -> Processes:
    """The descendants of a process, as `all_processes` has them; faster where the machine runs hundreds of others."""
    if not os.path.exists("/proc/%d/task/%d/children" % (root, root)):
        processes = all_processes()
        return {pid: processes[pid] for pid in below([root], processes)}
    found: List[int] = []
    ahead = [root]
    while ahead:
        pid = ahead.pop()
        with contextlib.suppress(OSError):
            for task in os.listdir("/proc/%d/task" % pid):
                with open("/proc/%d/task/%s/children" % (pid, task), "rb") as file:
                    children = [int(child) for child in file.read().split()]
                found += children
                ahead += children
    return _read(found)


def _read(pids: Iterable[int]) -> Processes:
    found: Processes = {}
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open("/proc/%d/stat" % pid, "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            if fields[0] not in (b"Z", b"X"):
                found[pid] = Process(int(fields[1]), int(fields[3]), int(fields[19]))
    return found


def _listed() -> Processes:
    listing = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], stdout=subprocess.PIPE, check=False).stdout
    rows = (line.split() for line in listing.splitlines())
    return {int(row[0]): Process(int(row[1]), 0, 0) for row in rows if len(row) == 2}


def below(roots: Iterable[int], processes: Processes) -> Set[int]:
    """The descendants of some processes."""
    children: Dict[int, List[int]] = {}
    for pid, process in processes.items():
        children.setdefault(process.parent, []).append(pid)
    found: Set[int] = set()
    ahead = list(roots)
    while ahead:
        ahead = [child for pid in ahead for child in children.get(pid, ()) if child not in found]
        found.update(ahead)
    return found


def has_variable(pid: int, variable: str) -> bool:
    """Whether a process was started with `NAME=value` in its environment."""
    try:
        with open("/proc/%d/environ" % pid, "rb") as file:
            return variable.encode() in file.read().split(b"\0")
    except OSError:
        return False


def send_signal(pid: int, number: int) -> None:
    """A signal to a process and, where it leads its group, to all of it: as Jupyter interrupts a kernel."""
    if pid <= 1:
        return
    with contextlib.suppress(OSError):
        if os.getpgid(pid) == pid:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)


def kill_all(which: Callable[[Processes], Iterable[int]]) -> int:
    """Kill what `which` picks, again and again until it picks nothing more; how many those were.

    All are stopped before the first is killed: a script must not go on because what it waited for has ended.
    """
    killed: Set[int] = set()
    for _ in range(_ROUNDS):
        chosen = _stopped(which)
        if not chosen:
            break
        _send(signal.SIGKILL, chosen)
        killed |= chosen
        time.sleep(_ROUND_S)
    return len(killed)


def _stopped(which: Callable[[Processes], Iterable[int]]) -> Set[int]:
    """What `which` picks, and what that had still started when it was stopped."""
    found: Set[int] = set()
    for _ in range(_ROUNDS):
        new = set(which(all_processes())) - found
        if not new:
            break
        _send(signal.SIGSTOP, new)
        found |= new
    return found


def _send(number: int, pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def refused_starts() -> int:
    """How many processes and threads the container's limit has refused until now; 0 where nobody counts."""
    for folder in ("/sys/fs/cgroup", "/sys/fs/cgroup/pids"):
        with contextlib.suppress(OSError, ValueError, IndexError), open(folder + "/pids.events") as file:
            return int(file.read().split()[1])
    return 0


def adopt_orphans() -> None:
    """Whatever is orphaned below this process becomes its child (Linux)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def hide() -> None:
    """Other processes of this account cannot open this one's files through /proc, nor trace it (Linux)."""
    _prctl(_PR_SET_DUMPABLE, 0)


def die_with_parent() -> None:
    """This process is killed when its parent ends (Linux)."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
