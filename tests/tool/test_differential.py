"""CONTRACT F.96: random commands get the SDK's own answers, string for string.

Left out by construction: directories that have lost their last file (A.8), and what A.9 changes on purpose.
"""

from __future__ import annotations

import os
import posixpath
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from anthropic.lib.tools import ToolError
from anthropic.tools import BetaLocalFilesystemMemoryTool

from memkernel.errors import MemoryToolError
from memkernel.store import Database
from memkernel.tool.commands import run
from memkernel.tool.postgres import PostgresBackend
from tests.tool.calls import ACTOR

SEQUENCES: Final = 600
BATCHES: Final = 12
COMMANDS: Final = 14

Command = dict[str, Any]

NAMES: Final = ["a", "a.txt", "a-b", "B", ".h", "é.md", "sub", "node_modules", "100%25", "x y", "\U0001f600"]
PIECES: Final = [
    "a",
    "aa",
    "b",
    "foo",
    "\n",
    "\n",
    "\r\n",
    "é",
    "\t",
    "\U0001f600",
    "$&",
    "",
    "\ufeff",
    "\x0b",
    "\u2028",
]
NEEDLES: Final = ["a", "aa", "b", "foo", "\n", "", "a\n", "\r\n", "é", "missing", "b\nfoo"]
ENDS: Final = [-4, -2, -1, 0, 1, 2, 3, 4, 7, 100]


class Sequence:
    """Random commands on a tree that is small enough for them to meet. `live`: the files that it holds now."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        names = self._random.sample(NAMES, 5)
        self._paths = [(name,) for name in names] + [
            tuple(self._random.choices(names, k=self._random.randint(2, 4))) for _ in range(6)
        ]
        self.live: set[tuple[str, ...]] = set()

    def commands(self) -> Iterator[Command]:
        for _ in range(COMMANDS):
            make = self._random.choices(
                [self._create, self._view, self._str_replace, self._insert, self._delete, self._rename],
                [5, 5, 3, 3, 1, 2],
            )[0]
            yield make()
        yield {"command": "view", "path": "/memories"}
        yield from ({"command": "view", "path": "/memories/" + "/".join(path)} for path in sorted(self.live))

    def learn(self, files: set[tuple[str, ...]]) -> None:
        """What the tree holds now; the next commands mostly aim at it."""
        self.live = files

    def _create(self) -> Command:
        path = self._fit() if self._random.random() < 0.95 else self._below_a_file()
        return {"command": "create", "path": self._spell(path), "file_text": self._text()}

    def _view(self) -> Command:
        command: Command = {"command": "view", "path": self._spell(self._any())}
        if self._random.random() < 0.5:
            length = self._random.choice([2, 2, 2, 2, 0, 1, 3])
            command["view_range"] = self._random.choice([None, self._random.choices(ENDS, k=length)])
        return command

    def _str_replace(self) -> Command:
        path, old, new = self._spell(self._any()), self._random.choice(NEEDLES), self._random.choice(PIECES)
        return {"command": "str_replace", "path": path, "old_str": old, "new_str": new * self._random.randint(1, 4)}

    def _insert(self) -> Command:
        line = self._random.choice([0, 1, 2, 3, 5, -1, 50, "1"])
        return {"command": "insert", "path": self._spell(self._any()), "insert_line": line, "insert_text": self._text()}

    def _delete(self) -> Command:
        return {"command": "delete", "path": self._spell(self._any())}

    def _rename(self) -> Command:
        new = self._random.choices([self._fit, self._any, self._below_a_file], [7, 1, 2])[0]()
        return {"command": "rename", "old_path": self._spell(self._any()), "new_path": self._spell(new)}

    def _any(self) -> tuple[str, ...]:
        if self.live and self._random.random() < 0.75:
            path = self._random.choice(sorted(self.live))
            return path[: self._random.choice([len(path), len(path), len(path), self._random.randint(0, len(path))])]
        return self._random.choice([*self._paths, (), self._missing(), self._below_a_file()])

    def _missing(self) -> tuple[str, ...]:
        """Nothing is there, and often its directory is missing, too."""
        return ("missing", *self._random.choices(NAMES, k=self._random.randint(0, 2)))

    def _below_a_file(self) -> tuple[str, ...]:
        if not self.live:
            return self._missing()
        return (*self._random.choice(sorted(self.live)), *self._random.choices(NAMES, k=self._random.randint(1, 2)))

    def _fit(self) -> tuple[str, ...]:
        return self._random.choice([path for path in self._paths if self._fits(path)] or [("free",)])

    def _fits(self, path: tuple[str, ...]) -> bool:
        """No file is above it."""
        return not any(path[:length] in self.live for length in range(1, len(path)))

    def _text(self) -> str:
        return "".join(self._random.choices(PIECES, k=self._random.randint(0, 12)))

    def _spell(self, path: tuple[str, ...]) -> str:
        plain = "/".join(("/memories", *path))
        if self._random.random() < 0.7:
            return plain
        return self._random.choice(
            [
                plain + "/",
                plain.replace("/", "//")[1:],
                plain + "/.",
                "/memories/./" + "/".join(path),
                "/memories/q/../" + "/".join(path),
                "/memories/../" + plain[1:],
                "/memories/../../" + plain[1:],
                plain + "/..",
                plain[1:],
                "/memory" + plain,
            ]
        )


class Oracle:
    """The SDK's tool; a directory that lost its last file is removed, as it is in a store (A.8)."""

    def __init__(self, folder: Path) -> None:
        self._tool = BetaLocalFilesystemMemoryTool(str(folder))
        self._root = str(self._tool.memory_root)

    def __call__(self, command: Command) -> str | None:
        """Its answer; None where it lets an exception of the operating system through (A.9, 6)."""
        try:
            return masked(str(self._tool.call(command)))
        except ToolError as error:
            return f"refused: {error.content}"
        except OSError:
            return None

    def files(self) -> dict[tuple[str, ...], str]:
        """What is there, after emptied directories are gone."""
        found: dict[tuple[str, ...], str] = {}
        for folder, _, names in os.walk(self._root, topdown=False):
            for name in names:
                path = Path(folder, name)
                found[path.relative_to(self._root).parts] = path.read_bytes().decode()
            if not os.listdir(folder) and folder != self._root:
                os.rmdir(folder)
        return found


