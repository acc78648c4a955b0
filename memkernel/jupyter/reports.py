"""The report of a sync under a cell: with the lines that came and went, which the store is asked for."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from memkernel.errors import MemkernelError
from memkernel.jupyter.shell import display
from memkernel.models import MemoryVersion, SyncReport
from memkernel.render import LineCounts, duration_text, report_html, report_text
from memkernel.textdiff import diff

if TYPE_CHECKING:
    from memkernel.handle.sandbox import Sandbox
    from memkernel.jupyter.notebook import Notebook
    from memkernel.store import Database

COUNTED: Final = 20
"""Of so many versions of a report the lines are counted at most; each costs two small queries."""

_PATIENCE_S: Final = 0.5


@dataclass(frozen=True, slots=True, repr=False)
class ShownReport:
    """A report with its title and its counts, as a cell shows it."""

    report: SyncReport
    counts: LineCounts
    title: str

    def __repr__(self) -> str:
        return report_text(self.report, self.counts, title=self.title)

    def _repr_html_(self) -> str:
        return report_html(self.report, self.counts, title=self.title)


def shown_report(
    notebook: Notebook, box: Sandbox, report: SyncReport, *, duration_s: float | None = None
) -> ShownReport:
    """The report, headed by the sandbox's name and how long its cell took."""
    took = [] if duration_s is None else [duration_text(duration_s)]
    counts = count_lines(notebook.connection.database, report)
    return ShownReport(report, counts, " · ".join([f"sandbox {box.name}", *took]))


def show_report(notebook: Notebook, box: Sandbox, report: SyncReport, *, duration_s: float | None = None) -> None:
    """Show it in this cell."""
    display(shown_report(notebook, box, report, duration_s=duration_s))


def count_lines(database: Database, report: SyncReport) -> dict[str, tuple[int, int]]:
    """How many lines each version of a report brought and took; less where the database does not answer."""
    counts: dict[str, tuple[int, int]] = {}
    deadline = time.monotonic() + _PATIENCE_S
    with suppress(MemkernelError):  # the counts are a nicety: the report is told without them
        for version in islice(_versions(report), COUNTED):
            if time.monotonic() > deadline:
                break
            counts[version.id] = lines_of(database, version)
    return counts


def _versions(report: SyncReport) -> Iterator[MemoryVersion]:
    for store in report.stores:
        kinds: Iterable[tuple[MemoryVersion, ...]] = (store.deleted, store.modified, store.merged, store.created)
        for versions in kinds:
            yield from versions


def lines_of(database: Database, version: MemoryVersion) -> tuple[int, int]:
    """How many lines a version brought, and how many it took.

    Raises:
        MemkernelError: the database does not answer, or has the version no longer.
    """
    new = "" if version.operation == "deleted" else _text(database, version)
    old = "" if version.operation == "created" else _text_before(database, version)
    found = diff(old, new)
    return found.added, found.removed


def _text(database: Database, version: MemoryVersion) -> str:
    return database.memory_versions.retrieve(version.id, memory_store_id=version.memory_store_id).content or ""


def _text_before(database: Database, version: MemoryVersion) -> str:
    return database.memory_versions.before(version.id, memory_store_id=version.memory_store_id).content or ""
