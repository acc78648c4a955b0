"""Sandboxes for the tests: a home of their own, a connection with it, stores, and boxes that are stopped at the end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import memkernel as mk
from memkernel import errors
from memkernel.handle.mounts import Attached
from memkernel.models import ToolAnswer
from memkernel.sandbox.toolbox import Toolbox

MakeBox = Callable[..., mk.Sandbox]
Meddle = Callable[[Callable[[], object]], None]


@pytest.fixture
def sandbox_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """MEMKERNEL_HOME, empty."""
    home = tmp_path / "home"
    monkeypatch.setenv("MEMKERNEL_HOME", str(home))
    return home


@pytest.fixture
def sandbox_connection(dsn: str, sandbox_home: Path) -> Iterator[mk.Connection]:
    """A connection to a fresh database, with that home."""
    with mk.connect(dsn) as connection:
        yield connection


@pytest.fixture
def notes(sandbox_connection: mk.Connection) -> mk.Store:
    """A store without memories."""
    return sandbox_connection.store("Team notes", create=True)


@pytest.fixture
def boxes() -> Iterator[MakeBox]:
    """Makes and starts sandboxes; they are stopped at the end, whatever their state."""
    made: list[mk.Sandbox] = []

    def make(*stores: mk.Store | Attached, **options: Any) -> mk.Sandbox:
        made.append(mk.Sandbox(*stores, **options))
        return made[-1].start()

    yield make
    for box in made:
        with contextlib.suppress(errors.MemkernelError):
            box.stop()


@pytest.fixture
def docker_box(sandbox_image: str, docker_engine: object, notes: mk.Store, boxes: MakeBox) -> mk.Sandbox:
    """A container with that store."""
    return boxes(notes)


@pytest.fixture
def meddle(monkeypatch: pytest.MonkeyPatch) -> Meddle:
    """At the end of an agent's next call, before what it wrote is saved, a person does something."""

    def meddle(change: Callable[[], object]) -> None:
        call = Toolbox.call

        def meddled(self: Toolbox, name: str, given: Mapping[str, object]) -> ToolAnswer:
            answer = call(self, name, given)
            monkeypatch.setattr(Toolbox, "call", call)
            change()
            return answer

        monkeypatch.setattr(Toolbox, "call", meddled)

    return meddle
