"""The tools of a sandbox behind the SDK's own tool runner, in a container, with the stores in a real PostgreSQL."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from anthropic.lib.tools import ToolError
from anthropic.lib.tools.agent_toolset import AgentToolContext, beta_agent_toolset_20260401

import memkernel as mk
from memkernel import errors
from memkernel.agent import toolset
from memkernel.agent.events import ToolCalled
from memkernel.agent.run import Run
from memkernel.agent.script import ToolUse, reply
from memkernel.models import Cause, RunKind, StoreReport, SyncConflict, SyncReport, ToolAnswer
from memkernel.runtime import tooling
from memkernel.sandbox.engine import Engine
from tests.fix_agent import Play, Played, Scripted
from tests.fix_sandbox import MakeBox, Meddle
from tests.runtime.processes import wait_until

MOUNT = "/mnt/memory/team-notes"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

Ask = Callable[..., Played]


@pytest.fixture
def ask(play: Play, docker_box: mk.Sandbox) -> Ask:
    """A run whose model makes these calls, one a reply, in a container that has the store `notes`."""

    def asked(*calls: ToolUse, box: mk.Sandbox = docker_box, **options: Any) -> Played:
        return play([*(reply(call) for call in calls), reply("Done.")], box.tools(), **options)

    return asked


def told(played: Played) -> list[tuple[Any, bool]]:
    """What the model read of each call, and whether as an error."""
    return [(result["content"], result.get("is_error", False)) for result in played.results()]


def bash(command: str, **more: Any) -> ToolUse:
    return ToolUse("bash", {"command": command, **more})


def write(path: str, content: str) -> ToolUse:
    return ToolUse("write", {"file_path": path, "content": content})


def edit(path: str, old: str, new: str, **more: Any) -> ToolUse:
    return ToolUse("edit", {"file_path": path, "old_string": old, "new_string": new, **more})


def texts(store: mk.Store) -> dict[str, str]:
    return {memory.path: store.read(memory.path) for memory in store.ls("/", depth=0) if isinstance(memory, mk.Memory)}


# -- what the toolset is (CONTRACT F.17) -----------------------------------------------------------


def test_f271_the_tools_are_declared_as_the_sdks_toolset_declares_them(ask: Ask) -> None:
    """F.271"""
    sent = ask().model.requests[0]["tools"]
    assert [tool["name"] for tool in sent] == ["bash", "read", "write", "edit", "glob", "grep"]
    # Never called: the SDK's executors would run on this machine.
    assert sent == [tool.to_dict() for tool in beta_agent_toolset_20260401(AgentToolContext())]


def test_f272_a_command_that_fails_is_an_error_of_its_output_and_the_shell_lives_on(ask: Ask) -> None:
    """F.272"""
    played = ask(
        bash("cd /tmp && x=4; echo out; echo err >&2; (exit 3)"),
        bash("echo $((x + 1)) in $PWD"),
        bash("false"),
    )
    assert told(played) == [("out\nerr", True), ("5 in /tmp", False), ("bash: exit status 1", True)]


def test_f273_what_bash_says_without_a_command_after_a_restart_and_a_timeout(ask: Ask) -> None:
    """F.273"""
    played = ask(
        ToolUse("bash", {}),
        bash("x=1"),
        ToolUse("bash", {"restart": True}),
        bash("echo [$x]"),
        bash("sleep 60", timeout_ms=500),
        bash("echo late"),
        ToolUse("bash", {"restart": True}),
        bash("echo again"),
    )
    assert told(played) == [
        ("bash: command is required", True),
        ("", False),
        ("bash session restarted", False),
        ("[]", False),
        ("bash: bash command timed out after 0.5s", True),
        ("bash: bash session terminated; restart required", True),
        ("bash session restarted", False),
        ("again", False),
    ]


def test_f274_write_counts_characters_and_makes_the_folders(ask: Ask, notes: mk.Store) -> None:
    """F.274"""
    played = ask(write(f"{MOUNT}/a/b/c.md", "é"), write("f", "é"))
    assert told(played) == [(f"wrote 1 bytes to {MOUNT}/a/b/c.md", False), ("wrote 1 bytes to f", False)]
    assert texts(notes) == {"/a/b/c.md": "é"}


def test_f275_what_edit_says(ask: Ask, notes: mk.Store) -> None:
    """F.275"""
    path = f"{MOUNT}/a.md"
    notes.write("/a.md", "one two one")
    played = ask(
        edit(path, "three", "four"),
        edit(path, "one", "1"),
        edit(path, "one", "1", replace_all=True),
        edit(path, "two", "2"),
    )
    assert told(played) == [
        (f"edit: old_string not found in {path}", True),
        (f"edit: old_string appears 2 times in {path} (must be unique)", True),
        (f"edited {path} (2 replacement(s))", False),
        (f"edited {path} (1 replacement(s))", False),
    ]
    assert texts(notes) == {"/a.md": "1 2 1"}


def test_f276_glob_and_grep_that_find_nothing_say_so(ask: Ask, notes: mk.Store) -> None:
    """F.276"""
    notes.write("/a.md", "SI units\n")
    played = ask(
        ToolUse("glob", {"pattern": "*.txt", "path": MOUNT}),
        ToolUse("grep", {"pattern": "feet", "path": MOUNT}),
        ToolUse("glob", {"pattern": "*.md", "path": MOUNT}),
        ToolUse("grep", {"pattern": "SI", "path": MOUNT}),
    )
    assert told(played) == [
        ("no matches", False),
        ("no matches", False),
        (f"{MOUNT}/a.md", False),
        (f"{MOUNT}/a.md:1:SI units", False),
    ]


def test_f277_below_a_read_only_mount_nothing_is_written(ask: Ask, notes: mk.Store, boxes: MakeBox) -> None:
    """F.277"""
    notes.write("/a.md", "kept")
    played = ask(
        write(f"{MOUNT}/b.md", "b"),
        edit(f"{MOUNT}/a.md", "kept", "changed"),
        bash(f"echo changed > {MOUNT}/a.md"),
        ToolUse("read", {"file_path": f"{MOUNT}/a.md"}),
        box=boxes(mk.read_only(notes)),
    )
    written, edited, (by_bash, is_error), read = told(played)
    assert written == (f"write: {MOUNT}/b.md is inside read-only directory {MOUNT}", True)
    assert edited == (f"edit: {MOUNT}/a.md is inside read-only directory {MOUNT}", True)
    assert is_error
    assert "Read-only file system" in by_bash
    assert read == ("kept", False)
    assert len(notes.log()) == 1


def test_f278_no_anthropic_variable_is_in_the_tools_environment(
    ask: Ask, notes: mk.Store, boxes: MakeBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F.278"""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-this-machine")
    box = boxes(notes, environment={"ANTHROPIC_AUTH_TOKEN": "of-the-sandbox", "GREETING": "hello"})
    played = ask(bash("env | grep -e ANTHROPIC -e sk-ant-; echo $GREETING"), box=box)
    assert told(played) == [("hello", False)]


