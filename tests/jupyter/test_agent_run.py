"""A run as a widget in a real kernel: how it is stopped, what is left of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
from anthropic import beta_tool

import memkernel as mk
from memkernel import present
from memkernel.agent.approval import Approvals
from memkernel.agent.event_rows import data_of
from memkernel.agent.limits import RunLimits
from memkernel.agent.prices import Price
from memkernel.agent.run import Run
from memkernel.agent.script import Thinking, ToolUse, reply
from memkernel.agent.stored_run import StoredRun
from memkernel.agent.transcript import SHOWN_AGAIN
from memkernel.errors import DatabaseUnavailableError, InvalidInputError
from memkernel.jupyter.widgets.agent_run import AgentRun
from memkernel.jupyter.widgets.outputs import VIEW_TYPE
from memkernel.models import MemoryVersion, RunEvent
from tests.fix_agent import Play, Scripted
from tests.fix_kernel import Kernel, Reply, kernel_environment

LOOK = """
import json
from ipywidgets.widgets import widget as _w
view = [each for each in _w._instances.values() if type(each).__name__ == "AgentRun"][-1]
state = {name: value for name, value in view.get_state().items() if not name.startswith("_")}
print(json.dumps(state))
"""
VIEW = {"command": "view", "path": "/memories"}
CREATE = {"command": "create", "path": "/memories/units.md", "file_text": "SI\n"}


@pytest.fixture
def talking(scripted: Scripted, dsn: str, tmp_path: Path) -> Iterator[Kernel]:
    """A kernel whose Anthropic API writes a memory, then talks and does not come to an end."""
    model = scripted(
        reply(Thinking("hm"), "First a note.", ToolUse("memory", CREATE)),
        reply("I am still talking. " * 3, breaks="hangs"),
        reply("Well again."),
    )
    keys = {"ANTHROPIC_API_KEY": "test-key", "ANTHROPIC_BASE_URL": model.url}
    kernel = Kernel(kernel_environment(tmp_path, MEMKERNEL_DSN=dsn, **keys), tmp_path)
    try:
        kernel.run("%load_ext memkernel")
        kernel.run('%memory use "Team notes" --create -q')
        yield kernel
    finally:
        kernel.close()


def state_of(kernel: Kernel) -> dict[str, Any]:
    """What the newest widget would save with the notebook."""
    return json.loads(kernel.run(LOOK).stdout)


def model_id(reply: Reply) -> str:
    view: Any = reply.outputs[0][VIEW_TYPE]
    return view["model_id"]


def is_talking(reply: Reply) -> bool:
    return "still talking" in reply.html


# -- answers from the page ------------------------------------------------------------------------------


def is_waiting(reply: Reply) -> bool:
    return "waits for your approval" in reply.html


@pytest.mark.parametrize(
    ("method", "params", "said"),
    [("approve", {}, "approved"), ("deny", {"reason": "not today"}, "denied: not today")],
)
def test_a_call_that_waits_in_a_plain_cell_is_answered_from_the_page(
    talking: Kernel, method: str, params: dict[str, Any], said: str
) -> None:
    subshell = talking.subshell()
    sent = talking.send("%%agent --approve ask -o run\nTake a note\n")
    talking.wait_until(sent, is_waiting)
    talking.ask_widget(model_id(talking.peek(sent)), "here", subshell=subshell)
    talking.ask_widget(model_id(talking.peek(sent)), method, subshell=subshell, entry=4, **params)
    talking.wait_until(sent, is_talking)
    talking.interrupt()
    assert said in talking.reply(sent).html
    saved = "/units.md" if method == "approve" else ""
    assert talking.run("print(*(each.path for each in run.changes))").stdout == f"{saved}\n"
    call = state_of(talking)["snapshot"][3]
    assert call["state"].startswith(said)
    assert call["asks"] == []


# -- three ways to stop -------------------------------------------------------------------------------


def test_the_stop_button_reaches_a_plain_cell_while_it_runs(talking: Kernel) -> None:
    """ipykernel sends a comm's messages to the shell that has last published on it, which is the one that the cell
    keeps busy (UX 2.3). This fails when ipykernel does that in another way, and `MemoryWidget` has to follow."""
    subshell = talking.subshell()
    sent = talking.send("%%agent -o run\nTalk to me\n")
    talking.wait_until(sent, is_talking)
    talking.ask_widget(model_id(talking.peek(sent)), "stop", subshell=subshell)
    answer = talking.reply(sent)
    assert (answer.ename, len(answer.traceback)) == ("AgentError", 2)
    assert "stopped by the user" in answer.html
    assert talking.run("print(run.status)").stdout == "stopped\n"
    assert "Well again." in talking.run("%%agent\nAnd now?\n").text


def test_a_run_of_a_thread_is_stopped_while_it_waits_for_the_model(talking: Kernel) -> None:
    talking.run("import memkernel as mk\nagent = mk.Agent(store=mk.connect().store('Team notes'))")
    begun = talking.run("run = agent.start('Talk to me')\nprint(run.status)")
    assert begun.stdout == "running\n"
    talking.run("import time\nwhile 'still talking' not in str(run): time.sleep(0.02)")
    stopped = talking.run("run.stop()\nprint(run.wait(30).status, run.text[:20])")
    assert stopped.stdout == "stopped I am still talking. \n"
    state = state_of(talking)
    assert (state["status"], state["snapshot"][-1]["text"]) == ("stopped", "Stopped by the user.")
    assert talking.run("print(agent.run('And now?', show=False).text)").stdout == "Well again.\n"


def test_an_interrupt_of_the_kernel_ends_the_run_and_its_view(talking: Kernel) -> None:
    sent = talking.send("%%agent -o run\nTalk to me\n")
    talking.wait_until(sent, is_talking)
    talking.interrupt()
    answer = talking.reply(sent)
    assert (answer.ename, len(answer.traceback)) == ("AgentError", 2)
    assert state_of(talking)["status"] == "stopped"


def test_an_interrupt_of_wait_ends_the_waiting_alone(talking: Kernel) -> None:
    talking.run("import memkernel as mk\nrun = mk.Agent().start('Talk to me', show=False)")
    sent = talking.send("print('waits', flush=True)\nrun.wait()")
    talking.wait_until(sent, lambda reply: "waits" in reply.stdout)
    talking.interrupt()
    assert talking.reply(sent).ename == "KeyboardInterrupt"
    assert talking.run("print(run.status); run.stop(); print(run.wait(30).status)").stdout == "running\nstopped\n"


# -- what is left --------------------------------------------------------------------------------------


def test_the_state_tells_the_whole_run_and_what_its_calls_changed(kernel: Kernel) -> None:
    answer = kernel.run("%%agent -o run\nRemember that I prefer SI units\n")
    state = state_of(kernel)
    assert (state["status"], state["badge"], state["model"], state["title"]) == (
        *("done", "scripted, not a language model", "scripted"),
        "Team notes",
    )
    assert (state["turn"], state["max_turns"], state["n"] > 0, state["elapsed_s"] > 0) == (3, 50, True, True)
    assert state["usage"]["in"] > 0
    assert state["usage"]["budget"] is None
    assert [entry["k"] for entry in state["snapshot"]] == list(range(1, len(state["snapshot"]) + 1))
    ((made,),) = [entry["made"] for entry in state["snapshot"] if entry.get("made")]
    assert made[1:] == ["+ /notes.md @1 +1 −0", "/notes.md"]
    assert state["words"] == {
        "status": "done",
        "turn": "turn 3 of 50",
        "usage": kernel.run("print(run.usage)").stdout[:-1],
        "cost": "costs nothing",
        "time": "",
        "stop": ["■ Stop", "Stop the run: what it has said and done stays", "Stopping…"],
    }
    for copy in (answer.html, answer.text):
        assert "+ /notes.md @1 +1 −0" in copy
        assert "done" in copy
    assert made[0] == kernel.run("print(run.changes[0].id)").stdout.strip()


def test_a_long_run_keeps_its_state_within_the_limits(scripted: Scripted, dsn: str, tmp_path: Path) -> None:
    calls = [ToolUse("memory", VIEW) for _ in range(60)]
    model = scripted(reply("word " * 20_000, *calls), reply("<b>\u202e</b> " * 5_000))
    keys = {"ANTHROPIC_API_KEY": "test-key", "ANTHROPIC_BASE_URL": model.url}
    kernel = Kernel(kernel_environment(tmp_path, MEMKERNEL_DSN=dsn, **keys), tmp_path)
    try:
        kernel.run("%load_ext memkernel")
        kernel.run('%memory use "Team notes" --create -q')
        answer = kernel.run("%%agent -o run\nTalk to me\n")
        state = state_of(kernel)
    finally:
        kernel.close()
    assert answer.status == "ok"
    assert len(json.dumps(state)) <= 64 * 1024
    assert len(state["snapshot"]) <= 100
    assert len(answer.outputs[1]["text/html"].encode()) <= 26 * 1024
    assert "done" in answer.html


def test_render_static_shows_a_run_without_a_widget(kernel: Kernel) -> None:
    kernel.run("%memory config render static")
    answer = kernel.run("%%agent\nRemember that I prefer SI units\n")
    assert [sorted(output) for output in answer.outputs] == [["text/html", "text/plain"]]
    assert kernel.run("import sys; print('anywidget' in sys.modules)").stdout == "False\n"


def test_a_notebook_that_is_executed_without_a_page_holds_the_whole_run(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in kernel_environment(tmp_path, MEMKERNEL_DSN=dsn).items():
        monkeypatch.setenv(name, value)
    formats: Any = nbformat.v4
    cells = ["%load_ext memkernel", '%memory use "Team notes" --create -q', "%%agent\nRemember that I prefer SI units"]
    notebook = formats.new_notebook(cells=[formats.new_code_cell(cell) for cell in cells])
    client: Any = nbclient.NotebookClient(notebook, kernel_name="python3", timeout=60)
    client.execute()
    widget, copy = notebook.cells[2].outputs
    assert VIEW_TYPE in widget.data
    for words in ("Remember that I prefer SI units", "memory create", "done", "I noted it in", "tokens in"):
        assert words in copy.data["text/html"]
        assert words in copy.data["text/plain"]
    assert "mk-static" in copy.data["text/html"]


# -- the widget alone ----------------------------------------------------------------------------------


class Heard:
    """What a run's view told its page and its observers."""

    def __init__(self, run: Run) -> None:
        self.view = AgentRun(run)
        self.told: list[Any] = []
        self.observed: list[tuple[str, dict[str, Any]]] = []
        self.view.send = self.hear  # pyright: ignore[reportAttributeAccessIssue]  # a page that listens
        self.view.on_event(lambda name, facts: self.observed.append((name, dict(facts))))
        self.view.follow()

    def hear(self, content: object, buffers: object = None) -> None:
        self.told.append(content)

    @property
    def changes(self) -> list[dict[str, Any]]:
        return [change for message in self.told for change in message["changes"]]


