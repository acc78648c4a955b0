"""The runs of this process, and what the stores say of a run."""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from memkernel.errors import DatabaseError, DatabaseUnavailableError, MemkernelError, StoreNotFoundError
from memkernel.handle.records import Records
from memkernel.models import MemoryVersion

if TYPE_CHECKING:
    from memkernel.agent.ledger import Ledger
    from memkernel.agent.run import Run
    from memkernel.handle.store import Store
    from memkernel.store import Database
    from memkernel.store.runs import Runs

_lock: Final = threading.Lock()
_going: Final[dict[str, Run]] = {}
_unsettled: Final[list[Ledger]] = []


def running() -> list[Run]:
    """The runs of this process that go on, oldest first."""
    with _lock:
        return list(_going.values())


@contextmanager
def going(run: Run) -> Generator[None]:
    """In the block the run is one that goes on; where its end could not be written, that is made up for later."""
    ledger, over = run.ledger, threading.Event()
    with _lock:
        _going[run.id] = run
    try:
        if ledger is not None:
            threading.Thread(target=_say_alive, args=(ledger, over), name="memkernel-run-alive", daemon=True).start()
        yield
    finally:
        over.set()
        with _lock:
            _going.pop(run.id, None)
            if ledger is not None and not ledger.is_settled:
                _unsettled.append(ledger)
        if ledger is not None and ledger.lost is None:
            settle()  # an interrupt came in between, and the database is there


def _say_alive(ledger: Ledger, over: threading.Event) -> None:
    from memkernel.store import run_processes

    while not over.wait(run_processes.ALIVE_S):
        with suppress(Exception):  # whatever it is, the run itself meets it, and says so
            ledger.say_alive()


def settle(kept_by: Runs | None = None) -> None:
    """Write the ends of runs that could not be written; those for which it fails again are kept.

    Args:
        kept_by: only of this database; None: of each.
    """
    with _lock:
        waiting = [ledger for ledger in _unsettled if kept_by is None or ledger.has_kept(kept_by)]
        _unsettled[:] = [ledger for ledger in _unsettled if ledger not in waiting]
    for ledger in waiting:
        try:
            ledger.settle()
        except DatabaseUnavailableError:
            with _lock:
                _unsettled.append(ledger)
        except MemkernelError:  # it was deleted, or taken over: there is nothing to write to
            pass


def changes_of(stores: Sequence[Store], run_id: str, tool_use_id: str | None = None) -> Records[MemoryVersion]:
    """The versions that a run made, or one of its calls: a store after the other, oldest first."""
    made: list[MemoryVersion] = []
    for store in stores:
        versions = store.connection.database.memory_versions
        with suppress(StoreNotFoundError):  # deleted meanwhile
            made += versions.list_by_run(store.id, run_id, tool_use_id=tool_use_id)
    return Records(made, kind=MemoryVersion)


def is_saved(database: Database, memory_store_ids: Sequence[str], run_id: str, tool_use_id: str) -> bool | None:
    """Whether a call has changed one of the stores, once and for all; None where one of them cannot be asked.

    Raises:
        DatabaseUnavailableError: nobody can say yet.
    """
    answers = [_answer(database, store_id, run_id, tool_use_id) for store_id in memory_store_ids]
    return True if True in answers else None if None in answers or not answers else False


def _answer(database: Database, memory_store_id: str, run_id: str, tool_use_id: str) -> bool | None:
    try:
        return database.runs.is_saved(memory_store_id, run_id, tool_use_id)
    except DatabaseUnavailableError:
        raise
    except (StoreNotFoundError, DatabaseError):
        return None
