"""Stores and the sessions that attach them."""

from __future__ import annotations

from typing import Any

from memkernel.models import AttachmentParams, MemoryStore, Page, SessionRecord
from memkernel.store import Database

NO_STORE = "memstore_" + "0" * 26


def attach(*stores: MemoryStore, **facts: Any) -> list[AttachmentParams]:
    """The parameters that attach these stores."""
    return [AttachmentParams(store.id, **facts) for store in stores]


def make_stores(database: Database, *names: str) -> list[MemoryStore]:
    """A store for each name."""
    return [database.memory_stores.create(name=name) for name in names]


def all_ids(page: Page[SessionRecord]) -> list[str]:
    """The ids of a page of sessions."""
    return [session.id for session in page.data]
