"""The sessions that have not ended, and how one ends, also where its process or machine is gone (Decision 17)."""

from __future__ import annotations

from memkernel.errors import (
    InvalidInputError,
    MemkernelError,
    SandboxError,
    SessionNotFoundError,
    SessionOverError,
)
from memkernel.models import SessionRecord, Settings, SyncReport
from memkernel.runtime import folders
from memkernel.runtime.folders import SessionFolder
from memkernel.runtime.homes import Home
from memkernel.runtime.recovery import OTHER_VERSION, Recovered, recover_one, remove_containers, unended
from memkernel.runtime.salvage import salvage
from memkernel.store import Database
from memkernel.sync.rejected import RejectedFolder


def unended_sessions(database: Database, home: Home) -> list[tuple[SessionRecord, str]]:
    """Each session that has not ended, newest first, and in a few words where it is."""
    return [(record, whereabouts(record, home)) for record in unended(database)]


def whereabouts(record: SessionRecord, home: Home) -> str:
    """Where a session that has not ended is, in a few words."""
    note = folders.read_note(home.sessions / record.id)
    if note is not None and folders.is_here(home, note):
        return (
            f"runs in process {note.pid}"
            if folders.is_alive(home, record.id)
            else "left behind: `memkernel doctor` ends it"
        )
    host = record.metadata.get("host")
    return f"on {host}" if host and host != folders.host_name() else "has no sandbox here"


def stores_of(record: SessionRecord) -> str:
    """The stores of a session, in a few words: `team-notes, handbook (ro)`"""
    return ", ".join(each.slug + (" (ro)" if each.access == "read_only" else "") for each in record.resources)


def end_session(
    database: Database, database_line: str, settings: Settings, home: Home, session_id: str, *, force: bool
) -> Recovered:
    """End a session whose process is gone: save what it left, then let go of its stores.

    Args:
        database: where its record is.
        database_line: what a person calls that.
        settings: of this machine.
        home: of this machine's sessions.
        session_id: the session.
        force: end it also where nothing of it is on this machine; what was not saved where it ran stays there.

    Raises:
        SessionNotFoundError: there is no such session.
        SandboxError: it is alive here, or ran elsewhere and `force` is not set, or its leftovers cannot be saved.
    """
    record = database.sessions.retrieve(session_id)
    if folders.is_alive(home, record.id):
        raise SandboxError(_alive(record, home), hint="`%sandbox stop` there ends it, and saves all before.")
    note = folders.read_note(home.sessions / record.id)
    if note is not None and folders.is_here(home, note):
        remove_containers(settings, home)
        ended = recover_one(database, database_line, home, record.id)
        if ended is not None and not ended.trouble:
            return ended
        if not force:
            reason = ended.trouble if ended is not None else "another process works on it"
            raise SandboxError(f"{record.id} cannot be ended: {reason}", hint="Try again; `--force` gives that up.")
    elif record.status == "terminated":
        raise SandboxError(f"{record.id} has ended already", hint="`memkernel session ls` lists those that have not.")
    elif record.id in folders.unreadable_sessions(home):
        if not force:
            raise SandboxError(f"{record.id}: {OTHER_VERSION}", hint="`--force` ends it; what it left stays here.")
    elif not force and (host := record.metadata.get("host")):  # one without it was made over the API, for no sandbox
        raise SandboxError(
            f"{record.id} runs on {host}, or did", hint="End it there; `--force` ends it here if that machine is gone."
        )
    database.sessions.update(record.id, status="terminated")
    return Recovered(record.id, record.title, SyncReport())


def let_go(
    database: Database, folder: SessionFolder, rejected: RejectedFolder, report: SyncReport, *, stopped: bool
) -> None:
    """End the session of a sandbox that has gone, and remove its folder; what was not saved is left for the next start.

    Args:
        database: where its record is.
        folder: this process holds its lock.
        rejected: where texts go that nobody can save any more.
        report: what the last sync did.
        stopped: whether the sandbox has surely gone. Else it may still write: the next start removes it.
    """
    over = any(isinstance(store.trouble, SessionOverError) for store in report.stores)
    if not stopped or (not over and any(store.trouble for store in report.stores)):
        folder.release()
        return
    if over:
        salvage(database, folder, rejected)
    try:
        database.sessions.update(folder.note.session_id, status="terminated")
    except (SessionNotFoundError, InvalidInputError):
        pass  # somebody ended or deleted it
    except MemkernelError:
        folder.release()  # the next start ends it
        return
    folder.remove()


def _alive(record: SessionRecord, home: Home) -> str:
    note = folders.read_note(home.sessions / record.id)
    return f"{record.id} is alive in process {note.pid if note else '?'} of this machine"
