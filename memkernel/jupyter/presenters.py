"""How records and runs look in this kernel: IPython's formatters, and the presenter of a run that goes on."""

from __future__ import annotations

import contextvars
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from IPython.display import DisplayHandle

from memkernel import present
from memkernel.agent.asking import ask
from memkernel.agent.events import ApprovalAsked, Event, RunEnded, TextDelta, ThinkingDelta
from memkernel.agent.run import Run
from memkernel.agent.transcript import TextTranscript
from memkernel.jupyter.made import EndedRun
from memkernel.jupyter.putaside import PutAside
from memkernel.jupyter.shell import Shell, can_update
from memkernel.jupyter.widgets.outputs import Outputs
from memkernel.models import (
    CellResult,
    GrepMatch,
    Memory,
    MemoryPrefix,
    MemoryStore,
    MemoryVersion,
    RunRecord,
    ServerStatus,
    StoreReport,
    SyncReport,
)
from memkernel.render import html_of, text_of

if TYPE_CHECKING:
    from memkernel.agent.approval import Answer
    from memkernel.jupyter.widgets.widget import MemoryWidget

_RECORDS: Final = (
    *(MemoryStore, Memory, MemoryPrefix, MemoryVersion, GrepMatch, ServerStatus),
    *(CellResult, StoreReport, SyncReport, RunRecord),
)

# By their names: their modules import psycopg.
_CONNECTION: Final = ("memkernel.handle.connection", "Connection")
_SANDBOX: Final = ("memkernel.handle.sandbox", "Sandbox")
_REJECTED: Final = ("memkernel.handle.rejected", "RejectedChange")

_REACH_S: Final = 6.0
"""So long a page may take to show the first call that waits, and to say so; a slow hub needs some seconds."""

_WIDGETS: Final[dict[tuple[str, str], tuple[str, str]]] = {
    ("memkernel.handle.browse", "Browse"): ("store_browser", "StoreBrowser"),
    ("memkernel.handle.diff", "Diff"): ("version_diff", "VersionDiff"),
    ("memkernel.handle.panel", "Panel"): ("sandbox_panel", "SandboxPanel"),
    ("memkernel.handle.store_diff", "StoreDiff"): ("store_diff", "StoreCompare"),
}
"""What a cell shows as a widget -> the module of `widgets` and the class there, whose `of` makes it."""


def register(shell: Shell, outputs: Outputs) -> None:
    """Show memkernel's records and runs well in this shell."""
    for kind, widget in _WIDGETS.items():
        _show_as_widget(shell, outputs, kind, widget)
    for kind in _RECORDS:
        shell.display_formatter.formatters["text/html"].for_type(kind, html_of)
        shell.display_formatter.formatters["text/plain"].for_type(kind, _print_text)
    shell.display_formatter.formatters["text/plain"].for_type_by_name(*_CONNECTION, _print_line)
    shell.display_formatter.formatters["text/plain"].for_type_by_name(*_SANDBOX, _print_first_line)
    shell.display_formatter.formatters["text/plain"].for_type_by_name(*_REJECTED, _print_rejected)
    shell.display_formatter.formatters["text/html"].for_type_by_name(*_REJECTED, _rejected_html)
    shell.display_formatter.mimebundle_formatter.for_type(Run, _told)
    present.register(Run, partial(_follow, outputs) if can_update(shell) else _write)


def _told(run: Run) -> dict[str, str]:
    """A run as the value of a cell: with what it made, as below the cell that ran it."""
    return EndedRun(run).mimebundle()


def _write(run: Run) -> None:
    """Write what happens in a run, as it does: a terminal's lines stay as they are."""
    run.subscribe(TextTranscript(sys.stdout, again=getattr(run, "badge", "")))


def _follow(outputs: Outputs, run: Run) -> MemoryWidget | None:
    """Show a run while it goes on: as a widget, or where none may be made as an output that is replaced."""
    if not outputs.are_live:
        LiveRun.show(run)
        return None
    widget = _widget_class("agent_run", "AgentRun")(run)
    outputs.show(widget)
    widget.follow()
    run.approvals.asker = _asker(widget.reached)
    return widget


