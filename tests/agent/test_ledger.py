"""The ledger: what is written when, and what a lost database or another process does to a run."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic import beta_tool

from memkernel.agent import event_rows
from memkernel.agent.approval import Approvals
from memkernel.agent.conversation import Block
from memkernel.agent.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Event,
    Notice,
    Replied,
    RunEnded,
    RunStarted,
    TextDelta,
    ToolCalled,
    ToolReturned,
    TurnEnded,
    TurnStarted,
)
from memkernel.agent.ledger import Ledger, left, take_over, under_way
from memkernel.agent.run import Run
from memkernel.agent.script import ToolUse, reply
from memkernel.errors import (
    AgentError,
    DatabaseUnavailableError,
    RunNotFoundError,
    RunRunningError,
    RunTakenOverError,
)
from memkernel.store import Database
from memkernel.store.run_processes import this_process
from tests.fix_agent import Play
from tests.fix_postgres import PostgresServer

SESSION = "sesn_01m8pass49e00b2k8p55rztrya"


@beta_tool
def look() -> str:
    """Look."""
    return "it"


def kept_run(database: Database, prompt: str = "Go", **more: Any) -> Run:
    """A run that the database keeps."""
    run = Run(prompt, model="claude-sonnet-5-5", session_id=SESSION, **more)
    run.ledger = Ledger(database.runs, run)
    return run


def kept(database: Database, run: Run) -> list[Event]:
    return event_rows.events_of(database.runs.events(run.id))


def asked_of_nobody(call: Block) -> str:
    raise AssertionError(f"{call} was not under way")


# -- what is written, and when -----------------------------------------------------------------------


def test_all_that_happened_is_kept_and_makes_the_same_conversation(play: Play, database: Database) -> None:
    run = kept_run(database)
    play([reply("I look.", ToolUse("look")), reply("Done \ud83d\ude00, \x00.")], [look], run=run)
    assert kept(database, run) == run.events
    record = database.runs.retrieve(run.id)
    assert (record.status, record.turns, record.usage, record.error) == ("done", 2, run.usage, "")
    assert record.ended_at is not None
    assert left(database.runs, record).messages == run.messages


def test_a_run_says_of_itself_what_the_database_says(play: Play, database: Database) -> None:
    run = kept_run(database)
    play([reply("Done.")], run=run)
    mine, theirs = run.record(), database.runs.retrieve(run.id)
    same = (
        "id",
        "session_id",
        "kind",
        "model",
        "prompt",
        "status",
        "turns",
        "stop_reason",
        "usage",
        "cost_usd",
        "error",
    )
    assert [getattr(mine, name) for name in same] == [getattr(theirs, name) for name in same]


def test_before_a_tool_runs_its_call_is_written(play: Play, database: Database) -> None:
    seen: list[list[type]] = []

    @beta_tool
    def note() -> str:
        """Note."""
        seen.append([type(event) for event in kept(database, run)])
        return "noted"

    run = kept_run(database)
    play([reply("So.", ToolUse("note"), ToolUse("note")), reply("Done.")], [note], run=run)
    before = [RunStarted, TurnStarted, TextDelta, Replied, ToolCalled]
    assert seen == [before, [*before, ToolReturned, ToolCalled]]


def test_between_two_tools_nothing_is_written(play: Play, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    append = database.runs.append

    def counted(run_id: str, events: Any, **more: Any) -> bool:
        written.append(len(events))
        return append(run_id, events, **more)

    monkeypatch.setattr(database.runs, "append", counted)
    words = " ".join(["word"] * 500)
    play([reply(words, ToolUse("look")), reply(words)], [look], run=kept_run(database))
    assert written == [1, 4, 2, 4, 1]  # its start; the reply and its call; the turn; the next one; the end


def test_a_call_that_waits_for_a_person_is_written_as_one_that_waits(play: Play, database: Database) -> None:
    def answer(asked: ApprovalAsked) -> None:
        events = kept(database, run)
        assert isinstance(events[-1], ApprovalAsked)
        assert under_way(events) is None
        run.approve(asked.tool_use_id)

    run = kept_run(database, approvals=Approvals({"*": "ask"}))
    run.subscribe(lambda event: answer(event) if isinstance(event, ApprovalAsked) else None)
    play([reply(ToolUse("look")), reply("Done.")], [look], run=run)
    assert [type(event) for event in kept(database, run)][3:7] == [
        ToolCalled,
        ApprovalAsked,
        ApprovalAnswered,
        ToolReturned,
    ]


def test_a_run_that_was_stopped_before_it_began_is_not_kept(database: Database) -> None:
    run = kept_run(database)
    run.end("stopped")
    with pytest.raises(RunNotFoundError):
        database.runs.retrieve(run.id)


def test_a_stop_from_elsewhere_ends_the_run_before_its_next_tool(play: Play, database: Database) -> None:
    run = kept_run(database)
    run.subscribe(lambda event: _ask_stop(database, event))
    played = play([reply(ToolUse("look"), ToolUse("look")), reply("never asked for")], [look], run=run)
    assert (run.status, len(played.model.requests)) == ("stopped", 1)
    assert [result["content"] for result in played.results()] == ["it", "Stopped by the user before this ran."]
    assert database.runs.retrieve(run.id).status == "stopped"


def _ask_stop(database: Database, event: Event) -> None:
    if isinstance(event, ToolReturned):
        database.runs.ask_stop(database.runs.list().data[0].id)


# -- a database that is lost -------------------------------------------------------------------------


def test_a_database_lost_before_a_tool_ends_the_run_and_the_tool_does_not_run(
    play: Play, database: Database, server: PostgresServer
) -> None:
    ran: list[str] = []

    @beta_tool
    def note() -> str:
        """Note."""
        ran.append("note")
        return "noted"

    run = kept_run(database)
    run.subscribe(lambda event: server.stop() if isinstance(event, Replied) else None)
    try:
        played = play([reply(ToolUse("note"), ToolUse("note")), reply("never asked for")], [note], run=run)
    finally:
        server.start()
    assert isinstance(played.error, DatabaseUnavailableError)
    assert (run.status, ran, len(played.model.requests)) == ("error", [], 1)
    assert [type(event) for event in run.events[-2:]] == [Notice, RunEnded]
    assert [result["content"] for result in played.results()] == ["Not run: the run failed before this."] * 2
    assert run.ledger is not None
    run.ledger.settle()
    assert kept(database, run) == run.events, "what could not be written is made up for"
    assert database.runs.retrieve(run.id).status == "error"


def test_a_run_whose_end_cannot_be_written_says_so_once(play: Play, database: Database, server: PostgresServer) -> None:
    run = kept_run(database)
    run.subscribe(lambda event: server.stop() if isinstance(event, TurnEnded) else None)
    try:
        played = play([reply("Done.")], run=run)
    finally:
        server.start()
    assert (run.status, played.error) == ("done", None)
    assert run.ledger is not None
    with pytest.raises(DatabaseUnavailableError):
        run.ledger.raise_lost()
    run.ledger.settle()
    run.ledger.raise_lost()
    assert database.runs.retrieve(run.id).status == "done"


def test_a_run_that_cannot_begin_asks_no_model(play: Play, database: Database, server: PostgresServer) -> None:
    run = kept_run(database)
    server.stop()
    try:
        played = play([reply("never asked for")], run=run)
    finally:
        server.start()
    assert isinstance(played.error, DatabaseUnavailableError)
    assert (run.status, played.model.requests) == ("error", [])


# -- another process -----------------------------------------------------------------------------------


def test_a_run_that_is_alive_is_not_taken_over(database: Database) -> None:
    run = kept_run(database)
    run.publish(RunStarted(run.id, "Go", "m"))
    with pytest.raises(RunRunningError, match="is still running"):
        take_over(database.runs, run.id, asked_of_nobody)


def test_a_run_that_was_taken_over_runs_no_further_tool(
    play: Play, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was taken for gone, since nothing was heard of its machine."""

    def is_gone(_process: str, _quiet_s: float) -> bool:
        return True

    monkeypatch.setattr("memkernel.store.runs.run_processes.is_gone", is_gone)
    run = kept_run(database)

    def steal(event: Event) -> None:
        if isinstance(event, Replied):
            database.runs.take_over(run.id, "another process")

    run.subscribe(steal)
    played = play([reply(ToolUse("look")), reply("never asked for")], [look], run=run)
    assert isinstance(played.error, RunTakenOverError)
    assert played.results()[0]["content"] == "Not run: the run failed before this."
    assert database.runs.retrieve(run.id).status == "lost"


