"""A notebook's sandbox and the API meet at its session: nothing that a sandbox has not saved yet is lost (F.266)."""

from __future__ import annotations

import pytest

import memkernel as mk
from memkernel.api.dispatch import Api
from tests.api.beginning import SESSIONS, begin, session
from tests.api.calls import PRINCIPAL, Caller, at
from tests.fix_sandbox import MakeBox


@pytest.fixture
def call(notes: mk.Store) -> Caller:
    """Sends a request to the API over the sandbox's database."""
    return Caller(Api(notes.connection.database, lambda _: PRINCIPAL).dispatch)


@pytest.fixture
def box(notes: mk.Store, boxes: MakeBox) -> mk.Sandbox:
    """A sandbox that runs."""
    return boxes(notes, backend="local")


def write(box: mk.Sandbox, name: str, text: str) -> None:
    assert box.bash(f"printf '{text}' > /mnt/memory/team-notes/{name}").status == "ok"


def test_a_sandboxs_session_is_the_apis(call: Caller, notes: mk.Store, box: mk.Sandbox) -> None:
    (listed,) = call.all(SESSIONS, memory_store_id=notes.id)
    assert (listed["id"], listed["status"], listed["agent"]["id"]) == (box.id, "idle", "")
    write(box, "a.md", "x")
    (version,) = call.versions(notes.id, session_id=box.id)
    assert version["created_by"] == {"type": "session_actor", "session_id": box.id}
    call("DELETE", at(notes.id)).refusal("attached")


def test_a_session_is_not_deleted_from_under_its_sandbox(call: Caller, notes: mk.Store, box: mk.Sandbox) -> None:
    """F.266: only the sandbox can save its last edits; once it has, the session can go."""
    write(box, "a.md", "first")
    call("DELETE", session(box.id)).refusal(box.id)
    write(box, "b.md", "second")
    assert box.bash("(sleep 0.2; printf last > /mnt/memory/team-notes/c.md) >/dev/null 2>&1 & sleep 0.5").status == "ok"
    call("DELETE", session(box.id)).refusal("not saved yet")
    box.stop()
    assert box.rejected == []
    assert call("GET", session(box.id)).ok["status"] == "terminated"
    assert call("DELETE", session(box.id)).status == 200
    texts = {memory["path"]: memory["content"] for memory in call.all(f"{at(notes.id)}/memories", view="full")}
    assert texts == {"/a.md": "first", "/b.md": "second", "/c.md": "last"}
    assert call("DELETE", at(notes.id)).status == 200


def test_a_session_that_is_archived_from_elsewhere_goes_on(call: Caller, notes: mk.Store, box: mk.Sandbox) -> None:
    assert call("POST", session(box.id, "archive")).status == 200
    assert call("POST", session(box.id), {"title": "Elsewhere", "metadata": {"a": "1"}}).ok["title"] == "Elsewhere"
    write(box, "a.md", "still saved")
    box.stop()
    assert notes.read("/a.md") == "still saved"
    assert call("GET", session(box.id)).ok["status"] == "terminated"


def test_a_session_whose_sandbox_is_lost_can_go_once_it_is_ended(call: Caller, notes: mk.Store) -> None:
    """`memkernel session end --force` is what a person does then."""
    database = notes.connection.database
    store = call.store()
    lost = begin(call, store).ok["id"]
    database.mounts.open(store, lost)
    call("DELETE", session(lost)).refusal(lost)
    database.sessions.update(lost, status="terminated")
    assert call("DELETE", session(lost)).status == 200
