"""A memory tool as the tests hold it: commands as keyword arguments, answers and refusals as texts."""

from __future__ import annotations

import pytest

from memkernel.errors import MemoryToolError
from memkernel.models import Actor
from memkernel.tool.commands import MemoryBackend, run

ACTOR = Actor("session_actor", "sesn_00000000000000000000000000")


class Calls:
    def __init__(self, backend: MemoryBackend) -> None:
        self.backend = backend

    def __call__(self, command: object, **fields: object) -> str:
        """The answer of a command that succeeds."""
        return run(self.backend, {"command": command, **fields})

    def refused(self, command: object, **fields: object) -> str:
        """The sentence of a command that is refused."""
        with pytest.raises(MemoryToolError) as caught:
            self(command, **fields)
        return str(caught.value)

    def file(self, path: str, text: str) -> None:
        self("create", path=path, file_text=text)

    def lines(self, path: str, view_range: object = None) -> list[str]:
        """The numbered lines of a file."""
        return self("view", path=path, view_range=view_range).split("\n")[1:]

    def text(self, path: str) -> str:
        """The exact text of a file, put together again from its numbered lines."""
        return "\n".join(line.partition("\t")[2] for line in self.lines(path))

    def listing(self, path: str = "/memories") -> list[str]:
        """The paths of a listing, without header and sizes; the first one is the directory itself."""
        return [row.partition("\t")[2] for row in self("view", path=path).split("\n")[1:]]
