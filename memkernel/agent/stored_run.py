"""A run that PostgreSQL keeps, shown again: what is handed on are its events. Nothing is asked, and nothing is done."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Final

from memkernel.agent import transcript
from memkernel.agent.event_rows import event_of
from memkernel.agent.events import Event, RunEnded, TurnEnded
from memkernel.agent.run import Changes, Held, Run
from memkernel.errors import InvalidInputError
from memkernel.models import RunEvent, RunRecord, Usage

MOST_PAUSE_S: Final = 3.0
"""Longer pauses, such as a night before somebody approved, are taken for this long."""


class StoredRun(Run):
    """A run of before, with the face of one that goes on: whatever shows a `Run` shows it, under a badge.

    Attributes:
        badge: that it is one of before, and who answered.
    """

    def __init__(
        self,
        record: RunRecord,
        rows: Sequence[RunEvent],
        *,
        changes: Changes | None = None,
        stores: Sequence[Held] = (),
    ) -> None:
        """Nothing is shown yet.

        Args:
            record: the run.
            rows: what happened in it, in order.
            changes: the versions that it made, by the run's and the call's id.
            stores: those that are still there of the stores that it worked with.
        """
        super().__init__(
            record.prompt,
            model=record.model,
            kind=record.kind,
            session_id=record.session_id,
            previous_run_id=record.previous_run_id,
            changes=changes,
            stores=stores,
        )
        self.id = record.id
        self.cost_usd = record.cost_usd
        self.badge = " · ".join(filter(None, [transcript.SHOWN_AGAIN, transcript.BADGES[record.kind]]))
        self._kept = record
        self._rows = rows
        self._hurries = threading.Event()

    def record(self) -> RunRecord:
        """The run as it was kept."""
        return self._kept

    def stop(self) -> None:
        """Show the rest at once."""
        self._hurries.set()

    def play(self, speed: float = 0.0) -> StoredRun:
        """Hand its events to the subscribers, and end as it has ended. An interrupt shows the rest at once.

        Args:
            speed: 1 is as fast as it went, 10 faster; 0 leaves all pauses out.

        Raises:
            InvalidInputError: a speed that is negative, or no number.
        """
        if not 0 <= speed < float("inf"):
            raise InvalidInputError(f"the speed is {speed}", hint="1 is as fast as it went, 10 is faster, 0 at once.")
        try:
            for event, pause_s in self._paced(speed):
                self._pause(pause_s)
                self.usage += event.usage if isinstance(event, TurnEnded) else Usage()
                self.publish(event)
        finally:
            self.turns, self.usage = self._kept.turns, self._kept.usage
            self.stop_reason = self._kept.stop_reason
            self.end(self._kept.status)
        return self

    def _pause(self, pause_s: float) -> None:
        try:
            self._hurries.wait(pause_s)
        except KeyboardInterrupt:
            self.stop()

    def _paced(self, speed: float) -> Iterator[tuple[Event, float]]:
        before = None
        for row in self._rows:
            event = event_of(row)
            if event is None or isinstance(event, RunEnded):
                continue
            passed_s = (row.at - before).total_seconds() if before and speed else 0.0
            before = row.at
            yield event, min(max(passed_s, 0.0), MOST_PAUSE_S) / (speed or 1)

    def __str__(self) -> str:
        return transcript.as_text(self.events, cost_usd=self.cost_usd, badge=self.badge)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        shown = transcript.as_html(self.events, cost_usd=self.cost_usd, badge=self.badge)
        return {"text/plain": str(self), "text/html": shown}
