"""Keys to the HTTP API."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key to the HTTP API: to one workspace, and there perhaps only to reading. Its secret is kept as a hash.

    `id` is the `api_actor` of what is written with it. None: it does not expire; it was not revoked.
    """

    id: str
    workspace_id: str
    name: str
    read_only: bool
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
