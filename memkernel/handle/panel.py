"""`Panel`: a sandbox as it stands, with what its cells did to the stores; `box.panel()`, `%sandbox panel`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from memkernel import present, render
from memkernel.handle.mounts import MountState
from memkernel.models import Access, SyncReport
from memkernel.runtime import CellBegan, CellEnded, LifeChanged, SandboxEvent, Synced
from memkernel.sandbox import walls
from memkernel.sandbox.base import MEBIBYTE

if TYPE_CHECKING:
    from memkernel.handle.rejected import RejectedChange
    from memkernel.handle.sandbox import Sandbox

State: TypeAlias = Literal["new", "running", "busy", "dead", "lost", "stopped"]

_PATIENCE_S: Final = 1.0
_LIVES: Final = {
    "restarted": "a new kernel: what the variables of the old one held is gone",
    "stopped": "the sandbox was stopped",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A cell, or what happened between two.

    Attributes:
        key: its name among the entries of this sandbox.
        title: `cell 3`, `sync`, or what happened to the sandbox.
        at: when it began, or happened.
        code: the first line of a cell's code.
        status: `running`, a CellStatus or `not run` of a cell; `synced`, `restarted`, `stopped`.
        words: the same for a person.
        exit_code: of a script.
        duration_s: of a cell that has ended.
        notes: sentences for the person.
        report: what became of its files.
    """

    key: str
    title: str
    at: datetime
    code: str = ""
    status: str = ""
    words: str = ""
    exit_code: int | None = None
    duration_s: float | None = None
    notes: tuple[str, ...] = ()
    report: SyncReport | None = None

    @property
    def line(self) -> str:
        """It in one line, without its files."""
        took = None if self.duration_s is None else render.duration_text(self.duration_s)
        return " · ".join(part for part in (self.title, self.words, took, self.code) if part)


@dataclass(frozen=True, slots=True)
class PanelStatus:
    """How the sandbox stands, for the panel's first line: a word, and what there is to say of it."""

    state: State
    detail: str

    def __str__(self) -> str:
        return f"{self.state}: {self.detail}"


class Panel:
    """What a person wants to see of a sandbox. It looks at the sandbox anew whenever it is asked."""

    def __init__(self, box: Sandbox) -> None:
        self.box = box
        self._views = 0

    # -- live views ----------------------------------------------------------------------------------

    def watch(self, sink: Callable[[SandboxEvent], None]) -> Callable[[], None]:
        """A live view hears of every event from now on; the answer ends that."""
        leave = self.box.subscribe(sink)
        self._views += 1

        def end() -> None:
            leave()
            self._views -= 1

        return end

    @property
    def is_watched(self) -> bool:
        """Whether there is a live view of it."""
        return self._views > 0

    def show(self) -> object:
        """Show it: live where the notebook can, as text elsewhere. The live view, where there is one."""
        return present.show(self)

    # -- what there is -------------------------------------------------------------------------------

    @property
    def status(self) -> PanelStatus:
        """How the sandbox stands now."""
        events = self.box.events
        last = events[-1] if events else None
        if not self.box.is_open:
            return PanelStatus("stopped", f"{_when(last)}the next `%%sandbox` starts a new one")
        if isinstance(last, CellBegan):
            return PanelStatus("busy", f"{_title(last)} runs since {render.moment_text(last.at)} UTC")
        now = self.box.status()
        if now.state == "closed":
            return PanelStatus("lost", f"{now.detail}; the next `%%sandbox` starts a new one")
        if now.state == "dead":
            return PanelStatus("dead", now.detail)
        if isinstance(last, LifeChanged):
            return PanelStatus("running", _LIVES["restarted"])
        return PanelStatus("running", "free for the next cell")

    @property
    def entries(self) -> list[Entry]:
        """The newest cells and what happened between them, oldest first."""
        return entries_of(self.box.events)

    @property
    def image(self) -> str:
        """Which image it is made of."""
        if self.box.backend == "local":
            return "this Python"
        settings = self.box.stores[0].store.connection.settings
        return str(self.box.options["image"] or settings.sandbox_image or "memkernel's own")

    @property
    def limits(self) -> Mapping[str, str]:
        """What it may use, by names for a person."""
        options = self.box.options
        memory = f"{walls.parse_bytes(options['memory']) // MEBIBYTE:,} MiB"
        own = {"memory": memory, "processes": f"{options['pids']:,}"}
        if self.box.backend == "local":
            return {"image": self.image, **own, "CPUs": "not limited", "network": "this machine's"}
        return {"image": self.image, **own, "CPUs": f"{options['cpus']:g}", "network": str(options["network"])}

    @property
    def mounts(self) -> list[MountState]:
        """The stores, as far as they are in sync; none where the sandbox is at work or has ended."""
        return list(self.box.mounts_if_free(_PATIENCE_S) or [])

    def sheet(
        self,
        mounts: Sequence[MountState],
        put_aside: Sequence[RejectedChange],
        counts: render.LineCounts | None = None,
    ) -> render.PanelSheet:
        """All of it, for a copy that does not change."""
        limits = ", ".join(f"{name} {value}" for name, value in self.limits.items())
        entries = [render.PanelEntry(entry.line, entry.notes, entry.report) for entry in reversed(self.entries)]
        return render.PanelSheet(
            title=f"sandbox {self.box.name}: {self.status}",
            remarks=[limits, *([self.box.isolation] if self.box.is_open else [])],
            mounts=[_mount_facts(state, put_aside) for state in mounts],
            entries=entries,
            put_aside=put_aside,
            counts=counts or {},
        )

    # -- without a live view -------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<memkernel.Panel of {self.box!r}>"

    def __str__(self) -> str:
        return render.panel_text(self.sheet(self.mounts, self.box.rejected))

    def _repr_html_(self) -> str:
        return render.panel_html(self.sheet(self.mounts, self.box.rejected))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self._repr_html_()}


