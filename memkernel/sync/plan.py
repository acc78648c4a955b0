"""What a mount's files, its baseline and the store's heads come to (CONTRACT D.4; SANDBOX, Decisions 9 to 16). Pure.

`local_changes` says what the files did since the baseline, `decide` what of that is saved and what is put aside, and
`repair` what has to be written and removed, so that the files are what the heads are then.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from memkernel import paths
from memkernel.models import ConflictPolicy, Operation
from memkernel.store.mount_records import Edit, Entry, Head, Heads

_ORDER: Final[tuple[Operation, ...]] = ("deleted", "modified", "created")
_WIPE: Final = 2


@dataclass(frozen=True, slots=True)
class Disk:
    """What a scan found.

    Attributes:
        files: the legal files: path to SHA-256.
        refused: what no memory can be; it counts as unchanged at its path, and so does all below it.
        unreadable: folders that could not be read (`""`: the root); all below them counts as unchanged.
        complete: False where the scan gave up early: what it did not find may be there.
    """

    files: Mapping[str, bytes]
    refused: Collection[str] = ()
    unreadable: Sequence[str] = ()
    complete: bool = True
    _folders: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_folders", frozenset({*self.refused, *self.unreadable} - {"/"}))

    def is_unknown(self, path: str) -> bool:
        """Whether the scan cannot say what is at the path: it counts as unchanged."""
        if path in self.files:
            return False
        return not self.complete or self._is_covered(path)

    def _is_covered(self, path: str) -> bool:
        if "" in self.unreadable or "/" in self.unreadable:
            return True
        return bool(self._folders) and (path in self._folders or not self._folders.isdisjoint(paths.ancestors(path)))


class LocalChange(NamedTuple):
    """What became of a path since the baseline. `sha256` is None for a deletion, `base` for a creation."""

    path: str
    operation: Operation
    sha256: bytes | None
    base: Entry | None


class Rejection(NamedTuple):
    """A change that is not saved, and why: the end of a sentence that begins with its path."""

    change: LocalChange
    reason: str


class Merged(NamedTuple):
    """What merging a path came to: a text, or why there is none."""

    content: bytes | None
    sha256: bytes | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Rules:
    """By what is decided.

    Attributes:
        limit: so many memories the store may hold.
        on_conflict: Decision 16.
        allow_wipe: whether deletions may leave nothing (Decision 15).
        refuse: why nothing of this mount is saved: it is read-only, or reset, or nobody knows where its files come
            from. Its texts are put aside, its deletions undone.
        known: the mount was left while its files were brought up to the store: these are paths and contents that the
            store itself brought, and what is gone may have been removed so.
    """

    limit: int
    on_conflict: ConflictPolicy = "error"
    allow_wipe: bool = False
    refuse: str | None = None
    known: frozenset[tuple[str, bytes]] | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What is saved (deletions first, then updates, then creations), what is put aside, and what is held back.

    `mergeable` were changed on both sides; hand their `Merged` to `decide` to have them saved.
    """

    edits: tuple[Edit, ...] = ()
    rejected: tuple[Rejection, ...] = ()
    held_back: tuple[str, ...] = ()
    mergeable: tuple[LocalChange, ...] = ()


@dataclass(frozen=True, slots=True)
class Repair:
    """What brings the files up to the heads. `settled` are baseline entries that are right without a write."""

    puts: tuple[Head, ...]
    removals: tuple[str, ...]
    settled: Mapping[str, Entry | None]

    @property
    def touches_disk(self) -> bool:
        """Whether a file has to be written or removed."""
        return bool(self.puts or self.removals)


def entry(head: Head) -> Entry:
    """The baseline's entry for a head that is on disk."""
    return Entry(head.memory_id, head.version_id, head.sha256)


def local_changes(
    baseline: Mapping[str, Entry], disk: Disk, known: frozenset[tuple[str, bytes]] | None = None
) -> list[LocalChange]:
    """What the files did since the baseline; contents that are `known` at their path are the store's own doing."""
    changes: list[LocalChange] = []
    for path, base in baseline.items():
        sha256 = disk.files.get(path)
        if sha256 is None:
            if not disk.is_unknown(path):
                changes.append(LocalChange(path, "deleted", None, base))
        elif sha256 != base.sha256:
            changes.append(LocalChange(path, "modified", sha256, base))
    changes.extend(
        LocalChange(path, "created", sha256, None) for path, sha256 in disk.files.items() if path not in baseline
    )
    return [change for change in changes if known is None or (change.path, change.sha256) not in known]