# -- each call is a sync point ---------------------------------------------------------------------


def test_every_change_leads_to_the_call_that_made_it(ask: Ask, notes: mk.Store, docker_box: mk.Sandbox) -> None:
    calls = [
        write(f"{MOUNT}/a.md", "one"),
        bash(f"sed -i s/one/two/ {MOUNT}/a.md; echo b > {MOUNT}/b.md"),
        ToolUse("read", {"file_path": f"{MOUNT}/a.md"}),
        edit(f"{MOUNT}/a.md", "two", "three"),
        bash(f"rm {MOUNT}/b.md; false"),
    ]
    played = ask(*calls)
    versions = notes.connection.database.memory_versions
    made = {
        call.id: [
            (version.path, version.operation)
            for version in versions.list_by_run(notes.id, played.run.id, tool_use_id=call.id)
        ]
        for call in calls
    }
    assert list(made.values()) == [
        [("/a.md", "created")],
        [("/a.md", "modified"), ("/b.md", "created")],
        [],
        [("/a.md", "modified")],
        [("/b.md", "deleted")],
    ]
    assert {version.created_by for version in notes.log()} == {docker_box.actor}


def test_a_persons_change_between_two_calls_is_in_the_mount(
    play: Play, docker_box: mk.Sandbox, notes: mk.Store
) -> None:
    """CONTRACT F.249"""
    run = Run("Go", model="claude-sonnet-5-5")
    notes.write("/a.md", "old")

    def change(event: object) -> None:
        if isinstance(event, ToolCalled) and event.name == "read":
            notes.write("/a.md", "by a person")

    run.subscribe(change)
    calls = [bash(f"cat {MOUNT}/a.md"), ToolUse("read", {"file_path": f"{MOUNT}/a.md"})]
    played = play([reply(*calls), reply("Done.")], docker_box.tools(), run=run)
    assert told(played) == [("old", False), ("by a person", False)]


