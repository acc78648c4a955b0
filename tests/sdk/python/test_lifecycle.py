"""Every route of CONTRACT B.2 and what becomes of stores, memories and versions, through the official SDK."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import anthropic

Write = Callable[..., Any]


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_every_route_answers_200(sdk: anthropic.Anthropic) -> None:
    """F.97, F.104, F.105."""
    stores = sdk.beta.memory_stores.with_raw_response
    memories, versions = stores.memories, stores.memory_versions
    made = stores.create(name="Notes", description="d", metadata={"k": "v"})
    store = made.parse().id
    memory = (wrote := memories.create(store, path="/a.md", content="one")).parse()
    raw = [
        made,
        wrote,
        stores.list(limit=5, include_archived=True),
        stores.retrieve(store),
        stores.update(store, name="Renamed"),
        memories.list(store, depth=1, limit=5, path_prefix="/", view="full"),
        memories.retrieve(memory.id, memory_store_id=store, view="basic"),
        memories.update(memory.id, memory_store_id=store, content="two"),
        versions.list(store, memory_id=memory.id, operation="created", limit=5, view="full"),
        versions.retrieve(memory.memory_version_id, memory_store_id=store, view="basic"),
        versions.redact(memory.memory_version_id, memory_store_id=store),
        memories.delete(memory.id, memory_store_id=store, expected_content_sha256=sha256("two")),
        stores.archive(store),
        stores.delete(store),
    ]
    assert [response.http_response.status_code for response in raw] == [200] * 14
    assert all(response.headers["request-id"].startswith("req_") for response in raw)
    assert len({response.headers["request-id"] for response in raw}) == 14
    assert all(response.headers["content-type"] == "application/json" for response in raw)


def test_a_store_lives_and_ends(sdk: anthropic.Anthropic) -> None:
    """F.117, F.122, F.124-F.126, F.129, F.132, F.134."""
    stores = sdk.beta.memory_stores
    made = stores.create(name="Notes")
    assert made.id.startswith("memstore_")
    assert (made.type, made.name, made.description, made.metadata) == ("memory_store", "Notes", "", {})
    assert made.archived_at is None
    assert made.created_at == made.updated_at
    assert made.created_at.utcoffset() == timedelta(0)
    changed = stores.update(made.id, description="of a project", metadata={"a": "1", "b": "2"})
    assert (changed.description, changed.updated_at > made.updated_at) == ("of a project", True)
    patched = stores.update(made.id, metadata={"a": None, "c": "3"}, description="")
    assert (patched.metadata, patched.description) == ({"b": "2", "c": "3"}, "")
    assert stores.update(made.id, name="Notes", metadata={"b": "2"}) == patched
    assert stores.update(made.id, description=None).description == ""
    assert stores.retrieve(made.id) == patched
    archived = stores.archive(made.id)
    assert archived.archived_at is not None
    assert stores.archive(made.id) == archived
    assert list(stores.list()) == []
    assert list(stores.list(include_archived=True)) == [archived]
    gone = stores.delete(made.id)
    assert (gone.id, gone.type) == (made.id, "memory_store_deleted")
    assert list(stores.list(include_archived=True)) == []


def test_stores_are_found_by_the_time_they_were_made(sdk: anthropic.Anthropic) -> None:
    """F.128, F.130."""
    stores = sdk.beta.memory_stores
    made = [stores.create(name=name) for name in ("one", "two", "three")]
    since = list(stores.list(created_at_gte=made[1].created_at))
    assert [each.name for each in since] == ["three", "two"]
    until = list(stores.list(created_at_lte=made[1].created_at))
    assert [each.name for each in until] == ["two", "one"]
    naive = made[1].created_at.replace(tzinfo=None)
    assert [each.name for each in stores.list(created_at_lte=naive, created_at_gte=naive)] == ["two"]


def test_a_memory_lives_and_ends(sdk: anthropic.Anthropic, store: str) -> None:
    """F.138-F.140, F.142, F.167-F.169, F.177, F.178, F.181."""
    memories = sdk.beta.memory_stores.memories
    made = memories.create(store, path="/notes/größe.md", content="größe\r\n")
    assert (made.type, made.path, made.content) == ("memory", "/notes/größe.md", None)
    assert (made.content_sha256, made.content_size_bytes) == (sha256("größe\r\n"), 9)
    assert made.id.startswith("mem_")
    assert made.memory_version_id.startswith("memver_")
    read = memories.retrieve(made.id, memory_store_id=store)
    assert (read.content, read.updated_at) == ("größe\r\n", made.updated_at)
    changed = memories.update(made.id, memory_store_id=store, content="", view="full")
    assert (changed.id, changed.content, changed.content_size_bytes) == (made.id, "", 0)
    assert changed.updated_at > made.updated_at
    moved = memories.update(made.id, memory_store_id=store, path="/a")
    assert (moved.path, moved.content_sha256) == ("/a", sha256(""))
    both = memories.update(made.id, memory_store_id=store, path="/a/b", content="x")
    assert (both.path, both.content_sha256) == ("/a/b", sha256("x"))
    assert memories.update(made.id, memory_store_id=store) == both
    assert memories.update(made.id, memory_store_id=store, path=None, content=None) == both
    gone = memories.delete(made.id, memory_store_id=store)
    assert (gone.id, gone.type) == (made.id, "memory_deleted")
    assert list(memories.list(store)) == []


def test_a_wished_state_that_is_already_there_meets_no_precondition(sdk: anthropic.Anthropic, write: Write) -> None:
    """F.170, F.172."""
    made = write("/a", "one")
    memories, where = sdk.beta.memory_stores.memories, {"memory_store_id": made.memory_store_id}
    condition: Any = {"type": "content_sha256", "content_sha256": sha256("one")}
    changed = memories.update(made.id, **where, content="two", precondition=condition)
    assert memories.update(made.id, **where, content="two", precondition=condition) == changed


def test_versions_tell_a_memorys_whole_life(sdk: anthropic.Anthropic, store: str, write: Write, way: str) -> None:
    """F.201-F.206, F.208, F.209, F.212."""
    memories, versions = sdk.beta.memory_stores.memories, sdk.beta.memory_stores.memory_versions
    made = write("/a", "one")
    write("/other")
    memories.update(made.id, memory_store_id=store, content="two")
    moved = memories.update(made.id, memory_store_id=store, path="/b")
    assert moved.memory_version_id == next(iter(versions.list(store))).id
    memories.delete(made.id, memory_store_id=store)
    life = list(versions.list(store, memory_id=made.id, view="full"))
    assert [(each.operation, each.path, each.content) for each in life] == [
        ("deleted", "/b", None),
        ("modified", "/b", "two"),
        ("modified", "/a", "two"),
        ("created", "/a", "one"),
    ]
    assert {each.memory_id for each in life} == {made.id}
    assert (life[0].content_sha256, life[0].content_size_bytes, life[0].redacted_at) == (None, None, None)
    assert [each.operation for each in versions.list(store, operation="deleted")] == ["deleted"]
    basic = list(versions.list(store, memory_id=made.id, operation="created"))
    assert [(each.content, each.content_sha256) for each in basic] == [(None, sha256("one"))]
    assert versions.retrieve(life[3].id, memory_store_id=store).content == "one"
    expected = "api_actor" if way == "over HTTP" else "user_actor"
    writers = [each.created_by for each in life if each.created_by is not None]
    assert [writer.type for writer in writers] == [expected] * 4
    for writer in writers:
        if writer.type == "api_actor":
            assert writer.api_key_id.startswith("apikey_")
            assert len(list(versions.list(store, api_key_id=writer.api_key_id))) == 5
    assert list(versions.list(store, session_id="sesn_none")) == []
    assert list(versions.list(store, extra_query={"service_account_id": "svac_none"})) == []


def test_a_version_is_redacted(sdk: anthropic.Anthropic, store: str, write: Write) -> None:
    """F.215, F.217-F.219, F.221."""
    memories, versions = sdk.beta.memory_stores.memories, sdk.beta.memory_stores.memory_versions
    made = write("/secret", "a secret")
    memories.update(made.id, memory_store_id=store, content="harmless")
    redacted = versions.redact(made.memory_version_id, memory_store_id=store)
    assert (redacted.path, redacted.content) == (None, None)
    assert (redacted.content_sha256, redacted.content_size_bytes) == (None, None)
    assert (redacted.operation, redacted.memory_id) == ("created", made.id)
    assert redacted.redacted_at is not None
    assert redacted.created_by is not None
    assert redacted.redacted_by == redacted.created_by
    assert versions.redact(made.memory_version_id, memory_store_id=store) == redacted
    assert versions.retrieve(made.memory_version_id, memory_store_id=store) == redacted
    assert memories.retrieve(made.id, memory_store_id=store).content == "harmless"
    memories.delete(made.id, memory_store_id=store)
    for version in versions.list(store, memory_id=made.id):
        assert versions.redact(version.id, memory_store_id=store).path is None


def test_an_archived_store_can_be_read_and_emptied(sdk: anthropic.Anthropic, store: str, write: Write) -> None:
    """F.137."""
    memories, versions = sdk.beta.memory_stores.memories, sdk.beta.memory_stores.memory_versions
    made = write("/a", "one")
    memories.update(made.id, memory_store_id=store, content="two")
    sdk.beta.memory_stores.archive(store)
    assert memories.retrieve(made.id, memory_store_id=store).content == "two"
    assert versions.redact(made.memory_version_id, memory_store_id=store).redacted_at is not None
    assert memories.delete(made.id, memory_store_id=store).type == "memory_deleted"
    assert len(list(versions.list(store))) == 3
    assert sdk.beta.memory_stores.delete(store).type == "memory_store_deleted"


def test_the_largest_content_passes_however_json_escapes_it(sdk: anthropic.Anthropic, store: str, write: Write) -> None:
    """F.113, F.144, F.145."""
    for path, content in [("/control", "\x01" * 102_400), ("/wide", "é" * 51_200), ("/nul", "a\0b")]:
        made = write(path, content)
        assert sdk.beta.memory_stores.memories.retrieve(made.id, memory_store_id=store).content == content
