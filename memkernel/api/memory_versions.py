"""The routes of memory versions (CONTRACT B.2, B.10)."""

from __future__ import annotations

from typing import Final

from memkernel.api import wire
from memkernel.api.params import LIMIT, MOMENT, PAGE, VIEW_BASIC, VIEW_FULL, Field, Json, one_of, text
from memkernel.api.routes import Call, Route


def retrieve(call: Call) -> Json:
    """Retrieve a version of a memory."""
    store_id, version_id = call.ids
    versions = call.database.memory_versions
    return wire.memory_version(versions.retrieve(version_id, memory_store_id=store_id, **call.query))


def list(call: Call) -> Json:
    """List the versions of a store, newest first; all filters must hold."""
    return wire.page(call.database.memory_versions.list(*call.ids, **call.query), wire.memory_version)


def redact(call: Call) -> Json:
    """Erase a version's text, hash, size and path for ever."""
    store_id, version_id = call.ids
    versions = call.database.memory_versions
    return wire.memory_version(versions.redact(version_id, memory_store_id=store_id, actor=call.actor))


_FILTERS: Final = (
    Field("memory_id", text()),
    Field("operation", one_of("created", "modified", "deleted")),
    Field("session_id", text()),
    Field("api_key_id", text()),
    Field("service_account_id", text()),
    Field("created_at[gte]", MOMENT),
    Field("created_at[lte]", MOMENT),
    VIEW_BASIC,
    LIMIT,
    PAGE,
)

_ALL: Final = "/v1/memory_stores/{memory_store_id}/memory_versions"
_ONE: Final = f"{_ALL}/{{memory_version_id}}"

ROUTES: Final = (
    Route("GET", _ALL, list, "MemoryVersionPage", query=_FILTERS),
    Route("GET", _ONE, retrieve, "MemoryVersion", query=(VIEW_FULL,)),
    Route("POST", f"{_ONE}/redact", redact, "MemoryVersion"),
)
