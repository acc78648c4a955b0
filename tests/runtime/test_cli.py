"""`memkernel session ls|end` and what `memkernel doctor` says and does of sandboxes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import memkernel as mk
from memkernel import cli
from memkernel.models import AttachmentParams
from memkernel.sandbox.engine import Engine
from tests.fix_sandbox import MakeBox
from tests.runtime.conftest import Launch
from tests.runtime.processes import wait_until

MOUNT = "/mnt/memory/team-notes"


@pytest.fixture(autouse=True)
def _this_database(dsn: str, sandbox_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMKERNEL_DSN", dsn)


@pytest.fixture
def dead(launch: Launch, sandbox_connection: mk.Connection, sandbox_home: Path) -> str:
    """A session whose process was killed in a cell that had written /a.md."""
    process = launch("local")
    session = process.start()
    process.begin(f"box.bash('echo draft > {MOUNT}/a.md; sleep 60')")
    wait_until(lambda: list(sandbox_home.glob("sessions/*/mnt/memory/team-notes/a.md")))
    process.kill()
    return session


def read(connection: mk.Connection) -> str:
    return connection.store("team-notes").read("/a.md")


def test_no_session_is_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["session", "ls"]) == 0
    assert capsys.readouterr().out == "No session is open.\n"


def test_sessions_are_listed_with_where_they_run(
    notes: mk.Store, boxes: MakeBox, dead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    box = boxes(mk.read_only(notes), backend="local", name="mine")
    elsewhere = notes.connection.database.sessions.create(
        [AttachmentParams(notes.id)], metadata={"host": "another-machine"}
    )
    assert cli.main(["session", "ls"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{elsewhere.id}  -  team-notes  on another-machine",
        f"{box.id}  mine  team-notes (ro)  runs in process {os.getpid()}",
    ]
    assert read(notes.connection) == "draft\n"  # the first start has ended the dead one


def test_a_dead_session_is_ended_and_what_it_left_is_saved(
    dead: str, sandbox_connection: mk.Connection, sandbox_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["session", "ls"]) == 0
    assert capsys.readouterr().out.endswith("left behind: `memkernel doctor` ends it\n")
    assert cli.main(["session", "end", dead]) == 0
    assert capsys.readouterr().out == f"team-notes ({dead}) has ended: 1 change was saved.\n"
    assert read(sandbox_connection) == "draft\n"
    assert list((sandbox_home / "sessions").iterdir()) == []


def test_a_living_session_is_not_ended(notes: mk.Store, boxes: MakeBox, capsys: pytest.CaptureFixture[str]) -> None:
    box = boxes(notes, backend="local")
    assert cli.main(["session", "end", box.id, "--force"]) == 1
    assert f"{box.id} is alive in process {os.getpid()}" in capsys.readouterr().err
    assert box.run("1 + 1").result == "2"


def test_a_session_of_a_machine_that_is_gone_is_ended_by_force_alone(
    notes: mk.Store, capsys: pytest.CaptureFixture[str]
) -> None:
    sessions = notes.connection.database.sessions
    session = sessions.create([AttachmentParams(notes.id)], metadata={"host": "another-machine"}).id
    assert cli.main(["session", "end", session]) == 1
    told = capsys.readouterr().err
    assert "another-machine" in told
    assert "--force" in told
    assert sessions.retrieve(session).status == "idle"
    assert cli.main(["session", "end", session, "--force"]) == 0
    assert sessions.retrieve(session).status == "terminated"
    notes.drop()


def test_a_session_that_had_no_sandbox_is_ended(notes: mk.Store, capsys: pytest.CaptureFixture[str]) -> None:
    """One that was made over the API."""
    session = notes.connection.database.sessions.create([AttachmentParams(notes.id)], agent="agent_1").id
    assert cli.main(["session", "ls"]) == 0
    assert capsys.readouterr().out == f"{session}  -  team-notes  has no sandbox here\n"
    assert cli.main(["session", "end", session]) == 0
    assert capsys.readouterr().out == f"The session ({session}) has ended: nothing was left to save.\n"
    notes.drop()


def test_a_session_that_there_is_not(sandbox_connection: mk.Connection, capsys: pytest.CaptureFixture[str]) -> None:
    missing = "sesn_" + "0" * 26
    assert cli.main(["session", "end", missing]) == 1
    told = capsys.readouterr().err
    assert missing in told
    assert "in a terminal `memkernel session ls`" in told


def test_a_session_that_has_ended_is_said_so(
    notes: mk.Store, boxes: MakeBox, capsys: pytest.CaptureFixture[str]
) -> None:
    box = boxes(notes, backend="local")
    box.stop()
    assert cli.main(["session", "end", box.id]) == 1
    assert f"{box.id} has ended already" in capsys.readouterr().err


def test_what_another_version_left_is_told_and_stays(
    *, dead: str, notes: mk.Store, sandbox_home: Path, boxes: MakeBox, capsys: pytest.CaptureFixture[str]
) -> None:
    note = sandbox_home / "sessions" / dead / "session.json"
    note.write_text('{"format": 2}')
    cli.main(["doctor"])
    assert "another version of memkernel made it" in capsys.readouterr().out
    assert [ended.session_id for ended in boxes(notes, backend="local").recovered] == [dead]
    assert cli.main(["session", "end", dead]) == 1
    told = capsys.readouterr().err
    assert "another version of memkernel made it" in told
    assert "--force" in told
    assert cli.main(["session", "end", dead, "--force"]) == 0
    assert notes.connection.database.sessions.retrieve(dead).status == "terminated"
    assert (note.parent / "mnt/memory/team-notes/a.md").read_text() == "draft\n"


def test_with_a_server_of_ones_own_the_doctor_promises_nothing_of_the_embedded_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cli.main(["doctor"])
    assert "first use" not in capsys.readouterr().out


def test_the_doctor_saves_what_dead_sessions_left(
    dead: str, sandbox_connection: mk.Connection, docker_engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["doctor"]) == 0
    told = capsys.readouterr().out
    assert f"ok       sessions: team-notes ({dead}) had lost its process: 1 change was saved" in told
    assert "ok       sandbox: Docker " in told or "warning  sandbox: Docker " in told
    assert read(sandbox_connection) == "draft\n"
    cli.main(["doctor"])
    assert "sessions:" not in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # see no_engine
def test_the_doctor_says_where_no_engine_is_and_what_goes_without(
    no_engine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["doctor"])
    told = capsys.readouterr().out
    assert "warning  sandbox: no Docker engine answers" in told
    assert str(no_engine) in told
    assert "--backend local" in told


def test_the_doctor_says_what_cannot_be_saved_yet(
    dead: str, sandbox_home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMKERNEL_DSN", "postgresql://nobody@127.0.0.1:1/none?connect_timeout=1")
    cli.main(["doctor"])
    assert "warning  sessions: left, and not saved yet:" in capsys.readouterr().out
    assert json.loads((sandbox_home / "sessions" / dead / "session.json").read_text())["session_id"] == dead
