"""Records -> JSON (CONTRACT B.1, B.3, B.5, B.10): every documented field, null included."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, TypeVar

from memkernel.api import params
from memkernel.api.params import Json, Schema, or_null
from memkernel.models import Actor, ActorType, Memory, MemoryPrefix, MemoryStore, MemoryVersion, Page

T = TypeVar("T")

_encode: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode

_ACTOR_IDS: Final[dict[ActorType, str]] = {
    "api_actor": "api_key_id",
    "session_actor": "session_id",
    "user_actor": "user_id",
    "service_account_actor": "service_account_id",
}


# -- what an answer looks like, as JSON Schema says it ---------------------------------------------------


def object_of(**properties: Schema) -> Schema:
    """An answer's object: all its members are always there."""
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def page_of(name: str) -> Schema:
    """A page of the objects that this component describes."""
    return object_of(data={"type": "array", "items": ref(name)}, next_page=or_null(TEXT))


def ref(name: str) -> Schema:
    """A component, by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def _tag(word: str) -> Schema:
    return {"type": "string", "const": word}


TEXT: Final[Schema] = {"type": "string"}
MOMENT: Final[Schema] = {"type": "string", "format": "date-time"}
SIZE: Final[Schema] = {"type": "integer", "minimum": 0}
SHA256: Final = params.SHA256.schema
PAIRS: Final[Schema] = {"type": "object", "additionalProperties": TEXT}


SCHEMAS: Final[dict[str, Schema]] = {
    "Actor": {
        "oneOf": [object_of(type=_tag(kind), **{ident: TEXT}) for kind, ident in _ACTOR_IDS.items()],
    },
    "MemoryStore": object_of(
        id=TEXT,
        type=_tag("memory_store"),
        name=TEXT,
        description=TEXT,
        metadata=PAIRS,
        created_at=MOMENT,
        updated_at=MOMENT,
        archived_at=or_null(MOMENT),
    ),
    "MemoryStorePage": page_of("MemoryStore"),
    "MemoryStoreDeleted": object_of(id=TEXT, type=_tag("memory_store_deleted")),
    "Memory": object_of(
        id=TEXT,
        type=_tag("memory"),
        memory_store_id=TEXT,
        memory_version_id=TEXT,
        path=TEXT,
        content=or_null(TEXT),
        content_size_bytes=SIZE,
        content_sha256=SHA256,
        created_at=MOMENT,
        updated_at=MOMENT,
    ),
    "MemoryPrefix": object_of(type=_tag("memory_prefix"), path=TEXT),
    "MemoryOrPrefix": {"oneOf": [ref("Memory"), ref("MemoryPrefix")]},
    "MemoryPage": page_of("MemoryOrPrefix"),
    "MemoryDeleted": object_of(id=TEXT, type=_tag("memory_deleted")),
    "MemoryVersion": object_of(
        id=TEXT,
        type=_tag("memory_version"),
        memory_store_id=TEXT,
        memory_id=TEXT,
        operation={"type": "string", "enum": ["created", "modified", "deleted"]},
        path=or_null(TEXT),
        content=or_null(TEXT),
        content_size_bytes=or_null(SIZE),
        content_sha256=or_null(SHA256),
        created_at=MOMENT,
        created_by=or_null(ref("Actor")),
        redacted_at=or_null(MOMENT),
        redacted_by=or_null(ref("Actor")),
    ),
    "MemoryVersionPage": page_of("MemoryVersion"),
}


# -- records -> JSON -----------------------------------------------------------------------------------


def encode(value: Json) -> bytes:
    """The JSON text; a lone surrogate, which only the echo of a bad request can hold, is written as an escape."""
    return _encode(value).encode(errors="backslashreplace")


def shortened(text: str, most: int) -> str:
    """A text of at most so many characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def moment(value: datetime) -> str:
    """A UTC time as RFC 3339 writes it, with microseconds."""
    return f"{value.isoformat(timespec='microseconds')[:-6]}Z"


def optional_moment(value: datetime | None) -> str | None:
    """A time, or null."""
    return None if value is None else moment(value)


def actor(value: Actor | None) -> Json | None:
    """Who made a change; its id's name depends on what it is."""
    return None if value is None else {"type": value.type, _ACTOR_IDS[value.type]: value.id}


def memory_store(store: MemoryStore) -> Json:
    """A store (CONTRACT B.3)."""
    return {
        "id": store.id,
        "type": store.type,
        "name": store.name,
        "description": store.description,
        "metadata": store.metadata,
        "created_at": moment(store.created_at),
        "updated_at": moment(store.updated_at),
        "archived_at": optional_moment(store.archived_at),
    }


def memory(item: Memory) -> Json:
    """A memory (CONTRACT B.5)."""
    return {
        "id": item.id,
        "type": "memory",
        "memory_store_id": item.memory_store_id,
        "memory_version_id": item.memory_version_id,
        "path": item.path,
        "content": item.content,
        "content_size_bytes": item.content_size_bytes,
        "content_sha256": item.content_sha256,
        "created_at": moment(item.created_at),
        "updated_at": moment(item.updated_at),
    }


def memory_or_prefix(item: Memory | MemoryPrefix) -> Json:
    """What a list of memories holds (CONTRACT B.8)."""
    return memory(item) if isinstance(item, Memory) else {"type": "memory_prefix", "path": item.path}


def memory_version(version: MemoryVersion) -> Json:
    """A version (CONTRACT B.10)."""
    return {
        "id": version.id,
        "type": version.type,
        "memory_store_id": version.memory_store_id,
        "memory_id": version.memory_id,
        "operation": version.operation,
        "path": version.path,
        "content": version.content,
        "content_size_bytes": version.content_size_bytes,
        "content_sha256": version.content_sha256,
        "created_at": moment(version.created_at),
        "created_by": actor(version.created_by),
        "redacted_at": optional_moment(version.redacted_at),
        "redacted_by": actor(version.redacted_by),
    }


def deleted(ident: str, kind: str) -> Json:
    """What is left of a thing that was deleted."""
    return {"id": ident, "type": f"{kind}_deleted"}


def page(found: Page[T], item: Callable[[T], Any]) -> Json:
    """A page of a listing (CONTRACT B.9)."""
    return {"data": [item(each) for each in found.data], "next_page": found.next_page}
