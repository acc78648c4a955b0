"""The routes of a session's resources: its memory stores, which are chosen when it is created (CONTRACT C.1-C.3).

A resource's id is its store's (CONTRACT 0.3, row 15).
"""

from __future__ import annotations

from functools import partial
from typing import Final

from memkernel.api import session_wire, wire
from memkernel.api.params import PAGE, Field, Json, integer
from memkernel.api.routes import SESSION_BETA, Call, Route
from memkernel.store import checks


def list(call: Call) -> Json:
    """List what a session attaches, in the order in which it was asked for; without a limit, all of it."""
    return wire.page(call.database.sessions.resources(*call.ids, **call.query), session_wire.resource)


def retrieve(call: Call) -> Json:
    """Retrieve a memory store as a session attaches it."""
    return session_wire.resource(call.database.sessions.resource(*call.ids))


def add(call: Call) -> Json:
    """Refused: a session's memory stores are chosen when it is created, and memkernel mounts nothing else."""
    call.database.sessions.add_resource(*call.ids)


def update(call: Call) -> Json:
    """Refused: a memory store has no token that could be changed."""
    call.database.sessions.update_resource(*call.ids)


def delete(call: Call) -> Json:
    """Refused: a session's memory stores are chosen when it is created."""
    call.database.sessions.delete_resource(*call.ids)


_ALL: Final = "/v1/sessions/{session_id}/resources"
_ONE: Final = f"{_ALL}/{{resource_id}}"

_LIMIT: Final = Field(
    "limit",
    integer(partial(checks.limit, most=checks.MAX_RESOURCES_PAGE), minimum=1, maximum=checks.MAX_RESOURCES_PAGE),
)

_route: Final = partial(Route, betas=(SESSION_BETA,))

ROUTES: Final = (
    _route("GET", _ALL, list, "SessionResourcePage", query=(_LIMIT, PAGE)),
    _route("POST", _ALL, add, "SessionResource"),
    _route("GET", _ONE, retrieve, "SessionResource"),
    _route("POST", _ONE, update, "SessionResource"),
    _route("DELETE", _ONE, delete, "SessionResourceDeleted"),
)