def wait_for(box: mk.Sandbox, name: str) -> None:
    """Wait until a call has written a file into the mount."""
    mounts = Path(os.environ["MEMKERNEL_HOME"]) / "sessions" / box.id / "mnt/memory/team-notes"
    wait_until((mounts / name).exists)


def remove_once_written(box: mk.Sandbox, engine: Engine, container: str) -> None:
    wait_for(box, "a.md")
    engine.remove(container)


def test_a_conflict_is_an_error_after_the_tools_own_output(
    ask: Ask, notes: mk.Store, docker_box: mk.Sandbox, meddle: Meddle
) -> None:
    """SANDBOX.md, Decision 22; CONTRACT F.251 to F.253"""
    notes.write("/a.md", "old\n")
    meddle(lambda: notes.write("/a.md", "theirs\n"))
    played = ask(
        bash(f"echo mine > {MOUNT}/a.md; echo new > {MOUNT}/b.md; echo done"),
        bash(f"cat {MOUNT}/a.md; ls {MOUNT}"),
        bash(f"echo mine > {MOUNT}/a.md; echo new > {MOUNT}/b.md"),
    )
    assert told(played) == [
        (
            "done\n\n"
            f"{MOUNT}/a.md was edited both here and in the store, so it was not saved. "
            "It is now as the store has it: read it and do it again.\n"
            f"{MOUNT}/b.md was not saved, because /a.md was edited both here and in the store. "
            "It is now as the store has it: do it again.",
            True,
        ),
        ("theirs\na.md", False),
        ("", False),
    ]
    assert texts(notes) == {"/a.md": "mine\n", "/b.md": "new\n"}
    assert [(change.path, change.content) for change in docker_box.rejected] == [
        ("/a.md", b"mine\n"),
        ("/b.md", b"new\n"),
    ]
    assert played.run.status == "done"


def test_a_merge_is_told_and_no_error(ask: Ask, notes: mk.Store, boxes: MakeBox, meddle: Meddle) -> None:
    notes.write("/a.md", "1\n2\n3\n4\n5\n")
    box = boxes(notes, on_conflict="merge")
    meddle(lambda: notes.write("/a.md", "one\n2\n3\n4\n5\n"))
    played = ask(edit(f"{MOUNT}/a.md", "5", "five"), box=box)
    assert told(played) == [
        (
            f"edited {MOUNT}/a.md (1 replacement(s))\n\n"
            f"{MOUNT}/a.md was merged with what the store had meanwhile: read it again.",
            False,
        )
    ]
    assert texts(notes) == {"/a.md": "one\n2\n3\n4\nfive\n"}


def test_refused_files_and_held_back_deletions_are_told_and_no_error(ask: Ask, notes: mk.Store) -> None:
    """CONTRACT F.260, F.262"""
    for name in "abcd":
        notes.write(f"/{name}.md", name)
    played = ask(
        bash(f"ln -s /etc/passwd {MOUNT}/link; printf '\\377' > {MOUNT}/bin; echo e > {MOUNT}/e.md"),
        bash("true"),
        bash(f"rm {MOUNT}/*"),
        bash(f"ls {MOUNT}"),
    )
    refused, again, wiped, listed = told(played)
    assert refused == (
        f"{MOUNT}/bin was not saved: it is not text: byte 0 is not UTF-8.\n"
        f"{MOUNT}/link was not saved: it is a symbolic link.",
        False,
    )
    assert again == ("", False)  # each is told once
    assert wiped == (
        f"{MOUNT}: all its files were gone, so nothing was deleted; /a.md, /b.md, /c.md and 2 more are there again.",
        False,
    )
    assert listed == ("a.md\nb.md\nc.md\nd.md\ne.md", False)


def test_an_image_is_a_block_and_stays_one_where_something_is_told_beside_it(ask: Ask, notes: mk.Store) -> None:
    """The API takes the content of an error as text only."""
    made = ask(bash(f"echo {PIXEL} | base64 -d > dot.png; echo mine > {MOUNT}/a.md"))
    assert told(made) == [("", False)]
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    played = ask(ToolUse("read", {"file_path": "dot.png"}))
    assert told(played) == [([block], False)]
    report = StoreReport(notes.id, "Team notes", MOUNT, conflicts=(SyncConflict("/a.md", "was edited", None),))
    beside = tooling.told(ToolAnswer((block,)), SyncReport((report,)))
    assert not beside.is_error
    assert [dict(one)["type"] for one in beside.content if not isinstance(one, str)] == ["image", "text"]


# -- what goes wrong -------------------------------------------------------------------------------


