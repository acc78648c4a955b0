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


def folder_name(mount_path: str) -> str:
    """The last segment of a mount path: the slug of its store."""
    return mount_path.rpartition("/")[2]


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
        return folder_name(self.mount_path)


@dataclass(frozen=True, slots=True)
class AgentReference:
    """The agent that a session was asked for. memkernel knows nothing else of it."""

    type: ClassVar[Literal["agent"]] = "agent"
    id: str
    version: int = 1


@dataclass(frozen=True, slots=True)
class BudgetLimit:
    """What a session may cost at most; memkernel keeps it, and does not enforce it.

    Attributes:
        amount: in minor units, as a whole number without leading zeros: `"2500"` is 25 dollars.
        currency: `USD`.
    """

    type: ClassVar[Literal["limit"]] = "limit"
    amount: str
    currency: str = "USD"


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A session: who writes (`session_actor`, its id), and to which stores. `resources` in the order given.

    `agent` and `environment_id` are None where nobody said: a sandbox's own session.
    """

    type: ClassVar[Literal["session"]] = "session"
    id: str
    title: str | None
    metadata: dict[str, str]
    status: SessionStatus
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None
    resources: tuple[Attachment, ...]
    agent: AgentReference | None = None
    environment_id: str | None = None
    vault_ids: tuple[str, ...] = ()
    budget: BudgetLimit | None = None
