"""`Store.compare(…)`: what differs in a store between two points of its history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from memkernel import paths, present, render
from memkernel.errors import MemoryNotFoundError
from memkernel.handle.diff import Diff
from memkernel.handle.finding import near, without_last_slash
from memkernel.models import Actor, ChangeKind, MemoryVersion, Point, StoreChange
from memkernel.textdiff import diff

if TYPE_CHECKING:
    import pandas as pd

    from memkernel.handle.reading import StoreReading

_LINES_BYTES: Final = 1_000_000  # texts of this size are compared in about a second
_MOST_ROWS: Final = render.TEXT_LINES


@dataclass(frozen=True, slots=True)
class _Row:
    """A change as a row of a DataFrame."""

    kind: ChangeKind
    path: str | None
    old_path: str | None
    old_version_id: str | None
    new_version_id: str | None
    old_size_bytes: int | None
    new_size_bytes: int | None
    changed_at: datetime | None
    changed_by: Actor | None
    added: int | None
    removed: int | None


class StoreDiff:
    """What became of a store's memories between two points. It is a sequence of changes, in path order.

    Attributes:
        store: the store.
        old: the point that is compared.
        new: the point with which it is compared.
        changes: a StoreChange for each memory that is not the same at both.
        path: only memories at or below this path.
    """

    def __init__(
        self, store: StoreReading, old: Point, new: Point, changes: Sequence[StoreChange], path: str = "/"
    ) -> None:
        self.store, self.old, self.new, self.path = store, old, new, path
        self.changes = tuple(changes)
        self._lines: dict[str, tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self.changes)

    def __iter__(self) -> Iterator[StoreChange]:
        return iter(self.changes)

    def __getitem__(self, index: int) -> StoreChange:
        return self.changes[index]

    @property
    def title(self) -> str:
        """What is compared: the store's name, and the path where it is a part of it."""
        return self.store.name if self.path == "/" else f"{self.store.name}:{self.path}"

    def at(self, path: str) -> StoreChange:
        """The change of the memory that is, or was, at a path.

        Raises:
            MemoryNotFoundError: nothing differs there.
        """
        found = [change for change in self.changes if path in (change.path, change.old_path)]
        if found:
            return max(found, key=lambda change: (change.path == path, change.kind != "deleted"))
        known = [each for change in self.changes for each in (change.path, change.old_path) if each]
        raise MemoryNotFoundError(path, f"what differs in {self.store.slug}", near(path, known))

    def below(self, path: str) -> StoreDiff:
        """The changes of memories that are, or were, at or below a path; those of unknown paths only for `/`.

        Raises:
            InvalidPathError: no memory can be there.
        """
        root = without_last_slash(path)
        if root == "/":
            return self
        paths.check_prefix(f"{root}/")
        changes = [change for change in self.changes if _is_below(change, root)]
        return StoreDiff(self.store, self.old, self.new, changes, root)

    def diff(self, changed: str | StoreChange) -> Diff:
        """What changed in one memory.

        Args:
            changed: its path, or one of the changes.

        Raises:
            MemoryNotFoundError: nothing differs at the path.
        """
        change = self.at(changed) if isinstance(changed, str) else changed
        return Diff.of(change.path or "(redacted)", self._full(change.old), self._full(change.new))

    def lines(self, changes: Iterable[StoreChange] | None = None) -> render.LineCounts:
        """How many lines came and went, by the ids of changes: of these, or of all. What is redacted is left out."""
        asked = list(self.changes if changes is None else changes)
        for change, texts in self._texts(change for change in asked if change.id not in self._lines):
            found = diff(*texts)
            self._lines[change.id] = found.added, found.removed
        return {change.id: self._lines[change.id] for change in asked if change.id in self._lines}

    def lines_soon(self, changes: Iterable[StoreChange]) -> render.LineCounts:
        """The same of the first of these changes, as many as take no time that a person would notice."""
        asked, left = list[StoreChange](), _LINES_BYTES
        for change in changes:
            left -= sum(side.content_size_bytes or 0 for side in (change.old, change.new) if side)
            if change.id in self._lines or left >= 0 or not asked:
                asked.append(change)
        return self.lines(asked)

    def df(self, *, lines: bool = False) -> pd.DataFrame:
        """A DataFrame with a row a change.

        Args:
            lines: also how many lines came and went in each, for which all texts are read.
        """
        from memkernel.analytics.frames import frame

        counts: render.LineCounts = self.lines() if lines else {}
        made = frame((_row(change, counts) for change in self.changes), _Row)
        return made if lines else made.drop(columns=["added", "removed"])

    def show(self) -> object:
        """Show it: interactively where the notebook can, as text elsewhere.

        Returns:
            The widget; None where there is none.
        """
        return present.show(self)

    def __str__(self) -> str:
        return self._text()

    def __repr__(self) -> str:
        span = f"{render.point_text(self.old)} → {render.point_text(self.new)}"
        return f"<memkernel.StoreDiff {self.store.slug} {span}: {render.changes_summary(self.changes)}>"

    def _repr_html_(self) -> str:
        return render.store_changes_html(self._between, self.changes, self.lines_soon(self.changes[:_MOST_ROWS]))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": self._text(), "text/html": self._repr_html_()}

    def _text(self) -> str:
        return render.store_changes_text(self._between, self.changes, self.lines_soon(self.changes[:_MOST_ROWS]))

    @property
    def _between(self) -> render.Between:
        return render.Between(self.title, self.old, self.new)

    # -- texts -------------------------------------------------------------------------------------

    def _texts(self, changes: Iterable[StoreChange]) -> Iterator[tuple[StoreChange, tuple[str, str]]]:
        """The texts of those changes of which both are known; nothing is an empty one."""
        asked = list(changes)
        for start in range(0, len(asked), _MOST_ROWS):
            part = asked[start : start + _MOST_ROWS]
            ids = [side.id for change in part for side in (change.old, change.new) if side]
            known = dict(self.store.connection.database.timeline.contents(self.store.id, ids))
            for change in part:
                old, new = (_text(side, known) for side in (change.old, change.new))
                if old is not None and new is not None:
                    yield change, (old, new)

    def _full(self, side: MemoryVersion | None) -> MemoryVersion | None:
        if side is None:
            return None
        versions = self.store.connection.database.memory_versions
        return versions.retrieve(side.id, memory_store_id=self.store.id)


def _is_below(change: StoreChange, root: str) -> bool:
    return any(path and (path == root or path.startswith(root + "/")) for path in (change.path, change.old_path))


def _text(side: MemoryVersion | None, known: dict[str, str]) -> str | None:
    return "" if side is None or side.operation == "deleted" else known.get(side.id)


def _row(change: StoreChange, lines: render.LineCounts) -> _Row:
    told = change.new or change.old
    added, removed = lines.get(change.id, (None, None))
    return _Row(
        kind=change.kind,
        path=change.path,
        old_path=change.old_path,
        old_version_id=change.old and change.old.id,
        new_version_id=change.new and change.new.id,
        old_size_bytes=change.old and change.old.content_size_bytes,
        new_size_bytes=change.new and change.new.content_size_bytes,
        changed_at=told and told.created_at,
        changed_by=told and told.created_by,
        added=added,
        removed=removed,
    )
