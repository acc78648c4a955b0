"""What a sandbox is, whoever provides it; every error of it is written down here.

SandboxBackend (abstract)
└── KernelSandbox (sandbox/kernel.py)       a Jupyter kernel and a helper in a Place
    ├── DockerSandbox (sandbox/docker.py)       the Place is a hardened container
    └── LocalSandbox (sandbox/local.py)         the Place is processes of this machine: no isolation
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from memkernel.models import CellResult
from memkernel.sandbox.rehome import Rehoming

OutputSink = Callable[[dict[str, Any]], None]
"""Is handed each output (nbformat's shape) as it comes, already filtered; and two kinds that a notebook does not save:
`{"output_type": "clear_output", "wait": bool}` and `{"output_type": "update_display_data", "data", "metadata",
"transient"}`. Outputs with a display id carry it (prefixed) as `transient.display_id`. Texts of one stream that follow
each other may come joined."""

MEBIBYTE: Final = 1 << 20
HOME: Final = "/home/sandbox"


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder of the host (`source`, a real path) at `target` in the sandbox.

    `memory` is whether it is a store's: probed at the start, watched while a cell runs.
    """

    source: Path
    target: str
    read_only: bool = False
    memory: bool = True


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """What a sandbox may use; sizes in bytes. `mount_*` hold for each writable memory mount (Decision 5)."""

    memory_bytes: int = 512 * MEBIBYTE
    cpus: float = 2.0
    pids: int = 256
    file_bytes: int = 64 * MEBIBYTE
    tmp_bytes: int = 256 * MEBIBYTE
    home_bytes: int = 64 * MEBIBYTE
    mount_bytes: int = 256 * MEBIBYTE
    mount_files: int = 10_000
    output_bytes: int = 10 * MEBIBYTE


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """All that makes a sandbox.

    Attributes:
        session_id: `sesn_…`; the container's label.
        installation_id: whose container it is (Decision 7).
        mounts: the stores' folders, and a person's `files=`.
        network: `none`, `bridge`, or a user-defined network's name (Decision 4).
        image: a person's own image; None is the shipped one.
        packages: pip requirements that are built into the image (Decision 23).
        environment: further variables of the kernel; never the host's.
    """

    session_id: str
    installation_id: str
    mounts: tuple[Mount, ...] = ()
    limits: SandboxLimits = SandboxLimits()
    network: str = "none"
    image: str | None = None
    packages: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class ExecResult:
    """A command that ran beside the kernel. `exit_code` is -N after signal N; `truncated`: the output is its tail."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    timed_out: bool
    truncated: bool
    duration_s: float


@dataclass(frozen=True, slots=True)
class SandboxStatus:
    """How a sandbox stands. `detail` is one line for a person (image and limits, or how it died)."""

    state: Literal["new", "running", "dead", "closed"]
    detail: str


class Process(ABC):
    """A command beside the kernel that is spoken to line by line; it ends with the kernel's place, and on `kill`."""

    @property
    @abstractmethod
    def alive(self) -> bool:
        """Whether it can still answer."""

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Bytes for its stdin; nothing where it has ended."""

    @abstractmethod
    def read_line(self, timeout_s: float) -> bytes:
        """The next line of its stdout without its end; b"" where it has ended, or said more than anybody reads.

        Raises:
            TimeoutError: no line came in time.
            SandboxClosedError, EngineError: as `SandboxBackend.run`.
        """

    @abstractmethod
    def kill(self) -> None:
        """Kill it and all that it started, whatever session that is in; whoever waits for a line gets b""."""


class SandboxBackend(ABC):
    """A sandbox: a Jupyter kernel whose state lives from cell to cell, and commands beside it.

    One cell at a time; `interrupt` may be called from any thread.
    """

    kind: ClassVar[Literal["docker", "local"]]
    python: ClassVar[str] = "python3"
    """The Python of the sandbox that runs what memkernel brings along."""

    def __init__(self, spec: SandboxSpec) -> None:
        self.spec = spec

    @property
    def rehoming(self) -> Rehoming:
        """Where its paths really are; none is elsewhere but in a sandbox without namespaces."""
        return Rehoming({})

    @property
    @abstractmethod
    def isolation(self) -> str:
        """One line on what keeps the code in: the first line that a person sees."""

    @property
    @abstractmethod
    def owner(self) -> tuple[int, int]:
        """The uid and gid, as the host sees them, that files in the mounts must have."""

    @property
    def enforces_read_only(self) -> bool:
        """Whether nothing in it can change a read-only mount."""
        return True

    @abstractmethod
    def check(self) -> None:
        """Refuse now what `start` would refuse, without starting anything; under a second.

        Raises:
            EngineNotFoundError: no Docker engine answers.
            EngineError: it does, and cannot be used (userns-remap).
            InvalidInputError: a network, a limit or a package that is none.
            MountError: a source that is missing, a link, or overlaps with another.
        """

    @abstractmethod
    def start(self, progress: Callable[[str, float | None], None] | None = None) -> None:
        """Start the kernel; `progress` is told what is done and how far (0 to 1) while an image is built.

        Nothing is left behind where it fails.

        Raises:
            SandboxError: it cannot be started: all that `check` raises, ImageError, MountError where the probe fails.
        """

    @abstractmethod
    def run(self, code: str, *, timeout_s: float | None = None, on_output: OutputSink | None = None) -> CellResult:
        """Run a cell to its end. Whatever the code does is a result, also a timeout, an interrupt, a death.

        A KeyboardInterrupt in the caller interrupts the cell; its result is `interrupted`.

        Raises:
            SandboxClosedError: it was not started, was stopped, or its container was removed.
            EngineError: the engine went away.
        """

    @abstractmethod
    def bash(self, command: str, *, timeout_s: float | None = None, on_output: OutputSink | None = None) -> CellResult:
        """Run a bash script to its end, in a shell of its own; raises as `run` does."""

    @abstractmethod
    def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        timeout_s: float | None = None,
        cwd: str = HOME,
        environment: Mapping[str, str] | None = None,
    ) -> ExecResult:
        """Run a command beside the kernel, without a shell (Decision 2); after `timeout_s` all it started is killed.

        Raises:
            SandboxClosedError, EngineError: as `run`.
        """

    @abstractmethod
    def process(self, argv: Sequence[str]) -> Process:
        """Start a command beside the kernel that goes on from call to call; it adopts its own orphans.

        Raises:
            SandboxClosedError, EngineError: as `run`.
        """

    @abstractmethod
    def interrupt(self) -> None:
        """Interrupt the cell that runs; nothing where none does."""

    @abstractmethod
    def restart(self) -> None:
        """A new kernel in the same sandbox: its state is lost, the mounts stay."""

    @abstractmethod
    def stop(self) -> None:
        """End it and remove all that it needed but the mounts; nothing where it is stopped already."""

    @abstractmethod
    def status(self) -> SandboxStatus:
        """How it stands, asked now."""

    @abstractmethod
    def logs(self) -> str:
        """The last lines that the kernel's process itself wrote."""

    @abstractmethod
    def put(self, source: Path, target: str) -> tuple[str, ...]:
        """Copy a file or folder of the host to a path in the sandbox's home or /tmp (Decision 23).

        Returns:
            What was left out: links, sockets, devices.

        Raises:
            InvalidInputError: it cannot be read or written.
            SandboxClosedError, EngineError: as `run`.
        """

    @abstractmethod
    def get(self, source: str, target: Path) -> tuple[str, ...]:
        """Copy a file or folder of the sandbox to a path of the host; no link is followed, none is made.

        Returns, raises: as `put`.
        """

    @contextmanager
    def frozen(self) -> Generator[None]:
        """While in here, nothing in the sandbox runs; where that cannot be had, nothing happens."""
        yield


# -- the seam between a kernel and the place where it runs ------------------------------------------


class Channel(ABC):
    """A byte stream to the helper in a place, and the lease: when it closes, all that runs there ends."""

    @abstractmethod
    def read(self) -> bytes:
        """The next bytes of the helper's stdout; b"" at the end. One thread reads."""

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Bytes for the helper's stdin, all of them; several threads may write.

        Raises:
            OSError: the stream is closed.
        """

    @abstractmethod
    def close(self) -> None:
        """Close both directions; nothing where it is closed already."""

    def forget(self) -> None:  # noqa: B027 - where nothing is copied by a fork, nothing is to be done
        """In a child that was forked: close its copies, so that the parent alone holds the lease."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a place ended. `removed`: somebody took the container away; `engine_lost`: the engine went."""

    exit_code: int | None
    out_of_memory: bool = False
    removed: bool = False
    engine_lost: bool = False
    detail: str = ""


class Place(ABC):
    """Where a kernel and its helper run: a container, or processes of this machine.

    `launch`, `end` and `launch` again is a restart. Methods may be called from any thread.
    """

    @abstractmethod
    def launch(self, connection: Mapping[str, Any]) -> Channel:
        """Start the kernel with this connection info (Jupyter's; transport `ipc`, `ip` a prefix inside) and the helper.

        Raises:
            SandboxError: it cannot be started; nothing is left behind.
        """

    @abstractmethod
    def wait(self) -> Exit:
        """Block until what `launch` started has ended. At once where it has already."""

    @abstractmethod
    def end(self) -> None:
        """End all that runs there, at once; the place can be launched again."""

    @abstractmethod
    def remove(self) -> None:
        """End it and leave nothing behind but the mounts."""

    @abstractmethod
    def memory_limit_was_hit(self) -> bool:
        """Whether anything there was killed for memory since the launch (a child counts, too)."""

    def look(self) -> bool:
        """Hold what runs there now to the limits that nobody else enforces; whether that ended the kernel."""
        return False

    def hits(self) -> list[str]:
        """What was killed for another limit since this was last asked, a sentence each."""
        return []

    @abstractmethod
    def logs(self) -> str:
        """The last lines of the kernel's own process."""

    @contextmanager
    def frozen(self) -> Generator[None]:
        """While in here nothing there runs, where that can be had."""
        yield
