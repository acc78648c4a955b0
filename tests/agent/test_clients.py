"""Which clients an agent speaks through, and who answers where none is given."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import pytest
from anthropic.lib.bedrock import AnthropicBedrock, AnthropicBedrockMantle
from anthropic.lib.vertex import AnthropicVertex, AsyncAnthropicVertex

from memkernel.agent import clients
from memkernel.errors import AgentError, InvalidInputError, NoApiKeyError, UnsupportedClientError
from memkernel.models import Settings

KEY: Any = {"api_key": "k"}
AWS: Any = {"aws_region": "us-east-1"}

FAMILY: list[Callable[[], Any]] = [
    lambda: anthropic.Anthropic(**KEY),
    lambda: anthropic.Anthropic(auth_token="t"),
    lambda: AnthropicBedrock(aws_access_key="a", aws_secret_key="s", **AWS),
    lambda: AnthropicBedrockMantle(**KEY, **AWS),
    lambda: AnthropicVertex(region="us-east5", project_id="p", access_token="t"),
    lambda: anthropic.AnthropicFoundry(resource="r", **KEY),
    lambda: anthropic.AnthropicAWS(workspace_id="w", **KEY, **AWS),
]
ASYNC: list[tuple[Callable[[], Any], str]] = [
    (lambda: anthropic.AsyncAnthropic(**KEY), "anthropic.Anthropic(…)"),
    (
        lambda: AsyncAnthropicVertex(region="r", project_id="p", access_token="t"),
        "anthropic.AnthropicVertex(…)",
    ),
    (lambda: anthropic.AsyncAnthropicFoundry(resource="r", **KEY), "anthropic.AnthropicFoundry(…)"),
]


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in [name for name in os.environ if name.startswith("ANTHROPIC_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def closing() -> Iterator[list[Any]]:
    made: list[Any] = []
    yield made
    for client in made:
        client.close()


@pytest.mark.parametrize("make", FAMILY)
def test_the_whole_family_is_accepted(make: Callable[[], Any], closing: list[Any]) -> None:
    client = make()
    closing.append(client)
    assert clients.checked(client) is client
    assert hasattr(client.beta.messages, "tool_runner")


def test_a_subclass_of_ones_own_is_accepted(closing: list[Any]) -> None:
    class Mine(anthropic.Anthropic):
        pass

    client = Mine(api_key="k")
    closing.append(client)
    assert clients.checked(client) is client


@pytest.mark.parametrize(("make", "named"), ASYNC)
def test_an_asynchronous_client_is_refused_with_the_name_of_the_one_to_take(
    make: Callable[[], Any], named: str
) -> None:
    with pytest.raises(UnsupportedClientError) as caught:
        clients.checked(make())
    assert str(caught.value).endswith("is asynchronous, and an agent's loop is not")
    assert caught.value.hint == f"Pass {named} instead."


class OpenAI:
    """A client of another house."""


@pytest.mark.parametrize(
    ("client", "sentence"),
    [
        (OpenAI(), f"{__name__}.OpenAI is no Anthropic client"),
        ("sk-ant-…", "str is no Anthropic client"),
        ({"api_key": "k"}, "dict is no Anthropic client"),
        (object(), "object is no Anthropic client"),
        (anthropic.Anthropic, "anthropic.Anthropic is a class, no client"),
        (anthropic.AsyncAnthropic, "anthropic.AsyncAnthropic is a class, no client"),
    ],
)
def test_anything_else_is_refused_by_name(client: object, sentence: str) -> None:
    with pytest.raises(UnsupportedClientError) as caught:
        clients.checked(client)
    assert caught.value.client is client
    assert str(caught.value).replace("anthropic._client.", "anthropic.") == sentence
    assert caught.value.hint == "Pass anthropic.Anthropic(…), or a client of its family."


@pytest.mark.parametrize(
    ("make", "sentence", "extra"),
    [
        (FAMILY[2], "AnthropicBedrock signs its requests with boto3", "bedrock"),
        (
            lambda: AnthropicVertex(region="us-east5", project_id="p"),
            "AnthropicVertex signs its requests with",
            "vertex",
        ),
        (
            lambda: anthropic.AnthropicAWS(workspace_id="w", aws_access_key="a", aws_secret_key="s", **AWS),
            "AnthropicAWS signs its requests with boto3",
            "bedrock",
        ),
    ],
)
def test_a_client_whose_package_is_missing_is_told_at_once(
    make: Callable[[], Any], sentence: str, extra: str, closing: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(name: str) -> None:
        if name.startswith("google"):
            raise ModuleNotFoundError(name)

    monkeypatch.setattr(clients, "find_spec", nothing)
    closing.append(make())
    with pytest.raises(AgentError, match=sentence) as caught:
        clients.checked(closing[0])
    assert f'pip install "anthropic[{extra}]"' in caught.value.hint


@pytest.mark.parametrize("make", [FAMILY[3], FAMILY[4], FAMILY[6]])
def test_a_client_with_a_key_of_its_own_needs_no_package(
    make: Callable[[], Any], closing: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(_name: str) -> None: ...

    monkeypatch.setattr(clients, "find_spec", nothing)
    closing.append(make())
    assert clients.checked(closing[0]) is closing[0]


def test_a_client_without_a_key_is_refused_before_any_request(closing: list[Any]) -> None:
    closing.append(anthropic.Anthropic())
    with pytest.raises(NoApiKeyError):
        clients.checked(closing[0])


def test_a_client_that_brings_its_own_header_needs_no_key(closing: list[Any]) -> None:
    closing.append(anthropic.Anthropic(default_headers={"X-Api-Key": "of a proxy"}))
    assert clients.checked(closing[0]) is closing[0]


def test_without_key_and_model_the_stand_in_answers() -> None:
    speaker = clients.choose(None, None, Settings())
    assert (speaker.model, speaker.kind) == ("scripted", "scripted")


def test_scripted_asks_no_model_even_with_a_key() -> None:
    assert clients.choose("scripted", None, Settings(api_key="k")).kind == "scripted"
    assert clients.choose(None, None, Settings(api_key="k", model="scripted")).kind == "scripted"


@pytest.mark.parametrize("settings", [Settings(), Settings(demo=True)])
def test_a_model_asked_for_by_name_needs_a_key(settings: Settings) -> None:
    with pytest.raises(NoApiKeyError) as caught:
        clients.choose("claude-sonnet-5-5", None, settings)
    assert caught.value.lines() == [
        "NoApiKeyError: ANTHROPIC_API_KEY is not set",
        'Set it. Without one, replay="demo" (`%agent --replay demo`) shows a recorded run, and model="scripted" '
        "answers a few sentences.",
    ]


def test_a_model_that_the_environment_names_needs_a_key_but_in_a_demonstration() -> None:
    with pytest.raises(NoApiKeyError):
        clients.choose(None, None, Settings(model="claude-sonnet-5-5"))
    assert clients.choose(None, None, Settings(model="claude-sonnet-5-5", demo=True)).kind == "scripted"


def test_a_recording_answers_in_a_models_place_whatever_the_settings() -> None:
    speaker = clients.choose(None, None, Settings(api_key="k", model="claude-sonnet-5-5"), replay="demo", speed=2)
    assert (speaker.model, speaker.kind) == ("scripted", "recorded")
    assert speaker.recording
    assert speaker.recording.name == "demo"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"model": "claude-sonnet-5-5"}, "replay and model cannot both be given"),
        ({"client": anthropic.Anthropic(**KEY)}, "replay and client cannot both be given"),
    ],
)
def test_a_replay_takes_neither_model_nor_client(options: dict[str, Any], sentence: str, closing: list[Any]) -> None:
    closing += [options["client"]] if "client" in options else []
    with pytest.raises(InvalidInputError, match=sentence):
        clients.choose(options.get("model"), options.get("client"), Settings(), replay="demo")


def test_without_a_replay_there_is_no_speed() -> None:
    with pytest.raises(InvalidInputError, match="speed needs a replay"):
        clients.choose("scripted", None, Settings(), speed=2)


@pytest.mark.parametrize("replay", ["", "  ", 3, b"demo"])
def test_a_recording_is_named_by_a_text(replay: Any) -> None:
    with pytest.raises(InvalidInputError, match="a recording is named by a text or a path"):
        clients.choose(None, None, Settings(), replay=replay)


def test_with_a_key_the_default_model_answers(closing: list[Any]) -> None:
    speaker = clients.choose(None, None, Settings(api_key="k", api_base_url="http://127.0.0.1:9"))
    closing.append(speaker.client)
    assert (speaker.model, speaker.kind) == ("claude-sonnet-5-5", "live")
    assert (speaker.client.api_key, str(speaker.client.base_url)) == ("k", "http://127.0.0.1:9")


def test_the_settings_name_a_default_model(closing: list[Any]) -> None:
    speaker = clients.choose(None, None, Settings(api_key="k", model="claude-haiku-5-5"))
    closing.append(speaker.client)
    assert speaker.model == "claude-haiku-5-5"


def test_a_client_that_is_given_is_used_whatever_the_model(closing: list[Any]) -> None:
    closing.append(anthropic.Anthropic(api_key="k"))
    assert clients.choose(None, closing[0], Settings()).model == "claude-sonnet-5-5"
    assert clients.choose("scripted", closing[0], Settings())[:2] == (closing[0], "scripted")


def test_who_answers_through_a_given_client_counts_as_live_whatever_it_is_called(closing: list[Any]) -> None:
    """A gateway may call any model `scripted`: it gets neither that badge nor a sandbox that does not isolate."""
    closing.append(anthropic.Anthropic(api_key="k", base_url="http://127.0.0.1:9"))
    assert clients.choose("scripted", closing[0], Settings()).kind == "live"
    assert clients.choose(None, closing[0], Settings(model="scripted")).kind == "live"


def test_a_login_that_cannot_be_read_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path / "gone"))
    with pytest.raises(AgentError, match="not found") as caught:
        clients.choose(None, None, Settings())
    assert 'model="scripted"' in caught.value.hint
