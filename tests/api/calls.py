"""Requests to the API, written short, and what comes back."""

from __future__ import annotations

import json as json_text
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

from memkernel.api.messages import Principal, Request, Response
from memkernel.models import Actor

KEY: Final = Actor("api_actor", "apikey_0123456789abcdef01234567")
PRINCIPAL: Final = Principal("default", KEY)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """A response with its JSON."""

    status: int
    headers: Mapping[str, str]
    json: Json

    @property
    def ok(self) -> Json:
        """The JSON of a success."""
        assert self.status == 200, self.json
        return self.json

    def error(self, status: int, kind: str = "") -> Json:
        """The `error` of a failure with this status and type, its envelope looked at."""
        assert self.status == status, self.json
        assert self.json.keys() == {"type", "error", "request_id"}
        assert (self.json["type"], self.json["request_id"]) == ("error", self.headers["request-id"])
        assert not kind or self.json["error"]["type"] == kind
        assert self.json["error"]["message"]
        return self.json["error"]

    def refusal(self, field: str) -> str:
        """The message of a 400, which names the field."""
        message = self.error(400, "invalid_request_error")["message"]
        assert field in message, message
        return message


class Caller:
    """Calls an API: `call("GET", "/v1/memory_stores", limit=5)`."""

    def __init__(self, dispatch: Callable[[Request], Response], headers: Mapping[str, str] | None = None) -> None:
        self._dispatch = dispatch
        self._headers = dict(headers or {})

    def __call__(
        self,
        method: str,
        path: str,
        json: Any = None,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        raw_query: str = "",
        **query: Any,
    ) -> Answer:
        """One request. `created_at_gte=` and its like stand for `created_at[gte]`."""
        if body is None:
            body = b"" if json is None else json_text.dumps(json).encode()
        sent = raw_query or urlencode({_on_the_wire(name): _text(value) for name, value in query.items()})
        response = self._dispatch(Request(method, path, sent, {**self._headers, **(headers or {})}, body))
        assert response.headers["content-type"] == "application/json"
        return Answer(response.status, response.headers, json_text.loads(response.body))

    # -- the same, shorter -------------------------------------------------------------------------

    def store(self, name: str = "Notes", **fields: Any) -> str:
        """A new store's id."""
        return self("POST", "/v1/memory_stores", {"name": name, **fields}).ok["id"]

    def memory(self, store: str, path: str = "/a.md", content: str = "text", **query: Any) -> Json:
        """A new memory."""
        return self("POST", f"{at(store)}/memories", {"path": path, "content": content}, **query).ok

    def update(self, memory: Json, **body: Any) -> Answer:
        """A change of a memory."""
        return self("POST", at(memory["memory_store_id"], memory["id"]), body)

    def delete(self, memory: Json, **query: Any) -> Answer:
        """A memory's end."""
        return self("DELETE", at(memory["memory_store_id"], memory["id"]), **query)

    def versions(self, store: str, **query: Any) -> list[Json]:
        """A page of a store's versions."""
        return self("GET", f"{at(store)}/memory_versions", **query).ok["data"]

    def pages(self, path: str, **query: Any) -> Iterator[list[Json]]:
        """Every page of a listing, as a client goes through them."""
        page = self("GET", path, **query).ok
        yield page["data"]
        while page["next_page"]:
            page = self("GET", path, **query, page=page["next_page"]).ok
            yield page["data"]

    def all(self, path: str, **query: Any) -> list[Json]:
        """Every item of a listing."""
        return [item for page in self.pages(path, **query) for item in page]


def at(store: str, memory: str = "", version: str = "") -> str:
    """The path of a store, of a memory in it, or of a version."""
    found = f"/v1/memory_stores/{quote(store, safe='')}"
    if memory:
        found += f"/memories/{quote(memory, safe='')}"
    return f"{found}/memory_versions/{quote(version, safe='')}" if version else found


def _on_the_wire(name: str) -> str:
    stem, _, bound = name.rpartition("_")
    return f"{stem}[{bound}]" if bound in ("gt", "gte", "lt", "lte") else name


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
