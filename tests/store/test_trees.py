"""Files and directories renamed and deleted in one go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from memkernel.errors import InvalidPathError, MemoryNotFoundError, PathConflictError
from memkernel.models import Change, Memory, MemoryStore, MemoryVersion
from memkernel.store import Database
from tests.store.people import ANN, CAUSE


@dataclass
class Tree:
    """The test's store, as a tree of files."""

    database: Database
    store_id: str

    def fill(self, *paths: str) -> None:
        """Put memories at these paths; each holds its path."""
        self.database.memories.apply(self.store_id, [Change(path, path) for path in paths], actor=ANN)

    def rename(self, old: str, new: str) -> int:
        return self.database.memories.rename_tree(self.store_id, old, new, actor=ANN, cause=CAUSE)

    def delete(self, path: str) -> int:
        return self.database.memories.delete_tree(self.store_id, path, actor=ANN, cause=CAUSE)

    def texts(self) -> dict[str, str]:
        """Everything that the store holds."""
        return dict(self.database.memories.contents(self.store_id))

    def record(self) -> MemoryStore:
        return self.database.memory_stores.retrieve(self.store_id)

    def newest(self, count: int) -> list[MemoryVersion]:
        return self.database.memory_versions.list(self.store_id, limit=count, view="full").data


@pytest.fixture
def tree(database: Database, store: MemoryStore) -> Tree:
    return Tree(database, store.id)


def test_a_file_moves_with_its_id_and_its_text(tree: Tree, write: Callable[..., Memory]) -> None:
    memory = write("/a.md", "x" * 100_000)
    assert tree.rename("/a.md", "/d/e/b.md") == 1
    moved = tree.database.memories.at_path(tree.store_id, "/d/e/b.md")
    assert (moved.id, moved.content, moved.created_at) == (memory.id, "x" * 100_000, memory.created_at)


def test_a_directory_moves_with_all_that_lies_below(tree: Tree) -> None:
    tree.fill("/d/a", "/d/.hidden", "/d/e/f/g", "/d-other", "/d.md", "/d0", "/é/x")
    assert tree.rename("/d", "/new/home") == 3
    assert tree.texts() == {
        "/d-other": "/d-other",
        "/d.md": "/d.md",
        "/d0": "/d0",
        "/new/home/.hidden": "/d/.hidden",
        "/new/home/a": "/d/a",
        "/new/home/e/f/g": "/d/e/f/g",
        "/é/x": "/é/x",
    }
    assert tree.rename("/é", "/ü") == 1
    newest = tree.newest(4)
    assert [version.path for version in newest] == ["/ü/x", "/new/home/e/f/g", "/new/home/a", "/new/home/.hidden"]
    assert [version.content for version in newest] == ["/é/x", "/d/e/f/g", "/d/a", "/d/.hidden"]
    assert {version.operation for version in newest} == {"modified"}
    assert [version.ordinal for version in newest] == [2, 2, 2, 2]
    assert [version.seq for version in newest] == [11, 10, 9, 8]
    assert len(tree.database.memory_versions.list_by_run(tree.store_id, CAUSE.run_id)) == 4


def test_a_large_directory_moves_and_goes_at_once(tree: Tree) -> None:
    tree.fill(*(f"/d/{number}" for number in range(500)))
    assert tree.rename("/d", "/e") == 500
    assert tree.delete("/e") == 500
    after = tree.record()
    assert (after.head_seq, after.memory_count) == (1_500, 0)


@pytest.mark.parametrize("path", ["/d", "/d/a"])
def test_a_rename_to_where_it_is_changes_nothing(tree: Tree, path: str) -> None:
    tree.fill("/d/a", "/d/b")
    assert tree.rename(path, path) == 0
    assert tree.record().head_seq == 2


@pytest.mark.parametrize(("old", "new"), [("/d", "/d/sub"), ("/d", "/d/a/b"), ("/d/e", "/d/e/f/g")])
def test_a_directory_does_not_move_into_itself(tree: Tree, old: str, new: str) -> None:
    tree.fill("/d/a", "/d/e/f")
    with pytest.raises(InvalidPathError, match="inside"):
        tree.rename(old, new)
    assert tree.record().head_seq == 2


@pytest.mark.parametrize(
    ("old", "new", "conflicting"),
    [
        ("/d", "/f", "/f"),
        ("/d", "/f/x", "/f"),
        ("/d", "/g", "/g/h"),
        ("/d/e", "/d", "/d/a"),
        ("/d", "/g/h/i/j", "/g/h"),
    ],
)
def test_a_directory_does_not_move_onto_a_memory(tree: Tree, old: str, new: str, conflicting: str) -> None:
    tree.fill("/d/a", "/d/e/x", "/f", "/g/h")
    with pytest.raises(PathConflictError) as conflict:
        tree.rename(old, new)
    assert (conflict.value.path, conflict.value.conflicting_path) == (new, conflicting)
    assert conflict.value.conflicting_memory_id == tree.database.memories.at_path(tree.store_id, conflicting).id
    assert tree.record().head_seq == 4


@pytest.mark.parametrize(
    ("below", "new"),
    [("/x" * 15, "/y" * 6), ("/" + "x" * 1_000, "/" + "y" * 30), ("/" + "é" * 500, "/" + "y" * 30)],
)
def test_a_directory_does_not_move_where_a_path_would_become_illegal(tree: Tree, below: str, new: str) -> None:
    tree.fill("/d/fine", "/d" + below)
    with pytest.raises(InvalidPathError) as refused:
        tree.rename("/d", new)
    assert refused.value.path == new + below
    assert tree.record().head_seq == 2


def test_the_longest_and_deepest_paths_still_move(tree: Tree) -> None:
    tree.fill("/d" + "/x" * 18, "/d/" + "y" * 1_000)
    assert tree.rename("/d", "/e/f") == 2


@pytest.mark.parametrize("path", ["/nothing", "/d/a/below", "/d/nothing", "/D"])
def test_what_is_not_there_neither_moves_nor_goes(tree: Tree, path: str) -> None:
    tree.fill("/d/a")
    with pytest.raises(MemoryNotFoundError) as missing:
        tree.rename(path, "/new")
    assert missing.value.path_or_id == path
    with pytest.raises(MemoryNotFoundError):
        tree.delete(path)
    assert tree.record().head_seq == 1


def test_a_file_a_directory_and_everything_are_deleted(tree: Tree) -> None:
    tree.fill("/d/a", "/d/b/c", "/d-other", "/d.md", "/e")
    assert tree.delete("/e") == 1
    assert tree.delete("/d") == 2
    assert list(tree.texts()) == ["/d-other", "/d.md"]
    assert tree.delete("/") == 2
    assert tree.delete("/") == 0
    operations = [version.operation for version in tree.newest(5)]
    assert operations == ["deleted"] * 5
    assert tree.record().memory_count == 0
