"""The statements of sessions: the primary key, sessions_newest, session_resources_store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from memkernel.store import statements
from memkernel.store.statements import Parameter, Statement, planned

# The columns, in the order in which rows.py reads them.
SESSION: Final = (
    "s.id, s.title, s.metadata::text, s.status, s.created_at, s.updated_at, s.archived_at, "
    "(SELECT json_agg(json_build_array(r.memory_store_id, r.name, r.description, r.access, r.instructions, "
    "r.mount_path) ORDER BY r.position)::text FROM memkernel.session_resources r WHERE r.session_id = s.id), "
    "s.agent::text, s.environment_id, s.vault_ids::text, s.budget::text"
)

STORES_LOCK: Final = planned(
    "SELECT id, name, description, archived_at FROM memkernel.lock_stores($1::text, $2::text[])"
)
SESSION_CREATE: Final = planned(
    "SELECT memkernel.session_create($1::text, $2::text, $3::text, $4::text::jsonb, $5::text::jsonb, "
    "$6::text::jsonb, $7::text, $8::text::jsonb, $9::text::jsonb)"
)
SESSION_GET: Final = planned(f"SELECT {SESSION} FROM memkernel.sessions s WHERE s.id = $1::text")
SESSION_UPDATE: Final = planned(
    f"SELECT {SESSION} FROM memkernel.session_update("
    "$1::text, $2::text, $3::text::jsonb, $4::text, $5::text::jsonb, $6::bigint::integer) s"
)
SESSION_ARCHIVE: Final = planned(f"SELECT {SESSION} FROM memkernel.session_archive($1::text) s")
SESSION_DELETE: Final = planned("SELECT memkernel.session_delete($1::text, $2::boolean)")

_FILTERS: Final = {
    "statuses": "s.status = ANY ({0}::text[])",
    "memory_store_id": (
        "s.id IN (SELECT r.session_id FROM memkernel.session_resources r WHERE r.memory_store_id = {0}::text)"
    ),
    "agent_id": "s.agent->>'id' = {0}::text",
    "agent_version": "(s.agent->>'version')::bigint = {0}::bigint",
    "deployment_id": "{0}::text IS NULL",  # memkernel has no deployments: no session comes of one
    "created_at_gt": "s.created_at > {0}::timestamptz",
    "created_at_gte": "s.created_at >= {0}::timestamptz",
    "created_at_lt": "s.created_at < {0}::timestamptz",
    "created_at_lte": "s.created_at <= {0}::timestamptz",
}


def session_list(
    workspace_id: str,
    filters: Mapping[str, Parameter],
    limit: int,
    *,
    include_archived: bool,
    ascending: bool,
    beyond: tuple[int, str] | None,
    inclusive: bool,
) -> tuple[Statement, list[Parameter]]:
    """A stretch of the sessions for these filters (None: not asked for), and its values.

    Args:
        workspace_id: whose.
        filters: what `_FILTERS` knows.
        limit: at most so many.
        include_archived: also the archived ones.
        ascending: oldest first.
        beyond: begin after the session of this time (microseconds, as `statements.micros`) and id.
        inclusive: begin at that one, if it is still there.
    """
    conditions = ["s.workspace_id = $1::text"]
    values: list[Parameter] = [workspace_id, *(() if beyond is None else beyond)]
    if not include_archived:
        conditions.append("s.archived_at IS NULL")
    if beyond is not None:
        than = (">" if ascending else "<") + ("=" if inclusive else "")
        conditions.append(
            f"(s.created_at, s.id) {than} (timestamptz '2000-01-01 00:00Z' + $2::bigint * interval '1 us', $3::text)"
        )
    conditions += statements.conditions(_FILTERS, filters, values)
    way = "ASC" if ascending else "DESC"
    sql = (
        f"SELECT {SESSION} FROM memkernel.sessions s WHERE {' AND '.join(conditions)} "
        f"ORDER BY s.created_at {way}, s.id {way} LIMIT {limit:d}"
    )
    return Statement(b"", sql.encode()), values
