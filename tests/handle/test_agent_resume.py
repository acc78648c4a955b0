"""Runs are kept, and an agent of any kernel goes on with them."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest
from anthropic import beta_tool

import memkernel as mk
from memkernel.agent import event_rows, results
from memkernel.agent.events import Event, ToolReturned
from memkernel.agent.ledger import Ledger, left
from memkernel.agent.run import Run
from memkernel.agent.script import Failure, ToolUse, reply
from memkernel.errors import InvalidInputError, ModelRequestError, RunNotFoundError, RunRunningError
from memkernel.handle import runs
from memkernel.models import Actor
from tests.fix_agent import Scripted


@pytest.fixture
def store(dsn: str) -> Iterator[mk.Store]:
    with mk.connect(dsn) as db:
        yield db.store("Team notes", create=True)


def quiet(agent: mk.Agent, prompt: str) -> Run:
    return agent.run(prompt, show=False)


def sent(model: Any, request: int) -> list[str]:
    """The texts of a request, in order."""
    blocks = [block for message in model.requests[request]["messages"] for block in message["content"]]
    return [block["text"] for block in blocks if block["type"] == "text"]


def kept(store: mk.Store, run: Run) -> Any:
    return store.connection.run(run.id)


# -- kept --------------------------------------------------------------------------------------------


def test_every_run_of_an_agent_with_a_store_is_kept(store: mk.Store) -> None:
    agent = mk.Agent("scripted", store=store)
    run = quiet(agent, "Remember that it rains")
    record = kept(store, run)
    assert (record.status, record.kind, record.prompt) == ("done", "scripted", "Remember that it rains")
    assert (record.session_id, record.memory_store_ids) == (agent.session_id, (store.id,))
    assert (record.cost_usd, run.cost_usd) == (0.0, 0.0)


def test_without_a_store_and_a_sandbox_nothing_is_kept_and_nothing_is_said_of_it(scripted: Scripted) -> None:
    agent = mk.Agent(client=scripted(reply("Hello.")).client())
    assert quiet(agent, "Hi").ledger is None
    with pytest.raises(InvalidInputError, match="has no database, and no run in it to go on with"):
        agent.resume("run_01m8pass49e00b2k8p55rztrya")


def test_a_run_leads_to_the_one_whose_conversation_it_goes_on_with(store: mk.Store) -> None:
    agent = mk.Agent("scripted", store=store)
    first, second = quiet(agent, "Remember that it rains"), quiet(agent, "What do you know?")
    assert (first.previous_run_id, second.previous_run_id) == (None, first.id)
    assert kept(store, second).previous_run_id == first.id
    agent.reset()
    assert quiet(agent, "What do you know?").previous_run_id is None


def test_messages_that_were_given_are_kept_with_the_run(store: mk.Store) -> None:
    agent = mk.Agent("scripted", store=store)
    quiet(agent, "What do you know?")
    given = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    agent.messages = list(given)
    run = quiet(agent, "What do you know?")
    assert run.previous_run_id is None
    assert store.connection.database.runs.messages(run.id) == given


# -- resumed -----------------------------------------------------------------------------------------


def test_another_agent_goes_on_as_the_same_session(store: mk.Store, scripted: Scripted) -> None:
    create = ToolUse("memory", {"command": "create", "path": "/memories/a.md", "file_text": "a"})
    model = scripted(reply("Hello Ann."), reply(create), reply("Ann."))
    first = mk.Agent(client=model.client(), store=store)
    run = quiet(first, "I am Ann")
    other = mk.Agent(client=model.client(), store=store)
    again = other.resume(run.id, "Who am I? Note it", show=False)
    assert (again.text, again.previous_run_id, other.session_id) == ("Ann.", run.id, first.session_id)
    assert sent(model, 1) == ["I am Ann", "Hello Ann.", "Who am I? Note it"]
    assert store.log()[0].created_by == Actor("session_actor", first.session_id)
    assert other.messages == again.messages


def test_what_was_resumed_goes_on_in_the_next_cell(store: mk.Store, scripted: Scripted) -> None:
    model = scripted(reply("One."), reply("Two."), reply("Three."), reply("Four."))
    run = quiet(mk.Agent(client=model.client(), store=store), "1")
    other = mk.Agent(client=model.client(), store=store)
    second = other.resume(run.id, "2", show=False)
    third = quiet(other, "3")
    assert third.previous_run_id == second.id
    last = mk.Agent(client=model.client(), store=store)
    last.resume(third.id, "4", show=False)
    assert sent(model, 3) == ["1", "One.", "2", "Two.", "3", "Three.", "4"]


def test_without_a_prompt_the_model_answers_what_it_owes_an_answer_to(store: mk.Store, scripted: Scripted) -> None:
    model = scripted(Failure(400, "invalid_request_error", "No"), reply("Here it is."))
    agent = mk.Agent(client=model.client(), store=store)
    with pytest.raises(ModelRequestError):
        quiet(agent, "Answer me")
    assert agent.last_run is not None
    run = mk.Agent(client=model.client(), store=store).resume(agent.last_run.id, show=False)
    assert (run.prompt, run.text, sent(model, 1)) == ("", "Here it is.", ["Answer me"])


def test_where_no_answer_is_due_a_prompt_is_asked_for(store: mk.Store) -> None:
    agent = mk.Agent("scripted", store=store)
    run = quiet(agent, "What do you know?")
    with pytest.raises(InvalidInputError, match="owes no answer") as caught:
        agent.resume(run.id)
    assert caught.value.hint == "Say what to go on with: give a prompt."
    with pytest.raises(InvalidInputError, match="the prompt is blank"):
        agent.resume(run.id, " ")
    assert agent.messages == run.messages, "it goes on as it was"


def test_a_run_that_is_none_or_that_is_alive_is_refused_by_name(store: mk.Store, scripted: Scripted) -> None:
    refused: list[BaseException] = []
    other = mk.Agent("scripted", store=store)

    @beta_tool
    def meddle() -> str:
        """Try to go on with this very run."""
        (going,) = runs.running()
        with pytest.raises(RunRunningError) as caught:
            other.resume(going.id, "And?", show=False)
        refused.append(caught.value)
        return "refused"

    model = scripted(reply(ToolUse("meddle")), reply("Done."))
    run = quiet(mk.Agent(client=model.client(), store=store, tools=[meddle]), "Go")
    assert run.status == "done"
    assert f"run {run.id} is still running" in str(refused[0])
    assert runs.running() == []
    with pytest.raises(RunNotFoundError):
        other.resume("run_01m8pass49e00b2k8p55rztrya")


def test_a_resumed_run_can_go_on_by_itself(store: mk.Store) -> None:
    agent = mk.Agent("scripted", store=store)
    run = quiet(agent, "Remember that it rains")
    again = agent.resume(run.id, "What do you know?", show=False, wait=False).wait(30)
    assert (again.status, again.previous_run_id) == ("done", run.id)


def test_a_prompt_that_no_column_can_hold_is_gone_on_with_as_it_was_sent(store: mk.Store, scripted: Scripted) -> None:
    model = scripted(reply("A zero."), reply("Again."))
    run = quiet(mk.Agent(client=model.client(), store=store), "What is \0?")
    assert kept(store, run).prompt == "What is \ufffd?"
    mk.Agent(client=model.client(), store=store).resume(run.id, "And now?", show=False)
    assert sent(model, 1) == ["What is \0?", "A zero.", "And now?"]


# -- interrupted -------------------------------------------------------------------------------------


class InterruptAt:
    """Ctrl-C at the n-th call of a function of the agent's, as a trace function."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        if f"memkernel{os.sep}agent{os.sep}" in frame.f_code.co_filename:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


