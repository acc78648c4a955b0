"""Rows in PostgreSQL's binary format -> records. Each reader takes the columns in the order of queries.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, cast

from psycopg import pq

from memkernel.models import (
    Actor,
    ActorType,
    AgentReference,
    Attachment,
    BudgetLimit,
    Cause,
    Memory,
    MemoryPrefix,
    MemoryStore,
    MemoryVersion,
    Operation,
    SessionRecord,
    SessionStatus,
)
from memkernel.store.statements import EPOCH

_MEMORY_COLUMNS: Final = 7
_VERSION_COLUMNS: Final = 14


def text(value: bytes | None) -> str:
    """A column that is never NULL, as text."""
    return (value or b"").decode()


def optional_text(value: bytes | None) -> str | None:
    """A column as text, or None for NULL."""
    return None if value is None else value.decode()


def moment(value: bytes | None) -> datetime:
    """A timestamptz that is never NULL."""
    return EPOCH + timedelta(0, 0, int.from_bytes(value or b"", signed=True))  # keywords cost 1 us


def number(value: bytes | None) -> int:
    """An integer of any width that is never NULL."""
    return int.from_bytes(value or b"", signed=True)


def store(result: pq.abc.PGresult, row: int) -> MemoryStore:
    """A row of queries.STORE."""
    get = result.get_value
    archived_at = get(row, 6)
    return MemoryStore(
        id=text(get(row, 0)),
        name=text(get(row, 1)),
        description=text(get(row, 2)),
        metadata=json.loads(get(row, 3) or b"{}"),
        created_at=moment(get(row, 4)),
        updated_at=moment(get(row, 5)),
        archived_at=None if archived_at is None else moment(archived_at),
        head_seq=number(get(row, 7)),
        memory_count=number(get(row, 8)),
    )


def memory(result: pq.abc.PGresult, row: int, store_id: str, content: str | None) -> Memory:
    """A row of queries.MEMORY."""
    get = cast(Callable[[int, int], bytes], result.get_value)  # no column is ever NULL
    return Memory(
        get(row, 0).decode(),
        store_id,
        get(row, 2).decode(),
        get(row, 1).decode(),
        content,
        int.from_bytes(get(row, 4)),
        get(row, 3).hex(),
        moment(get(row, 5)),
        moment(get(row, 6)),
    )


def memory_in_view(result: pq.abc.PGresult, row: int, store_id: str) -> Memory:
    """A row of queries.MEMORY, and of the content where that was asked for."""
    content = text(result.get_value(row, _MEMORY_COLUMNS)) if result.nfields > _MEMORY_COLUMNS else None
    return memory(result, row, store_id, content)


def memory_or_prefix(result: pq.abc.PGresult, row: int, store_id: str) -> Memory | MemoryPrefix:
    """A row of queries.ROLL_UP_*, whose last column is the item's path; a prefix has no memory id."""
    if result.get_value(row, 0) is None:
        return MemoryPrefix(text(result.get_value(row, result.nfields - 1)))
    content = text(result.get_value(row, _MEMORY_COLUMNS)) if result.nfields > _MEMORY_COLUMNS + 1 else None
    return memory(result, row, store_id, content)


def version_in_view(result: pq.abc.PGresult, row: int, store_id: str, *, full: bool = True) -> MemoryVersion:
    """A row of queries.VERSION, and of the content where that was asked for."""
    content = result.get_value(row, _VERSION_COLUMNS) if full and result.nfields > _VERSION_COLUMNS else None
    return version(result, row, store_id, None if content is None else content.decode())


def version(result: pq.abc.PGresult, row: int, store_id: str, content: str | None) -> MemoryVersion:
    """A row of queries.VERSION."""
    get = result.get_value
    path, sha256, size, redacted_at = get(row, 5), get(row, 6), get(row, 7), get(row, 11)
    return MemoryVersion(
        id=text(get(row, 0)),
        memory_store_id=store_id,
        memory_id=text(get(row, 1)),
        seq=number(get(row, 2)),
        ordinal=number(get(row, 3)),
        operation=cast(Operation, text(get(row, 4))),
        path=None if path is None else path.decode(),
        content=content,
        content_sha256=None if sha256 is None else sha256.hex(),
        content_size_bytes=None if size is None else number(size),
        created_at=moment(get(row, 8)),
        created_by=_actor(get(row, 9), get(row, 10)),
        redacted_at=None if redacted_at is None else moment(redacted_at),
        redacted_by=_actor(get(row, 12), get(row, 13)),
    )


def causes(result: pq.abc.PGresult) -> dict[int, Cause]:
    """Rows of a change's number, its run and its tool call; these are NULL where no call made it."""
    get = result.get_value
    return {
        number(get(row, 0)): Cause(text(get(row, 1)), text(get(row, 2)))
        for row in range(result.ntuples)
        if get(row, 1) is not None
    }


def session(result: pq.abc.PGresult, row: int) -> SessionRecord:
    """A row of session_queries.SESSION."""
    get = result.get_value
    title, archived_at, agent, environment, budget = (get(row, column) for column in (1, 6, 8, 9, 11))
    return SessionRecord(
        id=text(get(row, 0)),
        title=None if title is None else title.decode(),
        metadata=json.loads(get(row, 2) or b"{}"),
        status=cast(SessionStatus, text(get(row, 3))),
        created_at=moment(get(row, 4)),
        updated_at=moment(get(row, 5)),
        archived_at=None if archived_at is None else moment(archived_at),
        resources=tuple(Attachment(*resource) for resource in json.loads(get(row, 7) or b"[]")),
        agent=None if agent is None else AgentReference(**json.loads(agent)),
        environment_id=None if environment is None else environment.decode(),
        vault_ids=tuple(json.loads(get(row, 10) or b"[]")),
        budget=None if budget is None else BudgetLimit(**json.loads(budget)),
    )


def _actor(kind: bytes | None, ident: bytes | None) -> Actor | None:
    return None if kind is None else Actor(cast(ActorType, kind.decode()), text(ident))
