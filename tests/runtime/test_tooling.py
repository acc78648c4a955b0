"""What an agent's tool call is told of its files; and that each change keeps its call, however it comes to be saved."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from anthropic.lib.tools import ToolError
from hypothesis import given
from hypothesis import strategies as st

import memkernel as mk
from memkernel import errors
from memkernel.models import Cause, HeldBack, MemoryVersion, RefusedFile, StoreReport, SyncConflict, SyncReport
from memkernel.models import ToolAnswer as Answer
from memkernel.runtime import CellBegan, CellEnded, tooling
from memkernel.sandbox.toolbox import Toolbox
from tests.fix_postgres import PostgresServer
from tests.fix_sandbox import MakeBox
from tests.runtime.conftest import Launch
from tests.runtime.processes import wait_until

MOUNT = "/mnt/memory/team-notes"
CALL, NEXT = Cause("run_1", "toolu_1"), Cause("run_1", "toolu_2")


def report(**what: Any) -> SyncReport:
    return SyncReport((StoreReport("memstore_1", "Team notes", MOUNT, **what),))


def conflicts(*reasons: str) -> SyncReport:
    return report(conflicts=tuple(SyncConflict(f"/{n}.md", reason, None) for n, reason in enumerate(reasons)))


# -- words -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        (
            "was edited here and deleted in the store",
            "was edited here and deleted in the store, so it was not saved. "
            "It is now as the store has it: read it and do it again.",
        ),
        (
            "was not saved, because /b.md was edited both here and in the store",
            "was not saved, because /b.md was edited both here and in the store. "
            "It is now as the store has it: do it again.",
        ),
        (
            "was not saved: the memory store would hold more than 2,000 memories",
            "was not saved: the memory store would hold more than 2,000 memories. It is again as the store has it.",
        ),
    ],
)
def test_a_conflict_is_a_sentence_that_says_what_to_do(reason: str, sentence: str) -> None:
    assert tooling.told(Answer("done"), conflicts(reason)) == Answer(f"done\n\n{MOUNT}/0.md {sentence}", is_error=True)


def test_nothing_is_added_where_all_is_saved_or_only_brought_up() -> None:
    assert tooling.told(Answer(""), report(pulled=("/a.md",), removed=("/b.md",))) == Answer("")


def test_what_became_of_a_read_only_mount_that_nothing_protects_is_told() -> None:
    note = "/a.md was changed, but the mount is read-only; its text was put aside"
    assert tooling.told(Answer(""), report(notes=(note,))) == Answer(f"{MOUNT}{note}.")


def test_a_tool_that_failed_stays_an_error() -> None:
    refused = report(refused=(RefusedFile("/link", "it is a symbolic link"),))
    assert tooling.told(Answer("no", is_error=True), refused).is_error
    assert not tooling.told(Answer("yes"), refused).is_error
    assert not tooling.told(Answer("yes"), report(held_back=HeldBack("memstore_1", ("/a.md", "/b.md")))).is_error


@pytest.mark.parametrize(
    ("trouble", "end"),
    [
        (errors.SyncError("the disk is full at /home/ann"), "is kept, and saved later."),
        (errors.SessionOverError("session sesn_1 was deleted"), "is kept for the user."),
    ],
)
def test_a_store_that_cannot_be_reached_is_an_error_that_tells_nothing_of_the_machine(
    trouble: errors.SyncError, end: str
) -> None:
    told = tooling.told(Answer("done"), report(trouble=trouble))
    assert told.is_error
    assert str(told.content).startswith(f"done\n\n{MOUNT} cannot be saved ")
    assert str(told.content).endswith(end)
    assert str(trouble) not in str(told.content)


def test_many_paths_are_counted() -> None:
    lines = str(tooling.told(Answer(""), conflicts(*["was edited both here and in the store"] * 2_000)).content)
    assert len(lines.split("\n")) == 21
    assert lines.endswith("And 1,980 more paths like these.")


@given(st.text(), st.text())
def test_a_name_or_a_note_can_neither_begin_a_line_nor_break_a_request(path: str, note: str) -> None:
    report_ = report(conflicts=(SyncConflict(f"/{path}", "was edited", None),), notes=(note,))
    told = str(tooling.told(Answer(""), report_).content)
    assert len(told.splitlines()) == 2
    told.encode()


@given(
    st.sampled_from(["bash", "edit"]), st.dictionaries(st.sampled_from(["command", "path", "n"]), st.text() | st.none())
)
def test_any_call_is_one_line(name: str, given_: dict[str, object]) -> None:
    line = tooling.call_line(name, given_)
    assert line.startswith(name)
    assert len(line.splitlines()) == 1
    assert len(line) <= 201


# -- what a call is in the sandbox's journal -------------------------------------------------------


@pytest.fixture
def box(notes: mk.Store, boxes: MakeBox) -> mk.Sandbox:
    """Without isolation, which makes no difference here."""
    return boxes(notes, backend="local")


@pytest.fixture
def call(box: mk.Sandbox) -> Any:
    """`call("bash", command=…)`: what the tool answers; a failure is raised."""
    tools = {tool.name: tool for tool in box.tools()}

    def called(name: str, cause: Cause | None = CALL, **given_: object) -> object:
        tools[name].cause = cause
        return tools[name].call(given_)

    return called


def saved_by(store: mk.Store, cause: Cause) -> list[MemoryVersion]:
    versions = store.connection.database.memory_versions
    return versions.list_by_run(store.id, cause.run_id, tool_use_id=cause.tool_use_id)


def paths(store: mk.Store, cause: Cause) -> list[str | None]:
    return [version.path for version in saved_by(store, cause)]


def test_the_panel_tells_of_a_call_as_of_a_cell(box: mk.Sandbox, call: Any) -> None:
    call("bash", command=f"\n  echo a >\t{MOUNT}/a.md\n")
    box.run("1 + 1")
    began, ended = box.events[:2]
    assert isinstance(began, CellBegan)
    assert isinstance(ended, CellEnded)
    assert (began.number, began.language, began.code) == (1, "tool", f"bash echo a > {MOUNT}/a.md")
    assert ended.result is not None
    assert (ended.result.status, ended.result.stdout) == ("ok", "")
    assert [entry.title for entry in box.panel().entries] == ["tool call 1", "cell 2"]
    assert "created    /a.md" in str(box.panel())


def test_a_call_that_fails_is_told_as_failed(box: mk.Sandbox, call: Any) -> None:
    with pytest.raises(ToolError, match="exit status 1"):
        call("bash", command="false")
    assert [entry.status for entry in box.panel().entries] == ["error"]


# -- each change keeps its call --------------------------------------------------------------------


def test_what_a_job_in_the_background_writes_later_is_the_calls(
    box: mk.Sandbox, notes: mk.Store, call: Any, sandbox_home: Path
) -> None:
    call("bash", command=f"(sleep 0.2; echo late > {MOUNT}/late.md) > /dev/null 2>&1 &")
    wait_until((sandbox_home / "sessions" / box.id / "mnt/memory/team-notes/late.md").exists)
    box.sync()
    assert paths(notes, CALL) == ["/late.md"]


def test_what_became_of_a_calls_files_between_two_calls_is_told_by_the_next_one(
    box: mk.Sandbox, notes: mk.Store, call: Any, sandbox_home: Path
) -> None:
    notes.write("/a.md", "old\n")
    call("bash", command=f"(sleep 0.2; echo mine > {MOUNT}/a.md) > /dev/null 2>&1 &")
    file = sandbox_home / "sessions" / box.id / "mnt/memory/team-notes/a.md"
    wait_until(lambda: file.read_text() == "mine\n")
    notes.write("/a.md", "theirs\n")
    with pytest.raises(errors.SyncConflictError):
        box.sync()  # as after each cell of a notebook, where nobody raises it
    with pytest.raises(
        ToolError, match=r"^theirs\n\n.*/a\.md was edited both here and in the store, so it was not saved"
    ):
        call("bash", cause=NEXT, command=f"cat {MOUNT}/a.md")
    assert call("bash", cause=NEXT, command="true") == ""  # once


def test_what_a_person_writes_in_a_cell_is_no_calls(box: mk.Sandbox, notes: mk.Store, call: Any) -> None:
    call("bash", command=f"echo a > {MOUNT}/a.md")
    box.bash(f"echo b > {MOUNT}/b.md")
    box.sync()
    assert paths(notes, CALL) == ["/a.md"]
    assert sorted(memory.path for memory in notes.ls()) == ["/a.md", "/b.md"]


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server that a test may stop."""
    server = PostgresServer(18)
    yield server
    server.remove()


