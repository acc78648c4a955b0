"""Changes of a memory, what they may expect, and its end (CONTRACT B.7)."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from tests.api.calls import Answer, Caller, Json, at


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def expecting(text: str) -> Json:
    return {"type": "content_sha256", "content_sha256": sha256(text)}


def failed(answer: Answer) -> None:
    answer.error(409, "memory_precondition_failed_error")
    assert answer.headers["x-should-retry"] == "false"


@pytest.fixture
def call(shared: Caller) -> Caller:
    return shared


@pytest.fixture
def store(call: Caller) -> str:
    return call.store()


@pytest.fixture
def memory(call: Caller, store: str) -> Json:
    """`/a` holds `two`, its version before that `one`."""
    made = call.memory(store, "/a", "one")
    return call.update(made, content="two").ok


def unchanged(call: Caller, memory: Json) -> None:
    assert call("GET", at(memory["memory_store_id"], memory["id"]), view="basic").ok == memory


def test_a_new_content(call: Caller, store: str, memory: Json) -> None:
    """F.167, F.97."""
    after = call.update(memory, content="three").ok
    assert (after["id"], after["path"], after["created_at"]) == (memory["id"], "/a", memory["created_at"])
    assert after["memory_version_id"] != memory["memory_version_id"]
    assert after["updated_at"] > memory["updated_at"]
    assert call("GET", at(store, memory["id"])).ok == {**after, "content": "three"}


def test_a_new_path(call: Caller, store: str, memory: Json) -> None:
    """F.168."""
    after = call.update(memory, path="/b").ok
    assert (after["id"], after["path"], after["content_sha256"]) == (memory["id"], "/b", memory["content_sha256"])
    newest, *older = call.versions(store, view="full")
    assert (newest["operation"], newest["path"], newest["content"]) == ("modified", "/b", "two")
    assert len(older) == 2


def test_a_new_content_and_a_new_path(call: Caller, store: str, memory: Json) -> None:
    """F.169."""
    after = call.update(memory, content="three", path="/b").ok
    newest, *older = call.versions(store, view="full")
    assert (newest["id"], newest["path"], newest["content"]) == (after["memory_version_id"], "/b", "three")
    assert len(older) == 2


def test_what_was_expected_is_there(call: Caller, memory: Json) -> None:
    """F.170."""
    assert call.update(memory, content="three", precondition=expecting("two")).ok["content_sha256"] == sha256("three")


@pytest.mark.parametrize("body", [{"content": "C"}, {"content": "two", "path": "/b"}, {"path": "/b"}], ids=repr)
def test_what_was_expected_is_not_there(call: Caller, store: str, memory: Json, body: Json) -> None:
    """F.171, F.173, F.174, FAULTS B 19."""
    failed(call.update(memory, **body, precondition=expecting("one")))
    unchanged(call, memory)
    assert len(call.versions(store)) == 2


@pytest.mark.parametrize("body", [{"content": "two"}, {"path": "/a"}, {"content": "two", "path": "/a"}, {}], ids=repr)
@pytest.mark.parametrize("expected", [None, "one", "two"])
def test_what_is_wanted_is_there_already(
    call: Caller, store: str, memory: Json, body: Json, expected: str | None
) -> None:
    """F.172, F.174, F.177, FAULTS B 18, 19: whatever was expected."""
    precondition = {} if expected is None else {"precondition": expecting(expected)}
    assert call.update(memory, **body, **precondition).ok == memory
    assert len(call.versions(store)) == 2


def test_an_expectation_is_of_this_memory(call: Caller, store: str, memory: Json) -> None:
    """F.175, F.176: not of what is at the destination; and it is looked at first."""
    call.memory(store, "/b", "one")
    failed(call.update(memory, path="/b", precondition=expecting("one")))
    call.update(memory, path="/b", precondition=expecting("two")).error(409, "memory_path_conflict_error")
    unchanged(call, memory)


def test_null_is_as_good_as_nothing(call: Caller, memory: Json) -> None:
    """F.178."""
    assert call.update(memory, content=None, path=None, precondition=None).ok == memory
    assert call.update(memory, content=None, path="/b", precondition=None).ok["path"] == "/b"
    assert call.update(memory, content="three", path=None).ok["content_sha256"] == sha256("three")


@pytest.mark.parametrize(
    "precondition",
    [
        {"type": "content_sha256", "content_sha256": sha256("two").upper()},
        {"type": "content_sha256", "content_sha256": sha256("two")[:-1]},
        {"type": "content_sha256", "content_sha256": sha256("two") + "\n"},
        {"type": "content_sha256", "content_sha256": ""},
        {"type": "content_sha256", "content_sha256": None},
        {"type": "content_sha256", "content_sha256": 5},
        {"type": "content_sha256"},
        {"content_sha256": sha256("two")},
        {"type": "not_exists", "content_sha256": sha256("two")},
        {"type": None, "content_sha256": sha256("two")},
        {**expecting("two"), "more": 1},
        {},
        [],
        sha256("two"),
        True,
    ],
    ids=repr,
)
def test_a_malformed_expectation(call: Caller, store: str, memory: Json, precondition: Any) -> None:
    """F.179."""
    call.update(memory, content="three", precondition=precondition).refusal("precondition")
    unchanged(call, memory)
    assert len(call.versions(store)) == 2


def test_of_two_updates_at_once_one_wins(call: Caller, memory: Json) -> None:
    """F.180."""
    content = "two"
    with ThreadPoolExecutor(2) as threads:
        for number in range(10):
            start = Barrier(2)

            def run(text: str, expected: str = content, start: Barrier = start) -> Answer:
                start.wait()
                return call.update(memory, content=text, precondition=expecting(expected))

            texts = [f"{number}, one", f"{number}, other"]
            answers = list(threads.map(run, texts))
            assert sorted(answer.status for answer in answers) == [200, 409]
            content = texts[0 if answers[0].status == 200 else 1]
            failed(max(answers, key=lambda answer: answer.status))
    assert call("GET", at(memory["memory_store_id"], memory["id"])).ok["content"] == content


def test_a_deleted_memory(call: Caller, store: str, memory: Json) -> None:
    """F.181, F.97, F.104."""
    assert call.delete(memory).ok == {"id": memory["id"], "type": "memory_deleted"}
    call("GET", at(store, memory["id"])).error(404, "not_found_error")
    call.update(memory, content="three").error(404, "not_found_error")
    call.delete(memory).error(404, "not_found_error")
    assert [version["operation"] for version in call.versions(store)] == ["deleted", "modified", "created"]


def test_a_deletion_that_expected_another_content(call: Caller, store: str, memory: Json) -> None:
    """F.182, FAULTS B 19."""
    failed(call.delete(memory, expected_content_sha256=sha256("one")))
    unchanged(call, memory)
    assert call.delete(memory, expected_content_sha256=sha256("two")).status == 200


@pytest.mark.parametrize("expected", ["", "abc", sha256("two").upper(), sha256("two") + "0", "null", " " * 64])
def test_a_deletion_with_a_malformed_expectation(call: Caller, memory: Json, expected: str) -> None:
    """F.183."""
    call.delete(memory, expected_content_sha256=expected).refusal("expected_content_sha256")
    unchanged(call, memory)


@pytest.mark.parametrize("memory_id", ["mem_0", "nothing", "mem_01h455vb4pex5vsknk084sn02q"])
def test_an_archived_store_is_told_before_a_memory_that_is_not_there(call: Caller, store: str, memory_id: str) -> None:
    """CONTRACT B.7, step 1: the store first."""
    call("POST", f"/v1/memory_stores/{store}/memories/{memory_id}", json={"path": "/b"}).error(404, "not_found_error")
    call("POST", f"/v1/memory_stores/{store}/archive")
    call("POST", f"/v1/memory_stores/{store}/memories/{memory_id}", json={"path": "/b"}).error(
        400, "invalid_request_error"
    )
