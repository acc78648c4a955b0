"""Stores (CONTRACT B.3, B.4)."""

from __future__ import annotations

from typing import Any

import pytest

from memkernel import ids
from memkernel.models import AttachmentParams
from memkernel.store import Database
from tests.api.calls import Caller, Json, at

STORES = "/v1/memory_stores"


def test_a_store_with_a_name_only(call: Caller) -> None:
    """F.117."""
    made = call("POST", STORES, {"name": "Notes"}).ok
    assert made["id"].startswith("memstore_")
    assert made == {
        "id": made["id"],
        "type": "memory_store",
        "name": "Notes",
        "description": "",
        "metadata": {},
        "created_at": made["created_at"],
        "updated_at": made["created_at"],
        "archived_at": None,
    }
    assert call("GET", at(made["id"])).ok == made


def test_a_store_keeps_what_it_is_made_with(call: Caller) -> None:
    """F.97."""
    given = {"name": "Größe 1", "description": "what\nfor", "metadata": {"team": "α"}}
    made = call("POST", STORES, given).ok
    assert {name: made[name] for name in given} == given


@pytest.mark.parametrize("name", ["", "x" * 256, "é" * 256, "a\nb", "a\x7fb", "a\x85b", "a\0b"])
def test_an_illegal_name(call: Caller, name: str) -> None:
    """F.118."""
    call("POST", STORES, {"name": name}).refusal("name")
    assert call("GET", STORES).ok["data"] == []


def test_a_name_is_counted_in_characters(call: Caller) -> None:
    """F.118."""
    assert call("POST", STORES, {"name": "é" * 255}).ok["name"] == "é" * 255
    assert call("POST", STORES, {"name": "😀" * 255}).ok["name"] == "😀" * 255


def test_two_stores_of_one_name(call: Caller) -> None:
    """F.119."""
    assert call.store("Notes") != call.store("Notes")


def test_a_description_is_counted_in_characters(call: Caller) -> None:
    """F.120."""
    assert call("POST", STORES, {"name": "n", "description": "é" * 1_024}).ok["description"] == "é" * 1_024
    call("POST", STORES, {"name": "n", "description": "x" * 1_025}).refusal("description")


@pytest.mark.parametrize(
    "metadata",
    [
        {str(number): "" for number in range(17)},
        {"k" * 65: ""},
        {"": "v"},
        {"k": "v" * 513},
        {"k": 1},
        {"k": True},
        {"k": None},
        {"k": ["v"]},
        {"k": {"v": "w"}},
        {"k": "a\0b"},
        {"a\0b": "v"},
        [],
        "text",
        None,
    ],
    ids=repr,
)
def test_illegal_metadata(call: Caller, metadata: Any) -> None:
    """F.121."""
    call("POST", STORES, {"name": "n", "metadata": metadata}).refusal("metadata")
    assert call("GET", STORES).ok["data"] == []


def test_the_most_that_metadata_may_be(call: Caller) -> None:
    """F.121."""
    pairs = {f"{number:064}": "é" * 512 for number in range(16)}
    assert call("POST", STORES, {"name": "n", "metadata": pairs}).ok["metadata"] == pairs


def test_metadata_is_patched(call: Caller) -> None:
    """F.122."""
    store = call.store(metadata={"a": "1", "b": "2", "c": "3"})
    patch = {"a": "one", "b": None, "d": "4", "not there": None}
    assert call("POST", at(store), {"metadata": patch}).ok["metadata"] == {"a": "one", "c": "3", "d": "4"}


def test_a_patch_that_gives_too_many_pairs_changes_nothing(call: Caller) -> None:
    """F.123."""
    store = call.store(metadata={str(number): "" for number in range(16)})
    before = call("GET", at(store)).ok
    call("POST", at(store), {"name": "Other", "metadata": {"0": "new", "one more": ""}}).refusal("metadata")
    assert call("GET", at(store)).ok == before
    assert len(call("POST", at(store), {"metadata": {"0": None, "one more": ""}}).ok["metadata"]) == 16


