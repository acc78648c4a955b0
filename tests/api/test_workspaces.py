"""Workspaces through the API: what is of another one is not there (CONTRACT B.1.1, row 404)."""

from __future__ import annotations

from typing import Any

import pytest

from memkernel.api.auth import KeyAuthenticator
from memkernel.api.dispatch import Api
from memkernel.store import Database
from tests.api.calls import Caller, Json

STORES = "/v1/memory_stores"


class Two:
    """An API, a key to each of two workspaces, and a store with a memory and a session in the second."""

    def __init__(self, database: Database) -> None:
        dispatch = Api(database, KeyAuthenticator(database, reach="network")).dispatch
        self.mine, self.theirs = (
            Caller(dispatch, {"x-api-key": database.keys.create(workspace)[1]}) for workspace in ("mine", "theirs")
        )
        self.my_store, self.store = self.mine.store("Notes"), self.theirs.store("Notes")
        self.memory: Json = self.theirs.memory(self.store)
        attached = {"type": "memory_store", "memory_store_id": self.store}
        asked = {"agent": "agent_01", "environment_id": "env_01", "resources": [attached]}
        self.session: str = self.theirs("POST", "/v1/sessions", asked).ok["id"]

    def before(self) -> list[Json]:
        """All that is told of theirs."""
        return [
            self.theirs("GET", path).ok
            for path in (
                STORES,
                f"{STORES}/{self.store}/memories",
                f"{STORES}/{self.store}/memory_versions",
                "/v1/sessions",
            )
        ]


@pytest.fixture
def two(database: Database) -> Two:
    """Two keys, two workspaces."""
    return Two(database)


ROUTES: tuple[tuple[str, str, Any], ...] = (
    ("GET", "{stores}/{store}", None),
    ("POST", "{stores}/{store}", {"name": "broken"}),
    ("DELETE", "{stores}/{store}", None),
    ("POST", "{stores}/{store}/archive", None),
    ("GET", "{stores}/{store}/memories", None),
    ("GET", "{stores}/{store}/memories?depth=1&view=full", None),
    ("POST", "{stores}/{store}/memories", {"path": "/b.md", "content": "broken"}),
    ("POST", "{stores}/{store}/memories", {"path": "/a.md", "content": "broken"}),
    ("GET", "{stores}/{store}/memories/{memory}", None),
    ("POST", "{stores}/{store}/memories/{memory}", {"content": "broken"}),
    ("DELETE", "{stores}/{store}/memories/{memory}", None),
    ("GET", "{stores}/{store}/memory_versions", None),
    ("GET", "{stores}/{store}/memory_versions/{version}", None),
    ("POST", "{stores}/{store}/memory_versions/{version}/redact", None),
    ("GET", "{stores}/{my_store}/memories/{memory}", None),
    ("POST", "{stores}/{my_store}/memories/{memory}", {"content": "broken"}),
    ("GET", "{stores}/{my_store}/memory_versions/{version}", None),
    ("POST", "{stores}/{my_store}/memory_versions/{version}/redact", None),
    ("GET", "/v1/sessions/{session}", None),
    ("POST", "/v1/sessions/{session}", {"title": "broken"}),
    ("DELETE", "/v1/sessions/{session}", None),
    ("POST", "/v1/sessions/{session}/archive", None),
    ("GET", "/v1/sessions/{session}/resources", None),
    ("GET", "/v1/sessions/{session}/resources/{store}", None),
)


@pytest.mark.parametrize(("method", "path", "body"), ROUTES, ids=[f"{route[0]} {route[1]}" for route in ROUTES])
def test_what_is_of_another_workspace_is_not_found(two: Two, method: str, path: str, body: Any) -> None:
    before = two.before()
    place, _, query = path.format(
        stores=STORES,
        store=two.store,
        my_store=two.my_store,
        memory=two.memory["id"],
        version=two.memory["memory_version_id"],
        session=two.session,
    ).partition("?")
    answer = two.mine(method, place, body, raw_query=query)
    unknown = two.mine(method, place.replace(two.store, "memstore_" + "0" * 26), body, raw_query=query)
    assert answer.error(404, "not_found_error")["type"] == unknown.error(404)["type"]
    assert two.before() == before


def test_lists_are_of_ones_own_workspace(two: Two) -> None:
    assert [store["id"] for store in two.mine("GET", STORES).ok["data"]] == [two.my_store]
    assert two.mine("GET", "/v1/sessions").ok["data"] == []
    assert two.mine("GET", "/v1/sessions", memory_store_id=two.store).ok["data"] == []


def test_a_store_of_another_workspace_is_not_attached(two: Two) -> None:
    resources = [{"type": "memory_store", "memory_store_id": two.store}]
    asked = {"agent": "agent_01", "environment_id": "env_01", "resources": resources}
    two.mine("POST", "/v1/sessions", asked).error(400, "invalid_request_error")


def test_a_page_of_another_workspace_is_no_page_here(two: Two) -> None:
    for workspace in (two.mine, two.theirs):
        workspace.store("More")
    token = two.theirs("GET", STORES, limit=1).ok["next_page"]
    two.mine("GET", STORES, limit=1, page=token).refusal("page")
    assert len(two.theirs("GET", STORES, limit=1, page=token).ok["data"]) == 1
