"""Makes records of what a sync does not save, before the mount forgets it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from memkernel.models import SyncConflict
from memkernel.store.mounts import Mounts
from memkernel.sync.aside import PutAside
from memkernel.sync.baseline import Baseline
from memkernel.sync.files import MountFiles
from memkernel.sync.merging import is_contained
from memkernel.sync.outcome import Outcome
from memkernel.sync.plan import LocalChange, Rejection
from memkernel.sync.rejected import RejectedFolder, RejectedRecord, record

READ_ONLY: Final = "was changed, but the mount is read-only"
RESET: Final = "was given up by a reset"
NOBODYS: Final = "was found in the mount when it was filled"
_OVERTAKEN: Final = "was written while the store's version was brought in"
_LEFT_OVER: Final = "was replaced by a sync that was cut short"
_NO_CONFLICT: Final = (READ_ONLY, RESET)


class Keeper:
    """Puts the texts of one mount into the folder of rejected changes."""

    def __init__(
        self, memory_store_id: str, session_id: str, rejected: RejectedFolder, files: MountFiles, baseline: Baseline
    ) -> None:
        self._store_id, self._session_id = memory_store_id, session_id
        self._rejected, self._files, self._baseline = rejected, files, baseline

    def put_aside(self, rejections: Sequence[Rejection], contents: Mapping[str, bytes], outcome: Outcome) -> None:
        """Keep changes that were found in the mount; they can be undone there then.

        Raises:
            OSError: the disk is full; nothing may be undone.
        """
        records = [self._record(one.change, contents.get(one.change.path), one.reason) for one in rejections]
        # Where nobody vouches for the mount, a crash may have come between this and that: then it has its reason.
        is_new = [self._baseline.is_ready or not self._rejected.has(one.id) for one in records]
        self._rejected.put(*(one for one, new in zip(records, is_new, strict=True) if new))
        for one in records:
            _tell(one, outcome)

    def keep(self, asides: Iterable[PutAside], outcome: Outcome, reason: str = _OVERTAKEN) -> None:
        """Keep what was pushed out of the mount, and let go of it there.

        Raises:
            OSError: the disk is full, or it cannot be read now; it stays where it is.
        """
        for aside in asides:
            content = aside.content
            if content is None:
                outcome.notes.append(f"{aside.path} could not be kept: {aside.reason or 'it cannot be read'}")
            else:
                base = self._baseline.entries.get(aside.path)
                change = LocalChange(aside.path, "modified" if base else "created", aside.sha256, base)
                one = self._record(change, content, reason)
                self._rejected.put(one)
                _tell(one, outcome)
            self._files.discard(aside)

    def collect(self, mounts: Mounts, outcome: Outcome) -> None:
        """Keep what lies aside: written late into a file that had been replaced, or left there by a crash.

        Texts that the store has are no loss.

        Raises:
            OSError, DatabaseUnavailableError: it stays where it is.
        """
        self.keep(self._files.latecomers(), outcome)
        left_over = self._files.leftovers()
        if not left_over:
            return
        saved = mounts.saved_hashes(self._store_id, [one.sha256 for one in left_over if one.sha256])
        for aside in left_over:
            if aside.sha256 in saved or self._is_merged(mounts, aside):
                self._files.discard(aside)
            else:
                self.keep([aside], outcome, _LEFT_OVER)

    def _is_merged(self, mounts: Mounts, aside: PutAside) -> bool:
        """Whether it was merged into what the store has, and waited to be replaced by that."""
        base, head = self._baseline.entries.get(aside.path), self._baseline.heads.by_path.get(aside.path)
        content = aside.content
        if base is None or head is None or content is None:
            return False
        texts = mounts.texts(self._store_id, {base.version_id, head.version_id})
        return is_contained(texts.get(base.version_id), content, texts.get(head.version_id))

    def _record(self, change: LocalChange, content: bytes | None, reason: str) -> RejectedRecord:
        return record(
            memory_store_id=self._store_id,
            session_id=self._session_id,
            path=change.path,
            operation=change.operation,
            content=content,
            reason=reason,
            base_version_id=change.base and change.base.version_id,
            base_sha256=change.base and change.base.sha256.hex(),
        )


def _tell(one: RejectedRecord, outcome: Outcome) -> None:
    if one.reason in _NO_CONFLICT:
        outcome.notes.append(f"{one.path} {one.reason}; its text was put aside")
    else:
        outcome.conflicts.append(SyncConflict(one.path, one.reason, one.id))
