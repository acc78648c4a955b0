"""Many changes of one store in one transaction (CONTRACT D.4).

What each change comes to is decided purely, by `decide`, from the heads that were read under the store's lock.
The versions then go into their table by binary COPY and the heads follow in three statements: 2,000 changes of
4 KB cost 1.2 to 1.5 times a bare COPY of their contents, function calls in a pipeline four times (PERFORMANCE B).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from struct import Struct
from typing import Final, NamedTuple

from memkernel import ids
from memkernel.errors import InvalidInputError, PreconditionFailedError, StoreArchivedError
from memkernel.models import ABSENT, Absent, Actor, Cause, Change, MemoryVersion, Operation
from memkernel.store import checks, queries, rows
from memkernel.store.connections import StoreConnection
from memkernel.store.statements import micros

_ORDER: Final[tuple[Operation, ...]] = ("deleted", "modified", "created")

_HEADER: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TRAILER: Final = b"\xff\xff"
_NULL: Final = b"\xff\xff\xff\xff"
_LENGTH: Final = Struct("!i")
_NUMBERS: Final = Struct("!iqii")  # seq and ordinal, each after its length
_SIZE_AND_TIME: Final = Struct("!iiiq")
_TIME: Final = Struct("!iq")
_SLICE: Final = 32


class Wanted(NamedTuple):
    """A change that was checked: the bytes that its path shall hold (None: nothing)."""

    path: str
    data: bytes | None
    sha256: bytes | None
    expect: bytes | Absent | None


class Head(NamedTuple):
    """What is at a path now."""

    memory_id: str
    sha256: bytes
    ordinal: int


class Decided(NamedTuple):
    """What a change comes to; `position` is its place in the batch."""

    position: int
    wanted: Wanted
    operation: Operation
    memory_id: str
    ordinal: int


class LockedStore(NamedTuple):
    """The store under its lock."""

    id: str
    workspace_id: str
    seq: int
    moment: datetime
    archived: bool


def check(changes: Iterable[Change], limit_bytes: int) -> list[Wanted]:
    """The changes, checked.

    Raises:
        InvalidInputError: a value is illegal, or a path occurs twice; InvalidPathError, InvalidContentError.
    """
    wanted = [_wanted(change, limit_bytes) for change in changes]
    seen: set[str] = set()
    for change in wanted:
        if change.path in seen:
            raise InvalidInputError(f"{change.path} occurs twice in one batch")
        seen.add(change.path)
    return wanted


def _wanted(change: Change, limit_bytes: int) -> Wanted:
    data = None if change.content is None else checks.content(change.content, limit_bytes)
    expected, absent = checks.expectation(change.expect)
    return Wanted(
        path=checks.path(change.path),
        data=data,
        sha256=None if data is None else hashlib.sha256(data).digest(),
        expect=ABSENT if absent else expected,
    )


def decide(wanted: Sequence[Wanted], heads: Mapping[str, Head]) -> list[Decided]:
    """What each change comes to, deletions first and creations last; what is there already is left out.

    Raises:
        PreconditionFailedError: of the first change that does not find what it expects.
    """
    decided = [
        _decide(position, change, heads.get(change.path))
        for position, change in enumerate(wanted)
        if not _is_so(change, heads.get(change.path))
    ]
    return sorted(decided, key=lambda one: _ORDER.index(one.operation))


def _is_so(change: Wanted, head: Head | None) -> bool:
    return change.sha256 == (head and head.sha256)


def _decide(position: int, change: Wanted, head: Head | None) -> Decided:
    _check_expectation(change, head)
    if head is None:
        return Decided(position, change, "created", ids.mint("mem"), 1)
    operation: Operation = "deleted" if change.data is None else "modified"
    return Decided(position, change, operation, head.memory_id, head.ordinal + 1)


def _check_expectation(change: Wanted, head: Head | None) -> None:
    if change.expect is None:
        return
    actual = None if head is None else head.sha256
    expected = None if isinstance(change.expect, Absent) else change.expect
    if actual != expected:
        raise PreconditionFailedError(change.path, _hex(expected), _hex(actual))


def _hex(sha256: bytes | None) -> str | None:
    return None if sha256 is None else sha256.hex()


@dataclass(frozen=True, slots=True)
class Batch:
    """Changes that were checked, and all that they need to be made."""

    store_id: str
    wanted: Sequence[Wanted]
    version_ids: Sequence[str]  # taken in the order of seq: where anything is saved, the first one is
    limit: int
    actor: Actor
    cause: Cause | None

    def apply(self, connection: StoreConnection) -> list[MemoryVersion | None]:
        """Make it; the versions in the order of the changes, None where nothing had to change.

        Raises:
            MemkernelError: of the store, of a precondition.
            psycopg.Error: capacity and overlap, judged on the result.
        """
        with connection.transaction():
            store = begin(connection, self.store_id)
            decided = decide(self.wanted, _heads(connection, self.store_id, [one.path for one in self.wanted]))
            if store.archived and any(one.operation != "deleted" for one in decided):
                raise StoreArchivedError(self.store_id)
            versions = self.write(connection, store, decided) if decided else []
        made: list[MemoryVersion | None] = [None] * len(self.wanted)
        for one, version in zip(decided, versions, strict=True):
            made[one.position] = version
        return made

    def write(self, connection: StoreConnection, store: LockedStore, decided: Sequence[Decided]) -> list[MemoryVersion]:
        """Make what was decided, in the transaction that holds the store's lock; the versions in that order.

        Raises:
            psycopg.Error: capacity and overlap, judged on the result.
        """
        versions = self._copy(connection, store, decided)
        counted = (self.store_id, store.seq, len(decided), store.moment, self.limit)
        connection.run(queries.BATCH_FINISH, *counted, *checks.cause(self.cause))
        return versions

    def _copy(self, connection: StoreConnection, store: LockedStore, decided: Sequence[Decided]) -> list[MemoryVersion]:
        kind, ident = checks.actor(self.actor)
        before = b"\0\x0e" + _field(store.workspace_id.encode()) + _field(store.id.encode())
        after = _field(kind.encode()) + _field(ident.encode())
        time = micros(store.moment)
        versions: list[MemoryVersion] = []
        with connection.cursor() as cursor, cursor.copy(queries.BATCH_COPY) as copy:
            copy.write(_HEADER)
            for first in range(0, len(decided), _SLICE):  # the server stores one slice while the next one is packed
                parts: list[bytes] = []
                for n, one in enumerate(decided[first : first + _SLICE], first):
                    parts += (before, *_row(self.version_ids[n], store.seq + 1 + n, one, time), after)
                    versions.append(_version(store, n, one, self))
                copy.write(b"".join(parts))
            copy.write(_TRAILER)
        return versions

    def find(self, connection: StoreConnection) -> list[MemoryVersion | None] | None:
        """What `apply` would have answered, if the batch was saved; None if it was not."""
        saved = connection.run(queries.VERSIONS_SAVED, self.store_id, self.version_ids)
        if not rows.number(saved.get_value(0, 0)):
            return None
        result = connection.run(queries.VERSIONS_BY_ID, self.store_id, self.version_ids)
        versions = [rows.version_in_view(result, row, self.store_id) for row in range(result.ntuples)]
        by_path = {version.path: version for version in versions}
        return [by_path.get(one.path) for one in self.wanted]


def begin(connection: StoreConnection, store_id: str) -> LockedStore:
    """Lock the store, in a transaction of the caller's."""
    get = connection.run(queries.BATCH_BEGIN, store_id).get_value
    return LockedStore(
        store_id, rows.text(get(0, 0)), rows.number(get(0, 1)), rows.moment(get(0, 2)), get(0, 3) == b"\x01"
    )


