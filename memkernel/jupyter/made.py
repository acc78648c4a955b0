"""A run that has ended, as text and HTML, with a line below each call for every version that it made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Final

from memkernel.agent import transcript
from memkernel.errors import MemkernelError
from memkernel.handle.store import Store
from memkernel.jupyter.reports import lines_of
from memkernel.models import MemoryVersion
from memkernel.render import CHANGE_SIGNS, lines_text, one_line

if TYPE_CHECKING:
    from memkernel.agent.run import Run

TOLD: Final = 20
"""Of so many versions of a run the lines are counted, and told; each costs two small queries."""


class EndedRun:
    """A run and what it made, as the database knows it now; of one that goes on nothing is looked up."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._made = {} if run.status == "running" else made_lines(run)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return self.mimebundle()

    def mimebundle(self) -> dict[str, str]:
        """As text and as HTML."""
        run, badge = self._run, getattr(self._run, "badge", None)
        return {
            "text/plain": transcript.as_text(run.events, self._made, cost_usd=run.cost_usd, badge=badge),
            "text/html": transcript.as_html(run.events, self._made, cost_usd=run.cost_usd, badge=badge),
        }


def made_lines(run: Run) -> dict[str, list[str]]:
    """The id of a call -> `~ /units.md @3 +2 −1` for each version; less where the database does not answer."""
    found: dict[str, list[str]] = {}
    with suppress(MemkernelError):  # what happened is told without them
        for store, call, version in islice(_versions(run), TOLD):
            found.setdefault(call, []).append(_line(store, version, with_store=len(run.stores) > 1))
    return found


def _versions(run: Run) -> Iterator[tuple[Store, str, MemoryVersion]]:
    for store in run.stores:
        if isinstance(store, Store):
            made = store.connection.database.memory_versions.changes_by_call(store.id, run.id)
            yield from ((store, call, version) for call, versions in made.items() for version in versions)


def _line(store: Store, version: MemoryVersion, *, with_store: bool) -> str:
    place = f"{store.slug}:" if with_store else ""
    path = one_line(f"{place}{version.path or 'redacted'}")
    counts = "" if version.redacted_at else f" {lines_text(lines_of(store.connection.database, version))}"
    return f"{CHANGE_SIGNS[version.operation]} {path} @{version.ordinal}{counts}"
