"""Lists of records as tables: which columns each kind of record has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import singledispatch
from typing import Final, cast

from memkernel import paths
from memkernel.models import Actor, GrepMatch, Memory, MemoryPrefix, MemoryStore, MemoryVersion, Pruned, SearchHit
from memkernel.render.cells import Cell, code, moment, size
from memkernel.render.marks import html_line
from memkernel.render.style import framed
from memkernel.render.tables import table_body, table_text

ROWS: Final = 60
HEAD_CHARACTERS: Final = 300


def records_text(records: Sequence[object], total: int | None = None) -> str:
    """A table with a row a record.

    Args:
        records: of any kinds; a column that a kind has not stays empty.
        total: how many there are, where `records` are not all.
    """
    return table_text(*columns_and_rows(records), total)


def records_html(records: Sequence[object], total: int | None = None, title: str = "") -> str:
    """The same as HTML, perhaps under a title."""
    head = f"<p><b>{html_line(title, HEAD_CHARACTERS)}</b></p>" if title else ""
    return framed(head, table_body(*columns_and_rows(records), total, beside=len(head.encode())))


def columns_and_rows(records: Sequence[object]) -> tuple[list[str], list[list[object]]]:
    """The columns of all kinds that are among the records, and a row for each record."""
    rows = [row_of(record) for record in records]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return columns, [[row.get(name, Cell("")) for name in columns] for row in rows]


@singledispatch
def row_of(record: object) -> Mapping[str, object]:
    """A record's cells by the names of their columns."""
    if is_dataclass(record):
        return {field.name: getattr(record, field.name) for field in fields(record) if field.repr}
    if isinstance(record, Mapping):
        return {str(name): value for name, value in cast("Mapping[object, object]", record).items()}
    return {"value": record}


@row_of.register
def _(record: MemoryStore) -> Mapping[str, object]:
    return {
        "name": record.name,
        "slug": code(paths.mount_slug(record.name, record.id)),
        "memories": record.memory_count,
        "changes": record.head_seq,
        "created": moment(record.created_at),
        **({"archived": moment(record.archived_at)} if record.archived_at else {}),
        "description": record.description,
        "id": code(record.id),
    }


@row_of.register
def _(record: Memory) -> Mapping[str, object]:
    return {
        "path": code(record.path),
        "size": size(record.content_size_bytes),
        "updated": moment(record.updated_at),
    }


@row_of.register
def _(record: MemoryPrefix) -> Mapping[str, object]:
    return {"path": code(record.path)}


@row_of.register
def _(record: MemoryVersion) -> Mapping[str, object]:
    return {
        "version": Cell(f"@{record.ordinal}", f"change {record.seq} of the store"),
        "path": code(record.path),
        "operation": f"{record.operation}, redacted" if record.redacted_at else record.operation,
        "size": size(record.content_size_bytes),
        "by": Cell(record.created_by.id, record.created_by.type) if record.created_by else Cell(""),
        "time": moment(record.created_at),
        "id": code(record.id),
    }


@row_of.register
def _(record: Pruned) -> Mapping[str, object]:
    return {
        "store": record.name,
        "versions": record.versions,
        "size": size(record.content_bytes),
        "through change": record.pruned_through_seq,
        "id": code(record.memory_store_id),
    }


@row_of.register
def _(record: GrepMatch) -> Mapping[str, object]:
    return {"path": code(record.path), "line": record.line, "text": Cell(record.text, is_code=True)}


@row_of.register
def _(record: SearchHit) -> Mapping[str, object]:
    return {
        "path": code(record.path),
        "count": record.count,
        "lines": Cell(" · ".join(f"{each.line}: {each.text.strip()}" for each in record.lines), is_code=True),
        "updated": moment(record.updated_at),
    }


@row_of.register
def _(record: Actor) -> Mapping[str, object]:
    return {"id": code(record.id), "type": record.type}
