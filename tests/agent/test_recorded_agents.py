"""`mk.Agent(record=…)` and `mk.Agent(replay=…)` on a real store."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import memkernel as mk
from memkernel.agent import recording
from memkernel.agent.events import Notice
from memkernel.errors import RecordingError

PROMPTS = ["Remember that it rains.", "Remember that it rains.", "Change rains to snows."]


def test_a_conversation_is_recorded_and_replayed_on_another_store(
    notes: mk.Store, sandbox_connection: mk.Connection, tmp_path: Path
) -> None:
    target = tmp_path / "talk.jsonl"
    agent = mk.Agent("scripted", store=notes, record=target)
    said = [agent.start(prompt, show=False).wait().text for prompt in PROMPTS]
    assert recording.load(target).prompts == PROMPTS
    other = sandbox_connection.store("Other notes", create=True)
    replaying = mk.Agent(replay=target, store=other, speed=math.inf)
    runs = [replaying.run(prompt, show=False) for prompt in PROMPTS]
    assert [run.text for run in runs] == said
    assert other.read("/notes.md") == notes.read("/notes.md") == "- it snows\n"
    assert (replaying.kind, runs[0].cost_usd) == ("recorded", 0.0)
    (notice, *_) = [event for event in runs[0].events if isinstance(event, Notice)]
    assert (notice.kind, notice.text) == ("recording", recording.load(target).sentence)


def test_what_does_not_fit_ends_the_run_and_the_conversation_goes_on(notes: mk.Store, tmp_path: Path) -> None:
    target = tmp_path / "run.jsonl"
    mk.Agent("scripted", store=notes, record=target).run(PROMPTS[0], show=False)
    agent = mk.Agent(replay=target, store=notes, speed=math.inf)
    with pytest.raises(RecordingError, match=r"does not fit: a call that worked then failed here \(File /memories"):
        agent.run(PROMPTS[0], show=False)
    assert agent.last_run
    assert agent.last_run.status == "error"
    assert agent.last_run.text == "Nothing about it yet."
    notes.delete("/notes.md")
    assert agent.run(PROMPTS[0], show=False).status == "done"


def test_a_recording_that_cannot_be_written_is_told_after_the_run(notes: mk.Store, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    agent = mk.Agent("scripted", store=notes, record=folder / "run.jsonl")
    folder.rmdir()
    with pytest.raises(RecordingError, match="cannot be written: No such file or directory"):
        agent.run(PROMPTS[0], show=False)
    assert notes.read("/notes.md") == "- it rains\n"
    assert agent.last_run
    assert agent.last_run.text == "I noted it in /memories/notes.md: it rains"