def is_wiped(baseline: Mapping[str, Entry], disk: Disk) -> bool:
    """Whether all files of a mount are gone at once, two or more (Decision 15)."""
    nothing = not disk.files and not disk.refused and not disk.unreadable and disk.complete
    return nothing and len(baseline) >= _WIPE


def decide(
    changes: Sequence[LocalChange],
    contents: Mapping[str, bytes],
    heads: Heads,
    rules: Rules,
    *,
    wiped: bool = False,
    merged: Mapping[str, Merged] | None = None,
) -> Decision:
    """What is made of a mount's changes, on these heads.

    Args:
        changes: of `local_changes`.
        contents: the texts of what was created or modified.
        heads: the store, under its lock.
        rules: by what is decided.
        wiped: of `is_wiped`.
        merged: what the `mergeable` of an earlier decision came to.
    """
    if rules.refuse is not None:
        kept = [change for change in changes if change.sha256 is not None and not _is_so(change, heads)]
        return Decision(rejected=tuple(Rejection(change, rules.refuse) for change in kept))
    if wiped and not rules.allow_wipe:
        held_back = [change.path for change in changes if _still_is(change, heads)]
        return Decision(held_back=tuple(sorted(held_back)))
    judge = _Judge(contents, heads, rules, merged or {})
    return judge.decide(changes)


def _is_so(change: LocalChange, heads: Heads) -> bool:
    """The desired-state rule: what is wanted is there already."""
    head = heads.by_path.get(change.path)
    return head is not None and head.sha256 == change.sha256


def _still_is(change: LocalChange, heads: Heads) -> bool:
    """Whether the memory is where and what the baseline says."""
    head = change.base and heads.by_id.get(change.base.memory_id)
    return head is not None and (head.path, head.sha256) == (change.path, change.base and change.base.sha256)


