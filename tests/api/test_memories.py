"""Memories: making and reading them (CONTRACT B.5)."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest

from memkernel import ids
from tests.api.calls import Caller, Json, at

TEXTS = ("plain ASCII\n", "größer 日本語 😀", "", "a\0b", "\r\n\ufeff", "\u2028", '"\\')


@pytest.fixture
def call(shared: Caller) -> Caller:
    return shared


@pytest.fixture
def store(call: Caller) -> str:
    return call.store()


def create(call: Caller, store: str, **body: Any) -> Any:
    return call("POST", f"{at(store)}/memories", {"path": "/a.md", "content": "text", **body})


def test_a_new_memory(call: Caller, store: str) -> None:
    """F.138."""
    made = call.memory(store, "/notes/todo.md", "größer")
    assert made["id"].startswith("mem_")
    assert made["memory_version_id"].startswith("memver_")
    assert made == {
        "id": made["id"],
        "type": "memory",
        "memory_store_id": store,
        "memory_version_id": made["memory_version_id"],
        "path": "/notes/todo.md",
        "content": None,
        "content_size_bytes": 8,
        "content_sha256": hashlib.sha256("größer".encode()).hexdigest(),
        "created_at": made["created_at"],
        "updated_at": made["created_at"],
    }


def test_the_full_view_of_a_change(call: Caller, store: str) -> None:
    """F.139."""
    made = call.memory(store, content="one", view="full")
    assert made["content"] == "one"
    path = at(store, made["id"])
    assert call("POST", path, {"content": "two"}, view="full").ok["content"] == "two"
    assert call("POST", path, {"path": "/b"}, view="full").ok["content"] == "two"
    assert call("POST", path, {}, view="full").ok["content"] == "two"
    assert call("POST", path, {"content": "three"}).ok["content"] is None
    assert call("POST", path, {"content": "four"}, view="basic").ok["content"] is None


def test_the_views_of_a_memory(call: Caller, store: str) -> None:
    """F.140."""
    made = call.memory(store)
    full = call("GET", at(store, made["id"])).ok
    assert full == {**made, "content": "text"}
    assert call("GET", at(store, made["id"]), view="full").ok == full
    assert call("GET", at(store, made["id"]), view="basic").ok == {**full, "content": None}


@pytest.mark.parametrize("view", ["other", "", "FULL", "full "])
def test_another_view(call: Caller, store: str, view: str) -> None:
    """F.141."""
    made = call.memory(store)
    for method, path, body in (
        ("GET", at(store, made["id"]), None),
        ("GET", at(store, version=made["memory_version_id"]), None),
        ("GET", f"{at(store)}/memories", None),
        ("GET", f"{at(store)}/memory_versions", None),
        ("POST", f"{at(store)}/memories", {"path": "/b", "content": ""}),
        ("POST", at(store, made["id"]), {"content": "new"}),
    ):
        call(method, path, body, view=view).refusal("view")
    assert len(call.versions(store)) == 1


@pytest.mark.parametrize("text", TEXTS, ids=repr)
def test_the_hash_is_of_the_bytes_of_utf_8(call: Caller, store: str, text: str) -> None:
    """F.142, F.143, F.145."""
    made = call.memory(store, content=text)
    assert made["content_sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert made["content_size_bytes"] == len(text.encode())
    assert call("GET", at(store, made["id"])).ok["content"] == text


def test_a_memory_without_content(call: Caller, store: str) -> None:
    """F.143."""
    create(call, store, content=None).refusal("content")
    call("POST", f"{at(store)}/memories", {"path": "/a.md"}).refusal("content")
    call("POST", f"{at(store)}/memories", {"content": ""}).refusal("path")


def test_a_content_is_counted_in_bytes(call: Caller, store: str) -> None:
    """F.144, FAULTS B 26."""
    assert call.memory(store, "/ascii", "x" * 102_400)["content_size_bytes"] == 102_400
    made = call.memory(store, "/wide", "é" * 51_200)
    assert made["content_size_bytes"] == 102_400
    create(call, store, content="x" * 102_401).refusal("content")
    create(call, store, content="é" * 51_201).refusal("content")
    call.update(made, content="é" * 51_200 + "x").refusal("content")
    assert len(call.versions(store)) == 2


def test_a_content_that_is_escaped_six_times_its_length(call: Caller, store: str) -> None:
    """F.113."""
    escaped = b"\\u0041" * 102_400
    body = b'{"path": "/a", "content": "' + escaped + b'"}'
    assert len(body) > 600_000
    made = call("POST", f"{at(store)}/memories", body=body).ok
    assert call("GET", at(store, made["id"])).ok["content"] == "A" * 102_400


@pytest.mark.parametrize("escape", [r"\ud800", r"\udfff", r"\udc00\ud800", r"a\uD83Db"])
def test_a_lone_surrogate(call: Caller, store: str, escape: str) -> None:
    """F.146."""
    body = f'{{"path": "/a", "content": "{escape}"}}'.encode()
    call("POST", f"{at(store)}/memories", body=body).refusal("content")
    body = f'{{"path": "/{escape}", "content": ""}}'.encode()
    call("POST", f"{at(store)}/memories", body=body).refusal("path")
    assert call.all(f"{at(store)}/memories") == []


def test_a_surrogate_pair_is_one_character(call: Caller, store: str) -> None:
    """F.146."""
    made = call("POST", f"{at(store)}/memories", body=rb'{"path": "/a", "content": "\ud83d\ude00"}').ok
    assert call("GET", at(store, made["id"])).ok["content"] == "😀"


BAD_PATHS = (
    *("notes", "/", "//a", "/a/", "/a//b", "/./a", "/a/../b", "", "/a/.", "/..", "\\a"),
    *("/a\x07", "/a\u200bb", "/a\u2028b", "/a\u2029b", "/a\0b", "/a\nb", "/\x7f", "/\ufeffa", "/\u202ea"),
    *("/x" * 21, f"/{'x' * 1_024}", f"/{'é' * 512}", "/cafe\u0301"),
)


@pytest.mark.parametrize("path", BAD_PATHS, ids=ascii)
def test_an_illegal_path(call: Caller, store: str, path: str) -> None:
    """F.147, F.148, F.149, F.150, F.151."""
    create(call, store, path=path).refusal("path")
    made = call.memory(store, "/good")
    call.update(made, path=path).refusal("path")
    assert [memory["path"] for memory in call.all(f"{at(store)}/memories")] == ["/good"]
    assert len(call.versions(store)) == 1


@pytest.mark.parametrize(
    "path", ["/x" * 20, f"/{'x' * 1_023}", f"/{'é' * 511}x", "/caf\u00e9", "/...", "/ a ", "/%_*?"]
)
def test_a_legal_path(call: Caller, store: str, path: str) -> None:
    """F.148, F.149, F.151."""
    assert unicodedata.is_normalized("NFC", path)
    assert call.memory(store, path)["path"] == path


def test_paths_are_case_sensitive(call: Caller, store: str) -> None:
    """F.152."""
    assert call.memory(store, "/A.md")["id"] != call.memory(store, "/a.md")["id"]


def _requests(store: str, memory: Json) -> list[tuple[str, str, Any]]:
    path = at(store, memory["id"])
    return [("GET", path, None), ("POST", path, {"content": "new"}), ("DELETE", path, None)]


def test_a_memory_of_another_store(call: Caller, store: str) -> None:
    """F.153."""
    memory = call.memory(store)
    for elsewhere in (call.store("Other"), ids.mint("memstore"), "memstore_", "nothing"):
        for method, path, body in _requests(elsewhere, memory):
            call(method, path, body).error(404, "not_found_error")
    assert call("GET", at(store, memory["id"])).ok["content"] == "text"


@pytest.mark.parametrize("ident", ["mem_x", "x/../y", "a?b", "\0", "ä", "memstore_1", "mem_" + "0" * 26, "%"])
def test_an_id_of_nothing(call: Caller, store: str, ident: str) -> None:
    """F.111, F.153."""
    for path in (at(store, ident), at(store, version=ident), at(ident)):
        call("GET", path).error(404, "not_found_error")


def test_a_full_store(limited: Callable[..., Caller]) -> None:
    """F.154, F.155."""
    call = limited(memories_per_store=3)
    store = call.store()
    made = [call.memory(store, f"/{number}") for number in range(3)]
    create(call, store).refusal("3 memories")
    assert call.update(made[0], content="new", path="/moved").status == 200
    assert call.delete(made[1]).status == 200
    assert create(call, store).status == 200
    create(call, store, path="/more").refusal("3 memories")


def test_a_store_holds_2_000_memories(call: Caller, store: str, fill: Callable[[str, int], None]) -> None:
    """F.155, FAULTS B 26."""
    fill(store, 1_999)
    last = call.memory(store, "/last")
    create(call, store).refusal("2,000 memories")
    assert call.update(last, content="an edit").status == 200


def test_the_limit_of_a_content_can_be_set(limited: Callable[..., Caller]) -> None:
    """F.155."""
    call = limited(content_bytes=4)
    store = call.store()
    assert call.memory(store, content="four")["content_size_bytes"] == 4
    create(call, store, path="/b", content="five!").refusal("content")
