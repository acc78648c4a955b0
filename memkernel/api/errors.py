"""Exceptions -> responses (CONTRACT B.1.1): one table, and the envelope."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from memkernel import ids
from memkernel.api import wire
from memkernel.api.messages import Response
from memkernel.errors import (
    ApiError,
    ConflictError,
    DatabaseUnavailableError,
    InvalidContentError,
    InvalidInputError,
    InvalidPageError,
    NotFoundError,
    PathConflictError,
    PreconditionFailedError,
    RefusedError,
    WorkspaceRoleError,
)

_LOG: Final = logging.getLogger("memkernel.api")
_MAX_MESSAGE_CHARS: Final = 1_000

NO_RETRY: Final = {"x-should-retry": "false"}

TYPES: Final[Mapping[int, str]] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "request_too_large",
    500: "api_error",
    503: "api_error",
}
"""The error types that are used, where a row of the table names no other."""


def _sentence(error: Exception) -> str:
    return str(error)


@dataclass(frozen=True, slots=True)
class _Rule:
    status: int
    type: str = ""
    message: Callable[[Any], str] = _sentence
    facts: tuple[str, ...] = ()
    headers: Callable[[Any], Mapping[str, str]] = field(default=lambda _: {})


def _unavailable(error: DatabaseUnavailableError) -> str:
    # Its own sentence says where the database is.
    known = "nothing was changed" if error.saved is False else "it is unknown whether this was saved"
    return f"the database is not available; {known}"


_BROKEN: Final = _Rule(500, message=lambda _: "something went wrong in memkernel; its log tells more")

_RULES: Final[Mapping[type[Exception], _Rule]] = {
    InvalidInputError: _Rule(400),
    InvalidContentError: _Rule(400, message=lambda error: f"content: {error}"),
    InvalidPageError: _Rule(400, message=lambda error: f"page: {error}"),
    NotFoundError: _Rule(404),
    RefusedError: _Rule(400),
    ConflictError: _Rule(409, headers=lambda _: NO_RETRY),
    PreconditionFailedError: _Rule(409, "memory_precondition_failed_error", headers=lambda _: NO_RETRY),
    PathConflictError: _Rule(
        409,
        "memory_path_conflict_error",
        facts=("conflicting_memory_id", "conflicting_path"),
        headers=lambda _: NO_RETRY,
    ),
    DatabaseUnavailableError: _Rule(
        503,
        message=_unavailable,
        headers=lambda error: {"retry-after": "1", **({} if error.saved is False else NO_RETRY)},
    ),
    WorkspaceRoleError: _BROKEN,
    Exception: _BROKEN,
}


def envelopes(status: int) -> dict[str, tuple[str, ...]]:
    """The error types that answer with this status, and the facts that each brings besides its message."""
    found = {rule.type or TYPES[status]: rule.facts for rule in _RULES.values() if rule.status == status}
    return found or {TYPES[status]: ()}


def response(error: Exception, headers: Mapping[str, str] | None = None) -> Response:
    """The response to a request that failed.

    Args:
        error: what it failed with; what is not in the table is logged, and answered by a sentence that tells nothing.
        headers: of the response; a `request-id` is made where it has none.
    """
    headers = {"content-type": "application/json", "request-id": ids.mint("req"), **(headers or {})}
    rule = _rule(error)
    if rule.status == 500:
        _LOG.error("request %s failed", headers["request-id"], exc_info=error)
    facts = {name: getattr(error, name) for name in rule.facts}
    message = wire.shortened(rule.message(error), _MAX_MESSAGE_CHARS)
    told = {"type": rule.type or TYPES[rule.status], "message": message, **facts}
    envelope = {"type": "error", "error": told, "request_id": headers["request-id"]}
    return Response(rule.status, {**headers, **rule.headers(error)}, wire.encode(envelope))


def _rule(error: Exception) -> _Rule:
    if isinstance(error, ApiError):
        return _Rule(error.status_code, headers=lambda _: error.headers)
    return next(_RULES[kind] for kind in cast(tuple[type[Exception], ...], type(error).__mro__) if kind in _RULES)
