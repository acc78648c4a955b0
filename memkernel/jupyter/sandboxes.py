"""The sandboxes of one notebook: which one a cell means, and the sync after every cell.

SANDBOX.md, Decisions 18 and 21.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from IPython.core.error import UsageError

from memkernel.errors import MemkernelError, SandboxClosedError
from memkernel.jupyter.progress import Progress
from memkernel.models import Access, StoreReport
from memkernel.render import report_line

if TYPE_CHECKING:
    from memkernel.handle.sandbox import Sandbox
    from memkernel.handle.store import Store

Stores: TypeAlias = "tuple[tuple[Store, Access], ...]"

FIRST_NAME: Final = "main"

# What `mk.Sandbox` takes where an option is left out: asking for it by name changes nothing.
_USUAL: Final[Mapping[str, object]] = {"network": "none", "memory": "512m", "cpus": 2.0, "pids": 256}


@dataclass(frozen=True, slots=True)
class Ask:
    """What a line asks of a sandbox. `stores` is empty where it names none; `options` has only what it names."""

    stores: Stores = ()
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def clash(self, running: Ask) -> str:
        """What this line asks for that a sandbox which runs as `running` has not; nothing where all is well."""
        wanted, mounted = _accesses(self.stores), _accesses(running.stores)
        if wanted and wanted != mounted:
            return f"it was started with {_named(running.stores)}, not with {_named(self.stores)}"
        has = {**_USUAL, **running.options}
        for name, value in self.options.items():
            if has.get(name) != value:
                return f"it was started with {name} {has.get(name) or 'as usual'}, not {value}"
        return ""


def _accesses(stores: Stores) -> dict[str, Access]:
    return {store.id: access for store, access in stores}


def _named(stores: Stores) -> str:
    names = (store.slug if access == "read_write" else f"{store.slug} (read-only)" for store, access in stores)
    return ", ".join(names) or "no store"


@dataclass(frozen=True, slots=True)
class _Open:
    box: Sandbox
    ask: Ask


class Sandboxes:
    """The sandboxes that the magics of this kernel have started, by name; the current one is the newest."""

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}
        self._synced: set[str] = set()
        self._told: dict[str, str] = {}

    def __iter__(self) -> Iterator[Sandbox]:
        return iter([each.box for each in self._open.values()])

    @property
    def names(self) -> list[str]:
        """Their names, the current one last."""
        return list(self._open)

    @property
    def current(self) -> Sandbox | None:
        """The one that was started last; None where none is open."""
        return self._open[self.names[-1]].box if self._open else None

    def find(self, name: str | None = None) -> Sandbox:
        """The sandbox of this name, else the current one.

        Raises:
            SandboxClosedError: none is open.
            UsageError: none of this name is.
        """
        if name is None:
            if self.current is None:
                raise SandboxClosedError("no sandbox is running")
            return self.current
        if name not in self._open:
            running = f"Running: {', '.join(self._open)}" if self._open else "None is running."
            raise UsageError(f"there is no sandbox {name!r}\n{running} `%sandbox start {name}` starts it.")
        return self._open[name].box

    def asked(self, name: str | None, ask: Ask) -> Sandbox | None:
        """The sandbox that a line means, where it runs already; None where it has to be started.

        Raises:
            UsageError: it runs, with other stores, another image or other limits.
        """
        name = name or (self.names[-1] if self._open else FIRST_NAME)
        known = self._open.get(name)
        if known is None:
            return None
        if clash := ask.clash(known.ask):
            raise UsageError(
                f"the sandbox {name} is running: {clash}\n"
                "`%sandbox stop` ends it first; `--name NAME` starts another one beside it."
            )
        return known.box

    def start(self, name: str | None, ask: Ask, progress: Progress) -> Sandbox:
        """Start a sandbox; it is the current one from now on.

        Raises:
            SandboxError: it cannot be started; nothing is left behind.
            InvalidInputError: an option is none.
        """
        from memkernel.handle.sandbox import Sandbox, read_only, read_write

        name = name or FIRST_NAME
        attached = [read_only(store) if access == "read_only" else read_write(store) for store, access in ask.stores]
        box = Sandbox(*attached, name=name, **ask.options)
        box.start(progress)
        self._open[name] = _Open(box, ask)
        self.synced(box)
        return box

    def forget(self, box: Sandbox) -> None:
        """The sandbox was stopped, or its container is gone."""
        self._open = {name: known for name, known in self._open.items() if known.box is not box}
        self._told.pop(box.id, None)

    def retire(self, box: Sandbox) -> None:
        """Forget a sandbox whose kernel is gone for good, after a last attempt to save what it left."""
        self.forget(box)
        with suppress(MemkernelError):  # its folder stays, and is saved when the next sandbox starts
            box.stop()

    # -- the sync after every cell -------------------------------------------------------------------

    def synced(self, box: Sandbox) -> None:
        """This cell has synced the sandbox already."""
        self._synced.add(box.id)

    def after_cell(self, *_: object) -> None:
        """IPython's `post_run_cell`: sync what the cell has not, and print a line a sandbox where that did something.

        It cannot change the cell's status, waits for nobody, and never raises (fault 43).
        """
        done, self._synced = self._synced, set()
        for box in self:
            if box.id not in done:
                self._sync_quietly(box)

    def _sync_quietly(self, box: Sandbox) -> None:
        try:
            report = box.sync_quietly()
            line = "" if report is None else report_line(report)
            is_news = report is not None and any(_changed(store) for store in report.stores)
        except (Exception, KeyboardInterrupt) as error:  # the cell is over, and was somebody else's
            line, is_news = f"could not be synced: {str(error) or type(error).__name__}", False
        if line and (is_news or self._told.get(box.id) != line):
            print(f"sandbox {box.name}: {line}")
        self._told[box.id] = line


def _changed(store: StoreReport) -> bool:
    """Whether a sync did something, and not only found what it had found before."""
    return bool(store.created or store.modified or store.deleted or store.merged or store.pulled or store.conflicts)
