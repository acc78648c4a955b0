"""The tables that SQL sees: names, columns and types (DESIGN section 4), and where their rows come from."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, Protocol

Kind = Literal["text", "integer", "float", "time", "json"]

Row = tuple[Any, ...]

TABLES: Final[Mapping[str, Mapping[str, Kind]]] = {
    "memory_stores": {
        "id": "text",
        "name": "text",
        "description": "text",
        "metadata": "json",
        "head_seq": "integer",
        "head_at": "time",
        "pruned_through_seq": "integer",
        "memory_count": "integer",
        "created_at": "time",
        "updated_at": "time",
        "archived_at": "time",
        "workspace_id": "text",
    },
    "memories": {
        "memory_store_id": "text",
        "id": "text",
        "path": "text",
        "memory_version_id": "text",
        "content": "text",  # its head version's
        "content_sha256": "text",
        "content_size_bytes": "integer",
        "created_at": "time",
        "updated_at": "time",
    },
    "memory_versions": {
        "memory_store_id": "text",
        "id": "text",
        "seq": "integer",
        "ordinal": "integer",
        "memory_id": "text",
        "operation": "text",
        "path": "text",
        "content": "text",
        "content_sha256": "text",
        "content_size_bytes": "integer",
        "created_at": "time",
        "created_by_type": "text",
        "created_by_id": "text",
        "redacted_at": "time",
        "redacted_by_type": "text",
        "redacted_by_id": "text",
    },
    "run_changes": {
        "memory_store_id": "text",
        "seq": "integer",
        "run_id": "text",
        "tool_use_id": "text",
    },
    "runs": {
        "session_id": "text",
        "id": "text",
        "kind": "text",
        "model": "text",
        "prompt": "text",
        "memory_store_ids": "json",  # the stores that it works with, as a list
        "previous_run_id": "text",
        "status": "text",
        "turns": "integer",
        "stop_reason": "text",
        "input_tokens": "integer",
        "output_tokens": "integer",
        "cache_read_input_tokens": "integer",
        "cache_creation_input_tokens": "integer",
        "cost_usd": "float",
        "error": "text",
        "started_at": "time",
        "seen_at": "time",
        "ended_at": "time",
    },
    "run_events": {
        "session_id": "text",
        "run_id": "text",
        "n": "integer",
        "type": "text",
        "data": "json",
        "created_at": "time",
    },
}

COLUMN_NAMES: Final = frozenset(name for columns in TABLES.values() for name in columns)


class Source(Protocol):
    """Where the rows come from: `memkernel.store.Database` is one."""

    def dump(self, tables: Mapping[str, Sequence[str]]) -> Generator[tuple[str, Iterator[Row]]]:
        """The named columns of the named tables, table by table, all of one snapshot.

        Values are as in the records: ids, paths and contents `str`, hashes hex, times aware UTC
        datetimes, JSON as Python values. The rows are a generator as well.
        """
        ...
