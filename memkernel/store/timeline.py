"""A store as of any point of its history, and what differs between two points."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from psycopg import pq

from memkernel.errors import HistoryPrunedError, InvalidInputError, StoreNotFoundError
from memkernel.models import Memory, MemoryVersion, Point, StoreAsOf, StoreChange
from memkernel.store import checks, memory_stores, rows, timeline_queries
from memkernel.store.connections import StoreConnection
from memkernel.store.contact import Contact
from memkernel.store.statements import Parameter, Statement

_AFTER_VERSION: Final = 14
_CHUNK: Final = 100

Sides = tuple[MemoryVersion | None, MemoryVersion | None]


class Timeline:
    """The history of the stores of a database, read at points."""

    def __init__(self, contact: Contact) -> None:
        self._contact = contact

    def point(self, memory_store_id: str, asked: int | datetime | None = None) -> Point:
        """The point after a change, or at a time: after the newest change that was made by then.

        Args:
            memory_store_id: the store.
            asked: a change's number; 0 is before the first one, -1 before the newest one. Or a time; without a zone
                it is UTC. None is after the newest change.

        Raises:
            StoreNotFoundError: there is no such store.
            HistoryPrunedError: what was there then was pruned.
            InvalidInputError: the store has no such change yet; neither a whole number nor an aware datetime.
        """
        store_id = memory_stores.known(memory_store_id)
        moment = checks.moment("moment", asked) if isinstance(asked, datetime) else None
        seq = None if asked is None or moment else _seq(asked)

        def read(connection: StoreConnection) -> Point:
            result = connection.run(timeline_queries.POINT, store_id, seq, moment)
            if not result.ntuples:
                raise StoreNotFoundError(store_id)
            found, created_at = rows.number(result.get_value(0, 2)), result.get_value(0, 3)
            named = f"change {seq}" if moment is None else f"the store at {moment.isoformat()}"
            _refuse_unknown(result, 0, found, named=named)
            return Point(store_id, found, None if created_at is None else rows.moment(created_at))

        return self._contact.read(read)

    def span(self, memory_store_id: str) -> tuple[int, int]:
        """The numbers of the first and of the last change after which the store can be read.

        Raises:
            StoreNotFoundError: there is no such store.
        """
        store_id = memory_stores.known(memory_store_id)

        def read(connection: StoreConnection) -> tuple[int, int]:
            result = connection.run(timeline_queries.POINT, store_id, None, None)
            if not result.ntuples:
                raise StoreNotFoundError(store_id)
            return rows.number(result.get_value(0, 1)), rows.number(result.get_value(0, 0))

        return self._contact.read(read)

    def as_of(self, memory_store_id: str, seq: int, path: str = "/") -> StoreAsOf:
        """What was at or below a path after a change, in path order, without contents.

        Args:
            memory_store_id: the store.
            seq: the change's number; 0 is before the first one.
            path: `/`, a memory, or a directory with or without its last slash.

        Raises:
            StoreNotFoundError, HistoryPrunedError, InvalidInputError: as `point`; InvalidPathError.
        """
        store_id, root = memory_stores.known(memory_store_id), checks.tree(path)

        def read(connection: StoreConnection) -> StoreAsOf:
            result = _run(connection, timeline_queries.AS_OF, store_id, seq, root)
            versions = [(rows.version(result, row, store_id, None), row) for row in _rows(result)]
            return StoreAsOf(
                [
                    _memory(version, rows.moment(result.get_value(row, _AFTER_VERSION)))
                    for version, row in versions
                    if version.path is not None
                ],
                [version for version, _ in versions if version.path is None],
            )

        return self._contact.read(read)

    def compare(self, memory_store_id: str, old_seq: int, new_seq: int) -> list[StoreChange]:
        """What differs between two points, in path order; what was redacted on both sides comes last.

        What was created and deleted again between them, or has come back to its text and path, is no difference.

        Raises:
            StoreNotFoundError, HistoryPrunedError, InvalidInputError: as `point`.
        """
        store_id = memory_stores.known(memory_store_id)

        def read(connection: StoreConnection) -> list[StoreChange]:
            result = _run(connection, timeline_queries.COMPARE, store_id, old_seq, new_seq)
            sides: tuple[dict[str, MemoryVersion], dict[str, MemoryVersion]] = ({}, {})
            for row in _rows(result):
                version = rows.version(result, row, store_id, None)
                sides[rows.number(result.get_value(row, _AFTER_VERSION))][version.memory_id] = version
            old, new = sides
            return changes((old.get(memory), new.get(memory)) for memory in old | new)

        return self._contact.read(read)

    def contents(
        self, memory_store_id: str, version_ids: Iterable[str], containing: bytes | None = None
    ) -> Iterator[tuple[str, str]]:
        """Id and text of each of these versions that has one, in their order, read in chunks as they are consumed.

        Args:
            memory_store_id: the store.
            version_ids: `memver_…`
            containing: only texts that hold these bytes.
        """
        store_id, wanted = memory_stores.known(memory_store_id), list(version_ids)
        for start in range(0, len(wanted), _CHUNK):
            chunk = wanted[start : start + _CHUNK]
            found = self._contact.read(lambda connection, chunk=chunk: _texts(connection, store_id, chunk, containing))
            yield from ((version_id, found[version_id]) for version_id in chunk if version_id in found)


def changes(sides: Iterable[Sides]) -> list[StoreChange]:
    """What differs, of each lineage's versions at two points.

    A lineage that is there no longer and another that is there instead, at the same path, are one change.

    Args:
        sides: a lineage's version at the older and at the newer point; None is before its beginning.
    """
    stayed: list[Sides] = []
    ended: list[tuple[MemoryVersion, MemoryVersion | None]] = []
    began: dict[str, MemoryVersion] = {}
    for old, new in sides:
        match _living(old), _living(new):
            case None, MemoryVersion() as living:
                began[living.path or living.id] = living
            case MemoryVersion() as living, None:
                ended.append((living, new))
            case living, other:
                stayed.append((living, other))
    stayed += [(old, began.pop(old.path or "", end)) for old, end in ended]
    stayed += [(None, new) for new in began.values()]
    found = [change for old, new in stayed if (change := _change(old, new))]
    return sorted(found, key=lambda change: (change.path is None, change.path or "", change.kind))


def _change(old: MemoryVersion | None, new: MemoryVersion | None) -> StoreChange | None:
    if new is None or new.operation == "deleted":
        return StoreChange("deleted", old.path or (new and new.path), None, old, new) if old else None
    if old is None:
        return StoreChange("created", new.path, None, None, new)
    if old.path and new.path and old.path != new.path:
        return StoreChange("renamed", new.path, old.path, old, new)
    is_same = old.content_sha256 is not None and old.content_sha256 == new.content_sha256
    return None if is_same else StoreChange("modified", new.path or old.path, None, old, new)


def _living(version: MemoryVersion | None) -> MemoryVersion | None:
    """The version, where the memory was there then."""
    return None if version is None or version.operation == "deleted" else version


def _memory(version: MemoryVersion, began: datetime) -> Memory:
    """The memory of a version that is not redacted, as it was then."""
    return Memory(
        id=version.memory_id,
        memory_store_id=version.memory_store_id,
        memory_version_id=version.id,
        path=version.path or "",
        content=None,
        content_size_bytes=version.content_size_bytes or 0,
        content_sha256=version.content_sha256 or "",
        created_at=began,
        updated_at=version.created_at,
    )


def _seq(value: object) -> int:
    """The number of a change of a store, or how far before its newest one."""
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 2**62:
        raise InvalidInputError(f"seq is {value!r}; changes are counted from 1, or back from the newest one from -1")
    return value


def _run(connection: StoreConnection, statement: Statement, store_id: str, *values: Parameter) -> pq.abc.PGresult:
    """What the store's history answers about the changes with these numbers."""
    result = connection.run(statement, store_id, *values)
    if not result.ntuples:
        raise StoreNotFoundError(store_id)
    for seq in values:
        if isinstance(seq, int):
            _refuse_unknown(result, result.nfields - 2, seq, named=f"change {seq:,}")
    return result


def _refuse_unknown(result: pq.abc.PGresult, column: int, seq: int, *, named: str) -> None:
    """Nothing is told of a point that is not known any more, or not yet."""
    newest, pruned_through = (rows.number(result.get_value(0, column + offset)) for offset in range(2))
    if not 0 <= seq <= newest:
        raise InvalidInputError(
            f"there is no {named}: the newest one of the store is {newest:,}",
            hint="0 is before the first one, -1 before the newest one.",
        )
    if seq < pruned_through:
        raise HistoryPrunedError(pruned_through, named)


def _rows(result: pq.abc.PGresult) -> Iterator[int]:
    """The rows that have a version: where there is none, one tells of the store alone."""
    return (row for row in range(result.ntuples) if result.get_value(row, 0) is not None)


def _texts(
    connection: StoreConnection, store_id: str, version_ids: Sequence[str], containing: bytes | None
) -> dict[str, str]:
    result = connection.run(timeline_queries.CONTENTS_BY_ID, store_id, version_ids, containing)
    return {rows.text(result.get_value(row, 0)): rows.text(result.get_value(row, 1)) for row in range(result.ntuples)}
