"""A scripted model behind the real SDK, and one run of the loop on it."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from memkernel.agent import conversation
from memkernel.agent.events import Event, ToolReturned
from memkernel.agent.limits import RunLimits
from memkernel.agent.run import Run
from memkernel.agent.script import Failure, Reply
from memkernel.agent.scripted import Responder, ScriptedModel

if TYPE_CHECKING:
    from memkernel.agent import loop

Scripted = Callable[..., ScriptedModel]


class Play(Protocol):
    """Play a prompt on scripted replies."""

    def __call__(
        self,
        replies: Sequence[Reply | Failure],
        tools: Sequence[loop.Tool] = (),
        *,
        prompt: str = "Go",
        run: Run | None = None,
        limits: RunLimits | None = None,
        client: dict[str, Any] | None = None,
        **request: Any,
    ) -> Played: ...


class Played:
    """A run that is over, the model's view of it, and the error that it ended with."""

    def __init__(self, run: Run, model: ScriptedModel, error: BaseException | None) -> None:
        self.run, self.model, self.error = run, model, error
        # Whatever happened: the API must take the conversation, with a further prompt at its end.
        assert conversation.complaint(conversation.asked(run.messages, "And now?")) is None
        results = [event.result for event in run.events if isinstance(event, ToolReturned)]
        assert json.loads(json.dumps(results)) == results, "what is told can be kept"

    def events(self, *kinds: type) -> list[Event]:
        """The events of these kinds; without any, all."""
        return [event for event in self.run.events if not kinds or isinstance(event, kinds)]

    def results(self) -> list[dict[str, Any]]:
        """All tool results of the conversation."""
        blocks = [block for message in self.run.messages for block in conversation.blocks(message)]
        return [block for block in blocks if block["type"] == "tool_result"]


@pytest.fixture(scope="session")
def _models() -> Iterator[list[ScriptedModel]]:
    """Models that run and wait for a script: to start one a test would take longer than the test."""
    free: list[ScriptedModel] = []
    yield free
    for model in free:
        model.stop()


@pytest.fixture
def scripted(_models: list[ScriptedModel]) -> Iterator[Scripted]:
    """A scripted model that serves: `scripted(reply(…), …)`, or `scripted(answers=function)`."""
    taken: list[ScriptedModel] = []

    def take(*replies: Reply | Failure, answers: Responder | None = None) -> ScriptedModel:
        model = _models.pop() if _models else ScriptedModel()
        taken.append(model)
        if not model.url:
            model.start()
        model.follow(answers or replies)
        return model

    yield take
    for model in taken:
        model.follow([])
    _models.extend(taken)


@pytest.fixture
def play(scripted: Scripted) -> Play:
    """Play one run to its end on scripted replies; an error of the run is returned, not raised."""

    def _play(
        replies: Sequence[Reply | Failure],
        tools: Sequence[loop.Tool] = (),
        *,
        prompt: str = "Go",
        run: Run | None = None,
        limits: RunLimits | None = None,
        client: dict[str, Any] | None = None,
        **request: Any,
    ) -> Played:
        from memkernel.agent import loop  # the SDK alone costs a second, which other tests need not spend

        model = scripted(*replies)
        run = run or Run(prompt, model="claude-sonnet-5-5", limits=limits)
        error = None
        try:
            loop.play(run, loop.Request(model.client(**(client or {})), run.model, tools, **request))
        except Exception as raised:
            error = raised
        return Played(run, model, error)

    return _play


@pytest.fixture
def interrupt() -> Iterator[Callable[[], None]]:
    """Interrupt the main thread a moment later, as the notebook's stop button does."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    main = threading.main_thread().ident or 0
    timers: list[threading.Timer] = []

    def soon() -> None:
        timers.append(threading.Timer(0.05, signal.pthread_kill, (main, signal.SIGINT)))
        timers[-1].start()

    yield soon
    for timer in timers:
        timer.join()
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def kernel_interrupts() -> Iterator[None]:
    """The handler that a kernel has while a cell runs; every run puts it back."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler
