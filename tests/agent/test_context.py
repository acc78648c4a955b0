"""What a context is made of: the parts that the API counts, and that their sum is the whole."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic import beta_tool
from anthropic.lib.bedrock import AnthropicBedrock

from memkernel.agent import context, script
from memkernel.agent.context import ContextPart
from memkernel.agent.script import Failure
from memkernel.errors import AgentError, ModelRequestError
from tests.fix_agent import Scripted

THOUGHT = {"type": "thinking", "thinking": "t" * 400, "signature": "s"}
MEMORY_CALL = {"type": "tool_use", "id": "toolu_1", "name": "memory", "input": {"path": "/memories/" + "p" * 400}}
BASH_CALL: dict[str, Any] = {"type": "tool_use", "id": "toolu_2", "name": "bash", "input": {}}


@beta_tool
def look() -> str:
    """Look around, and come back with what there is to be seen."""
    return "a tree"


def result(call: str, chars: int) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": "r" * chars}


def asked(**more: Any) -> dict[str, Any]:
    """A request with something of each part."""
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "q" * 800},
        {"role": "assistant", "content": [THOUGHT, {"type": "text", "text": "I look."}, MEMORY_CALL, BASH_CALL]},
        {"role": "user", "content": [result("toolu_1", 1200), result("toolu_2", 1600)]},
    ]
    return {"model": "claude-sonnet-5-5", "max_tokens": 10, "messages": messages, "tools": [look], **more}


def counted(scripted: Scripted, **more: Any) -> dict[str, int]:
    return {one.part: one.tokens for one in context.parts(scripted().client(), asked(**more))}


def test_each_part_has_about_its_own_length_in_tokens(scripted: Scripted) -> None:
    found = counted(scripted, system="s" * 2000)
    about = {"system": 500, "prompts": 200, "thinking": 100, "memory results": 300, "other results": 400}
    for part, tokens in about.items():
        assert found[part] == pytest.approx(tokens, abs=25)
    assert found["answers"] == pytest.approx(100, abs=25)  # the calls are the answers' part
    assert found["tools"] > 20


def test_the_sum_is_the_whole(scripted: Scripted) -> None:
    more: dict[str, Any] = {"system": "Be brief.", "thinking": {"type": "enabled", "budget_tokens": 1024}}
    whole = script.count_tokens({**asked(**more), "tools": [look.to_dict()]})
    assert sum(counted(scripted, **more).values()) == pytest.approx(whole, abs=2)


def test_what_is_not_there_takes_nothing(scripted: Scripted) -> None:
    request = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "Go"}], "tools": []}
    found = context.parts(scripted().client(), request)
    assert found[0] == ContextPart("system", 0)
    assert {one.part for one in found if one.tokens} <= {"prompts", "rest"}


def test_a_conversation_that_has_not_begun_has_its_system_prompt_and_tools(scripted: Scripted) -> None:
    found = counted(scripted, messages=[], system="s" * 400)
    assert found["system"] == pytest.approx(100, abs=25)
    assert found["tools"] > 20


def test_a_summary_is_listed_where_there_is_one(scripted: Scripted) -> None:
    spoken = {"role": "assistant", "content": [{"type": "compaction", "content": "c" * 4000}]}
    messages = [spoken, {"role": "user", "content": "Go on"}]
    found = counted(scripted, messages=messages, betas=["compact-2026-01-12"])
    assert found["summary"] == pytest.approx(1000, abs=25)


def test_every_block_is_of_one_part() -> None:
    server: dict[str, Any] = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    found: dict[str, Any] = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": [THOUGHT, server, found]},
    ]
    assert list(context.kinds_of(messages).values()) == ["prompts", "thinking", "answers", "other results"]


def test_the_conversation_is_not_changed(scripted: Scripted) -> None:
    request = asked()
    context.parts(scripted().client(), request)
    assert request == asked()


def test_how_the_api_would_cache_or_shorten_is_not_sent_along(scripted: Scripted) -> None:
    mark = {"type": "ephemeral"}
    edits = {"edits": [{"type": "clear_tool_uses_20250919"}]}
    assert counted(scripted, cache_control=mark, context_management=edits, metadata={}) == counted(scripted)


def test_an_api_that_refuses_is_an_error_of_the_request(scripted: Scripted) -> None:
    client = scripted(Failure(500)).client(base_url="http://127.0.0.1:9", max_retries=0)
    with pytest.raises(ModelRequestError, match="the API cannot be reached"):
        context.parts(client, asked())


def test_a_platform_that_does_not_count_says_so(scripted: Scripted) -> None:
    client: Any = AnthropicBedrock(aws_access_key="a", aws_secret_key="b", aws_region="eu-west-1")
    with client, pytest.raises(AgentError, match="AnthropicBedrock counts no tokens"):
        context.parts(client, asked())
