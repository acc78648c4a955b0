"""`AgentRun`: a run while it goes on and afterwards: what is said, which tools are called, what they changed."""

from __future__ import annotations

import contextvars
import logging
import queue
import threading
import time
from datetime import UTC, datetime
from typing import Any, Final, cast

from traitlets import Dict, Float, Int, List, Unicode

from memkernel.agent import transcript
from memkernel.agent.events import Event, RunEnded, Status, ToolReturned, TurnEnded, TurnStarted, Usage
from memkernel.agent.run import Run
from memkernel.errors import InvalidInputError, MemkernelError
from memkernel.handle.store import Store
from memkernel.jupyter.widgets.comparing import PREVIOUS, Comparing
from memkernel.jupyter.widgets.rows import iso
from memkernel.jupyter.widgets.run_log import Change, Entry, Made, RunLog
from memkernel.jupyter.widgets.widget import request
from memkernel.models import MemoryVersion
from memkernel.render import CHANGE_SIGNS, counted, lines_text, one_line

BATCH_S: Final = 0.05
"""What happens within so long goes to the page in one message."""
MOST_VERSIONS: Final = 20
"""Of a call that made more (it renamed a directory), so many are shown."""
_PATIENCE_S: Final = 10.0

_log = logging.getLogger(__name__)


