"""What became of sessions whose process is gone: container removed, leftovers saved, session ended (Decision 17)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Final

from memkernel.errors import MemkernelError, SessionNotFoundError, SessionOverError
from memkernel.models import SessionRecord, Settings, StoreReport, SyncReport
from memkernel.runtime import folders, reports
from memkernel.runtime.folders import SessionFolder
from memkernel.runtime.homes import Home
from memkernel.runtime.salvage import put_back, salvage
from memkernel.sandbox.engine import find_engine
from memkernel.store import Database
from memkernel.sync.engine import MountSync
from memkernel.sync.rejected import RejectedFolder

_PAGE: Final = 100
OTHER_VERSION: Final = "another version of memkernel made it, and has to save what it left"


@dataclass(frozen=True, slots=True)
class Recovered:
    """A session that had lost its process. `trouble`: why it could not be ended yet; what it left is kept."""

    session_id: str
    title: str | None
    report: SyncReport
    trouble: str = ""


def recover(database: Database, database_line: str, settings: Settings, home: Home) -> list[Recovered]:
    """End the dead sessions of this machine and database, and save what they left. Raises nothing of theirs."""
    folders.sweep(home)
    RejectedFolder.of(home.directory).expire()
    if home.is_known:
        remove_containers(settings, home)
    foreign = folders.unreadable_sessions(home)
    found = [Recovered(session_id, None, SyncReport(), OTHER_VERSION) for session_id in foreign]
    _end_bodiless(database, home)
    for note in folders.notes(home):
        if folders.is_here(home, note):
            ended = recover_one(database, database_line, home, note.session_id)
            found += [] if ended is None else [ended]
    return found


def owner_of_session(installation_id: str) -> dict[str, str]:
    """A session's metadata: which process, where, it belongs to."""
    return {"host": folders.host_name(), "pid": str(os.getpid()), "installation": installation_id}


def _end_bodiless(database: Database, home: Home) -> None:
    """End the sessions of this installation whose process died before they had a folder, or after it was removed."""
    if not home.is_known:
        return
    ours = owner_of_session(home.installation_id())
    for record in unended(database):
        at_home = all(record.metadata.get(name) == ours[name] for name in ("host", "installation"))
        if at_home and not (home.sessions / record.id).exists() and not _lives(record.metadata.get("pid", "")):
            with suppress(MemkernelError):
                database.sessions.update(record.id, status="terminated")


def _lives(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ValueError, ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def unended(database: Database) -> Iterator[SessionRecord]:
    """All sessions that have not ended, newest first; archived ones hold their stores, too."""
    page = None
    while True:
        some = database.sessions.list(
            statuses=["idle", "running", "rescheduling"], include_archived=True, limit=_PAGE, page=page
        )
        yield from some.data
        page = some.next_page
        if page is None:
            return


def recover_one(database: Database, database_line: str, home: Home, session_id: str) -> Recovered | None:
    """End one dead session; None where it is alive, or of another database."""
    folder = folders.take(home, session_id)
    if folder is None:
        return None
    try:
        return _end(database, database_line, folder, RejectedFolder.of(home.directory))
    except (MemkernelError, OSError) as error:
        return Recovered(session_id, None, SyncReport(), str(error))
    finally:
        folder.release()


def _end(database: Database, database_line: str, folder: SessionFolder, rejected: RejectedFolder) -> Recovered | None:
    try:
        record = database.sessions.retrieve(folder.note.session_id)
    except SessionNotFoundError:
        if folder.note.database != database_line:
            return None
        salvage(database, folder, rejected)
        folder.remove()
        return Recovered(folder.note.session_id, None, SyncReport())
    report = SyncReport(tuple(_leftovers(database, record, folder, rejected)))
    if any(isinstance(store.trouble, SessionOverError) for store in report.stores):
        salvage(database, folder, rejected)
    elif trouble := next((str(store.trouble) for store in report.stores if store.trouble), ""):
        return Recovered(record.id, record.title, report, trouble)
    database.sessions.update(record.id, status="terminated")
    folder.remove()
    return Recovered(record.id, record.title, report)


def _leftovers(
    database: Database, record: SessionRecord, folder: SessionFolder, rejected: RejectedFolder
) -> list[StoreReport]:
    saved: list[StoreReport] = []
    gone, aside = put_back(database, folder, rejected)
    for attachment in record.resources:
        places = folder.mount(attachment.slug)
        if attachment.slug in aside:
            saved.append(reports.put_aside(attachment, aside[attachment.slug]))
        if (
            attachment.slug in gone or not places.files.is_dir()
        ):  # the machine was started anew, and the memory file system with it
            continue
        try:
            mount = MountSync(database, record.id, attachment, places, rejected, owner=folder.note.owner)
            with closing(mount):
                saved.append(mount.sync(deep=True, cause=folder.cause(), final=True))
        except (MemkernelError, OSError) as error:
            saved.append(reports.troubled(attachment, error))
    return saved


def remove_containers(settings: Settings, home: Home) -> None:
    """The containers of this installation's dead sessions; where no engine answers, none of them runs."""
    from memkernel.sandbox.sweep import sweep

    with suppress(MemkernelError), closing(find_engine(settings)) as engine:
        sweep(engine, home.installation_id(), lambda session_id: folders.is_alive(home, session_id))
