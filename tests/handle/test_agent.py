"""`mk.Agent`: a person's handle on a model with a memory."""

from __future__ import annotations

import asyncio
import io
import itertools
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import redirect_stdout
from types import FrameType
from typing import Any

import anthropic
import pytest
from anthropic import beta_tool
from anthropic.types.beta import BetaTextBlock

import memkernel as mk
from memkernel import present
from memkernel.agent import conversation
from memkernel.agent.events import Event, RunEnded, RunStarted
from memkernel.agent.run import Run
from memkernel.agent.script import Failure, Reply, ToolUse, reply
from memkernel.errors import AgentError, InvalidInputError, ModelRequestError, NoApiKeyError, UnsupportedClientError
from memkernel.models import Actor
from tests.fix_agent import Scripted


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE", "MEMKERNEL_MODEL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def store(dsn: str) -> Iterator[mk.Store]:
    with mk.connect(dsn) as db:
        yield db.store("Team notes", create=True)


def quiet(agent: mk.Agent, prompt: str) -> Run:
    return agent.run(prompt, show=False)


# -- the memory ------------------------------------------------------------------------------------


def test_an_agent_remembers(store: mk.Store) -> None:
    run = quiet(mk.Agent("scripted", store=store), "Remember that I prefer SI units")
    assert store.read("/notes.md") == "- I prefer SI units\n"
    assert (run.status, run.text) == ("done", "I noted it in /memories/notes.md: I prefer SI units")
    assert "I prefer SI units" in quiet(mk.Agent("scripted", store=store), "What do you remember about units?").text


def test_what_a_run_changed_is_there_to_read(store: mk.Store) -> None:
    agent = mk.Agent("scripted", store=store)
    first, second = quiet(agent, "Remember that it rains"), quiet(agent, "Remember that it snows")
    assert [(version.path, version.operation) for version in first.changes] == [("/notes.md", "created")]
    assert [(version.path, version.operation) for version in second.changes] == [("/notes.md", "modified")]
    assert list(quiet(agent, "What do you know?").changes) == []
    assert hasattr(first.changes, "df")


def test_everything_an_agent_writes_is_by_its_session(store: mk.Store) -> None:
    agent = mk.Agent("scripted", store=store)
    quiet(agent, "Remember that it rains")
    quiet(agent, "Remember that it snows")
    assert re.fullmatch(r"sesn_[0-9a-z]{26}", agent.session_id)
    assert {version.created_by for version in store.log()} == {Actor("session_actor", agent.session_id)}


def test_the_session_can_be_named(store: mk.Store) -> None:
    agent = mk.Agent("scripted", store=store, session_id="sesn_01m8pass49e00b2k8p55rztrya")
    quiet(agent, "Remember that it rains")
    assert str(store.log()[0].created_by) == "sesn_01m8pass49e00b2k8p55rztrya"


@pytest.mark.parametrize("scope", ["../x", "/a", "a/b"])
def test_what_is_no_scope_is_refused_with_what_one_is(store: mk.Store, scope: str) -> None:
    with pytest.raises(InvalidInputError, match="not one segment of a path") as refused:
        mk.Agent("scripted", store=store, scope=scope)
    assert refused.value.hint == "It is a name such as alice: the memories below /alice are what is seen."


def test_a_scope_is_all_that_the_agent_sees(store: mk.Store) -> None:
    store.write("/secret.md", "hidden\n")
    agent = mk.Agent("scripted", store=store, scope="ann")
    assert quiet(agent, "What do you know?").text == "My memory is empty."
    quiet(agent, "Remember that it rains")
    assert store.read("/ann/notes.md") == "- it rains\n"


def test_create_may_overwrite(store: mk.Store, scripted: Scripted) -> None:
    store.write("/a.md", "old")
    create = ToolUse("memory", {"command": "create", "path": "/memories/a.md", "file_text": "new"})
    model = scripted(reply(create), reply("Done."))
    quiet(mk.Agent(store=store, client=model.client(), on_existing="overwrite"), "Go")
    assert store.read("/a.md") == "new"


def test_without_a_store_there_is_no_memory_tool(scripted: Scripted) -> None:
    model = scripted(reply("Hello."))
    run = quiet(mk.Agent(client=model.client()), "Hi")
    assert model.requests[0]["tools"] == []
    assert list(run.changes) == []


# -- who answers -----------------------------------------------------------------------------------


