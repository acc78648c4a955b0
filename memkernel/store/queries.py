"""Every statement that the record layer sends, with the index that serves it.

Changes are calls of the functions in migrations/; their locks are told there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from memkernel.store.statements import Parameter, Statement, planned, prepared

# -- columns, in the order in which rows.py reads them ---------------------------------------------

STORE: Final = (
    "id, name, description, metadata::text, created_at, updated_at, archived_at, head_seq, memory_count::bigint"
)
MEMORY: Final = "m.id, m.path, m.memory_version_id, m.content_sha256, m.content_size_bytes, m.created_at, m.updated_at"
VERSION: Final = (
    "v.id, v.memory_id, v.seq, v.ordinal, v.operation, v.path, v.content_sha256, v.content_size_bytes, v.created_at, "
    "v.created_by_type, v.created_by_id, v.redacted_at, v.redacted_by_type, v.redacted_by_id"
)
SESSION: Final = (
    "s.id, s.title, s.metadata::text, s.status, s.created_at, s.updated_at, s.archived_at, "
    "(SELECT json_agg(json_build_array(r.memory_store_id, r.name, r.description, r.access, r.instructions, "
    "r.mount_path) ORDER BY r.position)::text FROM memkernel.session_resources r WHERE r.session_id = s.id)"
)
_CONTENT: Final = "memkernel.memory_versions v ON v.memory_store_id = m.memory_store_id AND v.id = m.memory_version_id"

# -- memory stores: the primary key, memory_stores_newest, memory_stores_name ----------------------

STORE_CREATE: Final = planned(
    f"SELECT {STORE} FROM memkernel.memory_store_create("
    "$1::text, $2::text, $3::text, $4::text, $5::text::jsonb, $6::boolean)"
)
STORE_GET: Final = prepared("store_get", f"SELECT {STORE} FROM memkernel.memory_stores WHERE id = $1::text")
STORE_EXISTS: Final = prepared("store_exists", "SELECT FROM memkernel.memory_stores WHERE id = $1::text")
STORE_UPDATE: Final = planned(
    f"SELECT {STORE} FROM memkernel.memory_store_update("
    "$1::text, $2::text, $3::text, $4::text::jsonb, $5::bigint::integer)"
)
STORE_ARCHIVE: Final = planned(f"SELECT {STORE} FROM memkernel.memory_store_archive($1::text)")
STORE_DELETE: Final = planned("SELECT memkernel.memory_store_delete($1::text)")
NAME_LOCK: Final = planned("SELECT memkernel.lock_name($1::text, $2::text)")
STORE_LIST: Final = planned(
    f"SELECT {STORE} FROM memkernel.memory_stores WHERE workspace_id = 'default' "
    "AND ($1::boolean OR archived_at IS NULL) "
    "AND ($2::timestamptz IS NULL OR created_at >= $2) AND ($3::timestamptz IS NULL OR created_at <= $3) "
    "AND ($4::bigint IS NULL OR (created_at, id) < (timestamptz '2000-01-01 00:00Z' + $4 * interval '1 us', $5::text)) "
    "ORDER BY created_at DESC, id DESC LIMIT $6::bigint"
)
STORE_BY_NAME: Final = planned(
    f"SELECT {STORE} FROM memkernel.memory_stores WHERE workspace_id = 'default' AND name = $1::text "
    "ORDER BY created_at DESC, id DESC"
)
STORE_NAMES: Final = planned(
    "SELECT id, name FROM memkernel.memory_stores WHERE workspace_id = 'default' ORDER BY created_at DESC, id DESC"
)

# -- memories: the primary key and memories_path_unique --------------------------------------------

MEMORY_GET: Final = prepared(
    "memory_get", f"SELECT {MEMORY} FROM memkernel.memories m WHERE m.memory_store_id = $1::text AND m.id = $2::text"
)
MEMORY_GET_FULL: Final = prepared(
    "memory_get_full",
    f"SELECT {MEMORY}, v.content FROM memkernel.memories m JOIN {_CONTENT} "
    "WHERE m.memory_store_id = $1::text AND m.id = $2::text",
)
MEMORY_AT: Final = prepared(
    "memory_at", f"SELECT {MEMORY} FROM memkernel.memories m WHERE m.memory_store_id = $1::text AND m.path = $2::text"
)
MEMORY_AT_FULL: Final = prepared(
    "memory_at_full",
    f"SELECT {MEMORY}, v.content FROM memkernel.memories m JOIN {_CONTENT} "
    "WHERE m.memory_store_id = $1::text AND m.path = $2::text",
)
# Under the store's lock, for an edit that must not miss.
STORE_LOCK: Final = planned("SELECT FROM memkernel.lock_store($1::text, $2::boolean)")
MEMORY_CREATE: Final = prepared(
    "memory_create",
    f"SELECT {MEMORY} FROM memkernel.memory_create($1::text, $2::text, $3::text[], $4::bytea, $5::bytea, "
    "$6::text, $7::text, $8::bigint::integer, $9::text, $10::text, $11::text, $12::text) m",
)
MEMORY_UPDATE: Final = prepared(
    "memory_update",
    f"SELECT {MEMORY} FROM memkernel.memory_update($1::text, $2::text, $3::text, $4::text[], $5::bytea, $6::bytea, "
    "$7::bytea, $8::text, $9::text, $10::text, $11::text, $12::text) m",
)
MEMORY_WRITE: Final = prepared(
    "memory_write",
    f"SELECT {MEMORY} FROM memkernel.memory_write($1::text, $2::text, $3::text[], $4::bytea, $5::bytea, $6::bytea, "
    "$7::boolean, $8::text, $9::text, $10::bigint::integer, $11::text, $12::text, $13::text, $14::text) m",
)
MEMORY_DELETE: Final = prepared(
    "memory_delete",
    "SELECT memkernel.memory_delete($1::text, $2::text, $3::bytea, $4::text, $5::text, $6::text, $7::text, $8::text)",
)
MEMORIES_DELETE: Final = prepared(
    "memories_delete",
    "SELECT memkernel.memories_delete($1::text, $2::text, $3::text[], $4::text, $5::text, $6::text, $7::text)",
)
MEMORIES_RENAME: Final = prepared(
    "memories_rename",
    "SELECT memkernel.memories_rename($1::text, $2::text, $3::text, $4::text[], $5::text[], "
    "$6::text, $7::text, $8::text, $9::text)",
)
# One text for all of them: a row a memory would cost the client more than the rest of the call. A path is a file or a
# directory, never both; paths hold no line breaks.
ENTRIES: Final = prepared(
    "entries",
    "SELECT string_agg(path || E'\\n' || content_size_bytes, E'\\n' ORDER BY path) FROM ("
    "SELECT path, content_size_bytes FROM memkernel.memories WHERE memory_store_id = $1::text AND path = $2::text "
    "UNION ALL "
    "SELECT path, content_size_bytes FROM memkernel.memories "
    "WHERE memory_store_id = $1::text AND path > $2 || '/' AND path < $2 || '0') entry",
)
# At or below $2 (`''` for the whole store), and after $3.
CONTENTS: Final = planned(
    f"SELECT m.path, v.content FROM memkernel.memories m JOIN {_CONTENT} "
    "WHERE m.memory_store_id = $1::text AND m.path > $3::text AND m.path >= $2::text AND m.path < $2 || '0' "
    "AND (m.path = $2 OR m.path > $2 || '/') "
    "AND ($4::bytea IS NULL OR position($4 IN v.content) > 0) ORDER BY m.path LIMIT $5::bigint"
)
LIST_BASIC: Final = planned(
    f"SELECT {MEMORY} FROM memkernel.memories m "
    "WHERE m.memory_store_id = $1::text AND m.path >= $2::text AND m.path < $3::text ORDER BY m.path LIMIT $4::bigint"
)
LIST_FULL: Final = planned(
    f"SELECT {MEMORY}, v.content FROM memkernel.memories m JOIN {_CONTENT} "
    "WHERE m.memory_store_id = $1::text AND m.path >= $2::text AND m.path < $3::text ORDER BY m.path LIMIT $4::bigint"
)
# Depth 1 by skip scan: one index probe an item, whatever lies below it. $5 is the prefix; below a child
# directory the scan goes on at its path with the last / replaced by 0, the next character in C order.
_ROLL_UP: Final = (
    "WITH RECURSIVE item(found, child, n) AS ("
    "(SELECT path, strpos(substr(path, length($5::text) + 1), '/'), 1::bigint FROM memkernel.memories "
    "WHERE memory_store_id = $1::text AND path >= $2::text AND path < $3::text ORDER BY path LIMIT 1) "
    "UNION ALL "
    "SELECT next.path, strpos(substr(next.path, length($5) + 1), '/'), item.n + 1 FROM item, LATERAL ("
    "SELECT path FROM memkernel.memories WHERE memory_store_id = $1 AND path < $3 AND path >= "
    "CASE item.child WHEN 0 THEN item.found || E'\\x01' "
    "ELSE left(item.found, length($5) + item.child - 1) || '0' END ORDER BY path LIMIT 1) next "
    "WHERE item.n < $4::bigint) "
)
ROLL_UP_BASIC: Final = planned(
    f"{_ROLL_UP} SELECT {MEMORY}, left(item.found, length($5) + item.child) "
    "FROM item LEFT JOIN memkernel.memories m "
    "ON item.child = 0 AND m.memory_store_id = $1 AND m.path = item.found ORDER BY item.n"
)
ROLL_UP_FULL: Final = planned(
    f"{_ROLL_UP} SELECT {MEMORY}, v.content, left(item.found, length($5) + item.child) "
    "FROM item LEFT JOIN memkernel.memories m "
    f"ON item.child = 0 AND m.memory_store_id = $1 AND m.path = item.found LEFT JOIN {_CONTENT} ORDER BY item.n"
)

# -- memory versions: the primary key and the indexes of migration 1 ---------------------------

VERSION_GET: Final = prepared(
    "version_get",
    f"SELECT {VERSION} FROM memkernel.memory_versions v WHERE v.memory_store_id = $1::text AND v.id = $2::text",
)
VERSION_GET_FULL: Final = prepared(
    "version_get_full",
    f"SELECT {VERSION}, v.content FROM memkernel.memory_versions v "
    "WHERE v.memory_store_id = $1::text AND v.id = $2::text",
)

VERSION_CONTENT: Final = prepared(
    "version_content",
    "SELECT v.content FROM memkernel.memory_versions v "
    "WHERE v.memory_store_id = $1::text AND v.id = $2::text AND v.redacted_at IS NULL",
)
VERSION_BEFORE: Final = planned(
    f"SELECT {VERSION}, v.content FROM memkernel.memory_versions v "
    "JOIN memkernel.memory_versions later ON later.memory_store_id = v.memory_store_id "
    "AND later.memory_id = v.memory_id AND v.seq < later.seq "
    "WHERE later.memory_store_id = $1::text AND later.id = $2::text ORDER BY v.seq DESC LIMIT 1"
)
VERSION_REDACT: Final = planned("SELECT memkernel.memory_version_redact($1::text, $2::text, $3::text, $4::text)")
# What is left of a redacted text: 1-3 ms where the server vacuums by itself, 2 s for 100,000 versions never vacuumed.
VERSIONS_CLEAR: Final = planned("VACUUM (SKIP_LOCKED, TRUNCATE FALSE) memkernel.memory_versions")
VERSION_RESTORE: Final = planned(
    f"SELECT {MEMORY} FROM memkernel.memory_version_restore($1::text, $2::text, $3::text, $4::bytea, $5::boolean, "
    "$6::text, $7::text, $8::bigint::integer, $9::text, $10::text, $11::text, $12::text) m"
)
VERSIONS_BY_RUN: Final = planned(
    f"SELECT {VERSION}, v.content FROM memkernel.run_changes c JOIN memkernel.memory_versions v "
    "ON v.memory_store_id = c.memory_store_id AND v.seq = c.seq WHERE c.run_id = $2::text "
    "AND ($3::text IS NULL OR c.tool_use_id = $3) AND c.memory_store_id = $1::text ORDER BY v.seq"
)

# The lineage that is at a path, else the last one that ended there (CONTRACT 0.3, row 19).
_LINEAGE_AT: Final = (
    "coalesce("
    "(SELECT id FROM memkernel.memories WHERE memory_store_id = $1::text AND path = {0}::text), "
    "(SELECT memory_id FROM memkernel.memory_versions WHERE memory_store_id = $1::text AND path = {0}::text "
    "AND operation = 'deleted' ORDER BY seq DESC LIMIT 1))"
)
# $3 counts from the first version, or, if negative, back from the head.
VERSION_AT_ORDINAL: Final = planned(
    f"SELECT {VERSION}, v.content FROM memkernel.memory_versions v, "
    "LATERAL (SELECT max(ordinal) AS head FROM memkernel.memory_versions "
    "WHERE memory_store_id = v.memory_store_id AND memory_id = v.memory_id AND $3::bigint < 0) newest "
    "WHERE v.memory_store_id = $1::text AND v.memory_id = " + _LINEAGE_AT.format("$2") + " "
    "AND v.ordinal = $3 + coalesce(newest.head, 0)"
)
# Of all lineages that are or ended at the path, the newest version then; best one that was at the path.
VERSION_AT_TIME: Final = planned(
    f"SELECT {VERSION}, v.content FROM ("
    "SELECT id FROM memkernel.memories WHERE memory_store_id = $1::text AND path = $2::text "
    "UNION SELECT memory_id FROM memkernel.memory_versions WHERE memory_store_id = $1 AND path = $2 "
    "AND operation = 'deleted') lineage, LATERAL ("
    "SELECT * FROM memkernel.memory_versions WHERE memory_store_id = $1 AND memory_id = lineage.id "
    "AND created_at <= $3::timestamptz ORDER BY seq DESC LIMIT 1) v "
    "WHERE v.operation <> 'deleted' ORDER BY v.path = $2 DESC NULLS LAST, v.seq DESC LIMIT 1"
)

# -- batches: under the store's lock; memories_path_unique, and the primary key of the versions ---

BATCH_BEGIN: Final = planned("SELECT * FROM memkernel.batch_begin($1::text)")
BATCH_HEADS: Final = planned(
    "SELECT path, id, content_sha256, ordinal FROM memkernel.memories "
    "WHERE memory_store_id = $1::text AND path = ANY ($2::text[])"
)
BATCH_COPY: Final = (
    "COPY memkernel.memory_versions (workspace_id, memory_store_id, id, seq, ordinal, memory_id, operation, path, "
    "content, content_sha256, content_size_bytes, created_at, created_by_type, created_by_id) "
    "FROM STDIN (FORMAT binary)"
)
BATCH_FINISH: Final = planned(
    "SELECT memkernel.batch_finish($1::text, $2::bigint, $3::bigint::integer, $4::timestamptz, $5::bigint::integer, "
    "$6::text, $7::text)"
)
VERSIONS_BY_ID: Final = planned(
    f"SELECT {VERSION} FROM memkernel.memory_versions v WHERE v.memory_store_id = $1::text AND v.id = ANY ($2::text[])"
)

# -- mounts: mount_baselines_pkey, mount_entries_pkey; what changed since, by memory_versions_seq_unique --

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

# -- what became of a change whose connection was lost: both wait for the store's lock -------------

VERSION_RESULT: Final = planned(f"SELECT {MEMORY} FROM memkernel.version_result($1::text, $2::text) m")
VERSIONS_SAVED: Final = planned("SELECT memkernel.versions_saved($1::text, $2::text[])::bigint")

# -- sessions: the primary key, sessions_newest, session_resources_store -----------------------------

STORES_LOCK: Final = planned(
    "SELECT id, name, description, archived_at FROM memkernel.lock_stores($1::text, $2::text[])"
)
SESSION_CREATE: Final = planned(
    "SELECT memkernel.session_create($1::text, $2::text, $3::text, $4::text::jsonb, $5::text::jsonb)"
)
SESSION_GET: Final = planned(f"SELECT {SESSION} FROM memkernel.sessions s WHERE s.id = $1::text")
SESSION_UPDATE: Final = planned(
    f"SELECT {SESSION} FROM memkernel.session_update("
    "$1::text, $2::text, $3::text::jsonb, $4::text, $5::bigint::integer) s"
)
SESSION_ARCHIVE: Final = planned(f"SELECT {SESSION} FROM memkernel.session_archive($1::text) s")
SESSION_DELETE: Final = planned("SELECT memkernel.session_delete($1::text)")
_SESSIONS: Final = (
    f"SELECT {SESSION} FROM memkernel.sessions s WHERE s.workspace_id = 'default' "
    "AND ($1::boolean OR s.archived_at IS NULL) AND ($2::text[] IS NULL OR s.status = ANY ($2)) "
    "AND ($3::text IS NULL OR s.id IN "
    "(SELECT r.session_id FROM memkernel.session_resources r WHERE r.memory_store_id = $3)) "
    "AND ($4::bigint IS NULL OR (s.created_at, s.id) {0} "
    "(timestamptz '2000-01-01 00:00Z' + $4 * interval '1 us', $5::text)) "
    "ORDER BY s.created_at {1}, s.id {1} LIMIT $6::bigint"
)
SESSION_LIST: Final = {
    "desc": planned(_SESSIONS.format("<", "DESC")),
    "asc": planned(_SESSIONS.format(">", "ASC")),
}

# -- the whole -------------------------------------------------------------------------------------

NOTHING: Final = planned("SELECT")
STATUS: Final = planned(
    "SELECT current_setting('server_version'), current_database()::text, current_user::text, count(*), "
    "coalesce(sum(memory_count), 0)::bigint, coalesce(sum(head_seq - pruned_through_seq), 0)::bigint, "
    "(SELECT max(number)::bigint FROM memkernel.schema_migrations) FROM memkernel.memory_stores"
)

# -- a listing of versions -------------------------------------------------------------------------

# Time and seq agree in a store, so bounds in time become bounds of seq, and every filter reads its own index
# backwards, newest first.
_VERSION_FILTERS: Final = {
    "memory_id": "v.memory_id = {0}::text",
    "path": f"v.memory_id = {_LINEAGE_AT}",
    "operation": "v.operation = {0}::text",
    "session_actor": "(v.created_by_type, v.created_by_id) = ('session_actor', {0}::text)",
    "api_actor": "(v.created_by_type, v.created_by_id) = ('api_actor', {0}::text)",
    "user_actor": "(v.created_by_type, v.created_by_id) = ('user_actor', {0}::text)",
    "service_account_actor": "(v.created_by_type, v.created_by_id) = ('service_account_actor', {0}::text)",
    "since": "v.seq > (SELECT memkernel.seq_at($1::text, {0}::timestamptz - interval '1 us'))",
    "until": "v.seq <= (SELECT memkernel.seq_at($1::text, {0}::timestamptz))",
    "before": "v.seq < {0}::bigint",
}


def version_list(
    store_id: str, filters: Mapping[str, Parameter], limit: int, *, full: bool
) -> tuple[Statement, list[Parameter]]:
    """The listing of versions for these filters (None: not asked for), and its values."""
    conditions: list[str] = ["v.memory_store_id = $1::text"]
    values: list[Parameter] = [store_id]
    for name, value in filters.items():
        if value is not None:
            values.append(value)
            conditions.append(_VERSION_FILTERS[name].format(f"${len(values)}"))
    columns = f"{VERSION}, v.content" if full else VERSION
    sql = (
        f"SELECT {columns} FROM memkernel.memory_versions v WHERE {' AND '.join(conditions)} "
        f"ORDER BY v.seq DESC LIMIT {limit:d}"
    )
    return Statement(b"", sql.encode()), values
