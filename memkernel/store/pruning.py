"""Pruning: old versions go for ever (CONTRACT 0.3, row 18; B.10, retention)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Final, NoReturn

from memkernel.errors import DatabaseUnavailableError, StoreNotFoundError
from memkernel.models import Pruned
from memkernel.store import checks, memory_stores, prune_queries, rows
from memkernel.store.connections import StoreConnection
from memkernel.store.contact import Contact

_MICROSECOND: Final = timedelta(microseconds=1)


class Pruning:
    """Takes old versions out of the memory stores of a workspace."""

    def __init__(self, contact: Contact) -> None:
        self._contact = contact

    def prune(
        self, *, older_than: timedelta, keep: int = 3, memory_store_id: str | None = None, dry_run: bool = False
    ) -> Iterator[Pruned]:
        """Delete what was superseded, or ended, before a time; each store in a transaction of its own.

        What was current at any moment since then stays, and so does every head; numbers do not change. After the last
        store what is left of the rows is vacuumed away, as far as this role may; their disk space is used again.

        Args:
            older_than: 30 days or more.
            keep: so many of its newest versions a live memory keeps, however old they are.
            memory_store_id: one store, archived or not; None is all of the workspace.
            dry_run: count what would go, and leave it.

        Yields:
            What went, store by store, as soon as it is gone; stores that lose nothing are left out.

        Raises:
            InvalidInputError: a value is illegal.
            StoreNotFoundError: there is no such store.
            DatabaseUnavailableError: the server was lost; where `saved` is None, run it again.
        """
        rule = (checks.retention(older_than) // _MICROSECOND, checks.keep(keep), bool(dry_run))
        one = None if memory_store_id is None else memory_stores.known(memory_store_id)
        pruned = self._all(rule) if one is None else self._asked(one, rule)
        return pruned if dry_run else self._cleared(pruned)

    def _cleared(self, pruned: Iterator[Pruned]) -> Iterator[Pruned]:
        count = 0
        for one in pruned:
            yield one
            count += 1
        if count:
            self._contact.clear_versions()

    def _all(self, rule: tuple[int, int, bool]) -> Iterator[Pruned]:
        for store_id in self._contact.read(self._store_ids):
            with suppress(StoreNotFoundError):  # deleted meanwhile
                yield from self._asked(store_id, rule)

    def _store_ids(self, connection: StoreConnection) -> list[str]:
        result = connection.run(prune_queries.PRUNABLE_STORES, self._contact.workspace_id)
        return [rows.text(result.get_value(row, 0)) for row in range(result.ntuples)]

    def _asked(self, store_id: str, rule: tuple[int, int, bool]) -> Iterator[Pruned]:
        def prune(connection: StoreConnection) -> Pruned:
            result = connection.run(prune_queries.STORE_PRUNE, store_id, *rule)
            counts = [rows.number(result.get_value(0, column)) for column in range(1, 4)]
            return Pruned(store_id, rows.text(result.get_value(0, 0)), *counts)

        if rule[-1]:  # a dry run, which may be run twice
            pruned = self._contact.read(prune)
        else:
            pruned = self._contact.change(prune, _unknown, memory_store_id=store_id)
        if pruned.versions:
            yield pruned


def _unknown(_: StoreConnection) -> NoReturn:
    """Pruned again, a store would have nothing left to tell of."""
    raise DatabaseUnavailableError()