def test_what_a_lost_database_could_not_take_is_the_calls_once_it_is_saved(
    own_server: PostgresServer, sandbox_home: Path, boxes: MakeBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CONTRACT F.256"""
    with mk.connect(own_server.dsn(own_server.create_migrated_database())) as connection:
        notes = connection.store("Team notes", create=True)
        box = boxes(notes, backend="local")
        bash = box.tools()[0]
        bash.cause = CALL
        monkeypatch.setattr(Toolbox, "call", losing(own_server))
        kept = f"{MOUNT} cannot be saved right now: what lies there is kept, and saved later."
        with pytest.raises(ToolError) as caught:
            bash.call({"command": f"echo a > {MOUNT}/a.md; echo done"})
        assert caught.value.content == f"done\n\n{kept}"
        bash.cause = NEXT
        with pytest.raises(ToolError, match=r"^Memory is unavailable right now; this was not run\.$"):
            bash.call({"command": f"rm {MOUNT}/a.md"})
        with pytest.raises(errors.SyncError, match="/mnt/memory/team-notes is not synced") as raised:
            bash.raise_lost()
        assert "saved by the next cell" in raised.value.hint
        bash.raise_lost()  # once
        own_server.start()
        box.sync()
        assert paths(notes, CALL) == ["/a.md"]


def losing(server: PostgresServer) -> Callable[[Toolbox, str, Any], Answer]:
    """`Toolbox.call`, and after the tool has worked the server is lost."""
    call = Toolbox.call

    def losing_call(self: Toolbox, name: str, given_: Any) -> Answer:
        answer = call(self, name, given_)
        server.stop()
        return answer

    return losing_call


@pytest.mark.usefixtures("sandbox_image")
@pytest.mark.parametrize("backend", ["docker", "local"])
def test_what_a_killed_process_had_not_saved_is_the_calls_when_it_is_recovered(
    backend: str, launch: Launch, notes: mk.Store, boxes: MakeBox, sandbox_home: Path
) -> None:
    process = launch(backend)
    process.start()
    process.ask("globals().update(tool=box.tools()[0], Cause=__import__('memkernel.models').models.Cause)")
    process.ask("setattr(tool, 'cause', Cause('run_1', 'toolu_1'))")
    process.begin(f"tool.call({{'command': 'echo draft > {MOUNT}/a.md; sleep 60'}})")
    wait_until(lambda: list(sandbox_home.glob("sessions/*/mnt/memory/team-notes/a.md")))
    process.kill()
    boxes(notes, backend="local")
    assert paths(notes, CALL) == ["/a.md"]
    assert notes.read("/a.md") == "draft\n"


AN_AGENT = """
from memkernel.agent.script import ToolUse, reply
from memkernel.agent.scripted import ScriptedModel

calls = [ToolUse("bash") for _ in range(30)]
for n, call in enumerate(calls):
    call.input["command"] = f"echo {call.id} > /mnt/memory/team-notes/{n}.md"
model = ScriptedModel()
model.start()
model.follow([reply(call) for call in calls] + [reply("Done.")])
agent = mk.Agent("claude-sonnet-5-5", sandbox=box, client=model.client(), allow_unisolated=True)
run = agent.run("Write", show=False)
"""


@pytest.mark.parametrize("number", [0, 9, 29])
def test_a_kernel_that_is_killed_leaves_every_change_with_its_call(
    number: int, notes: mk.Store, boxes: MakeBox, launch: Launch, sandbox_home: Path
) -> None:
    """Each call writes its own id: what it saved, and what the recovery saved of it, must say the same."""
    process = launch("local")
    process.start()
    process.begin(f"exec({AN_AGENT!r}, globals())")
    wait_until(lambda: list(sandbox_home.glob(f"sessions/*/mnt/memory/team-notes/{number}.md")), 60)
    process.kill()
    boxes(notes, backend="local")  # its start recovers what was left
    made = notes.log()
    assert len(made) >= number
    for version in made:
        written = notes.read(version.path or "").strip()  # nothing, where the command was killed as well
        cause = notes.connection.database.memory_versions.cause(notes.id, version.id)
        assert cause is not None
        assert cause.tool_use_id == (written or cause.tool_use_id)


# -- ended by a person -----------------------------------------------------------------------------


def test_a_call_that_waits_for_a_persons_cell_can_be_ended_and_the_cell_goes_on(
    box: mk.Sandbox, call: Any, sandbox_home: Path
) -> None:
    mount = sandbox_home / "sessions" / box.id / "mnt/memory/team-notes"
    bash, other = box.tools()[0], box.tools()[0]
    with ThreadPoolExecutor() as threads:
        cell = threads.submit(box.bash, f"touch {MOUNT}/began; until [ -e {MOUNT}/go ]; do sleep 0.05; done")
        wait_until((mount / "began").exists)
        waiting = threads.submit(bash.call, {"command": f"touch {MOUNT}/never"})
        while not waiting.done():
            time.sleep(0.05)
            bash.interrupt()
            other.interrupt()
        assert str(waiting.exception()) == "bash: interrupted by the user"
        (mount / "go").touch()
        assert cell.result().status == "ok"
    assert not (mount / "never").exists()
    assert [entry.title for entry in box.panel().entries] == ["cell 1"]


def test_the_interrupt_of_one_agents_call_leaves_anothers_alone(box: mk.Sandbox, sandbox_home: Path) -> None:
    mount = sandbox_home / "sessions" / box.id / "mnt/memory/team-notes"
    one, other = box.tools()[0], box.tools()[0]
    one.cause, other.cause = CALL, Cause("run_2", "toolu_1")
    with ThreadPoolExecutor() as threads:
        running = threads.submit(
            one.call, {"command": f"touch {MOUNT}/began; until [ -e {MOUNT}/go ]; do sleep 0.05; done; echo done"}
        )
        wait_until((mount / "began").exists)
        waiting = threads.submit(other.call, {"command": "true"})
        while not waiting.done():
            time.sleep(0.05)
            other.interrupt()
        (mount / "go").touch()
        assert running.result() == "done"


def test_a_persons_interrupt_of_the_sandbox_ends_a_call(box: mk.Sandbox, notes: mk.Store, sandbox_home: Path) -> None:
    mount = sandbox_home / "sessions" / box.id / "mnt/memory/team-notes"
    bash = box.tools()[0]
    bash.cause = CALL
    with ThreadPoolExecutor() as threads:
        running = threads.submit(bash.call, {"command": f"touch {MOUNT}/began; sleep 600"})
        wait_until((mount / "began").exists)
        box.interrupt()
        assert str(running.exception()) == "bash: interrupted by the user"
    assert paths(notes, CALL) == ["/began"]


def test_a_sandbox_that_is_stopped_during_a_call_saves_what_it_wrote(
    box: mk.Sandbox, notes: mk.Store, sandbox_home: Path
) -> None:
    mount = sandbox_home / "sessions" / box.id / "mnt/memory/team-notes"
    bash = box.tools()[0]
    bash.cause = CALL
    with ThreadPoolExecutor() as threads:
        running = threads.submit(bash.call, {"command": f"touch {MOUNT}/began; sleep 600"})
        wait_until((mount / "began").exists)
        box.stop()
        assert isinstance(running.exception(), ToolError)
    assert paths(notes, CALL) == ["/began"]
