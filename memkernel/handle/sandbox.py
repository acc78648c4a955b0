"""`mk.Sandbox`: a container whose /mnt/memory is memory stores, as a person holds it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from memkernel import paths, runtime
from memkernel.errors import SandboxClosedError
from memkernel.handle.mounts import Attached, MountState, mount_states, mounted_store, one_connection
from memkernel.handle.panel import Panel
from memkernel.handle.records import Records
from memkernel.handle.rejected import How, RejectedChange, rejected_changes, settle
from memkernel.handle.store import Store
from memkernel.models import Actor, AttachmentParams, CellResult, SessionRecord, SyncReport
from memkernel.runtime import Recovered, RunningSession, SandboxEvent, Where
from memkernel.sandbox.base import OutputSink, SandboxStatus
from memkernel.sync.rejected import RejectedFolder

if TYPE_CHECKING:
    from memkernel.agent.toolset import SandboxTool
    from memkernel.runtime.starting import Progress


class Sandbox:
    """A place where code runs that may use memory stores as folders; what it writes there are versions.

    It starts with the first cell, with `start` or with `with`; it ends with `stop`, the `with` or the interpreter,
    and whatever it wrote is saved before. Safe to use from several threads: cells run one after another.

    Attributes:
        stores: the stores, with their access.
        name: what it is called; by default the first store's slug.
        backend: `docker` or `local`.
        options: what it was asked to be, by the names of the arguments.
    """

    def __init__(
        self,
        *stores: Store | Attached,
        name: str | None = None,
        backend: Literal["docker", "local"] | None = None,
        level: Literal[1, 2] | None = None,
        image: str | None = None,
        network: str = "none",
        memory: str | int = "512m",
        cpus: float = 2,
        pids: int = 256,
        timeout_s: float | None = None,
        on_conflict: Literal["error", "merge"] = "error",
        files: Mapping[str, str | PathLike[str]] | None = None,
        packages: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Say what the sandbox shall be; nothing is started yet.

        Args:
            *stores: at most eight stores of one connection; `mk.read_only(store)` mounts one read-only.
            name: what it is called.
            backend: `docker`, a hardened container; `local`, processes of this machine, which are NOT isolated from
                it. Without one it is Docker, or with MEMKERNEL_DEMO=1 local.
            level: of a local one: 1 has its own /mnt/memory, 2 rewrites paths; by default the best one there is.
            image: one of your own, with python3 and ipykernel; without one MEMKERNEL_SANDBOX_IMAGE, then the shipped.
            network: `none`, `bridge` or a Docker network's name.
            memory: such as `512m` or `2g`.
            cpus: how many.
            pids: processes and threads at most.
            timeout_s: of a cell that brings none of its own; None is none.
            on_conflict: `error` puts all of a cell's texts aside where one was changed in the store meanwhile; `merge`
                saves what can be merged line by line (SANDBOX.md, Decision 16).
            files: files and folders of this machine to see read-only, by their paths in the sandbox.
            packages: pip requirements that are built into the image.
            environment: variables for the code; none of the host's are there.

        Raises:
            InvalidInputError: a value is none; no store, too many, one twice, or of two connections.
            MountError: one of `files` is not there.
        """
        self.stores = tuple(one if isinstance(one, Attached) else Attached(one) for one in stores)
        connection = one_connection(self.stores)
        self._database = connection.database
        options: dict[str, Any] = {
            "level": level,
            "image": image,
            "network": network,
            "memory": memory,
            "cpus": cpus,
            "pids": pids,
            "timeout_s": timeout_s,
            "on_conflict": on_conflict,
            "files": files,
            "packages": packages,
            "environment": environment,
        }
        self._request = runtime.make_request(
            [AttachmentParams(one.store.id, one.access, one.instructions) for one in self.stores],
            connection.settings,
            title=name or self.stores[0].store.slug,
            backend=backend,
            **options,
        )
        options |= {"files": dict(files or {}), "packages": tuple(packages), "environment": dict(environment or {})}
        self.options = MappingProxyType({"backend": self._request.backend, **options})
        self._where = Where.of(connection.database, connection.line, connection.settings)
        self._rejected = RejectedFolder.of(self._where.home.directory)
        self._starting = threading.Lock()
        self._session: RunningSession | None = None
        self._panel = Panel(self)
        self.name = self._request.title
        self.backend: Literal["docker", "local"] = self._request.backend
        self.recovered: list[Recovered] = []

    # -- life ----------------------------------------------------------------------------------------

    def start(self, progress: Progress | None = None) -> Self:
        """Start it; nothing where it is started.

        Args:
            progress: is told what is done, and how far (0 to 1, or None), while an image is built.

        Raises:
            EngineNotFoundError: no Docker engine answers.
            ImageError, MountError, SandboxError: it cannot be started; nothing is left behind.
            InvalidInputError, StoreArchivedError: a store is missing or archived, or two have one slug.
            SandboxClosedError: it was stopped.
        """
        with self._starting:
            if self._session is None:
                self.recovered = runtime.recover_before(self._where)
                self._session = runtime.start(self._request, self._where, progress)
                _started.append(self)
            self._session.check_open()
        return self

    def stop(self) -> SyncReport:
        """Save all, and end it; nothing where that is done already.

        Raises:
            SyncConflictError: texts were put aside; it has ended all the same.
            SyncError: a store cannot be synced: its mount is kept, and saved when the next sandbox starts.
        """
        return SyncReport() if self._session is None else self._session.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def is_open(self) -> bool:
        """Whether it was started, and not stopped."""
        return self._session is not None and self._session.is_open

    def __repr__(self) -> str:
        return f"<memkernel.Sandbox {self.name}: {self.status().state}, {self._request.backend}{self._warning}>"

    @property
    def _warning(self) -> str:
        return ", not isolated from this machine" if self._request.backend == "local" else ""

    def _running(self) -> RunningSession:
        self.start()
        assert self._session is not None, "it was started"
        return self._session

    def _started_one(self) -> RunningSession:
        if self._session is None:
            raise SandboxClosedError("the sandbox was not started")
        return self._session

    # -- cells ---------------------------------------------------------------------------------------

    def run(
        self,
        code: str,
        *,
        timeout_s: float | None = None,
        on_output: OutputSink | None = None,
        allow_wipe: bool = False,
        on_conflict: Literal["error", "merge"] | None = None,
    ) -> CellResult:
        """Run Python in the sandbox's kernel, whose state lives on, and save what it wrote.

        Args:
            code: a cell, as in a notebook.
            timeout_s: after this it is interrupted.
            on_output: is handed each output (nbformat's shape) as it comes, from whichever thread.
            allow_wipe: whether it may empty a store.
            on_conflict: another policy for this cell.

        Returns:
            What it did, whatever that was: a failure, a time-out, a death are results.

        Raises:
            SyncConflictError: texts were put aside; `result` is what the cell did, `report` what became of its files.
            SyncError: a store cannot be synced; all is kept, and saved at the next sync.
            SandboxError: the engine or the container is gone, or it was stopped.
        """
        return self._running().run(
            code, timeout_s=timeout_s, on_output=on_output, allow_wipe=allow_wipe, on_conflict=on_conflict
        )

    def bash(
        self,
        command: str,
        *,
        timeout_s: float | None = None,
        on_output: OutputSink | None = None,
        allow_wipe: bool = False,
        on_conflict: Literal["error", "merge"] | None = None,
    ) -> CellResult:
        """Run a bash script in the sandbox, and save what it wrote; as `run`."""
        return self._running().bash(
            command, timeout_s=timeout_s, on_output=on_output, allow_wipe=allow_wipe, on_conflict=on_conflict
        )

    def interrupt(self) -> None:
        """Interrupt the cell that runs, from any thread."""
        if self._session is not None:
            self._session.interrupt()

    def restart(self) -> None:
        """A new kernel: what its variables held is gone, the files stay."""
        self._running().restart()

    def tools(self) -> list[SandboxTool]:
        """Bash, read, write, edit, glob and grep in the sandbox, for the SDK's tool runner; it is started for them.

        What a call writes to /mnt/memory is saved when it ends; what is not saved is part of its result.
        """
        from memkernel.agent.toolset import sandbox_tools

        return sandbox_tools(self._running())

    # -- what happens to it --------------------------------------------------------------------------

    def subscribe(self, sink: Callable[[SandboxEvent], None]) -> Callable[[], None]:
        """From now on, hand every event to the sink: cells, syncs, the sandbox's own life.

        It is called in the thread of the cell, while the sandbox is at work: it must be quick, and ask the sandbox for
        nothing that runs or syncs. One that raises is logged and gets no more.

        Returns:
            What ends the subscription.
        """
        return (self._session or self._running()).journal.subscribe(sink)

    def panel(self) -> Panel:
        """How it stands, what its cells did, and what was put aside: live where the notebook can show that."""
        if self._session is None:
            self.start()
        return self._panel

    @property
    def events(self) -> list[SandboxEvent]:
        """The newest events, oldest first."""
        return [] if self._session is None else list(self._session.journal.events)

    # -- memory --------------------------------------------------------------------------------------

    def sync(self, *, on_conflict: Literal["error", "merge"] | None = None, allow_wipe: bool = False) -> SyncReport:
        """Save what lies in the mounts, and bring them up to the stores; every file is read again.

        Raises:
            SyncConflictError, SyncError: as `run`; `report` says what happened.
        """
        return self._running().sync(on_conflict=on_conflict, allow_wipe=allow_wipe)

    def sync_quietly(self) -> SyncReport | None:
        """Sync if nobody works with the sandbox; waits two seconds at most, and never raises.

        Returns:
            What was done; None where it was busy, is not open, or the database took longer.
        """
        return None if self._session is None else self._session.sync_quietly()

    @property
    def report(self) -> SyncReport | None:
        """What the last sync that did anything did, file by file."""
        return self.history[-1] if self.history else None

    @property
    def history(self) -> list[SyncReport]:
        """What each sync did that did anything, oldest first."""
        return [] if self._session is None else list(self._session.journal.reports)

    @property
    def rejected(self) -> Records[RejectedChange]:
        """What was put aside of these stores, oldest first; also before this sandbox, up to 30 days ago."""
        return rejected_changes(self._rejected, [one.store for one in self.stores])

    def resolve(self, path: str, how: How, store: Store | str | None = None) -> str | None:
        """Settle what was put aside at a path.

        Args:
            path: the memory's path, or as the sandbox names it, `/mnt/memory/SLUG/…`.
            how: `mine` writes the newest text over the store's, `both` writes it beside it (`/a.conflict.md`),
                `theirs` forgets it.
            store: which one, where several are mounted.

        Returns:
            The path that was written or deleted; None for `theirs`.

        Raises:
            NotFoundError: nothing was put aside there.
            PreconditionFailedError: somebody changed the memory at this very moment.
        """
        named = None if store is None else mounted_store(self.stores, store).slug
        slug, inside = paths.in_mount(path) or (named, path)
        settled = settle([change for change in self.rejected if slug in (None, change.store)], inside, how)
        self.sync_quietly()  # the mount shows it at once where it can
        return settled

    def apply_held_back(self) -> SyncReport:
        """Delete what the last cell wanted to delete and the wipe guard restored (SANDBOX.md, Decision 15).

        What somebody changed since stays.
        """
        return self._started_one().apply_held_back()

    def reset(self, store: Store | str | None = None) -> SyncReport:
        """Bring the mounts, or one of them, back to what the stores hold; what was changed there is put aside."""
        chosen = None if store is None else mounted_store(self.stores, store).id
        return self._running().reset(chosen)

    @property
    def mounts(self) -> Records[MountState]:
        """The mounted stores, with what the next sync would do."""
        return mount_states(self.stores, self._started_one().pending())

    def mounts_if_free(self, patience_s: float = 0.0) -> Records[MountState] | None:
        """The same; None where somebody works with the sandbox for longer than that, or it is not open."""
        states = None if self._session is None else self._session.pending_if_free(patience_s)
        return None if states is None else mount_states(self.stores, states)

    # -- the box itself ------------------------------------------------------------------------------

    def put(self, source: str | PathLike[str], target: str) -> tuple[str, ...]:
        """Copy a file or folder of this machine into the sandbox, below /home/sandbox or /tmp.

        Returns:
            What was left out: links and sockets.
        """
        return self._running().put(Path(source).expanduser(), target)

    def get(self, source: str, target: str | PathLike[str]) -> tuple[str, ...]:
        """Copy a file or folder of the sandbox to this machine; links are neither followed nor made.

        Returns:
            What was left out: links and sockets.
        """
        return self._running().get(source, Path(target).expanduser())

    def status(self) -> SandboxStatus:
        """How it stands, asked now."""
        return SandboxStatus("new", "not started") if self._session is None else self._session.status()

    def logs(self) -> str:
        """The last lines that the kernel's process itself wrote."""
        return self._started_one().logs()

    @property
    def session(self) -> SessionRecord:
        """The session's record, as of the start: who writes, and to what.

        Raises:
            SandboxClosedError: it was not started.
        """
        return self._started_one().record

    @property
    def id(self) -> str:
        """`sesn_…`, who all that it writes is by."""
        return self.session.id

    @property
    def actor(self) -> Actor:
        """Who writes."""
        return Actor("session_actor", self.id)

    @property
    def isolation(self) -> str:
        """One line on what keeps the code in."""
        return self._started_one().backend.isolation


_started: list[Sandbox] = []


def open_sandboxes() -> list[Sandbox]:
    """The sandboxes of this process that were started and not stopped, oldest first."""
    _started[:] = [box for box in _started if box.is_open]
    return list(_started)
