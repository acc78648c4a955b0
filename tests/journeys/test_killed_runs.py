"""An agent whose process is killed, at any moment: what it saved leads to its calls, and the conversation goes on."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from memkernel.agent import conversation, event_rows
from memkernel.agent.events import RunEnded, ToolCalled, ToolReturned
from memkernel.agent.ledger import left
from memkernel.agent.script import Reply, ToolUse, reply
from memkernel.agent.scripted import ScriptedModel
from memkernel.store import Database

CALLS, KILLS = 100, 10
SESSION = "sesn_01m8pass49e00b2k8p55rztrya"
PROGRAM = Path(__file__).with_name("killed_agent.py")
PATIENCE_S = 60.0


class CountingModel:
    """Asks for the next call until there were a hundred, one or two a turn; tells somebody of each request."""

    def __init__(self) -> None:
        self.told: Callable[[int], None] = lambda _: None
        self.calls = CALLS

    def __call__(self, body: Mapping[str, Any]) -> Reply:
        calls = [block["id"] for message in body["messages"] for block in conversation.tool_uses(message)]
        made = len(calls)
        self.told(made)
        if made >= self.calls:
            return reply("All are done.")
        return reply("On.", *(create(number) for number in range(made, min(self.calls, made + 1 + made % 3 % 2))))


def create(number: int) -> ToolUse:
    """A call that changes the store: it writes a new memory, or edits the one before."""
    if number % 4 == 3:
        given = {
            "command": "str_replace",
            "path": path(number - 1),
            "old_str": "made",
            "new_str": f"edited by {number}",
        }
    else:
        given = {"command": "create", "path": path(number), "file_text": f"made by {number}\n"}
    return ToolUse("memory", given, id=f"toolu_{number:03}")


def path(number: int) -> str:
    return f"/memories/{number:03}.md"


class Kernel:
    """Runs an agent, again and again in a process of its own, against a model that counts."""

    def __init__(self, url: str) -> None:
        self.model = CountingModel()
        self._url = url
        self._loaded = subprocess.Popen(
            [sys.executable, "-W", "error", str(PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=PROGRAM.parents[2],
        )
        self.pid = 0

    def answer(self, body: Mapping[str, Any]) -> Reply:
        """What the model of now says."""
        return self.model(body)

    def begin(self, dsn: str, run_id: str, at: str = "") -> None:
        """Go on with a run, or begin one with `-`; do not wait."""
        assert self._loaded.stdin is not None
        self._loaded.stdin.write(json.dumps([dsn, self._url, SESSION, run_id, at]) + "\n")
        self._loaded.stdin.flush()
        self.pid = self._line()

    def kill(self) -> None:
        """Kill the process that runs."""
        os.kill(self.pid, signal.SIGKILL)  # it is not waited for yet, so that the pid is nobody else's
        assert self.end() == -signal.SIGKILL

    def end(self) -> int:
        """The exit status of the process, once it has ended."""
        return self._line()

    def _line(self) -> int:
        assert self._loaded.stdout is not None
        return int(self._loaded.stdout.readline())

    def close(self) -> None:
        """End it."""
        assert self._loaded.stdin is not None
        assert self._loaded.stdout is not None
        self._loaded.stdin.close()
        self._loaded.wait(PATIENCE_S)
        self._loaded.stdout.close()


@pytest.fixture(scope="module")
def _kernel() -> Iterator[Kernel]:
    with ScriptedModel() as served:
        kernel = Kernel(served.url)
        served.follow(kernel.answer)
        yield kernel
        kernel.close()


@pytest.fixture
def kernel(_kernel: Kernel) -> Kernel:
    _kernel.model = CountingModel()
    return _kernel


def newest(database: Database) -> str:
    found = database.runs.list(limit=1).data
    return found[0].id if found else "-"


def kill_while_it_runs(kernel: Kernel, after_calls: int, pause_s: float) -> None:
    """Kill the process a moment after the model was asked with so many calls behind it."""
    reached = threading.Event()

    def told(made: int) -> None:
        if made >= after_calls:
            reached.set()

    kernel.model.told = told
    assert reached.wait(PATIENCE_S), "the process did not get so far"
    time.sleep(pause_s)  # anywhere in the turn that follows: what is asked below holds at every moment
    kernel.kill()


def test_a_run_of_a_hundred_calls_killed_ten_times_is_kept_whole(dsn: str, database: Database, kernel: Kernel) -> None:
    store_id = database.memory_stores.create(name="Notes").id
    chance = random.Random(6)
    for kill in range(KILLS):
        kernel.begin(dsn, newest(database))
        after = (kill * CALLS) // (KILLS + 1) + chance.randrange(5)
        kill_while_it_runs(kernel, after, chance.uniform(0.0, 0.02))
        check(database, store_id)
    kernel.model.told = lambda _: None
    kernel.begin(dsn, newest(database))
    assert kernel.end() == 0
    check(database, store_id)
    final = database.runs.retrieve(newest(database))
    assert (final.status, final.session_id) == ("done", SESSION)
    told = answers(database, final.id)
    assert list(told) == [f"toolu_{number:03}" for number in range(CALLS)], "every call was answered, once"
    assert_told_is_true(database, store_id, told)


@pytest.mark.parametrize(
    ("at", "told"),
    [
        ("when the call is written", "The process that ran this ended in the middle of it; nothing was changed."),
        (
            "between the commit and the answer",
            "The process that ran this ended in the middle of it; the change was saved.",
        ),
        # Its result was not written any more: what the store knows is.
        ("when the call has returned", "The process that ran this ended in the middle of it; the change was saved."),
        ("when the turn has ended", "File created successfully at: /memories/000.md"),
    ],
)
def test_a_call_of_a_process_that_was_killed_is_told_what_became_of_it(
    dsn: str, database: Database, kernel: Kernel, at: str, told: str
) -> None:
    store_id = database.memory_stores.create(name="Notes").id
    kernel.model.calls = 1
    kernel.begin(dsn, "-", at)
    assert kernel.end() == -signal.SIGKILL
    killed = newest(database)
    assert database.runs.retrieve(killed).status == "running", "nobody has looked at it yet"
    kernel.begin(dsn, killed)
    assert kernel.end() == 0
    assert database.runs.retrieve(killed).status == "lost"
    assert database.runs.retrieve(newest(database)).previous_run_id == killed
    assert answers(database, newest(database)) == {"toolu_000": told}
    check(database, store_id)
    assert_told_is_true(database, store_id, {"toolu_000": told})


def check(database: Database, store_id: str) -> None:
    """Whatever was killed, and whenever: nothing that was saved has no call, and no call says what is not so."""
    for run in database.runs.list(limit=100).data:
        events = event_rows.events_of(database.runs.events(run.id))
        called = {event.tool_use_id for event in events if isinstance(event, ToolCalled)}
        made = database.memory_versions.changes_by_call(store_id, run.id)
        assert set(made) <= called, "a change without its call"
        for event in events:
            if isinstance(event, ToolReturned) and not event.is_error:
                assert len(made[event.tool_use_id]) == 1, "a call that says that it is saved, without its version"


def answers(database: Database, run_id: str) -> dict[str, str]:
    """What each call of the whole conversation was told."""
    messages = left(database.runs, database.runs.retrieve(run_id)).messages
    assert conversation.complaint(conversation.asked(messages, "And now?")) is None
    blocks = [block for message in messages for block in conversation.blocks(message)]
    return {block["tool_use_id"]: block["content"] for block in blocks if block["type"] == "tool_result"}


def assert_told_is_true(database: Database, store_id: str, told: Mapping[str, str]) -> None:
    made: dict[str, int] = {}
    for run in database.runs.list(limit=100).data:
        for call, versions in database.memory_versions.changes_by_call(store_id, run.id).items():
            made[call] = made.get(call, 0) + len(versions)
        assert any(event.type == RunEnded.type for event in database.runs.events(run.id)), "it is closed"
    for call, sentence in told.items():
        assert (made.get(call, 0) == 1) == says_saved(sentence), f"{call}: {sentence}"
    assert sum(made.values()) == len(database.memory_versions.list(store_id, limit=100).data)


def says_saved(sentence: str) -> bool:
    unsaved = ("nothing was changed", "Not run", "No replacement was performed", "does not exist")
    return not any(words in sentence for words in unsaved)
