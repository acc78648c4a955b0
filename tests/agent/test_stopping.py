"""`run.stop()`: from any thread, at any moment, and never a KeyboardInterrupt after the run's end."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

import pytest
from anthropic import beta_tool
from anthropic.lib.tools import BetaBuiltinFunctionTool
from anthropic.types.beta import BetaToolParam

import memkernel as mk
from memkernel.agent import conversation, loop
from memkernel.agent.events import Event, Notice, RunEnded, RunStarted, TextDelta, ToolCalled, ToolReturned, TurnStarted
from memkernel.agent.run import Run
from memkernel.agent.script import Failure, Reply, ToolUse, reply
from memkernel.agent.stopping import Stopping
from memkernel.errors import AgentError, InvalidInputError, ModelRequestError
from tests.fix_agent import Scripted

pytestmark = pytest.mark.usefixtures("kernel_interrupts")

PATIENCE_S = 30.0

Ask = Callable[[mk.Agent, str], Run]
"""Ask an agent, here or in a thread of its own, and wait for the end."""


def here(agent: mk.Agent, prompt: str = "Go") -> Run:
    return agent.run(prompt, show=False)


def apart(agent: mk.Agent, prompt: str = "Go") -> Run:
    return agent.start(prompt, show=False).wait(PATIENCE_S)


@pytest.fixture(params=[here, apart])
def ask(request: pytest.FixtureRequest) -> Ask:
    return request.param


class StopAt:
    """Stops the agent's run from another thread, after its first event of a kind, or like this one."""

    def __init__(self, agent: mk.Agent, cue: type | Event) -> None:
        self._agent, self._cue = agent, cue
        self._reached = threading.Event()
        self._thread = threading.Thread(target=self._stop, daemon=True)
        self._thread.start()

    def __call__(self, event: Event) -> None:
        if event == self._cue or (isinstance(self._cue, type) and isinstance(event, self._cue)):
            self._reached.set()

    def _stop(self) -> None:
        assert self._reached.wait(PATIENCE_S)
        time.sleep(0.05)  # so that it waits again
        assert self._agent.last_run is not None
        self._agent.last_run.stop()


def stopped(agent: mk.Agent, ask: Ask, cue: type | Event) -> Run:
    """The run that was stopped there; its agent goes on afterwards."""
    watch = StopAt(agent, cue)
    run = agent.run("Go", show=False, sink=watch) if ask is here else agent.start("Go", show=False, sink=watch)
    assert run.wait(PATIENCE_S).status == "stopped"
    assert [event for event in run.events if isinstance(event, Notice)][-1] == Notice("stopped", "Stopped by the user.")
    assert isinstance(run.events[-1], RunEnded)
    assert conversation.complaint(conversation.asked(run.messages, "And now?")) is None
    return run


# -- wherever it is --------------------------------------------------------------------------------


def test_while_the_model_speaks_its_words_are_kept(scripted: Scripted, ask: Ask) -> None:
    model = scripted(reply("Once upon a time", breaks="hangs"), reply("Again."))
    agent = mk.Agent(client=model.client())
    assert stopped(agent, ask, TextDelta(" time")).text == "Once upon a time"
    assert ask(agent, "And now?").text == "Again."


def test_before_the_first_byte(scripted: Scripted, ask: Ask) -> None:
    go_on = threading.Event()

    def answer(_: object) -> Reply:
        go_on.wait(PATIENCE_S)
        return reply("late")

    agent = mk.Agent(client=scripted(answers=answer).client())
    try:
        run = stopped(agent, ask, RunStarted)
    finally:
        go_on.set()
    assert (run.text, run.turns) == ("", 0)


def test_while_it_waits_to_try_again(scripted: Scripted, ask: Ask) -> None:
    model = scripted(Failure(529, "overloaded_error", headers={"retry-after": "60"}), reply("never asked for"))
    stopped(mk.Agent(client=model.client()), ask, Notice)
    assert len(model.requests) == 1


def test_in_the_main_thread_a_tool_is_broken_off(scripted: Scripted) -> None:
    @beta_tool
    def slow() -> str:
        """Never return."""
        time.sleep(2 * PATIENCE_S)
        return "late"

    model = scripted(reply(ToolUse("slow"), ToolUse("slow")), reply("never asked for"))
    run = stopped(mk.Agent(client=model.client(), tools=[slow]), here, ToolCalled)
    assert [result["content"] for result in run.messages[-1]["content"]] == [
        "Stopped by the user while this ran; it is unknown whether it took effect.",
        "Stopped by the user before this ran.",
    ]


class Interruptible(BetaBuiltinFunctionTool):
    """A tool that works in another process, say: it can be told to end."""

    def __init__(self) -> None:
        self._over = threading.Event()

    def to_dict(self) -> BetaToolParam:
        return {"name": "work", "description": "Work.", "input_schema": {"type": "object"}}

    def call(self, input: object) -> str:
        assert self._over.wait(PATIENCE_S)
        return "broken off, and this is what it came to"

    def interrupt(self) -> None:
        self._over.set()


