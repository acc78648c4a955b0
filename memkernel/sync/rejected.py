"""Changes of mounts that were not saved: kept outside the mounts, until a person has settled them (CONTRACT D.4).

One file a change, 0600: a line of JSON, then the content. Each is written whole or not at all, and is on the disk
before the mount is touched. The same text rejected again at the same path is the same record.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from memkernel.errors import NotFoundError
from memkernel.models import Operation

KEPT: Final = timedelta(days=30)

_ID: Final = re.compile(r"rej_[0-9a-f]{32}")
_PARTIAL: Final = ".partial-"


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
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for one in records:
            self._write(one)
        _sync_folder(self.directory)

    def _write(self, one: RejectedRecord) -> None:
        head = {**asdict(replace(one, content=None)), "at": one.at.isoformat(), "has_content": one.content is not None}
        del head["content"]
        handle, name = tempfile.mkstemp(prefix=_PARTIAL, dir=self.directory)  # 0600
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(json.dumps(head).encode() + b"\n" + (one.content or b""))
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, self.directory / one.id)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(name)
            raise

    def list(self, *, memory_store_id: str | None = None, session_id: str | None = None) -> list[RejectedRecord]:
        """The records, oldest first; of one store, or of one session."""
        return sorted(
            (
                one
                for one in self._all()
                if memory_store_id in (None, one.memory_store_id) and session_id in (None, one.session_id)
            ),
            key=lambda one: (one.at, one.path),
        )

    def has(self, rejected_id: str) -> bool:
        """Whether there is a record of this id."""
        return self._read(rejected_id) is not None

    def get(self, rejected_id: str) -> RejectedRecord:
        """One record.

        Raises:
            NotFoundError: there is none of this id.
        """
        found = self._read(rejected_id)
        if found is None:
            raise NotFoundError(
                f"there is no rejected change {rejected_id!r}", hint="`%sandbox changes` lists those that there are."
            )
        return found

    def remove(self, rejected_id: str) -> bool:
        """Forget a record; whether it was there."""
        if not _ID.fullmatch(rejected_id):
            return False
        try:
            (self.directory / rejected_id).unlink()
        except FileNotFoundError:
            return False
        return True

    def expire(self, age: timedelta = KEPT, *, now: datetime | None = None) -> int:
        """Forget what is older, and what a crash left half written; how many records that were."""
        limit = (now or datetime.now(UTC)) - age
        expired = [one.id for one in self._all() if one.at < limit]
        for name in self._names(_PARTIAL):
            with suppress(FileNotFoundError):
                file = self.directory / name
                if datetime.fromtimestamp(file.stat().st_mtime, UTC) < limit:
                    file.unlink()
        return sum(self.remove(rejected_id) for rejected_id in expired)

    def erase(self, memory_store_id: str, sha256s: Collection[str] | None = None) -> int:
        """Erase a store's records, or those with (or made from) contents of these hashes; how many that were."""
        erased = [
            one.id
            for one in self.list(memory_store_id=memory_store_id)
            if sha256s is None or one.sha256 in sha256s or one.base_sha256 in sha256s
        ]
        return sum(self.remove(rejected_id) for rejected_id in erased)

    def _all(self) -> Iterator[RejectedRecord]:
        for name in self._names("rej_"):
            one = self._read(name)
            if one is not None:
                yield one

    def _names(self, prefix: str) -> list[str]:
        try:
            return [name for name in os.listdir(self.directory) if name.startswith(prefix)]
        except FileNotFoundError:
            return []

    def _read(self, name: str) -> RejectedRecord | None:
        """The record of this name; None where there is none, or where it is not one."""
        if not _ID.fullmatch(name):
            return None
        try:
            head, _, content = (self.directory / name).read_bytes().partition(b"\n")
            facts: dict[str, Any] = json.loads(head)
            has_content, at = facts.pop("has_content"), datetime.fromisoformat(facts.pop("at"))
            return RejectedRecord(**facts, content=content if has_content else None, at=at)
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
