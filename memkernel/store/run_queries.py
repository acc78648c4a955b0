"""The statements of runs: their keys, runs_id, runs_newest, runs_running; and those of run_changes, by its indexes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from memkernel.store import statements
from memkernel.store.queries import VERSION
from memkernel.store.statements import Parameter, Statement, planned, prepared

# The columns, in the order in which runs.py reads them.
RUN: Final = (
    "r.id, r.session_id, r.kind, r.model, r.prompt, r.status, r.turns, r.stop_reason, r.input_tokens, r.output_tokens, "
    "r.cache_read_input_tokens, r.cache_creation_input_tokens, r.cost_usd::text, "
    "array_to_json(r.memory_store_ids)::text, r.previous_run_id, r.error, r.started_at, r.seen_at, r.ended_at"
)

RUN_BEGIN: Final = planned(
    f"SELECT {RUN} FROM memkernel.run_begin($1::text, $2::text, $3::text, $4::text, $5::text, $6::text, "
    "$7::text::json, $8::text[], $9::text, $10::text) r"
)
RUN_APPEND: Final = prepared(
    "run_append",
    "SELECT memkernel.run_append($1::text, $2::text, $3::text, $4::text[], $5::text[], $6::text[], $7::text[], "
    "$8::bigint, $9::bigint, $10::bigint, $11::bigint, $12::bigint, $13::text::double precision, $14::text, $15::text, "
    "$16::text)",
)
# Only a run that goes on, and is this process's: its end, or whoever has taken it over, is never written over.
RUN_LIVES: Final = planned(
    "UPDATE memkernel.runs AS r SET seen_at = greatest(clock_timestamp(), r.seen_at) WHERE r.session_id = $1::text "
    "AND r.id = $2::text AND r.process = $3::text AND r.status = 'running' "
    "RETURNING (r.stop_asked_at IS NOT NULL)::int::bigint"
)
RUN_GET: Final = planned(f"SELECT {RUN} FROM memkernel.runs r WHERE r.id = $1::text")
RUN_MESSAGES: Final = planned("SELECT r.messages::text FROM memkernel.runs r WHERE r.id = $1::text")
RUN_EVENTS: Final = planned(
    "SELECT e.n, e.type, e.data::text, e.created_at FROM memkernel.runs r JOIN memkernel.run_events e "
    "ON e.session_id = r.session_id AND e.run_id = r.id "
    "WHERE r.id = $1::text AND e.n > $2::bigint ORDER BY e.n LIMIT $3::bigint"
)
# Whose a run is, and how long ago it wrote, by the server's clock: in microseconds.
_HOLDER: Final = (
    "r.id, r.process, r.status, r.seen_at, (extract(epoch FROM clock_timestamp() - r.seen_at) * 1000000)::bigint "
    "FROM memkernel.runs r"
)
RUN_HOLDER: Final = planned(f"SELECT {_HOLDER} WHERE r.id = $1::text")
RUNNING: Final = planned(f"SELECT {_HOLDER} WHERE r.workspace_id = $1::text AND r.status = 'running'")
RUN_TAKE_OVER: Final = planned(
    f"SELECT {RUN} FROM memkernel.run_take_over($1::text, $2::text, $3::timestamptz, $4::text) r"
)
RUN_ASK_STOP: Final = planned(f"SELECT {RUN} FROM memkernel.run_ask_stop($1::text) r")
RUN_DELETE: Final = planned("SELECT memkernel.run_delete($1::text)")
CALL_IS_SAVED: Final = planned("SELECT memkernel.call_is_saved($1::text, $2::text, $3::text)")

# -- between changes and calls ---------------------------------------------------------------------

CAUSES: Final = planned(
    "SELECT c.seq, c.run_id, c.tool_use_id FROM memkernel.run_changes c "
    "WHERE c.memory_store_id = $1::text AND c.seq = ANY ($2::text[]::bigint[])"
)
CAUSE_OF_VERSION: Final = planned(
    "SELECT v.seq, c.run_id, c.tool_use_id FROM memkernel.memory_versions v LEFT JOIN memkernel.run_changes c "
    "ON c.memory_store_id = v.memory_store_id AND c.seq = v.seq WHERE v.memory_store_id = $1::text AND v.id = $2::text"
)
CHANGES_BY_CALL: Final = planned(
    f"SELECT {VERSION}, c.tool_use_id FROM memkernel.run_changes c JOIN memkernel.memory_versions v "
    "ON v.memory_store_id = c.memory_store_id AND v.seq = c.seq "
    "WHERE c.run_id = $2::text AND c.memory_store_id = $1::text ORDER BY v.seq"
)
# Those that made the version, and those that worked with its store while it was current: they may have read it.
RUNS_OF_VERSION: Final = planned(
    "SELECT r.id FROM memkernel.memory_versions v "
    "LEFT JOIN LATERAL (SELECT created_at FROM memkernel.memory_versions "
    "WHERE memory_store_id = v.memory_store_id AND memory_id = v.memory_id AND seq > v.seq ORDER BY seq LIMIT 1) next "
    "ON true "
    "LEFT JOIN memkernel.run_changes c ON c.memory_store_id = v.memory_store_id AND c.seq = v.seq "
    "JOIN memkernel.runs r ON r.id = c.run_id OR (r.memory_store_ids @> ARRAY[v.memory_store_id] "
    "AND r.started_at <= coalesce(next.created_at, 'infinity') AND coalesce(r.ended_at, 'infinity') >= v.created_at) "
    "WHERE v.memory_store_id = $1::text AND v.id = $2::text ORDER BY r.started_at DESC, r.id DESC"
)

# -- a listing -------------------------------------------------------------------------------------

_FILTERS: Final = {
    "memory_store_id": "r.memory_store_ids @> ARRAY[{0}::text]",
    "session_id": "r.session_id = {0}::text",
    "status": "r.status = {0}::text",
    "since": "r.started_at >= {0}::timestamptz",
}


def run_list(
    workspace_id: str, filters: Mapping[str, Parameter], limit: int, beyond: tuple[int, str] | None
) -> tuple[Statement, list[Parameter]]:
    """The runs for these filters (None: not asked for), newest first, and the statement's values.

    Args:
        workspace_id: whose.
        filters: what `_FILTERS` knows.
        limit: at most so many.
        beyond: begin after the run of this start (microseconds, as `statements.micros`) and id.
    """
    conditions, values = ["r.workspace_id = $1::text"], list[Parameter]([workspace_id])
    if beyond is not None:
        values += beyond
        conditions.append(
            "(r.started_at, r.id) < (timestamptz '2000-01-01 00:00Z' + $2::bigint * interval '1 us', $3::text)"
        )
    conditions += statements.conditions(_FILTERS, filters, values)
    sql = (
        f"SELECT {RUN} FROM memkernel.runs r WHERE {' AND '.join(conditions)} "
        f"ORDER BY r.started_at DESC, r.id DESC LIMIT {limit:d}"
    )
    return Statement(b"", sql.encode()), values