def test_without_a_key_and_a_model_the_stand_in_answers_and_says_so(store: mk.Store) -> None:
    agent = mk.Agent(store=store)
    assert (agent.model, agent.kind) == ("scripted", "scripted")
    run = quiet(agent, "Remember that it rains")
    assert "scripted, not a language model" in str(run)
    assert "scripted, not a language model" in run._repr_mimebundle_()["text/html"]  # pyright: ignore[reportPrivateUsage]  # IPython's protocol
    assert isinstance(run.events[0], RunStarted)
    assert run.events[0].kind == "scripted"


def test_no_key_is_an_error_before_anything_is_sent(store: mk.Store) -> None:
    with pytest.raises(NoApiKeyError) as caught:
        mk.Agent("claude-sonnet-5-5", store=store)
    assert caught.value.lines() == [
        "NoApiKeyError: ANTHROPIC_API_KEY is not set",
        'Set it. Without one, replay="demo" (`%agent --replay demo`) shows a recorded run, and model="scripted" '
        "answers a few sentences.",
    ]


def test_other_clients_are_refused_at_entry(store: mk.Store) -> None:
    with pytest.raises(UnsupportedClientError):
        mk.Agent(store=store, client=object())
    with pytest.raises(UnsupportedClientError) as caught:
        mk.Agent(store=store, client=anthropic.AsyncAnthropic(api_key="k"))
    assert caught.value.hint == "Pass anthropic.Anthropic(…) instead."


def test_the_model_is_asked_by_its_name(scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    model = scripted(reply("1"), reply("2"), reply("3"))
    quiet(mk.Agent("claude-opus-5-5", client=model.client()), "Hi")
    quiet(mk.Agent(client=model.client()), "Hi")
    monkeypatch.setenv("MEMKERNEL_MODEL", "claude-haiku-5-5")
    quiet(mk.Agent(client=model.client()), "Hi")
    assert [request["model"] for request in model.requests] == [
        "claude-opus-5-5",
        "claude-sonnet-5-5",
        "claude-haiku-5-5",
    ]


# -- tools -----------------------------------------------------------------------------------------


@beta_tool
def weather(city: str) -> str:
    """The weather.

    Args:
        city: where
    """
    return f"It rains in {city}."


def test_functions_of_ones_own_are_tools(scripted: Scripted) -> None:
    model = scripted(reply(ToolUse("weather", {"city": "Bern"})), reply("Take an umbrella."))
    run = quiet(mk.Agent(client=model.client(), tools=[weather]), "How is it?")
    assert conversation.blocks(run.messages[2])[0]["content"] == "It rains in Bern."


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"model": ""}, "model is blank"),
        ({"model": 5}, "model is a text, not int"),
        ({"model": "\ud800"}, "model's character 0 is a lone surrogate"),
        ({"store": "memstore_1"}, "store is a memkernel.Store, not str"),
        ({"tools": None}, "tools is a list, not None"),
        ({"tools": "weather"}, "tools is a list, not str"),
        ({"tools": (tool for tool in ())}, None),
        ({"system": 5}, "system is a text, not int"),
        ({"system": " "}, "system is blank"),
        ({"session_id": "nope"}, "session_id is 'nope', which is no session's id"),
        ({"max_turns": 0}, "max_turns is 0, not a whole number of 1 or more"),
        ({"max_turns": "5"}, "max_turns is '5', not a whole number of 1 or more"),
        ({"max_turns": True}, "max_turns is True, not a whole number of 1 or more"),
        ({"max_turns": None}, "max_turns is None, not a whole number of 1 or more"),
        ({"max_tokens": -1}, "max_tokens is -1, not a whole number of 1 or more"),
        ({"max_tokens": 1.5}, "max_tokens is 1.5, not a whole number of 1 or more"),
        ({"options": 5}, "options is a dict, not int"),
        ({"options": {"messages": []}}, "options may not hold 'messages'"),
        ({"options": {"stream": False}}, "options may not hold 'stream'"),
        ({"options": {"extra_body": {"max_tokens": 9}}}, "options['extra_body'] may not hold 'max_tokens'"),
        ({"options": {"temprature": 1}}, "options holds 'temprature', which is no argument of tool_runner"),
        ({"options": {5: 1}}, "options holds 5, which is no argument of tool_runner"),
        ({"options": {"thinking": {"type": "adaptive"}, "extra_body": {"new": 1}}}, None),
        ({"options": None}, None),
    ],
)
def test_every_argument_is_checked_at_entry(given: dict[str, Any], sentence: str | None) -> None:
    arguments: dict[str, Any] = {"model": "scripted", **given}
    if sentence is None:
        mk.Agent(**arguments)
        return
    with pytest.raises(InvalidInputError) as caught:
        mk.Agent(**arguments)
    assert str(caught.value) == sentence


