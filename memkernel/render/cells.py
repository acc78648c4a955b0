"""Values as a person reads them: sizes, times, and what else stands in a table's cell."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from html import escape
from typing import Final, NamedTuple

from memkernel.render.marks import html_line, one_line

TEXT_CHARACTERS: Final = 60
HTML_CHARACTERS: Final = 200


class Cell(NamedTuple):
    """A value in words. `title` says it exactly; numbers stand at the right; code is monospaced."""

    text: str
    title: str = ""
    is_number: bool = False
    is_code: bool = False


def size(size_bytes: int | None) -> Cell:
    """`1.7 KB`; nothing for None. 1 KB is 1,024 bytes, as in the limit of 100 KB."""
    if size_bytes is None:
        return Cell("", is_number=True)
    return Cell(size_text(size_bytes), counted(size_bytes, "byte"), is_number=True)


def size_text(size_bytes: int) -> str:
    """`312 B`, `1.7 KB`, `100 KB`, `2.3 MB`"""
    amount, unit = float(size_bytes), "B"
    for larger in ("KB", "MB", "GB", "TB"):
        if round(amount, 1) < 1024:
            break
        amount, unit = amount / 1024, larger
    shown = f"{amount:.0f}" if amount >= 99.95 else f"{amount:.1f}".removesuffix(".0")
    return f"{shown} {unit}"


def counted(number: int, noun: str) -> str:
    """`1 line`, `2,000 lines`"""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def moment(time: datetime | None) -> Cell:
    """To the minute, in UTC; exactly in the title."""
    if time is None:
        return Cell("")
    return Cell(moment_text(time), time.isoformat())


def moment_text(time: datetime) -> str:
    """`2026-11-30 09:21`, in UTC"""
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def code(text: str | None) -> Cell:
    """A path or an id."""
    return Cell(text or "", is_code=True)


def cell_of(value: object) -> Cell:
    """Any value, as a table's cell."""
    if isinstance(value, Cell):
        return value
    if value is None:
        return Cell("NULL")
    if isinstance(value, bool):
        return Cell("true" if value else "false")
    if isinstance(value, int | float | Decimal):
        return Cell(str(value), is_number=True)
    if isinstance(value, datetime):
        return Cell(_exact(value), value.isoformat())
    return Cell(str(value))


def cell_text(value: object, most: int = TEXT_CHARACTERS) -> str:
    """The cell on one line, at most so many characters."""
    return one_line(cell_of(value).text, most)


def cell_html(value: object, most: int = HTML_CHARACTERS) -> str:
    """The cell's content on one line of HTML, at most so many characters."""
    if value is None:
        return '<span class="faint">NULL</span>'
    cell = cell_of(value)
    text = html_line(cell.text, most)
    titled = f'<span title="{escape(cell.title)}">{text}</span>' if cell.title else text
    return f"<code>{titled}</code>" if cell.is_code and text else titled


def _exact(time: datetime) -> str:
    utc = time.astimezone(UTC) if time.tzinfo else time
    return utc.replace(tzinfo=None).isoformat(" ", "milliseconds").removesuffix(".000")
