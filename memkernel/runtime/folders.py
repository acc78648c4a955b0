"""A session's folder, locked by the process whose it is: when that process is gone, however, so is its lock.

    HOME/sessions/sesn_…/lock            flock; who gets it may recover the session
    HOME/sessions/sesn_…/session.json    the Note
    HOME/sessions/sesn_…/cause.json      the tool call that may have written what lies unsaved in the mounts
    DATA/mnt/memory/SLUG                 a store's mount
    DATA/aside/SLUG, DATA/nonce/SLUG     beside it: texts on their way to HOME/rejected, and the mount's nonce

DATA is this folder, or one on a memory file system; the nonce lies with the mount, so that both are lost together.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import socket
import stat
import weakref
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from memkernel import folders as disk
from memkernel import ids
from memkernel.errors import MountError
from memkernel.models import Cause
from memkernel.runtime.homes import Home, make_private
from memkernel.sync.engine import MountFolders

FORMAT: Final = 1
_NEW: Final = ".new-"
_OLD: Final = ".old-"
_CAUSE: Final = "cause.json"


@dataclass(frozen=True, slots=True)
class Note:
    """What another process needs to know to end this session properly.

    Attributes:
        database: which one its record is in, as a person is told; never a password.
        data: where its mounts are.
        stores: the ids of the writable stores by the names of their folders.
        owner: uid and gid of the files in them; None until that is known.
        identities: device and inode of each mount's folder: another folder in its place is not the mount.
    """

    session_id: str
    database: str
    backend: str
    data: str
    host: str
    pid: int
    stores: Mapping[str, str]
    owner: tuple[int, int] | None = None
    identities: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    format: int = FORMAT


class SessionFolder:
    """The folder of one session; this process holds its lock."""

    def __init__(self, path: Path, lock: int, note: Note) -> None:
        self.path = path
        self.note = note
        self._lock: int | None = lock
        _held.add(self)

    @property
    def data(self) -> Path:
        """Holds the mounts."""
        return Path(self.note.data)

    def mount(self, slug: str) -> MountFolders:
        """Where a store's mount and what belongs to it lie."""
        return MountFolders(
            files=self.data / "mnt" / "memory" / slug,
            nonce=self.data / "nonce" / slug,
            aside=self.data / "aside" / slug,
        )

    def make_mount(self, slug: str, owner: tuple[int, int]) -> MountFolders:
        """Make them; the mount belongs to who works in it.

        Raises:
            MountError: they cannot be made.
        """
        mount = self.mount(slug)
        try:
            for folder, mode in ((mount.files, 0o755), (mount.nonce.parent, 0o700), (mount.aside, 0o700)):
                folder.mkdir(parents=True, exist_ok=True)
                folder.chmod(mode)
            if owner != (os.geteuid(), os.getegid()):
                os.chown(mount.files, *owner)
            made = identity(mount.files)
            assert made is not None, "it was made just now"
            self.rewrite(replace(self.note, identities={**self.note.identities, slug: made}))
        except OSError as error:
            raise MountError(str(mount.files), error.strerror or str(error)) from None
        return mount

    def rewrite(self, note: Note) -> None:
        """Replace the note."""
        _write_note(self.path, note)
        self.note = note

    def remember(self, cause: Cause | None) -> None:
        """What is written into the mounts from now on comes from this tool call, or from none.

        Raises:
            MountError: that cannot be kept.
        """
        # Nobody waits for the disk: after a crash of the whole machine a change may be saved without its cause.
        try:
            _replace(self.path / _CAUSE, None if cause is None else asdict(cause))
        except OSError as error:
            raise MountError(str(self.path), error.strerror or str(error)) from None

    def cause(self) -> Cause | None:
        """The tool call that was remembered last, by whichever process; None also where it cannot be read."""
        with suppress(OSError, ValueError, TypeError):
            found = json.loads((self.path / _CAUSE).read_bytes())
            return None if found is None else Cause(**found)
        return None

    def release(self) -> None:
        """Let go of the lock; what lies here is recovered by whoever gets it next."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def remove(self) -> None:
        """Remove the mounts and the folder, and let go.

        Renamed first: a mount of which a part is gone must never look like a session's, whose files were deleted.
        """
        if not self.path.name.startswith((_NEW, _OLD)):
            self.path = self.path.rename(self.path.with_name(f"{_OLD}{secrets.token_hex(8)}"))
        for folder in (self.data, self.path):
            _remove_if_there(folder)
        self.release()

    def forget(self) -> None:
        """In a forked child: the lock is its parent's, and must not outlive it here."""
        self.release()


_held: weakref.WeakSet[SessionFolder] = weakref.WeakSet()
os.register_at_fork(after_in_child=lambda: [folder.forget() for folder in list(_held)])


