"""What `mk.Agent` takes of limits, prices, approvals and long runs, and what its requests and runs make of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from anthropic import beta_tool

import memkernel as mk
from memkernel.agent import conversation
from memkernel.agent.events import ApprovalAsked, Event, Notice
from memkernel.agent.limits import RunLimits
from memkernel.agent.script import Reply, ToolUse, reply
from memkernel.errors import InvalidInputError
from tests.fix_agent import Scripted

PATIENCE_S = 30.0


@beta_tool
def look() -> str:
    """Look around."""
    return "a tree"


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_PROFILE",
        "MEMKERNEL_MODEL",
        "MEMKERNEL_PRICES",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def store(dsn: str) -> Iterator[mk.Store]:
    with mk.connect(dsn) as db:
        yield db.store("Team notes", create=True)


WEB: Any = {"type": "web_search_20250305", "name": "web_search"}


def done(_: object) -> Reply:
    return reply("Done.")


def looks(_: object) -> Reply:
    return reply(ToolUse("look"))


def looks_once(body: Any) -> Reply:
    return reply("Done.") if len(body["messages"]) % 4 == 3 else reply(ToolUse("look"))


# -- refused at entry ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"max_turns": 0}, "max_turns is 0"),
        ({"max_total_tokens": -1}, "max_total_tokens is -1"),
        ({"max_cost_usd": float("nan")}, "max_cost_usd is nan"),
        ({"max_time_s": "60"}, "max_time_s is '60'"),
        ({"model": "my-model", "max_cost_usd": 1}, "no price of 'my-model' is known"),
        ({"options": {"speed": "fast"}, "max_cost_usd": 1}, "no price of 'claude-sonnet-5-5' with speed is known"),
        ({"prices": {"my-model": 3}}, r"prices\['my-model'\] is 3, which is no price"),
        ({"approve": "maybe"}, "approve is 'maybe'"),
        ({"approve": {"bash": "ask"}}, "approve names 'bash', which is no tool of this agent"),
        ({"approve": "ask", "tools": [look, WEB]}, "approve cannot be 'ask' for web_search"),
        ({"clear_tool_results": 3}, "clear_tool_results is 3"),
        ({"compaction": {"keep": 3}}, "compaction has no field 'keep'"),
        ({"cache": 1}, "cache is 1"),
        ({"options": {"extra_body": {"x": [{"cache_control": {"type": "ephemeral"}}] * 5}}}, "have 5 cache_control"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_anything_is_sent(
    scripted: Scripted, given: dict[str, Any], why: str
) -> None:
    model = scripted(answers=done)
    usual: dict[str, Any] = {"client": model.client(), "model": "claude-sonnet-5-5", "tools": [look]}
    with pytest.raises(InvalidInputError, match=why):
        mk.Agent(**(usual | given))
    assert model.requests == []


def test_prices_in_the_environment_hold(scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMKERNEL_PRICES", json.dumps({"my-model": [1_000_000, 0]}))
    model = scripted(answers=done)
    run = mk.Agent("my-model", client=model.client(), max_cost_usd=1_000).run("Go", show=False)
    assert run.cost_usd == run.usage.input_tokens
    assert (run.limits.max_cost_usd, run.status) == (1_000, "done")


def test_prices_that_are_given_go_before_those(scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMKERNEL_PRICES", json.dumps({"my-model": [1_000_000, 0]}))
    agent = mk.Agent("my-model", client=scripted(answers=done).client(), prices={"my-model": (2_000_000, 0)})
    run = agent.run("Go", show=False)
    assert run.cost_usd == 2 * run.usage.input_tokens


def test_a_scripted_agent_costs_nothing_and_takes_a_limit_of_cost() -> None:
    run = mk.Agent("scripted", max_cost_usd=0.01).run("Hello", show=False)
    assert (run.kind, run.status, run.cost_usd) == ("scripted", "done", 0.0)


# -- what it does ----------------------------------------------------------------------------------


def test_limits_are_those_of_each_run_alone(scripted: Scripted) -> None:
    model = scripted(answers=looks)
    agent = mk.Agent("claude-sonnet-5-5", client=model.client(), tools=[look], max_turns=2)
    assert agent.limits == RunLimits(max_turns=2)
    for _ in range(2):
        run = agent.run("Go", show=False)
        assert (run.status, run.turns) == ("max_turns", 2)
        assert Notice("max_turns", "Stopped after 2 turns (max_turns). The next prompt goes on.") in run.events


def test_a_person_in_another_thread_is_asked_once_for_the_whole_tool_until_the_conversation_begins_anew(
    scripted: Scripted,
) -> None:
    model = scripted(answers=looks_once)
    agent = mk.Agent("claude-sonnet-5-5", client=model.client(), tools=[look], approve={"look": "ask"})
    asked: list[Event] = []

    def approve(event: Event) -> None:
        if isinstance(event, ApprovalAsked):
            asked.append(event)
            assert agent.last_run is not None
            agent.last_run.approve(event.tool_use_id, whole_tool=True)

    for _ in range(2):
        assert agent.run("Go", show=False, sink=approve).status == "done"
    assert len(asked) == 1
    agent.reset()
    assert agent.run("Go", show=False, sink=approve).status == "done"
    assert len(asked) == 2


def test_a_run_in_the_background_waits_for_its_person(scripted: Scripted) -> None:
    model = scripted(reply(ToolUse("look", id="toolu_1")), reply("Then not."))
    agent = mk.Agent("claude-sonnet-5-5", client=model.client(), tools=[look], approve="ask")
    is_asked = threading.Event()
    run = agent.start("Go", show=False, sink=lambda event: is_asked.set() if isinstance(event, ApprovalAsked) else None)
    assert is_asked.wait(PATIENCE_S)
    (waiting,) = run.approvals.waiting
    assert (waiting.tool_use_id, waiting.name, waiting.input) == ("toolu_1", "look", {})
    run.deny("toolu_1", "not now")
    assert run.wait(PATIENCE_S).text == "Then not."
    assert run.messages[2]["content"][0]["content"] == "Not run: this call was not approved: not now."


def test_the_time_limit_ends_a_run_in_the_background_that_hangs(scripted: Scripted) -> None:
    model = scripted(reply("Once upon", breaks="hangs"))
    agent = mk.Agent("claude-sonnet-5-5", client=model.client(), max_time_s=0.2)
    assert agent.start("Go", show=False).wait(PATIENCE_S).status == "max_time"


# -- the requests ----------------------------------------------------------------------------------


def test_an_ordinary_agents_requests_are_marked_and_nothing_else(scripted: Scripted) -> None:
    model = scripted(reply(ToolUse("look")), reply("Done."))
    agent = mk.Agent("claude-sonnet-5-5", client=model.client(), tools=[look], system="Be brief.")
    preview = agent.preview("Go")
    agent.run("Go", show=False)
    mark = {"type": "ephemeral"}
    for body in model.requests:
        assert body["cache_control"] == body["system"][0]["cache_control"] == body["tools"][0]["cache_control"] == mark
        assert "context_management" not in body
    assert {name: value for name, value in model.requests[0].items() if name != "stream"} == preview


def test_a_long_running_agents_requests_carry_their_edits_and_headers(scripted: Scripted) -> None:
    model = scripted(reply(ToolUse("look")), reply("Done."))
    agent = mk.Agent(
        "claude-sonnet-5-5",
        client=model.client(),
        tools=[look],
        clear_tool_results={"keep": 2, "exclude_tools": ["look"]},
        compaction=True,
        cache=False,
    )
    assert agent.run("Go", show=False).status == "done"
    for body, headers in zip(model.requests, model.headers, strict=True):
        assert body["context_management"]["edits"] == [
            {
                "type": "clear_tool_uses_20250919",
                "keep": {"type": "tool_uses", "value": 2},
                "exclude_tools": ["look"],
            },
            {"type": "compact_20260112"},
        ]
        assert "cache_control" not in json.dumps(body)
        betas = headers["anthropic-beta"].split(",")
        assert {"context-management-2025-06-27", "compact-2026-01-12"} <= set(betas)
        assert len(betas) == len(set(betas))


def test_the_context_is_counted_part_by_part(scripted: Scripted) -> None:
    model = scripted(reply(ToolUse("look")), reply("Done."))
    agent = mk.Agent("claude-sonnet-5-5", client=model.client(), tools=[look], system="Be brief. " * 40)
    agent.run("Go " * 100, show=False)
    before = len(model.requests)
    found = {one.part: one.tokens for one in agent.context()}
    assert found["system"] > 80
    assert found["prompts"] > 60
    assert list(agent.context("And now?").df().columns) == ["part", "tokens"]
    assert len(model.requests) == before
    assert conversation.complaint(agent.messages) is None


# -- with a memory ---------------------------------------------------------------------------------


def create(path: str, call_id: str) -> Reply:
    return reply(ToolUse("memory", {"command": "create", "path": f"/memories{path}", "file_text": "SI"}, id=call_id))


def test_clearing_spares_the_memory_and_the_memory_tool_is_marked_last(scripted: Scripted, store: mk.Store) -> None:
    """FAULTS 54."""
    model = scripted(create("/a.md", "toolu_1"), reply("Done."))
    agent = mk.Agent("claude-sonnet-5-5", client=model.client(), store=store, clear_tool_results=True)
    assert agent.run("Go", show=False).status == "done"
    for body in model.requests:
        (edit,) = body["context_management"]["edits"]
        assert edit == {"type": "clear_tool_uses_20250919", "exclude_tools": ["memory"]}
        assert body["tools"] == [{"type": "memory_20250818", "name": "memory", "cache_control": {"type": "ephemeral"}}]
    assert store.read("/a.md") == "SI"


def test_a_denied_write_saves_nothing_and_an_approved_one_does(scripted: Scripted, store: mk.Store) -> None:
    model = scripted(create("/a.md", "toolu_1"), create("/b.md", "toolu_2"), reply("Done."))
    agent = mk.Agent("claude-sonnet-5-5", client=model.client(), store=store, approve={"memory": "ask"})

    def answer(event: Event) -> None:
        if isinstance(event, ApprovalAsked) and agent.last_run is not None:
            said = agent.last_run.deny if event.tool_use_id == "toolu_1" else agent.last_run.approve
            said(event.tool_use_id)

    run = agent.run("Go", show=False, sink=answer)
    assert [version.path for version in run.changes] == ["/b.md"]
    assert list(run.changes_by("toolu_1")) == []
    assert [record.status for record in store.connection.runs()] == ["done"]


def test_a_run_that_is_stopped_while_it_waits_for_a_person_is_kept_so(scripted: Scripted, store: mk.Store) -> None:
    model = scripted(create("/a.md", "toolu_1"), reply("Then not."))
    agent = mk.Agent("claude-sonnet-5-5", client=model.client(), store=store, approve="ask")
    is_asked = threading.Event()
    run = agent.start("Go", show=False, sink=lambda event: is_asked.set() if isinstance(event, ApprovalAsked) else None)
    assert is_asked.wait(PATIENCE_S)
    run.stop()
    assert run.wait(PATIENCE_S).status == "stopped"
    assert list(run.changes) == []
    kept = store.connection.run(run.id)
    assert (kept.status, kept.turns) == ("stopped", 1)
    again = agent.run("And now?", show=False)
    assert (again.status, again.text) == ("done", "Then not.")


def writes(body: Any) -> Reply:
    return create("/a.md", f"toolu_{len(body['messages'])}")


def test_what_a_limit_ended_is_kept_with_its_cost(scripted: Scripted, store: mk.Store) -> None:
    model = scripted(answers=writes)
    agent = mk.Agent("my-model", client=model.client(), store=store, prices={"my-model": (1_000, 0)}, max_cost_usd=1.5)
    run = agent.run("Go", show=False)
    kept = store.connection.run(run.id)
    assert (run.status, kept.status) == ("max_cost", "max_cost")
    assert kept.cost_usd == pytest.approx(run.cost_usd)
    assert kept.cost_usd == pytest.approx(run.usage.input_tokens / 1_000)
