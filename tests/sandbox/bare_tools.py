"""The tools' server without a sandbox, below a Toolbox; and the SDK's own tools, to be compared with."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from anthropic.lib.tools import ToolError
from anthropic.lib.tools._beta_functions import aclose_runnable_tool
from anthropic.lib.tools.agent_toolset import AgentToolContext, beta_agent_toolset_20260401

from memkernel.models import ToolAnswer
from memkernel.sandbox.base import HOME, Mount, Process, SandboxBackend, SandboxSpec, SandboxStatus
from memkernel.sandbox.rehome import Rehoming
from memkernel.sandbox.toolbox import Toolbox


class PipedProcess(Process):
    """A process of this machine."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        self.popen = subprocess.Popen(
            list(argv), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(environment), start_new_session=True
        )
        self._received = b""

    @property
    def alive(self) -> bool:
        return self.popen.poll() is None

    def write(self, data: bytes) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(data)
        self.popen.stdin.flush()

    def read_line(self, timeout_s: float) -> bytes:
        assert self.popen.stdout is not None
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._received:
            if not select.select([self.popen.stdout], [], [], min(60.0, max(0.0, deadline - time.monotonic())))[0]:
                raise TimeoutError
            piece = os.read(self.popen.stdout.fileno(), 1 << 16)
            if not piece:
                return b""
            self._received += piece
        line, _, self._received = self._received.partition(b"\n")
        return line

    def kill(self) -> None:
        """Its stdin's end lets it end what it has started."""
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        self.popen.stdin.close()
        self.popen.send_signal(signal.SIGCONT)
        try:
            self.popen.wait(5)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
        self.popen.stdout.close()


class BareBackend:
    """As much of a SandboxBackend as a Toolbox asks for; `change` may change the server's program."""

    python = sys.executable

    def __init__(
        self,
        mounts: Sequence[Mount],
        home: Path,
        *,
        environment: Mapping[str, str] | None = None,
        change: Callable[[str], str] = str,
    ) -> None:
        self.spec = SandboxSpec("sesn_bare", "memkernel-tests", mounts=tuple(mounts))
        self.rehoming = Rehoming({HOME: str(home)} | {mount.target: str(mount.source) for mount in mounts})
        self.made: list[PipedProcess] = []
        self._environment, self._change = dict(environment or {}), change

    def process(self, argv: Sequence[str]) -> Process:
        self.made.append(PipedProcess([*argv[:-1], self._change(argv[-1])], self._environment))
        return self.made[-1]

    def status(self) -> SandboxStatus:
        return SandboxStatus("running", "")


def toolbox(backend: object) -> Toolbox:
    """A Toolbox on something that is enough of a backend."""
    return Toolbox(cast("SandboxBackend", backend))


class Oracle:
    """The SDK's tools in a folder that stands for a sandbox: paths are those of the sandbox on both sides."""

    def __init__(self, home: Path, roots: Mapping[str, Path], read_only: Sequence[str] = ()) -> None:
        self._real = {HOME: str(home)} | {path: str(real) for path, real in roots.items()}
        context = AgentToolContext(
            workdir=home, allowed_roots=list(roots.values()), read_only_roots=[roots[path] for path in read_only]
        )
        self._tools = {tool.name: tool for tool in beta_agent_toolset_20260401(context)}
        self._loop = asyncio.new_event_loop()

    def call(self, name: str, given: Mapping[str, object]) -> ToolAnswer:
        """What the SDK's tool answers."""
        for path, real in self._real.items():
            given = {field: _replaced(value, path, real) for field, value in given.items()}
        try:
            content: Any = self._loop.run_until_complete(self._tools[name].call(dict(given)))
        except ToolError as error:
            return ToolAnswer(self._shown(error.content), is_error=True)
        return ToolAnswer(self._shown(content))

    def _shown(self, content: Any) -> str | tuple[Mapping[str, object], ...]:
        if not isinstance(content, str):
            return tuple(content)
        for path, real in self._real.items():
            content = content.replace(real, path)
        return content

    def close(self) -> None:
        """End its shell."""

        async def close() -> None:
            for tool in self._tools.values():
                await aclose_runnable_tool(tool)

        self._loop.run_until_complete(close())
        self._loop.close()


def _replaced(value: object, path: str, real: str) -> object:
    return value.replace(path, real) if isinstance(value, str) else value


def plant(base: Path) -> dict[str, Path]:
    """A home, a store `notes` and a read-only store `rules` with files of every kind; the same wherever it is made."""
    folders = {name: base / name for name in ("home", "notes", "rules")}
    for folder in folders.values():
        folder.mkdir(parents=True)
    home = folders["home"]
    files: dict[str, bytes] = {
        "a.txt": b"one\ntwo\nthree\n",
        "crlf.txt": b"one\r\ntwo\r\n",
        "cr.txt": b"one\rtwo",
        "empty.txt": b"",
        "bom.txt": "\ufeffbom é 😀\n".encode(),
        "nul.txt": b"one\x00two\n",
        "binary.bin": b"\xff\xfe\x00\x01",
        "latin.txt": "gr\xfcn\n".encode("latin-1"),
        "big.txt": b"".join(b"line %d of a large file\n" % number for number in range(20_000)),
        "long.txt": b"x" * 300_000 + b"\nshort\n" + b"y" * 3_000 + b" needle\nneedle\n",
        "big.bin": b"\xff" * 300_000 + b"\n" + b"ok\n",
        "limit.txt": b"z" * 262_144,
        "pic.png": b"\x89PNG\r\n",
        "PIC.JPG": b"jpeg",
        "pic.gif": b"",
        "pic.webp": b"webp",
        "doc.pdf": b"%PDF-1.4",
        "big.png": b"\0" * 3_932_161,
        "most.png": b"\0" * 3_932_160,
        "big.pdf": b"\0" * 20_971_521,
        "dir/x.py": b"import os\nneedle = 1\n",
        "dir/deep/er/y.py": b"needle = 2\n",
        "sp ace.txt": b"needle in a space\n",
        "n\u00e9.txt": "caf\u00e9 needle\n".encode(),
        "-dash": b"needle after a dash\n",
        "q'uo\"te": b"needle\n",
        "new\nline.txt": b"needle\n",
        ".hidden": b"needle hidden\n",
        ".git/config": b"needle\n",
        "node_modules/m.js": b"needle\n",
    }
    for name, content in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(content)
    links = {"link.txt": "a.txt", "out": "/etc/passwd", "outdir": "/etc", "loop": "loop", "linkdir": "dir"}
    links |= {"dangling": "nowhere/new", "danglingout": "/nowhere/new", "self": "."}
    for name, target in links.items():
        (home / name).symlink_to(target)
    (home / "notes-link").symlink_to(folders["notes"])
    os.mkfifo(home / "fifo")
    (folders["notes"] / "first.md").write_text("needle of notes\n")
    (folders["rules"] / "first.md").write_text("needle of rules\n")
    return folders


def date(base: Path) -> None:
    """Give every file below a time of its own that says nothing of when it was written."""
    for number, path in enumerate(sorted(_all(base))):
        os.utime(path, (number, number), follow_symlinks=False)


def _all(base: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(base):
        for name in (*folders, *names):
            yield Path(folder, name)


def contents(base: Path) -> dict[str, bytes | str]:
    """Every file below, and what a link says."""
    return {
        str(path.relative_to(base)): os.readlink(path).replace(str(base), "")
        if path.is_symlink()
        else path.read_bytes()
        for path in _all(base)
        if path.is_symlink() or path.is_file()
    }
