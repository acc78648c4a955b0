"""The statements of pruning, and of readings that may ask for what was pruned (CONTRACT 0.3, row 18)."""

from __future__ import annotations

from typing import Final

from memkernel.store.queries import LINEAGE_AT, VERSION_AT_ORDINAL, VERSION_AT_TIME, VERSION_BEFORE
from memkernel.store.statements import planned

PRUNABLE_STORES: Final = planned(
    "SELECT id FROM memkernel.memory_stores WHERE workspace_id = $1::text ORDER BY created_at DESC, id DESC"
)
STORE_PRUNE: Final = planned(
    "SELECT name, versions, content_bytes, pruned_through_seq FROM memkernel.memory_store_prune("
    "$1::text, $2::bigint * interval '1 us', $3::bigint::integer, $4::boolean)"
)

# For each reading that may ask for pruned history, a statement of the same parameters: it answers where that is why
# nothing was found. What is pruned of a lineage are its first versions; or all of it, and then nobody knows of it.
PRUNED: Final = {
    VERSION_AT_ORDINAL: planned(
        "SELECT s.pruned_through_seq FROM memkernel.memory_stores s, LATERAL ("
        "SELECT min(ordinal) AS first, CASE WHEN $3::bigint < 0 THEN max(ordinal) ELSE 0 END AS base "
        "FROM memkernel.memory_versions WHERE memory_store_id = s.id AND memory_id = " + LINEAGE_AT.format("$2") + ") "
        "lineage WHERE s.id = $1 AND lineage.base + $3 BETWEEN 1 AND lineage.first - 1"
    ),
    VERSION_AT_TIME: planned(
        "SELECT pruned_through_seq FROM memkernel.memory_stores "
        "WHERE id = $1::text AND $2::text IS NOT NULL AND pruned_before > $3::timestamptz"
    ),
    VERSION_BEFORE: planned(
        "SELECT s.pruned_through_seq FROM memkernel.memory_stores s "
        "JOIN memkernel.memory_versions later ON later.memory_store_id = s.id "
        "WHERE s.id = $1::text AND later.id = $2::text AND later.ordinal > 1"
    ),
}
