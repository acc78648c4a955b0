"""Whether a store is as memkernel writes it (CONTRACT 0.3, rows 16 to 19): its log, its texts, its heads.

All checks are one statement, and so look at one moment; nobody is held up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from psycopg import pq

from memkernel.errors import StoreNotFoundError
from memkernel.models import StoreProblem, Verified
from memkernel.store import memory_stores, rows
from memkernel.store.connections import StoreConnection
from memkernel.store.contact import Contact
from memkernel.store.statements import Statement

MOST: Final = 1_000
"""So many problems are told."""


@dataclass(frozen=True, slots=True)
class _Check:
    """One thing that holds of every store.

    Attributes:
        finds: a query of what breaks it: `seq`, `path`, and two facts as text.
        sentence: what is told, of the facts.
    """

    finds: str
    sentence: str


# s: the store; v: its versions without their texts, with their neighbours; newest: the last one of each lineage.
_SEEN: Final = """
WITH s AS (SELECT * FROM memkernel.memory_stores WHERE id = $1::text),
v AS MATERIALIZED (
    SELECT
        seq, ordinal, id, memory_id, operation, path, content_sha256, content_size_bytes, created_at, redacted_at,
        workspace_id, lag(created_at) OVER (ORDER BY seq) AS made_before,
        lag(ordinal) OVER lineage AS ordinal_before, lag(operation) OVER lineage AS operation_before
    FROM memkernel.memory_versions WHERE memory_store_id = $1 WINDOW lineage AS (PARTITION BY memory_id ORDER BY seq)
),
newest AS (SELECT DISTINCT ON (memory_id) * FROM v ORDER BY memory_id, seq DESC),
m AS (SELECT * FROM memkernel.memories WHERE memory_store_id = $1)
"""

_CHECKS: Final = (
    # -- the log: every number once, up to the newest one; gaps only where it was pruned
    _Check(
        "SELECT before + 1, '', CASE seq - before WHEN 2 THEN format('change %s is', before + 1) "
        "ELSE format('the changes from %s to %s are', before + 1, seq - 1) END, NULL FROM ("
        "SELECT seq, lag(seq, 1, pruned) OVER (ORDER BY seq) AS before FROM ("
        "SELECT v.seq, s.pruned_through_seq AS pruned FROM v, s WHERE v.seq > s.pruned_through_seq "
        "UNION SELECT s.head_seq + 1, s.pruned_through_seq FROM s) numbered) pair WHERE seq > before + 1",
        "{0} missing",
    ),
    _Check(
        "SELECT v.seq, v.path, s.head_seq::text, NULL FROM v, s WHERE v.seq NOT BETWEEN 1 AND s.head_seq",
        "its number is none of the store's changes, which go from 1 to {0}",
    ),
    _Check(
        "SELECT NULL::bigint, '', count(v.seq)::text, min(s.head_seq - s.pruned_count)::text "
        "FROM s LEFT JOIN v ON true HAVING count(v.seq) <> min(s.head_seq - s.pruned_count)",
        "the store should have {1} versions, and has {0}",
    ),
    _Check(
        "SELECT seq, path, NULL, NULL FROM v WHERE created_at < made_before",
        "it is older than the change before it",
    ),
    _Check(
        "SELECT v.seq, v.path, v.workspace_id, s.workspace_id FROM v, s WHERE v.workspace_id <> s.workspace_id "
        "UNION ALL "
        "SELECT NULL, m.path, m.workspace_id, s.workspace_id FROM m, s WHERE m.workspace_id <> s.workspace_id "
        "UNION ALL SELECT c.seq, '', c.workspace_id, s.workspace_id FROM memkernel.run_changes c, s "
        "WHERE c.memory_store_id = s.id AND c.workspace_id <> s.workspace_id",
        "it belongs to workspace {0}, and its store to {1}",
    ),
    _Check(
        "SELECT c.seq, '', c.run_id, c.tool_use_id FROM memkernel.run_changes c WHERE c.memory_store_id = $1 "
        "AND NOT EXISTS (SELECT FROM v WHERE v.seq = c.seq)",
        "{1} of {0} is said to have made this change, which is not there",
    ),
    # -- the texts
    _Check(
        "SELECT seq, path, left(encode(sha256(content), 'hex'), 12), left(encode(content_sha256, 'hex'), 12) "
        "FROM memkernel.memory_versions WHERE memory_store_id = $1 AND sha256(content) <> content_sha256",
        "its text is not what was written: the sha256 is {0}…, and should be {1}…",
    ),
    _Check(
        "SELECT seq, path, octet_length(content)::text, content_size_bytes::text "
        "FROM memkernel.memory_versions WHERE memory_store_id = $1 AND octet_length(content) <> content_size_bytes",
        "its text has {0} bytes, and should have {1}",
    ),
    _Check(
        "SELECT seq, path, NULL, NULL FROM memkernel.memory_versions WHERE memory_store_id = $1 "
        "AND redacted_at IS NULL AND operation <> 'deleted' AND "
        "num_nulls(path, content, content_sha256, content_size_bytes) > 0",
        "its text, path, hash or size is missing, though it was not redacted",
    ),
    _Check(
        "SELECT seq, path, NULL, NULL FROM memkernel.memory_versions WHERE memory_store_id = $1 "
        "AND operation = 'deleted' AND (redacted_at IS NULL AND path IS NULL "
        "OR num_nonnulls(content, content_sha256, content_size_bytes) > 0)",
        "it is a deletion: it should have a path and no text",
    ),
    _Check(
        "SELECT seq, path, NULL, NULL FROM memkernel.memory_versions WHERE memory_store_id = $1 "
        "AND redacted_at IS NOT NULL AND num_nonnulls(path, content, content_sha256, content_size_bytes) > 0",
        "it was redacted, and something of its text or path is still there",
    ),
    # -- the lineages: versions are counted from 1; the first is a creation, a deletion is the last
    _Check(
        "SELECT seq, path, ordinal::text, (ordinal_before + 1)::text FROM v WHERE ordinal <> ordinal_before + 1",
        "it is version @{0} of its memory, and should be @{1}",
    ),
    _Check(
        "SELECT v.seq, v.path, v.ordinal::text, NULL FROM v, s WHERE v.ordinal_before IS NULL AND v.ordinal <> 1 "
        "AND (v.ordinal < 1 OR s.pruned_through_seq = 0)",
        "its memory's history begins with @{0}, though nothing was pruned",
    ),
    _Check(
        "SELECT seq, path, operation, ordinal::text FROM v WHERE (ordinal = 1) <> (operation = 'created') "
        "OR operation NOT IN ('created', 'modified', 'deleted')",
        "it is @{1} of its memory, and says that it was {0}",
    ),
    _Check(
        "SELECT seq, path, NULL, NULL FROM v WHERE operation_before = 'deleted'",
        "its memory had been deleted before",
    ),
    # -- the heads: of each lineage that has not ended, its newest version
    _Check(
        "SELECT newest.seq, newest.path, NULL, NULL FROM newest LEFT JOIN m ON m.id = newest.memory_id "
        "WHERE m.id IS NULL AND newest.operation <> 'deleted'",
        "its memory is missing, though this newest version of it is no deletion",
    ),
    _Check(
        "SELECT newest.seq, m.path, NULL, NULL FROM m JOIN newest ON newest.memory_id = m.id "
        "WHERE newest.operation = 'deleted'",
        "the memory is there, though it was deleted",
    ),
    _Check(
        "SELECT NULL::bigint, m.path, m.id, NULL FROM m LEFT JOIN newest ON newest.memory_id = m.id "
        "WHERE newest.memory_id IS NULL",
        "the memory is there, and has no version",
    ),
    _Check(
        "SELECT newest.seq, m.path, m.memory_version_id, newest.id FROM m JOIN newest ON newest.memory_id = m.id "
        "WHERE m.memory_version_id <> newest.id",
        "the memory shows version {0}, and its newest one is {1}",
    ),
    _Check(
        "SELECT newest.seq, m.path, NULL, NULL FROM m JOIN newest ON newest.id = m.memory_version_id "
        "AND newest.memory_id = m.id WHERE (m.path, m.ordinal, m.content_sha256, m.content_size_bytes, m.updated_at) "
        "IS DISTINCT FROM (newest.path, newest.ordinal, newest.content_sha256, newest.content_size_bytes, "
        "newest.created_at)",
        "the memory's path, hash, size, time or number of versions is not that of its newest version",
    ),
    _Check(
        "SELECT NULL::bigint, '', count(m.id)::text, min(s.memory_count)::text FROM s LEFT JOIN m ON true "
        "HAVING count(m.id) <> min(s.memory_count)",
        "the store says that it has {1} memories, and has {0}",
    ),
    _Check(
        "SELECT NULL::bigint, path, below, NULL FROM ("
        "SELECT path, lead(path) OVER (ORDER BY path || '/' COLLATE \"C\") AS below FROM m"
        ") pair WHERE starts_with(below, path || '/')",
        "it is a memory, and has another one below it: {0}",
    ),
)

_VERIFY: Final = Statement(
    b"",
    (
        f"{_SEEN} SELECT s.name, s.head_seq, (SELECT count(*) FROM v), (SELECT count(*) FROM m), problem.* "
        "FROM s LEFT JOIN ("
        + " UNION ALL ".join(
            f"SELECT {n}::bigint, found.* FROM ({check.finds}) found(seq, path, a, b)"
            for n, check in enumerate(_CHECKS)
        )
        + ") problem(n, seq, path, a, b) ON true "
        f"ORDER BY problem.seq NULLS FIRST, problem.n, problem.path LIMIT {MOST}"
    ).encode(),
)


def verify(contact: Contact, memory_store_id: str) -> Verified:
    """Check a store; see `Database.verify`."""
    store_id = memory_stores.known(memory_store_id)

    def read(connection: StoreConnection) -> Verified:
        result = connection.run(_VERIFY, store_id)
        if not result.ntuples:
            raise StoreNotFoundError(store_id)
        changes, versions, memories = (rows.number(result.get_value(0, column)) for column in range(1, 4))
        found = [_problem(result, row) for row in range(result.ntuples) if result.get_value(row, 4) is not None]
        return Verified(store_id, rows.text(result.get_value(0, 0)), changes, versions, memories, tuple(found))

    return contact.read(read)


def _problem(result: pq.abc.PGresult, row: int) -> StoreProblem:
    get = result.get_value
    check, seq = _CHECKS[rows.number(get(row, 4))], get(row, 5)
    sentence = check.sentence.format(rows.text(get(row, 7)), rows.text(get(row, 8)))
    return StoreProblem(None if seq is None else rows.number(seq), rows.text(get(row, 6)), sentence)
