"""The last resort: what lies in a mount that no sync may touch any more, and only there, is put aside.

Either the session is gone in whose name it would be saved, or another folder lies in the mount's place: a local sandbox
of level 2 does not keep the code from renaming or replacing it.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from memkernel.errors import MemoryNotFoundError, StoreNotFoundError
from memkernel.models import Memory, SyncConflict
from memkernel.runtime.folders import SessionFolder, identity
from memkernel.store import Database
from memkernel.sync.rejected import RejectedFolder, record
from memkernel.sync.scan import Scanner

_SESSION_OVER: Final = "was not saved before its session was ended or deleted"
_REPLACED: Final = "was found in a folder that had taken the mount's place"
_MOST_BYTES: Final = 1 << 26


def salvage(database: Database, folder: SessionFolder, rejected: RejectedFolder) -> None:
    """Put aside the texts of a session's writable mounts that are not what their stores hold.

    Raises:
        DatabaseUnavailableError: the stores cannot be asked.
        OSError: a mount cannot be read, or a text cannot be kept.
    """
    for slug in folder.note.stores:
        _put_aside(database, folder, rejected, slug, folder.mount(slug).files, reason=_SESSION_OVER)


def put_back(
    database: Database, folder: SessionFolder, rejected: RejectedFolder
) -> tuple[set[str], dict[str, tuple[SyncConflict, ...]]]:
    """Put mounts that were renamed back into their places, and put aside what lay there instead.

    Returns:
        The mounts whose own folder is gone: nothing of them can be synced. And by mount, what was put aside.

    Raises:
        DatabaseUnavailableError, OSError: as `salvage`.
    """
    gone: set[str] = set()
    aside: dict[str, tuple[SyncConflict, ...]] = {}
    for slug, known in folder.note.identities.items():
        place = folder.mount(slug).files
        if identity(place) == known or not place.parent.is_dir():
            continue
        own = next((one for one in place.parent.iterdir() if identity(one) == known), None)
        if os.path.lexists(place):
            if slug in folder.note.stores:
                aside[slug] = _put_aside(database, folder, rejected, slug, place, reason=_REPLACED)
            place.rename(folder.data / f"replaced-{secrets.token_hex(4)}")
        if own is None:
            gone.add(slug)
        else:
            own.rename(place)
    return gone, aside


def _put_aside(
    database: Database, folder: SessionFolder, rejected: RejectedFolder, slug: str, place: Path, *, reason: str
) -> tuple[SyncConflict, ...]:
    store_id = folder.note.stores[slug]
    aside: list[SyncConflict] = []
    for path, content, head in _unsaved(database, store_id, slug, place):
        kept = record(
            memory_store_id=store_id,
            session_id=folder.note.session_id,
            path=path,
            operation="created" if head is None else "modified",
            content=content,
            reason=reason,
            base_version_id=None if head is None else head.memory_version_id,
            base_sha256=None if head is None else head.content_sha256,
        )
        rejected.put(kept)
        aside.append(SyncConflict(path, reason, kept.id))
    return tuple(aside)


def _unsaved(database: Database, store_id: str, slug: str, place: Path) -> Iterator[tuple[str, bytes, Memory | None]]:
    for path, content, sha256 in _files(place, slug):
        try:
            head = database.memories.at_path(store_id, path, view="basic")
        except MemoryNotFoundError:
            head = None
        except StoreNotFoundError:
            return  # deleted with all that it knew: so is this
        if head is None or head.content_sha256 != sha256:
            yield path, content, head


def _files(place: Path, slug: str) -> Iterator[tuple[str, bytes, str]]:
    """(path, content, hash) of the files in a folder; a file in a folder's place counts as one of its name."""
    if place.is_symlink():
        return
    if not place.is_dir():
        content = _content(place)
        if content is not None:
            yield f"/{slug}", content, ""
        return
    with closing(Scanner(place)) as scanner:
        for path, file in scanner.scan(deep=True).files.items():
            content = scanner.read(path)
            if content is not None:
                yield path, content, file.sha256.hex()


def _content(file: Path) -> bytes | None:
    """What a plain file holds; None where it is none."""
    with suppress(OSError):
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as opened:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return opened.read(_MOST_BYTES)
    return None
