"""Changes whose outcome is unknown because the server was lost (CONTRACT 0.3, row 24)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unsettled:
    """A change that was sent and never answered; `version_id` is the (first) version that it would make."""

    memory_store_id: str
    version_id: str


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of an unsettled change."""

    memory_store_id: str
    version_id: str
    saved: bool
