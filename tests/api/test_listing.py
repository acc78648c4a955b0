"""Listings of memories, and page tokens (CONTRACT B.8, B.9)."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkernel import ids
from memkernel.api import pages
from memkernel.api.dispatch import Api
from memkernel.api.messages import Principal
from memkernel.errors import InvalidPageError
from memkernel.models import Change
from memkernel.store import Database
from tests.api.calls import KEY, Caller, at


@pytest.fixture
def call(shared: Caller) -> Caller:
    return shared


@pytest.fixture
def store(call: Caller) -> str:
    return call.store()


@pytest.fixture
def tree(call: Caller, store: str) -> str:
    """The listing of a store with memories at several depths."""
    for path in ("/a", "/b/c", "/b/d/e", "/b/f", "/b-2/x", "/b0", "/c", "/z/y/x"):
        call.memory(store, path, path)
    return f"{at(store)}/memories"


def paths(items: list[Any]) -> list[str]:
    return [item["path"] for item in items]


def test_the_default_is_a_basic_page_of_20_in_bytewise_order(call: Caller, store: str) -> None:
    """F.184."""
    names = [f"/{letter}{number}" for letter in "bAaéZ" for number in range(5)]
    for name in names:
        call.memory(store, name)
    found = list(call.pages(f"{at(store)}/memories"))
    assert [len(page) for page in found] == [20, 5]
    items = [item for page in found for item in page]
    assert paths(items) == sorted(names, key=str.encode)
    assert all(item["type"] == "memory" and item["content"] is None for item in items)


def test_how_much_a_page_holds(call: Caller, store: str, fill: Callable[[str, int], None]) -> None:
    """F.185, F.195."""
    fill(store, 250)
    path = f"{at(store)}/memories"
    assert [len(page) for page in call.pages(path, limit=100)] == [100, 100, 50]
    for limit in (20, 21, 100):
        page = call("GET", path, limit=limit, view="full").ok["data"]
        assert len(page) == 20
        assert {item["content"] for item in page} == {"text"}
    assert len(call("GET", path, limit=5, view="full").ok["data"]) == 5
    assert len({item["id"] for item in call.all(path)}) == 250


def test_a_full_page_of_more_than_20_where_that_is_strict(strict: Callable[..., Caller]) -> None:
    """B.8: `strict_full_limit`."""
    call = strict(full_limit=True)
    store = call.store()
    for listing in ("memories", "memory_versions"):
        call("GET", f"{at(store)}/{listing}", limit=21, view="full").refusal("limit")
        assert call("GET", f"{at(store)}/{listing}", limit=20, view="full").status == 200
        assert call("GET", f"{at(store)}/{listing}", limit=21, view="basic").status == 200
        assert call("GET", f"{at(store)}/{listing}", view="full").status == 200


@pytest.mark.parametrize("prefix", ["/notes", "", "notes/", "//", "/a//", "/../", "/a\0/", "/cafe\u0301/", "/a\u200b/"])
def test_an_illegal_prefix(call: Caller, store: str, prefix: str) -> None:
    """F.186."""
    call("GET", f"{at(store)}/memories", path_prefix=prefix).refusal("path_prefix")


def test_a_prefix_is_of_whole_segments(call: Caller, store: str) -> None:
    """F.187."""
    for path in ("/notes/todo.md", "/notes-archive/todo.md", "/Notes/x", "/notes/deep/x"):
        call.memory(store, path)
    path = f"{at(store)}/memories"
    assert paths(call.all(path, path_prefix="/notes/")) == ["/notes/deep/x", "/notes/todo.md"]
    assert call.all(path, path_prefix="/note/") == []
    other = call.store()
    call.memory(other, "/notes")
    assert call.all(f"{at(other)}/memories", path_prefix="/notes/") == []


def test_the_root_is_no_prefix(call: Caller, tree: str) -> None:
    """F.188."""
    assert call("GET", tree, path_prefix="/").ok == call("GET", tree).ok


def test_a_prefix_is_literal(call: Caller, store: str) -> None:
    """F.189."""
    for path in ("/100%/a", "/100x/a", "/a_b/a", "/aXb/a"):
        call.memory(store, path)
    path = f"{at(store)}/memories"
    assert paths(call.all(path, path_prefix="/100%/")) == ["/100%/a"]
    assert paths(call.all(path, path_prefix="/a_b/")) == ["/a_b/a"]


@pytest.mark.parametrize("depth", ["2", "-1", "x", "", "0.5", "true"])
def test_another_depth(call: Caller, tree: str, depth: str) -> None:
    """F.190."""
    call("GET", tree, depth=depth).refusal("depth")


def test_depth_0_is_the_default(call: Caller, tree: str) -> None:
    """F.190."""
    assert call("GET", tree, depth=0).ok == call("GET", tree).ok


def test_depth_1(call: Caller, tree: str) -> None:
    """F.191, F.192."""
    items = call.all(tree, depth=1)
    assert paths(items) == ["/a", "/b-2/", "/b/", "/b0", "/c", "/z/"]
    prefixes = [item for item in items if item["path"].endswith("/")]
    assert prefixes == [{"type": "memory_prefix", "path": path} for path in ("/b-2/", "/b/", "/z/")]
    assert paths(call.all(tree, depth=1, path_prefix="/b/")) == ["/b/c", "/b/d/", "/b/f"]
    assert paths(call.all(tree, depth=1, path_prefix="/z/")) == ["/z/y/"]
    full = call.all(tree, depth=1, view="full")
    assert [item.get("content") for item in full] == ["/a", None, None, "/b0", "/c", None]


@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize("view", ["basic", "full"])
def test_prefixes_count_and_come_once(call: Caller, tree: str, limit: int, view: str) -> None:
    """F.193."""
    found = list(call.pages(tree, depth=1, limit=limit, view=view))
    assert [len(page) for page in found[:-1]] == [limit] * (len(found) - 1)
    assert paths([item for page in found for item in page]) == ["/a", "/b-2/", "/b/", "/b0", "/c", "/z/"]


def test_the_last_page_has_no_next(call: Caller, tree: str) -> None:
    """F.194."""
    page = call("GET", tree, limit=7).ok
    assert page.keys() == {"data", "next_page"}
    assert page["next_page"].startswith("page_")
    assert call("GET", tree, limit=1, page=page["next_page"]).ok["next_page"] is None
    assert call("GET", tree, limit=8).ok["next_page"] is None


def test_a_token_of_another_listing(call: Caller, tree: str, store: str) -> None:
    """F.196, FAULTS B 17."""
    token = call("GET", tree, limit=1).ok["next_page"]
    other = call.store("Other")
    call.memory(other)
    elsewhere: tuple[tuple[str, dict[str, Any]], ...] = (
        (tree, {"depth": 1}),
        (tree, {"view": "full"}),
        (tree, {"path_prefix": "/b/"}),
        (f"{at(other)}/memories", {}),
        (f"{at(store)}/memory_versions", {}),
        ("/v1/memory_stores", {}),
    )
    for path, query in elsewhere:
        call("GET", path, page=token, **query).refusal("page")
    rolled_up = call("GET", tree, limit=1, depth=1).ok["next_page"]
    call("GET", tree, page=rolled_up).refusal("page")
    stores = call("GET", "/v1/memory_stores", limit=1).ok["next_page"]
    call("GET", tree, page=stores).refusal("page")
    call("GET", "/v1/memory_stores", page=stores, include_archived=True).refusal("page")
    versions = call("GET", f"{at(store)}/memory_versions", limit=1).ok["next_page"]
    call("GET", f"{at(store)}/memory_versions", page=versions, operation="created").refusal("page")


def test_a_token_of_another_limit(call: Caller, tree: str) -> None:
    """B.9: the limit is not part of it."""
    token = call("GET", tree, limit=1).ok["next_page"]
    assert paths(call("GET", tree, limit=2, page=token).ok["data"]) == ["/b-2/x", "/b/c"]


def test_a_token_of_another_workspace(shared_database: Database, call: Caller) -> None:
    """F.196: two workspaces' lists have the same filters."""
    for name in "ab":
        call.store(name)
    token = call("GET", "/v1/memory_stores", limit=1).ok["next_page"]
    other = Caller(Api(shared_database, lambda _: Principal("other", KEY)).dispatch)
    other("GET", "/v1/memory_stores", page=token).refusal("page")
    assert call("GET", "/v1/memory_stores", page=token).status == 200


