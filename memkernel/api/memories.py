"""The routes of memories (CONTRACT B.2, B.5 to B.8)."""

from __future__ import annotations

from typing import Any, Final

from memkernel.api import wire
from memkernel.api.params import (
    LIMIT,
    PAGE,
    SHA256,
    VIEW_BASIC,
    VIEW_FULL,
    Field,
    Json,
    Kind,
    integer,
    nullable,
    one_of,
    record,
    text,
)
from memkernel.api.routes import Call, Route
from memkernel.paths import MAX_PATH_BYTES, MAX_SEGMENTS
from memkernel.store import checks


def create(call: Call) -> Json:
    """Create a memory."""
    (store_id,) = call.ids
    return wire.memory(call.database.memories.create(store_id, actor=call.actor, **call.body, **call.query))


def retrieve(call: Call) -> Json:
    """Retrieve a memory."""
    store_id, memory_id = call.ids
    return wire.memory(call.database.memories.retrieve(memory_id, memory_store_id=store_id, **call.query))


def update(call: Call) -> Json:
    """Change a memory's content, its path, or both in one version."""
    store_id, memory_id = call.ids
    return wire.memory(
        call.database.memories.update(memory_id, memory_store_id=store_id, actor=call.actor, **call.body, **call.query)
    )


def list(call: Call) -> Json:
    """List the memories below a prefix, in ascending bytewise path order."""
    return wire.page(call.database.memories.list(*call.ids, **call.query), wire.memory_or_prefix)


def delete(call: Call) -> Json:
    """Delete a memory; its versions stay."""
    store_id, memory_id = call.ids
    call.database.memories.delete(memory_id, memory_store_id=store_id, actor=call.actor, **call.query)
    return wire.deleted(memory_id, "memory")


def _content_sha256(name: str, value: Any) -> str | None:
    precondition = _PRECONDITION_OBJECT.read(name, value)
    return precondition["content_sha256"]


_SEGMENT: Final = r"(?!\.{1,2}(/|$))[^/\x00-\x1f\x7f-\x9f]+"
_PATH: Final = text(checks.path, pattern=f"^(/{_SEGMENT}){{1,{MAX_SEGMENTS}}}$", minLength=2, maxLength=MAX_PATH_BYTES)
_PREFIX: Final = text(checks.prefix, pattern=f"^/({_SEGMENT}/){{0,{MAX_SEGMENTS}}}$", maxLength=MAX_PATH_BYTES + 1)
_CONTENT: Final = text(str, pattern=None)  # any text: how long it may be is the store's to say, and U+0000 is welcome
_PRECONDITION_OBJECT: Final = record(
    Field("type", one_of("content_sha256"), required=True), Field("content_sha256", SHA256, required=True)
)
_PRECONDITION: Final = Kind(_content_sha256, _PRECONDITION_OBJECT.schema)

_NEW: Final = (Field("path", _PATH, required=True), Field("content", _CONTENT, required=True))
_CHANGES: Final = (
    Field("content", nullable(_CONTENT)),
    Field("path", nullable(_PATH)),
    Field("precondition", nullable(_PRECONDITION)),
)
_FILTERS: Final = (
    Field("path_prefix", _PREFIX),
    Field("depth", integer(checks.depth, minimum=0, maximum=1, default=0)),
    VIEW_BASIC,
    LIMIT,
    PAGE,
)

_ALL: Final = "/v1/memory_stores/{memory_store_id}/memories"
_ONE: Final = f"{_ALL}/{{memory_id}}"

ROUTES: Final = (
    Route("POST", _ALL, create, "Memory", query=(VIEW_BASIC,), body=_NEW, conflicts=True),
    Route("GET", _ALL, list, "MemoryPage", query=_FILTERS),
    Route("GET", _ONE, retrieve, "Memory", query=(VIEW_FULL,)),
    Route("POST", _ONE, update, "Memory", query=(VIEW_BASIC,), body=_CHANGES, conflicts=True),
    Route("DELETE", _ONE, delete, "MemoryDeleted", query=(Field("expected_content_sha256", SHA256),), conflicts=True),
)