def _heads(connection: StoreConnection, store_id: str, paths: Sequence[str]) -> dict[str, Head]:
    result = connection.run(queries.BATCH_HEADS, store_id, paths)
    get = result.get_value
    return {
        rows.text(get(row, 0)): Head(rows.text(get(row, 1)), get(row, 2) or b"", rows.number(get(row, 3)))
        for row in range(result.ntuples)
    }


def _row(version_id: str, seq: int, one: Decided, time: int) -> tuple[bytes, ...]:
    """A version in binary, but for the columns that are the same in the whole batch."""
    data, sha256 = one.wanted.data, one.wanted.sha256
    head = (
        _field(version_id.encode()),
        _NUMBERS.pack(8, seq, 4, one.ordinal),
        _field(one.memory_id.encode()),
        _field(one.operation.encode()),
        _field(one.wanted.path.encode()),
    )
    if data is None or sha256 is None:
        return (*head, _NULL, _NULL, _NULL, _TIME.pack(8, time))
    return (
        *head,
        _LENGTH.pack(len(data)),
        data,
        _field(sha256),
        _SIZE_AND_TIME.pack(4, len(data), 8, time),
    )


def _field(value: bytes) -> bytes:
    return _LENGTH.pack(len(value)) + value


def _version(store: LockedStore, n: int, one: Decided, batch: Batch) -> MemoryVersion:
    data, sha256 = one.wanted.data, one.wanted.sha256
    return MemoryVersion(
        id=batch.version_ids[n],
        memory_store_id=store.id,
        memory_id=one.memory_id,
        seq=store.seq + 1 + n,
        ordinal=one.ordinal,
        operation=one.operation,
        path=one.wanted.path,
        content=None,
        content_sha256=_hex(sha256),
        content_size_bytes=None if data is None else len(data),
        created_at=store.moment,
        created_by=batch.actor,
        redacted_at=None,
        redacted_by=None,
    )