def test_what_is_no_tool_is_refused_at_entry(store: mk.Store) -> None:
    def bare(city: str) -> str:
        return city

    tools: Any = [bare]
    with pytest.raises(InvalidInputError, match=r"^bare is no tool$") as caught:
        mk.Agent("scripted", tools=tools)
    assert caught.value.hint == "Decorate a function with anthropic.beta_tool."
    with pytest.raises(InvalidInputError, match="two tools are called 'memory'"):
        mk.Agent("scripted", store=store, tools=[store.memory_tool()])


# -- the conversation ------------------------------------------------------------------------------


def test_the_conversation_goes_on_until_it_is_reset(scripted: Scripted) -> None:
    model = scripted(reply("Hello Ann."), reply("Ann."), reply("I do not know."))
    agent = mk.Agent(client=model.client())
    quiet(agent, "I am Ann")
    quiet(agent, "Who am I?")
    agent.reset()
    quiet(agent, "Who am I?")
    assert [len(request["messages"]) for request in model.requests] == [1, 3, 1]
    assert agent.messages == agent.last_run.messages if agent.last_run else False


def test_a_refused_prompt_is_not_sent_again(scripted: Scripted) -> None:
    """fault 52"""
    model = scripted(reply("Hello."), reply(stop_reason="refusal"), reply("Fine."))
    agent = mk.Agent(client=model.client())
    quiet(agent, "Hi")
    assert quiet(agent, "Something bad").status == "refused"
    quiet(agent, "Something good")
    sent = [block["text"] for message in model.requests[2]["messages"] for block in message["content"]]
    assert sent == ["Hi", "Hello.", "Something good"]


def test_a_prompt_that_failed_is_not_sent_twice(scripted: Scripted) -> None:
    model = scripted(Failure(400, "invalid_request_error", "No"), reply("Fine."))
    agent = mk.Agent(client=model.client())
    with pytest.raises(ModelRequestError):
        quiet(agent, "Hi")
    assert agent.last_run is not None
    assert agent.last_run.status == "error"
    quiet(agent, "Hi")
    assert len(model.requests[1]["messages"][0]["content"]) == 1


@pytest.mark.parametrize("prompt", ["", "  \n", "\ud800", None, 5, b"Go", ["Go"]])
def test_a_prompt_that_no_model_could_read_is_refused(prompt: Any) -> None:
    agent = mk.Agent("scripted")
    with pytest.raises(InvalidInputError, match="the prompt"):
        quiet(agent, prompt)
    assert (agent.last_run, agent.messages) == (None, [])
    assert quiet(agent, "Hello").status == "done"


def test_a_sink_that_cannot_be_called_is_refused() -> None:
    sink: Any = 5
    with pytest.raises(InvalidInputError, match="the sink cannot be called"):
        mk.Agent("scripted").run("Hi", show=False, sink=sink)


@pytest.mark.parametrize(
    ("messages", "sentence"),
    [
        (None, "messages is a list, not None"),
        ("Hi", "messages is a list, not str"),
        (["Hi"], "messages.0 is no message"),
        ([{"role": "user", "content": "Hi"}, {"role": "robot", "content": "Hi"}], "messages.1 is no message"),
        ([{"role": "user"}], "messages.0 is no message"),
        ([{"role": "user", "content": [BetaTextBlock(type="text", text="Hi")]}], "messages.0 is"),
    ],
)
def test_a_conversation_that_is_none_is_refused_and_can_be_put_right(messages: Any, sentence: str) -> None:
    agent = mk.Agent("scripted")
    agent.messages = messages
    with pytest.raises(InvalidInputError, match=re.escape(sentence)):
        quiet(agent, "Hello")
    agent.messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    assert quiet(agent, "Hello").status == "done"


def test_one_agent_answers_one_prompt_at_a_time(scripted: Scripted) -> None:
    begun, go_on = threading.Event(), threading.Event()

    @beta_tool
    def wait() -> str:
        """Wait."""
        begun.set()
        go_on.wait(30)
        return "waited"

    model = scripted(reply(ToolUse("wait")), reply("Done."))
    agent = mk.Agent(client=model.client(), tools=[wait])
    first = threading.Thread(target=quiet, args=(agent, "Go"))
    first.start()
    assert begun.wait(30)
    with pytest.raises(AgentError, match="running already"):
        quiet(agent, "And?")
    go_on.set()
    first.join(30)
    assert agent.last_run is not None
    assert agent.last_run.text == "Done."


