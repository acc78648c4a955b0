"""A run that PostgreSQL keeps, shown again: what is handed on are its events. Nothing is asked, and nothing is done."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Final

from memkernel.agent.event_rows import event_of
from memkernel.agent.events import Event, RunEnded
from memkernel.agent.run import Changes, Run
from memkernel.errors import InvalidInputError
from memkernel.models import RunEvent, RunRecord

MOST_PAUSE_S: Final = 3.0
"""Longer pauses, such as a night before somebody approved, are taken for this long."""


class StoredRun(Run):
    """A run of before, with the face of one that goes on: whatever shows a `Run` shows it.

    Attributes:
        record: the run as it was kept.
    """

    def __init__(
        self,
        record: RunRecord,
        rows: Sequence[RunEvent],
        *,
        changes: Changes | None = None,
        store: object | None = None,
    ) -> None:
        """Nothing is shown yet.

        Args:
            record: the run.
            rows: what happened in it, in order.
            changes: the versions that it made, by the run's and the call's id.
            store: whose versions these are.
        """
        super().__init__(record.prompt, model=record.model, kind=record.kind, changes=changes, store=store)
        self.id = record.id
        self.record = record
        self._rows = rows
        self._hurries = threading.Event()

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
                self.publish(event)
        finally:
            self.turns, self.usage = self.record.turns, self.record.usage
            self.stop_reason = self.record.stop_reason
            self.end(self.record.status)
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
