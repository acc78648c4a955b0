"""Listings and their pages, both ways, through the official SDK (CONTRACT B.8, B.9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anthropic
import pytest

Write = Callable[..., Any]


def test_the_sdk_pages_through_250_memories(
    sdk: anthropic.Anthropic, store: str, write: Write, sent: list[Any]
) -> None:
    """F.195; F.184 and F.185 by the way."""
    for number in range(250):
        write(f"/d{number % 7}/{number:03d}.md", "")
    wishes: list[tuple[Any, int]] = [({}, 13), ({"limit": 100}, 3)]
    for options, pages in wishes:
        del sent[:]
        found: list[Any] = list(sdk.beta.memory_stores.memories.list(store, **options))
        assert len({each.path for each in found}) == 250
        assert len({each.id for each in found}) == 250
        assert [each.path for each in found] == sorted(each.path for each in found)
        assert len(sent) == pages


def test_pages_are_taken_one_by_one(sdk: anthropic.Anthropic, store: str, write: Write) -> None:
    """F.194, F.198."""
    for name in "abcde":
        write(f"/{name}")
    page = sdk.beta.memory_stores.memories.list(store, limit=2)
    assert [each.path for each in page.data] == ["/a", "/b"]
    assert page.has_next_page()
    assert str(page.next_page).startswith("page_")
    write("/aa")
    write("/cc")
    page = page.get_next_page()
    assert [each.path for each in page.data] == ["/c", "/cc"]
    page = page.get_next_page()
    assert ([each.path for each in page.data], page.next_page) == (["/d", "/e"], None)
    assert not page.has_next_page()
    with pytest.raises(RuntimeError, match="No next page expected"):
        page.get_next_page()


def test_the_sdk_iterates_over_whole_pages(sdk: anthropic.Anthropic, store: str, write: Write) -> None:
    for name in "abc":
        write(f"/{name}")
    pages = sdk.beta.memory_stores.memories.list(store, limit=2).iter_pages()
    assert [[each.path for each in page.data] for page in pages] == [["/a", "/b"], ["/c"]]


def test_a_directory_is_one_item_of_a_listing(sdk: anthropic.Anthropic, store: str, write: Write) -> None:
    """F.187, F.189, F.191-F.193."""
    for path in ("/notes", "/z/deep/a", "/z/deep/b", "/z/top", "/z%/x", "/zz"):
        write(path)
    memories = sdk.beta.memory_stores.memories
    for limit in (1, 2, 100):
        top = [(each.type, each.path) for each in memories.list(store, depth=1, limit=limit)]
        assert top == [("memory", "/notes"), ("memory_prefix", "/z%/"), ("memory_prefix", "/z/"), ("memory", "/zz")]
        below = [(each.type, each.path) for each in memories.list(store, depth=1, path_prefix="/z/", limit=limit)]
        assert below == [("memory_prefix", "/z/deep/"), ("memory", "/z/top")]
    assert [each.path for each in memories.list(store, path_prefix="/z%/")] == ["/z%/x"]
    assert [each.path for each in memories.list(store, path_prefix="/z/deep/")] == ["/z/deep/a", "/z/deep/b"]
    assert list(memories.list(store, path_prefix="/none/")) == []


def test_a_full_page_holds_twenty(sdk: anthropic.Anthropic, store: str, write: Write) -> None:
    """F.185, F.208."""
    for number in range(21):
        write(f"/{number:02d}", str(number))
    memories, versions = sdk.beta.memory_stores.memories, sdk.beta.memory_stores.memory_versions
    page = memories.list(store, view="full", limit=100)
    assert [getattr(each, "content", None) for each in page.data] == [str(number) for number in range(20)]
    assert len(list(memories.list(store, view="full", limit=100))) == 21
    assert len(versions.list(store, view="full", limit=100).data) == 20
    assert len(versions.list(store, limit=100).data) == 21
    assert len(versions.list(store).data) == 20


def test_stores_and_versions_page_by_one(sdk: anthropic.Anthropic, store: str, write: Write) -> None:
    """F.128, F.202."""
    names = [sdk.beta.memory_stores.create(name=str(number)).name for number in range(3)]
    assert [each.name for each in sdk.beta.memory_stores.list(limit=1)] == [*reversed(names), "Notes"]
    paths = [write(f"/{number}").path for number in range(3)]
    assert [each.path for each in sdk.beta.memory_stores.memory_versions.list(store, limit=1)] == paths[::-1]


def test_older_sdks_order_parameters_are_ignored(sdk: anthropic.Anthropic, store: str, write: Write) -> None:
    """F.109; CONTRACT B.8."""
    for name in "ba":
        write(f"/{name}")
    odd: Any = {"order": "desc", "order_by": "created_at", "never_heard_of": "1"}
    assert [each.path for each in sdk.beta.memory_stores.memories.list(store, extra_query=odd)] == ["/a", "/b"]


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_sessions_page_both_ways(sdk: anthropic.Anthropic, order: Any) -> None:
    """CONTRACT B.9, C.1."""
    sessions = sdk.beta.sessions
    for number in range(5):
        sessions.create(agent="agent_x", environment_id="env_x", title=str(number))
    titles = [str(number) for number in range(5)]
    expected = titles if order == "asc" else titles[::-1]
    assert [each.title for each in sessions.list(limit=2, order=order)] == expected
    first = sessions.list(limit=2, order=order)
    assert getattr(first, "prev_page", None) is None
    second = first.get_next_page()
    assert [each.title for each in second.data] == expected[2:4]
    back = sessions.list(limit=2, order=order, page=str(getattr(second, "prev_page", None)))
    assert [each.title for each in back.data] == expected[:2]
    assert getattr(back, "prev_page", None) is None
    assert [each.title for each in back.get_next_page().data] == expected[2:4]
