"""The mounts of a session, synced as one: an error of one store stops no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from memkernel.errors import MemkernelError
from memkernel.models import Attachment, Cause, ConflictPolicy, StoreReport, SyncReport
from memkernel.runtime import reports
from memkernel.sync.engine import MountStatus, MountSync


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """How all mounts are synced; see `MountSync.sync`."""

    on_conflict: ConflictPolicy
    allow_wipe: bool = False
    deep: bool = False
    final: bool = False


class Mounted:
    """The stores of a session, each with what keeps it in sync.

    Attributes:
        cause: the tool call that changes in the mounts come from; None where they come from a person's cell.

    Args:
        mounts: the stores.
        frozen: keeps everything in the sandbox from running.
        remember: keeps where the changes come from, for whoever recovers the session.
    """

    def __init__(
        self,
        mounts: Sequence[tuple[Attachment, MountSync]],
        frozen: Callable[[], AbstractContextManager[None]],
        remember: Callable[[Cause | None], None],
    ) -> None:
        self._mounts = tuple(mounts)
        self._frozen = frozen
        self._remember = remember
        self.cause: Cause | None = None
        self._untold = SyncReport()

    def written_by(self, cause: Cause | None) -> None:
        """From now on this tool call, or none, is what changes in the mounts come from, whenever they are saved."""
        if cause != self.cause:
            self._remember(cause)
            self.cause = cause

    def sync(self, options: SyncOptions) -> SyncReport:
        """Save what lies in the mounts, and bring them up to their stores."""
        report = self._each(
            lambda mount: mount.sync(
                on_conflict=options.on_conflict,
                allow_wipe=options.allow_wipe,
                deep=options.deep,
                cause=self.cause,
                frozen=self._frozen,
                final=options.final,
            )
        )
        if self.cause is not None:
            self._untold = reports.joined(self._untold, report)
        return report

    def untold(self) -> SyncReport:
        """What has become of tool calls' files since this was last asked, also between the calls."""
        report, self._untold = self._untold, SyncReport()
        return report

    def reset(self, memory_store_id: str | None = None) -> SyncReport:
        """Put what was changed aside, in all mounts or in one."""
        return self._each(lambda mount: mount.reset(), memory_store_id)

    def apply_held_back(self) -> SyncReport:
        """Make the deletions that the wipe guard held back."""
        return self._each(lambda mount: mount.apply_held_back())

    def pending(self) -> list[tuple[Attachment, MountStatus]]:
        """For each mount, what the next sync would do.

        Raises:
            DatabaseError, SyncError: it cannot be told.
        """
        return [(attachment, mount.status()) for attachment, mount in self._mounts]

    def close(self) -> None:
        """Let go of the folders."""
        for _, mount in self._mounts:
            mount.close()

    def _each(self, work: Callable[[MountSync], StoreReport], memory_store_id: str | None = None) -> SyncReport:
        chosen = [one for one in self._mounts if memory_store_id in (None, one[0].memory_store_id)]
        return SyncReport(tuple(_guarded(attachment, mount, work) for attachment, mount in chosen))


def _guarded(attachment: Attachment, mount: MountSync, work: Callable[[MountSync], StoreReport]) -> StoreReport:
    """What a sync did; an error of one store is its report's trouble."""
    try:
        return work(mount)
    except (MemkernelError, OSError) as error:
        return reports.troubled(attachment, error)
