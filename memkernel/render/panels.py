"""How a sandbox stands, its mounts, what its cells did, and what was put aside: as text and as HTML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from memkernel.models import SyncReport
from memkernel.render.lists import row_of
from memkernel.render.marks import html_line, one_line
from memkernel.render.reports import REASON_CHARACTERS, LineCounts, report_body, report_summary, store_text
from memkernel.render.style import TEXT_LINES, fitting, framed
from memkernel.render.tables import table_body, table_text

_FOR_OTHERS: Final = 12_000
"""So many bytes a table and a cell's files leave to the rest."""


@dataclass(frozen=True, slots=True)
class PanelEntry:
    """A cell, or what happened between two: a line about it, its notes, and what became of its files."""

    title: str
    notes: Sequence[str] = ()
    report: SyncReport | None = None


@dataclass(frozen=True, slots=True)
class PanelSheet:
    """What a panel shows.

    Attributes:
        title: the sandbox and how it stands.
        remarks: what it may use, and what keeps its code in.
        mounts: records of its mounts.
        entries: what happened, newest first.
        put_aside: records of what was put aside.
        counts: the lines that came and went.
    """

    title: str
    remarks: Sequence[str]
    mounts: Sequence[object]
    entries: Sequence[PanelEntry]
    put_aside: Sequence[object]
    counts: LineCounts = field(default_factory=dict[str, tuple[int, int]])


def panel_text(sheet: PanelSheet) -> str:
    """At most 60 lines; of many entries the newest."""
    lines = [sheet.title, *(f"  {remark}" for remark in sheet.remarks)]
    lines += _table_lines("stores", sheet.mounts) + _table_lines("put aside", sheet.put_aside)
    if sheet.entries:
        lines += ["", "cells, newest first"]
    left = len(sheet.entries)
    for entry in sheet.entries:
        drawn = [one_line(line) for line in _entry_lines(entry, sheet.counts)]
        if len(lines) + len(drawn) >= TEXT_LINES:
            break
        lines += drawn
        left -= 1
    more = [f"… {left:,} earlier ones are not shown"] if left else []
    return "\n".join([*lines[: TEXT_LINES - len(more)], *more])


def panel_html(sheet: PanelSheet) -> str:
    """At most 24 KB; of many entries the newest."""
    head = [f"<p><b>{html_line(sheet.title, REASON_CHARACTERS)}</b></p>"]
    head += [f'<p class="faint">{html_line(remark, REASON_CHARACTERS)}</p>' for remark in sheet.remarks]
    for caption, records in (("Stores", sheet.mounts), ("Put aside", sheet.put_aside)):
        if records:
            head += [f"<p><b>{caption}</b></p>", table_body(*_table(records), beside=_FOR_OTHERS)]
    drawn = fitting(_entries_html(sheet), beside=sum(len(part.encode()) for part in head))
    title = ["<p><b>Cells, newest first</b></p>"] if sheet.entries else []
    left = len(sheet.entries) - len(drawn)
    more = [f'<p class="faint">{left:,} earlier ones are not shown</p>'] if left else []
    return framed(*head, *title, *drawn, *more)


def _table_lines(caption: str, records: Sequence[object]) -> list[str]:
    if not records:
        return []
    shown = records[: TEXT_LINES // 6]
    table = table_text(*_table(shown), len(records)).split("\n")
    return ["", caption, *(f"  {line}" for line in table)]


def _table(records: Sequence[object]) -> tuple[list[str], list[list[object]]]:
    rows: list[Mapping[str, object]] = [row_of(record) for record in records]
    return list(rows[0]), [list(row.values()) for row in rows]


def _entry_lines(entry: PanelEntry, counts: LineCounts) -> Iterator[str]:
    yield _headed(entry)
    yield from (f"  {note}" for note in entry.notes)
    stores = entry.report.stores if entry.report else ()
    for store in stores:
        yield from store_text(store, counts, named=len(stores) > 1)


def _entries_html(sheet: PanelSheet) -> Iterator[str]:
    for entry in sheet.entries:
        notes = "".join(f"<p>{html_line(note, REASON_CHARACTERS)}</p>" for note in entry.notes[:8])
        if entry.report is None:
            yield f'<p class="faint">{html_line(entry.title, REASON_CHARACTERS)}</p>{notes}'
        else:
            yield report_body(entry.report, sheet.counts, entry.title, beside=_FOR_OTHERS) + notes


def _headed(entry: PanelEntry) -> str:
    return " · ".join([entry.title, *([report_summary(entry.report)] if entry.report else [])])
