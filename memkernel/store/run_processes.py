"""Which process a run belongs to, and whether that one is surely gone.

A process that was taken for gone and is not harms nothing: it is told so before it runs its next tool
(`RunTakenOverError`).
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path
from typing import Final

ALIVE_S: Final = 30.0
"""So often a process says of a run that it goes on (`Runs.lives`), whatever it waits for."""

QUIET_S: Final = 180.0
"""For so long a run on a machine that cannot be looked at must not have been written to, to count as lost."""

RESTARTED_S: Final = 90.0
"""The same of a machine of this one's name: it is this one before a restart, or another one that is called the same."""


@dataclass(frozen=True, slots=True)
class RunProcess:
    """A process, for whoever looks for it later.

    Attributes:
        host: the machine's name.
        boot: which start of the machine; with `namespace`: where the pid means something.
        namespace: of its pids; a container has another one.
        started: tells it from a later process of the same pid.
    """

    host: str
    boot: str
    namespace: str
    pid: int
    started: str

    def __str__(self) -> str:
        return json.dumps(astuple(self))


def this_process() -> str:
    """This process, as `Runs` takes it. A forked child is another one: ask again each time."""
    return str(_here(os.getpid()))


def read(process: str) -> RunProcess | None:
    """The process that this text names; None where it names none that this version knows."""
    try:
        host, boot, namespace, pid, started = json.loads(process)
        return RunProcess(str(host), str(boot), str(namespace), int(pid), str(started))
    except (ValueError, TypeError):
        return None


def is_gone(process: str, quiet_s: float) -> bool:
    """Whether a process is surely gone; `quiet_s`: seconds since it last wrote to its run."""
    known, here = read(process), _here(os.getpid())
    return known is None or judge(known, here, quiet_s, is_living=_is_living(known))


def judge(process: RunProcess, here: RunProcess, quiet_s: float, *, is_living: bool) -> bool:
    """Whether a process is gone: by looking where its pid means something here, else by its silence.

    Where a machine of this one's name was started anew, its processes are gone.

    Args:
        process: the one asked for.
        here: the one that asks.
        quiet_s: seconds since it last wrote to its run.
        is_living: whether there is a process of its pid and start here.
    """
    if (process.boot, process.namespace) == (here.boot, here.namespace):
        return not is_living
    has_restarted = process.host == here.host and process.boot != here.boot
    return quiet_s > (RESTARTED_S if has_restarted else QUIET_S)


@cache
def _here(pid: int) -> RunProcess:
    return RunProcess(socket.gethostname(), _boot(), _namespace(), pid, _started(pid))


def _is_living(process: RunProcess) -> bool:
    found = _started(process.pid)
    if found:
        return found == process.started
    try:
        os.kill(process.pid, 0)
    except PermissionError:  # another user's, which /proc may hide; were it a zombie, nobody could tell
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return False  # a zombie


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:  # no Linux: one start of the machine is as good as another
        return socket.gethostname()


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a living process was started, in the system's own count; "" for none and for a zombie."""
    if not os.path.isdir("/proc/self"):
        return _started_by_psutil(pid)
    try:
        # After the name, which may hold anything: state first, and the 22nd field of the line is the start.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode()


def _started_by_psutil(pid: int) -> str:
    import psutil  # pyright: ignore[reportMissingModuleSource] # a dependency on macOS only

    try:
        process = psutil.Process(pid)
        return "" if process.status() == psutil.STATUS_ZOMBIE else str(process.create_time())
    except psutil.Error:
        return ""
