"""Paths that cannot both exist: CONTRACT F.156-F.163, F.165, F.166; fault 9."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from memkernel.errors import PathConflictError
from memkernel.models import Memory, MemoryStore
from memkernel.store import Database
from tests.store.people import ANN


@pytest.fixture
def create(database: Database, store: MemoryStore) -> Callable[..., Memory]:
    def create(path: str, content: str = "text") -> Memory:
        return database.memories.create(store.id, path=path, content=content, actor=ANN)

    return create


@pytest.mark.parametrize("content", ["other", "text"])
def test_f156_f157_create_on_an_occupied_path_names_the_holder(create: Callable[..., Memory], content: str) -> None:
    holder = create("/a.md", "text")
    with pytest.raises(PathConflictError) as conflict:
        create("/a.md", content)
    assert conflict.value.path == conflict.value.conflicting_path == "/a.md"
    assert conflict.value.conflicting_memory_id == holder.id


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        ("/notes", "/notes/todo.md"),
        ("/notes", "/notes/a/b/c/d.md"),
        ("/notes/todo.md", "/notes"),
        ("/notes/a/b/c/d.md", "/notes/a"),
        ("/n/é", "/n/é/x"),
        ("/n%/x_", "/n%"),
    ],
)
def test_f158_f159_a_path_above_or_below_a_memory_conflicts(
    create: Callable[..., Memory], held: str, wanted: str
) -> None:
    holder = create(held)
    with pytest.raises(PathConflictError) as conflict:
        create(wanted)
    assert (conflict.value.path, conflict.value.conflicting_path) == (wanted, held)
    assert conflict.value.conflicting_memory_id == holder.id


def test_f159_of_several_below_the_first_in_path_order_is_named(create: Callable[..., Memory]) -> None:
    for path in ("/notes/z.md", "/notes/b.md", "/notes/a-b.md", "/notes/a/c.md", "/notes-archive"):
        create(path)
    with pytest.raises(PathConflictError) as conflict:
        create("/notes")
    assert conflict.value.conflicting_path == "/notes/a-b.md"


@pytest.mark.parametrize(
    "neighbour", ["/notes-archive", "/notes2", "/notes.md", "/notes0", "/note", "/notes!/x", "/Notes"]
)
def test_f160_whole_segments_are_compared(create: Callable[..., Memory], neighbour: str) -> None:
    create("/notes/todo.md")
    assert create(neighbour).path == neighbour


@pytest.mark.parametrize("destination", ["/b", "/b/c", "/d", "/d/e", "/d/e/f"])
def test_f161_a_rename_onto_another_changes_nothing(
    database: Database, store: MemoryStore, create: Callable[..., Memory], destination: str
) -> None:
    memory = create("/a")
    create("/b")
    create("/d/e")
    for rename in (
        lambda: database.memories.update(memory.id, memory_store_id=store.id, path=destination, actor=ANN),
        lambda: database.memories.rename_tree(store.id, "/a", destination, actor=ANN),
    ):
        with pytest.raises(PathConflictError):
            rename()
    assert database.memory_stores.retrieve(store.id).head_seq == 3
    assert database.memories.retrieve(memory.id, memory_store_id=store.id, view="basic") == memory


def test_f162_a_memory_never_conflicts_with_itself(
    database: Database, store: MemoryStore, create: Callable[..., Memory]
) -> None:
    memory = create("/a")
    for path in ("/a/b", "/a/b/c", "/a", "/A"):
        assert database.memories.update(memory.id, memory_store_id=store.id, path=path, actor=ANN).path == path
    assert database.memories.rename_tree(store.id, "/A", "/A/b", actor=ANN) == 1
    assert database.memories.rename_tree(store.id, "/A/b", "/A", actor=ANN) == 1


def test_f163_deleting_the_holder_frees_the_path(
    database: Database, store: MemoryStore, create: Callable[..., Memory]
) -> None:
    holder = create("/a")
    database.memories.delete(holder.id, memory_store_id=store.id, actor=ANN)
    assert create("/a/b").id != holder.id
    database.memories.delete_tree(store.id, "/a", actor=ANN)
    again = create("/a")
    assert again.id not in ("", holder.id)


def race(count: int, call: Callable[[int], Memory]) -> tuple[list[Memory], list[PathConflictError]]:
    """Call at once from so many threads: who succeeded, and who met a conflict."""
    start = threading.Barrier(count)

    def run(number: int) -> Memory | PathConflictError:
        start.wait()
        try:
            return call(number)
        except PathConflictError as conflict:
            return conflict

    with ThreadPoolExecutor(count) as threads:
        ends = list(threads.map(run, range(count)))
    return [end for end in ends if isinstance(end, Memory)], [end for end in ends if isinstance(end, PathConflictError)]


def test_f165_fault_9_of_creates_at_once_exactly_one_succeeds(
    database: Database, store: MemoryStore, create: Callable[..., Memory]
) -> None:
    for turn in range(10):
        path = f"/race-{turn}.md"
        winners, conflicts = race(8, lambda number, path=path: create(path, f"text of {number}"))
        assert (len(winners), len(conflicts)) == (1, 7)
        head = database.memories.at_path(store.id, path)
        assert head.content_sha256 == winners[0].content_sha256
        assert all(conflict.conflicting_memory_id == head.id for conflict in conflicts)
        assert len(database.memory_versions.list(store.id, path=path).data) == 1


def test_f166_of_a_file_and_a_directory_at_once_exactly_one_succeeds(
    database: Database, store: MemoryStore, create: Callable[..., Memory]
) -> None:
    for turn in range(20):
        paths = [f"/x{turn}", f"/x{turn}/y", f"/x{turn}/y/z", f"/x{turn}/y"]
        winners, conflicts = race(4, lambda number, paths=paths: create(paths[number]))
        assert (len(winners), len(conflicts)) == (1, 3)
    assert len(database.memories.entries(store.id)) == 20
