"""`RejectedChange`: what a sandbox wrote and the store did not take; kept aside until a person settles it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from datetime import datetime
from typing import Final, Literal

from memkernel.errors import InvalidInputError, MemoryNotFoundError, NotFoundError, StoreArchivedError
from memkernel.handle.diff import Diff
from memkernel.handle.records import Records
from memkernel.handle.store import Store
from memkernel.models import ABSENT, Memory, MemoryVersion, Operation
from memkernel.render.cells import code, moment, size
from memkernel.render.lists import row_of
from memkernel.sync.rejected import RejectedFolder, RejectedRecord

How = Literal["mine", "theirs", "both"]


class _Kept:
    """What a change is settled with: no field of it, so no column in a table of changes."""

    _of: Store
    _folder: RejectedFolder


@dataclass(frozen=True)
class RejectedChange(_Kept):
    """A change that was put aside, with its text, for 30 days.

    Attributes:
        id: its name among the texts put aside.
        store: the store's slug.
        path: the memory's path.
        operation: what the sandbox did there: created, modified or deleted.
        content: what the file held; None where it was deleted.
        base_version: the id of the version that the sandbox had started from; None where there was none.
        reason: why the store did not take it.
        at: when.
    """

    id: str
    store: str
    path: str
    operation: Operation
    content: bytes | None = field(repr=False)
    base_version: str | None
    reason: str
    at: datetime
    of: InitVar[Store]
    folder: InitVar[RejectedFolder]

    def __post_init__(self, of: Store, folder: RejectedFolder) -> None:
        object.__setattr__(self, "_of", of)
        object.__setattr__(self, "_folder", folder)

    @property
    def text(self) -> str:
        """The content as text; bytes that are none are shown as marks."""
        return (self.content or b"").decode(errors="replace")

    def head(self) -> MemoryVersion | None:
        """The version that the store has at its path now, with its text; None where there is no memory."""
        memory = self._memory()
        return None if memory is None else self._of.version(None, memory.memory_version_id)

    def diff(self) -> Diff:
        """What it would change in the store as that is now."""
        old = self.head()
        new = None if self.content is None else self._as_version(old)
        return Diff.of(self.path, old, new)

    def apply(self, path: str | None = None) -> Memory | None:
        """Write it after all, over what the store holds now, and forget it here.

        Args:
            path: another path for it.

        Returns:
            The memory; None where one was deleted.

        Raises:
            PreconditionFailedError: somebody changed the memory at this very moment.
            InvalidContentError: the file is no text of UTF-8, or too large.
            RefusedError: the store is archived or full.
        """
        try:
            written = self._write(self.path if path is None else path)
        except StoreArchivedError:
            raise StoreArchivedError(self._of.id, name=self._of.name) from None
        self.discard()
        return written

    def _write(self, path: str) -> Memory | None:
        head = self._memory(path)
        if self.content is not None:
            return self._of.write(path, self.content, expect=ABSENT if head is None else head.content_sha256)
        if head is not None:
            self._of.delete(path, expect=head.content_sha256)
        return None

    def discard(self) -> None:
        """Forget it; what the store holds stays."""
        self._folder.remove(self.id)

    def _memory(self, path: str | None = None) -> Memory | None:
        try:
            return self._of.memory(self.path if path is None else path)
        except MemoryNotFoundError:
            return None

    def _as_version(self, old: MemoryVersion | None) -> MemoryVersion:
        """The text in the shape that a Diff compares; it is no version, and has no id."""
        return MemoryVersion(
            id="",
            memory_store_id=self._of.id,
            memory_id="" if old is None else old.memory_id,
            seq=0,
            ordinal=0,
            operation=self.operation,
            path=self.path,
            content=self.text,
            content_sha256=None,
            content_size_bytes=len(self.content or b""),
            created_at=self.at,
            created_by=None,
            redacted_at=None,
            redacted_by=None,
        )


@row_of.register
def _(record: RejectedChange) -> Mapping[str, object]:
    return {
        "at": moment(record.at),
        "store": record.store,
        "path": code(record.path),
        "operation": record.operation,
        "size": size(None if record.content is None else len(record.content)),
        "reason": record.reason,
    }


def rejected_changes(folder: RejectedFolder, stores: Sequence[Store]) -> Records[RejectedChange]:
    """What was put aside of these stores, oldest first; by whichever sandbox of this machine."""
    changes = [_change(record, store, folder) for store in stores for record in folder.list(memory_store_id=store.id)]
    return Records(sorted(changes, key=lambda change: (change.at, change.path)), kind=RejectedChange)


def settle(changes: Sequence[RejectedChange], path: str, how: How) -> str | None:
    """Settle what was put aside at a path.

    Args:
        changes: all that was, oldest first.
        path: the memory's path.
        how: `mine` writes the newest text over the store's, `both` writes it beside it, `theirs` forgets them all.

    Returns:
        The path that was written or deleted; None for `theirs`.

    Raises:
        NotFoundError: nothing was put aside there.
        InvalidInputError: `how` is none of these; several stores have something there; `both` of a deletion.
    """
    if how not in ("mine", "theirs", "both"):
        raise InvalidInputError(f"{how!r} settles nothing; it is mine, theirs or both")
    there = [change for change in changes if change.path == path]
    if not there:
        raise NotFoundError(f"nothing was put aside at {path}", hint="`%sandbox changes` lists what was.")
    if len({change.store for change in there}) > 1:
        raise InvalidInputError(f"{path} was put aside in several stores", hint="Name the store as well.")
    if how == "theirs":
        for change in there:
            change.discard()
        return None
    newest = there[-1]
    if how == "mine":
        newest.apply()
        return path
    if newest.content is None:
        raise InvalidInputError(
            f"{path} was deleted in the sandbox: there is no second text", hint="Say mine or theirs."
        )
    beside = _free_path(newest)
    newest.apply(beside)
    return beside


_CONFLICT: Final = ".conflict"


def _free_path(change: RejectedChange) -> str:
    """`/a.conflict.md` for `/a.md`, or the first such name that no memory has."""
    folder, slash, name = change.path.rpartition("/")
    stem, dot, extension = name.rpartition(".")
    stem, extension = (stem, dot + extension) if stem else (name, "")
    number = 1
    while True:
        path = f"{folder}{slash}{stem}{_CONFLICT}{number if number > 1 else ''}{extension}"
        if change._memory(path) is None:  # pyright: ignore[reportPrivateUsage]  # its own module
            return path
        number += 1


def _change(record: RejectedRecord, store: Store, folder: RejectedFolder) -> RejectedChange:
    return RejectedChange(
        id=record.id,
        store=store.slug,
        path=record.path,
        operation=record.operation,
        content=record.content,
        base_version=record.base_version_id,
        reason=record.reason,
        at=record.at,
        of=store,
        folder=folder,
    )