def create(home: Home, note: Note) -> SessionFolder:
    """Make the folder of a new session, locked from the first moment that others can see it.

    Raises:
        MountError: it cannot be made.
    """
    home.prepare()
    draft, final = home.sessions / f"{_NEW}{secrets.token_hex(8)}", home.sessions / note.session_id
    with ExitStack() as undo:
        for made in (draft, final, Path(note.data)):
            undo.callback(_remove_if_there, made)
        try:
            draft.mkdir(0o700)
            lock = _take_lock(draft)
            assert lock is not None, "nobody else knows the folder"
            undo.callback(os.close, lock)
            _write_note(draft, note)
            make_private(Path(note.data).parent)
            draft.rename(final)
            Path(note.data).mkdir(0o700, exist_ok=True)
        except OSError as error:
            raise MountError(str(final), error.strerror or str(error)) from None
        undo.pop_all()
    return SessionFolder(final, lock, note)


def _remove_if_there(folder: Path) -> None:
    if folder.exists():
        disk.remove_tree(folder)


def take(home: Home, session_id: str) -> SessionFolder | None:
    """The folder of a session whose process is gone, now locked by this one; None where it is alive or unknown."""
    path = home.sessions / session_id
    note = read_note(path)
    if note is None:
        return None
    lock = _take_lock(path)
    return None if lock is None else SessionFolder(path, lock, note)


def identity(folder: Path) -> tuple[int, int] | None:
    """Device and inode of a folder; None where there is none."""
    try:
        found = folder.lstat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


def sweep(home: Home) -> None:
    """Remove what killed processes left of folders that were not made yet, or were being removed."""
    with suppress(FileNotFoundError):
        for name in os.listdir(home.sessions):
            path = home.sessions / name
            lock = _take_lock(path) if name.startswith((_NEW, _OLD)) else None
            if lock is None:
                continue
            note = _parsed_note(path)
            if note is not None:
                SessionFolder(path, lock, note).remove()
            else:
                disk.remove_tree(path)
                os.close(lock)


def is_alive(home: Home, session_id: str) -> bool:
    """Whether a process holds the session's lock."""
    path = home.sessions / session_id
    if not (path / "lock").exists():
        return False
    lock = _take_lock(path, fcntl.LOCK_SH)
    if lock is not None:
        os.close(lock)
    return lock is None


def notes(home: Home) -> Iterator[Note]:
    """The notes of all sessions that have a folder, oldest first."""
    with suppress(FileNotFoundError):
        for name in sorted(os.listdir(home.sessions)):
            note = read_note(home.sessions / name) if ids.is_id("sesn", name) else None
            if note is not None:
                yield note


def dead_sessions(home: Home) -> list[str]:
    """The sessions of this machine whose process is gone."""
    return [note.session_id for note in notes(home) if is_here(home, note) and not is_alive(home, note.session_id)]


def unreadable_sessions(home: Home) -> list[str]:
    """The sessions that a process which is gone has left with a note that this version cannot read."""
    with suppress(FileNotFoundError):
        names = [name for name in sorted(os.listdir(home.sessions)) if ids.is_id("sesn", name)]
        return [name for name in names if read_note(home.sessions / name) is None and not is_alive(home, name)]
    return []


def read_note(path: Path) -> Note | None:
    """The note in a session's folder; None where there is none that this version can read."""
    note = _parsed_note(path)
    return note if note is not None and note.session_id == path.name else None


def _parsed_note(path: Path) -> Note | None:
    try:
        found: dict[str, Any] = json.loads((path / "session.json").read_bytes())
        owner = found.pop("owner")
        mounts = {str(slug): (int(device), int(inode)) for slug, (device, inode) in found.pop("identities").items()}
        owned = None if owner is None else (int(owner[0]), int(owner[1]))
        note = Note(**found, owner=owned, identities=mounts)
    except (OSError, ValueError, TypeError, AttributeError, KeyError, IndexError):
        return None
    return note if note.format == FORMAT else None


def is_here(home: Home, note: Note) -> bool:
    """Whether a session runs, or ran, on this machine. A machine's name may change, where a home is its own."""
    return note.host == host_name() or not home.is_shared


def host_name() -> str:
    """The machine's name."""
    return socket.gethostname()


def _write_note(folder: Path, note: Note) -> None:
    _replace(folder / "session.json", asdict(note), flush=True)


def _replace(place: Path, facts: object, *, flush: bool = False) -> None:
    draft = place.with_suffix(f"{place.suffix}.new")
    with draft.open("w") as file:
        json.dump(facts, file)
        if flush:
            file.flush()
            os.fsync(file.fileno())
    draft.replace(place)


def _take_lock(folder: Path, how: int = fcntl.LOCK_EX) -> int | None:
    """A descriptor that holds the lock of a folder, or None if another has it, or the folder is gone."""
    file = folder / "lock"
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), os.stat(file)):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None
