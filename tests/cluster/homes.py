"""A memkernel home in a test: the kernels that use it, what runs on it, and its end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from memkernel.cluster import processes
from memkernel.cluster.places import Place
from memkernel.cluster.supervisor import command_line
from tests.cluster.people import KERNEL, Person

PATIENCE_S = 60.0
_PRELUDE = """
import os, signal, subprocess, sys, time
from memkernel.cluster import EmbeddedCluster
cluster = EmbeddedCluster(home={home!r}, pg_bin={pg_bin!r}, pg_user={pg_user!r}, linger_s={linger_s!r})
"""
_OBSERVER = """
import psycopg

def rows(dsn, query):
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(query)
        return cursor.fetchall() if cursor.description else None
"""


class RemoteError(Exception):
    """An error in a kernel. `kind` is the name of its class."""

    def __init__(self, kind: str, message: str, hint: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind, self.message, self.hint = kind, message, hint


class Kernel:
    """A process that runs a test's code as somebody. The cluster of its home is there as `cluster`."""

    def __init__(self, person: Person, prelude: str, environment: dict[str, str] | None = None) -> None:
        self.process = person.start(KERNEL, environment=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.send(prelude)
        self.answer()

    def __call__(self, code: str) -> Any:
        """The value of an expression; None for statements.

        Raises:
            RemoteError: what the code raised.
        """
        self.send(code)
        return self.answer()

    def send(self, code: str) -> None:
        """Let it run this code, without waiting for the answer."""
        assert self.process.stdin
        self.process.stdin.write(json.dumps(code) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        """What the code that was sent gave."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, "the kernel has died"
        answer = json.loads(line)
        if "error" in answer:
            raise RemoteError(answer["error"], answer["message"], answer["hint"])
        return answer["value"]

    def kill(self) -> None:
        """SIGKILL, as a kernel dies that is out of memory."""
        self.process.kill()
        self.close()

    def kill_group(self) -> None:
        """SIGKILL to its whole process group, as jupyter_client does it."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.close()

    def close(self) -> None:
        """End it in order, if it still lives."""
        with suppress(BrokenPipeError):
            self.process.communicate(timeout=PATIENCE_S)


class Observer:
    """Somebody who looks into databases and is no client of any home. One serves all tests: psycopg loads slowly."""

    def __init__(self, person: Person) -> None:
        self.person = person
        self._kernel: Kernel | None = None

    def rows(self, dsn: str, query: str) -> Any:
        """What the query gives; None where it gives no rows.

        Raises:
            RemoteError: the server refused the connection or the query.
        """
        self._kernel = self._kernel or Kernel(self.person, _OBSERVER)
        return self._kernel(f"rows({dsn!r}, {query!r})")

    def leave(self) -> None:
        """End its process."""
        if self._kernel:
            self._kernel.kill()


class Home:
    """A home and whoever uses it."""

    def __init__(self, path: Path, observer: Observer, pg_bin: str | None = None, major: int = 18) -> None:
        self.path, self.pg_bin, self.major = path, pg_bin, major
        self.person, self.observer = observer.person, observer
        self.linger_s = 0.0
        self.pg_user: str | None = None
        self._kernels: list[Kernel] = []

    @property
    def place(self) -> Place:
        """Where its data, log and locks lie."""
        return Place(self.path.resolve(), self.major)

    def kernel(self, *, environment: dict[str, str] | None = None, **changes: Any) -> Kernel:
        """A new kernel on this home."""
        known = {"home": str(self.path), "pg_bin": self.pg_bin, "pg_user": self.pg_user, "linger_s": self.linger_s}
        kernel = Kernel(self.person, _PRELUDE.format(**known | changes), environment)
        self._kernels.append(kernel)
        return kernel

    def running_kernel(self) -> Kernel:
        """A new kernel that has the server running."""
        kernel = self.kernel()
        kernel("cluster.ensure()")
        return kernel

    def rows(self, query: str, *, role: str = "memkernel") -> Any:
        """What a query gives, on the running server."""
        return self.observer.rows(self.dsn.replace("memkernel@", f"{role}@"), query)

    @property
    def dsn(self) -> str:
        """The DSN that every kernel should be given."""
        host = quote(os.fsencode(self.socket_directory), safe="")
        pinned = "hostaddr=&options=&channel_binding=disable&target_session_attrs=any&client_encoding=UTF8"
        return f"postgresql://memkernel@/memkernel?host={host}&port=5432&{pinned}"

    @property
    def socket_directory(self) -> Path:
        """Where its socket lies, as its own user sees it."""
        found = self.place.socket_directory
        return found.with_name(found.name.replace(f"-{os.geteuid()}-", f"-{self.person.uid_or_own}-", 1))

    # What runs.

    @property
    def postmaster(self) -> int:
        """The pid of its postmaster; 0: none."""
        return processes.postmaster_pid(self.place)

    @property
    def supervisor(self) -> int:
        """The pid of its supervisor; 0: none."""
        return processes.supervisor_pid(self.place)

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs on it."""
        return not self.postmaster and not processes.is_supervised(self.place)

    def kill_server(self) -> None:
        """SIGKILL to the supervisor and the postmaster, as when a container dies."""
        for pid in (self.supervisor, self.postmaster):
            send(signal.SIGKILL, pid)
            wait_until(lambda pid=pid: not command_line(pid))
        self.wait_for_release()

    def wait_for_release(self) -> None:
        """Until the last process of a killed server has let go of its shared memory."""
        time.sleep(0.3)

    @property
    def log(self) -> str:
        """What PostgreSQL and the supervisor have said."""
        return self.place.log.read_text(errors="replace")

    @property
    def leftovers(self) -> list[str]:
        """What a first start that did not end has left."""
        return [name for name in os.listdir(self.place.directory) if name.startswith("data.new")]

    # Its end.

    def quiet(self) -> None:
        """End every process on it: the kernels, then the server."""
        for kernel in self._kernels:
            if kernel.process.poll() is None:
                kernel.process.kill()
            kernel.close()
        self._kernels.clear()
        self._stop_server()

    def _stop_server(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while pids := [pid for pid in (self.supervisor, self.postmaster) if pid] or self.processes():
            number = signal.SIGTERM if time.monotonic() < deadline - PATIENCE_S / 2 else signal.SIGKILL
            for pid in pids:
                send(number, pid)
            time.sleep(0.05)
            assert time.monotonic() < deadline, f"{pids} do not end"

    def processes(self) -> list[int]:
        """The processes that name this home's directory, kernels aside."""
        directory = os.fsencode(self.place.directory)
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        return [pid for pid in pids if any(part.startswith(directory) for part in command_line(pid))]

    def delete(self) -> None:
        """End every process, and remove what is on disk."""
        self.quiet()
        shutil.rmtree(self.path, ignore_errors=True)
        shutil.rmtree(self.socket_directory, ignore_errors=True)


def send(number: signal.Signals, pid: int) -> None:
    """Send a signal to a process, if it lives. Never to 0 or -1: that is everybody."""
    assert pid > 1, "there is no such process"
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def wait_until(condition: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    """Until the condition holds."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, "it has not become so"
        time.sleep(0.02)