def test_an_input_of_the_wrong_kind_is_the_models_error(ask: Ask, docker_box: mk.Sandbox) -> None:
    played = ask(
        ToolUse("read", {}),
        ToolUse("read", {"file_path": 3}),
        ToolUse("bash", {"command": "true", "timeout": 3}),
        ToolUse("glob", {"pattern": "a\0b"}),
    )
    assert all(is_error for _, is_error in told(played))
    assert told(played)[0] == ("read: file_path is required", True)
    with pytest.raises(ToolError, match="the input is no object"):
        docker_box.tools()[0].call(["ls"])


def test_a_container_that_is_gone_is_raised_to_the_person_and_nothing_of_the_machine_is_told(
    ask: Ask, notes: mk.Store, docker_box: mk.Sandbox, docker_engine: Engine
) -> None:
    ((container, _),) = docker_engine.labelled(f"org.memkernel.session={docker_box.id}")
    timer = threading.Thread(target=remove_once_written, args=(docker_box, docker_engine, container))
    timer.start()
    played = ask(bash(f"echo new > {MOUNT}/a.md; sleep 60"))
    timer.join()
    assert isinstance(played.error, errors.SandboxError)
    assert told(played) == [(toolset.UNKNOWN_WHETHER_DONE, True)]
    assert texts(notes) == {"/a.md": "new\n"}  # saved all the same
    versions = notes.connection.database.memory_versions
    assert len(versions.list_by_run(notes.id, played.run.id)) == 1


def test_the_tools_of_a_sandbox_that_was_stopped_cannot_be_had(docker_box: mk.Sandbox) -> None:
    tools = docker_box.tools()
    docker_box.stop()
    with pytest.raises(errors.SandboxClosedError):
        docker_box.tools()
    with pytest.raises(ToolError):
        tools[0].call({"command": "true"})
    with pytest.raises(errors.SandboxClosedError):
        tools[0].raise_lost()


def test_a_call_is_ended_from_another_thread_and_what_it_wrote_is_saved(
    docker_box: mk.Sandbox, notes: mk.Store
) -> None:
    bash_tool = docker_box.tools()[0]
    bash_tool.cause = Cause("run_1", "toolu_1")
    timer = threading.Thread(target=lambda: (wait_for(docker_box, "a.md"), bash_tool.interrupt()))
    timer.start()
    with pytest.raises(ToolError, match=r"^bash: interrupted by the user$"):
        bash_tool.call({"command": f"echo half > {MOUNT}/a.md; sleep 600"})
    timer.join()
    (version,) = notes.connection.database.memory_versions.list_by_run(notes.id, "run_1", tool_use_id="toolu_1")
    assert version.path == "/a.md"
    bash_tool.interrupt()  # nothing runs
    with pytest.raises(ToolError, match="restart required"):
        bash_tool.call({"command": "true"})
    assert bash_tool.call({"restart": True}) == "bash session restarted"


# -- who may -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "backend", "allowed"),
    [("live", "docker", False), ("live", "local", True), ("scripted", "local", False), ("recorded", "local", False)],
)
def test_who_may_run_code_where(kind: RunKind, backend: Any, allowed: bool) -> None:
    toolset.check_isolation(kind, backend, allow_unisolated=allowed)


def test_a_live_model_gets_no_sandbox_that_does_not_isolate() -> None:
    """SANDBOX.md, Decision 8"""
    with pytest.raises(errors.UnisolatedModelError, match="not be isolated") as caught:
        toolset.check_isolation("live", "local")
    assert "docker" in caught.value.hint
    assert "allow_unisolated=True" in caught.value.hint


def test_nor_does_it_by_the_tools_of_one_alone(notes: mk.Store, boxes: MakeBox, scripted: Scripted) -> None:
    box, client = boxes(notes, backend="local"), scripted(reply("Done.")).client()
    refused: list[dict[str, Any]] = [{"tools": box.tools()}, {"tools": box.tools()[:1]}, {"sandbox": box}]
    for given in refused:
        with pytest.raises(errors.UnisolatedModelError):
            mk.Agent("claude-sonnet-5-5", client=client, **given)
    unclear: Any = "no"
    with pytest.raises(errors.InvalidInputError, match="allow_unisolated is 'no', not True or False"):
        mk.Agent("claude-sonnet-5-5", client=client, sandbox=box, allow_unisolated=unclear)
    agent = mk.Agent("claude-sonnet-5-5", client=client, tools=box.tools(), allow_unisolated=True)
    assert agent.run("Go", show=False).status == "done"
