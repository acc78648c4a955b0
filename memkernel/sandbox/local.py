"""A sandbox of this machine's own processes: the same face as Docker's, and no isolation from the machine.

For a person's own cells, demos and tests where there is no Docker. The code runs as the caller, sees the caller's files
and network, and could do to both what the caller can. What it has: a kernel and processes that end with it, a clean
environment, a home of its own, limits on the size of files and, looked after four times a second, on memory and the
number of processes. What it has not: a limit on CPUs, a /tmp of its own (temporary files do go to a private folder),
`network`, `image`, `packages`.

`/mnt/memory` is never made on the machine itself:

* Level 1, on Linux where user and mount namespaces are allowed: in the sandbox the folders are where they belong,
  also /home/sandbox, and the system refuses writes to read-only ones (`namespaces`).
* Level 2, elsewhere: paths that are written down in the code become the real ones (`rehome`): string constants of
  cells, words of bash scripts, arguments and files of `exec`, `put` and `get`; the other way round in what is shown.
  Paths that are computed, or stand in a script's file, are not; MEMKERNEL_MOUNTS says where things really are.
  Read-only folders can be written to; the sync puts them right after each cell.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, cast

from memkernel.errors import InvalidInputError, SandboxError
from memkernel.models import CellResult
from memkernel.sandbox import copying, private_folder, walls
from memkernel.sandbox.base import HOME, ExecResult, Mount, OutputSink, Place, SandboxSpec
from memkernel.sandbox.kernel import KernelSandbox
from memkernel.sandbox.local_place import Level, LocalPlace, binds, launcher
from memkernel.sandbox.rehome import Rehoming

_TRY_S: Final = 10.0
_STDERR: Final = 4096

_ISOLATION: Final = {
    1: "local, not isolated: the code runs as you, with your files and network; read-only stores cannot be written to",
    2: "local, not isolated: the code runs as you, with your files and network; /mnt/memory works where the code spells"
    " it out, and read-only stores are put right after each cell",
}


class LocalSandbox(KernelSandbox):
    """Runs cells as processes of the caller. `level` is 1 or 2; by default the better one that is allowed here."""

    kind: ClassVar[Literal["docker", "local"]] = "local"
    python: ClassVar[str] = sys.executable

    def __init__(self, spec: SandboxSpec, *, level: Level | None = None) -> None:
        super().__init__(spec)
        self._asked: Level | None = level
        self._level: Level | None = level
        self._local: LocalPlace | None = None
        self._rehoming = Rehoming({})

    def __repr__(self) -> str:
        return f"<LocalSandbox {self.spec.session_id}, {self.isolation}>"

    # -- what it is --

    @property
    def level(self) -> Level:
        """1 with namespaces, 2 with a mapping of paths; decided when it is first asked for."""
        if self._level is None:
            self._level = 2 if _refusal(self.spec.mounts) else 1
        return self._level

    @property
    def isolation(self) -> str:
        return _ISOLATION[self.level]

    @property
    def enforces_read_only(self) -> bool:
        return self.level == 1

    @property
    def owner(self) -> tuple[int, int]:
        return os.geteuid(), os.getegid()

    def check(self) -> None:
        walls.check_limits(self.spec.limits)
        walls.check_network(self.spec.network)
        walls.check_environment(self.spec.environment)
        walls.check_mounts(self.spec.mounts, home=Path.home())
        if self.spec.packages:
            raise InvalidInputError(
                f"packages={list(self.spec.packages)!r}: a local sandbox has what this Python has",
                hint="`%pip install` them here, or use the Docker backend.",
            )
        if find_spec("ipykernel") is None:
            raise SandboxError(
                f"ipykernel is not installed for {sys.executable}", hint="`pip install ipykernel`, or use Docker."
            )
        if self._asked == 1 and (reason := _refusal(self.spec.mounts)):
            raise SandboxError(
                f"a local sandbox of level 1 cannot be made here: {reason}",
                hint="Level 2 needs no namespaces; leave `level` out to have the better one that works.",
            )

    # -- its place --

    def _new_place(self, progress: Callable[[str, float | None], None] | None) -> Place:
        self._local = LocalPlace(self.spec, self.level)
        if self.level == 2:
            self._rehoming = Rehoming(self._local.folders())
        return self._local

    @property
    def rehoming(self) -> Rehoming:
        return self._rehoming

    def mapped(self, path: str) -> str:
        """A path of the sandbox as its processes have to use it: the same on level 1."""
        return self._rehoming.mapped(path)

    def unmapped(self, path: str) -> str:
        """The reverse of `mapped`."""
        return self._rehoming.unmapped(path)

    def _folder(self, path: str) -> str:
        return self.mapped(path)

    def _command(self, text: str) -> str:
        return self._rehoming.bash(text)

    # -- what runs, and what is shown of it --

    def run(self, code: str, *, timeout_s: float | None = None, on_output: OutputSink | None = None) -> CellResult:
        return self._shown(super().run(code, timeout_s=timeout_s, on_output=self._sink(on_output)))

    def bash(self, command: str, *, timeout_s: float | None = None, on_output: OutputSink | None = None) -> CellResult:
        return self._shown(super().bash(command, timeout_s=timeout_s, on_output=self._sink(on_output)))

    def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        timeout_s: float | None = None,
        cwd: str = HOME,
        environment: Mapping[str, str] | None = None,
    ) -> ExecResult:
        words = self._rehoming.arguments(argv)
        done = super().exec(words, stdin=stdin, timeout_s=timeout_s, cwd=cwd, environment=environment)
        return replace(done, stdout=self._shown_bytes(done.stdout), stderr=self._shown_bytes(done.stderr))

    def _sink(self, on_output: OutputSink | None) -> OutputSink | None:
        if on_output is None or not self._rehoming.folders:
            return on_output
        return lambda output: on_output(self._shown_value(output))

    def _shown(self, result: CellResult) -> CellResult:
        if not self._rehoming.folders:
            return result
        error = result.error
        if error is not None:
            lines = tuple(map(self._rehoming.shown, error.traceback))
            error = replace(error, evalue=self._rehoming.shown(error.evalue), traceback=lines)
        return replace(
            result,
            stdout=self._rehoming.shown(result.stdout),
            stderr=self._rehoming.shown(result.stderr),
            result=None if result.result is None else self._rehoming.shown(result.result),
            outputs=tuple(self._shown_value(output) for output in result.outputs),
            error=error,
        )

    def _shown_value(self, value: Any) -> Any:
        """An output, or a part of one."""
        if isinstance(value, str):
            return self._rehoming.shown(value)
        if isinstance(value, dict):
            return {name: self._shown_value(part) for name, part in cast("dict[str, Any]", value).items()}
        return [self._shown_value(part) for part in cast("list[Any]", value)] if isinstance(value, list) else value

    def _shown_bytes(self, output: bytes) -> bytes:
        return os.fsencode(self._rehoming.shown(os.fsdecode(output))) if self._rehoming.folders else output

    # -- data in and out --

    def put(self, source: Path, target: str) -> tuple[str, ...]:
        return copying.put(self._copier, source, target)

    def get(self, source: str, target: Path) -> tuple[str, ...]:
        return copying.get(self._copier, source, target, self.spec.limits)

    def _copier(self, argv: Sequence[str]) -> HostCommand:
        """Copying's own program, beside the sandbox, on the real paths."""
        self._check_open()
        assert self._local is not None
        real = Rehoming(self._local.folders())
        return HostCommand([sys.executable, *argv[1:3], *map(real.mapped, argv[3:])])


