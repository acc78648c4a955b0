"""Every error that CONTRACT B documents, as the official SDK raises it: its class, `.type`, `.body`, `.request_id`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import anthropic
import pytest

Write = Callable[..., Any]

INVALID: Final = "invalid_request_error"
OTHER_SHA: Final = hashlib.sha256(b"something else").hexdigest()


def refused(
    kind: type[anthropic.APIStatusError], type_: str, call: Callable[..., Any], *args: Any, **options: Any
) -> Any:
    """The error of a call, its envelope checked (F.105, F.106)."""
    with pytest.raises(kind) as caught:
        call(*args, **options)
    error = caught.value
    envelope: Any = error.body
    assert type(error) is kind or kind is anthropic.APIStatusError
    assert error.type == type_
    assert (envelope["type"], envelope["error"]["type"]) == ("error", type_)
    assert envelope["error"]["message"]
    assert str(error.request_id).startswith("req_")
    assert envelope["request_id"] == error.request_id == error.response.headers["request-id"]
    assert error.response.headers["content-type"] == "application/json"
    return error


def invalid(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    return refused(anthropic.BadRequestError, INVALID, call, *args, **options)


def missing(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    return refused(anthropic.NotFoundError, "not_found_error", call, *args, **options)


def message(error: Any) -> str:
    return error.body["error"]["message"]


MALFORMED_STORES: Final[list[tuple[str, Any]]] = [
    ("name", {"name": ""}),
    ("name", {"name": "x" * 256}),
    ("name", {"name": "a\nb"}),
    ("name", {"name": 5}),
    ("name", {}),
    ("description", {"name": "x", "description": "x" * 1_025}),
    ("metadata", {"name": "x", "metadata": {str(number): "" for number in range(17)}}),
    ("metadata", {"name": "x", "metadata": {"k" * 65: ""}}),
    ("metadata", {"name": "x", "metadata": {"": ""}}),
    ("metadata", {"name": "x", "metadata": {"k": "v" * 513}}),
    ("metadata", {"name": "x", "metadata": {"k": 1}}),
    ("surprise", {"name": "x", "surprise": True}),
]


def test_a_malformed_store_is_refused_by_its_fields_name(sdk: anthropic.Anthropic) -> None:
    """F.108, F.118, F.120, F.121."""
    for field, body in MALFORMED_STORES:
        assert field in message(invalid(sdk.post, "/v1/memory_stores", body=body, cast_to=object))
    assert list(sdk.beta.memory_stores.list()) == []


def test_a_patch_beyond_the_limit_changes_nothing(sdk: anthropic.Anthropic) -> None:
    """F.123."""
    made = sdk.beta.memory_stores.create(name="x", metadata={str(number): "" for number in range(16)})
    invalid(sdk.beta.memory_stores.update, made.id, metadata={"one more": ""}, name="y")
    assert sdk.beta.memory_stores.retrieve(made.id) == made


MALFORMED_MEMORIES: Final[list[tuple[str, Any]]] = [
    *[("path", {"path": path, "content": ""}) for path in ("notes", "/", "//a", "/a/", "/a//b", "/./a", "/a/../b")],
    *[("path", {"path": path, "content": ""}) for path in ("/\u0007", "/\u200b", "/\u2028", "/\u2029", "/e\u0301")],
    ("path", {"path": "/a" * 21, "content": ""}),
    ("path", {"path": "/" + "é" * 512, "content": ""}),
    ("path", {"path": None, "content": ""}),
    ("path", {"content": ""}),
    ("content", {"path": "/a"}),
    ("content", {"path": "/a", "content": None}),
    ("content", {"path": "/a", "content": ["x"]}),
    ("content", {"path": "/a", "content": "x" * 102_401}),
    ("content", {"path": "/a", "content": "é" * 51_201}),
    ("surprise", {"path": "/a", "content": "", "surprise": None}),
]


def test_a_malformed_memory_is_refused_by_its_fields_name(sdk: anthropic.Anthropic, store: str) -> None:
    """F.108, F.143, F.144, F.147-F.151."""
    for field, body in MALFORMED_MEMORIES:
        error = invalid(sdk.post, f"/v1/memory_stores/{store}/memories", body=body, cast_to=object)
        assert field in message(error)
    assert list(sdk.beta.memory_stores.memories.list(store)) == []


def test_malformed_queries_are_refused_by_their_names(sdk: anthropic.Anthropic, store: str, write: Write) -> None:
    """F.131, F.141, F.186, F.190, F.197, F.207."""
    stores: Any = sdk.beta.memory_stores
    listed, versions = partial(stores.memories.list, store), partial(stores.memory_versions.list, store)
    retrieved = partial(stores.memories.retrieve, write("/a").id, memory_store_id=store)
    refusals: list[tuple[str, Any, dict[str, str]]] = [
        *[("limit", stores.list, {"limit": limit}) for limit in ("0", "101", "-1", "abc")],
        *[("page", stores.list, {"page": page}) for page in ("page_garbage", "x", "page_")],
        ("created_at[gte]", stores.list, {"created_at[gte]": "yesterday"}),
        ("include_archived", stores.list, {"include_archived": "maybe"}),
        *[("depth", listed, {"depth": depth}) for depth in ("2", "-1", "x")],
        *[("path_prefix", listed, {"path_prefix": prefix}) for prefix in ("/notes", "notes/", "/a//")],
        *[("view", call, {"view": "other"}) for call in (listed, retrieved, versions)],
        ("operation", versions, {"operation": "renamed"}),
        ("limit", versions, {"limit": "101"}),
    ]
    for field, call, query in refusals:
        assert field in message(invalid(call, extra_query=query))
    assert "limit" in message(invalid(sdk.get, "/v1/memory_stores?limit=", cast_to=object))


def test_a_page_of_another_listing_is_refused(sdk: anthropic.Anthropic, store: str, write: Write) -> None:
    """F.196; FAULTS 17."""
    memories = sdk.beta.memory_stores.memories
    for name in "abc":
        write(f"/{name}")
    page = memories.list(store, limit=1).next_page
    assert page is not None
    other = sdk.beta.memory_stores.create(name="Other").id
    assert [each.path for each in memories.list(store, limit=2, page=page).data] == ["/b", "/c"]
    invalid(memories.list, store, page=page, depth=1)
    invalid(memories.list, store, page=page, path_prefix="/a/")
    invalid(memories.list, store, page=page, view="full")
    invalid(memories.list, other, page=page)
    invalid(sdk.beta.memory_stores.list, page=page)
    invalid(sdk.beta.memory_stores.memory_versions.list, store, page=page)
    invalid(memories.list, store, page=page[:-1] + ("A" if page[-1] != "A" else "B"))


def test_what_is_not_there_is_not_found(sdk: anthropic.Anthropic, store: str, write: Write) -> None:
    """F.110, F.111, F.134, F.153, F.181, F.200, F.210."""
    stores, made = sdk.beta.memory_stores, write("/a")
    elsewhere = stores.create(name="Other").id
    for odd in ("memstore_none", "x/../y", "a/b?c#d", "%2F", "é\u2028", "x" * 300):
        missing(stores.retrieve, odd)
        missing(stores.delete, odd)
        missing(stores.memories.list, odd)
        missing(stores.memories.create, odd, path="/a", content="")
        missing(stores.memories.retrieve, odd, memory_store_id=store)
        missing(stores.memory_versions.retrieve, odd, memory_store_id=store)
    missing(stores.memories.retrieve, made.id, memory_store_id=elsewhere)
    missing(stores.memories.update, made.id, memory_store_id=elsewhere, content="")
    missing(stores.memories.delete, made.id, memory_store_id=elsewhere)
    missing(stores.memory_versions.retrieve, made.memory_version_id, memory_store_id=elsewhere)
    missing(stores.memory_versions.redact, made.memory_version_id, memory_store_id=elsewhere)
    stores.memories.delete(made.id, memory_store_id=store)
    missing(stores.memories.delete, made.id, memory_store_id=store)
    stores.delete(store)
    missing(stores.memory_versions.list, store)
    missing(sdk.get, f"/v1/memory_stores/{elsewhere}/nothing", cast_to=object)
    missing(sdk.get, "/v1/sessions/sesn_x/events", cast_to=object)


def test_another_method_is_not_allowed(sdk: anthropic.Anthropic, store: str) -> None:
    """F.110."""
    for call in (sdk.patch, sdk.put):
        error = refused(
            anthropic.APIStatusError, INVALID, call, f"/v1/memory_stores/{store}", body={"name": "x"}, cast_to=object
        )
        assert error.status_code == 405
        assert {"GET", "POST", "DELETE"} <= set(error.response.headers["allow"].replace(" ", "").split(","))


def test_a_taken_path_is_a_conflict(sdk: anthropic.Anthropic, write: Write) -> None:
    """F.156-F.164."""
    holder, other = write("/notes/todo.md", "x"), write("/other")
    memories, where = sdk.beta.memory_stores.memories, {"memory_store_id": holder.memory_store_id}
    for call in (
        lambda: write("/notes/todo.md", "x"),
        lambda: write("/notes"),
        lambda: write("/notes/todo.md/below"),
        lambda: memories.update(other.id, **where, path="/notes/todo.md"),
        lambda: memories.update(other.id, **where, path="/notes", content="x"),
    ):
        error = refused(anthropic.ConflictError, "memory_path_conflict_error", call)
        assert error.body["error"]["conflicting_memory_id"] == holder.id
        assert error.body["error"]["conflicting_path"] == "/notes/todo.md"
    assert memories.retrieve(other.id, **where).memory_version_id == other.memory_version_id
    assert write("/notes-archive").path == "/notes-archive"
    memories.delete(holder.id, **where)
    assert write("/notes/todo.md").id != holder.id


def test_a_precondition_that_fails_changes_nothing(sdk: anthropic.Anthropic, write: Write) -> None:
    """F.171, F.173-F.176, F.182."""
    made, _ = write("/a", "one"), write("/taken", "something else")
    memories, where = sdk.beta.memory_stores.memories, {"memory_store_id": made.memory_store_id}
    stale: Any = {"type": "content_sha256", "content_sha256": OTHER_SHA}
    for change in ({"content": "two"}, {"path": "/b"}, {"content": "one", "path": "/b"}, {"path": "/taken"}):
        refused(
            anthropic.ConflictError,
            "memory_precondition_failed_error",
            memories.update,
            made.id,
            **where,
            **change,
            precondition=stale,
        )
    refused(
        anthropic.ConflictError,
        "memory_precondition_failed_error",
        memories.delete,
        made.id,
        **where,
        expected_content_sha256=OTHER_SHA,
    )
    assert memories.update(made.id, **where, path="/a", precondition=stale).memory_version_id == made.memory_version_id


def test_a_conflict_is_one_request(sdk: anthropic.Anthropic, sent: list[Any], write: Write) -> None:
    """F.112: the SDK retries a 409 twice, but for `x-should-retry: false`."""
    made = write("/a", "one")
    del sent[:]
    error = refused(anthropic.ConflictError, "memory_path_conflict_error", write, "/a")
    assert (len(sent), error.response.headers["x-should-retry"]) == (1, "false")
    stale: Any = {"type": "content_sha256", "content_sha256": OTHER_SHA}
    with pytest.raises(anthropic.ConflictError):
        sdk.beta.memory_stores.memories.update(
            made.id, memory_store_id=made.memory_store_id, content="two", precondition=stale
        )
    assert len(sent) == 2


def test_malformed_preconditions_are_refused(sdk: anthropic.Anthropic, write: Write) -> None:
    """F.179, F.183."""
    made = write("/a", "one")
    memories, where = sdk.beta.memory_stores.memories, {"memory_store_id": made.memory_store_id}
    conditions: list[Any] = [
        {"type": "content_sha256", "content_sha256": OTHER_SHA.upper()},
        {"type": "content_sha256", "content_sha256": OTHER_SHA[1:]},
        {"type": "content_sha256"},
        {"type": "etag", "content_sha256": OTHER_SHA},
        "content_sha256",
    ]
    for condition in conditions:
        assert "precondition" in message(
            invalid(memories.update, made.id, **where, content="x", precondition=condition)
        )
    path = f"/v1/memory_stores/{made.memory_store_id}/memories/{made.id}"
    for sha in ("", "x", OTHER_SHA.upper()):
        error = invalid(sdk.delete, f"{path}?expected_content_sha256={sha}", cast_to=object)
        assert "expected_content_sha256" in message(error)
    assert memories.retrieve(made.id, **where).content == "one"


def test_the_rules_of_a_store_are_bad_requests(sdk: anthropic.Anthropic, store: str, write: Write) -> None:
    """F.133, F.136, F.216."""
    stores, made = sdk.beta.memory_stores, write("/a", "one")
    invalid(stores.memory_versions.redact, made.memory_version_id, memory_store_id=store)
    stores.archive(store)
    invalid(stores.update, store, name="x")
    invalid(write, "/b")
    invalid(stores.memories.update, made.id, memory_store_id=store, content="one")


def test_an_attached_store_stays(sdk: anthropic.Anthropic, store: str) -> None:
    """F.135."""
    resource: Any = {"type": "memory_store", "memory_store_id": store}
    session = sdk.beta.sessions.create(agent="agent_x", environment_id="env_x", resources=[resource])
    invalid(sdk.beta.memory_stores.delete, store)
    sdk.beta.sessions.delete(session.id)
    assert sdk.beta.memory_stores.delete(store).type == "memory_store_deleted"


def test_another_workspace_is_forbidden(sdk: anthropic.Anthropic, store: str) -> None:
    """CONTRACT B.1: `anthropic-workspace-id`."""
    other = {"anthropic-workspace-id": "somebody-elses"}
    refused(
        anthropic.PermissionDeniedError,
        "permission_error",
        sdk.beta.memory_stores.retrieve,
        store,
        extra_headers=other,
    )
    told = sdk.beta.memory_stores.with_raw_response.retrieve(store).headers["anthropic-workspace-id"]
    assert sdk.beta.memory_stores.retrieve(store, extra_headers={"anthropic-workspace-id": told}).id == store


def test_a_wrong_key_opens_nothing(sdk: anthropic.Anthropic, store: str, way: str) -> None:
    """F.99: over HTTP; in process a key plays no part."""
    other = sdk.with_options(api_key="mk_wrong")
    if way == "over HTTP":
        refused(anthropic.AuthenticationError, "authentication_error", other.beta.memory_stores.retrieve, store)
        refused(anthropic.AuthenticationError, "authentication_error", other.get, "/v1/nothing", cast_to=object)
    else:
        assert other.beta.memory_stores.retrieve(store).id == store


def test_a_body_beyond_any_legal_size(sdk: anthropic.Anthropic, store: str, way: str, write: Write) -> None:
    """CONTRACT B.1: 413 at the server's door; in process it is a content that is too large."""
    if way == "over HTTP":
        error = refused(anthropic.APIStatusError, "request_too_large", write, "/a", "x" * 2_000_000)
        assert error.status_code == 413
    else:
        assert "content" in message(invalid(write, "/a", "x" * 2_000_000))
    assert write("/a").path == "/a"
