"""Tables: columns and rows as text and as HTML; facts, which are a table of names and values."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

from memkernel.render.cells import HTML_CHARACTERS, cell_html, cell_of, cell_text
from memkernel.render.marks import html_line, one_line
from memkernel.render.style import fitting, framed

Rows = Sequence[Sequence[object]]

COLUMNS: Final = 40
HEAD_CHARACTERS: Final = 60
FACT_CHARACTERS: Final = 1_100
WRAPPED: Final = 48
"""A cell with more characters than this may take several lines in HTML."""


def table_text(columns: Sequence[str], rows: Rows, total: int | None = None) -> str:
    """A table in plain text, every row on one line, and how many rows there are.

    Args:
        columns: their names.
        rows: a value for each column; None is shown as NULL, a `Cell` as it says.
        total: how many rows there are, where `rows` are not all.
    """
    if not columns:
        return "(none)"
    head = [cell_text(column) for column in columns[:COLUMNS]]
    body = [[cell_text(value) for value in row[:COLUMNS]] for row in rows]
    widths = [max(map(_width, column)) for column in zip(head, *body, strict=True)]
    numbers = _number_columns(len(head), rows)
    lines = [_line(head, widths, numbers), _line(["─" * width for width in widths], widths, numbers)]
    lines += [_line(row, widths, numbers) for row in body]
    return "\n".join([*lines, *_count(len(rows), _total(rows, total)), *_column_count(columns)])


def table_html(columns: Sequence[str], rows: Rows, total: int | None = None) -> str:
    """The same as HTML; of long rows only as many as have room in 24 KB."""
    return framed(table_body(columns, rows, total))


def table_body(columns: Sequence[str], rows: Rows, total: int | None = None, *, beside: int = 0) -> str:
    """The same without its frame, as a part of something that has `beside` bytes already."""
    if not columns:
        return '<p class="faint">(none)</p>'
    numbers = _number_columns(len(columns[:COLUMNS]), rows)
    head = "".join(
        f'<th scope="col"{_class("n" if is_number else "")}>{html_line(name, HEAD_CHARACTERS)}</th>'
        for name, is_number in zip(columns[:COLUMNS], numbers, strict=True)
    )
    shown = fitting((_row(row, numbers) for row in rows), beside=beside + len(head.encode()))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(shown)}</tbody></table>"
    count = ", ".join([*_count(len(shown), _total(rows, total)), *_column_count(columns)])
    return table + (f'<p class="faint">{count}</p>' if count else "")


def facts_text(title: str, facts: Iterable[tuple[str, object]]) -> str:
    """Names and values, one a line, under a title."""
    pairs = [(cell_text(name), cell_text(value, FACT_CHARACTERS)) for name, value in facts]
    width = max((_width(name) for name, _ in pairs), default=0)
    return "\n".join([one_line(title), *(f"  {_padded(name, width)}  {value}".rstrip() for name, value in pairs)])


def facts_html(title: str, facts: Iterable[tuple[str, object]]) -> str:
    """The same as HTML."""
    caption = f"<caption>{html_line(title, FACT_CHARACTERS)}</caption>"
    rows = (
        f'<tr><th scope="row">{html_line(name, HEAD_CHARACTERS)}</th>{_td(value, most=FACT_CHARACTERS)}</tr>'
        for name, value in facts
    )
    return framed(f"<table>{caption}<tbody>{''.join(fitting(rows, beside=len(caption.encode())))}</tbody></table>")


def _total(rows: Rows, total: int | None) -> int:
    return len(rows) if total is None else max(total, len(rows))


def _count(shown: int, total: int) -> list[str]:
    if total == 0:
        return ["(none)"]
    return [f"{shown:,} of {total:,} shown"] if shown < total else []


def _column_count(columns: Sequence[str]) -> list[str]:
    return [f"{COLUMNS} of {len(columns):,} columns shown"] if len(columns) > COLUMNS else []


def _number_columns(count: int, rows: Rows) -> list[bool]:
    """Which columns hold numbers, gaps aside: their heads stand at the right as well."""
    columns = [[cell_of(row[column]) for row in rows if row[column] is not None] for column in range(count)]
    present = [[cell for cell in column if cell.text] for column in columns]
    return [bool(column) and all(cell.is_number for cell in column) for column in present]


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
    cells = (_td(value, is_number=is_n) for value, is_n in zip(row[:COLUMNS], numbers, strict=True))
    return f"<tr>{''.join(cells)}</tr>"


def _td(value: object, *, is_number: bool = False, most: int = HTML_CHARACTERS) -> str:
    kind = "n" if is_number else "w" if len(cell_of(value).text) > WRAPPED else ""
    return f"<td{_class(kind)}>{cell_html(value, most)}</td>"


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
