"""Which run a line means: `last`, or an id; and what is kept of it."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from IPython.core.error import UsageError

from memkernel.errors import StoreNotFoundError
from memkernel.handle.runs import changes_of
from memkernel.jupyter.arguments import Parser
from memkernel.jupyter.commands.agent_options import LAST
from memkernel.jupyter.notebook import Notebook
from memkernel.models import RunRecord

if TYPE_CHECKING:
    from memkernel.agent.stored_run import StoredRun
    from memkernel.handle.store import Store


def takes_run(parser: Parser, help: str, *, optional: bool = False) -> None:
    """RUN."""
    parser.add_argument(
        "run", metavar="RUN", nargs="?" if optional else None, default=LAST if optional else None, help=help
    )


def run_of(notebook: Notebook, ref: str) -> RunRecord:
    """The run that a person means.

    Raises:
        UsageError: it is the last one, and there is none.
        RunNotFoundError: there is none with this id.
    """
    if ref != LAST:
        return notebook.connection.run(ref)
    newest = notebook.connection.runs(limit=1)
    if not newest:
        raise UsageError("there is no run yet\nAn `%%agent` cell begins one.")
    return newest[0]


def stored(notebook: Notebook, record: RunRecord) -> StoredRun:
    """The run with all that happened in it."""
    from memkernel.agent.stored_run import StoredRun

    rows, stores = notebook.connection.run_events(record.id), _stores(notebook, record)
    return StoredRun(record, rows, changes=partial(changes_of, stores), stores=stores)


def _stores(notebook: Notebook, record: RunRecord) -> list[Store]:
    """Those that are still there: what happened is told all the same."""
    found: list[Store] = []
    for memory_store_id in record.memory_store_ids:
        with suppress(StoreNotFoundError):
            found.append(notebook.connection.store(memory_store_id))
    return found