def test_fault_23_run_works_under_a_live_event_loop(store: mk.Store) -> None:
    """fault 23"""

    async def notebook() -> str:
        return quiet(mk.Agent("scripted", store=store), "Remember that it rains").status

    assert asyncio.run(notebook()) == "done"


# -- interrupts --------------------------------------------------------------------------------------


class InterruptAt:
    """Ctrl-C at the n-th call of a function of the agent's, as a trace function."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        name = frame.f_code.co_filename.replace(os.sep, "/")
        if "memkernel/agent/" in name or name.endswith("memkernel/handle/agent.py"):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


def interrupted_run(agent: mk.Agent, number: int) -> InterruptAt:
    trace = InterruptAt(number)
    before = sys.gettrace()
    with redirect_stdout(io.StringIO()):
        sys.settrace(trace)
        try:
            agent.run("Remember that it rains")
        except KeyboardInterrupt:
            assert agent.last_run is None or agent.last_run.status != "running"
        finally:
            sys.settrace(before)
    return trace


@pytest.mark.parametrize("start", range(4))
def test_an_interrupt_at_any_moment_of_a_run_ends_it(scripted: Scripted, start: int) -> None:
    def answer(_: object) -> Reply:
        return reply("As you wish.")

    client = scripted(answers=answer).client()
    for number in itertools.chain(range(1 + start, 60, 4), range(60 + start, 10_000, 28)):
        agent = mk.Agent(client=client)
        trace = interrupted_run(agent, number)
        run = agent.last_run
        assert run is None or run.status in ("stopped", "done"), f"call {number}"
        assert run is None or isinstance(run.events[-1], RunEnded), f"call {number}"
        assert quiet(agent, "And now?").status == "done", f"call {number}"
        if trace.left > 0:
            assert number > 60
            return
    pytest.fail("a run has no end")


def test_a_run_that_cannot_be_shown_ends_as_an_error(store: mk.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Run) -> None:
        raise OSError("no display")

    monkeypatch.setattr(present, "_presenters", {})
    present.register(Run, fail)
    agent = mk.Agent("scripted", store=store)
    with pytest.raises(OSError, match="no display"):
        agent.run("Hello")
    assert agent.last_run is not None
    assert agent.last_run.status == "error"
    assert quiet(agent, "Hello").status == "done"


# -- showing ---------------------------------------------------------------------------------------


def test_in_a_terminal_a_run_is_printed_as_it_goes(store: mk.Store) -> None:
    out = io.StringIO()
    with redirect_stdout(out):
        run = mk.Agent("scripted", store=store).run("Remember that it rains")
    lines = out.getvalue().splitlines()
    assert lines[0] == "[scripted, not a language model]"
    assert "→ memory view /memories" in lines
    assert "→ memory create /memories/notes.md" in lines
    assert "I noted it in /memories/notes.md: it rains" in lines
    assert lines[-1] == f"done · 3 turns · {run.usage}"


def test_a_presenter_is_handed_the_run_before_its_first_event(store: mk.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Event] = []

    def follow(run: Run) -> None:
        run.subscribe(seen.append)

    monkeypatch.setattr(present, "_presenters", {})
    present.register(Run, follow)
    out = io.StringIO()
    with redirect_stdout(out):
        mk.Agent("scripted", store=store).run("Hello")
    assert (type(seen[0]), type(seen[-1]), out.getvalue()) == (RunStarted, RunEnded, "")


def test_a_sink_of_ones_own_gets_every_event(scripted: Scripted) -> None:
    seen: list[Event] = []
    model = scripted(reply("Hello."))
    mk.Agent(client=model.client()).run("Hi", show=False, sink=seen.append)
    assert (type(seen[0]), type(seen[-1])) == (RunStarted, RunEnded)


def test_repr_says_which_model_and_which_memory(store: mk.Store) -> None:
    agent = mk.Agent("scripted", store=store)
    assert repr(agent) == "<memkernel.Agent scripted on team-notes, 0 messages>"
    assert repr(mk.Agent("scripted")) == "<memkernel.Agent scripted, 0 messages>"
