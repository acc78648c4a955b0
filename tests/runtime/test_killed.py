"""Processes that are killed, or just end: nothing they wrote is lost, nothing is saved twice, nothing runs on."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import psycopg
import pytest

import memkernel as mk
from memkernel import runtime
from memkernel.models import Actor, AttachmentParams
from memkernel.runtime import Home, Recovered, homes, leaving
from memkernel.runtime.recovery import owner_of_session
from memkernel.sandbox.engine import Engine
from tests.fix_sandbox import MakeBox
from tests.runtime.conftest import Launch
from tests.runtime.processes import wait_until

MOUNT = "/mnt/memory/team-notes"
BACKENDS = ["docker", "local"]

pytestmark = pytest.mark.usefixtures("sandbox_image", "docker_engine")


def texts(store: mk.Store) -> dict[str, str]:
    return {memory.path: store.read(memory.path) for memory in store.ls("/", depth=0) if isinstance(memory, mk.Memory)}


def recover(store: mk.Store, home: Path) -> list[Recovered]:
    """What the next start of a sandbox does first."""
    connection = store.connection
    return runtime.recover(connection.database, connection.line, connection.settings, Home(home))


def folders(home: Path) -> list[str]:
    """The sessions that have a folder."""
    return sorted(path.name for path in (home / "sessions").iterdir())


def containers(engine: Engine, session_id: str) -> int:
    return len(engine.labelled(f"org.memkernel.session={session_id}"))


def runs(engine: Engine, session_id: str) -> bool:
    """Whether a container of the session runs."""
    return any(engine.state(found)["Running"] for found, _ in engine.labelled(f"org.memkernel.session={session_id}"))


# -- kill -9 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_f256_a_notebook_killed_in_a_cell_has_its_edits_saved_by_the_next_start(
    *, backend: str, launch: Launch, notes: mk.Store, boxes: MakeBox, docker_engine: Engine, sandbox_home: Path
) -> None:
    sibling = boxes(notes, backend=backend)
    process = launch(backend)
    session = process.start()
    process.begin(f"box.bash('cd {MOUNT}; echo draft > a.md; sleep 60')")
    data = Path(json.loads((sandbox_home / "sessions" / session / "session.json").read_text())["data"])
    wait_until((data / "mnt/memory/team-notes/a.md").exists)
    process.kill()
    wait_until(lambda: not runs(docker_engine, session))  # the lease: nobody has to come and look
    assert texts(notes) == {}

    (ended,) = recover(notes, sandbox_home)
    assert (ended.session_id, ended.trouble) == (session, "")
    assert texts(notes) == {"/a.md": "draft\n"}
    assert notes.log("/a.md")[0].created_by == Actor("session_actor", session)
    assert notes.connection.database.sessions.retrieve(session).status == "terminated"
    assert containers(docker_engine, session) == 0
    assert folders(sandbox_home) == [sibling.id]
    assert sibling.bash(f"cat {MOUNT}/a.md").stdout == "draft\n"


@pytest.mark.parametrize(("backend", "rounds"), [("local", 12), ("docker", 3)])
def test_a_notebook_killed_in_its_write_back_loses_nothing_and_saves_nothing_twice(
    backend: str, rounds: int, launch: Launch, notes: mk.Store, sandbox_home: Path
) -> None:
    chance = random.Random(backend)
    files = 150
    for number in range(rounds):
        process = launch(backend)
        process.start()
        process.begin(
            f"box.bash('mkdir {MOUNT}/{number}; cd {MOUNT}/{number};"
            f" for n in $(seq {files}); do echo $n > $n; done; echo x > done')"
        )
        wait_until(lambda number=number: list(sandbox_home.glob(f"sessions/*/mnt/memory/team-notes/{number}/done")))
        time.sleep(chance.random() * 0.1)
        process.kill()
        (ended,) = recover(notes, sandbox_home)
        assert ended.trouble == ""
        held = {memory.path for memory in notes.ls(f"/{number}", depth=0)}
        assert held == {f"/{number}/{name}" for name in ("done", *range(1, files + 1))}
    log = notes.log()
    assert len(log) == rounds * (files + 1)
    assert {version.operation for version in log} == {"created"}
    assert folders(sandbox_home) == []


def test_a_notebook_killed_while_it_starts_or_stops_leaves_nothing(
    launch: Launch, notes: mk.Store, sandbox_home: Path
) -> None:
    notes.write("/a.md", "kept")
    notes.write("/b.md", "kept too")
    chance = random.Random(3)
    for step in ("box.start()", "box.start().stop()"):
        for _ in range(6):
            process = launch("local")
            process.ask("1")
            process.begin(step)
            time.sleep(chance.random() * 0.8)
            process.kill()
            recover(notes, sandbox_home)
            assert texts(notes) == {"/a.md": "kept", "/b.md": "kept too"}
            assert folders(sandbox_home) == []
    sessions = notes.connection.database.sessions.list(limit=100).data
    assert {session.status for session in sessions} <= {"terminated"}
    notes.drop()


def test_f257_without_its_nonce_a_mount_is_no_edit(launch: Launch, notes: mk.Store, sandbox_home: Path) -> None:
    notes.write("/a.md", "a")
    notes.write("/b.md", "b")
    process = launch("local")
    session = process.start()
    process.kill()
    data = sandbox_home / "sessions" / session
    (data / "nonce" / "team-notes").unlink()
    (data / "mnt/memory/team-notes/a.md").unlink()
    (data / "mnt/memory/team-notes/b.md").write_text("not an edit")
    (ended,) = recover(notes, sandbox_home)
    assert ended.trouble == ""
    assert texts(notes) == {"/a.md": "a", "/b.md": "b"}
    assert len(notes.log()) == 2
    assert [change.content for change in mk.Sandbox(notes).rejected] == [b"not an edit"]


def test_f259_a_baseline_of_another_format_is_not_touched_and_the_mount_is_kept(
    dsn: str, launch: Launch, notes: mk.Store, sandbox_home: Path
) -> None:
    process = launch("local")
    session = process.start()
    process.kill()
    with psycopg.connect(dsn, autocommit=True) as connection:
        assert connection.execute("UPDATE memkernel.mount_baselines SET format = 99").rowcount == 1
    draft = sandbox_home / "sessions" / session / "mnt/memory/team-notes/a.md"
    draft.write_text("draft")
    (ended,) = recover(notes, sandbox_home)
    assert "format" in ended.trouble
    assert texts(notes) == {}
    assert draft.read_text() == "draft"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE memkernel.mount_baselines SET format = 1")
    (ended,) = recover(notes, sandbox_home)
    assert ended.trouble == ""
    assert texts(notes) == {"/a.md": "draft"}


@pytest.mark.parametrize("is_archived", [False, True])
def test_a_session_that_has_no_folder_and_no_process_is_ended_and_lets_go_of_its_store(
    notes: mk.Store, sandbox_home: Path, *, is_archived: bool
) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    owner = owner_of_session(Home(sandbox_home).installation_id()) | {"pid": str(ended.pid)}
    sessions = notes.connection.database.sessions
    session = sessions.create([AttachmentParams(notes.id)], metadata=owner).id
    if is_archived:
        sessions.archive(session)
    recover(notes, sandbox_home)
    assert sessions.retrieve(session).status == "terminated"
    notes.drop()


def test_a_memory_file_system_that_was_emptied_is_no_deletion(
    launch: Launch, notes: mk.Store, sandbox_home: Path
) -> None:
    notes.write("/a.md", "a")
    process = launch("local")
    session = process.start()
    process.kill()
    note = sandbox_home / "sessions" / session / "session.json"
    elsewhere = json.loads(note.read_text()) | {"data": str(sandbox_home / "gone" / session)}
    note.write_text(json.dumps(elsewhere))
    (ended,) = recover(notes, sandbox_home)
    assert ended.trouble == ""
    assert texts(notes) == {"/a.md": "a"}
    assert folders(sandbox_home) == []


def test_sessions_of_another_machine_or_database_are_left_alone(
    launch: Launch, notes: mk.Store, sandbox_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = launch("local")
    session = process.start()
    process.kill()
    note = sandbox_home / "sessions" / session / "session.json"
    told = json.loads(note.read_text())
    note.write_text(json.dumps(told | {"host": "elsewhere"}))
    with monkeypatch.context() as on_a_network:
        on_a_network.setattr(homes, "warnings_for", _shared)
        assert recover(notes, sandbox_home) == []
    assert folders(sandbox_home) == [session]
    note.write_text(json.dumps(told | {"database": "another"}))
    notes.connection.database.sessions.delete(session)
    assert recover(notes, sandbox_home) == []
    assert folders(sandbox_home) == [session]


@pytest.mark.parametrize("kernel_is_killed", [True, False])
def test_a_mount_that_was_renamed_or_replaced_is_saved_or_put_aside(
    *, launch: Launch, notes: mk.Store, sandbox_home: Path, kernel_is_killed: bool
) -> None:
    for name in "abc":
        notes.write(f"/{name}.md", name)
    # renamed: what is in it is saved all the same
    process = launch("local", level=2)
    process.start()
    renamed = f"import os; open('{MOUNT}/new.md', 'w').write('new'); os.rename('{MOUNT}', '{MOUNT}.x')"
    process.ask(f"[type(error).__name__ for error in [tried(box.run, {renamed!r})]]")
    _ = process.kill() if kernel_is_killed else process.leave()
    (ended,) = recover(notes, sandbox_home)
    assert ended.trouble == ""
    assert texts(notes) == {"/a.md": "a", "/b.md": "b", "/c.md": "c", "/new.md": "new"}
    # replaced: nothing is deleted, and the new folder's files are put aside
    for number, replacement in enumerate(("os.mkdir(M); open(M + '/r.md', 'w')", "open(M, 'w')")):
        process = launch("local", level=2)
        process.start()
        replaced = f"import os, shutil; M = '{MOUNT}'; shutil.rmtree(M); {replacement}.write('text {number}')"
        process.ask(f"[type(error).__name__ for error in [tried(box.run, {replaced!r})]]")
        _ = process.kill() if kernel_is_killed else process.leave()
        (ended,) = recover(notes, sandbox_home)
        assert ended.trouble == ""
        assert len(texts(notes)) == 4
        assert [len(store.conflicts) for store in ended.report.stores] == [1]
        assert mk.Sandbox(notes).rejected[-1].content == f"text {number}".encode()
    assert folders(sandbox_home) == []


def _shared(directory: Path) -> tuple[str, ...]:
    return (f"{directory} is shared",)


# -- an orderly end --------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_notebook_that_ends_without_stop_has_all_saved(
    backend: str, launch: Launch, notes: mk.Store, docker_engine: Engine, sandbox_home: Path
) -> None:
    process = launch(backend)
    session = process.start()
    process.ask(f"box.bash('(sleep 0.5; echo late > {MOUNT}/late.md) >/dev/null 2>&1 &').status")
    wait_until(lambda: list(sandbox_home.glob("sessions/*/mnt/memory/team-notes/late.md")))
    assert process.leave() == (0, "")
    assert texts(notes) == {"/late.md": "late\n"}
    assert containers(docker_engine, session) == 0
    assert folders(sandbox_home) == []
    assert notes.connection.database.sessions.retrieve(session).status == "terminated"


def test_a_notebook_that_is_terminated_is_recovered(launch: Launch, notes: mk.Store, sandbox_home: Path) -> None:
    process = launch("local")
    process.start()
    process.begin(f"box.bash('echo draft > {MOUNT}/a.md; sleep 60')")
    wait_until(lambda: list(sandbox_home.glob("sessions/*/mnt/memory/team-notes/a.md")))
    process.kill(signal.SIGTERM)
    recover(notes, sandbox_home)
    assert texts(notes) == {"/a.md": "draft\n"}


def test_the_first_start_of_a_process_recovers(launch: Launch, notes: mk.Store, sandbox_home: Path) -> None:
    process = launch("local")
    session = process.start()
    process.begin(f"box.bash('echo draft > {MOUNT}/a.md; sleep 60')")
    wait_until(lambda: list(sandbox_home.glob("sessions/*/mnt/memory/team-notes/a.md")))
    process.kill()
    assert launch("local").ask("[one.session_id for one in box.start().recovered]") == [session]
    assert texts(notes) == {"/a.md": "draft\n"}


# -- fork ------------------------------------------------------------------------------------------


def test_a_forked_child_neither_uses_nor_ends_its_parents_sandbox(notes: mk.Store, boxes: MakeBox) -> None:
    box = boxes(notes, backend="local")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # what pytest has open is not this process's to close
        told = "nothing was raised"
        try:
            box.run("1 + 1")
        except BaseException as error:
            told = f"{type(error).__name__}: {error}"
        leaving.stop_all(os.getppid())
        os.write(write, told.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        assert told.read() == "SandboxClosedError: the sandbox belongs to the process that this one was forked from"
    os.waitpid(child, 0)
    assert box.run("1 + 1").result == "2"


def test_a_forked_child_does_not_keep_a_dead_session_alive(launch: Launch, notes: mk.Store, sandbox_home: Path) -> None:
    process = launch("local")
    process.start()
    process.begin("__import__('os').fork() or __import__('time').sleep(20)")
    child = process.answer()
    process.kill()
    try:
        assert len(recover(notes, sandbox_home)) == 1
    finally:
        os.kill(child, signal.SIGKILL)
    assert texts(notes) == {}
