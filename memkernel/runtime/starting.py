"""How a session starts: checked first, then made step by step, and undone where a step fails."""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from memkernel.errors import MemkernelError, MountError, SyncError
from memkernel.models import Attachment, SessionRecord, Settings
from memkernel.runtime import folders, homes
from memkernel.runtime.backends import Provider
from memkernel.runtime.folders import Note, SessionFolder
from memkernel.runtime.homes import Home
from memkernel.runtime.recovery import Recovered, owner_of_session, recover
from memkernel.runtime.request import SandboxRequest
from memkernel.runtime.session import RunningSession
from memkernel.sandbox.base import Mount, SandboxBackend
from memkernel.store import Database
from memkernel.sync.engine import MountSync
from memkernel.sync.rejected import RejectedFolder

Progress = Callable[[str, float | None], None]

_recovered: set[tuple[Home, str]] = set()
_recovering = threading.Lock()
_PROVISIONAL: Final = "sesn_" + "0" * 26


@dataclass(frozen=True, slots=True)
class Where:
    """Where a session is made: the database with its name for people, and this machine's settings and home."""

    database: Database
    database_line: str
    settings: Settings
    home: Home

    @classmethod
    def of(cls, database: Database, database_line: str, settings: Settings) -> Where:
        """The home is the one that the settings name."""
        return cls(database, database_line, settings, Home.of(settings.home))


class _GivenUpError(Exception):
    """The person has interrupted the start."""


class _Start:
    """A start in a thread of its own: no interrupt comes between two of its steps, so that all can be undone."""

    def __init__(self, request: SandboxRequest, where: Where, progress: Progress | None) -> None:
        self._request, self._where, self._progress = request, where, progress
        self._begun, self._given_up, self._over = threading.Event(), threading.Event(), threading.Event()
        self._session: RunningSession | None = None
        self._error: BaseException | None = None

    def run(self) -> RunningSession:
        """Wait for it. After an interrupt it is undone, or what it has started is stopped."""
        # In the caller's context: a notebook shows the progress in the cell that it belongs to.
        work = contextvars.copy_context().run
        thread = threading.Thread(target=work, args=(self._work,), name="memkernel-start", daemon=True)
        try:
            thread.start()
            self._begun.set()
            self._over.wait()
        except BaseException:
            self._given_up.set()
            if self._begun.is_set():
                self._over.wait()
                self._stop()
            self._begun.set()  # a thread that was started and not told to begin ends
            raise
        if self._session is None:
            assert self._error is not None
            raise self._error
        return self._session

    def _work(self) -> None:
        self._begun.wait()  # an interrupt may come before the thread's own start has returned
        try:
            if not self._given_up.is_set():
                self._session = _start(self._request, self._where, self._tell)
        except BaseException as error:  # raised again where it was asked for
            self._error = error
        if self._given_up.is_set():  # a second interrupt waits for nothing
            self._stop()
        self._over.set()

    def _tell(self, what: str, share: float | None) -> None:
        if self._given_up.is_set():
            raise _GivenUpError
        if self._progress is not None:
            self._progress(what, share)

    def _stop(self) -> None:
        if self._session is not None:
            with suppress(MemkernelError):
                self._session.stop()


def start(request: SandboxRequest, where: Where, progress: Progress | None = None) -> RunningSession:
    """Start a sandbox whose mounts hold what the stores do.

    Raises:
        SandboxError: there is no engine, no image, no place for the mounts, or it cannot be started.
        InvalidInputError: a store is missing or archived, there are too many, or two would have one folder.
        DatabaseError: the database does not answer.
        SyncError: a store cannot be brought into its mount.
    """
    return _Start(request, where, progress).run()


