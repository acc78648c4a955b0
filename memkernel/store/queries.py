"""Every statement that the record layer sends, with the index that serves it.

Changes are calls of the functions in migrations/; their locks are told there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from memkernel.store import statements
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
    f"SELECT {STORE} FROM memkernel.memory_stores WHERE workspace_id = $7::text "
    "AND ($1::boolean OR archived_at IS NULL) "
    "AND ($2::timestamptz IS NULL OR created_at >= $2) AND ($3::timestamptz IS NULL OR created_at <= $3) "
    "AND ($4::bigint IS NULL OR (created_at, id) < (timestamptz '2000-01-01 00:00Z' + $4 * interval '1 us', $5::text)) "
    "ORDER BY created_at DESC, id DESC LIMIT $6::bigint"
)
STORE_BY_NAME: Final = planned(
    f"SELECT {STORE} FROM memkernel.memory_stores WHERE workspace_id = $1::text AND name = $2::text "
    "ORDER BY created_at DESC, id DESC"
)
STORE_NAMES: Final = planned(
    "SELECT id, name FROM memkernel.memory_stores WHERE workspace_id = $1::text ORDER BY created_at DESC, id DESC"
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
# directory the scan goes on at its path with the last / replaced by 0, the next character in C order. That place is
# a column: what a function computes of a row is no index condition below a policy, for the function might leak it.
_ITEM: Final = (
    "SELECT path, strpos(substr(path, length($5::text) + 1), '/') AS slash FROM memkernel.memories "
    "WHERE memory_store_id = $1::text AND path >= {0} AND path < $3::text ORDER BY path LIMIT 1"
)
_BEYOND: Final = "CASE slash WHEN 0 THEN path || E'\\x01' ELSE left(path, length($5) + slash - 1) || '0' END"
_ROLL_UP: Final = (
    "WITH RECURSIVE item(found, child, n, beyond) AS ("
    f"(SELECT path, slash, 1::bigint, {_BEYOND} FROM ({_ITEM.format('$2::text')}) first) "
    "UNION ALL "
    f"SELECT path, slash, item.n + 1, {_BEYOND} FROM item, LATERAL ({_ITEM.format('item.beyond')}) next "
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
# What is left of redacted and pruned texts: 1-3 ms where autovacuum runs, 2 s for 100,000 versions never vacuumed.
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
LINEAGE_AT: Final = (
    "(SELECT coalesce("  # a subquery of its own: below a policy, a bare coalesce is no index condition
    "(SELECT id FROM memkernel.memories WHERE memory_store_id = $1::text AND path = {0}::text), "
    "(SELECT memory_id FROM memkernel.memory_versions WHERE memory_store_id = $1::text AND path = {0}::text "
    "AND operation = 'deleted' ORDER BY seq DESC LIMIT 1)))"
)
# $3 counts from the first version, or, if negative, back from the head.
VERSION_AT_ORDINAL: Final = planned(
    f"SELECT {VERSION}, v.content FROM memkernel.memory_versions v, "
    "LATERAL (SELECT max(ordinal) AS head FROM memkernel.memory_versions "
    "WHERE memory_store_id = v.memory_store_id AND memory_id = v.memory_id AND $3::bigint < 0) newest "
    "WHERE v.memory_store_id = $1::text AND v.memory_id = " + LINEAGE_AT.format("$2") + " "
    "AND v.ordinal = $3 + coalesce(newest.head, 0)"
)
# Of all lineages that are or ended at the path, the newest version then; best one that was at the path, and only that
# where history was pruned: a better answer may be gone.
VERSION_AT_TIME: Final = planned(
    f"SELECT {VERSION}, v.content FROM ("
    "SELECT id FROM memkernel.memories WHERE memory_store_id = $1::text AND path = $2::text "
    "UNION SELECT memory_id FROM memkernel.memory_versions WHERE memory_store_id = $1 AND path = $2 "
    "AND operation = 'deleted') lineage, LATERAL ("
    "SELECT * FROM memkernel.memory_versions WHERE memory_store_id = $1 AND memory_id = lineage.id "
    "AND created_at <= $3::timestamptz ORDER BY seq DESC LIMIT 1) v "
    "WHERE v.operation <> 'deleted' AND (v.path = $2 OR NOT EXISTS ("
    "SELECT FROM memkernel.memory_stores WHERE id = $1 AND pruned_before > $3)) "
    "ORDER BY v.path = $2 DESC NULLS LAST, v.seq DESC LIMIT 1"
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

# -- what became of a change whose connection was lost: both wait for the store's lock -------------

VERSION_RESULT: Final = planned(f"SELECT {MEMORY} FROM memkernel.version_result($1::text, $2::text) m")
VERSIONS_SAVED: Final = planned("SELECT memkernel.versions_saved($1::text, $2::text[])::bigint")

# -- the whole -------------------------------------------------------------------------------------

NOTHING: Final = planned("SELECT")
STATUS: Final = planned(
    "SELECT current_setting('server_version'), current_database()::text, current_user::text, count(*), "
    "coalesce(sum(memory_count), 0)::bigint, coalesce(sum(head_seq - pruned_count), 0)::bigint, "
    "(SELECT max(number)::bigint FROM memkernel.schema_migrations) FROM memkernel.memory_stores "
    "WHERE workspace_id = $1::text"
)
# api_keys_pkey, api_keys_secret_unique; only the owner may.
KEY: Final = "k.id, k.workspace_id, k.name, k.read_only, k.created_at, k.expires_at, k.revoked_at"
KEY_CREATE: Final = planned(
    "INSERT INTO memkernel.api_keys AS k "
    "(workspace_id, id, name, secret_sha256, read_only, expires_at, created_at) VALUES ("
    "$1::text, $2::text, $3::text, $4::bytea, $5::boolean, $6::timestamptz, clock_timestamp()) "
    f"ON CONFLICT ON CONSTRAINT api_keys_pkey DO UPDATE SET id = excluded.id RETURNING {KEY}"
)
KEY_LIST: Final = planned(f"SELECT {KEY} FROM memkernel.api_keys k ORDER BY k.created_at DESC, k.id")
KEY_REVOKE: Final = planned(
    "UPDATE memkernel.api_keys k SET revoked_at = coalesce(k.revoked_at, clock_timestamp()) "
    f"WHERE k.id = $1::text RETURNING {KEY}"
)
KEY_FIND: Final = prepared(
    "key_find",
    f"SELECT {KEY}, EXISTS (SELECT FROM memkernel.api_keys WHERE revoked_at IS NULL) "
    "FROM (SELECT) nothing LEFT JOIN memkernel.api_keys k ON k.secret_sha256 = $1::bytea "
    "AND k.revoked_at IS NULL AND (k.expires_at > clock_timestamp()) IS NOT FALSE",
)
PAGE_KEY: Final = planned("SELECT key FROM memkernel.page_key")

# -- a listing of versions -------------------------------------------------------------------------

# Time and seq agree in a store, so bounds in time become bounds of seq, and every filter reads its own index
# backwards, newest first.
_VERSION_FILTERS: Final = {
    "memory_id": "v.memory_id = {0}::text",
    "path": f"v.memory_id = {LINEAGE_AT}",
    "operation": "v.operation = {0}::text",
    "session_actor": "(v.created_by_type, v.created_by_id) = ('session_actor', {0}::text)",
    "api_actor": "(v.created_by_type, v.created_by_id) = ('api_actor', {0}::text)",
    "user_actor": "(v.created_by_type, v.created_by_id) = ('user_actor', {0}::text)",
    "service_account_actor": "(v.created_by_type, v.created_by_id) = ('service_account_actor', {0}::text)",
    "since": "v.seq > (SELECT memkernel.seq_at($1::text, {0}::timestamptz - interval '1 us'))",
    "until": "v.seq <= (SELECT memkernel.seq_at($1::text, {0}::timestamptz))",
    "below": "v.seq < {0}::bigint",
    "before": "v.seq < {0}::bigint",
}


def version_list(
    store_id: str, filters: Mapping[str, Parameter], limit: int, *, full: bool
) -> tuple[Statement, list[Parameter]]:
    """The listing of versions for these filters (None: not asked for), and its values."""
    values: list[Parameter] = [store_id]
    conditions = ["v.memory_store_id = $1::text", *statements.conditions(_VERSION_FILTERS, filters, values)]
    columns = f"{VERSION}, v.content" if full else VERSION
    sql = (
        f"SELECT {columns} FROM memkernel.memory_versions v WHERE {' AND '.join(conditions)} "
        f"ORDER BY v.seq DESC LIMIT {limit:d}"
    )
    return Statement(b"", sql.encode()), values
