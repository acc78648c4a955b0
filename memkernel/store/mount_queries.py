"""The statements of mounts, by mount_baselines_pkey and mount_entries_pkey.

What changed since is found by memory_versions_seq_unique.
"""

from __future__ import annotations

from typing import Final

from memkernel.store.statements import planned, prepared

HEAD: Final = "m.id, m.path, m.memory_version_id, m.content_sha256, m.content_size_bytes, m.ordinal"
MOUNT_OPEN: Final = planned(
    "SELECT format, state, is_pulling, nonce, seq FROM memkernel.mount_open($1::text, $2::text, $3::bigint::integer)"
)
MOUNT_ENTRIES: Final = planned(
    "SELECT path, memory_id, memory_version_id, content_sha256 FROM memkernel.mount_entries "
    "WHERE memory_store_id = $1::text AND session_id = $2::text"
)
MOUNT_PULSE: Final = prepared(
    "mount_pulse",
    "SELECT head_seq, archived_at IS NOT NULL, (SELECT status FROM memkernel.sessions WHERE id = $2::text) "
    "FROM memkernel.memory_stores WHERE id = $1::text",
)
MOUNT_HEADS: Final = planned(
    f"SELECT s.head_seq, s.archived_at IS NOT NULL, {HEAD} FROM memkernel.memory_stores s "
    "LEFT JOIN memkernel.memories m ON m.memory_store_id = s.id WHERE s.id = $1::text"
)
# What is changed since seq $2: each memory once; one without a path is deleted.
MOUNT_CHANGES: Final = planned(
    "SELECT s.head_seq, s.archived_at IS NOT NULL, coalesce(m.id, c.memory_id), m.path, m.memory_version_id, "
    "m.content_sha256, m.content_size_bytes, m.ordinal, s.pruned_through_seq > $2::bigint "
    "FROM memkernel.memory_stores s "
    "LEFT JOIN LATERAL (SELECT DISTINCT memory_id FROM memkernel.memory_versions "
    "WHERE memory_store_id = s.id AND seq > $2) c ON true "
    "LEFT JOIN memkernel.memories m ON m.memory_store_id = s.id AND m.id = c.memory_id WHERE s.id = $1::text"
)
MOUNT_PUBLISH: Final = planned(
    "SELECT memkernel.mount_publish($1::text, $2::text, $3::bigint, $4::bigint::integer, $5::text[], $6::boolean)"
)
MOUNT_BEGIN_PULL: Final = planned("SELECT memkernel.mount_begin_pull($1::text, $2::text, $3::text, $4::text)")
MOUNT_END_PULL: Final = planned(
    "SELECT memkernel.mount_end_pull($1::text, $2::text, $3::text, $4::bigint, $5::boolean, $6::text[], "
    "$7::text[], $8::text[], $9::text[], $10::text[])"
)
VERSION_TEXTS: Final = planned(
    "SELECT id, content FROM memkernel.memory_versions "
    "WHERE memory_store_id = $1::text AND id = ANY ($2::text[]) AND content IS NOT NULL"
)
# Of these hashes, those that some version had.
VERSION_HASHES: Final = planned(
    "SELECT DISTINCT content_sha256 FROM memkernel.memory_versions WHERE memory_store_id = $1::text "
    "AND content_sha256 IN (SELECT decode(hash, 'hex') FROM unnest($2::text[]) AS hash)"
)
# Of these paths with their hashes, those that a version after seq $4 put there.
VERSION_PLACES: Final = planned(
    "SELECT DISTINCT path, content_sha256 FROM memkernel.memory_versions WHERE memory_store_id = $1::text "
    "AND seq > $4::bigint AND (path, content_sha256) IN "
    "(SELECT place, decode(hash, 'hex') FROM unnest($2::text[], $3::text[]) AS wanted (place, hash))"
)
