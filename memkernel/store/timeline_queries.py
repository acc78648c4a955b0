"""The statements of a store as of a point of its history, and of what changed between two points.

They take no lock: a change is seen with its number and all its rows, or not at all. The store's row comes with each
answer, so that what prune took away meanwhile is never mistaken for what never was.
"""

from __future__ import annotations

from typing import Final

from memkernel.store.queries import VERSION
from memkernel.store.statements import planned, prepared

_STATE: Final = "s.head_seq, s.pruned_through_seq"

# memory_stores_pkey, memory_versions_seq_unique. Without a number and a time it is the newest change, from which a
# negative number counts back. Deletions were pruned as well: from pruned_before on, what is left of the numbers up to
# pruned_through_seq tells too few. With OFFSET the number is a column: below a policy, what a function computes is no
# index condition.
POINT: Final = planned(
    f"SELECT {_STATE}, asked.seq, (SELECT v.created_at FROM memkernel.memory_versions v "
    "WHERE v.memory_store_id = s.id AND v.seq = asked.seq) "
    "FROM memkernel.memory_stores s, LATERAL (SELECT CASE "
    "WHEN $2::bigint IS NOT NULL THEN $2 + CASE WHEN $2 < 0 THEN s.head_seq ELSE 0 END "
    "WHEN $3::timestamptz IS NULL THEN s.head_seq "
    "WHEN s.pruned_before <= $3 THEN greatest(memkernel.seq_at(s.id, $3), s.pruned_through_seq) "
    "ELSE memkernel.seq_at(s.id, $3) END AS seq OFFSET 0) asked WHERE s.id = $1::text"
)

# The lineages that there can have been after change {0}: memories_pkey; memory_versions_operation, which finds those
# that ended later. For each of them one probe of memory_versions_lineage: 2,000 memories take 20 ms among 100,000
# versions. The probe does not name the store (a memory is of one store only): a planner without statistics would read
# all of the store for each memory.
_LINEAGES: Final = (
    "SELECT id, created_at FROM memkernel.memories WHERE memory_store_id = $1::text UNION ALL "
    "SELECT memory_id, NULL FROM memkernel.memory_versions "
    "WHERE memory_store_id = $1 AND operation = 'deleted' AND seq > {0}"
)
_AT: Final = (
    "SELECT {0} FROM memkernel.memory_versions WHERE memory_id = lineage.id AND seq <= {1} ORDER BY seq DESC LIMIT 1"
)

# At or below $3 (`''` for the whole store), and what was redacted since: where that was is not known any more.
AS_OF: Final = planned(
    f"SELECT {VERSION}, coalesce(v.began, (SELECT first.created_at FROM memkernel.memory_versions first "
    f"WHERE first.memory_id = v.memory_id ORDER BY first.seq LIMIT 1)), {_STATE} "
    "FROM memkernel.memory_stores s LEFT JOIN ("
    f"SELECT found.*, lineage.created_at AS began FROM ({_LINEAGES.format('$2::bigint')}) lineage, "
    f"LATERAL ({_AT.format('*', '$2')}) found "
    "WHERE found.path IS NULL OR found.path = $3::text OR (found.path > $3 || '/' AND found.path < $3 || '0')"
    ") v ON true WHERE s.id = $1 ORDER BY v.path, v.seq"
)

# Of each lineage that differs the version on either side, where there is one: side 0 is after $2, side 1 after $3.
_DIFFERING: Final = (
    f"SELECT ({_AT.format('seq', '$2::bigint')}) AS old, ({_AT.format('seq', '$3::bigint')}) AS new "
    f"FROM ({_LINEAGES.format('least($2::bigint, $3::bigint)')}) lineage"
)
COMPARE: Final = planned(
    f"SELECT {VERSION}, v.side, {_STATE} FROM memkernel.memory_stores s LEFT JOIN ("
    f"SELECT found.*, side.number AS side FROM ({_DIFFERING}) differing, "
    "LATERAL (VALUES (0::bigint, differing.old), (1::bigint, differing.new)) side(number, seq), "
    "LATERAL (SELECT * FROM memkernel.memory_versions WHERE memory_store_id = $1::text AND seq = side.seq) found "
    "WHERE differing.old IS DISTINCT FROM differing.new"
    ") v ON true WHERE s.id = $1"
)

# memory_versions_pkey. Redacted ones and deletions have no content.
CONTENTS_BY_ID: Final = prepared(
    "contents_by_id",
    "SELECT v.id, v.content FROM memkernel.memory_versions v WHERE v.memory_store_id = $1::text "
    "AND v.id = ANY ($2::text[]) AND v.content IS NOT NULL AND ($3::bytea IS NULL OR position($3 IN v.content) > 0)",
)
