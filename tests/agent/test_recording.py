"""Recordings: made from a run, kept in a file, replayed by the real client with tools that really run."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from anthropic.tools import BetaLocalFilesystemMemoryTool
from hypothesis import given
from hypothesis import strategies as st

from memkernel.agent import loop, recorder, recording, replay
from memkernel.agent.events import Notice, RunStarted, TextDelta, ToolReturned, TurnEnded, TurnStarted
from memkernel.agent.recorder import Recorder
from memkernel.agent.recording import Answer, Exchange, Recording
from memkernel.agent.run import Run
from memkernel.agent.script import Failure, Reply, Thinking, ToolUse, reply
from memkernel.errors import InvalidInputError, ModelRequestError, RecordingError
from memkernel.models import Usage
from tests.fix_agent import Scripted

PROMPT = "Note what we decided."
NOTES = "/memories/notes.md"
CREATE = ToolUse("memory", {"command": "create", "path": NOTES, "file_text": "Ship on Friday.\n"})
EDIT = ToolUse("memory", {"command": "str_replace", "path": NOTES, "old_str": "Friday", "new_str": "Monday"})
NEVER = ToolUse("memory", {"command": "view", "path": "/memories/absent.md"})
REPLIES = [
    reply(Thinking("Where does it belong?"), "I look.\n\n", NEVER, usage={"input_tokens": 100, "output_tokens": 20}),
    reply("Now I write.", CREATE, EDIT),
    reply("Done: it ships on Monday."),
]

Record = Callable[..., Path]


@pytest.fixture
def memory(tmp_path: Path) -> Callable[[str], BetaLocalFilesystemMemoryTool]:
    return lambda name: BetaLocalFilesystemMemoryTool(str(tmp_path / name))


@pytest.fixture
def record(tmp_path: Path, scripted: Scripted) -> Record:
    """Record the replies to a prompt into a file."""

    def _record(replies: Sequence[Reply | Failure] = REPLIES, prompt: str = PROMPT, **options: Any) -> Path:
        target = tmp_path / "run.jsonl"
        made = Recorder(target, **options)
        play(scripted(*replies).client(), prompt, [BetaLocalFilesystemMemoryTool(str(tmp_path / "first"))], made)
        made.save()
        return target

    return _record


def play(client: Any, prompt: str, tools: Sequence[Any], *sinks: Any, messages: Sequence[Any] = ()) -> Run:
    """A run to its end; one that fails keeps its error."""
    run = Run(prompt, model="claude-sonnet-5-5", messages=messages)
    for sink in sinks:
        run.subscribe(sink)
    with suppress(RecordingError, ModelRequestError), loop.ending(run):
        loop.play(run, loop.Request(client, run.model, tools))
    return run


# -- record and replay ---------------------------------------------------------------------------


def test_a_replay_is_the_same_run_and_its_calls_really_run(record: Record, memory: Any, tmp_path: Path) -> None:
    loaded = recording.load(record())
    first = tmp_path / "first" / "memories" / "notes.md"
    assert first.read_text() == "Ship on Monday.\n"
    run = play(replay.client(loaded), loaded.prompt, [memory("second")])
    assert (run.status, run.text, run.turns) == ("done", "Done: it ships on Monday.", 3)
    assert (tmp_path / "second" / "memories" / "notes.md").read_text() == first.read_text()
    assert run.usage.input_tokens > 100
    again = Recorder(tmp_path / "again.jsonl")
    play(replay.client(loaded, math.inf), loaded.prompt, [memory("third")], again)
    assert again.recording
    assert again.recording.exchanges[0].answers[1].blocks == loaded.exchanges[0].answers[1].blocks


def test_a_recording_says_who_answered_and_what_it_needs(record: Record) -> None:
    loaded = recording.load(record(on_existing="overwrite"))
    assert (loaded.name.endswith("run.jsonl"), loaded.model, loaded.kind) == (True, "claude-sonnet-5-5", "live")
    assert (loaded.prompt, loaded.tools, loaded.on_existing) == (PROMPT, ["memory"], "overwrite")
    assert loaded.sentence == (
        f"A recording of claude-sonnet-5-5 from {loaded.made_at:%Y-%m-%d}: its answers are played again, "
        "its tools really run."
    )


def test_the_file_has_one_line_a_reply_and_no_id_or_signature(record: Record) -> None:
    lines = [json.loads(line) for line in record().read_text().splitlines()]
    assert [next(iter(line)) for line in lines] == ["recording", "prompt", "reply", "reply", "reply"]
    assert lines[2]["reply"] == [
        {"thinking": "Where does it belong?", "type": "thinking"},
        {"text": "I look.\n\n", "type": "text"},
        {"input": NEVER.input, "name": "memory", "type": "tool_use"},
    ]
    assert (lines[2]["usage"], lines[2]["failed"]) == ({"input_tokens": 100, "output_tokens": 20}, [0])
    assert lines[3]["failed"] == []


def test_a_conversation_is_one_recording(record: Record, scripted: Scripted, memory: Any, tmp_path: Path) -> None:
    """Prompts that come twice have their replies in order."""
    target, tool = tmp_path / "talk.jsonl", memory("talk")
    made = Recorder(target)
    client = scripted(reply("One."), reply("Two."), reply("Three.")).client()
    messages: list[Any] = []
    for prompt in ("Go on", "What?", "Go on"):
        messages = play(client, prompt, [tool], made, messages=messages).messages
    made.save()
    loaded = recording.load(target)
    assert loaded.prompts == ["Go on", "What?", "Go on"]
    heard: list[str] = []
    messages = []
    answering = replay.client(loaded)
    for prompt in loaded.prompts:
        run = play(answering, prompt, [tool], messages=messages)
        messages = run.messages
        heard.append(run.text)
    assert heard == ["One.", "Two.", "Three."]


def test_every_replay_has_calls_of_its_own(record: Record, memory: Any) -> None:
    loaded = recording.load(record())
    runs = [play(replay.client(loaded), PROMPT, [memory(name)]) for name in ("a", "b")]
    ids = [{event.tool_use_id for event in run.events if isinstance(event, ToolReturned)} for run in runs]
    assert len(ids[0]) == len(ids[1]) == 3
    assert ids[0].isdisjoint(ids[1])


def test_a_retried_turn_is_recorded_once(record: Record) -> None:
    broken = reply("Half a ", breaks="cut")
    loaded = recording.load(record([broken, Failure(529, headers={"retry-after-ms": "1"}), reply("Whole.")]))
    assert [answer.blocks for answer in loaded.exchanges[0].answers] == [[{"text": "Whole.", "type": "text"}]]


def test_what_a_stop_cut_off_is_not_recorded(tmp_path: Path) -> None:
    made = Recorder(tmp_path / "run.jsonl")
    for event in (RunStarted("run_1", PROMPT, "m"), TurnStarted(1), TextDelta("Half")):
        made(event)
    made.save()
    assert made.recording is None
    assert not made.path.exists()


def test_the_pace_is_recorded_and_a_speed_divides_it(tmp_path: Path, scripted: Scripted) -> None:
    ticks = iter(range(100))
    made = Recorder(tmp_path / "run.jsonl", clock=lambda: next(ticks) / 4)
    play(scripted(reply("One two three")).client(), PROMPT, [], made)
    assert made.recording
    (answer,) = made.recording.exchanges[0].answers
    assert (answer.wait_ms, answer.took_ms) == (250, 250)
    body = {"messages": [{"role": "user", "content": PROMPT}]}
    paces = [replay.answer(made.recording, speed, body) for speed in (1.0, 2.0, math.inf)]
    assert [pace.wait_s for pace in paces if isinstance(pace, Reply)] == [0.25, 0.125, 0.0]
    assert [pace.pause_s > 0 for pace in paces if isinstance(pace, Reply)] == [True, True, False]


@pytest.mark.parametrize("speed", [0, -1, math.nan, True, "2", None])
def test_a_speed_that_is_none_is_refused(record: Record, speed: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^speed is .*, not a number above 0$"):
        replay.client(recording.load(record()), speed)


# -- what does not fit ---------------------------------------------------------------------------


def failed(run: Run) -> str:
    """The sentence that a replay ended with; the person and the raised error have the same."""
    assert run.status == "error"
    assert isinstance(run.error, RecordingError)
    notices = [event.text for event in run.events if isinstance(event, Notice) and event.kind != "recording"]
    assert [notice.lower() for notice in notices] == [str(run.error).lower()]
    return re.sub(r"/\S+/run", "run", str(run.error))


def test_another_prompt_is_refused_with_the_one_that_it_knows(record: Record, memory: Any) -> None:
    run = play(replay.client(recording.load(record())), "Write a poem", [memory("x")])
    assert failed(run) == f"the recording run.jsonl has no answer to this prompt, only to “{PROMPT}”"


def test_a_tool_that_is_missing_is_named_before_anything_is_done(record: Record) -> None:
    run = play(replay.client(recording.load(record())), PROMPT, [])
    assert failed(run) == "the recording run.jsonl calls the tool memory, which this agent does not have"
    assert run.turns == 0


def test_a_call_that_worked_then_and_fails_now_ends_the_replay(record: Record, memory: Any, tmp_path: Path) -> None:
    loaded = recording.load(record())
    (tmp_path / "used" / "memories").mkdir(parents=True)
    (tmp_path / "used" / "memories" / "notes.md").write_text("Of somebody else.\n")
    run = play(replay.client(loaded), PROMPT, [memory("used")])
    assert failed(run) == (
        "the recording run.jsonl does not fit: a call that worked then failed here "
        "(File /memories/notes.md already exists)"
    )


def test_a_recording_that_ends_early_says_so(record: Record, memory: Any) -> None:
    loaded = recording.load(record([*REPLIES[:2], Failure(401, "authentication_error")]))
    run = play(replay.client(loaded), PROMPT, [memory("x")])
    assert failed(run) == "the recording run.jsonl ends here: there is no further reply in it"
    assert run.turns == 2


# -- files ---------------------------------------------------------------------------------------


def test_a_recording_is_replaced_and_no_other_file(record: Record, tmp_path: Path) -> None:
    assert Recorder(record()).path.exists()
    other = tmp_path / "thesis.ipynb"
    other.write_text("{}")
    with pytest.raises(RecordingError, match="is there already, and is no recording"):
        Recorder(other)
    assert other.read_text() == "{}"


@pytest.mark.parametrize("path", [None, 3, "", "  ", b"run.jsonl", "run\0.jsonl"])
def test_a_path_that_is_none_is_refused(path: Any) -> None:
    with pytest.raises(InvalidInputError, match="a recording goes into a file"):
        Recorder(path)


def test_a_folder_that_is_not_there_is_told_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="cannot be written") as caught:
        Recorder(tmp_path / "absent" / "run.jsonl")
    assert caught.value.hint == "Its folder has to be there, and writable."
    with pytest.raises(RecordingError, match="is there already"):
        Recorder(tmp_path)


def test_a_folder_that_goes_away_meanwhile_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    made = Recorder(folder / "run.jsonl")
    for event in (RunStarted("run_1", PROMPT, "m"), TurnStarted(1), TurnEnded(1, "end_turn", Usage())):
        made(event)
    folder.rmdir()
    with pytest.raises(RecordingError, match="cannot be written: No such file or directory"):
        made.save()


def test_a_recording_and_a_replay_at_once_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="replay and record cannot both be given"):
        recorder.recorder(tmp_path / "run.jsonl", "demo")
    assert recorder.recorder(None, "demo") is None
    made = recorder.recorder(str(tmp_path / "run.jsonl"), None)
    assert made
    assert made.path == tmp_path / "run.jsonl"


def test_keys_are_masked(tmp_path: Path, scripted: Scripted) -> None:
    made = Recorder(tmp_path / "run.jsonl")
    secret = "sk-ant-api03-abc_DEF-123"
    play(scripted(reply(f"Your key is {secret}.")).client(), f"Keep {secret}", [], made)
    made.save()
    assert secret not in made.path.read_text()
    assert recording.load(made.path).prompt == "Keep sk-ant-…"


def test_an_unknown_name_is_told_with_those_that_are_there() -> None:
    with pytest.raises(RecordingError, match=r"^there is no recording nowhere$") as caught:
        recording.load("nowhere")
    assert caught.value.hint.startswith("Those that come with memkernel: ")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "it is empty"),
        ("\n\n", "its line 1 is no line of one"),
        ("{}", "its line 1 is no line of one"),
        ("[]", "its line 1 is no line of one"),
        ('{"nbformat": 4}', "its line 1 is no line of one"),
        ("PNG\0", "its line 1 is no line of one"),
    ],
)
def test_a_file_of_another_kind_is_told(tmp_path: Path, content: str, why: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(content)
    with pytest.raises(RecordingError) as caught:
        recording.load(path)
    assert str(caught.value) == f"{path} is no recording: {why}"


HEADER: dict[str, Any] = {
    "recording": 1,
    "model": "m",
    "kind": "live",
    "made_at": "2026-12-01T00:00:00+00:00",
    "on_existing": "error",
}
ANSWER: dict[str, Any] = {"reply": [], "stop_reason": "end_turn", "usage": {}, "pauses_ms": [0, 0], "failed": []}


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([HEADER], "there is no reply to its prompt"),
        ([HEADER, {"prompt": "Go"}], "there is no reply to its prompt"),
        ([HEADER, ANSWER], "its line 2 is no line of one"),
        ([HEADER, {"prompt": 3}], "its line 2 is no line of one"),
        ([HEADER | {"kind": "human"}, {"prompt": "Go"}, ANSWER], "its line 1 is no line of one"),
        ([HEADER | {"made_at": 3}, {"prompt": "Go"}, ANSWER], "its line 1 is no line of one"),
        ([HEADER, {"prompt": "Go"}, {**ANSWER, "usage": None}], "its line 3 is no line of one"),
        ([HEADER, {"prompt": "Go"}, ANSWER | {"reply": [3]}], "its line 3 is no line of one"),
        ([HEADER, {"prompt": "Go"}, ANSWER | {"reply": [{"type": "text"}]}], "its line 3 is no line of one"),
        ([HEADER, {"prompt": "Go"}, ANSWER | {"reply": [{"type": "tool_use"}]}], "its line 3 is no line of one"),
        ([HEADER, {"prompt": "Go"}, ANSWER | {"pauses_ms": [1]}], "its line 3 is no line of one"),
        ([HEADER, {"prompt": "Go"}, ANSWER | {"pauses_ms": ["1", 2]}], "its line 3 is no line of one"),
    ],
)
def test_a_line_that_is_none_is_told_by_its_number(lines: list[Any], why: str) -> None:
    content = "\n".join(map(json.dumps, lines)).encode()
    with pytest.raises(RecordingError, match=f"x is no recording: {why}"):
        recording.parsed(content, "x")


def test_a_newer_format_is_told() -> None:
    with pytest.raises(RecordingError, match="x is a recording of format 2, and this memkernel reads 1") as caught:
        recording.parsed(json.dumps(HEADER | {"recording": 2}).encode(), "x")
    assert caught.value.hint == "Record it again, or install a newer memkernel."


texts = st.text(st.characters(), max_size=20)  # lone surrogates and controls included
answers = st.builds(
    Answer,
    st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": texts}), max_size=3),
    st.none() | texts,
    st.dictionaries(texts, st.integers(0, 10**6), max_size=2),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.lists(st.integers(0, 5), max_size=2),
)
exchanges = st.lists(st.builds(Exchange, texts, st.lists(answers, min_size=1, max_size=3)), min_size=1, max_size=3)


@given(exchanges, texts)
def test_what_is_written_is_read_again(made: list[Exchange], model: str) -> None:
    whole = Recording("x", model, "scripted", datetime(2026, 12, 1, tzinfo=UTC), made, "overwrite")
    content = recording.dumped(whole)
    assert recording.parsed(content, "x") == whole


@given(st.binary(max_size=200))
def test_garbage_is_always_told_in_one_sentence(content: bytes) -> None:
    with pytest.raises(RecordingError, match=r"^x is no recording: "):
        recording.parsed(content, "x")
