"""The one door where PostgreSQL's errors become memkernel's: by SQLSTATE and constraint, never by their words."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import psycopg

from memkernel.errors import (
    AlreadyExistsError,
    CapacityError,
    DatabaseError,
    DatabaseUnavailableError,
    HeadRedactionError,
    InvalidInputError,
    InvalidPathError,
    MemkernelError,
    MemoryNotFoundError,
    PathConflictError,
    PreconditionFailedError,
    RedactedError,
    RunNotFoundError,
    RunRunningError,
    RunTakenOverError,
    SessionNotFoundError,
    SessionRunningError,
    StoreArchivedError,
    StoreAttachedError,
    StoreNotFoundError,
    VersionNotFoundError,
)

TOO_FEW_IDS: Final = "MK040"

_Facts = dict[str, Any]

# What the functions of migrations/ raise; the facts are their DETAIL.
_REFUSALS: Final[dict[str, Callable[[_Facts, str], MemkernelError]]] = {
    "MK001": lambda facts, _: StoreNotFoundError(facts["store"]),
    "MK002": lambda facts, _: MemoryNotFoundError(facts["memory"]),
    "MK003": lambda facts, _: VersionNotFoundError(facts["version"]),
    "MK004": lambda facts, _: SessionNotFoundError(facts["session"]),
    "MK005": lambda facts, _: RunNotFoundError(facts["run"]),
    "MK010": lambda facts, _: PreconditionFailedError(facts["path"], facts["expected"], facts["actual"]),
    "MK011": lambda facts, _: PathConflictError(
        facts["path"], facts["conflicting_path"], facts["conflicting_memory_id"]
    ),
    "MK012": lambda facts, _: AlreadyExistsError(facts["name"]),
    "MK020": lambda facts, _: StoreArchivedError(facts["store"]),
    "MK021": lambda facts, _: CapacityError(facts["limit"]),
    "MK022": lambda facts, _: HeadRedactionError(facts["version"]),
    "MK023": lambda facts, _: RedactedError(facts["version"]),
    "MK024": lambda facts, _: StoreAttachedError(facts["store"], facts["sessions"]),
    "MK025": lambda facts, _: SessionRunningError(facts["session"]),
    "MK026": lambda facts, _: RunTakenOverError(facts["run"]),
    "MK027": lambda facts, _: RunRunningError(facts["run"]),
    "MK030": lambda _, message: InvalidInputError(message),
    "MK031": lambda facts, message: InvalidPathError(facts["path"], message),
}

_LOST_CLASSES: Final = ("08", "57P")
_LATER: Final = ("25006", "53")  # read-only, as a standby is; no room, no memory, no connection left


def facts(error: psycopg.Error) -> dict[str, Any]:
    """The facts of a refusal, as the functions of migrations/ put them into DETAIL."""
    return json.loads(error.diag.message_detail or "{}")


def translate(error: psycopg.Error) -> MemkernelError:
    """The memkernel error that this error of PostgreSQL is."""
    refusal = _REFUSALS.get(error.sqlstate or "")
    if refusal is None:
        told = f"PostgreSQL refused: {error.diag.message_primary or error}"
        return DatabaseUnavailableError(told) if (error.sqlstate or "").startswith(_LATER) else DatabaseError(told)
    return refusal(facts(error), error.diag.message_primary or "")


def is_lost(error: psycopg.Error) -> bool:
    """Whether the error says that the connection, or the server behind it, is gone."""
    state = error.sqlstate
    if state is None:
        return isinstance(error, psycopg.OperationalError)
    return state.startswith(_LOST_CLASSES)
