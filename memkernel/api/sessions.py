"""The routes of sessions (CONTRACT C.1)."""

from __future__ import annotations

from functools import partial
from typing import Final

from memkernel.api import session_wire, wire
from memkernel.api.params import (
    FLAG,
    LIMIT,
    METADATA,
    METADATA_PATCH,
    MOMENT,
    ONE_LINE,
    PAGE,
    Field,
    Json,
    each,
    integer,
    nullable,
    one_of,
    text,
)
from memkernel.api.routes import SESSION_BETA, Call, Route
from memkernel.store import checks


def create(call: Call) -> Json:
    """Create a session that attaches memory stores. memkernel keeps the agent's id and runs none."""
    call.body.pop("initial_events", None)
    return session_wire.session(call.database.sessions.create(**call.body))


def retrieve(call: Call) -> Json:
    """Retrieve a session."""
    return session_wire.session(call.database.sessions.retrieve(*call.ids))


def update(call: Call) -> Json:
    """Change a session's title, metadata or budget; metadata is a patch, a budget of null is removed."""
    return session_wire.session(call.database.sessions.update(*call.ids, **call.body))


def list(call: Call) -> Json:
    """List the sessions, newest first, with pages in both directions."""
    return session_wire.session_page(call.database.sessions.list(**call.query))


def delete(call: Call) -> Json:
    """Delete a session; its stores stay. One whose sandbox may hold unsaved edits is refused: it is ended there."""
    call.database.sessions.delete(*call.ids, running_too=False)
    return wire.deleted(call.ids[0], "session")


def archive(call: Call) -> Json:
    """Take a session out of the listings, for ever."""
    return session_wire.session(call.database.sessions.archive(*call.ids))


_TITLE: Final = nullable(text(checks.title, pattern=ONE_LINE, maxLength=checks.MAX_TITLE_CHARS))

_NEW: Final = (
    Field("agent", session_wire.AGENT, required=True),
    Field("environment_id", session_wire.ID, required=True),
    Field("budget", session_wire.BUDGET),
    Field("initial_events", session_wire.INITIAL_EVENTS),
    Field("metadata", METADATA),
    Field("resources", each(session_wire.RESOURCE)),
    Field("title", _TITLE),
    Field("vault_ids", each(session_wire.ID)),
)
_CHANGES: Final = (
    Field("agent", session_wire.AGENT_UPDATE),
    Field("budget", nullable(session_wire.BUDGET)),
    Field("metadata", nullable(METADATA_PATCH)),
    Field("title", _TITLE),
    Field("vault_ids", session_wire.VAULTS_UPDATE),
)
_FILTERS: Final = (
    Field("agent_id", text()),
    Field("agent_version", integer(partial(checks.version, "agent_version"), minimum=1, maximum=checks.MAX_VERSION)),
    Field("created_at[gt]", MOMENT),
    Field("created_at[gte]", MOMENT),
    Field("created_at[lt]", MOMENT),
    Field("created_at[lte]", MOMENT),
    Field("deployment_id", text()),
    Field("include_archived", FLAG),
    LIMIT,
    Field("memory_store_id", text()),
    Field("order", one_of("asc", "desc")),
    PAGE,
    Field("statuses[]", each(one_of(*checks.STATUSES))),
)

_ALL: Final = "/v1/sessions"
_ONE: Final = "/v1/sessions/{session_id}"

_route: Final = partial(Route, betas=(SESSION_BETA,))

ROUTES: Final = (
    _route("POST", _ALL, create, "Session", body=_NEW),
    _route("GET", _ALL, list, "SessionPage", query=_FILTERS),
    _route("GET", _ONE, retrieve, "Session"),
    _route("POST", _ONE, update, "Session", body=_CHANGES),
    _route("DELETE", _ONE, delete, "SessionDeleted"),
    _route("POST", f"{_ONE}/archive", archive, "Session"),
)
