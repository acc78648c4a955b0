"""What differs between two points of a store's history, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeGuard

from memkernel.models import MemoryVersion, Point, StoreChange
from memkernel.render.cells import Cell, code, moment, moment_text, size
from memkernel.render.marks import html_line, one_line
from memkernel.render.reports import LineCounts
from memkernel.render.style import TEXT_LINES, framed
from memkernel.render.tables import table_body, table_text
from memkernel.render.things import redaction

CHANGE_SIGNS: Final = {"created": "+", "modified": "~", "renamed": "→", "deleted": "−"}
_COLUMNS: Final = ("change", "path", "lines", "size", "by", "time")
HEAD_CHARACTERS: Final = 1_100
_HEADS: Final = 4  # the title, the head of the table, its rule, and how many rows are shown


class Between(NamedTuple):
    """What the points are of: the store's name, the older point, the newer point."""

    store: str
    old: Point
    new: Point


def point_text(point: Point) -> str:
    """`change 41, 2026-11-30 09:21 UTC`"""
    if point.seq == 0:
        return "the beginning"
    return f"change {point.seq:,}{f', {moment_text(point.created_at)} UTC' if point.created_at else ''}"


def store_changes_text(between: Between, changes: Sequence[StoreChange], lines: LineCounts) -> str:
    """The points, how many memories were changed in which way, and a row for each, on at most 60 lines."""
    shown = changes[: TEXT_LINES - _HEADS]
    table = table_text(_COLUMNS, [_row(change, lines) for change in shown], len(changes)) if changes else ""
    return "\n".join(filter(None, [one_line(f"{between.store} · {_span(between, changes)}"), table]))


def store_changes_html(between: Between, changes: Sequence[StoreChange], lines: LineCounts) -> str:
    """The same as HTML."""
    span = html_line(_span(between, changes), HEAD_CHARACTERS)
    head = f"<p><strong>{html_line(between.store, HEAD_CHARACTERS)}</strong> · {span}</p>"
    rows = [_row(change, lines) for change in changes[:TEXT_LINES]]
    table = table_body(_COLUMNS, rows, len(changes), beside=len(head.encode())) if changes else ""
    return framed(head, table)


def changes_summary(changes: Sequence[StoreChange]) -> str:
    """`2 created, 1 deleted`"""
    kinds = [change.kind for change in changes]
    return ", ".join(f"{kinds.count(kind):,} {kind}" for kind in CHANGE_SIGNS if kind in kinds) or "no difference"


def change_note(change: StoreChange) -> str:
    """Why a text of it is not known: `@1 redacted by user_ann 2026-11-30 09:25`; nothing where both are."""
    return "; ".join(f"@{side.ordinal} {redaction(side)}" for side in (change.old, change.new) if _is_redacted(side))


def _is_redacted(side: MemoryVersion | None) -> TypeGuard[MemoryVersion]:
    return side is not None and side.redacted_at is not None


def _span(between: Between, changes: Sequence[StoreChange]) -> str:
    return f"{point_text(between.old)} → {point_text(between.new)} · {changes_summary(changes)}"


def _row(change: StoreChange, lines: LineCounts) -> list[object]:
    told = change.new or change.old
    by = told.created_by if told else None
    living = change.new if change.kind != "deleted" else change.old
    return [
        f"{CHANGE_SIGNS[change.kind]} {change.kind}",
        code(change_path(change)),
        Cell(lines_text(lines[change.id])) if change.id in lines else Cell(change_note(change)),
        size(living.content_size_bytes if living else None),
        Cell(by.id, by.type) if by else Cell(""),
        moment(told.created_at if told else None),
    ]


def change_path(change: StoreChange) -> str:
    """`/a.md`, `/old.md → /new.md`; `(redacted)` where it is not known any more."""
    path = change.path or "(redacted)"
    return f"{change.old_path} → {path}" if change.old_path else path


def lines_text(lines: tuple[int, int]) -> str:
    """`+3 −1`; `±0` where no line differs, as after a mere rename."""
    added, removed = lines
    return f"+{added:,} −{removed:,}" if added or removed else "±0"
