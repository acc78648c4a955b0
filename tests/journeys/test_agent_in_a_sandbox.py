"""An agent works in a container whose /mnt/memory is a store, while a person works with the same store."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import memkernel as mk
from memkernel import errors
from memkernel.agent.events import ToolCalled, ToolReturned
from memkernel.agent.run import Run
from memkernel.agent.script import Reply, ToolUse, reply
from memkernel.models import Cause
from tests.fix_agent import Scripted
from tests.fix_postgres import PostgresServer
from tests.fix_sandbox import MakeBox, Meddle
from tests.runtime.processes import wait_until

MOUNT = "/mnt/memory/team-notes"
UNITS = f"{MOUNT}/units.md"
MODEL = "claude-sonnet-5-5"

pytestmark = pytest.mark.usefixtures("sandbox_image", "docker_engine")


def bash(command: str) -> ToolUse:
    return ToolUse("bash", {"command": command})


def read(path: str) -> ToolUse:
    return ToolUse("read", {"file_path": path})


def edit(path: str, old: str, new: str) -> ToolUse:
    return ToolUse("edit", {"file_path": path, "old_string": old, "new_string": new})


def told(run: Run) -> list[tuple[str, bool]]:
    """What the model read of each call, and whether as an error."""
    return [(event.content, event.is_error) for event in run.events if isinstance(event, ToolReturned)]


def mounted(box: mk.Sandbox, name: str) -> Path:
    """A file of the mount, as it lies on this machine."""
    return Path(os.environ["MEMKERNEL_HOME"]) / "sessions" / box.id / "mnt/memory/team-notes" / name


def by_call(store: mk.Store, run: Run) -> dict[str, list[tuple[str | None, str]]]:
    """By the tool of each call: the paths that it changed, and how."""
    made: dict[str, list[tuple[str | None, str]]] = {}
    for event in run.events:
        if isinstance(event, ToolCalled):
            versions = [*run.changes_by(event.tool_use_id)]
            made.setdefault(event.name, []).extend((version.path, version.operation) for version in versions)
            database = store.connection.database
            causes = [database.memory_versions.cause(store.id, version.id) for version in versions]
            assert causes == [Cause(run.id, event.tool_use_id)] * len(versions)  # and back
    return made


# -- both work at the same memory ------------------------------------------------------------------


class Careful:
    """A model that wants `feet` to be `metres`, and reads what the tools tell it."""

    def __init__(self, first: ToolUse) -> None:
        self._first = first

    def __call__(self, body: Mapping[str, Any]) -> Reply:
        said = json.dumps(body["messages"][-1])
        if "tool_result" not in said:
            return reply("I change the units.", self._first)
        if "read it and do it again" in said:
            return reply("Somebody was faster: I look.", read(UNITS))
        if "feet" in said:
            return reply("Now on what they wrote.", edit(UNITS, "feet", "metres"))
        return reply("Done.")


def test_a_memory_that_a_person_changes_during_a_command_is_kept_and_the_agent_does_its_work_again(
    notes: mk.Store, boxes: MakeBox, scripted: Scripted, tmp_path: Path
) -> None:
    """SANDBOX.md, Decision 22; CONTRACT F.251 to F.253"""
    notes.write("/units.md", "We use feet.\n")
    signals = tmp_path / "signals"
    signals.mkdir()
    box = boxes(notes, files={"/signals": signals})
    slowly = bash(f"sed -i s/feet/metres/ {UNITS}; until [ -e /signals/go ]; do sleep 0.05; done; echo changed")
    agent = mk.Agent(MODEL, sandbox=box, client=scripted(answers=Careful(slowly)).client())

    def person() -> None:
        wait_until(lambda: "metres" in mounted(box, "units.md").read_text())
        notes.write("/units.md", "We use feet, and miles.\n")
        (signals / "go").touch()

    thread = threading.Thread(target=person)
    thread.start()
    run = agent.run("Metric units, please", show=False)
    thread.join()
    assert told(run) == [
        (
            f"changed\n\n{UNITS} was edited both here and in the store, so it was not saved. "
            "It is now as the store has it: read it and do it again.",
            True,
        ),
        ("We use feet, and miles.\n", False),
        (f"edited {UNITS} (1 replacement(s))", False),
    ]
    assert (run.status, run.text) == ("done", "Done.")
    assert notes.read("/units.md") == "We use metres, and miles.\n"
    (aside,) = box.rejected
    assert (aside.path, aside.content) == ("/units.md", b"We use metres.\n")
    assert by_call(notes, run) == {"bash": [], "read": [], "edit": [("/units.md", "modified")]}
    assert notes.log("/units.md")[0].created_by == box.actor


@pytest.mark.parametrize("change", ["edit", "rename", "delete"])
def test_a_memory_that_a_person_changes_during_an_edit_is_as_the_person_left_it(
    change: str, notes: mk.Store, boxes: MakeBox, scripted: Scripted, meddle: Meddle
) -> None:
    notes.write("/units.md", "We use feet.\n")
    box = boxes(notes)
    model = scripted(reply(edit(UNITS, "feet", "metres")), reply(bash(f"cd {MOUNT}; tail -v *.md")), reply("I see."))
    persons = {
        "edit": lambda: notes.write("/units.md", "No units.\n"),
        "rename": lambda: notes.rename("/units.md", "/measures.md"),
        "delete": lambda: notes.delete("/units.md"),
    }
    meddle(persons[change])
    run = mk.Agent(MODEL, sandbox=box, client=model.client()).run("Metric units, please", show=False)
    (edited, is_error), (seen, _) = told(run)
    assert is_error
    assert edited.startswith(f"edited {UNITS} (1 replacement(s))\n\n{UNITS} was edited ")
    assert edited.endswith("so it was not saved. It is now as the store has it: read it and do it again.")
    assert (
        seen.split("\n")
        == {
            "edit": ["==> units.md <==", "No units."],
            "rename": ["==> measures.md <==", "We use feet."],
            "delete": ["tail: cannot open '*.md' for reading: No such file or directory"],
        }[change]
    )
    assert [aside.content for aside in box.rejected] == [b"We use metres.\n"]
    assert run.changes == []


# -- what is not the agent's to change -------------------------------------------------------------


def test_a_read_only_store_and_a_wipe(notes: mk.Store, boxes: MakeBox, scripted: Scripted) -> None:
    """CONTRACT F.244, F.262, F.277"""
    handbook = notes.connection.store("Handbook", create=True)
    handbook.write("/rules.md", "Be brief.\n")
    notes.write("/a.md", "a")
    notes.write("/b.md", "b")
    box = boxes(notes, mk.read_only(handbook))
    rules = "/mnt/memory/handbook/rules.md"
    model = scripted(
        reply("I look.", read(rules), edit(rules, "brief", "verbose"), bash(f"echo verbose > {rules}")),
        reply("I tidy.", bash(f"rm -r {MOUNT}/*"), bash(f"ls {MOUNT}")),
        reply("One at a time.", bash(f"rm {MOUNT}/a.md")),
        reply("Done."),
    )
    run = mk.Agent(MODEL, sandbox=box, system="Be kind.", client=model.client()).run("Tidy up", show=False)
    seen, edited, (echoed, is_error), wiped, listed, removed = told(run)
    assert seen == ("Be brief.\n", False)
    assert edited == (f"edit: {rules} is inside read-only directory /mnt/memory/handbook", True)
    assert is_error
    assert "Read-only file system" in echoed
    assert wiped == (
        f"{MOUNT}: all its files were gone, so nothing was deleted; /a.md, /b.md are there again.",
        False,
    )
    assert listed == ("a.md\nb.md", False)
    assert removed == ("", False)
    assert [memory.path for memory in notes.ls()] == ["/b.md"]
    assert len(handbook.log()) == 1
    assert by_call(notes, run) == {"read": [], "edit": [], "bash": [("/a.md", "deleted")]}
    system = json.dumps(model.requests[0]["system"])
    assert "Be kind." in system
    assert '\\"mount_path\\": \\"/mnt/memory/handbook\\"' in system
    assert "Be brief." not in json.dumps(model.requests[0])  # memories reach the model as results of tools alone


# -- what goes wrong -------------------------------------------------------------------------------


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server that a test may stop."""
    server = PostgresServer(18)
    yield server
    server.remove()