class _Judge:
    """Goes through the changes of a mount, one after another."""

    def __init__(self, contents: Mapping[str, bytes], heads: Heads, rules: Rules, merged: Mapping[str, Merged]) -> None:
        self._contents, self._heads, self._rules, self._merged = contents, heads, rules, merged
        self._made: frozenset[tuple[str, bytes | None]] = frozenset()  # the same move may have been made here
        self._accepted: list[tuple[LocalChange, Edit]] = []
        self._rejected: list[Rejection] = []
        self._mergeable: list[LocalChange] = []

    def decide(self, changes: Sequence[LocalChange]) -> Decision:
        self._made = frozenset((change.path, change.sha256) for change in changes)
        for change in changes:
            self._look_at(change)
        self._refuse_overlaps()
        return self._decision()

    def _look_at(self, change: LocalChange) -> None:
        if change.operation == "deleted":
            self._look_at_deletion(change)
        elif _is_so(change, self._heads):
            return
        elif change.operation == "created":
            self._look_at_creation(change)
        else:
            self._look_at_edit(change)

    def _look_at_deletion(self, change: LocalChange) -> None:
        head = change.base and self._heads.by_id.get(change.base.memory_id)
        if head is None:
            return
        if _still_is(change, self._heads):
            self._accept(change, head)
        elif self._rules.known is None and (head.path, head.sha256) not in self._made:
            self._reject(change, _what_became(head, change, "was deleted here"))

    def _look_at_creation(self, change: LocalChange) -> None:
        if change.path in self._heads.by_path:
            self._reject(change, "was created both here and in the store")
        else:
            self._accept(change, None)

    def _look_at_edit(self, change: LocalChange) -> None:
        head = change.base and self._heads.by_id.get(change.base.memory_id)
        if head is None:
            self._reject(change, "was edited here and deleted in the store")
        elif _still_is(change, self._heads):
            self._accept(change, head)
        elif head.path != change.path:
            self._reject(change, _what_became(head, change, "was edited here"))
        else:
            self._look_at_both_edited(change, head)

    def _look_at_both_edited(self, change: LocalChange, head: Head) -> None:
        merged = self._merged.get(change.path)
        if merged is None:
            self._mergeable.append(change)
            self._reject(change, "was edited both here and in the store")
        elif merged.content is None:
            self._reject(change, f"was edited both here and in the store: {merged.reason}")
        elif merged.sha256 != head.sha256:
            edit = Edit(change.path, "modified", merged.content, merged.sha256, head, on_disk=False)
            self._accepted.append((change, edit))

    def _accept(self, change: LocalChange, head: Head | None) -> None:
        content = None if change.sha256 is None else self._contents[change.path]
        self._accepted.append((change, Edit(change.path, change.operation, content, change.sha256, head)))

    def _reject(self, change: LocalChange, reason: str) -> None:
        self._rejected.append(Rejection(change, reason))

    def _refuse_overlaps(self) -> None:
        """A creation must not lie above or below what is there afterwards; the files of a mount never do."""
        created = [pair for pair in self._accepted if pair[1].operation == "created"]
        if not created:
            return
        deleted = {edit.path for _, edit in self._accepted if edit.operation == "deleted"}
        there = self._heads.by_path.keys() - deleted
        folders = {above: path for path in there for above in paths.ancestors(path)}
        refused: set[str] = set()
        for change, _ in created:
            above = (above for above in paths.ancestors(change.path) if above in there)
            other = folders.get(change.path) or next(above, None)
            if other is not None:
                refused.add(change.path)
                self._reject(change, f"overlaps with {other}, which the store has")
        self._accepted = [pair for pair in self._accepted if pair[0].path not in refused]

    def _decision(self) -> Decision:
        reason = self._why_none()
        if reason is not None:
            self._rejected += [Rejection(change, reason) for change, _ in self._accepted]
            self._accepted = []
        self._accepted.sort(key=lambda pair: (_ORDER.index(pair[1].operation), pair[1].path))
        self._rejected.sort(key=lambda rejection: rejection.change.path)
        return Decision(
            edits=tuple(edit for _, edit in self._accepted),
            rejected=tuple(self._rejected),
            mergeable=tuple(self._mergeable) if self._rules.on_conflict == "merge" else (),
        )

    def _why_none(self) -> str | None:
        """Why no change of the batch is saved, not even those that nothing is wrong with."""
        if not self._accepted:
            return None
        if self._rejected and self._rules.on_conflict == "error":
            return f"was not saved, because {self._rejected[0].change.path} {self._rejected[0].reason}"
        if self._heads.archived:
            return "was not saved: the memory store is archived"
        operations = [edit.operation for _, edit in self._accepted]
        growth = operations.count("created") - operations.count("deleted")
        if "created" in operations and len(self._heads.by_id) + growth > self._rules.limit:
            return f"was not saved: the memory store would hold more than {self._rules.limit:,} memories"
        return None


def _what_became(head: Head, change: LocalChange, here: str) -> str:
    there = "edited" if head.path == change.path else f"moved to {head.path}"
    return f"{here} and {there} in the store"


def repair(baseline: Mapping[str, Entry], disk: Disk, heads: Heads, *, unmountable: Collection[str] = ()) -> Repair:
    """What brings the files up to the heads, apart from what no memory can be.

    Args:
        baseline: what was on disk when the mount was last synced.
        disk: what a scan found; what it cannot say counts as the baseline's.
        heads: the store as it shall be on disk.
        unmountable: paths that no file here can have; they are left alone.
    """
    puts: list[Head] = []
    removals: list[str] = []
    settled: dict[str, Entry | None] = {}
    for path, head in heads.by_path.items():
        base, sha256 = baseline.get(path), disk.files.get(path)
        if sha256 is None and base is not None and disk.is_unknown(path):
            sha256 = base.sha256
        if path in unmountable:
            continue
        if sha256 != head.sha256:
            puts.append(head)
        elif base is None or base.version_id != head.version_id:
            settled[path] = entry(head)
    for path in baseline.keys() - heads.by_path.keys():
        if path in disk.files or disk.is_unknown(path):
            removals.append(path)
        else:
            settled[path] = None
    removals += disk.files.keys() - heads.by_path.keys() - baseline.keys()
    return Repair(tuple(sorted(puts, key=lambda head: head.path)), tuple(sorted(removals)), settled)
