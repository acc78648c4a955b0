"""Records -> JSON (CONTRACT B.1, B.3, B.5, B.10): every documented field, null included."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, TypeVar

from memkernel.api.params import Json
from memkernel.models import Actor, ActorType, Memory, MemoryPrefix, MemoryStore, MemoryVersion, Page

T = TypeVar("T")

_encode: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode

_ACTOR_IDS: Final[dict[ActorType, str]] = {
    "api_actor": "api_key_id",
    "session_actor": "session_id",
    "user_actor": "user_id",
    "service_account_actor": "service_account_id",
}


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
