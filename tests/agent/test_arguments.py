"""The requests that really go out: what limits, long runs and the cache say in them, as the API reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from anthropic import beta_tool
from anthropic.lib.bedrock import AnthropicBedrock
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from memkernel.agent import arguments, cache_marks, long_runs
from memkernel.agent.arguments import as_body
from memkernel.agent.request import Request, declaration
from memkernel.agent.script import Reply, ToolUse, reply
from memkernel.agent.scripted import ScriptedModel
from tests.fix_agent import Scripted

FIVE = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
CLEARING, COMPACTING = "context-management-2025-06-27", "compact-2026-01-12"
GO = [{"role": "user", "content": [{"type": "text", "text": "Go"}]}]

Sent = tuple[dict[str, Any], set[str]]
"""A request's body, and its beta headers."""


@beta_tool
def look() -> str:
    """Look around."""
    return "a tree"


def done(_: object) -> Reply:
    return reply("Done.")


@pytest.fixture
def send(scripted: Scripted) -> Callable[..., Sent]:
    """Send one request of an agent through the SDK's runner, and see what the API got."""
    model = scripted(answers=done)
    client = model.client()

    def _send(messages: list[dict[str, Any]] | None = None, max_tokens: int | None = None, **request: Any) -> Sent:
        given: dict[str, Any] = {"tools": [look], "cache": True, **request}
        return sent(
            model, Request(client, "claude-sonnet-5-5", **given), GO if messages is None else messages, max_tokens
        )

    return _send


def sent(model: ScriptedModel, request: Request, messages: list[dict[str, Any]], max_tokens: int | None) -> Sent:
    asked = arguments.arguments(request, messages, max_tokens)
    runner = request.client.beta.messages.tool_runner(**asked, max_iterations=1, stream=True, thread=False)
    for stream in runner:
        cast("Any", stream).get_final_message()
    headers = model.headers[-1].get("anthropic-beta", "")
    return model.requests[-1], {beta for beta in headers.split(",") if beta}


# -- plain -----------------------------------------------------------------------------------------


def test_a_plain_request_has_no_edits_and_none_of_their_headers(send: Callable[..., Sent]) -> None:
    body, betas = send(cache=False)
    assert "context_management" not in body
    assert "cache_control" not in body
    assert "system" not in body
    assert not betas & {CLEARING, COMPACTING}
    assert body["max_tokens"] == 32_000
    assert body["messages"] == GO


def test_a_reply_is_cut_to_what_the_limits_leave(send: Callable[..., Sent]) -> None:
    body, _ = send(max_tokens=123)
    assert body["max_tokens"] == 123


# -- long runs -------------------------------------------------------------------------------------


def test_clearing_goes_out_with_its_header_and_spares_the_memory(send: Callable[..., Sent]) -> None:
    body, betas = send(options=long_runs.checked({"trigger": 30_000}, False, {}, ["memory", "look"]))
    assert body["context_management"] == {
        "edits": [
            {
                "type": "clear_tool_uses_20250919",
                "trigger": {"type": "input_tokens", "value": 30_000},
                "exclude_tools": ["memory"],
            }
        ]
    }
    assert CLEARING in betas
    assert COMPACTING not in betas


def test_compaction_goes_out_with_its_own_header_alone(send: Callable[..., Sent]) -> None:
    body, betas = send(options=long_runs.checked(False, True, {}))
    assert body["context_management"] == {"edits": [{"type": "compact_20260112"}]}
    assert COMPACTING in betas
    assert CLEARING not in betas


def test_a_persons_own_header_stays(send: Callable[..., Sent]) -> None:
    _, betas = send(options=long_runs.checked(True, True, {"betas": ["context-1m-2025-08-07"]}))
    assert {CLEARING, COMPACTING, "context-1m-2025-08-07"} <= betas


def test_a_compacted_conversation_goes_out_whole_with_its_header(send: Callable[..., Sent]) -> None:
    messages: list[dict[str, Any]] = [
        *GO,
        {"role": "assistant", "content": [{"type": "compaction", "content": "So far."}]},
        *GO,
    ]
    body, betas = send(messages)
    assert body["messages"] == messages
    assert COMPACTING in betas


# -- the cache -------------------------------------------------------------------------------------


def test_the_tools_the_system_prompt_and_the_request_are_marked(send: Callable[..., Sent]) -> None:
    body, _ = send(system="Be brief.", tools=[{"type": "web_search_20250305", "name": "web_search"}, look])
    assert body["cache_control"] == FIVE
    assert body["system"] == [{"type": "text", "text": "Be brief.", "cache_control": FIVE}]
    assert [tool.get("cache_control") for tool in body["tools"]] == [None, FIVE]
    assert body["tools"][1] == {**look.to_dict(), "cache_control": FIVE}


