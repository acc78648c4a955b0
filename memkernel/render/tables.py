"""Tables: columns and rows as text and as HTML; facts, which are a table of names and values."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from memkernel.render.cells import cell_html, cell_of, cell_text
from memkernel.render.marks import html_text, one_line
from memkernel.render.style import fitting, framed

Rows = Sequence[Sequence[object]]


def table_text(columns: Sequence[str], rows: Rows, total: int | None = None) -> str:
    """A table in plain text, every row on one line, and how many rows there are.

    Args:
        columns: their names.
        rows: a value for each column; None is shown as NULL, a `Cell` as it says.
        total: how many rows there are, where `rows` are not all.
    """
    if not columns:
        return "(none)"
    head = [one_line(column) for column in columns]
    body = [[cell_text(value) for value in row] for row in rows]
    widths = [max(map(_width, column)) for column in zip(head, *body, strict=True)]
    numbers = _number_columns(len(columns), rows)
    lines = [_line(head, widths, numbers), _line(["─" * width for width in widths], widths, numbers)]
    lines += [_line(row, widths, numbers) for row in body]
    return "\n".join([*lines, *_count(len(rows), _total(rows, total))])


def table_html(columns: Sequence[str], rows: Rows, total: int | None = None, caption: str = "") -> str:
    """The same as HTML; of long rows only as many as have room in 24 KB."""
    if not columns:
        return framed('<p class="faint">(none)</p>')
    numbers = _number_columns(len(columns), rows)
    head = "".join(
        f'<th scope="col"{_class(is_number)}>{html_text(name)}</th>'
        for name, is_number in zip(columns, numbers, strict=True)
    )
    shown = fitting((_row(row, numbers) for row in rows), beside=len(head.encode()) + len(caption.encode()))
    title = f"<caption>{html_text(caption)}</caption>" if caption else ""
    table = f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{''.join(shown)}</tbody></table>"
    count = "".join(_count(len(shown), _total(rows, total)))
    return framed(table, f'<p class="faint">{count}</p>' if count else "")


def facts_text(title: str, facts: Iterable[tuple[str, object]]) -> str:
    """Names and values, one a line, under a title."""
    pairs = [(one_line(name), cell_text(value)) for name, value in facts]
    width = max((_width(name) for name, _ in pairs), default=0)
    return "\n".join([one_line(title), *(f"  {_padded(name, width)}  {value}".rstrip() for name, value in pairs)])


def facts_html(title: str, facts: Iterable[tuple[str, object]]) -> str:
    """The same as HTML."""
    rows = (f'<tr><th scope="row">{html_text(name)}</th><td>{cell_html(value)}</td></tr>' for name, value in facts)
    body = "".join(fitting(rows, beside=len(title.encode())))
    return framed(f"<table><caption>{html_text(title)}</caption><tbody>{body}</tbody></table>")


def _total(rows: Rows, total: int | None) -> int:
    return len(rows) if total is None else max(total, len(rows))


def _count(shown: int, total: int) -> list[str]:
    if total == 0:
        return ["(none)"]
    return [f"{shown:,} of {total:,} shown"] if shown < total else []


def _number_columns(count: int, rows: Rows) -> list[bool]:
    """Which columns hold numbers, gaps aside: their heads stand at the right as well."""
    cells = [[cell_of(row[column]) for row in rows if row[column] is not None] for column in range(count)]
    return [bool(column) and all(cell.is_number for cell in column) for column in cells]


def _line(cells: Sequence[str], widths: Sequence[int], numbers: Sequence[bool]) -> str:
    aligned = (_padded(cell, width, at_right=is_n) for cell, width, is_n in zip(cells, widths, numbers, strict=True))
    return "  ".join(aligned).rstrip()


def _padded(text: str, width: int, *, at_right: bool = False) -> str:
    space = " " * (width - _width(text))
    return space + text if at_right else text + space


def _width(text: str) -> int:
    """Columns of a terminal: two for East Asian wide letters, none for accents that join the letter before."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _row(row: Sequence[object], numbers: Sequence[bool]) -> str:
    cells = (f"<td{_class(is_n)}>{cell_html(value)}</td>" for value, is_n in zip(row, numbers, strict=True))
    return f"<tr>{''.join(cells)}</tr>"


def _class(is_number: bool) -> str:
    return ' class="n"' if is_number else ""
