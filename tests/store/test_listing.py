"""Memory lists and their pages: CONTRACT F.184-F.200 at the record layer; fault 17."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from memkernel.errors import InvalidInputError, InvalidPageError, InvalidPathError, StoreNotFoundError
from memkernel.models import Change, Memory, MemoryPrefix, MemoryStore, Page
from memkernel.store import Database
from tests.store.people import ANN

Listing = Callable[..., Page[Memory | MemoryPrefix]]


@pytest.fixture
def fill(database: Database, store: MemoryStore) -> Callable[..., None]:
    """Put memories at these paths."""

    def fill(*paths: str) -> None:
        database.memories.apply(store.id, [Change(path, f"text of {path}") for path in paths], actor=ANN)

    return fill


@pytest.fixture
def listing(database: Database, store: MemoryStore) -> Listing:
    def listing(**arguments: Any) -> Page[Memory | MemoryPrefix]:
        return database.memories.list(store.id, **arguments)

    return listing


def paths(page: Page[Memory | MemoryPrefix]) -> list[str]:
    return [item.path for item in page.data]


def all_pages(listing: Listing, *, page: str | None = None, **arguments: Any) -> list[Memory | MemoryPrefix]:
    items: list[Memory | MemoryPrefix] = []
    while True:
        answer = listing(page=page, **arguments)
        items += answer.data
        page = answer.next_page
        if page is None:
            return items


def test_f184_a_list_is_basic_twenty_items_bytewise(fill: Callable[..., None], listing: Listing) -> None:
    names = [f"/{letter}{number}" for letter in "zaZ" for number in range(8)]
    fill(*names)
    page = listing()
    assert paths(page) == sorted(names)[:20]
    assert all(isinstance(item, Memory) and item.content is None for item in page.data)
    assert page.next_page


def test_f185_a_page_holds_100_or_20_with_contents(fill: Callable[..., None], listing: Listing) -> None:
    fill(*(f"/{number:03}" for number in range(101)))
    assert len(listing(limit=100).data) == 100
    for depth in (0, 1):
        full = listing(limit=100, view="full", depth=depth)
        assert len(full.data) == 20
        assert [item.content for item in full.data if isinstance(item, Memory)] == [
            f"text of {path}" for path in paths(full)
        ]


@pytest.mark.parametrize("prefix", ["/notes", "notes/", "", "//", "/a//", "/./", "/a\0/", "/\ud800/", 7, b"/"])
def test_f186_fault_14_a_broken_prefix_is_refused(listing: Listing, prefix: Any) -> None:
    with pytest.raises(InvalidPathError):
        listing(path_prefix=prefix)


def test_f187_a_prefix_is_whole_segments(fill: Callable[..., None], listing: Listing) -> None:
    fill("/notes-archive/a.md", "/notes/todo.md", "/notes.md", "/notes0", "/other/notes/x")
    assert paths(listing(path_prefix="/notes/")) == ["/notes/todo.md"]
    assert paths(listing(path_prefix="/nothing/")) == []


def test_f187_a_memory_is_not_below_itself(fill: Callable[..., None], listing: Listing) -> None:
    fill("/notes")
    assert paths(listing(path_prefix="/notes/")) == []


def test_f188_the_root_prefix_is_no_prefix(fill: Callable[..., None], listing: Listing) -> None:
    fill("/a", "/b/c", "/~", "/é")
    assert listing(path_prefix="/") == listing()
    assert listing(path_prefix="/", depth=1) == listing(depth=1)


def test_f189_wildcards_are_letters(fill: Callable[..., None], listing: Listing) -> None:
    fill("/a%/x", "/a_/y", "/ab/z", "/a\\/w")
    assert paths(listing(path_prefix="/a%/")) == ["/a%/x"]
    assert paths(listing(path_prefix="/a_/")) == ["/a_/y"]
    assert paths(listing(path_prefix="/a\\/")) == ["/a\\/w"]


@pytest.mark.parametrize("depth", [2, -1, "x", "0", None, True, 1.0])
def test_f190_depth_is_0_or_1(listing: Listing, depth: Any) -> None:
    with pytest.raises(InvalidInputError, match="depth"):
        listing(depth=depth)


def test_f190_depth_0_is_the_default(fill: Callable[..., None], listing: Listing) -> None:
    fill("/a/b/c", "/d")
    assert listing(depth=0) == listing()


def test_f191_depth_1_rolls_directories_up(fill: Callable[..., None], listing: Listing) -> None:
    fill("/b/1", "/b/2/3", "/b-1", "/b.md", "/b0", "/c/d/e/f", "/a")
    page = listing(depth=1)
    assert page.data[3] == MemoryPrefix("/b/")
    assert page.data[5] == MemoryPrefix("/c/")
    assert paths(page) == ["/a", "/b-1", "/b.md", "/b/", "/b0", "/c/"]


def test_f192_depth_1_is_relative_to_the_prefix(fill: Callable[..., None], listing: Listing) -> None:
    fill("/a/b/c/d", "/a/b/e", "/a/f", "/g", "/a/é/h")
    assert paths(listing(depth=1, path_prefix="/a/")) == ["/a/b/", "/a/f", "/a/é/"]
    assert paths(listing(depth=1, path_prefix="/a/b/")) == ["/a/b/c/", "/a/b/e"]


@pytest.mark.parametrize("view", ["basic", "full"])
@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_f193_prefixes_count_and_come_once(fill: Callable[..., None], listing: Listing, limit: int, view: str) -> None:
    fill("/a/1", "/a/2/x", "/a-b", "/a0", "/b", "/c/1", "/c/2", "/c.d/x", "/d\u00e9/x", "/d\u00e9\u00e9")
    items = all_pages(listing, depth=1, limit=limit, view=view)
    expected = ["/a-b", "/a/", "/a0", "/b", "/c.d/", "/c/", "/dé/", "/déé"]
    assert [item.path for item in items] == expected
    assert [item.path for item in items if isinstance(item, MemoryPrefix)] == ["/a/", "/c.d/", "/c/", "/dé/"]


def test_f194_only_the_last_page_has_no_token(fill: Callable[..., None], listing: Listing) -> None:
    fill("/a", "/b", "/c")
    assert listing(limit=3).next_page is None
    token = listing(limit=2).next_page
    assert token
    assert token.startswith("page_")
    assert listing(limit=2, page=token).next_page is None


def test_f195_paging_over_250_memories_sees_each_once(fill: Callable[..., None], listing: Listing) -> None:
    fill(*(f"/d{number % 7}/{number}" for number in range(250)))
    for limit in (1, 20, 99, 100):
        items = all_pages(listing, limit=limit)
        assert len({item.id for item in items if isinstance(item, Memory)}) == len(items) == 250


def test_f196_fault_17_a_token_fits_only_its_listing(
    database: Database, fill: Callable[..., None], listing: Listing
) -> None:
    fill("/a/1", "/a/2", "/b/1")
    token = listing(limit=1).next_page
    other = database.memory_stores.create(name="other")
    assert listing(limit=2, page=token).data
    for foreign in (
        lambda: listing(page=token, depth=1),
        lambda: listing(page=token, path_prefix="/a/"),
        lambda: listing(page=token, view="full"),
        lambda: database.memories.list(other.id, page=token),
        lambda: database.memory_stores.list(page=token),
        lambda: database.memory_versions.list(other.id, page=token),
    ):
        with pytest.raises(InvalidPageError):
            foreign()


_NO_POSITIONS: list[Any] = [[], [1], {}, None, "text", ["0" * 16, "/a"], [["deep"]], 10**400]


def _token(value: object) -> str:
    return "page_" + base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


@pytest.mark.parametrize(
    "token",
    [
        *("", "page_", "page_%%%", "page_AAAA", "x", "page_\ud800", "page_\0", "PAGE_AAAA", 7, b"page_AAAA"),
        *map(_token, _NO_POSITIONS),
        "page_" + base64.urlsafe_b64encode(b"[" * 100_000).decode(),
    ],
)
def test_f197_garbage_is_no_token(listing: Listing, token: Any) -> None:
    with pytest.raises(InvalidPageError):
        listing(page=token)


def test_f197_a_token_whose_position_was_tampered_with_is_refused(fill: Callable[..., None], listing: Listing) -> None:
    fill("/a", "/b")
    token = listing(limit=1).next_page
    assert token
    encoded = token.removeprefix("page_")
    bound, _ = json.loads(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))
    for position in ([7], [None], [["/a"]], [], ["/a", "/b"], [True]):
        with pytest.raises(InvalidPageError):
            listing(page=_token([bound, *position]))


@pytest.mark.parametrize("depth", [0, 1])
def test_f198_changes_between_pages_skip_and_repeat_nothing(
    database: Database, store: MemoryStore, fill: Callable[..., None], listing: Listing, depth: int
) -> None:
    fill(*(f"/{letter}/{number}" for letter in "bdfh" for number in range(2)), "/k")
    first = listing(limit=2, depth=depth)
    database.memories.delete_tree(store.id, "/b", actor=ANN)
    fill("/a", "/b2", "/c/1", "/d/00", "/j")
    rest = all_pages(listing, depth=depth, page=first.next_page)
    if depth == 0:
        paths_now = [path for path, _ in database.memories.entries(store.id)]
        assert [item.path for item in rest] == [path for path in paths_now if path > "/b/1"]
    else:
        assert [item.path for item in first.data] == ["/b/", "/d/"]
        assert [item.path for item in rest] == ["/f/", "/h/", "/j", "/k"]


def test_f199_any_letters_page_completely(fill: Callable[..., None], listing: Listing) -> None:
    names = ["/a", "/B", "/b", "/É", "/é", "/ß", "/ss", "/日本", "/~", "/ ", "/🎉", "/z", "/_", "/-", "/ÿ/x", "/aa"]
    fill(*names)
    expected = sorted(names, key=str.encode)
    for limit in (1, 3):
        assert [item.path for item in all_pages(listing, limit=limit)] == expected
        rolled_up = [path.replace("/ÿ/x", "/ÿ/") for path in expected]
        assert [item.path for item in all_pages(listing, limit=limit, depth=1)] == rolled_up


def test_f200_listing_an_unknown_store_is_not_found(database: Database, store: MemoryStore) -> None:
    database.memory_stores.delete(store.id)
    for listing in (
        lambda: database.memories.list(store.id),
        lambda: database.memories.list(store.id, depth=1, view="full"),
        lambda: database.memories.entries(store.id),
        lambda: list(database.memories.contents(store.id)),
        lambda: database.memory_versions.list(store.id, path="/a"),
    ):
        with pytest.raises(StoreNotFoundError):
            listing()


@pytest.mark.parametrize("limit", [0, 101, -1, "10", 10.0, True, None])
def test_a_broken_limit_is_refused(database: Database, store: MemoryStore, limit: Any) -> None:
    for view in ("basic", "full"):
        with pytest.raises(InvalidInputError, match="limit"):
            database.memories.list(store.id, limit=limit, view=view)
        with pytest.raises(InvalidInputError, match="limit"):
            database.memory_versions.list(store.id, limit=limit, view=view)