def test_a_call_is_answered_as_it_ended_also_where_an_interrupt_comes_before_that_is_told(
    store: mk.Store, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = ToolUse("memory", {"command": "create", "path": "/memories/a.md", "file_text": "a"})
    agent = mk.Agent(client=scripted(reply(create)).client(), store=store)
    as_text, left_over = results.as_text, [KeyboardInterrupt()]

    def interrupted(content: object) -> str:
        if left_over:
            raise left_over.pop()
        return as_text(content)

    monkeypatch.setattr(results, "as_text", interrupted)
    run = quiet(agent, "Go")
    (result,) = run.messages[2]["content"]
    assert (run.status, result["content"]) == ("stopped", "Stopped by the user while this ran; the change was saved.")
    assert [version.path for version in run.changes] == ["/a.md"]


def test_what_an_interrupt_kept_from_the_ledger_is_written_all_the_same(
    store: mk.Store, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = ToolUse("memory", {"command": "create", "path": "/memories/a.md", "file_text": "a"})
    agent = mk.Agent(client=scripted(reply(create)).client(), store=store)
    take = Ledger.take

    def interrupted(ledger: Ledger, event: Event) -> None:
        if isinstance(event, ToolReturned):
            raise KeyboardInterrupt
        take(ledger, event)

    monkeypatch.setattr(Ledger, "take", interrupted)
    run = quiet(agent, "Go")
    database = store.connection.database
    assert run.status == "stopped"
    assert "created success" in run.messages[2]["content"][0]["content"]
    assert event_rows.events_of(database.runs.events(run.id)) == run.events
    assert left(database.runs, kept(store, run)).messages == run.messages


def test_a_run_that_is_interrupted_at_any_moment_is_kept_as_it_ended(store: mk.Store, scripted: Scripted) -> None:
    def answer(body: Any) -> Any:
        path = f"/memories/{uuid.uuid4().hex}.md"
        create = ToolUse("memory", {"command": "create", "path": path, "file_text": "a"})
        return reply("Done.") if len(body["messages"]) > 1 else reply("I note it.", create)

    database, client = store.connection.database, scripted(answers=answer).client()
    number, was_interrupted = 3, True
    while was_interrupted:
        agent, trace, before = mk.Agent(client=client, store=store), InterruptAt(number), sys.gettrace()
        sys.settrace(trace)
        try:
            agent.run("Go", show=False)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        was_interrupted, number = trace.left <= 0, number + 37
        run = agent.last_run
        if run is None or run.ledger is None or not run.ledger.is_kept:
            continue
        record = database.runs.retrieve(run.id)
        assert record.status == run.status in ("stopped", "done"), f"call {number}"
        assert left(database.runs, record).messages == run.messages, f"call {number}"
        made = database.memory_versions.changes_by_call(store.id, run.id)
        told = [str(block.get("content")) for message in run.messages for block in message["content"]]
        assert bool(made) == any("the change was saved" in said or "created success" in said for said in told)
    assert number > 300
