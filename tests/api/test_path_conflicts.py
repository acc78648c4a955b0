"""Paths that cannot both exist (CONTRACT B.6)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from tests.api.calls import Answer, Caller, Json, at


@pytest.fixture
def call(shared: Caller) -> Caller:
    return shared


@pytest.fixture
def store(call: Caller) -> str:
    return call.store()


def create(call: Caller, store: str, path: str, content: str = "text") -> Answer:
    return call("POST", f"{at(store)}/memories", {"path": path, "content": content})


def conflicts_with(answer: Answer, holder: Json) -> None:
    """F.112 too: the error is final."""
    error = answer.error(409, "memory_path_conflict_error")
    assert (error["conflicting_memory_id"], error["conflicting_path"]) == (holder["id"], holder["path"])
    assert answer.headers["x-should-retry"] == "false"


@pytest.mark.parametrize("content", ["other", "text"])
def test_a_path_that_is_taken(call: Caller, store: str, content: str) -> None:
    """F.156, F.157, F.164."""
    holder = call.memory(store, "/notes/todo.md")
    conflicts_with(create(call, store, "/notes/todo.md", content), holder)
    assert len(call.versions(store)) == 1


@pytest.mark.parametrize(
    ("there", "wanted"), [("/notes", "/notes/todo.md"), ("/notes/todo.md", "/notes"), ("/a/b/c", "/a")]
)
def test_a_path_above_or_below_a_memory(call: Caller, store: str, there: str, wanted: str) -> None:
    """F.158, F.159."""
    holder = call.memory(store, there)
    conflicts_with(create(call, store, wanted), holder)


def test_the_first_of_several_is_named(call: Caller, store: str) -> None:
    """B.6."""
    call.memory(store, "/a/z")
    first = call.memory(store, "/a/b/c")
    conflicts_with(create(call, store, "/a"), first)


@pytest.mark.parametrize("beside", ["/notes-archive", "/notes2", "/notes.md", "/note", "/Notes", "/notes-archive/x"])
def test_a_path_beside_a_memory(call: Caller, store: str, beside: str) -> None:
    """F.160."""
    call.memory(store, "/notes")
    assert create(call, store, beside).status == 200


@pytest.mark.parametrize("wanted", ["/taken", "/taken/below", "/dir"])
def test_a_rename_onto_what_is_there(call: Caller, store: str, wanted: str) -> None:
    """F.161."""
    taken, below, memory = call.memory(store, "/taken"), call.memory(store, "/dir/x"), call.memory(store, "/a")
    before = call.versions(store)
    for body in ({"path": wanted}, {"path": wanted, "content": "new"}):
        conflicts_with(call.update(memory, **body), below if wanted == "/dir" else taken)
    assert call.versions(store) == before
    assert call("GET", at(store, memory["id"]), view="basic").ok == memory


@pytest.mark.parametrize(("old", "new"), [("/a", "/a/b"), ("/a/b", "/a"), ("/a", "/A")])
def test_a_memory_does_not_conflict_with_itself(call: Caller, store: str, old: str, new: str) -> None:
    """F.162."""
    memory = call.memory(store, old)
    assert call.update(memory, path=new).ok["path"] == new


def test_a_path_is_free_once_its_memory_is_deleted(call: Caller, store: str) -> None:
    """F.163."""
    holder = call.memory(store, "/a")
    assert call.delete(holder).status == 200
    assert create(call, store, "/a").ok["id"] != holder["id"]


@pytest.mark.parametrize("paths", [("/x", "/x"), ("/x", "/x/y"), ("/x/y/z", "/x")], ids="-".join)
def test_of_two_at_once_one_is_made(call: Caller, store: str, paths: tuple[str, str]) -> None:
    """F.165, F.166."""
    with ThreadPoolExecutor(2) as threads:
        for number in range(10):
            start = Barrier(2)

            def run(path: str, number: int = number, start: Barrier = start) -> Any:
                start.wait()
                return create(call, store, f"/{number}{path}")

            answers = sorted(threads.map(run, paths), key=lambda answer: answer.status)
            assert [answer.status for answer in answers] == [200, 409]
            conflicts_with(answers[1], answers[0].json)