def test_a_garbled_token(call: Caller, tree: str) -> None:
    """F.197: nothing but what was given out is taken."""
    token = call("GET", tree, limit=1).ok["next_page"]
    position = base64.urlsafe_b64encode(b'["", "/a"]').decode()
    garbled = [
        token[:index] + ("A" if token[index] != "A" else "B") + token[index + 1 :] for index in range(len(token))
    ]
    for garbage in (
        *("", "page_", "page", "x", "\0", "é" * 30, token[:-1], token + "A", token + "=", f" {token}", token.upper()),
        *(f"page_{position}", f"page_{'A' * 20}{position}", "page_" + "A" * 10_000, *garbled),
    ):
        call("GET", tree, page=garbage).refusal("page")


def test_changes_between_two_pages(call: Caller, tree: str, store: str) -> None:
    """F.198."""
    listed = call.pages(tree, limit=2)
    first = next(listed)
    assert paths(first) == ["/a", "/b-2/x"]
    call.delete(first[0])
    call.delete(first[1])
    call.memory(store, "/0-earlier")
    call.memory(store, "/y-later")
    rest = [item for page in listed for item in page]
    assert paths(rest) == ["/b/c", "/b/d/e", "/b/f", "/b0", "/c", "/y-later", "/z/y/x"]


