"""`db.runs`, `db.run` and what is done with a run from elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import memkernel as mk
from memkernel import ids
from memkernel.agent.events import ApprovalAsked, TurnEnded
from memkernel.agent.script import ToolUse, reply
from memkernel.errors import (
    DatabaseUnavailableError,
    InvalidInputError,
    RunNotFoundError,
    RunRunningError,
    RunTakenOverError,
    StoreNotFoundError,
)
from memkernel.models import RunEvent, RunRecord, Usage
from memkernel.store import run_processes
from tests.fix_agent import Scripted
from tests.fix_postgres import PostgresServer

SESSION = ids.mint("sesn")

Begin = Callable[..., RunRecord]


@pytest.fixture
def connection(dsn: str) -> Iterator[mk.Connection]:
    with mk.connect(dsn) as connected:
        yield connected


@pytest.fixture
def begin(connection: mk.Connection) -> Begin:
    """Begin a run."""

    def begin(**given: Any) -> RunRecord:
        fields: dict[str, Any] = {"session_id": SESSION, "kind": "live", "model": "m", "prompt": "Tidy the notes"}
        fields |= {"process": run_processes.this_process(), **given}
        return connection.database.runs.begin(ids.mint("run"), **fields)

    return begin


def append(connection: mk.Connection, run: RunRecord, process: str = "", **given: Any) -> bool:
    return connection.database.runs.append(
        run.id,
        [RunEvent(1, "text_delta", {"text": "Done."}, datetime(2026, 11, 30, tzinfo=UTC))],
        session_id=SESSION,
        process=process or run_processes.this_process(),
        turns=1,
        usage=Usage(10, 5),
        cost_usd=None,
        **given,
    )


@pytest.fixture
def killed_process() -> str:
    """A process of this machine that is no more."""
    code = "from memkernel.store.run_processes import this_process; print(this_process(), flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        named = process.stdout.readline().decode().strip()
        assert not run_processes.is_gone(named, 0)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie
        assert run_processes.is_gone(named, 0)
    assert run_processes.is_gone(named, 0)
    return named


def test_runs_are_records_newest_first_with_a_data_frame(connection: mk.Connection, begin: Begin) -> None:
    runs = [begin(prompt=str(number)) for number in range(3)]
    assert connection.runs() == runs[::-1]
    assert connection.runs(limit=2) == runs[:0:-1]
    frame = connection.runs().df()
    assert list(frame["prompt"]) == ["2", "1", "0"]
    assert {"usage_input_tokens", "cost_usd", "ended_at"} <= set(frame.columns)
    assert connection.run(runs[1].id) == runs[1]


def test_where_no_run_is_kept_a_sentence_says_so(connection: mk.Connection) -> None:
    assert repr(connection.runs()) == "No run of an agent was kept here."
    assert repr(connection.runs(status="running")) == "No such run was kept here."
    assert len(connection.runs().df()) == 0


def test_runs_are_asked_for_by_store_status_and_time(connection: mk.Connection, begin: Begin) -> None:
    notes = connection.store("Team notes", create=True)
    mine, other = begin(memory_store_ids=[notes.id]), begin()
    append(connection, other, status="done")
    assert [run.id for run in connection.runs(store=notes)] == [mine.id]
    assert [run.id for run in connection.runs(store="team-notes")] == [mine.id]
    assert [run.id for run in connection.runs(status="done")] == [other.id]
    assert [run.id for run in connection.runs(since=other.started_at)] == [other.id]
    assert connection.runs(since=other.started_at + timedelta(days=1)) == []
    notes_id = notes.id
    connection.database.memory_stores.delete(notes.id)
    assert [run.id for run in connection.runs(store=notes_id)] == [mine.id]
    with pytest.raises(StoreNotFoundError):
        connection.runs(store="team-notes")
    with pytest.raises(InvalidInputError, match="limit is 0"):
        connection.runs(limit=0)
    nonsense: Any
    for nonsense in ("3", 1.5, True):
        with pytest.raises(InvalidInputError, match="limit is"):
            connection.runs(limit=nonsense)
    for nonsense in (5, ["Team notes"]):
        with pytest.raises(InvalidInputError, match="store is"):
            connection.runs(store=nonsense)
    assert connection.runs(limit=10**30) == connection.runs()


def test_a_run_whose_process_was_killed_is_lost(connection: mk.Connection, begin: Begin, killed_process: str) -> None:
    run, alive = begin(process=killed_process), begin()
    assert {each.id: each.status for each in connection.runs()} == {run.id: "lost", alive.id: "running"}
    lost = connection.run(run.id)
    assert (lost.status, lost.ended_at) == ("lost", run.seen_at)
    with pytest.raises(RunTakenOverError):
        append(connection, run, killed_process)


def test_a_run_whose_end_the_database_missed_is_told_as_it_ended_once_it_is_back(
    connection: mk.Connection, scripted: Scripted, server: PostgresServer
) -> None:
    store = connection.store("Team notes", create=True)
    agent = mk.Agent(client=scripted(reply("Done.")).client(), store=store)
    try:
        with pytest.raises(DatabaseUnavailableError):
            agent.run("Go", show=False, sink=lambda event: server.stop() if isinstance(event, TurnEnded) else None)
    finally:
        server.start()
    assert [record.status for record in connection.runs()] == ["done"]


def test_a_run_whose_process_was_killed_is_taken_over(
    connection: mk.Connection, begin: Begin, killed_process: str
) -> None:
    run, here = begin(process=killed_process), run_processes.this_process()
    taken = connection.database.runs.take_over(run.id, here)
    assert (taken.status, taken.ended_at) == ("lost", run.seen_at)
    assert connection.database.runs.take_over(run.id, here) == taken  # by the same process: a repeated call
    with pytest.raises(RunTakenOverError):
        append(connection, run, killed_process)


def test_a_run_is_asked_to_stop(connection: mk.Connection, begin: Begin, killed_process: str) -> None:
    run = begin()
    assert connection.stop_run(run.id).status == "running"
    assert append(connection, run)
    assert connection.stop_run(begin(process=killed_process).id).status == "lost"


def test_a_run_that_waits_for_a_person_is_stopped_from_another_kernel(
    connection: mk.Connection, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has nothing to write, and so says from time to time that it goes on; it hears of the stop then."""
    monkeypatch.setattr(run_processes, "ALIVE_S", 0.01)
    store = connection.store("Team notes", create=True)
    view = ToolUse("memory", {"command": "view", "path": "/memories"})
    agent = mk.Agent(client=scripted(reply(view)).client(), store=store, approve="ask")
    waits = threading.Event()
    run = agent.start("Go", show=False, sink=lambda event: waits.set() if isinstance(event, ApprovalAsked) else None)
    assert waits.wait(60)
    connection.stop_run(run.id)
    assert run.wait(60).status == "stopped"
    assert connection.run(run.id).status == "stopped"


def test_a_run_is_forgotten_when_it_has_ended(connection: mk.Connection, begin: Begin, killed_process: str) -> None:
    run, lost = begin(), begin(process=killed_process)
    with pytest.raises(RunRunningError):
        connection.delete_run(run.id)
    append(connection, run, status="done")
    assert [event.data for event in connection.run_events(run.id)] == [{"text": "Done."}]
    for each in (run, lost):
        connection.delete_run(each.id)
        for absent in (connection.run, connection.run_events, connection.stop_run, connection.delete_run):
            with pytest.raises(RunNotFoundError) as told:
                absent(each.id)
            assert "%agent ls" in told.value.hint
    assert connection.runs() == []


@pytest.mark.parametrize("run_id", ["", "last", "run_1", "run_" + "u" * 26, None, 7])
def test_what_is_no_id_of_a_run_is_not_found(connection: mk.Connection, run_id: Any) -> None:
    with pytest.raises(RunNotFoundError):
        connection.run(run_id)
