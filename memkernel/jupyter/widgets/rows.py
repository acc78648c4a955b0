"""Records as the page gets them: arrays, half as long as objects; the page's records.js gives the names back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TypeAlias

from memkernel.models import Memory, MemoryVersion
from memkernel.render.marks import pieces

Marked: TypeAlias = "str | list[str | list[str]]"
"""A stored text as the page may show it: as it is, or in pieces where a `[mark, title]` stands for a character that
cannot be seen."""


def marked(text: str) -> Marked:
    """The text with a mark in place of each character that cannot be seen; one without any stays a str."""
    found = list(pieces(text))
    if all(isinstance(piece, str) for piece in found):
        return text
    return [piece if isinstance(piece, str) else list(piece) for piece in found]


def version_row(version: MemoryVersion) -> list[Any]:
    """[id, ordinal, operation, path, actor_type, actor_id, at, size, sha256_8, redacted_by, redacted_at]"""
    by, redactor = version.created_by, version.redacted_by
    return [
        *(version.id, version.ordinal, version.operation),
        None if version.path is None else marked(version.path),
        *((by.type, by.id) if by else (None, None)),
        iso(version.created_at),
        version.content_size_bytes,
        version.content_sha256[:8] if version.content_sha256 else None,
        redactor.id if redactor else None,
        iso(version.redacted_at) if version.redacted_at else None,
    ]


def memory_row(memory: Memory) -> list[Any]:
    """[path, size, updated_at, memory_version_id]"""
    return [marked(memory.path), memory.content_size_bytes, iso(memory.updated_at), memory.memory_version_id]


def iso(time: datetime) -> str:
    """`2026-11-30T09:21:05Z`"""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