# -- what an earlier run left --------------------------------------------------------------------------


def lost_run(database: Database, *events: Event, previous: Run | None = None) -> Run:
    """A run whose process ended after these events."""
    run = kept_run(database, previous_run_id=previous.id if previous else None)
    run.publish(RunStarted(run.id, run.prompt, run.model))
    for event in events:
        run.publish(event)
    database.runs.append(
        run.id, [], session_id=SESSION, process=this_process(), turns=0, usage=run.usage, cost_usd=None, status="lost"
    )
    return run


CALL: Block = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], None),
        ([Replied(1, [CALL])], None),
        ([Replied(1, [CALL]), ToolCalled("toolu_1", "look", {})], CALL),
        ([Replied(1, [CALL]), ToolCalled("toolu_1", "look", {}), ApprovalAsked("toolu_1", "look", {})], None),
        (
            [
                Replied(1, [CALL]),
                ToolCalled("toolu_1", "look", {}),
                ApprovalAsked("toolu_1", "look", {}),
                ApprovalAnswered("toolu_1", "approved", "person"),
            ],
            CALL,
        ),
        (
            [
                Replied(1, [CALL]),
                ToolCalled("toolu_1", "look", {}),
                ApprovalAnswered("toolu_1", "denied", "policy"),
            ],
            None,
        ),
        (
            [
                Replied(1, [CALL]),
                ToolCalled("toolu_1", "look", {}),
                ToolReturned("toolu_1", "look", "it", is_error=False, duration_s=0.0),
            ],
            None,
        ),
    ],
)
def test_only_a_call_that_may_have_run_is_under_way(events: list[Event], expected: Block | None) -> None:
    assert under_way(events) == expected


