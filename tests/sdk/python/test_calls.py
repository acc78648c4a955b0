"""What the official SDK can do with any call, and what it sends (CONTRACT B.1)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import anthropic
import pytest

Write = Callable[..., Any]

IS_OLD: Final = anthropic.__version__.startswith("0.")


def test_what_this_sdk_sends(sdk: anthropic.Anthropic, store: str, sent: list[Any]) -> None:
    """F.98, F.100-F.102: the headers and queries of both ages of the SDK are accepted."""
    sdk.beta.memory_stores.retrieve(store)
    sdk.beta.memory_stores.memories.create(store, path="/a", content="", view="full")
    sdk.beta.sessions.list()
    first, second, third = sent
    if IS_OLD:
        assert "x-api-key" in first.headers
        assert (first.headers["anthropic-version"], first.url.query) == ("2023-06-01", b"beta=true")
        assert "managed-agents-2026-04-01" in first.headers["anthropic-beta"]
    else:
        assert first.headers["authorization"].startswith("Bearer ")
        assert (first.headers["anthropic-version"], first.url.query) == ("2026-10-21", b"")
        assert first.headers["anthropic-beta"] == "agent-memory-2026-07-22"
    assert b"view=full" in second.url.query
    assert "managed-agents-2026-04-01" in third.headers["anthropic-beta"]


def test_any_beta_is_accepted(sdk: anthropic.Anthropic, store: str, sent: list[Any]) -> None:
    """F.102, F.103; FAULTS 28."""
    known = ["managed-agents-2026-04-01", "agent-memory-2026-07-22"]
    for betas in (known[:1], known[1:], known, [*known, "not-of-this-world-2031-01-01"]):
        assert sdk.beta.memory_stores.retrieve(store, betas=betas).id == store
        assert set(betas) <= set(sent[-1].headers["anthropic-beta"].split(","))
    none = {"anthropic-beta": "", "anthropic-version": ""}
    assert sdk.beta.memory_stores.retrieve(store, extra_headers=none).id == store


def test_raw_responses(sdk: anthropic.Anthropic, store: str) -> None:
    raw = sdk.beta.memory_stores.with_raw_response.retrieve(store)
    assert raw.parse().id == store
    assert json.loads(raw.http_response.read())["id"] == store
    assert json.loads(raw.http_response.text)["id"] == store
    assert raw.http_response.elapsed.total_seconds() > 0
    assert (raw.http_response.is_closed, raw.http_response.is_stream_consumed) == (True, True)


def test_streamed_responses(sdk: anthropic.Anthropic, store: str, write: Write) -> None:
    content = "line\n" * 20_000
    made = write("/large", content)
    streaming: Any = sdk.beta.memory_stores.memories.with_streaming_response
    where = {"memory_store_id": store}
    with streaming.retrieve(made.id, **where) as response:
        assert response.parse().content == content
    with streaming.retrieve(made.id, **where) as response:
        assert json.loads(b"".join(response.iter_bytes(1_000)))["content"] == content
    with streaming.retrieve(made.id, **where) as response:
        assert json.loads("".join(response.iter_lines()))["content"] == content
    with streaming.retrieve(made.id, **where) as response:
        assert response.headers["request-id"].startswith("req_")
    with (
        pytest.raises(anthropic.NotFoundError) as caught,
        streaming.retrieve("mem_none", **where),
    ):
        pass
    assert caught.value.request_id is not None
    assert json.loads(caught.value.response.text)["type"] == "error"


def test_a_client_with_other_options(sdk: anthropic.Anthropic, store: str, sent: list[Any]) -> None:
    for other in (
        sdk.with_options(max_retries=5, timeout=20.0),
        sdk.copy(default_headers={"x-extra": "1"}, default_query={"extra": "1"}),
        sdk.copy().copy().with_options(timeout=None),
    ):
        assert other.beta.memory_stores.retrieve(store).id == store
    assert [request.headers.get("x-extra") for request in sent] == [None, "1", None]
    patient = sdk.beta.memory_stores.retrieve(
        store, timeout=60.0, extra_query={"a": "b"}, extra_headers={"x-more": "1"}
    )
    assert patient.id == store


def test_calls_by_their_paths(sdk: anthropic.Anthropic) -> None:
    made: Any = sdk.post("/v1/memory_stores", body={"name": "Notes"}, cast_to=object)
    assert made["type"] == "memory_store"
    assert sdk.get(f"/v1/memory_stores/{made['id']}", cast_to=object) == made
    listed: Any = sdk.get("/v1/memory_stores?limit=1&limits=2", cast_to=object)
    assert listed == {"data": [made], "next_page": None}
    assert sdk.delete(f"/v1/memory_stores/{made['id']}", cast_to=object) == {
        "id": made["id"],
        "type": "memory_store_deleted",
    }


def test_every_documented_field_is_there(sdk: anthropic.Anthropic, store: str, write: Write) -> None:
    """F.114, F.115."""
    raw: Any = sdk.get(f"/v1/memory_stores/{store}", cast_to=object)
    assert list(raw) == ["id", "type", "name", "description", "metadata", "created_at", "updated_at", "archived_at"]
    assert raw["archived_at"] is None
    assert raw["created_at"].endswith("Z")
    made = write("/a")
    memory: Any = sdk.get(f"/v1/memory_stores/{store}/memories/{made.id}?view=basic", cast_to=object)
    assert set(memory) == set(made.to_dict(exclude_unset=False))
    assert memory["content"] is None
    version = sdk.beta.memory_stores.memory_versions.retrieve(made.memory_version_id, memory_store_id=store)
    told: Any = sdk.get(f"/v1/memory_stores/{store}/memory_versions/{version.id}", cast_to=object)
    assert set(told) == set(version.to_dict(exclude_unset=False))
    assert (told["redacted_at"], told["redacted_by"]) == (None, None)


def test_a_closed_client_says_so(sdk: anthropic.Anthropic, store: str) -> None:
    sdk.close()
    with pytest.raises(anthropic.APIConnectionError) as caught:
        sdk.with_options(max_retries=0).beta.memory_stores.retrieve(store)
    assert "closed" in str(caught.value.__cause__)
