"""`Request` in, `Response` out: the whole Memory API, plain and synchronous (CONTRACT B, C)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from memkernel import ids
from memkernel.api import (
    errors,
    memories,
    memory_stores,
    memory_versions,
    openapi,
    pages,
    params,
    session_resources,
    session_wire,
    sessions,
    wire,
)
from memkernel.api.messages import Principal, Request, Response
from memkernel.api.params import Json
from memkernel.api.routes import Call, Route, RouteTable
from memkernel.errors import ApiError, InvalidInputError
from memkernel.store import Database, checks

_GROUPS: Final = (memory_stores, memories, memory_versions, sessions, session_resources)
ROUTES: Final = RouteTable(route for group in _GROUPS for route in group.ROUTES)

_DOCUMENT: Final = "/openapi.json"
_WORKSPACE: Final = "anthropic-workspace-id"


@dataclass(frozen=True, slots=True)
class Strictness:
    """Where the documented API refuses and memkernel by default does not (CONTRACT 0.3, rows 2 and 6).

    Attributes:
        beta: each request must bring the one beta header of its route.
        full_limit: `view=full` with a limit over 20 is refused, not clamped.
    """

    beta: bool = False
    full_limit: bool = False


class Api:
    """The Memory API over a database. Safe to call from several threads."""

    def __init__(
        self,
        database: Database,
        authenticate: Callable[[Request], Principal],
        strictness: Strictness | None = None,
        *,
        in_workspace: Callable[[str], Database] | None = None,
    ) -> None:
        """Nothing is asked of the database yet.

        Args:
            database: the owner's; each request is served by its view of one workspace.
            authenticate: on whose behalf a request is made; an ApiError of 401 or 403 refuses it.
            strictness: lenient by default.
            in_workspace: the view of a workspace that serves a request; by default the database's own.
        """
        self._database = database
        self._authenticate = authenticate
        self._strictness = strictness or Strictness()
        self._in_workspace = in_workspace or database.in_workspace

    def dispatch(self, request: Request) -> Response:
        """Answer a request. Whatever goes wrong is a response, too."""
        headers = {"content-type": "application/json", "request-id": ids.mint("req")}
        try:
            return Response(200, headers, wire.encode(self._answer(request, headers)))
        except Exception as error:  # the rim, and clients in process, know responses only
            return errors.response(error, headers)

    def _answer(self, request: Request, headers: dict[str, str]) -> Json:
        """The answer's JSON; `headers` learns the workspace as soon as it is known."""
        if request.path == _DOCUMENT:
            return self._told(request)
        principal = self._authenticate(request)
        headers[_WORKSPACE] = workspace_id = principal.workspace_id
        _check_workspace(request.headers, workspace_id)
        methods, path_ids = ROUTES.find(request.path)
        route = _chosen(methods, request)
        self._check_betas(route, request.headers)
        if route.writes and principal.read_only:
            raise ApiError(403, "this key may only read")
        query = params.read_query(request.query, route.query)
        self._check_limit(query)
        if "page" in query:
            query["page"] = pages.opened(query["page"], workspace_id, self._page_key)
        body = {} if route.body is None else params.read_body(request.body, route.body)
        answer = route.handler(Call(self._in_workspace(workspace_id), principal.actor, path_ids, query, body))
        for token in ("next_page", "prev_page"):
            if answer.get(token):
                answer[token] = pages.signed(answer[token], workspace_id, self._page_key)
        return answer

    def _told(self, request: Request) -> Json:
        if request.method != "GET":
            raise _no_method(request, ["GET"])
        return self._document

    @cached_property
    def _document(self) -> Json:
        return openapi.document(ROUTES.routes, {**wire.SCHEMAS, **session_wire.SCHEMAS})

    @cached_property
    def _page_key(self) -> bytes:
        return self._database.page_key()

    def _check_betas(self, route: Route, headers: Mapping[str, str]) -> None:
        if not self._strictness.beta:
            return
        sent = {beta.strip() for beta in headers.get("anthropic-beta", "").split(",")}
        if len(sent.intersection(route.betas)) != 1:
            one = "exactly one of " if len(route.betas) > 1 else ""
            raise InvalidInputError(f"the header anthropic-beta must name {one}{', '.join(route.betas)}")

    def _check_limit(self, query: Json) -> None:
        if self._strictness.full_limit and query.get("view") == "full" and query.get("limit", 0) > checks.MAX_FULL_PAGE:
            raise InvalidInputError(f"limit is {query['limit']}; with view=full it must be 1 to {checks.MAX_FULL_PAGE}")


def _check_workspace(headers: Mapping[str, str], workspace_id: str) -> None:
    claimed = headers.get(_WORKSPACE)
    if claimed and claimed != workspace_id:
        raise ApiError(403, f"this key is not of the workspace {claimed!r}")


def _chosen(methods: Mapping[str, Route], request: Request) -> Route:
    if not methods:
        raise ApiError(404, f"there is no route {request.path}")
    route = methods.get(request.method)
    if route is None:
        raise _no_method(request, methods)
    return route


def _no_method(request: Request, methods: Iterable[str]) -> ApiError:
    allow = ", ".join(sorted(methods))
    return ApiError(405, f"{request.method} is not a method of {request.path}", headers={"allow": allow})
