"""The OpenAPI document, made of the tables that serve the requests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from inspect import getdoc
from typing import Any, Final

from memkernel.api import errors, params, wire
from memkernel.api.params import Field, Json, Schema
from memkernel.api.routes import Route

_VERSION: Final = "2026-10-21"
"""Of the official API: what the newest SDK sends as `anthropic-version`."""

_MEANINGS: Final[Mapping[int, str]] = {
    400: "Something in the request is malformed, or the state of the store forbids it; the message names it.",
    401: "There is no key, or not one that is known.",
    403: "The key has no right to this.",
    404: "There is no such thing in this workspace.",
    408: "The body took too long to arrive.",
    409: "The state is not what the caller thought.",
    413: "The body is longer than any legal one.",
    500: "Something went wrong in the server.",
    503: "The database does not answer.",
}
_HEADERS: Final[Mapping[int, tuple[str, ...]]] = {409: ("x-should-retry",), 503: ("retry-after",)}
_SENT: Final = ("anthropic-version", "anthropic-beta", "anthropic-workspace-id")


def document(routes: Iterable[Route], schemas: Mapping[str, Schema]) -> Json:
    """The OpenAPI 3.1 document of these routes.

    Args:
        routes: what is served.
        schemas: what their answers look like, by the names that the routes use.
    """
    routes = tuple(routes)
    paths: dict[str, Json] = {}
    for route in routes:
        links = _links(schemas[route.answer], routes) if route.name.endswith(".create") else {}
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, links)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "memkernel Memory API",
            "version": _VERSION,
            "description": "The official SDKs' memory store and session routes, over PostgreSQL.",
        },
        "paths": paths,
        "security": [{"bearer": []}, {"x_api_key": []}],
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "x_api_key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
            "schemas": dict(schemas),
            "responses": {f"Error{status}": _refusal(status) for status in _MEANINGS},
        },
    }


def _operation(route: Route, links: Json) -> Json:
    summary, _, more = (getdoc(route.handler) or "").partition("\n")
    return {
        "operationId": route.name,
        "tags": [route.name.partition(".")[0]],
        "summary": summary,
        **({"description": more.strip()} if more.strip() else {}),
        "parameters": [
            *({"name": name, "in": "path", "required": True, "schema": wire.TEXT} for name in _ids(route)),
            *({"name": field.name, "in": "query", "schema": field.kind.schema} for field in route.query),
            *({"name": name, "in": "header", "schema": wire.TEXT} for name in _SENT),
        ],
        **({} if route.body is None else {"requestBody": _body(route.body)}),
        "responses": {
            "200": {
                "description": "Done.",
                "headers": _headers("request-id", "anthropic-workspace-id"),
                "content": {"application/json": {"schema": wire.ref(route.answer)}},
                **({"links": links} if links else {}),
            },
            **{str(status): {"$ref": f"#/components/responses/Error{status}"} for status in _statuses(route)},
        },
    }


def _ids(route: Route) -> list[str]:
    """The names of the ids in a route's path."""
    return re.findall(r"{(\w+)}", route.path)


def _links(answer: Schema, routes: Iterable[Route]) -> Json:
    """The operations for which a new thing's answer has every id."""
    members = answer["properties"]
    known = {name: name for name in members if name.endswith("_id")} | {f"{members['type']['const']}_id": "id"}
    return {
        route.name: {
            "operationId": route.name,
            "parameters": {name: f"$response.body#/{known[name]}" for name in _ids(route)},
        }
        for route in routes
        if _ids(route) and known.keys() >= set(_ids(route))
    }


def _statuses(route: Route) -> list[int]:
    """With what else a route may answer."""
    never = {status for status, can in ((404, "{" in route.path), (409, route.conflicts)) if not can}
    return [status for status in _MEANINGS if status not in never]


def _body(fields: tuple[Field, ...]) -> Json:
    schema = params.object_schema(fields)
    return {"required": "required" in schema, "content": {"application/json": {"schema": schema}}}


def _refusal(status: int) -> Json:
    kinds = [_error(kind, facts) for kind, facts in errors.envelopes(status).items()]
    error: Schema = kinds[0] if len(kinds) == 1 else {"oneOf": kinds}
    schema = wire.object_of(type={"const": "error"}, error=error, request_id=wire.TEXT)
    return {
        "description": _MEANINGS[status],
        "headers": _headers("request-id", *_HEADERS.get(status, ())),
        "content": {"application/json": {"schema": schema}},
    }


def _error(kind: str, facts: tuple[str, ...]) -> Schema:
    return wire.object_of(type={"const": kind}, message=wire.TEXT, **dict.fromkeys(facts, wire.TEXT))


def _headers(*names: str) -> dict[str, Any]:
    return {name: {"required": True, "schema": wire.TEXT} for name in names}
