"""The scripted model: the Messages API on loopback, as the real SDK and plain HTTP see it."""

from __future__ import annotations

import json
import socket
from typing import Any

import anthropic
import pytest
from anthropic.types import Message, TextBlock

from memkernel.agent import script
from memkernel.agent.script import Failure, Reply, Thinking, ToolUse, reply
from memkernel.agent.scripted import ScriptedModel, stand_in
from tests.fix_agent import Scripted

HELLO: Any = [{"role": "user", "content": "Hello"}]


def ask(client: anthropic.Anthropic, messages: Any = HELLO, system: str = "Be kind.") -> Message:
    return client.messages.create(model="claude-sonnet-5-5", max_tokens=100, messages=messages, system=system)


def test_it_answers_without_streaming_too(scripted: Scripted) -> None:
    model = scripted(reply("Hello ", "there.", ToolUse("look", {"at": 1}, id="toolu_1")))
    answer = ask(model.client())
    assert [block.type for block in answer.content] == ["text", "text", "tool_use"]
    assert (answer.stop_reason, answer.model) == ("tool_use", "claude-sonnet-5-5")
    assert answer.usage.input_tokens > 0 < answer.usage.output_tokens
    assert answer.to_dict()["content"][2] == {  # type: ignore[index]  # to_dict is typed as of objects
        "type": "tool_use",
        "id": "toolu_1",
        "name": "look",
        "input": {"at": 1},
    }


def test_what_streams_is_what_comes_in_one_piece(scripted: Scripted) -> None:
    said = reply(Thinking("hm"), "A text,  with\nspace ", ToolUse("look", {"deep": {"ü": [1, "two"]}}, id="toolu_1"))
    model = scripted(said, said)
    whole = ask(model.client())
    with model.client().messages.stream(model="claude-sonnet-5-5", max_tokens=100, messages=HELLO) as stream:
        streamed = stream.get_final_message()
    assert streamed.to_dict()["content"] == whole.to_dict()["content"]
    assert streamed.stop_reason == whole.stop_reason


def test_events_come_in_the_apis_order() -> None:
    body = {"model": "m", "messages": HELLO}
    kinds = [event["type"] for event in script.events(reply("Two words"), body)]
    assert kinds == [
        *["message_start", "ping", "content_block_start", "content_block_delta", "content_block_delta"],
        *["content_block_stop", "message_delta", "message_stop"],
    ]


@pytest.mark.parametrize(
    ("breaks", "last"), [("error", "error"), ("cut", "content_block_stop"), ("ends", "content_block_stop")]
)
def test_a_reply_that_breaks_has_no_end(breaks: Any, last: str) -> None:
    events = list(script.events(Reply(("Hi",), breaks=breaks), {"messages": HELLO}))
    assert events[-1]["type"] == last
    assert not {"message_delta", "message_stop"} & {event["type"] for event in events}


def test_requests_are_recorded(scripted: Scripted) -> None:
    model = scripted(reply("Hello."))
    ask(model.client(), system="Be brief.")
    (request,) = model.requests
    assert request["system"] == "Be brief."


def test_a_failure_is_an_error_of_the_sdk_with_the_apis_envelope(scripted: Scripted) -> None:
    model = scripted(Failure(401, "authentication_error", "Wrong key"))
    with pytest.raises(anthropic.AuthenticationError) as caught:
        ask(model.client())
    assert (caught.value.type, caught.value.api_message) == ("authentication_error", "Wrong key")
    assert caught.value.body["request_id"] == caught.value.request_id  # type: ignore[index]  # typed as object


def test_a_script_that_is_at_its_end_says_so(scripted: Scripted) -> None:
    model = scripted(reply("Once."))
    ask(model.client())
    with pytest.raises(anthropic.BadRequestError, match="the script has no further reply"):
        ask(model.client())


REFUSED: list[tuple[Any, str]] = [
    ([], "at least one message"),
    ([{"role": "assistant", "content": "Hi"}], "first message must use the user role"),
    ([{"role": "user", "content": []}], "content must not be empty"),
    ([{"role": "user", "content": " "}], "non-whitespace"),
]


@pytest.mark.parametrize(("messages", "complaint"), REFUSED)
def test_it_refuses_what_the_real_api_refuses(scripted: Scripted, messages: Any, complaint: str) -> None:
    with pytest.raises(anthropic.BadRequestError, match=complaint):
        ask(scripted(reply("Hello.")).client(), messages)


def test_tokens_are_counted_roughly(scripted: Scripted) -> None:
    model = scripted()
    few = model.client().messages.count_tokens(model="m", messages=HELLO).input_tokens
    many = model.client().messages.count_tokens(model="m", messages=HELLO, system="x" * 4000).input_tokens
    assert few < 50
    assert many > 1000


def test_it_listens_on_loopback_alone(scripted: Scripted) -> None:
    model = scripted()
    host, _, port = model.url.removeprefix("http://").partition(":")
    assert host == "127.0.0.1"
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} - {"127.0.0.1"}
    for address in others:
        with socket.socket() as probe:
            probe.settimeout(2)
            assert probe.connect_ex((address, int(port))) != 0


def test_no_proxy_stands_between(scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    (block,) = ask(scripted(reply("Hello.")).client()).content
    assert isinstance(block, TextBlock)
    assert block.text == "Hello."


def test_it_stops_and_frees_its_port() -> None:
    with ScriptedModel([]) as model:
        port = int(model.url.rpartition(":")[2])
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
    model.stop()  # once more does nothing


def test_it_stops_while_a_reply_hangs() -> None:
    model = ScriptedModel([reply("Hello", breaks="hangs")])
    model.start()
    client = model.client(max_retries=0, timeout=30)
    stream = client.messages.create(model="m", max_tokens=9, messages=HELLO, stream=True)
    assert next(stream).type == "message_start"
    stream.close()
    model.stop()


def test_the_stand_in_is_one_a_process_and_follows_the_rules() -> None:
    client = stand_in()
    assert client is stand_in()
    (block,) = ask(client).content
    assert isinstance(block, TextBlock)
    assert block.text.startswith("I am a scripted stand-in, not a language model.")


def test_server_sent_events_are_one_line_of_json_each() -> None:
    (event, data, *rest) = script.sse({"type": "ping", "text": "a\nb"}).decode().split("\n")
    assert (event, rest) == ("event: ping", ["", ""])
    assert json.loads(data.removeprefix("data: ")) == {"type": "ping", "text": "a\nb"}
