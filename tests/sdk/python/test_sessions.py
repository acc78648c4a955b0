"""Sessions and their memory stores, through the official SDK (CONTRACT C)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import anthropic
import pytest


@pytest.fixture
def begin(sdk: anthropic.Anthropic) -> Callable[..., Any]:
    """Creates a session that attaches stores."""

    def create(*stores: str, **options: Any) -> Any:
        resources = [resource for store in stores for resource in memory_store(store)]
        given: dict[str, Any] = {"agent": "agent_x", "environment_id": "env_x", "resources": resources, **options}
        return sdk.beta.sessions.create(**given)

    return create


def memory_store(store: str, **more: Any) -> list[Any]:
    return [{"type": "memory_store", "memory_store_id": store, **more}]


Begin = Callable[..., Any]


def test_a_session_lives_and_ends(sdk: anthropic.Anthropic, store: str, begin: Begin) -> None:
    """F.223, F.224, F.226, F.236, F.238, F.239."""
    sessions = sdk.beta.sessions
    made = begin(store, title="Work", metadata={"k": "v"})
    assert made.id.startswith("sesn_")
    assert (made.type, made.status, made.title, made.metadata) == ("session", "idle", "Work", {"k": "v"})
    (resource,) = made.resources
    assert (resource.type, resource.memory_store_id, resource.access) == ("memory_store", store, "read_write")
    assert (resource.name, resource.description, resource.instructions) == ("Notes", "", None)
    assert resource.mount_path == "/mnt/memory/notes"
    assert sessions.retrieve(made.id) == made
    listed = list(sessions.resources.list(made.id))
    assert [each.to_dict() for each in listed] == [resource.to_dict()]
    got: Any = sessions.resources.retrieve(store, session_id=made.id)
    assert got.mount_path == resource.mount_path
    begin()
    found = list(sessions.list(extra_query={"memory_store_id": store}))
    assert [each.id for each in found] == [made.id]
    changed = sessions.update(made.id, title="Other", metadata={"k": None, "l": "w"})
    assert (changed.title, changed.metadata, changed.resources) == ("Other", {"l": "w"}, made.resources)
    archived = sessions.archive(made.id)
    assert archived.archived_at is not None
    assert made.id not in {each.id for each in sessions.list()}
    assert made.id in {each.id for each in sessions.list(include_archived=True)}
    gone = sessions.delete(made.id)
    assert (gone.id, gone.type) == (made.id, "session_deleted")
    with pytest.raises(anthropic.NotFoundError):
        sessions.retrieve(made.id)
    assert sdk.beta.memory_stores.retrieve(store).name == "Notes"


def test_a_resource_is_as_asked_for_and_stays_so(sdk: anthropic.Anthropic, begin: Begin) -> None:
    """F.225, F.230-F.232, F.235."""
    stores = sdk.beta.memory_stores
    names = {"Demo Memory": "demo-memory", "  A -- B!!c_9 ": "a-b-c-9", "Café Notes": "caf-notes"}
    for name, slug in names.items():
        made = stores.create(name=name, description="what for")
        instructions = "é" * 4_096
        resources = memory_store(made.id, access="read_only", instructions=instructions)
        (resource,) = (session := begin(resources=resources)).resources
        assert (resource.access, resource.instructions) == ("read_only", instructions)
        assert (resource.mount_path, resource.description) == (f"/mnt/memory/{slug}", "what for")
        stores.update(made.id, name="Renamed", description="")
        assert sdk.beta.sessions.retrieve(session.id).resources == [resource]
        (new,) = begin(made.id).resources
        assert (new.name, new.mount_path) == ("Renamed", "/mnt/memory/renamed")


def test_what_cannot_be_attached_makes_no_session(sdk: anthropic.Anthropic, store: str, begin: Begin) -> None:
    """F.224, F.225, F.227-F.229, F.234."""
    stores = sdk.beta.memory_stores
    many = [stores.create(name=f"Store {number}").id for number in range(9)]
    archived = stores.archive(stores.create(name="Archived").id).id
    twin = stores.create(name="notes!").id
    for resources in (
        memory_store(store, access="write_only"),
        memory_store(store, instructions="x" * 4_097),
        memory_store(store, mount_path="/mnt/memory/x"),
        memory_store(store) * 2,
        [*memory_store(store), *memory_store(twin)],
        memory_store(archived),
        memory_store("memstore_none"),
        [resource for each in many for resource in memory_store(each)],
        [{"type": "file", "file_id": "file_x"}],
    ):
        with pytest.raises(anthropic.BadRequestError):
            begin(resources=resources)
    assert list(sdk.beta.sessions.list()) == []
    assert len(begin(*many[:8]).resources) == 8
    assert begin(resources=memory_store(store, access=None)).resources[0].access == "read_write"


def test_stores_are_attached_at_the_beginning_only(sdk: anthropic.Anthropic, store: str, begin: Begin) -> None:
    """F.237."""
    made, resources = begin(store), sdk.beta.sessions.resources
    other = sdk.beta.memory_stores.create(name="Other").id
    adding: Any = {"type": "memory_store", "memory_store_id": other}
    path = f"/v1/sessions/{made.id}/resources"
    for call in (
        lambda: sdk.post(path, body=adding, cast_to=object),
        lambda: resources.add(made.id, type="file", file_id="file_x"),
        lambda: resources.delete(store, session_id=made.id),
        lambda: sdk.post(f"{path}/{store}", body={"access": "read_only"}, cast_to=object),
    ):
        with pytest.raises(anthropic.BadRequestError) as caught:
            call()
        assert caught.value.type == "invalid_request_error"
    assert sdk.beta.sessions.retrieve(made.id).resources == made.resources


def test_sessions_that_are_not_there(sdk: anthropic.Anthropic) -> None:
    sessions: Any = sdk.beta.sessions
    for call in (
        sessions.retrieve,
        sessions.archive,
        sessions.delete,
        sessions.resources.list,
        partial(sessions.update, title="x"),
        partial(sessions.resources.retrieve, session_id="sesn_none"),
    ):
        with pytest.raises(anthropic.NotFoundError):
            call("sesn_none")