class AgentRun(Comparing):
    """A run in the page.

    The page is told by a thread of the widget's own, so that neither the database nor the page holds up the run, and
    an interrupt of the run meets no half-sent message. The run's end waits for that thread: what a cell shows is
    complete before the cell is over.

    Attributes:
        run_id, title, model, badge: of the run; the title is the store's, the badge says that no model answers.
        status: `running`, then how it ended.
        turn, max_turns: the turn under way, and how many there may be (0: nobody said).
        usage: tokens so far: `in`, `out`, `cache_read`, `cache_write`.
        words: `status`, `turn` and `usage` as a person reads them.
        started_at, elapsed_s: when it began (ISO 8601), and how long it took, once it has ended.
        snapshot: the last entries (run_log.py) as they were at the end of the last turn.
        left_out: how many entries came before those.
        n: the number of the last change that the snapshot holds.
    """

    run_id = Unicode().tag(sync=True)
    title = Unicode().tag(sync=True)
    model = Unicode().tag(sync=True)
    badge = Unicode().tag(sync=True)
    status = Unicode("running").tag(sync=True)
    turn = Int(0).tag(sync=True)
    max_turns = Int(0).tag(sync=True)
    usage = Dict().tag(sync=True)
    words = Dict().tag(sync=True)
    started_at = Unicode().tag(sync=True)
    elapsed_s = Float(0.0).tag(sync=True)
    snapshot: Any = cast("Any", List)().tag(sync=True)
    left_out = Int(0).tag(sync=True)
    n = Int(0).tag(sync=True)

    def __init__(self, run: Run) -> None:
        self._run = run
        self._run_log = RunLog()
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._told = threading.Event()
        self._used = Usage()
        self._made: dict[str, list[Made]] = {}
        self._begun = time.monotonic()
        store = run.store if isinstance(run.store, Store) else None
        super().__init__(
            kind="run",
            readonly=True,  # a run's view changes no memory
            run_id=run.id,
            title=store.name if store else "",
            model=run.model,
            badge=transcript.BADGES[run.kind],
            max_turns=run.max_turns or 0,
            usage=_usage(Usage()),
            words=_words("running", 0, run.max_turns or 0, Usage()),
            started_at=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            as_of=iso(datetime.now(UTC)),
        )
        self.compared_store = store

    # -- the run -------------------------------------------------------------------------------------

    def follow(self) -> None:
        """Show what the run does from now on; it has not begun yet."""
        context = contextvars.copy_context()  # so that it is shown where the run was begun
        threading.Thread(target=context.run, args=[self._show], name="memkernel-run-view", daemon=True).start()
        self._run.subscribe(self._on_run_event)

    def _on_run_event(self, event: Event) -> None:
        self._events.put(event)
        if isinstance(event, RunEnded):
            self._told.wait(_PATIENCE_S)

    def _show(self) -> None:
        try:
            while not self._show_batch():
                time.sleep(BATCH_S)
        except Exception:
            _log.exception("the view of %s failed", self.run_id)
        finally:
            self._told.set()

    def _show_batch(self) -> bool:
        """Wait for something to happen, and show all that has happened; whether the run is over."""
        events = [self._events.get()]
        while not self._events.empty():
            events.append(self._events.get())
        changes = [change for event in events for change in self._take(event)]
        if changes:
            self.tell("stream", changes=changes)
        over = isinstance(events[-1], RunEnded)
        if any(isinstance(event, TurnEnded | RunEnded) for event in events):
            self._keep(events)
        self.refresh_static(at_once=over)
        for event in events:
            self.happened("event", event=event)
        if over:
            self.happened("stopped" if self.status == "stopped" else "done", status=self.status)
        return over

    def _take(self, event: Event) -> list[Change]:
        changes = self._run_log.take(event)
        match event:
            case TurnStarted(turn=turn):
                with self.hold_sync():
                    self.turn = turn
                    self.words = _words(self.status, turn, self.max_turns, self._used)
            case ToolReturned(name="memory", is_error=False, tool_use_id=tool_use_id):
                self._made[tool_use_id] = self._read_made(tool_use_id)
                changes += self._run_log.made(tool_use_id, self._made[tool_use_id])
            case _:
                pass
        return changes

    def _keep(self, events: list[Event]) -> None:
        """Put the state in step with what was told: this is what a saved notebook, or a later view, begins with."""
        state = self._run_log.state()
        self._used = sum((event.usage for event in events if isinstance(event, TurnEnded)), self._used)
        with self.hold_sync():
            self.snapshot, self.left_out, self.n = state["entries"], state["left_out"], state["n"]
            self.usage, self.as_of = _usage(self._used), iso(datetime.now(UTC))
            if isinstance(events[-1], RunEnded):
                self.elapsed_s = round(time.monotonic() - self._begun, 1)
                self.status = events[-1].status
            self.words = _words(self.status, self.turn, self.max_turns, self._used)

    def _read_made(self, tool_use_id: str) -> list[Made]:
        try:
            versions = self._run.changes_by(tool_use_id)
            made = [self._line_of(version) for version in versions[:MOST_VERSIONS]]
        except MemkernelError:  # the run goes on without its database, or says so itself
            _log.debug("what %s changed could not be read", tool_use_id, exc_info=True)
            return []
        more = len(versions) - len(made)
        return [*made, Made("", f"and {counted(more, 'more version')}", "")] if more else made

    def _line_of(self, version: MemoryVersion) -> Made:
        """The version and the lines that came and went with it; without them where its text is gone."""
        found = self.text_diff(self.pair(PREVIOUS, version.id), ignore_whitespace=False, context=3)
        lines = f" {lines_text((found.added, found.removed))}" if found else ""
        path = one_line(version.path or "redacted")
        return Made(version.id, f"{CHANGE_SIGNS[version.operation]} {path} @{version.ordinal}{lines}", path)

    # -- the page ------------------------------------------------------------------------------------

    @request
    def stop(self) -> None:
        """Stop the run, as `run.stop()` does."""
        self._run.stop()

    @request
    def now(self) -> dict[str, Any]:
        """What a view that is opened in the middle of a turn begins with."""
        return self._run_log.state()

    @request
    def earlier(self, *, before: int) -> dict[str, Any]:
        """The entries before the one with this key."""
        return self._run_log.state(before=before)

    @request
    def whole(self, *, entry: int) -> Entry:
        """An entry with all of its texts."""
        found = self._run_log.whole(entry)
        if found is None:
            raise InvalidInputError("this part of the run is not there any more", hint="Its turn was begun anew.")
        return found

    # -- its static copy -----------------------------------------------------------------------------

    def plain(self) -> str:
        """The run as text."""
        return transcript.as_text(self._run.events, self._lines())

    def static_html(self) -> str:
        """The run as HTML."""
        return transcript.as_html(self._run.events, self._lines())

    def _lines(self) -> dict[str, list[str]]:
        return {tool_use_id: [each.line for each in made] for tool_use_id, made in list(self._made.items())}


def _words(status: str, turn: int, most: int, used: Usage) -> dict[str, str]:
    turns = f"turn {turn:,} of {most:,}" if most else f"turn {turn:,}"
    return {"status": transcript.status_words(cast("Status", status)), "turn": turns, "usage": str(used)}


def _usage(used: Usage) -> dict[str, int]:
    return {
        "in": used.input_tokens,
        "out": used.output_tokens,
        "cache_read": used.cache_read_input_tokens,
        "cache_write": used.cache_creation_input_tokens,
    }