def test_observers_hear_every_event_and_the_end(play: Play) -> None:
    run = Run("Go", model="claude-sonnet-5-5")
    heard = Heard(run)
    play([reply("Well.")], run=run)
    names = [name for name, _ in heard.observed]
    assert names == ["event"] * (len(names) - 1) + ["done"]
    assert [facts["event"] for name, facts in heard.observed if name == "event"][-1] == run.events[-1]
    assert [change["n"] for change in heard.changes] == list(range(1, len(heard.changes) + 1))
    assert heard.changes[-1]["text"] == "Well."


def test_where_the_changes_cannot_be_read_the_view_goes_on(play: Play) -> None:
    def lost(run_id: str, tool_use_id: str | None) -> list[MemoryVersion]:
        raise DatabaseUnavailableError

    @beta_tool
    def memory() -> str:
        """Stand where the memory tool stands."""
        return "done"

    run = Run("Go", model="claude-sonnet-5-5", changes=lost)
    heard = Heard(run)
    play([reply(ToolUse("memory")), reply("Well.")], [memory], run=run)
    assert (heard.view.status, heard.view.snapshot[-1]["text"]) == ("done", "Well.")
    assert heard.view.snapshot[1]["made"] == []


def test_a_call_that_made_very_many_versions_shows_some_and_counts_the_rest(
    dsn: str, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    renaming = {"command": "rename", "old_path": "/memories/old", "new_path": "/memories/new"}
    model = scripted(reply(ToolUse("memory", renaming)), reply("Well."))
    with mk.connect(dsn) as db:
        store = db.store("Team notes", create=True)
        for number in range(25):
            store.write(f"/old/{number:02}.md", "text\n")
        views: list[Heard] = []
        monkeypatch.setattr(present, "_presenters", {})
        present.register(Run, lambda run: views.append(Heard(run)))
        mk.Agent(store=store, client=model.client()).run("Go")
        made = views[0].view.snapshot[1]["made"]
    assert len(made) == 21
    assert made[0][1] == "~ /new/00.md @2 ±0"
    assert made[-1] == ["", "and 5 more versions", ""]


@beta_tool
def weigh(what: str) -> str:
    """Weigh it.

    Args:
        what: the thing.
    """
    return f"{what}: 3 kg"


def asked(play: Play, answer: Callable[[AgentRun], None], *, calls: int = 1) -> Heard:
    """A run whose calls wait until the page has answered so."""
    run = Run("Go", model="claude-sonnet-5-5", approvals=Approvals({"*": "ask"}))
    heard = Heard(run)
    heard.view.on_event(lambda name, facts: answer(heard.view) if name == "approval" else None)
    play([*(reply(ToolUse("weigh", {"what": "A brick"})) for _ in range(calls)), reply("Well.")], [weigh], run=run)
    return heard


def seen(heard: Heard, trait: str) -> list[Any]:
    """The values that a trait of the view gets from now on."""
    values: list[Any] = []

    def look(change: Any) -> None:
        values.append(change["new"])

    heard.view.observe(look, trait)
    return values


def calls_of(heard: Heard) -> list[dict[str, Any]]:
    return [entry for entry in heard.view.snapshot if entry["kind"] == "tool"]


def test_while_a_call_waits_the_run_does_and_its_answers_are_offered(play: Play) -> None:
    seen: list[Any] = []

    def look(view: AgentRun) -> None:
        (call,) = (entry for entry in view.now()["entries"] if entry["kind"] == "tool")
        seen.extend((view.status, view.words["status"], call["state"], call["asks"]))
        view.approve(entry=call["k"])

    heard = asked(play, look)
    assert seen[:3] == ["waiting", "waiting for approval", "waits for your approval"]
    assert [label for _, _, label, _ in seen[3]] == ["Approve", "Approve all of weigh", "Deny"]
    facts = next(facts for name, facts in heard.observed if name == "approval")
    assert (facts["tool"], facts["input"]) == ("weigh", {"what": "A brick"})
    (call,) = calls_of(heard)
    assert call["state"].startswith("approved · ")
    assert (call["asks"], call["error"], heard.view.status) == ([], False, "done")
    assert ["Result", "A brick: 3 kg"] in call["parts"]


def test_a_whole_tool_is_asked_about_once(play: Play) -> None:
    heard = asked(play, lambda view: view.approve(entry=view.now()["entries"][-1]["k"], whole_tool=True), calls=3)
    assert [name for name, _ in heard.observed].count("approval") == 1
    assert len(calls_of(heard)) == 3


def test_a_denied_call_says_why(play: Play) -> None:
    heard = asked(play, lambda view: view.deny(entry=view.now()["entries"][-1]["k"], reason=" too heavy "))
    (call,) = calls_of(heard)
    assert (call["state"], call["error"]) == ("denied: too heavy", True)
    assert ["Error", "Not run: this call was not approved: too heavy."] in call["parts"]


def test_a_run_that_is_stopped_while_a_call_waits_waits_no_more(play: Play) -> None:
    heard = asked(play, lambda view: view.stop())
    (call,) = calls_of(heard)
    assert (call["asks"], heard.view.status) == ([], "stopped")


def test_an_answer_to_what_does_not_wait_is_refused(play: Play) -> None:
    heard = asked(play, lambda view: view.approve(entry=view.now()["entries"][-1]["k"]))
    key = calls_of(heard)[0]["k"]
    with pytest.raises(InvalidInputError, match="waits for no approval"):
        heard.view.approve(entry=key)
    with pytest.raises(InvalidInputError, match="not there any more"):
        heard.view.deny(entry=77)


def test_the_page_has_been_heard_once_it_has_asked_for_anything() -> None:
    view = AgentRun(Run("Go", model="claude-sonnet-5-5"))
    assert not view.reached.is_set()
    view._on_message(view, {"id": 1, "method": "here"}, [])  # pyright: ignore[reportPrivateUsage]  # as ipywidgets does
    assert view.reached.is_set()


@pytest.mark.parametrize(
    ("tokens", "budget", "cost"),
    [
        ((10_000, 60_000), (0.9, "full", "90 % of the budget used"), "$0.90 of $1.00"),
        ((10_000, 90_000), (1.0, "full", "All of the budget used"), "$1.20 of $1.00"),
    ],
    ids=["too little is left", "it is passed"],
)
def test_a_run_that_is_out_of_budget_says_so(play: Play, tokens: Sequence[int], budget: Any, cost: str) -> None:
    price = Price(10.0, 10.0, 10.0, 10.0)
    run = Run("Go", model="claude-sonnet-5-5", price=price, limits=RunLimits(max_cost_usd=1.0))
    heard = Heard(run)
    calls = [ToolUse("weigh", {"what": "A brick"})]
    used = [{"input_tokens": 10_000, "output_tokens": count} for count in tokens]
    play([*(reply(*calls, usage=each) for each in used), reply("Well.")], [weigh], run=run)
    assert (heard.view.status, heard.view.words["cost"]) == ("max_cost", cost)
    assert heard.view.usage["budget"] == budget


# -- several stores ------------------------------------------------------------------------------------


def test_a_call_that_changed_several_stores_names_each_and_opens_each_diff(play: Play, dsn: str) -> None:
    with mk.connect(dsn) as db:
        stores = [db.store(name, create=True) for name in ("Team notes", "Plans")]
        for store in stores:
            store.write("/units.md", f"{store.name}\n")
        made = [store.version("/units.md", 1) for store in stores]

        def changes(run_id: str, tool_use_id: str | None) -> list[MemoryVersion]:
            return made

        run = Run("Go", model="claude-sonnet-5-5", stores=stores, changes=changes)
        heard = Heard(run)
        play([reply(ToolUse("weigh", {"what": "A brick"})), reply("Well.")], [weigh], run=run)
        (call,) = calls_of(heard)
        view = heard.view
        assert [line for _, line, _ in call["made"]] == [
            "+ team-notes:/units.md @1 +1 −0",
            "+ plans:/units.md @1 +1 −0",
        ]
        assert view.title == "Team notes, Plans"
        for store, (version, _, _) in zip(stores, call["made"], strict=True):
            assert view.pair("prev", version).new.text.content == f"{store.name}\n"


# -- a run of before -----------------------------------------------------------------------------------


def test_a_stored_run_is_shown_again_and_nothing_can_be_answered(play: Play) -> None:
    live = asked(play, lambda view: view.approve(entry=view.now()["entries"][-1]["k"]))
    run = live.view._run  # pyright: ignore[reportPrivateUsage]  # the run that it has shown
    rows = [RunEvent(n, each.type, data_of(each), run.record().started_at) for n, each in enumerate(run.events)]
    record = run.record()
    took_9s = replace(record, ended_at=record.started_at + timedelta(seconds=9))
    heard = Heard(again := StoredRun(took_9s, rows))
    statuses = seen(heard, "status")
    again.play()
    assert heard.view.badge == SHOWN_AGAIN
    assert heard.view.words["stop"][0] == "Show the rest"
    assert statuses == ["done"], "it has never waited for anybody"
    assert [entry["text"] for entry in heard.view.snapshot] == [entry["text"] for entry in live.view.snapshot]
    assert all(not change.get("asks") for change in heard.changes)
    assert calls_of(heard)[0]["state"] == calls_of(live)[0]["state"]
    assert heard.view.elapsed_s == 9.0
    for copy in (heard.view.plain(), heard.view.static_html()):
        assert SHOWN_AGAIN in copy


def test_a_run_that_goes_on_elsewhere_is_shown_as_far_as_it_has_come() -> None:
    record = Run("Go", model="claude-sonnet-5-5").record()
    began = RunEvent(1, "run_started", {"run_id": record.id, "prompt": "Go", "model": record.model}, record.started_at)
    heard = Heard(again := StoredRun(record, [began]))
    again.play()
    assert (heard.view.status, heard.view.words["status"]) == ("elsewhere", "still running when this was read")
    assert [entry["text"] for entry in heard.view.snapshot] == ["Go"]


def test_what_is_not_there_any_more_is_said() -> None:
    view = AgentRun(Run("Go", model="claude-sonnet-5-5"))
    with pytest.raises(InvalidInputError, match="not there any more"):
        view.whole(entry=7)
    assert view.now() == view.earlier(before=1) == {"entries": [], "left_out": 0, "n": 0}
