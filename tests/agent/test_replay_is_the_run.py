"""Whatever a model said: its recording, replayed, is the same run again, and its tools run again."""

from __future__ import annotations

import math
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from anthropic import beta_tool
from anthropic.lib.tools import ToolError
from hypothesis import given, settings
from hypothesis import strategies as st

from memkernel.agent import loop, recording, replay
from memkernel.agent.events import Event, RunEnded, RunStarted, ToolCalled, ToolReturned, TurnEnded
from memkernel.agent.recorder import Recorder
from memkernel.agent.run import Run
from memkernel.agent.script import Reply, Thinking, ToolUse, reply
from memkernel.agent.scripted import ScriptedModel, stand_in

PROMPT = "Work."


@beta_tool
def work(text: str) -> str:
    """Work on a text.

    Args:
        text: what to work on; "no" does not work
    """
    if text == "no":
        raise ToolError(text)
    return text.upper()


words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30).filter(str.strip)


@st.composite
def calls(draw: st.DrawFn) -> ToolUse:
    return ToolUse("work", {"text": draw(words | st.just("no"))})


@st.composite
def working(draw: st.DrawFn) -> Reply:
    """A reply with a call at its end."""
    before = draw(st.lists(words | st.builds(Thinking, words) | calls(), max_size=3))
    return Reply((*before, draw(calls())))


@st.composite
def ending(draw: st.DrawFn) -> Reply:
    """A reply that ends its run. What a model said before it refused is kept nowhere: here it says nothing."""
    reason = draw(st.sampled_from([None, "max_tokens", "stop_sequence", "model_context_window_exceeded", "refusal"]))
    return Reply(() if reason == "refusal" else (draw(words),), stop_reason=reason)


def play(client: Any, *sinks: Any) -> Run:
    run = Run(PROMPT, model="m")
    for sink in sinks:
        run.subscribe(sink)
    loop.play(run, loop.Request(client, run.model, [work]))
    return run


def told(event: Event) -> Any:
    """An event without what is each run's own: ids, durations, how many tokens somebody counted."""
    match event:
        case RunStarted() | RunEnded():
            return type(event).__name__
        case ToolCalled(name=name, input=given):
            return name, given
        case ToolReturned(name=name, content=content, is_error=is_error):
            return name, content, is_error
        case TurnEnded(turn=turn, stop_reason=reason):
            return turn, reason
        case _:
            return _without_ids(event)


def _without_ids(event: Any) -> Any:
    if hasattr(event, "content"):
        return [{**block, "id": "", "signature": ""} for block in event.content]
    return event


@pytest.fixture(scope="module")
def model() -> Any:
    with ScriptedModel() as serving:
        yield serving


@settings(max_examples=10, deadline=None)
@given(st.lists(working(), max_size=3), ending())
def test_a_replay_is_the_run_again(model: ScriptedModel, worked: list[Reply], end: Reply) -> None:
    model.follow([*worked, end])
    with TemporaryDirectory() as folder:
        made = Recorder(Path(folder) / "run.jsonl")
        run = play(model.client(), made)
        made.save()
        loaded = recording.load(made.path)
    again = play(replay.client(loaded, math.inf))
    assert list(map(told, again.events)) == list(map(told, run.events))
    assert (again.status, again.text, again.turns, again.usage) == (run.status, run.text, run.turns, run.usage)


SEARCH: list[dict[str, Any]] = [
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "rain"}},
    {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [
            {"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": "e", "page_age": None}
        ],
    },
    {
        "type": "text",
        "text": "It rains.",
        "citations": [{"type": "char_location", "cited_text": "x", "document_index": 0, "document_title": None}],
    },
]


def test_what_the_api_itself_did_is_replayed_as_it_came(model: ScriptedModel, tmp_path: Path) -> None:
    model.follow([reply(*SEARCH)])
    made = Recorder(tmp_path / "run.jsonl")
    run = play(model.client(), made)
    made.save()
    again = play(replay.client(recording.load(made.path)))
    assert again.text == run.text == "It rains."
    assert [block["type"] for block in again.messages[-1]["content"]] == [block["type"] for block in SEARCH]


def test_a_replay_is_stopped_in_a_long_pause(model: ScriptedModel, tmp_path: Path) -> None:
    ticks = iter([0.0, 0.0, 0.0, 900.0, 900.0, 900.0])
    model.follow([reply("After a quarter of an hour.")])
    made = Recorder(tmp_path / "run.jsonl", clock=lambda: next(ticks))
    play(model.client(), made)
    assert made.recording
    assert made.recording.exchanges[0].answers[0].wait_ms == 900_000
    run = Run(PROMPT, model="m")
    request = loop.Request(replay.client(made.recording), run.model, [work])
    thread = threading.Thread(target=loop.play, args=(run, request))
    thread.start()
    run.stop()
    thread.join()
    assert run.status == "stopped"


def test_recordings_answer_side_by_side(model: ScriptedModel, tmp_path: Path) -> None:
    """One server answers them all: each client has its own address there."""
    clients: list[Any] = [stand_in()]
    for name in ("one", "two"):
        model.follow([reply(name)])
        made = Recorder(tmp_path / f"{name}.jsonl")
        play(model.client(), made)
        assert made.recording
        clients.append(replay.client(made.recording))
    assert [play(client).text[:3] for client in clients] == ["I a", "one", "two"]
    assert len({client.base_url.port for client in clients}) == 1
    count = clients[1].beta.messages.count_tokens(model="m", messages=[{"role": "user", "content": PROMPT}])
    assert count.input_tokens > 0
