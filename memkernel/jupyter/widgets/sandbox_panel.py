"""`SandboxPanel`: how a sandbox stands, what its cells did to the stores, and what a person can do about it."""

from __future__ import annotations

import contextvars
import threading
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from traitlets import Any as AnyTrait
from traitlets import Unicode

from memkernel.errors import ConflictError, MemkernelError, NotFoundError, RefusedError, SandboxError, SyncConflictError
from memkernel.handle.rejected import settle
from memkernel.jupyter.reports import lines_of
from memkernel.jupyter.widgets.comparing import Comparing, Text
from memkernel.jupyter.widgets.rows import iso
from memkernel.jupyter.widgets.sandbox_rows import BUTTONS, CHOICES, conflict_rows, held_row, mount_row, told_rows
from memkernel.jupyter.widgets.widget import slow_request
from memkernel.models import MemoryVersion, SyncReport
from memkernel.render import PanelSheet, counted, one_line, panel_html, panel_text, report_line
from memkernel.runtime import CellEnded, SandboxEvent, Synced

if TYPE_CHECKING:
    from collections.abc import Callable

    from memkernel.handle.mounts import MountState
    from memkernel.handle.panel import Panel
    from memkernel.handle.reading import StoreReading
    from memkernel.handle.rejected import RejectedChange
    from memkernel.handle.store import Store
    from memkernel.jupyter.preferences import Preferences

_COUNTED: Final = 200
_OVER: Final = ("stopped", "lost")
_NOTHING: Final = "nothing to save, nothing to bring"


