"""The recordings that come with memkernel: what is in them, and that they can be replayed anywhere."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hatchling.builders.wheel import WheelBuilder

import memkernel as mk
from memkernel.agent import recording
from memkernel.agent.events import ToolReturned
from memkernel.agent.run import Run
from tests import recordings
from tests.fix_sandbox import MakeBox
from tests.recordings import DEMONSTRATIONS

ROOT = Path(__file__).parents[2]
NAMES = sorted(DEMONSTRATIONS)


def test_they_are_known_by_name() -> None:
    assert recording.shipped() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_one_is_small_and_says_that_no_model_made_it(name: str) -> None:
    path = recording.SHIPPED / f"{name}.jsonl"
    assert path.stat().st_size < 50 * 1024
    loaded = recording.load(name)
    assert (loaded.name, loaded.kind, loaded.model, loaded.on_existing) == (name, "scripted", "scripted", "overwrite")
    assert loaded.sentence.startswith("A recording of a script, no language model, from 2026-12-01: ")
    assert loaded.prompt == DEMONSTRATIONS[name].prompt
    assert str(Path.home()) not in path.read_text()


@pytest.mark.parametrize("name", NAMES)
def test_one_is_what_its_script_makes(name: str, sandbox_connection: mk.Connection, tmp_path: Path) -> None:
    store = sandbox_connection.store(recordings.STORE, create=True)
    assert recordings.made(name, store, tmp_path).decode() == (recording.SHIPPED / f"{name}.jsonl").read_text()


def replayed(name: str, store: mk.Store, boxes: MakeBox) -> Run:
    wanted = DEMONSTRATIONS[name]
    options: dict[str, Any] = {"store": store} if wanted.memory else {}
    if wanted.sandbox:
        options["sandbox"] = boxes(store, backend="local")
    return mk.Agent(replay=name, speed=math.inf, **options).run(wanted.prompt, show=False)


@pytest.mark.parametrize("name", NAMES)
def test_one_can_be_replayed_twice_on_a_store_of_any_name(
    name: str, sandbox_connection: mk.Connection, boxes: MakeBox
) -> None:
    store = sandbox_connection.store("Of a visitor", create=True)
    store.write("/mine.md", "Stays.\n")
    runs = [replayed(name, store, boxes) for _ in range(2)]
    assert [(run.status, run.kind, run.error) for run in runs] == [("done", "recorded", None)] * 2
    assert runs[0].text == runs[1].text
    assert store.read("/mine.md") == "Stays.\n"
    assert len(store.ls("/", depth=0)) > 1
    for run in runs:  # each change has its call, and the second run's are not the first one's
        calls = [event.tool_use_id for event in run.events if isinstance(event, ToolReturned)]
        assert [version.id for call in calls for version in run.changes_by(call)] == [made.id for made in run.changes]
    assert runs[0].changes


def test_a_replay_without_what_it_needs_says_so() -> None:
    with pytest.raises(mk.MemkernelError, match="the recording demo calls the tool memory, which this agent does not"):
        mk.Agent(replay="demo").run(DEMONSTRATIONS["demo"].prompt, show=False)


def test_they_are_installed(tmp_path: Path) -> None:
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        assert {f"memkernel/recordings/{name}.jsonl" for name in NAMES} <= set(archive.namelist())
