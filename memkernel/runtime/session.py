"""A session that runs: reconcile, run a cell, write back; and its end, with nothing lost (DESIGN 3, journey B)."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from memkernel.errors import EngineError, MemkernelError, SandboxClosedError
from memkernel.models import Attachment, Cause, CellResult, ConflictPolicy, SessionRecord, SyncReport, ToolAnswer
from memkernel.runtime import ending, leaving, reports, tooling
from memkernel.runtime.backends import Provider
from memkernel.runtime.folders import SessionFolder
from memkernel.runtime.journal import Cell, Journal, Language
from memkernel.runtime.mounted import Mounted, SyncOptions
from memkernel.runtime.request import SandboxRequest, check_policy
from memkernel.runtime.turns import Turns
from memkernel.sandbox import walls
from memkernel.sandbox.base import OutputSink, SandboxBackend, SandboxStatus
from memkernel.sandbox.toolbox import Toolbox
from memkernel.store import Database
from memkernel.sync.engine import MountStatus, MountSync
from memkernel.sync.rejected import RejectedFolder

QUIET_S: Final = 2.0
"""So long a cell of the notebook waits for the database (Decision 18)."""

_INTERRUPT_S: Final = 5.0


Work = Callable[[], CellResult]
T = TypeVar("T")


class RunningSession:
    """A sandbox with its mounts, between its start and its end. Safe to use from several threads.

    Attributes:
        record: the session's record.
        backend: where its cells run.
        journal: what happens to it, for whoever wants to be told.
    """

    def __init__(
        self,
        database: Database,
        record: SessionRecord,
        *,
        request: SandboxRequest,
        folder: SessionFolder,
        backend: SandboxBackend,
        mounts: Sequence[tuple[Attachment, MountSync]],
        rejected: RejectedFolder,
        provider: Provider,
    ) -> None:
        self.record = record
        self.request = request
        self.backend = backend
        self.journal = Journal(record.title or record.id)
        self._mounts = Mounted(mounts, backend.frozen, folder.remember)
        self._database = database
        self._folder = folder
        self._rejected = rejected
        self._provider = provider
        self._turns = Turns()
        self._toolbox = Toolbox(backend)
        self._pid = os.getpid()
        self._closed = False
        leaving.register(self)

    # -- cells ---------------------------------------------------------------------------------------

    def run(
        self,
        code: str,
        *,
        timeout_s: float | None = None,
        on_output: OutputSink | None = None,
        allow_wipe: bool = False,
        on_conflict: str | None = None,
    ) -> CellResult:
        """Run a cell, and save what it wrote; also when it failed, timed out or was interrupted.

        Raises:
            SyncConflictError: of its texts some were put aside; `result` and `report` say what happened.
            SyncError: a store cannot be synced, before the cell (which then does not run) or after it; all is kept.
            SandboxError: the engine or the container is gone; what the cell had written is saved.
        """
        patience = walls.check_timeout(timeout_s) or self.request.timeout_s
        work = partial(self.backend.run, code, timeout_s=patience, on_output=on_output)
        return self._cell("python", code, work, allow_wipe=allow_wipe, on_conflict=on_conflict)

    def bash(
        self,
        command: str,
        *,
        timeout_s: float | None = None,
        on_output: OutputSink | None = None,
        allow_wipe: bool = False,
        on_conflict: str | None = None,
    ) -> CellResult:
        """Run a bash script, and save what it wrote; raises as `run` does."""
        patience = walls.check_timeout(timeout_s) or self.request.timeout_s
        work = partial(self.backend.bash, command, timeout_s=patience, on_output=on_output)
        return self._cell("bash", command, work, allow_wipe=allow_wipe, on_conflict=on_conflict)

    def _cell(
        self, language: Language, code: str, work: Work, *, allow_wipe: bool, on_conflict: str | None
    ) -> CellResult:
        policy = self._policy(on_conflict)
        with self._turns.turn():
            self.check_open()
            with self.journal.cell(language, code) as cell:
                result, report = self._work(cell, work, policy, allow_wipe=allow_wipe)
                cell.result = result
        result = replace(result, report=report)
        reports.raise_what_is_wrong(report, result)
        return result

    def call_tool(
        self,
        name: str,
        given: Mapping[str, object],
        *,
        cause: Cause | None = None,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> ToolAnswer:
        """Answer an agent's call of a tool, and save what it wrote; also when it failed or was interrupted.

        Args:
            name: `bash`, `read`, `write`, `edit`, `glob` or `grep`.
            given: what the model sent, unchecked.
            cause: the call, kept with each change that it makes.
            is_wanted: asked while the sandbox is busy, and before the tool begins.

        Returns:
            The tool's answer, and after it what of its files is not saved (SANDBOX.md, Decision 22).

        Raises:
            SyncError: as `run`; without a `result` (else the answer) the call did not run.
            SandboxError: the engine or the container is gone; what the call had written is saved.
        """

        def call() -> ToolAnswer:
            return self._toolbox.call(name, given) if is_wanted() else tooling.interrupted(name)

        with self._turns.turn_while(is_wanted) as mine:
            if not mine:
                return tooling.interrupted(name)
            self.check_open()
            with self.journal.cell("tool", tooling.call_line(name, given)) as cell:
                began = time.perf_counter()
                answer, report = self._work(cell, call, self.request.on_conflict, cause=cause)
                cell.result = tooling.as_cell(answer, time.perf_counter() - began)
            answer = tooling.told(answer, reports.joined(self._mounts.untold(), report))
        reports.raise_trouble(report, answer)
        return answer

    def _work(
        self,
        cell: Cell,
        work: Callable[[], T],
        policy: ConflictPolicy,
        *,
        allow_wipe: bool = False,
        cause: Cause | None = None,
    ) -> tuple[T, SyncReport]:
        """Bring the mounts up, work in them, and save them: what came of it, and of its files."""
        before = cell.report = self._sync(policy)
        reports.raise_trouble(before, kept=reports.NOT_RUN)
        self._mounts.written_by(cause)
        try:
            result = work()
        except BaseException as error:
            # The container or the engine is gone, or it was interrupted: its files are here all the same.
            report = cell.report = reports.joined(before, self._sync(policy, allow_wipe=allow_wipe))
            if isinstance(error, EngineError | SandboxClosedError) and error.result is not None:
                error.result = replace(error.result, report=report)
            raise
        report = cell.report = reports.joined(before, self._sync(policy, allow_wipe=allow_wipe))
        return result, report

    # -- syncs ---------------------------------------------------------------------------------------

    def sync(self, *, on_conflict: str | None = None, allow_wipe: bool = False) -> SyncReport:
        """Save what lies in the mounts, and bring them up to their stores; every file is read again.

        Raises:
            SyncConflictError, SyncError: as `run`; `report` says what happened.
        """
        policy = self._policy(on_conflict)
        with self._turns.turn():
            self.check_open()
            report = self._sync(policy, allow_wipe=allow_wipe, deep=True)
            self.journal.synced(report)
        reports.raise_what_is_wrong(report)
        return report

    def sync_quietly(self) -> SyncReport | None:
        """Sync where nobody works with the session, and let the database have two seconds; nothing is ever raised.

        Returns:
            What was done; None where the session was busy, has ended, or the database took longer.
        """
        done: list[SyncReport] = []
        worker = threading.Thread(target=self._sync_if_free, args=(done,), name="memkernel-sync", daemon=True)
        worker.start()
        worker.join(QUIET_S)
        return done[0] if done else None

    def _sync_if_free(self, done: list[SyncReport]) -> None:
        with self._turns.turn_if_free() as free:
            if not free or self._closed or not self._is_mine:
                return
            try:
                report = self._sync(self.request.on_conflict)
            except Exception:  # whatever it is, the next cell of the sandbox meets it, and tells
                return
            self.journal.synced(report)
            done.append(report)

    def reset(self, memory_store_id: str | None = None) -> SyncReport:
        """Bring the mounts, or one of them, back to what their stores hold; what was changed is put aside.

        Raises:
            SyncError: a store cannot be read.
        """
        with self._turns.turn():
            self.check_open()
            report = self._mounts.reset(memory_store_id)
            self.journal.synced(report)
        for store in report.stores:
            if store.trouble is not None:
                raise reports.trouble_error(store, report) from store.trouble
        return report

    def apply_held_back(self) -> SyncReport:
        """Make the deletions that the wipe guard held back at the last sync; what somebody changed since stays.

        Raises:
            SyncConflictError, SyncError: as `run`; `report` says what happened.
        """
        with self._turns.turn():
            self.check_open()
            report = self._mounts.apply_held_back()
            self.journal.synced(report)
        reports.raise_what_is_wrong(report)
        return report

    def _sync(
        self, policy: ConflictPolicy, *, allow_wipe: bool = False, deep: bool = False, final: bool = False
    ) -> SyncReport:
        options = SyncOptions(policy, allow_wipe=allow_wipe, deep=deep, final=final)
        try:
            return self._mounts.sync(options)
        except KeyboardInterrupt:
            # What the cell wrote is saved before the interrupt goes on; a second interrupt is let through.
            self.journal.synced(self._mounts.sync(options))
            raise

    def _policy(self, on_conflict: str | None) -> ConflictPolicy:
        return self.request.on_conflict if on_conflict is None else check_policy(on_conflict)

    # -- the sandbox ---------------------------------------------------------------------------------

    def pending(self) -> list[tuple[Attachment, MountStatus]]:
        """For each mount, what the next sync would save and pull.

        Raises:
            DatabaseError, SyncError: it cannot be told.
        """
        with self._turns.turn():
            self.check_open()
            return self._mounts.pending()

    def pending_if_free(self, patience_s: float) -> list[tuple[Attachment, MountStatus]] | None:
        """As `pending`; None where somebody works with the session for longer than that, or it has ended."""
        with self._turns.turn_if_free(patience_s) as free:
            return self._mounts.pending() if free and self.is_open else None

    @property
    def is_open(self) -> bool:
        """Whether it was not stopped, and is this process's own."""
        return not self._closed and self._is_mine

    @property
    def _is_mine(self) -> bool:
        return os.getpid() == self._pid

    def check_open(self) -> None:
        """Refuse to go on with what is over.

        Raises:
            SandboxClosedError: it was stopped, or is another process's.
        """
        if not self._is_mine:
            raise SandboxClosedError("the sandbox belongs to the process that this one was forked from")
        if self._closed:
            raise SandboxClosedError

    def status(self) -> SandboxStatus:
        """How the sandbox stands, asked now."""
        return self.backend.status() if self.is_open else SandboxStatus("closed", "stopped")

    def interrupt(self) -> None:
        """Interrupt the cell, or the agent's tool call, that runs; from any thread."""
        if self.is_open:
            self._toolbox.interrupt()
            self.backend.interrupt()

    def interrupt_tool(self, cause: Cause | None) -> None:
        """Interrupt this tool call, if it is the one that runs; no cell, and no other agent's. From any thread."""
        if self._mounts.cause == cause:
            self._toolbox.interrupt()

    def restart(self) -> None:
        """A new kernel; what the old one had written is saved first."""
        with self._turns.turn():
            self.check_open()
            report = self._sync(self.request.on_conflict)
            self.journal.synced(report)
            self.backend.restart()
            self.journal.changed("restarted")

    def logs(self) -> str:
        """The last lines that the kernel's process itself wrote."""
        self.check_open()
        return self.backend.logs()

    def put(self, source: Path, target: str) -> tuple[str, ...]:
        """Copy a file or folder of this machine into the sandbox's home or /tmp; what was left out (links, sockets)."""
        with self._turns.turn():
            self.check_open()
            return self.backend.put(source, target)

    def get(self, source: str, target: Path) -> tuple[str, ...]:
        """Copy a file or folder of the sandbox to this machine; what was left out (links, sockets)."""
        with self._turns.turn():
            self.check_open()
            return self.backend.get(source, target)

    # -- the end -------------------------------------------------------------------------------------

    def stop(self) -> SyncReport:
        """Save all, end the sandbox and the session; nothing where that is done already.

        Raises:
            SyncConflictError: texts were put aside; all the rest is done.
            SyncError: a store cannot be synced: its mount is kept, and saved at the next start of a sandbox.
        """
        if self._closed or not self._is_mine:
            return SyncReport()
        with self._turns.turn_if_free() as free:
            report = self._end() if free else None
        if report is None:
            self._break_off()
            with self._turns.turn():
                report = self._end()
        reports.raise_what_is_wrong(report, kept=reports.KEPT_AT_THE_END)
        return report

    def _break_off(self) -> None:
        """End the cell that another thread runs; its write-back follows. An interrupt may get stuck."""
        threading.Thread(target=self._interrupt_quietly, name="memkernel-interrupt", daemon=True).start()
        with self._turns.turn_if_free(_INTERRUPT_S) as free:
            if not free:
                self.backend.stop()

    def _interrupt_quietly(self) -> None:
        with suppress(MemkernelError):
            self._toolbox.interrupt()
            self.backend.interrupt()

    def _end(self) -> SyncReport:
        if self._closed:
            return SyncReport()
        policy = self.request.on_conflict
        report = self._sync(policy, deep=True)  # before the container goes (CONTRACT D.5, step 6)
        stopped = False
        try:
            self._toolbox.close()
            self.backend.stop()
            stopped = True
        finally:
            # And what it still wrote until it went.
            report = reports.joined(report, self._sync(policy, final=True))
            self.journal.synced(report)
            self._closed = True
            leaving.forget(self)
            self._mounts.close()
            self._provider.close()
            ending.let_go(self._database, self._folder, self._rejected, report, stopped=stopped)
            self.journal.changed("stopped")
        return report
