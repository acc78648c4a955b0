"""Sessions over the API, written short."""

from __future__ import annotations

from typing import Any, Final

from tests.api.calls import Answer, Caller, Json

SESSIONS: Final = "/v1/sessions"


def attach(store: str, **facts: Any) -> Json:
    """A resource of a new session."""
    return {"type": "memory_store", "memory_store_id": store, **facts}


def begin(call: Caller, *resources: str | Json, **body: Any) -> Answer:
    """A new session that attaches these stores."""
    attached = [attach(one) if isinstance(one, str) else one for one in resources]
    return call("POST", SESSIONS, {"agent": "agent_1", "environment_id": "env_1", "resources": attached, **body})


def session(ident: str, *more: str) -> str:
    """The path of a session, or of what belongs to it."""
    return "/".join([SESSIONS, ident, *more])