def test_in_another_thread_a_tool_that_can_be_interrupted_is(scripted: Scripted) -> None:
    model = scripted(reply(ToolUse("work"), ToolUse("work")), reply("never asked for"))
    run = stopped(mk.Agent(client=model.client(), tools=[Interruptible()]), apart, ToolCalled)
    assert [result["content"] for result in run.messages[-1]["content"]] == [
        "broken off, and this is what it came to",
        "Stopped by the user before this ran.",
    ]


def test_a_run_whose_time_is_up_ends_itself_wherever_it_runs(scripted: Scripted, ask: Ask) -> None:
    model = scripted(reply(ToolUse("work"), ToolUse("work")), reply("Now."))
    agent = mk.Agent(client=model.client(), tools=[Interruptible()], max_time_s=0.3)
    run = ask(agent, "Go")
    assert (run.status, run.error) == ("max_time", None)
    assert [event for event in run.events if isinstance(event, Notice)] == [
        Notice("max_time", "Stopped after 0.3 s (max_time_s). The next prompt goes on.")
    ]
    told = [result["content"] for result in run.messages[-1]["content"]]
    assert told[0] in (
        "broken off, and this is what it came to",
        "Stopped at its time limit while this ran; it is unknown whether it took effect.",
    )
    assert told[1] == "Stopped at its time limit before this ran."
    assert conversation.complaint(conversation.asked(run.messages, "And now?")) is None


def test_in_another_thread_a_tool_is_let_finish_and_the_next_does_not_run(scripted: Scripted) -> None:
    let_finish = threading.Event()

    @beta_tool
    def slow() -> str:
        """Wait."""
        let_finish.wait(PATIENCE_S)
        return "finished"

    model = scripted(reply(ToolUse("slow"), ToolUse("slow")), reply("never asked for"))
    agent = mk.Agent(client=model.client(), tools=[slow])
    called = threading.Event()
    run = agent.start("Go", show=False, sink=lambda event: called.set() if isinstance(event, ToolCalled) else None)
    assert called.wait(PATIENCE_S)
    run.stop()
    assert run.wait(0.05).status == "running"
    let_finish.set()
    assert run.wait(PATIENCE_S).status == "stopped"
    results = run.messages[-1]["content"]
    assert [result["content"] for result in results] == ["finished", "Stopped by the user before this ran."]
    assert len([event for event in run.events if isinstance(event, ToolReturned)]) == 1


def test_the_api_is_told_that_the_rest_is_not_wanted(scripted: Scripted) -> None:
    """A thread that waits for a reply that hangs ends with the run: its connection is closed."""
    model = scripted(reply("Once upon a time", breaks="hangs"))
    agent = mk.Agent(client=model.client())
    before = set(threading.enumerate())
    waits: list[threading.Thread] = []

    def look(event: Event) -> None:
        if isinstance(event, TurnStarted):
            waits.extend(thread for thread in set(threading.enumerate()) - before if thread.name == "memkernel-waits")

    watch = StopAt(agent, TextDelta(" time"))
    agent.start("Go", show=False, sink=lambda event: (look(event), watch(event))[1]).wait(PATIENCE_S)
    assert len(waits) == 1
    waits[0].join(PATIENCE_S)
    assert not waits[0].is_alive()


def test_where_an_interrupt_is_not_pythons_the_main_thread_is_stopped_as_others_are(scripted: Scripted) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        agent = mk.Agent(client=scripted(reply("Once upon a time", breaks="hangs")).client())
        assert stopped(agent, here, TextDelta(" time")).text == "Once upon a time"
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def test_a_run_of_somebodys_own_thread_is_stopped_too(scripted: Scripted) -> None:
    agent = mk.Agent(client=scripted(reply("Once upon a time", breaks="hangs")).client())
    runs: list[Run] = []

    def work() -> None:
        runs.append(agent.run("Go", show=False, sink=StopAt(agent, TextDelta(" time"))))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(PATIENCE_S)
    assert runs[0].status == "stopped"


# -- by the run itself -------------------------------------------------------------------------------


def test_a_subscriber_stops_it_without_being_interrupted(scripted: Scripted, ask: Ask) -> None:
    model = scripted(reply("One two three", ToolUse("nothing")), reply("never asked for"))
    agent = mk.Agent(client=model.client())
    after: list[str] = []

    def stop(event: Event) -> None:
        if event == TextDelta(" two"):
            assert agent.last_run is not None
            agent.last_run.stop()
            after.append("goes on")

    run = agent.run("Go", show=False, sink=stop) if ask is here else agent.start("Go", show=False, sink=stop)
    assert run.wait(PATIENCE_S).status == "stopped"
    assert (run.text, after, len(model.requests)) == ("One two", ["goes on"], 1)


# -- at its ends -------------------------------------------------------------------------------------


def test_a_run_that_has_ended_stays_as_it_is(scripted: Scripted, ask: Ask) -> None:
    agent = mk.Agent(client=scripted(reply("Well."), reply("Well again.")).client())
    run = ask(agent, "Go")
    threading.Thread(target=run.stop).start()
    run.stop()
    time.sleep(0.05)  # a signal would come now
    assert (run.status, ask(agent, "Go on").status) == ("done", "done")


