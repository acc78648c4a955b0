"""`Run`: one agent loop as a person holds it, while it goes on and afterwards."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from memkernel import ids
from memkernel.agent import conversation, transcript
from memkernel.agent.approval import Approvals
from memkernel.agent.conversation import Message
from memkernel.agent.events import Event, RunEnded, Sink, Status, Usage, joined_with
from memkernel.agent.limits import RunLimits
from memkernel.agent.stopping import Stopping
from memkernel.models import MemoryVersion, RunKind, RunRecord
from memkernel.render import counted
from memkernel.sinks import Sinks

if TYPE_CHECKING:
    from memkernel.agent.ledger import Ledger
    from memkernel.agent.prices import Price

Changes = Callable[[str, str | None], Sequence[MemoryVersion]]
"""The ids of a run and of one of its tool calls, or None for all of them -> the versions that these made."""


class Held(Protocol):
    """A memory store, as whoever began the run holds it: a `memkernel.Store`."""

    @property
    def id(self) -> str: ...


class Run:
    """One agent loop: from a prompt to the model's last answer.

    Attributes:
        id: `run_…`; the cause of every version that the run made.
        prompt: what was asked; "" where the model was only to go on.
        model: which model was asked.
        kind: who answers: a `live` model, a script in its place (`scripted`), or a recording (`recorded`).
        session_id: the actor of what it changes; "" where nobody said.
        previous_run_id: the run whose conversation it goes on with.
        stores: the memory stores that it works with, its memory tool's first, then its sandbox's.
        sandbox: the `memkernel.Sandbox` that its tools work in; or None.
        limits: how far it may go.
        price: what its model's tokens cost; None where that is not known.
        cost_usd: what it cost so far, in US dollars; None where the price is not known.
        approvals: which calls wait for a person.
        status: `running`, then how it ended: `done`, `stopped` (interrupted), `error`, `refused`, `max_tokens` (a
            reply was cut off), or the limit that it reached.
        events: what happened, in order, with neighbouring deltas joined.
        usage: the tokens of all turns.
        turns: how many replies were taken.
        stop_reason: the API's for the last turn.
        error: what it failed with; `Agent.run` raises it, and so does `wait`.
        stopping: how the loop is told to stop.
        ledger: where it is kept; it is told every event before the subscribers. None where it is not.
    """

    def __init__(
        self,
        prompt: str,
        *,
        model: str,
        messages: Sequence[Message] = (),
        kind: RunKind = "live",
        session_id: str = "",
        previous_run_id: str | None = None,
        changes: Changes | None = None,
        stores: Sequence[Held] = (),
        sandbox: object | None = None,
        limits: RunLimits | None = None,
        price: Price | None = None,
        approvals: Approvals | None = None,
        over: threading.Event | None = None,
    ) -> None:
        self.id = ids.mint("run")
        self.prompt, self.model, self.session_id = prompt, model, session_id
        self.kind: RunKind = kind
        self.previous_run_id = previous_run_id
        self.stores, self.sandbox = tuple(stores), sandbox
        self.limits, self.price = limits or RunLimits(), price
        self.approvals = approvals or Approvals()
        self.status: Status = "running"
        self.events: list[Event] = []
        self.usage, self.turns = Usage(), 0
        self.cost_usd = None if price is None else 0.0
        self.stop_reason: str | None = None
        self.error: BaseException | None = None
        self.stopping = Stopping()
        self.ledger: Ledger | None = None
        self._before = list(messages)
        self._asked = conversation.begun(messages, prompt)
        self._rebuilt: tuple[int, list[Message]] = (0, self._asked)
        self._changes = changes
        self._sinks = Sinks[Event](self.id)
        self._started_at, self._ended_at = datetime.now(UTC), None
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
        """What a next prompt should follow: `messages`, or what was before where the model refused or said nothing."""
        return conversation.to_go_on(self._before, self._asked, self.messages, self.status)

    def _spoken(self) -> list[Message]:
        return [message for message in self.messages[len(self._asked) :] if message["role"] == "assistant"]

    @property
    def changes(self) -> Sequence[MemoryVersion]:
        """The versions that this run made, oldest first, read from the database now."""
        return self.changes_by(None)

    def changes_by(self, tool_use_id: str | None) -> Sequence[MemoryVersion]:
        """The same of one tool call alone."""
        return self._changes(self.id, tool_use_id) if self._changes else []

    def approve(self, tool_use_id: str, *, whole_tool: bool = False) -> None:
        """Let a call run that waits; with `whole_tool` all further ones of its tool in this conversation, too.

        Raises:
            InvalidInputError: no call of this id waits.
        """
        self.approvals.approve(tool_use_id, whole_tool=whole_tool)

    def deny(self, tool_use_id: str, reason: str = "") -> None:
        """Answer a call that waits without running it; the model is told the reason.

        Raises:
            InvalidInputError: no call of this id waits.
        """
        self.approvals.deny(tool_use_id, reason)

    def record(self) -> RunRecord:
        """How it stands, in the shape of `db.run(id)`; also of a run that is not kept."""
        return RunRecord(
            id=self.id,
            session_id=self.session_id,
            kind=self.kind,
            model=self.model,
            prompt=self.prompt,
            status=self.status,
            turns=self.turns,
            stop_reason=self.stop_reason,
            usage=self.usage,
            cost_usd=self.cost_usd,
            memory_store_ids=self.memory_store_ids,
            previous_run_id=self.previous_run_id,
            error=self.error_line,
            started_at=self._started_at,
            seen_at=self._ended_at or datetime.now(UTC),
            ended_at=self._ended_at,
        )

    @property
    def memory_store_ids(self) -> tuple[str, ...]:
        """The ids of its stores."""
        return tuple(store.id for store in self.stores)

    @property
    def store(self) -> Held | None:
        """The first of its stores, if any."""
        return self.stores[0] if self.stores else None

    @property
    def max_turns(self) -> int:
        """How many replies it may take."""
        return self.limits.max_turns

    @property
    def error_line(self) -> str:
        """What it failed with, in one line; "" where it did not."""
        lines = str(self.error or "").splitlines()
        return lines[0] if lines else type(self.error).__name__ if self.error else ""

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
        """Record an event, have it kept, and hand it to the subscribers."""
        self._record(event)
        self._hand(event)

    def _record(self, event: Event) -> None:
        joined = joined_with(self.events[-1], event) if self.events else None
        if joined is not None:
            self.events[-1] = joined
        else:
            self.events.append(event)

    def _hand(self, event: Event) -> None:
        if self.ledger is not None:
            self.ledger.take(event)
        self._sinks.hand(event)

    def end(self, status: Status) -> None:
        """Say how the run ended; the last event."""
        self.stopping.close()
        ended = RunEnded(self.id, status, self.turns, self.usage)
        # No call lies between the two, so that no interrupt can: a run has ended and says so, or neither.
        self.status, _ = status, self.events.append(ended)
        self._ended_at = datetime.now(UTC)
        self._hand(ended)
        self._ended.set()

    def __repr__(self) -> str:
        return f"<Run {self.id} {self.status}, {counted(self.turns, 'turn')}, {self.usage}>"

    def __str__(self) -> str:
        return transcript.as_text(self.events, cost_usd=self.cost_usd)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": transcript.as_html(self.events, cost_usd=self.cost_usd)}