def test_a_marked_tool_still_runs(scripted: Scripted) -> None:
    model = scripted(reply(ToolUse("look")), reply("Seen."))
    asked = arguments.arguments(Request(model.client(), "claude-sonnet-5-5", [look], cache=True), GO, 1_000)
    runner = model.client().beta.messages.tool_runner(**asked, stream=False, thread=False)
    runner.until_done()
    assert model.requests[1]["messages"][-1]["content"][0]["content"] == "a tree"


def test_without_the_cache_nothing_is_marked_but_what_a_person_marked(send: Callable[..., Sent]) -> None:
    body, _ = send(system="Be brief.", cache=False, options={"cache_control": HOUR})
    assert list(marks_of(body)) == [HOUR]
    assert body["system"] == "Be brief."


def test_a_platform_without_a_mark_of_the_request_gets_one_on_the_last_block() -> None:
    client: Any = AnthropicBedrock(aws_access_key="a", aws_secret_key="b", aws_region="eu-west-1")
    with client:
        asked = arguments.arguments(Request(client, "claude-sonnet-5-5", [look], cache=True), GO)
    assert "cache_control" not in asked
    assert asked["messages"][-1]["content"] == [{"type": "text", "text": "Go", "cache_control": FIVE}]


def test_what_would_be_sent_can_be_looked_at(scripted: Scripted) -> None:
    later: Any = {"type": "x", "name": "y"}
    request = Request(scripted().client(), "claude-sonnet-5-5", [look, later], system="S", cache=True)
    body = as_body(arguments.arguments(request, GO))
    assert body["tools"] == [look.to_dict(), {"type": "x", "name": "y", "cache_control": FIVE}]
    assert sorted(body) == ["cache_control", "max_tokens", "messages", "model", "system", "tools"]


# -- whatever a person gives -----------------------------------------------------------------------

MARK = st.sampled_from([None, FIVE, HOUR])


def marked(thing: dict[str, Any], mark: dict[str, Any] | None) -> dict[str, Any]:
    return thing | ({"cache_control": mark} if mark else {})


def tool(mark: dict[str, Any] | None, runs_here: bool) -> Any:
    if runs_here:
        return beta_tool(look.func, cache_control=cast("Any", mark)) if mark else look
    return marked({"type": "web_search_20250305", "name": "web_search"}, mark)


def turn(words: dict[str, Any] | None, call: dict[str, Any] | None, inner: dict[str, Any] | None, n: int) -> Any:
    """What a person said, a call, and its result, each perhaps marked."""
    part = marked({"type": "text", "text": "a tree"}, inner)
    return [
        {"role": "user", "content": [marked({"type": "text", "text": "Go"}, words)]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": f"toolu_{n}", "name": "look", "input": {}}]},
        {
            "role": "user",
            "content": [marked({"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": [part]}, call)],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "Seen."}]},
    ]


def marks_of(value: Any) -> Iterator[Any]:
    """All marks of a body, wherever they are."""
    if isinstance(value, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            if name == "cache_control":
                yield inner
            else:
                yield from marks_of(inner)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from marks_of(inner)


GIVEN = st.fixed_dictionaries(
    {
        "tools": st.lists(st.builds(tool, MARK, st.booleans()), max_size=2, unique_by=type),
        "turns": st.lists(st.tuples(MARK, MARK, MARK), max_size=3),
        "end": MARK,
        "system": st.sampled_from([None, "Be brief."]),
        "cache": st.booleans(),
        "clear": st.booleans(),
        "compact": st.booleans(),
    }
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much], max_examples=60)
@given(GIVEN)
def test_no_request_has_more_than_four_marks_whatever_a_person_gives(
    send: Callable[..., Sent], given: dict[str, Any]
) -> None:
    said: list[dict[str, Any]] = []
    for n, (words, call, inner) in enumerate(given["turns"]):
        said += turn(words, call, inner, n)
    said += GO
    own = {"cache_control": given["end"]} if given["end"] else {}
    options = long_runs.checked(given["clear"], given["compact"], own, ["look"])
    declared = [declaration(one) for one in given["tools"]]
    cache_marks.refuse_too_many(declared, options)
    lasting = [mark.get("ttl") == "1h" for mark in marks_of([*declared, *said, own])]
    assume(lasting == sorted(lasting, reverse=True))  # else the API refuses what the person marked
    assume(given["cache"] or len(lasting) <= 4)
    body, betas = send(said, tools=given["tools"], system=given["system"], cache=given["cache"], options=options)
    theirs, found = list(marks_of([*declared, *said, own])), list(marks_of(body))
    if given["cache"]:
        assert min(4, len(theirs)) <= len(found) <= 4
    else:
        assert sorted(found, key=str) == sorted(theirs, key=str)
    assert ({CLEARING} <= betas, {COMPACTING} <= betas) == (given["clear"], given["compact"])
