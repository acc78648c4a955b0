"""The SDK's clients for other platforms, really run: an agent with a memory, against a stand-in of each one's wire."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anthropic
import pytest
from anthropic.lib.bedrock import AnthropicBedrock, AnthropicBedrockMantle
from anthropic.lib.google_cloud import AnthropicGoogleCloud
from anthropic.lib.vertex import AnthropicVertex

import memkernel as mk
from memkernel.agent import retry
from memkernel.agent.events import Notice
from memkernel.agent.script import Failure, ToolUse, reply
from memkernel.errors import ModelRequestError
from tests.agent.platforms import MODEL, WIRES, Platform

AWS: Any = {"aws_access_key": "AKIDEXAMPLE", "aws_secret_key": "s", "aws_region": "us-east-1"}
CLIENTS: dict[str, Callable[[str], Any]] = {
    "bedrock": lambda url: AnthropicBedrock(base_url=url, **AWS),
    "bedrock key": lambda url: AnthropicBedrock(base_url=url, api_key="k", aws_region="us-east-1"),
    "mantle": lambda url: AnthropicBedrockMantle(base_url=f"{url}/anthropic", **AWS),
    "vertex": lambda url: AnthropicVertex(base_url=f"{url}/v1", region="us-east5", project_id="p", access_token="t"),
    "foundry": lambda url: anthropic.AnthropicFoundry(base_url=f"{url}/anthropic", api_key="k"),
    "aws": lambda url: anthropic.AnthropicAWS(base_url=url, workspace_id="w", **AWS),
    "google cloud": lambda url: AnthropicGoogleCloud(base_url=url, workspace_id="w", token_provider=lambda: "t"),
    "gateway": lambda url: anthropic.Anthropic(base_url=f"{url}/team/claude", auth_token="of-the-gateway"),
}
REPLIES = [
    reply("I look.", ToolUse("memory", {"command": "view", "path": "/memories"})),
    reply(ToolUse("memory", {"command": "create", "path": "/memories/a.md", "file_text": "It rains.\n"})),
    reply("Noted."),
]

Ask = Callable[..., mk.Agent]


@pytest.fixture(autouse=True)
def _nothing_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith(("ANTHROPIC_", "AWS_", "GOOGLE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(retry, "_FIRST_S", 0.001)


@pytest.fixture
def closing() -> Iterator[list[Any]]:
    made: list[Any] = []
    yield made
    for client in made:
        client.close()


@pytest.mark.parametrize("name", CLIENTS)
def test_an_agent_remembers_through_any_of_the_family(name: str, closing: list[Any], notes: mk.Store) -> None:
    with Platform(WIRES[name], REPLIES) as platform:
        closing.append(CLIENTS[name](platform.url))
        run = mk.Agent(MODEL, client=closing[0], store=notes).run("Note that it rains.", show=False)
    assert (run.status, run.kind, run.text, run.turns) == ("done", "live", "Noted.", 3)
    assert notes.read("/a.md") == "It rains.\n"
    assert len(platform.seen) == 3
    body = platform.seen[0][2]
    assert {tool.get("type") for tool in body["tools"]} == {"memory_20250818"}
    in_path = "model" not in body
    assert in_path == ("(?P<model>" in WIRES[name].path)
    results = platform.seen[2][2]["messages"][-1]["content"]
    assert [block["type"] for block in results] == ["tool_result"]


@pytest.mark.parametrize("name", CLIENTS)
def test_a_platform_that_is_busy_is_asked_again_and_its_words_are_shown(
    name: str, closing: list[Any], notes: mk.Store
) -> None:
    busy = Failure(429, message="Too many requests, please wait.", headers={"retry-after-ms": "1"})
    with Platform(WIRES[name], [busy, reply("Here.")]) as platform:
        closing.append(CLIENTS[name](platform.url))
        run = mk.Agent(MODEL, client=closing[0], store=notes).run("Hello", show=False)
    assert (run.status, run.text, len(platform.seen)) == ("done", "Here.", 2)
    assert [event.text for event in run.events if isinstance(event, Notice)] == [
        "The API answered 429: Too many requests, please wait; trying again in 0.0 s (1 of 2)."
    ]


def test_a_stream_of_bedrock_that_breaks_off_is_asked_for_again(closing: list[Any], notes: mk.Store) -> None:
    """fault 53: Bedrock names its errors in words of its own."""
    call = ToolUse("memory", {"command": "create", "path": "/memories/a.md", "file_text": "Once.\n"})
    broken = reply("Let me", call, breaks="error", error_type="throttlingException")
    with Platform(WIRES["bedrock"], [broken, reply(call), reply("Done.")]) as platform:
        closing.append(CLIENTS["bedrock"](platform.url))
        run = mk.Agent(MODEL, client=closing[0], store=notes).run("Go", show=False)
    assert (run.status, len(platform.seen)) == ("done", 3)
    assert len(notes.log("/a.md")) == 1


def test_what_bedrock_will_not_take_is_raised_at_once(closing: list[Any], notes: mk.Store) -> None:
    broken = reply("Let me", breaks="error", error_type="validationException")
    with Platform(WIRES["bedrock"], [broken]) as platform:
        closing.append(CLIENTS["bedrock"](platform.url))
        agent = mk.Agent(MODEL, client=closing[0], store=notes)
        with pytest.raises(ModelRequestError, match=r"^the API broke off its reply \(validationException\): scripted"):
            agent.run("Go", show=False)
    assert len(platform.seen) == 1


def test_a_client_that_cannot_sign_ends_the_run_in_one_sentence(
    closing: list[Any], notes: mk.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    closing.append(AnthropicBedrock(base_url="http://127.0.0.1:9", aws_region="us-east-1"))
    agent = mk.Agent(MODEL, client=closing[0], store=notes)
    with pytest.raises(ModelRequestError) as caught:
        agent.run("Go", show=False)
    assert str(caught.value) == "the request could not be sent: Could not resolve AWS credentials from session"
    assert agent.last_run
    assert agent.last_run.status == "error"
