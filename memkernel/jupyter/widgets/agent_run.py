"""`AgentRun`: a run while it goes on and afterwards: what is said, which tools are called, what they changed.

A run that was kept is shown by the same view: its events come from PostgreSQL, and nothing is executed.
"""

from __future__ import annotations

import contextvars
import logging
import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, cast

from traitlets import Dict, Float, Int, List, Unicode

from memkernel.agent import transcript
from memkernel.agent.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Event,
    RunEnded,
    ToolReturned,
    TurnEnded,
    TurnStarted,
)
from memkernel.agent.run import Run
from memkernel.agent.stored_run import StoredRun
from memkernel.errors import InvalidInputError, MemkernelError
from memkernel.handle.reading import StoreReading
from memkernel.handle.store import Store
from memkernel.jupyter.widgets.comparing import PREVIOUS, Comparing
from memkernel.jupyter.widgets.rows import iso
from memkernel.jupyter.widgets.run_log import Change, Entry, Made, RunLog
from memkernel.jupyter.widgets.run_standing import ELSEWHERE, GOES_ON, WAITING, Standing
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
        run_id, title, model, badge: of the run; the title is the stores', the badge says that no model answers.
        status: `running`, `waiting` (for an approval), then how it ended; `elsewhere`: another kernel runs it.
        turn, max_turns: the turn under way, and how many there may be (0: nobody said).
        usage: tokens so far (`in`, `out`, `cache_read`, `cache_write`), their `cost` in US dollars (null: unknown),
            and `budget`: [the part of it that is used, `near` or `full`, the same in words], or null.
        words: what a person reads of that (run_standing.py).
        started_at, elapsed_s: when it began (ISO 8601), and how long it took, once it has ended.
        snapshot: the last entries (run_log.py) as they were at the end of the last turn.
        left_out: how many entries came before those.
        n: the number of the last change that the snapshot holds.
        reached: set once the page has asked for anything: its requests get here, also while a cell runs.
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
        self._badge = run.badge if isinstance(run, StoredRun) else transcript.BADGES[run.kind]
        self._record = run.record() if isinstance(run, StoredRun) else None
        self._run_log = RunLog(answers=self._record is None)
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._told = threading.Event()
        self.reached = threading.Event()
        self._waiting: set[str] = set()
        self._made: dict[str, list[Made]] = {}
        self._stores = {store.id: store for store in run.stores if isinstance(store, Store)}
        self._store_ids: dict[str, str] = {}
        self._begun = datetime.now(UTC)
        self._standing = Standing(
            *(run.kind, "running"),
            cost_usd=run.cost_usd,
            max_turns=0 if self._record else run.limits.max_turns,
            limits=None if self._record else run.limits,
            again=self._record is not None,
        )
        super().__init__(
            kind="run",
            readonly=True,  # a run's view changes no memory
            run_id=run.id,
            title=", ".join(store.name for store in self._stores.values()),
            model=run.model,
            badge=self._badge,
            max_turns=self._standing.max_turns,
            started_at=_moment(self._record.started_at if self._record else self._begun),
            as_of=iso(datetime.now(UTC)),
            **_seen(self._standing),
        )
        self.elapsed_s = self._elapsed_s if self._record else 0.0
        self.compared_store = next(iter(self._stores.values()), None)

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
            self._keep(over=over)
        self._stand()
        self.refresh_static(at_once=over)
        for event in events:
            self._happened(event)
        if over:
            self.happened("stopped" if self.status == "stopped" else "done", status=self.status)
        return over

    def _happened(self, event: Event) -> None:
        self.happened("event", event=event)
        if isinstance(event, ApprovalAsked):
            self.happened("approval", tool_use_id=event.tool_use_id, tool=event.name, input=event.input)

    def _take(self, event: Event) -> Iterator[Change]:
        yield from self._run_log.take(event)
        match event:
            case TurnStarted(turn=turn):
                self._stands(turn=turn)
            case ApprovalAsked(tool_use_id=tool_use_id):
                self._waiting.add(tool_use_id)
            case ApprovalAnswered(tool_use_id=tool_use_id):
                self._waiting.discard(tool_use_id)
            case ToolReturned(tool_use_id=tool_use_id):
                self._waiting.discard(tool_use_id)
                self._made[tool_use_id] = self._read_made(tool_use_id)
                yield from self._run_log.made(tool_use_id, self._made[tool_use_id])
            case RunEnded(status=status):
                self._waiting.clear()
                self._stands(status=ELSEWHERE if status == "running" else status)
            case _:
                pass

    def _stands(self, **facts: Any) -> None:
        self._standing = replace(self._standing, **facts)

    def _stand(self) -> None:
        """Bring what the line above says up to how the run stands."""
        self._stands(used=self._run.usage, cost_usd=self._run.cost_usd)
        if self._standing.status in GOES_ON:
            self._stands(status=WAITING if self._waiting and not self._record else "running")
        with self.hold_sync():
            for name, value in _seen(self._standing).items():
                setattr(self, name, value)

    def _keep(self, *, over: bool) -> None:
        """Put the state in step with what was told: this is what a saved notebook, or a later view, begins with."""
        state = self._run_log.state()
        with self.hold_sync():
            self.snapshot, self.left_out, self.n = state["entries"], state["left_out"], state["n"]
            self.as_of = iso(datetime.now(UTC))
            if over:
                self.elapsed_s = self._elapsed_s

    @property
    def _elapsed_s(self) -> float:
        record = self._record
        begun, ended = self._begun, datetime.now(UTC)
        if record is not None:
            begun, ended = record.started_at, record.ended_at or record.seen_at
        return max(0.1, round((ended - begun).total_seconds(), 1))

    # -- what its calls changed ------------------------------------------------------------------------

    def store_of(self, version: str) -> StoreReading:
        """The store of a version: the memory's, or one that the sandbox has mounted."""
        return self._stores.get(self._store_ids.get(version, "")) or super().store_of(version)

    def _read_made(self, tool_use_id: str) -> list[Made]:
        try:
            versions = self._run.changes_by(tool_use_id)
            self._store_ids |= {version.id: version.memory_store_id for version in versions}
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
        store = self._stores.get(version.memory_store_id)
        place = f"{store.slug}:" if store and len(self._stores) > 1 else ""
        path = one_line(f"{place}{version.path}" if version.path else f"{place}redacted")
        return Made(version.id, f"{CHANGE_SIGNS[version.operation]} {path} @{version.ordinal}{lines}", path)

    # -- the page ------------------------------------------------------------------------------------

    @request
    def stop(self) -> None:
        """Stop the run, as `run.stop()` does."""
        self._run.stop()

    @request
    def approve(self, *, entry: int, whole_tool: bool = False) -> None:
        """Let the call of this entry run; of its tool ask no more, where that is said."""
        self._run.approve(self._call_of(entry), whole_tool=whole_tool)

    @request
    def deny(self, *, entry: int, reason: str = "") -> None:
        """Let the call of this entry not run; the model is told so, and why."""
        self._run.deny(self._call_of(entry), reason=reason.strip())

    def _call_of(self, entry: int) -> str:
        found = self._run_log.call_of(entry)
        if found is None:
            raise _gone()
        return found

    @request
    def here(self) -> None:
        """Nothing but to show that requests get here."""

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
            raise _gone()
        return found

    def _on_message(self, _: object, content: object, buffers: object) -> None:
        self.reached.set()
        super()._on_message(_, content, buffers)

    # -- its static copy -----------------------------------------------------------------------------

    def plain(self) -> str:
        """The run as text."""
        return transcript.as_text(self._run.events, self._lines(), cost_usd=self._standing.cost_usd, badge=self._badge)

    def static_html(self) -> str:
        """The run as HTML."""
        return transcript.as_html(self._run.events, self._lines(), cost_usd=self._standing.cost_usd, badge=self._badge)

    def _lines(self) -> dict[str, list[str]]:
        return {tool_use_id: [each.line for each in made] for tool_use_id, made in list(self._made.items())}


def _seen(standing: Standing) -> dict[str, Any]:
    """How the run stands, as traits."""
    used = standing.used
    tokens = {
        "in": used.input_tokens,
        "out": used.output_tokens,
        "cache_read": used.cache_read_input_tokens,
        "cache_write": used.cache_creation_input_tokens,
    }
    usage = {**tokens, "cost": standing.cost_usd, "budget": standing.budget}
    return {"status": standing.status, "turn": standing.turn, "usage": usage, "words": standing.words()}


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _gone() -> InvalidInputError:
    return InvalidInputError("this part of the run is not there any more", hint="Its turn was begun anew.")