def masked(answer: str) -> str:
    """The answer without the sizes of directories, which depend on the file system."""
    if not answer.startswith("Here're the files"):
        return answer
    header, directory, *rows = answer.split("\n")
    rows = [re.sub(r"^[^\t]+(?=\t.*/$)", "DIR", row) for row in rows]
    return "\n".join([header, re.sub(r"^[^\t]+", "DIR", directory), *rows])


def below_a_file(command: Command, files: set[tuple[str, ...]]) -> set[str]:
    """The sentences that may replace an exception of the operating system (CONTRACT 0.3, row 22; A.6)."""
    if command["command"] == "create":
        path = command["path"]
        return {f"refused: Cannot create {path}: {file} is not a directory" for file in above(path, files)}
    assert command["command"] == "rename"
    old, new = command["old_path"], command["new_path"]
    if not is_there(old, files):
        return {f"refused: The path {old} does not exist"}
    if (place(new) + "/").startswith(place(old) + "/"):
        return {f"refused: Cannot rename {old} to a path inside itself: {new}"} | cannot_rename(old, new, files)
    return cannot_rename(old, new, files)


def cannot_rename(old: str, new: str, files: set[tuple[str, ...]]) -> set[str]:
    return {f"refused: Cannot rename {old} to {new}: {file} is not a directory" for file in above(new, files)}


def above(spelling: str, files: set[tuple[str, ...]]) -> list[str]:
    """The files that would have to be directories."""
    return [file for path in files if place(spelling).startswith((file := "/".join(("/memories", *path))) + "/")]


def is_there(spelling: str, files: set[tuple[str, ...]]) -> bool:
    return any(("/".join(("/memories", *path)) + "/").startswith(place(spelling) + "/") for path in files)


def place(spelling: str) -> str:
    return posixpath.normpath(spelling)


def answered(backend: PostgresBackend, command: Command) -> str:
    try:
        return masked(run(backend, command))
    except MemoryToolError as error:
        return f"refused: {error}"


@pytest.mark.parametrize("batch", range(BATCHES))
def test_f096_random_commands_get_the_sdks_answers(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(os, "fsync", int)  # the oracle's answers do not depend on it, its speed does
    store_id = database.memory_stores.create(name=f"Differential {batch}").id
    for seed in range(batch, SEQUENCES, BATCHES):
        backend = PostgresBackend(database, store_id, actor=ACTOR, scope=f"s{seed}")
        oracle = Oracle(tmp_path / str(seed))
        compare(oracle, backend, Sequence(seed), seed)
        held = dict(database.memories.contents(store_id, f"/s{seed}/"))
        assert held == {f"/s{seed}/" + "/".join(path): text for path, text in oracle.files().items()}
        backend.clear()


def compare(oracle: Oracle, backend: PostgresBackend, sequence: Sequence, seed: int) -> None:
    done: list[Command] = []
    for command in sequence.commands():
        done.append(command)
        expected, answer = oracle(command), answered(backend, command)
        if expected is None:
            assert answer in below_a_file(command, sequence.live), f"seed {seed}, after {done}"
        else:
            assert answer == expected, f"seed {seed}, after {done}"
        if command["command"] != "view":
            sequence.learn(set(oracle.files()))