def access_words(access: Access) -> str:
    """`read-write`, `read-only`"""
    return access.replace("_", "-")


def state_words(state: MountState | None, put_aside: int) -> str:
    """How far a mount is in sync: `in sync`, `2 to save, 1 put aside`; None is not known."""
    if state is None:
        return "not known now"
    counts = {
        "to save": state.local,
        "to bring": state.remote,
        "put aside": put_aside,
        "held back": len(state.held_back),
    }
    return ", ".join(f"{count:,} {words}" for words, count in counts.items() if count) or "in sync"


def _mount_facts(state: MountState, put_aside: Sequence[RejectedChange]) -> Mapping[str, object]:
    aside = sum(change.store == state.store.slug for change in put_aside)
    return {
        "store": state.store.slug,
        "folder": render.code(state.attachment.mount_path),
        "access": access_words(state.attachment.access),
        "state": state_words(state, aside),
    }


def _when(last: SandboxEvent | None) -> str:
    return f"since {render.moment_text(last.at)} UTC; " if isinstance(last, LifeChanged) else ""


# -- events -> entries -------------------------------------------------------------------------------


def entries_of(events: Iterable[SandboxEvent]) -> list[Entry]:
    """The entries of a sandbox's events, oldest first: a cell is one, from its beginning to its end."""
    entries: dict[str, Entry] = {}
    for event in events:
        key = _key(event)
        entries[key] = _entry(key, event, entries.get(key))
    return list(entries.values())


def _key(event: SandboxEvent) -> str:
    if isinstance(event, CellBegan | CellEnded):
        return f"cell-{event.number}"
    return f"{type(event).__name__}-{event.at.astimezone(UTC):%H%M%S%f}"


def _entry(key: str, event: SandboxEvent, before: Entry | None) -> Entry:
    match event:
        case CellBegan(code=code, at=at):
            return Entry(key, _title(event), at, code, "running", "running")
        case CellEnded(number=number, at=at):
            return _ended(before or Entry(key, f"cell {number}", at), event)
        case Synced(report=report, at=at):
            return Entry(key, "sync", at, status="synced", words="between cells", report=report)
        case LifeChanged(what=what, at=at):
            return Entry(key, _LIVES[what], at, status=what)


def _title(event: CellBegan) -> str:
    return f"{'tool call' if event.language == 'tool' else 'cell'} {event.number}"


def _ended(entry: Entry, event: CellEnded) -> Entry:
    result = event.result
    told = tuple(part for part in (event.error.splitlines() or [""])[:1] if part)
    if result is None:
        return Entry(
            *(entry.key, entry.title, entry.at, entry.code, "not run", "did not run to its end"),
            notes=told,
            report=event.report,
        )
    is_error = result.status == "error"
    error = (f"{result.error.ename}: {result.error.evalue}",) if result.error and is_error else ()
    return Entry(
        *(entry.key, entry.title, entry.at, entry.code, result.status, render.status_words(result.status)),
        exit_code=result.exit_code if is_error else None,
        duration_s=result.duration_s,
        notes=(*error, *result.notes, *told),
        report=event.report,
    )
