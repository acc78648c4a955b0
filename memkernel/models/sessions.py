"""Sessions and the stores that they attach (CONTRACT C)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Literal

Access = Literal["read_write", "read_only"]
SessionStatus = Literal["rescheduling", "running", "idle", "terminated"]


@dataclass(frozen=True, slots=True)
class AttachmentParams:
    """A store that a new session shall attach (CONTRACT C.2). `instructions`: at most 4,096 characters."""

    memory_store_id: str
    access: Access | None = None
    instructions: str | None = None


@dataclass(frozen=True, slots=True)
class Attachment:
    """A session's `memory_store` resource: a snapshot from when the session was made (CONTRACT C.3, C.4)."""

    type: ClassVar[Literal["memory_store"]] = "memory_store"
    memory_store_id: str
    name: str
    description: str
    access: Access
    instructions: str | None
    mount_path: str

    @property
    def slug(self) -> str:
        """The last segment of `mount_path`: the name of the store's folder."""
        return self.mount_path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A session: who writes (`session_actor`, its id), and to which stores. `resources` in the order given."""

    type: ClassVar[Literal["session"]] = "session"
    id: str
    title: str | None
    metadata: dict[str, str]
    status: SessionStatus
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None
    resources: tuple[Attachment, ...]
