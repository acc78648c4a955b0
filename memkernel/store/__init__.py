"""The record layer: memory stores, memories and their versions in PostgreSQL. The only code that knows SQL."""

from __future__ import annotations

from memkernel.models import ServerStatus
from memkernel.store.contact import Settled, Unsettled
from memkernel.store.database import Database
from memkernel.store.memory_stores import UNSET, Unset

__all__ = ["UNSET", "Database", "ServerStatus", "Settled", "Unset", "Unsettled"]