class StopAtCall:
    """Stops the run from another thread at the n-th call of a function of the agent's."""

    def __init__(self, agent: mk.Agent, number: int) -> None:
        self._agent, self.left = agent, number

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        name = frame.f_code.co_filename.replace(os.sep, "/")
        if "memkernel/agent/" in name or name.endswith("memkernel/handle/agent.py"):
            self.left -= 1
            if self.left == 0 and self._agent.last_run is not None:
                sys.settrace(None)
                stopper = threading.Thread(target=self._agent.last_run.stop)
                stopper.start()
                # Not `join`: the interrupt is to come in the run's own code.
                while stopper.is_alive():
                    pass


@pytest.mark.parametrize("start", range(3))
def test_a_stop_at_any_moment_ends_the_run_and_interrupts_nothing_else(scripted: Scripted, start: int) -> None:
    def answer(_: object) -> Reply:
        return reply("As you wish.")

    client = scripted(answers=answer).client()
    endings: set[str] = set()
    for number in itertools.count(1 + start, 3):
        agent = mk.Agent(client=client)
        trace = StopAtCall(agent, number)
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            run = agent.run("Go", show=False)
        finally:
            sys.settrace(before)
        endings.add(run.status)
        assert isinstance(run.events[-1], RunEnded), f"call {number}"
        assert sum(isinstance(event, RunEnded) for event in run.events) == 1, f"call {number}"
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, f"call {number}"
        if trace.left > 0:
            assert endings == {"done", "stopped"}
            return
        assert number < 2_000, "a run has no end"


def test_a_signal_that_was_sent_and_comes_late_interrupts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    set_mask = signal.pthread_sigmask

    def unblock(*_: object) -> object:
        return set_mask(signal.SIG_UNBLOCK, {signal.SIGINT})

    stopping = Stopping()
    stopping.open()
    stopper = threading.Thread(target=stopping.ask)
    stopper.start()
    stopper.join()
    # It comes at the system call after which none can come any more.
    monkeypatch.setattr(signal, "pthread_sigmask", unblock)
    stopping.close()


def test_a_persons_interrupt_and_a_stop_at_once_end_it_once(scripted: Scripted) -> None:
    agent = mk.Agent(client=scripted(reply("Once upon a time", breaks="hangs"), reply("Again.")).client())

    def both(event: Event) -> None:
        if event == TextDelta(" time"):
            assert agent.last_run is not None
            stopper = threading.Thread(target=agent.last_run.stop)
            stopper.start()
            signal.raise_signal(signal.SIGINT)
            stopper.join()

    assert agent.run("Go", show=False, sink=both).status == "stopped"
    assert here(agent, "And now?").text == "Again."


# -- start and wait ----------------------------------------------------------------------------------


def test_start_returns_at_once_and_the_agent_is_free_after_wait(scripted: Scripted) -> None:
    go_on = threading.Event()

    @beta_tool
    def wait() -> str:
        """Wait."""
        go_on.wait(PATIENCE_S)
        return "waited"

    agent = mk.Agent(
        client=scripted(reply(ToolUse("wait")), reply("Done."), reply("And again.")).client(), tools=[wait]
    )
    run = agent.start("Go", show=False)
    assert (run.status, agent.last_run) == ("running", run)
    with pytest.raises(AgentError, match="running already"):
        agent.start("Go", show=False)
    assert run.wait(0) is run
    go_on.set()
    assert (run.wait(PATIENCE_S).status, run.text) == ("done", "Done.")
    assert agent.messages == run.messages
    assert apart(agent).text == "And again."


def test_what_is_refused_at_entry_is_refused_by_start(scripted: Scripted) -> None:
    agent = mk.Agent(client=scripted(reply("Fine.")).client())
    with pytest.raises(InvalidInputError, match="the prompt is blank"):
        agent.start(" ", show=False)
    assert apart(agent).text == "Fine."


def test_wait_raises_what_run_would_have_raised(scripted: Scripted) -> None:
    agent = mk.Agent(client=scripted(Failure(400, "invalid_request_error", "No"), reply("Fine.")).client())
    run = agent.start("Go", show=False)
    for _ in range(2):
        with pytest.raises(ModelRequestError):
            run.wait(PATIENCE_S)
    assert (run.status, type(run.error)) == ("error", ModelRequestError)
    assert apart(agent).text == "Fine."


def test_a_run_can_be_awaited(scripted: Scripted) -> None:
    agent = mk.Agent(client=scripted(reply("Fine.")).client())

    async def cell() -> str:
        return (await agent.start("Go", show=False)).text

    assert asyncio.run(cell()) == "Fine."


def test_a_run_that_is_stopped_before_it_begins_asks_nothing(scripted: Scripted) -> None:
    model = scripted()
    run = Run("Go", model="claude-sonnet-5-5")
    run.stop()
    loop.play(run, loop.Request(model.client(), run.model))
    assert (run.status, model.requests, run.wait()) == ("stopped", [], run)
