"""Changes of mounts that were not saved: kept outside the mounts, until a person has settled them (CONTRACT D.4).

A folder a store, and in it a file a change, 0600: a line of JSON, then the content. Each is written whole or not at
all, and is on the disk before the mount is touched. The same text rejected again at the same path is the same record.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from memkernel.errors import InvalidInputError, NotFoundError
from memkernel.models import Operation
from memkernel.sync.reading import write_all_back

KEPT: Final = timedelta(days=30)

_ID: Final = re.compile(r"rej_[0-9a-f]{32}")
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
_PARTIAL: Final = ".partial-"
_SYNCED_ONE_BY_ONE: Final = 8


@dataclass(frozen=True, slots=True)
class RejectedRecord:
    """A change that was not saved.

    Attributes:
        id: `rej_…`, made of where the change was and what it was.
        memory_store_id: the store that it was meant for.
        session_id: the session whose mount it was made in.
        path: the memory path.
        operation: what the change would have been.
        content: the bytes of the file; None for a deletion. They need not be text.
        base_version_id: the version that the file came from; None where it was new.
        base_sha256: the SHA-256 of that version's text.
        reason: why it was not saved: the end of a sentence that begins with the path.
        at: when.
    """

    id: str
    memory_store_id: str
    session_id: str
    path: str
    operation: Operation
    content: bytes | None = field(repr=False)
    base_version_id: str | None
    base_sha256: str | None
    reason: str
    at: datetime

    @property
    def sha256(self) -> str | None:
        """The SHA-256 of the content; None for a deletion."""
        return None if self.content is None else hashlib.sha256(self.content).hexdigest()


def record(
    *,
    memory_store_id: str,
    session_id: str,
    path: str,
    operation: Operation,
    content: bytes | None,
    reason: str,
    base_version_id: str | None = None,
    base_sha256: str | None = None,
) -> RejectedRecord:
    """A new record, as of now."""
    digest = "" if content is None else hashlib.sha256(content).hexdigest()
    place = "\0".join((memory_store_id, session_id, path, digest))
    return RejectedRecord(
        id="rej_" + hashlib.sha256(place.encode()).hexdigest()[:32],
        memory_store_id=memory_store_id,
        session_id=session_id,
        path=path,
        operation=operation,
        content=content,
        base_version_id=base_version_id,
        base_sha256=base_sha256,
        reason=reason,
        at=datetime.now(UTC),
    )


class RejectedFolder:
    """The folder of all rejected changes of an installation. Several processes may use it at once."""

    def __init__(self, directory: Path) -> None:
        """Nothing is made yet: that happens with the first change that is put here."""
        self.directory = directory

    @classmethod
    def of(cls, home: Path) -> RejectedFolder:
        """The one of an installation, by its MEMKERNEL_HOME."""
        return cls(home / "rejected")

    def put(self, *records: RejectedRecord) -> None:
        """Keep them; once this returns they survive a crash.

        Raises:
            OSError: the disk is full, or cannot be written.
        """
        if not records:
            return
        together = len(records) > _SYNCED_ONE_BY_ONE  # then the disk is waited for once
        written: list[tuple[Path, Path]] = []
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            for one in records:
                folder = self._folder(one.memory_store_id)
                folder.mkdir(mode=0o700, exist_ok=True)
                written.append((_written(one, folder, sync=not together), folder / one.id))
            for folder in {place.parent for _, place in written}:
                with _opened(folder) as handle:
                    if together:
                        write_all_back(handle)
            while written:
                os.replace(*written[-1])
                written.pop()
        finally:
            for partial, _ in written:
                partial.unlink(missing_ok=True)
        for folder in {self._folder(one.memory_store_id) for one in records}:
            with _opened(folder) as handle:
                os.fsync(handle)

    def _folder(self, memory_store_id: str) -> Path:
        if not _NAME.fullmatch(memory_store_id):
            raise InvalidInputError(f"{memory_store_id!r} is no memory store's id")
        return self.directory / memory_store_id

    def list(
        self, *, memory_store_id: str | None = None, session_id: str | None = None, path: str | None = None
    ) -> list[RejectedRecord]:
        """The records, oldest first; of one store, one session, one path."""
        wanted = {"session_id": session_id, "path": path}
        wanted = {name: value for name, value in wanted.items() if value is not None}
        found = [_read(file, wanted) for file in self._files(memory_store_id)]
        return sorted((one for one in found if one is not None), key=lambda one: (one.at, one.path))

    def has(self, rejected_id: str) -> bool:
        """Whether there is a record of this id."""
        return self._find(rejected_id) is not None

    def get(self, rejected_id: str) -> RejectedRecord:
        """One record.

        Raises:
            NotFoundError: there is none of this id.
        """
        file = self._find(rejected_id)
        found = file and _read(file, {})
        if not found:
            raise NotFoundError(
                f"there is no rejected change {rejected_id!r}", hint="`%sandbox changes` lists those that there are."
            )
        return found

    def remove(self, rejected_id: str) -> bool:
        """Forget a record; whether it was there."""
        file = self._find(rejected_id)
        return file is not None and _unlinked(file)

    def expire(self, age: timedelta = KEPT, *, now: datetime | None = None) -> int:
        """Forget what is older, and what a crash left half written; how many records that were."""
        limit = (now or datetime.now(UTC)) - age
        expired = [file for file in self._files() if (one := _read(file, {})) and one.at < limit]
        for partial in self._files(kind=_PARTIAL):
            with suppress(FileNotFoundError):
                if datetime.fromtimestamp(partial.stat().st_mtime, UTC) < limit:
                    partial.unlink()
        return sum(_unlinked(file) for file in expired)

    def erase(self, memory_store_id: str, sha256s: Collection[str] | None = None) -> int:
        """Erase a store's records, or those with (or made from) contents of these hashes; how many that were."""
        erased = [
            one.id
            for one in self.list(memory_store_id=memory_store_id)
            if sha256s is None or one.sha256 in sha256s or one.base_sha256 in sha256s
        ]
        return sum(_unlinked(self._folder(memory_store_id) / rejected_id) for rejected_id in erased)

    def _files(self, memory_store_id: str | None = None, kind: str = "rej_") -> Iterator[Path]:
        """The files whose names begin so: of one store, or of all."""
        stores = _names(self.directory) if memory_store_id is None else [memory_store_id]
        for store_id in stores:
            if _NAME.fullmatch(store_id):
                folder = self.directory / store_id
                yield from (folder / name for name in _names(folder) if name.startswith(kind))

    def _find(self, rejected_id: str) -> Path | None:
        if not _ID.fullmatch(rejected_id):
            return None
        places = (self.directory / store_id / rejected_id for store_id in _names(self.directory))
        return next((place for place in places if place.is_file()), None)


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _written(one: RejectedRecord, folder: Path, *, sync: bool) -> Path:
    """The record in a file that has no name of its own yet."""
    head = {**asdict(replace(one, content=None)), "at": one.at.isoformat(), "has_content": one.content is not None}
    del head["content"]
    handle, name = tempfile.mkstemp(prefix=_PARTIAL, dir=folder)  # 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(json.dumps(head).encode() + b"\n" + (one.content or b""))
            file.flush()
            if sync:
                os.fsync(file.fileno())
    except BaseException:
        os.unlink(name)
        raise
    return Path(name)


def _read(file: Path, wanted: Mapping[str, str]) -> RejectedRecord | None:
    """The record in a file; None where there is none, it is none, or it is not what is wanted."""
    try:
        with file.open("rb") as opened:
            facts: dict[str, Any] = json.loads(opened.readline())
            if not _ID.fullmatch(file.name) or any(facts[name] != value for name, value in wanted.items()):
                return None
            has_content, at = facts.pop("has_content"), datetime.fromisoformat(facts.pop("at"))
            return RejectedRecord(**facts, content=opened.read() if has_content else None, at=at)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _unlinked(file: Path) -> bool:
    """Remove a file; whether it was there."""
    try:
        file.unlink()
    except FileNotFoundError:
        return False
    return True


@contextmanager
def _opened(folder: Path) -> Generator[int]:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield handle
    finally:
        os.close(handle)
