"""One mount of a session and its store, kept alike: what `sync` does after each cell (CONTRACT D).

SANDBOX.md, Decisions 9 to 16.

The order in which things happen is what makes a crash between any two of them harmless:

1. The mount is scanned, and what was changed is read.
2. Under the store's lock the changes become versions, and the baseline's entries of those paths with them: one
   transaction.
3. What is not saved is put into the folder of rejected changes, on the disk.
4. The database is told that files are about to change; then they are written and removed, each at once.
5. The database is told what is on disk now.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from memkernel.errors import DatabaseError, SessionNotFoundError, SessionOverError, StoreNotFoundError, SyncError
from memkernel.models import Actor, Attachment, Cause, Change, ConflictPolicy, Operation, RefusedFile, StoreReport
from memkernel.store import Database
from memkernel.store.mount_records import Heads, Judged, Pulse, Texts
from memkernel.sync import plan
from memkernel.sync.baseline import Baseline
from memkernel.sync.files import MountFiles
from memkernel.sync.keeping import NOBODYS, READ_ONLY, RESET, Keeper
from memkernel.sync.looking import Found, Looker, unseen
from memkernel.sync.merging import merge_all
from memkernel.sync.outcome import Outcome, trouble_of_disk
from memkernel.sync.pulling import Puller
from memkernel.sync.rejected import RejectedFolder
from memkernel.sync.scan import MOST_ENTRIES, Scan, Scanner

_MOST_ROUNDS: Final = 8

Frozen = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class MountFolders:
    """Where a mount is on the host; the last two are outside it, on the same file system."""

    files: Path
    nonce: Path
    aside: Path


@dataclass(frozen=True, slots=True)
class MountStatus:
    """How a mount stands: paths that the next sync would save, and those that it would bring up to the store.

    `held_back` are the paths whose deletion the last sync has undone.
    """

    created: tuple[str, ...]
    modified: tuple[str, ...]
    deleted: tuple[str, ...]
    pulls: tuple[str, ...]
    refused: tuple[RefusedFile, ...]
    held_back: tuple[str, ...]

    @property
    def local(self) -> int:
        """How many paths the next sync would save."""
        return len(self.created) + len(self.modified) + len(self.deleted)

    @property
    def remote(self) -> int:
        """How many paths the next sync would bring up to the store."""
        return len(self.pulls)


@dataclass(frozen=True, slots=True)
class _Request:
    """How one sync is asked for."""

    on_conflict: ConflictPolicy = "error"
    allow_wipe: bool = False
    deep: bool = False
    cause: Cause | None = None
    frozen: Frozen = nullcontext
    final: bool = False
    refuse: str | None = None


class MountSync:
    """Keeps one mount and its store alike. Long-lived: it remembers what is on disk. Threads take turns."""

    def __init__(
        self,
        database: Database,
        session_id: str,
        attachment: Attachment,
        folders: MountFolders,
        rejected: RejectedFolder,
        *,
        owner: tuple[int, int] | None = None,
        enforced: bool = True,
        max_files: int = MOST_ENTRIES,
    ) -> None:
        """Nothing is read or written yet.

        Args:
            database: where the store is.
            session_id: in whose name changes are saved.
            attachment: the store, and how it is attached.
            folders: where the mount is.
            rejected: where changes go that are not saved.
            owner: the uid and gid that files here shall have (Decision 14); None leaves them this process's.
            enforced: whether a read-only mount cannot be written to at all. Where it can, it is scanned and mended.
            max_files: of more files and folders in the mount the rest is left for the next round.

        Raises:
            SyncError: the folder is not there.
        """
        self._mounts, self._memories = database.mounts, database.memories
        self._session_id, self._attachment = session_id, attachment
        self._store_id = attachment.memory_store_id
        self._is_read_only = attachment.access == "read_only"
        self._is_scanned = not self._is_read_only or not enforced
        limits = database.mounts.limits
        self._scanner = Scanner(
            folders.files, name=attachment.mount_path, max_file_bytes=limits.content_bytes, max_files=max_files
        )
        self._files = MountFiles(
            *(folders.files, folders.aside),
            owner=owner,
            name=attachment.mount_path,
            max_file_bytes=limits.content_bytes,
        )
        self._baseline = Baseline(
            database.mounts,
            self._store_id,
            session_id,
            nonce_file=folders.nonce,
            identity=self._scanner.identity(),
        )
        self._keeper = Keeper(self._store_id, session_id, rejected, self._files, self._baseline)
        self._puller = Puller(
            database.mounts,
            self._store_id,
            baseline=self._baseline,
            scanner=self._scanner,
            files=self._files,
            keeper=self._keeper,
        )
        self._looker = Looker(self._scanner, self._baseline)
        self._limit, self._max_files = limits.memories_per_store, max_files
        self._is_settled = self._is_whole = False  # as of the last sync: nothing to look at again; all brought up
        self._undone: set[tuple[str, bytes | None]] = set()  # put aside, not yet undone on disk
        self._held_back: dict[str, bytes] = {}
        self._turn = threading.RLock()

    def close(self) -> None:
        """Let go of the folders; nothing where that was done already."""
        with self._turn:
            self._files.close()
            self._scanner.close()

    def sync(
        self,
        *,
        on_conflict: ConflictPolicy = "error",
        allow_wipe: bool = False,
        deep: bool = False,
        cause: Cause | None = None,
        frozen: Frozen = nullcontext,
        final: bool = False,
    ) -> StoreReport:
        """Save what was changed in the mount, and bring the mount up to the store.

        Args:
            on_conflict: what becomes of files that the store has changed, too (Decision 16).
            allow_wipe: whether all files may be deleted at once (Decision 15).
            deep: read every file, whatever its stamp says.
            cause: the tool call that the changes come from.
            frozen: keeps everything in the sandbox from running, while files are read that have changed.
            final: the mount is about to be removed: nothing is brought into it any more.

        Returns:
            What was done. Where the database, the disk or the mount itself is in trouble, it says so: all is kept.

        Raises:
            SessionOverError: the session was deleted, or has ended.
        """
        return self._run(_Request(on_conflict, allow_wipe, deep, cause, frozen, final))

    def reset(self) -> StoreReport:
        """Put all unsaved changes aside and bring the mount up to the store.

        Raises:
            SessionOverError: as `sync`.
        """
        return self._run(_Request(deep=True, refuse=RESET))

    def apply_held_back(self) -> StoreReport:
        """Make the deletions that the last sync held back, as far as the store still has what was deleted.

        Raises:
            SessionOverError: as `sync`.
        """
        with self._turn:
            heads = self._mounts.heads(self._store_id).by_path
            still = [path for path, sha256 in self._held_back.items() if path in heads and heads[path].sha256 == sha256]
            deletions = [Change(path, None, heads[path].sha256.hex()) for path in still]
            actor = Actor("session_actor", self._session_id)
            made = [one for one in self._memories.apply(self._store_id, deletions, actor=actor) if one]
            self._held_back = {}
            report = self.sync()
            removed = tuple(path for path in report.removed if path not in still)
            return replace(report, deleted=(*made, *report.deleted), removed=removed)

    def status(self) -> MountStatus:
        """What the next sync would do, as far as that can be told without doing it.

        Raises:
            DatabaseError, SyncError: it cannot be told.
        """
        with self._turn:
            self._baseline.load()
            pulse = self._baseline.pulse()
            has_moved = self._has_moved(pulse)
            heads = self._baseline.bring_up(pulse)
            scan = self._scan(_Request())
            self._is_settled = self._is_settled and not has_moved and not (scan and scan.changed)
            found = self._look(scan, heads)
            repair = plan.repair(self._baseline.entries, found.disk, heads, unmountable=self._puller.unmountable)
            changed: dict[str, Operation] = {change.path: change.operation for change in found.changes}
            saved = {} if self._is_read_only else changed
            pulls = {*(head.path for head in repair.puts), *repair.removals} - changed.keys()
            refused = scan.refused.items() if scan else ()
            return MountStatus(
                created=_of_kind("created", saved),
                modified=_of_kind("modified", saved),
                deleted=_of_kind("deleted", saved),
                pulls=tuple(sorted(pulls)),
                refused=tuple(RefusedFile(path, reason) for path, reason in sorted(refused)),
                held_back=tuple(sorted(self._held_back)),
            )

    # -- one sync ------------------------------------------------------------------------------------

    def _run(self, request: _Request) -> StoreReport:
        outcome = Outcome(self._attachment)
        with self._turn:
            try:
                self._sync_to_the_end(request, outcome)
            except SessionOverError:
                raise
            except SessionNotFoundError as error:
                raise SessionOverError(str(error)) from error
            except (DatabaseError, StoreNotFoundError, SyncError) as error:
                self._is_settled = False
                if getattr(error, "saved", False) is None:
                    self._baseline.forget()
                outcome.trouble = error
            except OSError as error:
                self._is_settled = False
                outcome.trouble = trouble_of_disk(self._attachment.mount_path, error)
            except BaseException:
                self._is_settled = False
                self._baseline.forget(interrupted=True)
                raise
        return outcome.report()

    def _sync_to_the_end(self, request: _Request, outcome: Outcome) -> None:
        """Where there were more files than a scan looks at, and some were put aside, look again.

        Not where something was saved: one sync is one transaction at most.
        """
        for _ in range(_MOST_ROUNDS):
            before = len(outcome.conflicts)
            is_complete = self._sync(request, outcome)
            if is_complete:
                return
            if request.final or outcome.has_saved or len(outcome.conflicts) == before:
                break
        outcome.notes.append(f"there are more than {self._max_files:,} files and folders; the rest was not looked at")

    def _sync(self, request: _Request, outcome: Outcome) -> bool:
        """One round; whether the scan saw everything."""
        self._baseline.load()
        pulse = self._baseline.pulse()
        self._check_session(pulse)
        self._keeper.collect(self._mounts, outcome)
        scan = self._scan(request)
        if self._is_settled and not self._has_moved(pulse) and not (scan and scan.changed):
            return True
        self._is_settled = False
        is_frozen = scan is not None and scan.changed and request.frozen is not nullcontext
        with request.frozen() if is_frozen else nullcontext():
            scan = self._scanner.scan() if is_frozen else scan
            found = self._look(scan, self._baseline.bring_up(pulse))
        outcome.refused += self._looker.newly_refused(scan) if scan else []
        decision = self._publish(found, request, outcome)
        self._keeper.put_aside(decision.rejected, found.contents, outcome)
        self._undone.update((one.change.path, one.change.sha256) for one in decision.rejected)
        self._held_back = {path: self._baseline.entries[path].sha256 for path in decision.held_back}
        outcome.held_back = decision.held_back
        if not request.final:
            self._is_whole = False
            self._is_whole = self._bring_up(found, decision, outcome)
            self._is_settled = self._is_whole and not found.has_unstable
        return found.disk.complete

    def _has_moved(self, pulse: Pulse) -> bool:
        """Whether the store is another one than the heads that are known."""
        return (pulse.seq, pulse.archived) != (self._baseline.heads.seq, self._baseline.heads.archived)

    def _check_session(self, pulse: Pulse) -> None:
        if pulse.session_status is None:
            raise SessionOverError(f"session {self._session_id} was deleted")
        if pulse.session_status == "terminated":
            raise SessionOverError(f"session {self._session_id} has ended")

    def _scan(self, request: _Request) -> Scan | None:
        return self._scanner.scan(deep=request.deep) if self._is_scanned else None

    def _look(self, scan: Scan | None, heads: Heads) -> Found:
        return unseen(self._baseline.entries) if scan is None else self._looker.look(scan, heads, self._undone)

    # -- saving --------------------------------------------------------------------------------------

    def _publish(self, found: Found, request: _Request, outcome: Outcome) -> plan.Decision:
        """Save what can be saved. What is decided on heads that are no longer the newest is decided again."""
        entries = self._baseline.entries
        rules = self._rules(found, request)
        wiped = plan.is_wiped(entries, found.disk)

        def decide(heads: Heads, texts: Texts) -> plan.Decision:
            decision = plan.decide(found.changes, found.contents, heads, rules, wiped=wiped)
            if not decision.mergeable:
                return decision
            merged = merge_all(decision.mergeable, found.contents, heads, texts, self._mounts.limits.content_bytes)
            return plan.decide(found.changes, found.contents, heads, rules, wiped=wiped, merged=merged)

        known_heads = self._baseline.heads
        decision = decide(known_heads, lambda ids: self._mounts.texts(self._store_id, ids))
        if not decision.edits:
            return decision
        judged = Judged((), False)

        def judge(heads: Heads, texts: Texts) -> Judged:
            nonlocal decision, judged
            decision = decision if heads is known_heads else decide(heads, texts)
            judged = Judged(decision.edits, self._will_pull(found, decision, heads))
            return judged

        published = self._mounts.publish(self._store_id, self._session_id, known_heads, judge, cause=request.cause)
        unlike = [edit.path for edit in judged.edits if not edit.on_disk]
        self._baseline.published(published, unlike, pulls=judged.pulls and bool(judged.edits))
        outcome.saved(judged.edits, published.versions)
        return decision

    def _rules(self, found: Found, request: _Request) -> plan.Rules:
        refuse = request.refuse
        if self._is_read_only:
            refuse = READ_ONLY
        elif not self._baseline.is_ready:
            refuse = NOBODYS
        return plan.Rules(self._limit, request.on_conflict, request.allow_wipe, refuse, found.known)

    def _will_pull(self, found: Found, decision: plan.Decision, heads: Heads) -> bool:
        """Whether files may have to be written or removed; to say so needlessly costs a statement."""
        undoes = decision.rejected or any(not edit.on_disk for edit in decision.edits)
        return bool(undoes) or found.known is not None or not self._is_whole or self._baseline.is_behind(heads)

    # -- bringing up ---------------------------------------------------------------------------------

    def _bring_up(self, found: Found, decision: plan.Decision, outcome: Outcome) -> bool:
        """Bring the files up to the heads; whether all of them are."""
        baseline = self._baseline
        repair = plan.repair(baseline.entries, found.disk, baseline.heads, unmountable=self._puller.unmountable)
        told = {*(one.path for one in outcome.conflicts), *decision.held_back}
        is_whole = True
        if repair.touches_disk:
            baseline.begin_pull(restores=bool(decision.rejected))
            is_whole = self._puller.apply(repair, found.disk, outcome, told)
        for path, entry in repair.settled.items():
            baseline.set(path, entry)
        baseline.end_pull()
        self._undone.clear()
        return is_whole


def _of_kind(operation: Operation, changed: Mapping[str, Operation]) -> tuple[str, ...]:
    return tuple(sorted(path for path, its in changed.items() if its == operation))
