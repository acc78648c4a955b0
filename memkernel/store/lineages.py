"""What is read of lineages: the versions of one memory from any of them on, and who else holds a text."""

from __future__ import annotations

from typing import Final, NoReturn

from psycopg import pq

from memkernel.errors import StoreNotFoundError, VersionNotFoundError
from memkernel.models import Holder, Lineage
from memkernel.store import checks, memory_stores, rows
from memkernel.store.connections import StoreConnection
from memkernel.store.contact import Contact
from memkernel.store.queries import VERSION
from memkernel.store.statements import planned

# By memory_versions_lineage: in a lineage the ordinals rise with the seq.
LINEAGE: Final = planned(
    f"SELECT {VERSION}, bounds.first, bounds.last FROM memkernel.memory_versions v, "
    "LATERAL (SELECT min(ordinal) AS first, max(ordinal) AS last FROM memkernel.memory_versions "
    "WHERE memory_store_id = v.memory_store_id AND memory_id = v.memory_id) bounds "
    "WHERE v.memory_store_id = $1::text AND v.memory_id = $2::text AND ($3::bigint IS NULL OR v.ordinal < $3) "
    "ORDER BY v.seq DESC LIMIT $4::bigint"
)
# A scan of the store's versions: it is asked before a redaction, and by nothing else.
HOLDERS: Final = planned(
    f"SELECT {VERSION}, m.id IS NOT NULL FROM memkernel.memory_versions v LEFT JOIN memkernel.memories m "
    "ON m.memory_store_id = v.memory_store_id AND m.id = v.memory_id AND m.memory_version_id = v.id "
    "WHERE v.memory_store_id = $1::text AND v.content_sha256 = $2::bytea ORDER BY v.seq"
)
_VERSION_COLUMNS: Final = VERSION.count(",") + 1


class LineageReading:
    """The half of `MemoryVersions` that reads whole lineages."""

    def __init__(self, contact: Contact) -> None:
        self._contact = contact

    def lineage(self, memory_store_id: str, memory_id: str, *, before: int | None = None, limit: int = 200) -> Lineage:
        """Versions of one memory, alive or not, newest first, without contents.

        Args:
            memory_store_id: the store.
            memory_id: the memory.
            before: only those with a lower ordinal; None is from the newest one on.
            limit: at most so many.

        Raises:
            StoreNotFoundError, VersionNotFoundError: no such store; no version of this memory that is lower.
        """
        store_id = memory_stores.known(memory_store_id)
        lowest = None if before is None else checks.ordinal(before)

        def read(connection: StoreConnection) -> Lineage:
            result = connection.run(LINEAGE, store_id, memory_id, lowest, limit)
            if not result.ntuples:
                _refuse(connection, store_id, VersionNotFoundError(f"of {memory_id} before @{before}"))
            versions = tuple(rows.version(result, row, store_id, None) for row in range(result.ntuples))
            first, last = (rows.number(result.get_value(0, _VERSION_COLUMNS + column)) for column in (0, 1))
            return Lineage(versions, first, last)

        return self._contact.read(read)

    def holders(self, memory_store_id: str, content_sha256: str) -> list[Holder]:
        """All versions of a store that hold the text with this hash, oldest first, without contents.

        Raises:
            StoreNotFoundError: there is no such store.
        """
        store_id, digest = memory_stores.known(memory_store_id), bytes.fromhex(content_sha256)

        def read(connection: StoreConnection) -> list[Holder]:
            result = connection.run(HOLDERS, store_id, digest)
            if not result.ntuples and memory_stores.missing(connection, store_id):
                raise StoreNotFoundError(store_id)
            return [_holder(result, row, store_id) for row in range(result.ntuples)]

        return self._contact.read(read)


def _holder(result: pq.abc.PGresult, row: int, store_id: str) -> Holder:
    is_head = bool(rows.number(result.get_value(row, _VERSION_COLUMNS)))
    return Holder(rows.version(result, row, store_id, None), is_head)


def _refuse(connection: StoreConnection, store_id: str, absent: VersionNotFoundError) -> NoReturn:
    raise StoreNotFoundError(store_id) if memory_stores.missing(connection, store_id) else absent