def _asker(reached: threading.Event) -> Callable[[ApprovalAsked], Answer | None]:
    """Asks in text, unless the page has shown that its buttons reach a kernel whose cell runs (UX 2.3): not all do."""
    waits_s = iter([_REACH_S])

    def ask_beside(asked: ApprovalAsked) -> Answer | None:
        return None if reached.wait(next(waits_s, 0.0)) else ask(asked)

    return ask_beside


def _show_as_widget(shell: Shell, outputs: Outputs, kind: tuple[str, str], widget: tuple[str, str]) -> None:
    """By `present`; in a kernel also where such a thing is the value of a cell."""
    module, name = widget

    def show(thing: Any) -> MemoryWidget | None:
        return outputs.show_thing(thing, lambda: _widget_class(module, name).of(thing, outputs.preferences))

    present.register(".".join(kind), show)
    if can_update(shell):
        shell.display_formatter.ipython_display_formatter.for_type_by_name(*kind, show)


def _widget_class(module: str, name: str) -> Any:
    return getattr(import_module(f"memkernel.jupyter.widgets.{module}"), name)


def unregister(shell: Shell) -> None:
    """Leave the formatters as they were, and what is shown by `present` as text."""
    present.forget(Run)
    shell.display_formatter.mimebundle_formatter.pop(Run, None)
    for kind in map(".".join, _WIDGETS):
        present.forget(kind)
        shell.display_formatter.ipython_display_formatter.pop(kind, None)
    for kind in (*_RECORDS, *map(".".join, (_CONNECTION, _SANDBOX, _REJECTED))):
        for mime_type in ("text/html", "text/plain"):
            shell.display_formatter.formatters[mime_type].pop(kind, None)


def _print_text(record: object, printer: Any, cycle: bool) -> None:
    # Inside a list or a dict one line is enough.
    printer.text(text_of(record) if len(printer.stack) <= 1 else repr(record))


def _print_line(connection: Any, printer: Any, cycle: bool) -> None:
    printer.text(connection.line)


def first_line(box: Any) -> str:
    """What keeps the code of a sandbox in: the first line that a person sees of it."""
    return f"sandbox {box.name}: {box.isolation}" if box.is_open else repr(box)


def _print_first_line(box: Any, printer: Any, cycle: bool) -> None:
    printer.text(first_line(box))


def _print_rejected(change: Any, printer: Any, cycle: bool) -> None:
    printer.text(repr(PutAside(change, change.diff())) if len(printer.stack) <= 1 else repr(change))


def _rejected_html(change: Any) -> str:
    return PutAside(change, change.diff()).html


def show_once(run: Run) -> None:
    """Show a run that has ended."""
    _display_handle().display(EndedRun(run))


def _display_handle() -> Any:
    return DisplayHandle()  # IPython annotates its methods in part only


class LiveRun:
    """A run in a cell's output without a widget: shown when it begins, replaced while it goes on, complete at its end.

    Args:
        run: the run; it has not begun yet.
        pause_s: the least time between two updates that only bring more words.
    """

    def __init__(self, run: Run, *, pause_s: float = 0.1) -> None:
        self._run, self._pause_s = run, pause_s
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._shown_at = time.monotonic()
        self._handle = _display_handle()
        self._handle.display(run)

    @classmethod
    def show(cls, run: Run) -> None:
        """Follow a run until it ends."""
        run.subscribe(cls(run).on_event)

    def on_event(self, event: Event) -> None:
        """Words may wait for a moment; everything else is shown at once."""
        with self._lock:
            if isinstance(event, TextDelta | ThinkingDelta):
                self._show_soon()
            else:
                self._show_now(EndedRun(self._run) if isinstance(event, RunEnded) else self._run)

    def _show_soon(self) -> None:
        if self._timer is None:
            left_s = self._shown_at + self._pause_s - time.monotonic()
            self._timer = threading.Timer(max(left_s, 0), contextvars.copy_context().run, [self._on_timer])
            self._timer.daemon = True
            self._timer.start()

    def _on_timer(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._show_now(self._run)

    def _show_now(self, shown: Run | EndedRun) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._handle.update(shown)
        self._shown_at = time.monotonic()