def test_a_database_lost_in_the_middle_is_told_to_the_person_and_the_change_is_saved_later(
    own_server: PostgresServer, sandbox_home: Path, boxes: MakeBox, scripted: Scripted, meddle: Meddle
) -> None:
    with mk.connect(own_server.dsn(own_server.create_migrated_database())) as connection:
        notes = connection.store("Team notes", create=True)
        box = boxes(notes)
        model = scripted(
            reply(bash(f"echo a > {MOUNT}/a.md")),
            reply(bash(f"echo b > {MOUNT}/b.md; echo written")),
            reply(read(f"{MOUNT}/b.md")),
            reply("It is there."),
        )
        agent = mk.Agent(MODEL, sandbox=box, client=model.client())
        meddle(lambda: meddle(own_server.stop))  # at the end of the second call
        with pytest.raises(errors.SyncError, match="is not synced"):
            agent.run("Write", show=False)
        first = agent.last_run
        assert first is not None
        assert first.status == "error"
        assert told(first)[-1] == (
            f"written\n\n{MOUNT} cannot be saved right now: what lies there is kept, and saved later.",
            True,
        )
        own_server.start()
        second = agent.run("Go on", show=False)
        assert (second.status, told(second)) == ("done", [("b\n", False)])
        assert [version.path for version in first.changes] == ["/a.md", "/b.md"]
        assert second.changes == []
        assert by_call(notes, first) == {"bash": [("/a.md", "created"), ("/b.md", "created")]}
        box.stop()


@pytest.mark.parametrize("how", ["interrupt", "stop", "stop in a thread"])
def test_a_run_that_is_stopped_during_a_command_has_saved_what_that_wrote(
    how: str, notes: mk.Store, boxes: MakeBox, scripted: Scripted, interrupt: Callable[[], None]
) -> None:
    box = boxes(notes)
    model = scripted(
        reply(bash(f"echo half > {MOUNT}/a.md; sleep 600"), bash("true")),
        reply(ToolUse("bash", {"restart": True})),
        reply(bash(f"cat {MOUNT}/a.md")),
        reply("On we go."),
    )
    agent = mk.Agent(MODEL, sandbox=box, client=model.client())

    def person() -> None:
        wait_until(mounted(box, "a.md").exists)
        assert agent.last_run is not None
        interrupt() if how == "interrupt" else agent.last_run.stop()

    thread = threading.Thread(target=person)
    thread.start()
    run = agent.start("Write", show=False).wait() if "thread" in how else agent.run("Write", show=False)
    thread.join()
    assert run.status == "stopped"
    assert [version.path for version in run.changes] == ["/a.md"]
    results = run.messages[-1]["content"]
    assert [result["type"] for result in results] == ["tool_result", "tool_result"]
    assert all(result["is_error"] for result in results)
    again = agent.run("Go on", show=False)
    assert told(again)[-1] == ("half", False)
    assert again.status == "done"
