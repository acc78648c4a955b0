"""The routes of memory stores (CONTRACT B.2, B.3)."""

from __future__ import annotations

from typing import Final

from memkernel.api import wire
from memkernel.api.params import (
    FLAG,
    LIMIT,
    METADATA,
    METADATA_PATCH,
    MOMENT,
    ONE_LINE,
    PAGE,
    Field,
    Json,
    nullable,
    text,
)
from memkernel.api.routes import Call, Route
from memkernel.store import checks


def create(call: Call) -> Json:
    """Create a memory store."""
    return wire.memory_store(call.database.memory_stores.create(**call.body))


def retrieve(call: Call) -> Json:
    """Retrieve a memory store."""
    return wire.memory_store(call.database.memory_stores.retrieve(*call.ids))


def update(call: Call) -> Json:
    """Change a memory store's name, description or metadata; metadata is a patch."""
    return wire.memory_store(call.database.memory_stores.update(*call.ids, **call.body))


def list(call: Call) -> Json:
    """List the memory stores, newest first."""
    return wire.page(call.database.memory_stores.list(**call.query), wire.memory_store)


def delete(call: Call) -> Json:
    """Delete a memory store with its memories and their versions."""
    call.database.memory_stores.delete(*call.ids)
    return wire.deleted(call.ids[0], "memory_store")


def archive(call: Call) -> Json:
    """Make a memory store read-only, for ever."""
    return wire.memory_store(call.database.memory_stores.archive(*call.ids))


_NAME: Final = text(checks.name, pattern=ONE_LINE, minLength=1, maxLength=checks.MAX_NAME_CHARS)
_DESCRIPTION: Final = text(checks.description, maxLength=checks.MAX_DESCRIPTION_CHARS)

_NEW: Final = (Field("name", _NAME, required=True), Field("description", _DESCRIPTION), Field("metadata", METADATA))
_CHANGES: Final = (
    Field("name", nullable(_NAME)),
    Field("description", nullable(_DESCRIPTION)),
    Field("metadata", nullable(METADATA_PATCH)),
)
_FILTERS: Final = (
    Field("created_at[gte]", MOMENT),
    Field("created_at[lte]", MOMENT),
    Field("include_archived", FLAG),
    LIMIT,
    PAGE,
)

_ALL: Final = "/v1/memory_stores"
_ONE: Final = "/v1/memory_stores/{memory_store_id}"

ROUTES: Final = (
    Route("POST", _ALL, create, "MemoryStore", body=_NEW),
    Route("GET", _ALL, list, "MemoryStorePage", query=_FILTERS),
    Route("GET", _ONE, retrieve, "MemoryStore"),
    Route("POST", _ONE, update, "MemoryStore", body=_CHANGES),
    Route("DELETE", _ONE, delete, "MemoryStoreDeleted"),
    Route("POST", f"{_ONE}/archive", archive, "MemoryStore"),
)