def test_an_empty_description_clears(call: Caller) -> None:
    """F.124."""
    store = call.store(description="what for")
    assert call("POST", at(store), {"description": ""}).ok["description"] == ""


def test_null_in_an_update(call: Caller) -> None:
    """F.125: name and metadata stay, the description goes."""
    store = call.store(description="what for", metadata={"a": "1"})
    found = call("POST", at(store), {"name": None, "metadata": None, "description": None}).ok
    assert (found["name"], found["metadata"], found["description"]) == ("Notes", {"a": "1"}, "")


@pytest.mark.parametrize("body", [{"name": "n", "description": None}, {"name": "n", "metadata": None}, {"name": None}])
def test_null_in_a_creation(call: Caller, body: Json) -> None:
    """B.3: the SDK's types know no null there."""
    call("POST", STORES, body).refusal(next(name for name in body if body[name] is None))


@pytest.mark.parametrize("body", [{}, {"name": "Notes"}, {"description": "d", "metadata": {"a": "1", "z": None}}])
def test_an_update_that_changes_nothing(call: Caller, body: Json) -> None:
    """F.126."""
    store = call.store(description="d", metadata={"a": "1"})
    before = call("GET", at(store)).ok
    assert call("POST", at(store), body).ok == before


@pytest.mark.parametrize("body", [{"name": "Other"}, {"description": "e"}, {"metadata": {"a": None}}])
def test_an_update_that_changes_something(call: Caller, body: Json) -> None:
    """F.126."""
    store = call.store(description="d", metadata={"a": "1"})
    before = call("GET", at(store)).ok
    after = call("POST", at(store), body).ok
    assert after["updated_at"] > before["updated_at"]
    assert after["created_at"] == before["created_at"]


def test_memories_do_not_move_the_store(call: Caller) -> None:
    """F.127."""
    store = call.store()
    before = call("GET", at(store)).ok
    memory = call.memory(store)
    call.update(memory, content="other")
    call.delete(memory)
    assert call("GET", at(store)).ok == before


def test_stores_are_listed_newest_first(call: Caller) -> None:
    """F.128."""
    made = [call.store(str(number)) for number in range(5)]
    assert [store["id"] for store in call.all(STORES, limit=1)] == made[::-1]
    assert [len(page) for page in call.pages(STORES, limit=2)] == [2, 2, 1]


def test_a_store_that_is_made_or_goes_between_two_pages(call: Caller) -> None:
    """F.128, F.198."""
    made = [call.store(str(number)) for number in range(4)]
    pages = call.pages(STORES, limit=2)
    assert [store["id"] for store in next(pages)] == [made[3], made[2]]
    assert call("DELETE", at(made[3])).status == 200
    call.store("new")
    assert [store["id"] for page in pages for store in page] == [made[1], made[0]]


def test_archived_stores_are_hidden(call: Caller) -> None:
    """F.129."""
    kept, archived = call.store("kept"), call.store("archived")
    call("POST", f"{at(archived)}/archive")
    assert [store["id"] for store in call.all(STORES)] == [kept]
    assert [store["id"] for store in call.all(STORES, include_archived=False)] == [kept]
    assert [store["id"] for store in call.all(STORES, include_archived=True)] == [archived, kept]


def test_the_bounds_in_time_are_inclusive(call: Caller) -> None:
    """F.130."""
    made = [call("GET", at(call.store(str(number)))).ok for number in range(3)]
    first, middle, last = (store["created_at"] for store in made)

    def listed(**query: str) -> list[str]:
        return [store["name"] for store in call.all(STORES, **query)]

    assert listed(created_at_gte=middle) == ["2", "1"]
    assert listed(created_at_lte=middle) == ["1", "0"]
    assert listed(created_at_gte=middle, created_at_lte=middle) == ["1"]
    assert listed(created_at_gte=first, created_at_lte=last, limit="1") == ["2", "1", "0"]
    assert listed(created_at_gte=middle.rstrip("Z")) == ["2", "1"], "without a zone it is UTC"


