"""What bad input gets: a clear end, the transcript kept, nothing half-written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from anthropic import beta_tool
from anthropic.lib.tools import ToolError

import memkernel as mk
from memkernel.agent import conversation
from memkernel.agent.events import Notice, ToolReturned
from memkernel.agent.run import Run
from memkernel.agent.script import Failure, ToolUse, reply
from memkernel.errors import InvalidInputError, ModelRequestError, NoApiKeyError, StoreNotFoundError
from tests.fix_agent import Scripted


@pytest.fixture
def store(dsn: str) -> Iterator[mk.Store]:
    with mk.connect(dsn) as db:
        yield db.store("Team notes", create=True)


def memory(**given: Any) -> ToolUse:
    return ToolUse("memory", given)


def is_taken(run: Run) -> bool:
    """Whether the API takes the run's conversation, with a prompt at its end."""
    return conversation.complaint(conversation.asked(run.messages, "And now?")) is None


def test_no_key_is_one_line_and_the_offline_way(store: mk.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(NoApiKeyError) as caught:
        mk.Agent("claude-sonnet-5-5", store=store)
    what, hint = caught.value.lines()
    assert what == "NoApiKeyError: ANTHROPIC_API_KEY is not set"
    assert 'replay="demo"' in hint
    assert list(store.connection.runs()) == []


def test_a_wrong_models_name_ends_the_run_which_is_kept(store: mk.Store, scripted: Scripted) -> None:
    model = scripted(Failure(404, "not_found_error", "model: claude-sonet-5-5"))
    agent = mk.Agent("claude-sonet-5-5", client=model.client(), store=store)
    with pytest.raises(ModelRequestError) as caught:
        agent.run("Hi", show=False)
    assert caught.value.lines() == [
        "ModelRequestError: the API answered 404 (not_found_error): model: claude-sonet-5-5",
        "Check the model's name, and the client's base_url if it has one.",
    ]
    (record,) = store.connection.runs()
    assert (record.status, record.turns) == ("error", 0)
    assert record.error == "the API answered 404 (not_found_error): model: claude-sonet-5-5"
    assert len(model.requests) == 1
    assert agent.messages == []


@pytest.mark.parametrize(
    "returned",
    [
        *(5, 1.5, True, b"bytes", {"type": "text", "text": "no list"}, object()),
        *([1], [{"no": "type"}], [{"type": "text"}], [{"type": "image"}], [{"type": "document", "source": "a.pdf"}]),
    ],
)
def test_a_tool_that_returns_nonsense_is_told_to_the_model_and_does_no_harm(returned: Any, scripted: Scripted) -> None:
    @beta_tool
    def strange() -> Any:
        """Return something."""
        return returned

    model = scripted(reply(ToolUse("strange")), reply("I see."))
    run = mk.Agent(client=model.client(), tools=[strange]).run("Go", show=False)
    (result,) = run.messages[2]["content"]
    assert result["is_error"]
    assert result["content"].startswith("The tool returned ")
    assert result["content"].endswith(", which is neither text nor a list of content blocks.")
    assert (run.status, is_taken(run)) == ("done", True)


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        (None, ""),
        ("", ""),
        ([], []),
        ([{"type": "text", "text": ""}, {"type": "text", "text": " \n"}], []),
        ("half \ud800 a pair", "half ? a pair"),
        (({"type": "text", "text": "one"},), [{"type": "text", "text": "one"}]),
    ],
)
def test_what_a_tool_may_return(returned: Any, told: Any, scripted: Scripted) -> None:
    @beta_tool
    def some() -> Any:
        """Return something."""
        return returned

    model = scripted(reply(ToolUse("some")), reply("I see."))
    run = mk.Agent(client=model.client(), tools=[some]).run("Go", show=False)
    assert [block["content"] for block in run.messages[2]["content"]] == [told]
    assert model.requests[1]["messages"][2]["content"][0]["content"] == told


class UnspeakableError(Exception):
    def __repr__(self) -> str:
        raise RuntimeError("not even this")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("no such city"), "ValueError('no such city')"),
        (ToolError("No such city."), "No such city."),
        (ToolError(""), "The tool failed and said nothing."),
        (ToolError([]), "The tool failed and said nothing."),
        (ToolError([{"type": "text", "text": "Half"}, {"type": "text", "text": "done"}]), "Half\ndone"),
        (UnspeakableError(), "UnspeakableError"),
    ],
)
def test_a_tool_that_raises_is_told_to_the_model_in_words_that_the_api_takes(
    error: Exception, told: str, scripted: Scripted
) -> None:
    @beta_tool
    def fail() -> str:
        """Fail."""
        raise error

    model = scripted(reply(ToolUse("fail")), reply("I see."))
    run = mk.Agent(client=model.client(), tools=[fail]).run("Go", show=False)
    (result,) = run.messages[2]["content"]
    assert (result["content"], result["is_error"]) == (told, True)
    assert (run.status, is_taken(run)) == ("done", True)


def test_an_empty_prompt_begins_no_run(store: mk.Store) -> None:
    with pytest.raises(InvalidInputError, match="the prompt is blank"):
        mk.Agent("scripted", store=store).run(" ", show=False)
    assert list(store.connection.runs()) == []


def test_a_store_deleted_in_mid_run_ends_it_clearly_and_the_transcript_stays(
    store: mk.Store, scripted: Scripted
) -> None:
    def answer(body: Any) -> Any:
        if len(body["messages"]) > 1:
            store.drop()
        name = "a" if len(body["messages"]) == 1 else "b"
        return reply(f"I note {name}.", memory(command="create", path=f"/memories/{name}.md", file_text=name))

    database = store.connection.database
    agent = mk.Agent(client=scripted(answers=answer).client(), store=store)
    with pytest.raises(StoreNotFoundError):
        agent.run("Go", show=False)
    run = agent.last_run
    assert run is not None
    assert (run.status, run.turns) == ("error", 2)
    told = [event.content for event in run.events if isinstance(event, ToolReturned)]
    assert told == [
        "File created successfully at: /memories/a.md",
        "Memory is unavailable right now; nothing was changed.",
    ]
    assert [event.kind for event in run.events if isinstance(event, Notice)] == ["error"]
    assert is_taken(run)
    record = database.runs.retrieve(run.id)
    assert (record.status, record.memory_store_ids) == ("error", (store.id,))
    assert database.runs.events(run.id)[-1].type == "run_ended"
    assert list(run.changes) == []
