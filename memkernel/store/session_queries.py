"""The statements of sessions: the primary key, sessions_newest, session_resources_store."""

from __future__ import annotations

from typing import Final

from memkernel.store.statements import planned

# The columns, in the order in which rows.py reads them.
SESSION: Final = (
    "s.id, s.title, s.metadata::text, s.status, s.created_at, s.updated_at, s.archived_at, "
    "(SELECT json_agg(json_build_array(r.memory_store_id, r.name, r.description, r.access, r.instructions, "
    "r.mount_path) ORDER BY r.position)::text FROM memkernel.session_resources r WHERE r.session_id = s.id)"
)

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