@pytest.mark.parametrize("limit", ["0", "101", "-1", "abc", "", "1.0", "1e1", "٣", " 5", "+5", "9" * 30, "true"])
def test_an_illegal_limit(call: Caller, limit: str) -> None:
    """F.131."""
    call("GET", STORES, limit=limit).refusal("limit")


def test_a_page_holds_20(call: Caller) -> None:
    """F.131."""
    for number in range(21):
        call.store(str(number))
    assert [len(page) for page in call.pages(STORES)] == [20, 1]
    assert [len(page) for page in call.pages(STORES, limit=100)] == [21]


def test_archiving_again_returns_the_same(call: Caller) -> None:
    """F.132, F.104."""
    store = call.store()
    assert call("GET", at(store)).ok["archived_at"] is None
    archived = call("POST", f"{at(store)}/archive").ok
    assert archived["archived_at"] > archived["created_at"]
    assert archived["updated_at"] > archived["created_at"]
    assert call("POST", f"{at(store)}/archive").ok == archived == call("GET", at(store)).ok


def test_an_archived_store_is_not_updated(call: Caller) -> None:
    """F.133."""
    store = call.store()
    call("POST", f"{at(store)}/archive")
    call("POST", at(store), {"name": "Other"}).refusal("archived")
    call("POST", at(store), {}).refusal("archived")


def test_a_deleted_store_is_gone_with_all_it_held(call: Caller) -> None:
    """F.134."""
    store, other = call.store(), call.store("Other")
    memory, kept = call.memory(store), call.memory(other)
    assert call("DELETE", at(store)).ok == {"id": store, "type": "memory_store_deleted"}
    for method, path in (
        ("GET", at(store)),
        ("POST", at(store)),
        ("DELETE", at(store)),
        ("POST", f"{at(store)}/archive"),
        ("GET", f"{at(store)}/memories"),
        ("GET", at(store, memory["id"])),
        ("GET", f"{at(store)}/memory_versions"),
        ("GET", at(store, version=memory["memory_version_id"])),
        ("GET", at(other, memory["id"])),
        ("GET", at(other, version=memory["memory_version_id"])),
    ):
        call(method, path, {} if method == "POST" else None).error(404, "not_found_error")
    assert call("GET", at(other, kept["id"])).ok["content"] == "text"


def test_a_store_is_not_deleted_while_a_session_attaches_it(call: Caller, database: Database) -> None:
    """F.135."""
    store = call.store()
    session = database.sessions.create([AttachmentParams(store)])
    call("DELETE", at(store)).refusal("attached")
    assert call("GET", at(store)).status == 200
    database.sessions.delete(session.id)
    assert call("DELETE", at(store)).status == 200


def test_no_memory_is_made_or_changed_in_an_archived_store(call: Caller) -> None:
    """F.136."""
    store = call.store()
    memory = call.memory(store)
    call("POST", f"{at(store)}/archive")
    call("POST", f"{at(store)}/memories", {"path": "/b", "content": ""}).refusal("archived")
    for body in ({"content": "other"}, {"content": "text"}, {"path": "/b"}, {}):
        call.update(memory, **body).refusal("archived")
    assert len(call.versions(store)) == 1


def test_what_an_archived_store_still_allows(call: Caller) -> None:
    """F.137."""
    store = call.store()
    memory, other = call.memory(store), call.memory(store, "/b")
    old = memory["memory_version_id"]
    assert call.update(memory, content="new").status == 200
    call("POST", f"{at(store)}/archive")
    assert call("GET", at(store)).status == 200
    assert call("GET", at(store, memory["id"])).ok["content"] == "new"
    assert len(call.all(f"{at(store)}/memories")) == 2
    assert len(call.versions(store)) == 3
    assert call("POST", f"{at(store, version=old)}/redact").ok["redacted_at"]
    assert call.delete(other).status == 200
    assert call("DELETE", at(store)).status == 200


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_store_that_is_not_there(call: Caller, method: str) -> None:
    """F.153."""
    missing = ids.mint("memstore")
    error = call(method, at(missing), {"name": "n"} if method == "POST" else None).error(404, "not_found_error")
    assert missing in error["message"]