def test_a_lost_run_is_closed_once_and_for_all(database: Database) -> None:
    run = lost_run(database, TurnStarted(1), Replied(1, [CALL]), ToolCalled("toolu_1", "look", {}))
    taken = take_over(database.runs, run.id, lambda call: f"{call['name']} was lost")
    assert (taken.record.status, taken.is_due) == ("lost", True)
    assert taken.messages[-1]["content"][0]["content"] == "look was lost"
    again = take_over(database.runs, run.id, asked_of_nobody)
    assert again.messages == taken.messages
    assert [type(event) for event in kept(database, run)][-2:] == [ToolReturned, RunEnded]


def test_a_prompt_that_nothing_came_of_is_due_and_is_not_sent_with_the_next_one(database: Database) -> None:
    taken = take_over(database.runs, lost_run(database).id, asked_of_nobody)
    assert (taken.is_due, taken.answered) == (True, [])
    assert taken.messages == [{"role": "user", "content": [{"type": "text", "text": "Go"}]}]


def test_a_conversation_of_several_runs_is_put_together(play: Play, database: Database) -> None:
    first = kept_run(database)
    play([reply("One.")], run=first)
    second = kept_run(database, "And?", messages=first.conversation, previous_run_id=first.id)
    play([reply("Two.")], run=second)
    taken = take_over(database.runs, second.id, asked_of_nobody)
    assert (taken.messages, taken.is_due) == (second.messages, False)


def test_a_conversation_that_began_with_messages_is_put_together(play: Play, database: Database) -> None:
    before: list[Any] = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    run = Run("Go", model="claude-sonnet-5-5", session_id=SESSION, messages=before)
    run.ledger = Ledger(database.runs, run, before)
    play([reply("Done.")], run=run)
    assert take_over(database.runs, run.id, asked_of_nobody).messages == run.messages


def test_a_refused_prompt_is_left_out_for_those_who_go_on(play: Play, database: Database) -> None:
    """fault 52"""
    first = kept_run(database)
    play([reply("One.")], run=first)
    refused = kept_run(database, "Something bad", messages=first.conversation, previous_run_id=first.id)
    play([reply("No, I", stop_reason="refusal")], run=refused)
    assert take_over(database.runs, refused.id, asked_of_nobody).answered == first.messages


def test_a_conversation_whose_beginning_was_deleted_says_so(play: Play, database: Database) -> None:
    first = kept_run(database)
    play([reply("One.")], run=first)
    second = kept_run(database, "And?", messages=first.conversation, previous_run_id=first.id)
    play([reply("Two.")], run=second)
    database.runs.delete(first.id)
    with pytest.raises(AgentError, match="which was deleted: its conversation is gone"):
        take_over(database.runs, second.id, asked_of_nobody)