def test_every_path_is_reached(call: Caller, store: str, shared_database: Database) -> None:
    """F.199."""
    names = ["/É", "/é", "/e", "/E", "/ß", "/ss", "/Z", "/a", "/A", "/日本", "/😀", "/a b", "/a-b", "/ab", "/~", "/!"]
    shared_database.memories.apply(store, [Change(name, "") for name in names], actor=KEY)
    for depth in (0, 1):
        found = paths(call.all(f"{at(store)}/memories", limit=1, depth=depth))
        assert found == sorted(names, key=str.encode)


def test_a_store_that_is_not_there_is_not_listed(call: Caller, store: str) -> None:
    """F.200."""
    for missing in (ids.mint("memstore"), "nothing"):
        for listing in ("memories", "memory_versions"):
            call("GET", f"{at(missing)}/{listing}").error(404, "not_found_error")


def test_parameters_of_older_clients(call: Caller, tree: str) -> None:
    """F.100, F.109: `beta`, `order_by` and `order` mean nothing."""
    usual = call("GET", tree).ok
    for query in ("beta=true", "order_by=created_at&order=desc", "nothing[gte]=x&nothing=1&nothing=2&nothing"):
        assert call("GET", tree, raw_query=query).ok == usual


# -- what signs the tokens ---------------------------------------------------------------------------


@given(st.text(st.characters(codec="ascii")), st.text(), st.binary(min_size=32, max_size=32))
def test_a_signed_token_opens_again(position: str, workspace: str, key: bytes) -> None:
    """F.196."""
    token = f"page_{position}"
    sealed = pages.signed(token, workspace, key)
    assert pages.opened(sealed, workspace, key) == token
    with pytest.raises(InvalidPageError):
        pages.opened(sealed, f"{workspace}x", key)
    with pytest.raises(InvalidPageError):
        pages.opened(sealed, workspace, key[::-1] + b"x")


@given(st.text())
def test_no_text_opens(text: str) -> None:
    """F.197."""
    for token in (text, f"page_{text}"):
        with pytest.raises(InvalidPageError):
            pages.opened(token, "default", b"key")


@settings(max_examples=50)
@given(
    names=st.lists(st.text("ab/", min_size=1, max_size=6), min_size=1, max_size=12),
    prefix=st.sampled_from(["/", "/a/", "/b/", "/a/b/"]),
    limit=st.integers(1, 4),
)
def test_depth_1_rolls_up_depth_0(shared: Caller, names: list[str], prefix: str, limit: int) -> None:
    """F.191, F.192, F.193: whatever the paths."""
    store = shared.store()
    for name in names:
        shared("POST", f"{at(store)}/memories", {"path": f"/{name}", "content": ""})
    whole = paths(shared.all(f"{at(store)}/memories", path_prefix=prefix, limit=limit))
    expected: list[str] = []
    for path in whole:
        child, slash, _ = path[len(prefix) :].partition("/")
        if (item := prefix + child + slash) not in expected:
            expected.append(item)
    assert paths(shared.all(f"{at(store)}/memories", path_prefix=prefix, depth=1, limit=limit)) == expected
