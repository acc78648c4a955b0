"""What several syncs of one cell did, as one report; and when that is an error."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Final

from memkernel.errors import DatabaseUnavailableError, SyncConflictError, SyncError
from memkernel.models import Attachment, CellResult, StoreReport, SyncConflict, SyncReport, ToolAnswer

_VERSIONS: Final = ("created", "modified", "deleted", "merged")
_FILES: Final = ("pulled", "removed", "refused")

# The one way out of a store that could not be synced, by when that was.
KEPT: Final = "What lies in the mount is kept, and saved by the next cell or `%sandbox sync`."
NOT_RUN: Final = "The code was not run: run the cell again, once this is mended. What lies in the mount is kept."
KEPT_AT_THE_END: Final = "What lies in the mount is kept, and saved by the next sandbox's start or `memkernel doctor`."


def joined(earlier: SyncReport, later: SyncReport) -> SyncReport:
    """Both syncs' doings; where they say how things stand (trouble), the later one knows.

    What became of a path is said once: what the later sync made of it.
    """
    before = {store.memory_store_id: store for store in earlier.stores}
    both = [_joined(before.pop(store.memory_store_id, None), store) for store in later.stores]
    return SyncReport((*both, *before.values()))


def _joined(earlier: StoreReport | None, later: StoreReport) -> StoreReport:
    if earlier is None:
        return later
    made = [version.path for name in _VERSIONS for version in getattr(later, name)]
    settled = {*made, *later.pulled, *later.removed}
    lists: dict[str, Any] = {}
    for name in (*_VERSIONS, *_FILES, "conflicts", "notes"):
        first, second = getattr(earlier, name), getattr(later, name)
        again, over = set(second), settled if name not in ("conflicts", "notes") else ()
        lists[name] = (*(one for one in first if one not in again and _path(one) not in over), *second)
    return replace(later, **lists, held_back=later.held_back or earlier.held_back)


def _path(one: Any) -> str | None:
    return one if isinstance(one, str) else one.path


def troubled(attachment: Attachment, trouble: Exception) -> StoreReport:
    """The report of a store that could not be synced."""
    return StoreReport(attachment.memory_store_id, attachment.name, attachment.mount_path, trouble=trouble)


def put_aside(attachment: Attachment, conflicts: tuple[SyncConflict, ...]) -> StoreReport:
    """The report of a store of which texts were put aside without a sync."""
    return StoreReport(attachment.memory_store_id, attachment.name, attachment.mount_path, conflicts=conflicts)


def says_something(report: SyncReport) -> bool:
    """Whether anything was done, or went wrong."""
    return any(
        getattr(store, name.name)
        for store in report.stores
        for name in fields(store)
        if name.name not in ("memory_store_id", "name", "mount_path")
    )


def raise_what_is_wrong(report: SyncReport, result: CellResult | None = None, *, kept: str = KEPT) -> None:
    """Raise where something was not saved.

    Raises:
        SyncError: a store could not be synced; what lies in its mount is kept.
        SyncConflictError: texts were put aside.
    """
    raise_trouble(report, result, kept=kept)
    conflicts = [
        (f"{store.mount_path}{conflict.path}", conflict.reason)
        for store in report.stores
        for conflict in sorted(store.conflicts, key=_is_consequence)
    ]
    if conflicts:
        raise SyncConflictError([path for path, _ in conflicts], report, result, reason=conflicts[0][1])


def raise_trouble(report: SyncReport, result: CellResult | ToolAnswer | None = None, *, kept: str = KEPT) -> None:
    """Raise where a store could not be synced.

    Raises:
        SyncError: what lies in its mount is kept.
    """
    for store in report.stores:
        if store.trouble is not None:
            raise trouble_error(store, report, result, kept=kept) from store.trouble


def _is_consequence(conflict: SyncConflict) -> bool:
    """Whether it was put aside because of another, which tells more."""
    return conflict.reason.startswith("was not saved, because")


def trouble_error(
    store: StoreReport, report: SyncReport, result: CellResult | ToolAnswer | None = None, *, kept: str = KEPT
) -> SyncError:
    """The error of a store that could not be synced; its cause is the trouble.

    `kept` is the way out, unless the trouble knows its own: a database's is about one statement, and after the end
    nothing can be done about a mount.
    """
    own = "" if isinstance(store.trouble, DatabaseUnavailableError) else getattr(store.trouble, "hint", "")
    if own and kept is not KEPT_AT_THE_END:
        kept = own if kept is KEPT else f"The code was not run. {own}"
    trouble = str(store.trouble)
    if trouble.startswith(f"{store.mount_path} "):
        trouble = f"it{trouble.removeprefix(store.mount_path)}"
    text = f"{store.mount_path} is not synced: {trouble}"
    return SyncError(text, hint=kept, report=report, result=result)
