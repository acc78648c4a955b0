"""A source of rows that were never in a database: what the SQL engine does is seen without one."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from memkernel.analytics.tables import Row
from memkernel.errors import DatabaseUnavailableError

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)

_STORE: dict[str, Any] = {
    "id": "memstore_1",
    "name": "Team notes",
    "description": "",
    "metadata": {"team": "é", "quote": '"'},
    "head_seq": 4,
    "head_at": NOON,
    "pruned_through_seq": 0,
    "memory_count": 2,
    "created_at": NOON,
    "updated_at": NOON,
    "archived_at": None,
    "workspace_id": "default",
}


def _memory(number: int, path: str, content: str) -> dict[str, Any]:
    return {
        "memory_store_id": "memstore_1",
        "id": f"mem_{number}",
        "path": path,
        "memory_version_id": f"memver_{number}",
        "content": content,
        "content_sha256": "ab" * 32,
        "content_size_bytes": len(content.encode()),
        "created_at": NOON,
        "updated_at": NOON + timedelta(hours=number),
    }


def _version(seq: int, memory: int, operation: str, path: str | None, content: str | None) -> dict[str, Any]:
    return {
        "memory_store_id": "memstore_1",
        "id": f"memver_{seq}",
        "seq": seq,
        "ordinal": seq,
        "memory_id": f"mem_{memory}",
        "operation": operation,
        "path": path,
        "content": content,
        "content_sha256": None if content is None else "ab" * 32,
        "content_size_bytes": None if content is None else len(content.encode()),
        "created_at": NOON + timedelta(minutes=seq),
        "created_by_type": "user_actor",
        "created_by_id": "user_ann",
        "redacted_at": NOON if path is None else None,
        "redacted_by_type": "user_actor" if path is None else None,
        "redacted_by_id": "user_ann" if path is None else None,
    }


_RUN: dict[str, Any] = {
    "session_id": "sesn_1",
    "id": "run_1",
    "kind": "live",
    "model": "claude-sonnet-5-5",
    "prompt": "Tidy the notes",
    "memory_store_ids": ["memstore_1"],
    "previous_run_id": None,
    "status": "done",
    "turns": 2,
    "stop_reason": "end_turn",
    "input_tokens": 10,
    "output_tokens": 5,
    "cache_read_input_tokens": 3,
    "cache_creation_input_tokens": 2,
    "cost_usd": 0.25,
    "error": "",
    "started_at": NOON,
    "seen_at": NOON,
    "ended_at": NOON,
}
_EVENTS: Sequence[tuple[str, dict[str, Any]]] = (
    ("run_started", {"prompt": "Tidy the notes"}),
    ("tool_returned", {"content": "a\0b \ud800 é", "is_error": False}),
)

MADE: Mapping[str, Sequence[dict[str, Any]]] = {
    "memory_stores": [_STORE],
    "memories": [_memory(1, "/units.md", "SI\0 units\n"), _memory(2, "/notes/été.md", "")],
    "memory_versions": [
        _version(1, 1, "created", None, None),
        _version(2, 1, "modified", "/units.md", "SI\0 units\n"),
        _version(3, 2, "created", "/notes/été.md", ""),
        _version(4, 3, "deleted", "/old.md", None),
    ],
    "run_changes": [{"memory_store_id": "memstore_1", "seq": 2, "run_id": "run_1", "tool_use_id": "toolu_1"}],
    "runs": [_RUN, {**_RUN, "id": "run_2", "prompt": "Go on", "cost_usd": None, "memory_store_ids": []}],
    "run_events": [
        {"session_id": "sesn_1", "run_id": "run_1", "n": n, "type": kind, "data": data, "created_at": NOON}
        for n, (kind, data) in enumerate(_EVENTS, 1)
    ],
}


class MadeRows:
    """The rows above; `asked` is what the last query asked for."""

    def __init__(self) -> None:
        self.asked: dict[str, tuple[str, ...]] = {}

    def dump(self, tables: Mapping[str, Sequence[str]]) -> Generator[tuple[str, Iterator[Row]]]:
        """The named columns of the named tables."""
        self.asked = {table: tuple(columns) for table, columns in tables.items()}
        for table, columns in tables.items():
            yield table, (tuple(row[column] for column in columns) for row in MADE[table])


class LostRows(MadeRows):
    """The rows above, but so many times the server is lost after so many rows of a table; `after` None: before any."""

    def __init__(self, after: int | None, times: int = 1) -> None:
        super().__init__()
        self.dumps = 0
        self._after, self._times = after, times

    def dump(self, tables: Mapping[str, Sequence[str]]) -> Generator[tuple[str, Iterator[Row]]]:
        """The named columns of the named tables."""
        self.dumps += 1
        is_lost = self.dumps <= self._times
        if is_lost and self._after is None:
            raise DatabaseUnavailableError
        for table, rows in super().dump(tables):
            yield table, (self._broken(rows) if is_lost else rows)

    def _broken(self, rows: Iterator[Row]) -> Iterator[Row]:
        yield from islice(rows, self._after)
        raise DatabaseUnavailableError


class EndlessRows:
    """A history that does not end. `begun`: it is being read; `closed`: what was ended properly, in that order."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.closed: list[str] = []

    def dump(self, tables: Mapping[str, Sequence[str]]) -> Generator[tuple[str, Iterator[Row]]]:
        """The first made version, again and again."""
        try:
            for table, columns in tables.items():
                yield table, self._endless(tuple(MADE[table][0][column] for column in columns))
        finally:
            self.closed.append("dump")

    def _endless(self, row: Row) -> Iterator[Row]:
        self.begun.set()
        try:
            while True:
                yield row
        finally:
            self.closed.append("rows")