def _start(request: SandboxRequest, where: Where, progress: Progress) -> RunningSession:
    with ExitStack() as undo:
        provider = Provider(request, where.settings)
        undo.callback(provider.close)
        installation = where.home.installation_id()
        provider.make(session_id=_PROVISIONAL, installation_id=installation).check()
        record = where.database.sessions.create(
            request.attachments, title=request.title, metadata=owner_of_session(installation)
        )
        undo.callback(_delete_record, where.database, record)
        own = where.home.sessions / record.id
        place = homes.place_of_mounts(where.home, record.id, _room(request))
        try:
            session = _on_disk(request, where, provider, record, data=place, progress=progress)
        except MountError:
            if place == own:
                raise
            # The engine may not see this machine's memory file system (Docker's desktop, a snap).
            session = _on_disk(request, where, provider, record, data=own, progress=progress)
        undo.pop_all()
    return session


def recover_before(where: Where) -> list[Recovered]:
    """What dead sessions have left is saved before a sandbox starts.

    The first start of a process looks for all of it. Later ones look at what lies here: also this process's own
    sessions, that could not be saved when they ended.
    """
    with _recovering:
        place = (where.home, where.database_line)
        if place in _recovered and not folders.dead_sessions(where.home):
            return []
        found = recover(where.database, where.database_line, where.settings, where.home)
        _recovered.add(place)
        return found


def _on_disk(
    request: SandboxRequest,
    where: Where,
    provider: Provider,
    record: SessionRecord,
    *,
    data: Path,
    progress: Progress,
) -> RunningSession:
    with ExitStack() as undo:
        note = Note(
            record.id,
            where.database_line,
            request.backend,
            str(data),
            folders.host_name(),
            os.getpid(),
            {one.slug: one.memory_store_id for one in record.resources if one.access == "read_write"},
        )
        folder = folders.create(where.home, note)
        undo.callback(folder.remove)
        mounts = tuple(_mount(folder, attachment) for attachment in record.resources)
        installation = where.home.installation_id()
        backend = provider.make(session_id=record.id, installation_id=installation, mounts=mounts)
        folder.rewrite(replace(note, owner=backend.owner))
        filled = _filled_mounts(where, record, folder, backend, undo)
        undo.callback(backend.stop)
        backend.check()
        backend.start(progress)
        undo.pop_all()
        return RunningSession(
            where.database,
            record,
            request=request,
            folder=folder,
            backend=backend,
            mounts=filled,
            rejected=RejectedFolder.of(where.home.directory),
            provider=provider,
        )


def _filled_mounts(
    where: Where, record: SessionRecord, folder: SessionFolder, backend: SandboxBackend, undo: ExitStack
) -> list[tuple[Attachment, MountSync]]:
    """The mounts, each up to its store; `undo` closes them."""
    owner, rejected = backend.owner, RejectedFolder.of(where.home.directory)
    places = [folder.make_mount(attachment.slug, owner) for attachment in record.resources]
    enforced = backend.enforces_read_only  # asked now that they are there: how they can be mounted may depend on them
    filled: list[tuple[Attachment, MountSync]] = []
    for attachment, place in zip(record.resources, places, strict=True):
        mount = MountSync(where.database, record.id, attachment, place, rejected, owner=owner, enforced=enforced)
        undo.callback(mount.close)
        filled.append((attachment, mount))
        _fill(attachment, mount)
    return filled


def _mount(folder: SessionFolder, attachment: Attachment) -> Mount:
    files = folder.mount(attachment.slug).files
    return Mount(files, attachment.mount_path, read_only=attachment.access == "read_only")


def _fill(attachment: Attachment, mount: MountSync) -> None:
    """Bring it up to its store, or do not start (fault 33)."""
    trouble = mount.sync().trouble
    if trouble is not None:
        hint = getattr(trouble, "hint", "")
        raise SyncError(f"{attachment.mount_path} cannot be filled: {trouble}", hint=hint) from trouble


def _room(request: SandboxRequest) -> int:
    """Twice what the watchdog lets the writable mounts grow to: it sees an overshoot only after it happened."""
    return 2 * request.limits.mount_bytes * len(request.attachments)


def _delete_record(database: Database, record: SessionRecord) -> None:
    with suppress(MemkernelError):
        database.sessions.delete(record.id)
