"""The sandboxes of one notebook: which one a cell means, and the sync after every cell.

SANDBOX.md, Decisions 18 and 21.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from weakref import WeakKeyDictionary

from IPython.core.error import UsageError

from memkernel.errors import DatabaseUnavailableError, MemkernelError, SandboxClosedError
from memkernel.jupyter.progress import Progress
from memkernel.models import Access, StoreReport, SyncReport
from memkernel.render import report_line

if TYPE_CHECKING:
    from memkernel.handle.sandbox import Sandbox
    from memkernel.handle.store import Store

Stores: TypeAlias = "tuple[tuple[Store, Access], ...]"

FIRST_NAME: Final = "main"
_HANDLE: Final = "memkernel.handle.sandbox"


@dataclass(frozen=True, slots=True)
class Ask:
    """What a line asks of a sandbox. `stores` is empty where it names none; `options` has only what it names."""

    stores: Stores = ()
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def clash(self, running: Ask) -> str:
        """What this line asks for that a sandbox which runs as `running` has not; nothing where all is well."""
        wanted, mounted = _accesses(self.stores), _accesses(running.stores)
        if wanted and wanted != mounted:
            return f"with {_named(running.stores)} and not with {_named(self.stores)}"
        others = (each for each in self.options.items() if running.options.get(each[0]) != each[1])
        return next((f"but not with {_option(*each)}" for each in others), "")


def _ask_of(box: Sandbox) -> Ask:
    return Ask(tuple((one.store, one.access) for one in box.stores), box.options)


def _accesses(stores: Stores) -> dict[str, Access]:
    return {store.id: access for store, access in stores}


def _named(stores: Stores) -> str:
    names = (f"{store.slug} ({'writable' if access == 'read_write' else 'read-only'})" for store, access in stores)
    return ", ".join(names) or "no store"


def _option(name: str, value: object) -> str:
    return f"{name} {' '.join(map(str, value)) if isinstance(value, tuple) else value}"  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]  # a tuple of whatever


class Sandboxes:
    """The sandboxes of this kernel, also those that were made in Python; the current one was started last."""

    def __init__(self) -> None:
        self._gone: dict[str, Ask] = {}
        self._gone_current: str | None = None
        self._synced: set[str] = set()
        self._told: WeakKeyDictionary[Sandbox, str] = WeakKeyDictionary()
        self._seen: WeakKeyDictionary[Sandbox, int] = WeakKeyDictionary()

    @property
    def open(self) -> list[Sandbox]:
        """All that were started and not stopped, the current one last."""
        module: Any = sys.modules.get(_HANDLE)  # where nobody has loaded it there is none, and it is not light
        return module.open_sandboxes() if module is not None else []

    @property
    def names(self) -> list[str]:
        """Their names, the current one last."""
        return [box.name for box in self.open]

    @property
    def current(self) -> Sandbox | None:
        """The one that was started last; None where none is open."""
        return self.open[-1] if self.open else None

    def find(self, name: str | None = None) -> Sandbox:
        """The sandbox of this name, else the current one.

        Raises:
            SandboxClosedError: none is open.
            UsageError: none of this name is.
        """
        boxes = [box for box in self.open if name in (None, box.name)]
        if boxes:
            return boxes[-1]
        if name is None:
            raise SandboxClosedError("no sandbox is running")
        running = f"Running: {', '.join(self.names)}." if self.open else "None is running."
        raise UsageError(f"there is no sandbox {name!r}\n{running} `%sandbox start {name}` starts it.")

    def asked(self, name: str | None, ask: Ask) -> Sandbox | None:
        """The sandbox that a line means, where it runs already; None where it has to be started.

        Raises:
            UsageError: it runs, with other stores, another image or other limits.
        """
        name = name or self._gone_current
        if not self.open or (name is not None and name not in self.names):
            return None
        box = self.find(name)
        if clash := ask.clash(_ask_of(box)):
            raise UsageError(
                f"the sandbox {box.name} runs already, {clash}\n"
                "`%sandbox stop` ends it first; `--name NAME` starts another one beside it."
            )
        return box

    def again(self, name: str | None, ask: Ask) -> tuple[str, Ask]:
        """What to start: one like the sandbox that was lost, where the line means that and asks for nothing else."""
        name = name or self._gone_current or FIRST_NAME
        lost = self._gone.get(name)
        return name, ask if lost is None or ask.clash(lost) else lost

    def was_lost(self, name: str) -> bool:
        """Whether a sandbox of this name is gone that nobody has stopped."""
        return name in self._gone

    def start(self, name: str, ask: Ask, progress: Progress) -> Sandbox:
        """Start a sandbox; it is the current one from now on.

        Raises:
            SandboxError: it cannot be started; nothing is left behind.
            InvalidInputError: an option is none.
        """
        from memkernel.handle.mounts import Attached
        from memkernel.handle.sandbox import Sandbox

        box = Sandbox(*(Attached(*one) for one in ask.stores), name=name, **ask.options)
        box.start(progress)
        self._gone.pop(name, None)
        self._gone_current = None
        self._seen[box] = len(box.history)
        self.synced(box)
        return box

    def retire(self, box: Sandbox) -> None:
        """End a sandbox whose container or engine is gone, after a last attempt to save; the next is like it."""
        self._gone[box.name] = _ask_of(box)
        self._gone_current = box.name if box is self.current else self._gone_current
        with suppress(MemkernelError):  # its folder stays, and is saved when the next sandbox starts
            box.stop()

    # -- the sync after every cell -------------------------------------------------------------------

    def synced(self, box: Sandbox, shown: SyncReport | None = None) -> None:
        """This cell has synced the sandbox already, and shows this report of it; later ones are told in a line."""
        if box.is_open:
            self._synced.add(box.id)
        self._tell(box, shown)

    def after_cell(self, result: object = None) -> None:
        """IPython's `post_run_cell`: sync what the cell has not, and print a line a sandbox where that did something.

        It cannot change the cell's status, waits for nobody, and never raises (fault 43). A cell that ended as the
        database does not answer has said what a sync would say.
        """
        done, self._synced = self._synced, set()
        if isinstance(getattr(result, "error_in_exec", None), DatabaseUnavailableError):
            return
        for box in self.open:
            if box.id not in done:
                self._sync_quietly(box)

    def _sync_quietly(self, box: Sandbox) -> None:
        try:
            box.sync_quietly()
            self._tell(box, None)
        except KeyboardInterrupt:
            self._say(box, "the sync was interrupted; the next cell tries again")
        except Exception as error:  # the cell is over, and was somebody else's
            self._say(box, f"could not be synced: {error}")

    def _tell(self, box: Sandbox, shown: SyncReport | None) -> None:
        """A line for all syncs that nobody has seen: an agent's calls, or one that took longer than its cell waited."""
        from memkernel.runtime.reports import joined

        history = box.history
        unseen = [report for report in history[self._seen.get(box, 0) :] if report is not shown]
        self._seen[box] = len(history)
        if unseen:
            report = reduce(joined, unseen)
            self._say(box, report_line(report), is_news=any(map(_changed, report.stores)))

    def _say(self, box: Sandbox, line: str, *, is_news: bool = False) -> None:
        if line and (is_news or self._told.get(box) != line):
            print(f"sandbox {box.name}: {line}")
        self._told[box] = line


def _changed(store: StoreReport) -> bool:
    """Whether a sync did something, and not only found what it had found before."""
    saved = (store.created, store.modified, store.deleted, store.merged)
    return any(map(bool, (*saved, store.pulled, store.removed, store.conflicts)))
