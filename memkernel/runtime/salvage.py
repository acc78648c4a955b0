"""The last resort: mounts whose session is gone, so that no sync may touch them. What only they hold is put aside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from memkernel.errors import MemoryNotFoundError, StoreNotFoundError
from memkernel.models import Memory
from memkernel.runtime.folders import SessionFolder
from memkernel.store import Database
from memkernel.sync.rejected import RejectedFolder, record
from memkernel.sync.scan import Scanner

_REASON = "the session was ended or deleted before this was saved"


def salvage(database: Database, folder: SessionFolder, rejected: RejectedFolder) -> None:
    """Put aside the texts of a session's writable mounts that are not what their stores hold.

    Raises:
        DatabaseUnavailableError: the stores cannot be asked.
        OSError: a mount cannot be read, or a text cannot be kept.
    """
    for slug, store_id in folder.note.stores.items():
        for path, content, head in _unsaved(database, folder, slug, store_id):
            rejected.put(
                record(
                    memory_store_id=store_id,
                    session_id=folder.note.session_id,
                    path=path,
                    operation="created" if head is None else "modified",
                    content=content,
                    reason=_REASON,
                    base_version_id=None if head is None else head.memory_version_id,
                    base_sha256=None if head is None else head.content_sha256,
                )
            )


def _unsaved(
    database: Database, folder: SessionFolder, slug: str, store_id: str
) -> Iterator[tuple[str, bytes, Memory | None]]:
    files = folder.mount(slug).files
    if not files.is_dir():
        return
    with closing(Scanner(files)) as scanner:
        for path, file in scanner.scan(deep=True).files.items():
            try:
                head = database.memories.at_path(store_id, path, view="basic")
            except MemoryNotFoundError:
                head = None
            except StoreNotFoundError:
                return  # deleted with all that it knew: so is this
            content = scanner.read(path)
            if content is not None and (head is None or head.content_sha256 != file.sha256.hex()):
                yield path, content, head
