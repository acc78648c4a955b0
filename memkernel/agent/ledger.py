"""What happens in a run, written to PostgreSQL where something would be lost else, and read again to go on with it.

It is written when the run begins, before each tool runs, when a person is asked, when a turn ends and when the run
does. So whatever kills the process: each change that was saved has its call in the ledger, and a call that is not there
never ran.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from memkernel.agent import conversation, event_rows, unanswered
from memkernel.agent.conversation import Block, Message
from memkernel.agent.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Event,
    Replied,
    RunEnded,
    RunStarted,
    ToolCalled,
    ToolReturned,
    TurnEnded,
)
from memkernel.errors import AgentError, MemkernelError, RunNotFoundError
from memkernel.models import RunEvent, RunRecord
from memkernel.store.run_processes import this_process

if TYPE_CHECKING:
    from memkernel.agent.run import Run
    from memkernel.store.runs import Runs

_WRITTEN_AT: Final = (RunStarted, ToolCalled, ApprovalAsked, ApprovalAnswered, TurnEnded, RunEnded)
_LOST: Final = "The process that ran this run ended before it did."

_log = logging.getLogger(__name__)


class Ledger:
    """Keeps one run. It is told every event before anybody else is.

    Attributes:
        lost: why the end of the run could not be written.
        is_kept: whether the run is in PostgreSQL.
    """

    def __init__(self, runs: Runs, run: Run, messages: Sequence[Message] | None = None) -> None:
        """Args:
        runs: where to.
        run: which one.
        messages: the conversation before the prompt, where it is not what `run.previous_run_id` left.
        """
        self.lost: MemkernelError | None = None
        self.is_kept = False
        self._runs, self._run = runs, run
        self._messages = messages
        self._has_begun = self._is_over = False
        self._dates: list[datetime] = []  # of the run's events
        self._written = 0  # how many of them

    def take(self, event: Event) -> None:
        """Take the next event, and write where it is time.

        Raises:
            DatabaseUnavailableError: it cannot be written; the run must not go on. Never of the run's end, which is
                kept for `settle`.
            RunTakenOverError: another process goes on with the run.
        """
        if isinstance(event, RunStarted):
            self._begin()
        if not self._has_begun:
            return
        self._date()
        if isinstance(event, RunEnded):
            self._write_end()
        elif isinstance(event, _WRITTEN_AT):
            self._write()

    def say_alive(self) -> None:
        """Say that the run goes on, however long it waits, and stop it where that was asked for. From any thread.

        Raises:
            DatabaseUnavailableError: nobody can be told.
        """
        run = self._run
        if not self.is_kept or self._is_over:
            return
        if self._runs.lives(run.id, session_id=run.session_id, process=this_process()):
            run.stop()

    def has_kept(self, runs: Runs) -> bool:
        """Whether a later run, kept by these, can go on with this one by its id."""
        return self.is_kept and self._runs is runs

    @property
    def is_settled(self) -> bool:
        """Whether nothing of the run is still to be written."""
        return self._is_over or not self._has_begun

    def settle(self) -> None:
        """Write the end of a run that has ended, where that failed or was interrupted.

        Raises:
            MemkernelError: it fails again.
        """
        if self.is_settled:
            return
        self._write()
        self._is_over, self.lost = True, None

    def raise_lost(self) -> None:
        """Raise why the end is not written, if it is not."""
        if self.lost is not None:
            raise self.lost

    def _begin(self) -> None:
        run = self._run
        self._has_begun = True  # whatever comes: it may be there
        self._runs.begin(
            run.id,
            session_id=run.session_id,
            kind=run.kind,
            model=run.model,
            prompt=run.prompt,
            process=this_process(),
            memory_store_ids=run.memory_store_ids,
            previous_run_id=run.previous_run_id,
            messages=self._messages,
        )
        self.is_kept = True

    def _date(self) -> None:
        """Date what is new: usually one event, more where an interrupt came before the ledger was told of one."""
        self._dates += [datetime.now(UTC)] * (len(self._run.events) - len(self._dates))

    def _unwritten(self) -> list[RunEvent]:
        """The events as rows. The last one is no delta, so that none of them is joined with a later one."""
        self._date()
        new = list(zip(self._run.events, self._dates, strict=True))[self._written :]
        return [
            RunEvent(n, event.type, event_rows.data_of(event), at)
            for n, (event, at) in enumerate(new, self._written + 1)
        ]

    def _write_end(self) -> None:
        try:
            self.settle()
        except MemkernelError as error:
            _log.warning("the end of run %s is not written: %s", self._run.id, error)
            self.lost = error

    def _write(self) -> None:
        run, events = self._run, self._unwritten()
        is_stopped = self._runs.append(
            run.id,
            events,
            session_id=run.session_id,
            process=this_process(),
            turns=run.turns,
            usage=run.usage,
            cost_usd=run.cost_usd,
            status=run.status,
            stop_reason=run.stop_reason,
            error=run.error_line,
        )
        self._written += len(events)
        if is_stopped:
            run.stop()


# -- going on with a run that is over ----------------------------------------------------------------


class Left(NamedTuple):
    """What a run left.

    Attributes:
        record: how it ended.
        messages: the whole conversation, its last prompt and what came of it included.
        answered: the same without a prompt that was refused, or that nothing came of.
        is_due: whether the model has to answer `messages`.
    """

    record: RunRecord
    messages: list[Message]
    answered: list[Message]
    is_due: bool


Outcome = Callable[[Block], str]
"""What a call is told that had begun when its process ended."""


def take_over(runs: Runs, run_id: str, outcome: Outcome) -> Left:
    """What a run left whose process is gone, or that has ended; from now on nobody else writes to it.

    A run that was lost is closed first: the call that was under way is answered, once and for all.

    Raises:
        RunNotFoundError: there is no such run.
        RunRunningError: it is alive.
        AgentError: a run whose conversation it went on with was deleted.
    """
    process = this_process()
    record = runs.take_over(run_id, process)
    events = runs.events(run_id)
    if not any(event.type == RunEnded.type for event in events):
        _close(runs, record, events, outcome)
    return left(runs, record)


def _close(runs: Runs, record: RunRecord, rows: Sequence[RunEvent], outcome: Outcome) -> None:
    events = event_rows.events_of(rows)
    call = under_way(events)
    ended: list[Event] = [] if call is None else [_answer(call, outcome(call))]
    ended.append(RunEnded(record.id, record.status, record.turns, record.usage))
    count, now = max((row.n for row in rows), default=0), datetime.now(UTC)
    runs.append(
        record.id,
        [RunEvent(count + n, event.type, event_rows.data_of(event), now) for n, event in enumerate(ended, 1)],
        session_id=record.session_id,
        process=this_process(),
        turns=record.turns,
        usage=record.usage,
        cost_usd=record.cost_usd,
        status=record.status,
        stop_reason=record.stop_reason,
        error=record.error or _LOST,
    )


def under_way(events: Sequence[Event]) -> Block | None:
    """The call that may have run when the events broke off: the last one that was reached and not answered.

    One that still waited for a person has not run.
    """
    calls: Mapping[str, Block] = {}
    reached: dict[str, Block] = {}
    for event in events:
        match event:
            case Replied(content=content):
                calls = {block["id"]: dict(block) for block in content if block["type"] == "tool_use"}
            case ToolCalled(tool_use_id=called) | ApprovalAnswered(tool_use_id=called, decision="approved"):
                reached |= {called: calls[called]} if called in calls else {}
            case ToolReturned(tool_use_id=called) | ApprovalAsked(tool_use_id=called):
                reached.pop(called, None)
            case ApprovalAnswered(tool_use_id=called):
                reached.pop(called, None)
            case _:
                pass
    return next(iter(reached.values()), None)


def _answer(call: Block, told: str) -> ToolReturned:
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call["id"], "content": told, "is_error": True}
    return ToolReturned(call["id"], call["name"], told, is_error=True, duration_s=0.0, result=result)


def left(runs: Runs, record: RunRecord) -> Left:
    """What a run left that is closed.

    Raises:
        AgentError: a run whose conversation it went on with was deleted.
    """
    chain, messages = _chain(runs, record)
    found = Left(record, messages, messages, is_due=False)
    for each in reversed(chain):
        found = _after(each, found.answered, event_rows.events_of(runs.events(each.id)))
    return found


def _chain(runs: Runs, record: RunRecord) -> tuple[list[RunRecord], list[Message]]:
    """The run and those before it in its conversation, newest first, and what the oldest began with."""
    chain = [record]
    while (messages := runs.messages(chain[-1].id)) is None and chain[-1].previous_run_id is not None:
        previous = chain[-1].previous_run_id
        try:
            chain.append(runs.retrieve(previous))
        except RunNotFoundError:
            raise AgentError(
                f"run {record.id} goes on with run {previous}, which was deleted: its conversation is gone",
                hint="Begin a new one; what both saved is still in memory.",
            ) from None
    return chain, messages or []


def _after(record: RunRecord, before: list[Message], events: Sequence[Event]) -> Left:
    # The event has the prompt as it was sent; of the record's, what PostgreSQL's `text` refuses is replaced.
    said = [event.prompt for event in events if isinstance(event, RunStarted)]
    asked = conversation.begun(before, *(said or [record.prompt]))
    messages = conversation.rebuilt(asked, events)
    answered = conversation.to_go_on(before, asked, messages, record.status)
    return Left(record, messages, answered, conversation.is_due(messages, events))


def told_of_lost(call: Block, saved: Callable[[str], bool | None] | None, *, reading: Set[str] = frozenset()) -> str:
    """What a call is told whose process ended in the middle of it.

    Raises:
        DatabaseUnavailableError: nobody can say yet.
    """
    if unanswered.only_reads(call, reading):
        return unanswered.broken_off("lost", "unchanged")
    return unanswered.broken_off("lost", unanswered.fate(call, is_saved=None if saved is None else saved(call["id"])))