class HostCommand:
    """A command of this machine whose stdin and stdout are used as a stream."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `close`
        try:
            self._process = subprocess.Popen(
                list(argv), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
            )
        except OSError:
            self._errors.close()
            raise

    def read(self) -> bytes:
        """The next bytes of stdout; b"" at the end."""
        assert self._process.stdout is not None
        return os.read(self._process.stdout.fileno(), 1 << 16)

    def write(self, data: bytes) -> None:
        """Bytes for stdin."""
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        self._process.stdin.flush()

    @property
    def stderr_tail(self) -> str:
        """The end of what it wrote to stderr."""
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - _STDERR))
        return self._errors.read().decode(errors="replace")

    def close(self) -> None:
        """End it."""
        self._process.kill()
        with contextlib.suppress(OSError), self._process:
            pass
        self._errors.close()


def _refusal(mounts: Sequence[Mount]) -> str:
    """Why level 1 cannot be had with these mounts; "" where it can. Tried for real, in a process that ends with it.

    A folder that is not there says nothing about this machine: it is left out.
    """
    if sys.platform != "linux":
        return f"there are no mount namespaces on {sys.platform}"
    with tempfile.TemporaryDirectory(prefix="mk-") as home:
        private_folder.furnish(Path(home))
        told_read, told = os.pipe()
        try:
            argv = launcher(
                told=told, binds=binds([one for one in mounts if one.source.exists()], Path(home)), cwd=HOME
            )
            subprocess.run(argv, pass_fds=(told,), capture_output=True, timeout=_TRY_S, check=True, env={})
        except (OSError, subprocess.SubprocessError) as error:
            trouble = f"it failed ({type(error).__name__})"
        else:
            trouble = ""
        finally:
            os.close(told)
        with open(told_read, encoding="utf-8", errors="replace") as answer:
            return answer.read() or trouble
