"""What the API says of a store whose history was pruned (CONTRACT 0.3, row 18; B.10)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from memkernel.store import Database
from tests.api.calls import Caller, Json, at
from tests.store.ageing import let_pass

PRUNED = ("one", "two")
LEFT = ("three", "four", "five")


@pytest.fixture
def store(call: Caller) -> str:
    return call.store()


@pytest.fixture
def memory(call: Caller, store: str, dsn: str) -> Json:
    """A memory whose five versions are a year old."""
    memory = call.memory(store, "/a", PRUNED[0])
    for text in (*PRUNED[1:], *LEFT):
        call.update(memory, content=text)
    let_pass(dsn, timedelta(days=365))
    return memory


def prune(database: Database) -> int:
    """How many versions went."""
    return sum(one.versions for one in database.pruning.prune(older_than=timedelta(days=30)))


def test_a_pruned_version_is_not_found(call: Caller, store: str, memory: Json, database: Database) -> None:
    versions = call.versions(store)
    assert prune(database) == len(PRUNED)
    for version in versions[len(LEFT) :]:
        call("GET", at(store, version=version["id"])).error(404, "not_found_error")
        call("POST", f"{at(store, version=version['id'])}/redact").error(404, "not_found_error")
    assert call.versions(store) == versions[: len(LEFT)]
    assert [call("GET", at(store, version=one["id"])).ok["content"] for one in versions[: len(LEFT)]] == [*LEFT[::-1]]


def test_a_listing_goes_on_over_what_is_pruned_meanwhile(
    call: Caller, store: str, memory: Json, database: Database
) -> None:
    first = call("GET", f"{at(store)}/memory_versions", limit=4).ok
    prune(database)
    rest = call("GET", f"{at(store)}/memory_versions", limit=4, page=first["next_page"]).ok
    assert (rest["data"], rest["next_page"]) == ([], None)


def test_the_memory_goes_on(call: Caller, store: str, memory: Json, database: Database) -> None:
    prune(database)
    assert call("GET", at(store, memory["id"])).ok["content"] == LEFT[-1]
    assert call.update(memory, content="six").ok["content_sha256"]
    call.delete(memory)
    assert [version["operation"] for version in call.versions(store)] == ["deleted", *["modified"] * 4]
