"""A place that is nothing but processes of this machine: the helper, told to start the kernel itself."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from memkernel.sandbox import inside
from memkernel.sandbox.base import Channel, Exit, Place, SandboxSpec
from memkernel.sandbox.kernel import KernelSandbox, Progress

Make = Callable[[SandboxSpec], KernelSandbox]


class PipeChannel(Channel):
    """The pipes of a process."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in: IO[bytes] = process.stdin
        self._out: IO[bytes] = process.stdout
        self._lock = threading.Lock()
        self._reader: threading.Thread | None = None

    def read(self) -> bytes:
        self._reader = threading.current_thread()
        data = os.read(self._out.fileno(), 1 << 18)
        if not data:
            self._out.close()
        return data

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        with self._lock:
            while view:
                view = view[os.write(self._in.fileno(), view) :]

    def close(self) -> None:
        self._in.close()
        if self._reader is threading.current_thread():  # it will not read again
            self._out.close()

    def forget(self) -> None:
        for file in (self._in, self._out):
            os.close(file.fileno())


class HerePlace(Place):
    """`home` is the kernel's HOME."""

    def __init__(self, home: Path, argv: list[str] | None = None) -> None:
        self.home = home
        self.argv = argv
        self.process: subprocess.Popen[bytes] | None = None
        self._folder = ""

    def launch(self, connection: Mapping[str, Any]) -> Channel:
        self._folder = os.path.dirname(connection["ip"])
        argv = self.argv or inside.helper_argv(
            connection["ip"], sys.executable, kernel=inside.kernel_argv(sys.executable)
        )
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "IPYTHONDIR": str(self.home / "ipython")}
        with open(self.home / "log", "ab") as log:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment | {inside.CONNECTION: json.dumps(dict(connection))},
                cwd=self.home,
                start_new_session=True,
            )
        return PipeChannel(self.process)

    def wait(self) -> Exit:
        assert self.process is not None
        return Exit(self.process.wait())

    def end(self) -> None:
        if self.process is not None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            try:
                self.process.wait(3)
            except subprocess.TimeoutExpired:  # it is no helper
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def remove(self) -> None:
        self.end()

    def memory_limit_was_hit(self) -> bool:
        return False

    def logs(self) -> str:
        return (self.home / "log").read_text()


class HereSandbox(KernelSandbox):
    """A KernelSandbox on a HerePlace."""

    kind = "local"

    def __init__(self, spec: SandboxSpec, home: Path) -> None:
        super().__init__(spec)
        self.home = home
        self.place = HerePlace(home)

    @property
    def isolation(self) -> str:
        return "none: these are the tests"

    @property
    def owner(self) -> tuple[int, int]:
        return os.getuid(), os.getgid()

    def check(self) -> None:
        pass

    def _new_place(self, progress: Progress | None) -> Place:
        return self.place

    def _folder(self, path: str) -> str:
        return str(self.home) if path == "/home/sandbox" else path

    def put(self, source: Path, target: str) -> tuple[str, ...]:
        raise NotImplementedError

    def get(self, source: str, target: Path) -> tuple[str, ...]:
        raise NotImplementedError


def here(**changes: Any) -> HereSandbox:
    """A sandbox in a new folder, not started yet."""
    spec = SandboxSpec("sesn_test", "test", **changes)
    return HereSandbox(spec, Path(tempfile.mkdtemp(prefix="mk")))
