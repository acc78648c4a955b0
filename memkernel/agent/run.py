"""`Run`: one agent loop as a person holds it, while it goes on and afterwards."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator, Sequence
from typing import Any

from memkernel import ids
from memkernel.agent import conversation, transcript
from memkernel.agent.conversation import Message
from memkernel.agent.events import Event, RunEnded, Sink, Status, TextDelta, ThinkingDelta, Usage
from memkernel.agent.stopping import Stopping
from memkernel.models import MemoryVersion, RunKind
from memkernel.render import counted
from memkernel.sinks import Sinks

Changes = Callable[[str, str | None], Sequence[MemoryVersion]]
"""The ids of a run and of one of its tool calls, or None for all of them -> the versions that these made."""


class Run:
    """One agent loop: from a prompt to the model's last answer.

    Attributes:
        id: `run_…`; the cause of every version that the run made.
        prompt: what was asked.
        model: which model was asked.
        kind: who answers: a `live` model, a script in its place (`scripted`), or a recording (`recorded`).
        store: the memory that it works with, as whoever began the run holds it: a `memkernel.Store`; or None.
        max_turns: how many replies it may take; None where nobody said.
        status: `running`, then how it ended: `done`, `stopped` (interrupted), `error`, `refused`, `max_turns` or
            `max_tokens`.
        events: what happened, in order, with neighbouring deltas joined.
        usage: the tokens of all turns.
        turns: how many replies were taken.
        stop_reason: the API's for the last turn.
        error: what it failed with; `Agent.run` raises it, and so does `wait`.
        stopping: how the loop is told to stop.
    """

    def __init__(
        self,
        prompt: str,
        *,
        model: str,
        messages: Sequence[Message] = (),
        kind: RunKind = "live",
        changes: Changes | None = None,
        store: object | None = None,
        max_turns: int | None = None,
        over: threading.Event | None = None,
    ) -> None:
        self.id = ids.mint("run")
        self.prompt = prompt
        self.model = model
        self.kind: RunKind = kind
        self.store = store
        self.max_turns = max_turns
        self.status: Status = "running"
        self.events: list[Event] = []
        self.usage = Usage()
        self.turns = 0
        self.stop_reason: str | None = None
        self.error: BaseException | None = None
        self.stopping = Stopping()
        self._before = list(messages)
        self._asked = conversation.asked(messages, prompt) if prompt else list(messages)
        self._rebuilt: tuple[int, list[Message]] = (0, self._asked)
        self._changes = changes
        self._sinks = Sinks[Event](self.id)
        self._ended = threading.Event()
        self._over = over or self._ended

    @property
    def messages(self) -> list[Message]:
        """The whole conversation as the API's JSON, earlier runs' included, as the events so far make it.

        Once the run has ended each tool_use in it has its answer.
        """
        count, messages = self._rebuilt
        if count != len(self.events):
            events = tuple(self.events)
            messages = conversation.rebuilt(self._asked, events)
            self._rebuilt = len(events), messages
        return list(messages)

    @property
    def text(self) -> str:
        """The model's last answer; "" where it gave none."""
        spoken = self._spoken()
        return conversation.text_of(spoken[-1]) if spoken else ""

    @property
    def conversation(self) -> list[Message]:
        """What a next prompt should follow: `messages`, or what was before where the model refused or said nothing.

        To send a refused prompt again, joined to the next one, would have that refused as well.
        """
        return self.messages if self._spoken() and self.status != "refused" else self._before

    def _spoken(self) -> list[Message]:
        return [message for message in self.messages[len(self._asked) :] if message["role"] == "assistant"]

    @property
    def changes(self) -> Sequence[MemoryVersion]:
        """The versions that this run made, oldest first, read from the database now."""
        return self.changes_by(None)

    def changes_by(self, tool_use_id: str | None) -> Sequence[MemoryVersion]:
        """The same of one tool call alone."""
        return self._changes(self.id, tool_use_id) if self._changes else []

    def stop(self) -> None:
        """Stop the run, from any thread, wherever it is: it ends as `stopped`, as by an interrupt.

        It returns at once; `wait` waits for the end. A run that has ended stays as it is. Outside the main thread, a
        tool that runs is let finish first.
        """
        self.stopping.ask()

    def wait(self, timeout_s: float | None = None) -> Run:
        """Wait until the run has ended and its agent is free again; an interrupt ends the waiting, not the run.

        Args:
            timeout_s: how long to wait at most, in seconds; then the run is returned as it is.

        Raises:
            MemkernelError: what the run failed with, as `Agent.run` raises it.
        """
        if self._over.wait(timeout_s) and self.error is not None:
            raise self.error
        return self

    def __await__(self) -> Generator[Any, None, Run]:
        return asyncio.to_thread(self.wait).__await__()

    def subscribe(self, sink: Sink) -> None:
        """From now on, hand every event to the sink. One that raises is logged and gets no more."""
        self._sinks.add(sink)

    def publish(self, event: Event) -> None:
        """Record an event and hand it to the subscribers."""
        self._record(event)
        self._sinks.hand(event)

    def _record(self, event: Event) -> None:
        match (self.events[-1] if self.events else None), event:
            case (TextDelta(text=before), TextDelta(text=more)):
                self.events[-1] = TextDelta(before + more)
            case (ThinkingDelta(text=before), ThinkingDelta(text=more)):
                self.events[-1] = ThinkingDelta(before + more)
            case _:
                self.events.append(event)

    def end(self, status: Status) -> None:
        """Say how the run ended; the last event."""
        self.stopping.close()
        self.status = status
        self.publish(RunEnded(self.id, status, self.turns, self.usage))
        self._ended.set()

    def __repr__(self) -> str:
        return f"<Run {self.id} {self.status}, {counted(self.turns, 'turn')}, {self.usage}>"

    def __str__(self) -> str:
        return transcript.as_text(self.events)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": transcript.as_html(self.events)}