class SandboxPanel(Comparing):
    """A live view of a sandbox. What happens there is shown at once; how its mounts stand a moment later.

    Attributes:
        sandbox_id: the session's id.
        name: the sandbox's.
        status: `running`, `busy` (a cell runs), `dead` (its kernel), `lost` (its container or engine), `stopped`.
        sentence: what there is to say of that, in one line.
        image: which image it is made of.
        limits: [name, value] of what it may use.
        isolation: one line on what keeps its code in.
        buttons: what can be done with the sandbox now.
        mounts: a row a store.
        held: deletions that were held back, a sentence and a button each.
        cells: the newest cells, and what happened between them, newest first.
        changes: what became of their files; 200 at most.
        conflicts: what was put aside, newest first.
        choices: the ways to settle that.
        titles: of `conflicts` and of `cells`.
    """

    sandbox_id = Unicode().tag(sync=True)
    name = Unicode().tag(sync=True)
    status = Unicode().tag(sync=True)
    sentence = Unicode().tag(sync=True)
    image = Unicode().tag(sync=True)
    limits: Any = AnyTrait(()).tag(sync=True)
    isolation = Unicode().tag(sync=True)
    mounts: Any = AnyTrait(()).tag(sync=True)
    cells: Any = AnyTrait(()).tag(sync=True)
    changes: Any = AnyTrait(()).tag(sync=True)
    conflicts: Any = AnyTrait(()).tag(sync=True)
    buttons: Any = AnyTrait(()).tag(sync=True)
    held: Any = AnyTrait(()).tag(sync=True)
    choices: Any = AnyTrait(CHOICES).tag(sync=True)
    titles: Any = AnyTrait(("", "")).tag(sync=True)

    def __init__(self, panel: Panel, **traits: Any) -> None:
        self.panel = panel
        self._leave: Callable[[], None] | None = None
        self._painting = threading.Lock()
        self._looking = threading.Lock()
        self._looks_again = self._is_over = False
        self._looker: threading.Thread | None = None
        self._counts: dict[str, tuple[int, int]] = {}
        self._seen: dict[str, str] = {}
        self._states: dict[str, MountState] = {}
        self._rejected: list[RejectedChange] = []
        box = panel.box
        super().__init__(
            kind="sandbox",
            sandbox_id=box.id,
            name=one_line(box.name),
            image=one_line(panel.image),
            limits=[[name, one_line(value)] for name, value in panel.limits.items()],
            isolation=one_line(box.isolation),
            **traits,
        )
        self._look()

    @classmethod
    def of(cls, panel: Panel, preferences: Preferences) -> SandboxPanel:
        """The widget of a panel."""
        return cls(panel)

    def open(self) -> None:
        """Hear of what happens from now on, also where it had been closed."""
        super().open()
        if self._leave is None:
            self._leave = self.panel.watch(self._on_event)

    def close(self) -> None:
        """Hear of nothing any more."""
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()
        super().close()

    # -- its static copy -----------------------------------------------------------------------------

    def plain(self) -> str:
        return panel_text(self._sheet())

    def static_html(self) -> str:
        return panel_html(self._sheet())

    def _sheet(self) -> PanelSheet:
        return self.panel.sheet(list(self._states.values()), self._rejected, self._counts)

    # -- what happens in the sandbox -----------------------------------------------------------------

    def _on_event(self, event: SandboxEvent) -> None:
        """In the cell's own thread, while the sandbox is at work: what has to be asked for is asked elsewhere."""
        # At a cell's end its copy is true at once: the kernel may end, or the notebook be saved, within the second.
        self._paint(at_once=isinstance(event, CellEnded))
        if isinstance(event, CellEnded | Synced) and event.report is not None:
            self.happened("synced", report=event.report)
        if self.status in _OVER and not self._is_over:
            self._is_over = True
            self.happened("exited")
        self._look_soon()

    def _look_soon(self) -> None:
        """Look at the mounts in a thread of its own; once more, where one looks already."""
        with self._looking:
            self._looks_again = True
            if self._looker is not None:
                return
            # In this context: the static copy is shown in the cell that this thread works for.
            work = contextvars.copy_context().run
            self._looker = threading.Thread(target=work, args=[self._look_on], name="memkernel-panel", daemon=True)
            self._looker.start()

    def _look_on(self) -> None:
        while self._is_to_look():
            self._look()
            self._count()

    def _is_to_look(self) -> bool:
        with self._looking:
            again, self._looks_again = self._looks_again, False
            self._looker = self._looker if again else None
            return again

    def _look(self) -> None:
        """See how the mounts stand, and what was put aside; a database that is away leaves what was known."""
        box = self.panel.box
        with suppress(MemkernelError):
            self._states = {state.store.id: state for state in self.panel.mounts}
        before = {change.id for change in self._rejected}
        self._rejected = list(box.rejected)
        self._paint()
        for change in self._rejected:
            if change.id not in before:
                self.happened("conflict", id=change.id, store=change.store, path=change.path)

    def _count(self) -> None:
        """Count the lines of the versions that are shown, the newest first."""
        shown = [version for version in self._versions()[:_COUNTED] if version.id not in self._counts]
        with suppress(MemkernelError):  # the counts are a nicety
            for version in shown:
                if self.comm is None or self._looks_again:
                    break
                self._counts[version.id] = lines_of(self._database, version)
        if shown:
            self._paint()

    def _versions(self) -> list[MemoryVersion]:
        reports = [entry.report for entry in reversed(self.panel.entries) if entry.report]
        lines = (line for report in reports for store in report.stores for line in store.lines())
        return [line.version for line in lines if line.version]

    @property
    def _database(self) -> Any:
        return self.panel.box.stores[0].store.connection.database

    def _paint(self, *, at_once: bool = False) -> None:
        """Bring the state up to what is known."""
        with self._painting:
            self._set_state()
        self.refresh_static(at_once=at_once)

    def _set_state(self) -> None:
        box, status, may = self.panel.box, self.panel.status, not self.readonly
        may_sync = may and status.state in ("running", "dead")
        aside = [change.store for change in self._rejected]
        self.mounts = [
            mount_row(one, folder, self._states.get(one.store.id), aside.count(one.store.slug), may_reset=may_sync)
            for one, folder in zip(box.stores, self._folders, strict=True)
        ]
        self.held = [held_row(state, may_delete=may_sync) for state in self._states.values() if state.held_back]
        told = told_rows(self.panel.entries, self._counts, named=len(box.stores) > 1)
        self.cells, self.changes = told.entries, told.changes
        self.conflicts = conflict_rows(self._rejected, may_settle=may)
        self.titles = [
            f"Put aside ({len(aside):,})" + _left(len(aside) - len(self.conflicts)),
            f"Cells, newest first; times are UTC{_left(told.left_out)}" if told.entries else "No cell has run yet",
        ]
        self.buttons = BUTTONS.get(status.state, []) if may else []
        self.status, self.sentence = status.state, one_line(str(status))
        self.as_of = iso(datetime.now(UTC))

    @property
    def _folders(self) -> list[str]:
        folders = {each.memory_store_id: each.mount_path for each in self.panel.box.session.resources}
        return [folders[one.store.id] for one in self.panel.box.stores]

    # -- what a person does --------------------------------------------------------------------------

    @slow_request
    def refresh(self) -> dict[str, Any]:
        """Look anew at the mounts."""
        self._look()
        return {}

    @slow_request
    def sync(self) -> dict[str, Any]:
        """Save and bring now."""
        return self._synced(self.panel.box.sync)

    @slow_request
    def reset(self, *, store: str) -> dict[str, Any]:
        """Make a store's folder equal to the store; what was changed there is put aside."""
        return self._synced(lambda: self.panel.box.reset(store))

    @slow_request
    def delete_held_back(self) -> dict[str, Any]:
        """Make the deletions that the wipe guard has held back."""
        return self._synced(self.panel.box.apply_held_back)

    @slow_request
    def stop(self) -> dict[str, Any]:
        """Save all, and end the sandbox; a cell that runs is ended."""
        return self._said(self.panel.box.stop)

    @slow_request
    def interrupt(self) -> dict[str, Any]:
        """Interrupt the cell that runs."""
        self._refuse_where_readonly()
        self.panel.box.interrupt()
        return {}

    @slow_request
    def resolve(self, *, id: str, how: Literal["mine", "both", "theirs"]) -> dict[str, Any]:
        """Settle what was put aside.

        Raises:
            ConflictError: `mine`, and the store has another text than the one that the person has compared it with.
        """
        self._refuse_where_readonly()
        change = self._change(id)
        if how == "mine" and self._seen.get(id, head := _id_of(change.head())) != head:
            raise ConflictError(
                f"{change.path} was changed in the store meanwhile", hint="Look at the difference again."
            )
        written = settle([change], change.path, how)
        self.panel.box.sync_quietly()  # the folder shows it at once where it can
        self._look()
        self.happened("resolved", id=id, path=change.path, how=how)
        return {"said": _settled(change, how, written)}

    def _change(self, id: str) -> RejectedChange:
        for change in self.panel.box.rejected:
            if change.id == id:
                return change
        self._look_soon()
        raise NotFoundError("this was settled already", hint="The list is brought up to date.")

    def _refuse_where_readonly(self) -> None:
        if self.readonly:
            raise RefusedError("this view can be read only", hint="`%sandbox` changes the sandbox.")

    def _synced(self, work: Callable[[], SyncReport]) -> dict[str, Any]:
        status = self.panel.status
        if status.state == "busy":
            raise SandboxError(f"the sandbox is {status}", hint="Interrupt it, or wait until it has ended.")
        return self._said(work)

    def _said(self, work: Callable[[], SyncReport]) -> dict[str, Any]:
        self._refuse_where_readonly()
        try:
            report = work()
        except SyncConflictError as error:  # no failure here: what was put aside is shown below
            report = error.report
        self._look_soon()
        return {"said": (report_line(report) if report else "") or _NOTHING}

    # -- the differences -----------------------------------------------------------------------------

    def store_of(self, version: str) -> StoreReading:
        """The store of a version: one of those that are mounted."""
        stores = [one.store for one in self.panel.box.stores]
        ids = {each.id: each.memory_store_id for each in self._versions()}
        known = [store for store in stores if store.id == ids.get(version)]
        return (known or [store for store in stores if _has(store, version)] or stores)[0]

    def changed(self) -> None:
        """What was restored is to be brought, and what was erased is put aside no more."""
        self._look_soon()

    def own_text(self, text_id: str) -> Text | None:
        """`rejected:ID`: what was put aside, of a deletion nothing; `head:ID`: what the store has there now."""
        kind, _, name = text_id.partition(":")
        if kind == "rejected":
            change = self._change(name)
            return Text(change.text, name="deleted in the sandbox" if change.content is None else "yours, put aside")
        if kind == "head":
            head = self._change(name).head()
            self._seen[name] = _id_of(head)
            return Text("", name="nothing in the store") if head is None else _text_of(head)
        return None


def _text_of(head: MemoryVersion) -> Text:
    return Text(head.content, name=f"@{head.ordinal} in the store")


def _id_of(version: MemoryVersion | None) -> str:
    return version.id if version else ""


def _left(count: int) -> str:
    return f"; {counted(count, 'earlier one')} not shown here" if count else ""


def _settled(change: RejectedChange, how: str, written: str | None) -> str:
    if how == "theirs":
        return f"What was put aside of {change.path} is discarded; the store's stays."
    if change.content is None:
        return f"{change.path} is deleted, as it had been in the sandbox."
    return f"{written} holds the text that was put aside."


def _has(store: Store, version: str) -> bool:
    try:
        store.version(None, version)
    except MemkernelError:
        return False
    return True
