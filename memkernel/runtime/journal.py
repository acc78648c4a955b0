"""What happens to a sandbox, told as it happens: cells, syncs, its own life."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias

from memkernel.models import CellResult, SyncReport
from memkernel.runtime import reports
from memkernel.sinks import Sinks

REMEMBERED: Final = 400
"""So many events are kept for those who come later; the reports of all syncs are."""

_CODE_CHARACTERS: Final = 200

Language = Literal["python", "bash", "tool"]
"""What a cell is: code, a script, or an agent's call of a tool."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class CellBegan:
    """A cell runs. `number` counts the sandbox's cells from 1; `code` is its first line, or a part of that.

    Of a tool it is the call in one line.
    """

    number: int
    language: Language
    code: str
    at: datetime = field(default_factory=_now)


@dataclass(frozen=True, slots=True)
class CellEnded:
    """A cell has ended.

    Attributes:
        number: which one.
        result: what it did, without its outputs; None where it did not run, or the sandbox was lost.
        report: what became of its files, as far as that is known.
        error: why there is no result, in one line.
        at: when.
    """

    number: int
    result: CellResult | None
    report: SyncReport | None
    error: str = ""
    at: datetime = field(default_factory=_now)


@dataclass(frozen=True, slots=True)
class Synced:
    """A sync that no cell has caused did something, or found trouble."""

    report: SyncReport
    at: datetime = field(default_factory=_now)


@dataclass(frozen=True, slots=True)
class LifeChanged:
    """The sandbox has a new kernel, or has ended."""

    what: Literal["restarted", "stopped"]
    at: datetime = field(default_factory=_now)


SandboxEvent: TypeAlias = CellBegan | CellEnded | Synced | LifeChanged


class Cell:
    """A cell that is being told of: it is filled in while it runs."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.result: CellResult | None = None
        self.report: SyncReport | None = None


class Journal:
    """The events of one sandbox. Whoever publishes has the sandbox's turn: they come one after another.

    Attributes:
        events: the newest, oldest first.
        reports: what each sync did that did anything, oldest first.
    """

    def __init__(self, name: str) -> None:
        self.events: deque[SandboxEvent] = deque(maxlen=REMEMBERED)
        self.reports: list[SyncReport] = []
        self._sinks = Sinks[SandboxEvent](name)
        self._cells = 0

    def subscribe(self, sink: Callable[[SandboxEvent], None]) -> Callable[[], None]:
        """From now on, hand every event to the sink; the answer ends that."""
        return self._sinks.add(sink)

    @contextmanager
    def cell(self, language: Language, code: str) -> Generator[Cell]:
        """Tell of a cell: that it runs, and how it ended, whatever that was."""
        self._cells += 1
        cell = Cell(self._cells)
        self._publish(CellBegan(cell.number, language, _first_line(code)))
        error = ""
        try:
            yield cell
        except BaseException as raised:
            error = "it was interrupted" if isinstance(raised, KeyboardInterrupt) else str(raised)
            cell.result = getattr(raised, "result", None)
            raise
        finally:
            self._remember(cell.report)
            self._publish(CellEnded(cell.number, _lean(cell.result), cell.report, error))

    def synced(self, report: SyncReport) -> None:
        """Tell of a sync that is no cell's, if it says something."""
        if self._remember(report):
            self._publish(Synced(report))

    def changed(self, what: Literal["restarted", "stopped"]) -> None:
        """Tell of a new kernel, or of the end."""
        self._publish(LifeChanged(what))

    def _remember(self, report: SyncReport | None) -> bool:
        says = report is not None and reports.says_something(report)
        if report is not None and says:
            self.reports.append(report)
        return says

    def _publish(self, event: SandboxEvent) -> None:
        self.events.append(event)
        self._sinks.hand(event)


def _lean(result: CellResult | None) -> CellResult | None:
    """Outputs may have megabytes, and nobody asks an event for them."""
    if result is None:
        return None
    return replace(result, stdout="", stderr="", result=None, outputs=(), report=None)


def _first_line(code: str) -> str:
    lines = (line.strip() for line in code.splitlines())
    return next((line for line in lines if line), "")[:_CODE_CHARACTERS]
