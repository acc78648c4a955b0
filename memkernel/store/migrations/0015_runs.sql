-- Runs of agents, and what happened in them. What a run changed is in run_changes; it is found by the run's id.
--
-- No key leads to a store or a session: a run outlives both, and each may lie on another shard.
--
-- JSON is kept as `json`, not as `jsonb`: a model may write U+0000 and lone surrogates, which jsonb refuses, and a
-- conversation goes on with the very text that was sent, the order of its keys included (what the API caches).

CREATE TABLE memkernel.runs (
    workspace_id text COLLATE "C" NOT NULL DEFAULT 'default',
    session_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    model text NOT NULL,
    prompt text NOT NULL,
    messages json,  -- the conversation before the prompt, where it is not what previous_run_id left
    memory_store_ids text[] NOT NULL DEFAULT '{}',
    previous_run_id text COLLATE "C",
    process text NOT NULL,  -- who may write to it: memkernel/store/run_processes.py
    status text COLLATE "C" NOT NULL DEFAULT 'running',
    stop_asked_at timestamptz,
    turns bigint NOT NULL DEFAULT 0,
    stop_reason text,
    input_tokens bigint NOT NULL DEFAULT 0,
    output_tokens bigint NOT NULL DEFAULT 0,
    cache_read_input_tokens bigint NOT NULL DEFAULT 0,
    cache_creation_input_tokens bigint NOT NULL DEFAULT 0,
    cost_usd double precision,
    error text NOT NULL DEFAULT '',
    started_at timestamptz NOT NULL,
    seen_at timestamptz NOT NULL,
    ended_at timestamptz,
    CONSTRAINT runs_pkey PRIMARY KEY (session_id, id)
) WITH (fillfactor = 50);  -- its row is rewritten with every step

CREATE INDEX runs_id ON memkernel.runs (id);
CREATE INDEX runs_newest ON memkernel.runs (workspace_id, started_at DESC, id DESC);
CREATE INDEX runs_running ON memkernel.runs (workspace_id) WHERE status = 'running';

CREATE TABLE memkernel.run_events (
    workspace_id text COLLATE "C" NOT NULL DEFAULT 'default',
    session_id text COLLATE "C" NOT NULL,
    run_id text COLLATE "C" NOT NULL,
    n bigint NOT NULL,
    type text COLLATE "C" NOT NULL,
    data json NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT run_events_pkey PRIMARY KEY (session_id, run_id, n)
);

-- The policies of migration 12; see there.
DO $$
DECLARE
    place text;
    seen constant text := 'workspace_id = current_setting(''memkernel.workspace_id'', true) AND '
        '(SELECT pg_has_role(session_user, relowner, ''MEMBER'') '
        'FROM pg_class WHERE oid = ''memkernel.memory_stores''::regclass)';
BEGIN
    FOREACH place IN ARRAY ARRAY['runs', 'run_events'] LOOP
        EXECUTE format('ALTER TABLE memkernel.%I ENABLE ROW LEVEL SECURITY', place);
        EXECUTE format('CREATE POLICY workspace ON memkernel.%1$I USING (%2$s) WITH CHECK (%2$s)', place, seen);
    END LOOP;
END $$;

-- The run, which must be there, with its row locked.
CREATE FUNCTION memkernel.lock_run(p_run text) RETURNS memkernel.runs
LANGUAGE plpgsql AS $$
DECLARE
    run memkernel.runs;
BEGIN
    SELECT * INTO run FROM memkernel.runs WHERE id = p_run FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'MK005', MESSAGE = 'no such run',
            DETAIL = json_build_object('run', p_run)::text;
    END IF;
    RETURN run;
END $$;

-- What the next change of a store must not come before, but need not be waited for: that change's commit flushes the
-- write-ahead log, and this with it.
CREATE FUNCTION memkernel.flush_later() RETURNS void LANGUAGE sql AS $$
    SELECT set_config('synchronous_commit', 'off', true)
$$;

-- Run twice with the same id, it makes one run.
CREATE FUNCTION memkernel.run_begin(
    p_workspace text, p_session text, p_run text, p_kind text, p_model text, p_prompt text, p_messages json,
    p_stores text[], p_previous text, p_process text) RETURNS SETOF memkernel.runs
LANGUAGE plpgsql AS $$
DECLARE
    nothing text := memkernel.flush_later();
BEGIN
    INSERT INTO memkernel.runs (
        workspace_id, session_id, id, kind, model, prompt, messages, memory_store_ids, previous_run_id, process,
        started_at, seen_at)
    SELECT p_workspace, p_session, p_run, p_kind, p_model, p_prompt, p_messages, p_stores, p_previous, p_process,
        moment, moment
    FROM clock_timestamp() AS moment
    ON CONFLICT DO NOTHING;
    RETURN QUERY SELECT * FROM memkernel.runs WHERE session_id = p_session AND id = p_run;
END $$;

-- The next events, and how the run stands after them; whether a stop was asked for. An event that is there already is
-- left as it is, so that this may be run twice. The row's lock comes first: a run is appended to, or taken over.
CREATE FUNCTION memkernel.run_append(
    p_session text, p_run text, p_process text, p_n text[], p_types text[], p_data text[], p_at text[],
    p_turns bigint, p_input bigint, p_output bigint, p_cache_read bigint, p_cache_creation bigint,
    p_cost double precision, p_status text, p_stop_reason text, p_error text)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    nothing text := CASE WHEN p_status = 'running' THEN memkernel.flush_later()::text END;
    moment timestamptz := clock_timestamp();
    run memkernel.runs;
BEGIN
    UPDATE memkernel.runs AS r SET
        turns = p_turns, input_tokens = p_input, output_tokens = p_output,
        cache_read_input_tokens = p_cache_read, cache_creation_input_tokens = p_cache_creation, cost_usd = p_cost,
        status = p_status, stop_reason = p_stop_reason, error = p_error,
        seen_at = greatest(moment, r.seen_at),
        ended_at = CASE WHEN p_status <> 'running' THEN coalesce(r.ended_at, greatest(moment, r.seen_at)) END
    WHERE r.session_id = p_session AND r.id = p_run AND r.process = p_process
    RETURNING * INTO run;
    IF NOT FOUND THEN
        run := memkernel.lock_run(p_run);
        RAISE EXCEPTION USING ERRCODE = 'MK026', MESSAGE = 'the run was taken over',
            DETAIL = json_build_object('run', p_run)::text;
    END IF;
    INSERT INTO memkernel.run_events (workspace_id, session_id, run_id, n, type, data, created_at)
    SELECT run.workspace_id, p_session, p_run, event.n::bigint, event.type, event.data::json, event.at::timestamptz
    FROM unnest(p_n, p_types, p_data, p_at) AS event(n, type, data, at)
    ON CONFLICT DO NOTHING;
    RETURN run.stop_asked_at IS NOT NULL;
END $$;

-- The process that has it now, in place of the one that is gone; NULL where that is not the one it has, or it has gone
-- on since: the caller looks again.
CREATE FUNCTION memkernel.run_take_over(p_run text, p_gone text, p_seen_at timestamptz, p_process text)
RETURNS SETOF memkernel.runs LANGUAGE plpgsql AS $$
DECLARE
    run memkernel.runs := memkernel.lock_run(p_run);
BEGIN
    RETURN QUERY
        UPDATE memkernel.runs AS r SET
            process = p_process,
            status = CASE r.status WHEN 'running' THEN 'lost' ELSE r.status END,
            ended_at = coalesce(r.ended_at, r.seen_at)
        WHERE r.session_id = run.session_id AND r.id = p_run AND r.process = p_gone AND r.seen_at = p_seen_at
        RETURNING r.*;
END $$;

-- A run that has ended stays as it is.
CREATE FUNCTION memkernel.run_ask_stop(p_run text) RETURNS SETOF memkernel.runs
LANGUAGE plpgsql AS $$
DECLARE
    run memkernel.runs := memkernel.lock_run(p_run);
BEGIN
    UPDATE memkernel.runs AS r SET stop_asked_at = clock_timestamp()
    WHERE r.session_id = run.session_id AND r.id = p_run AND r.status = 'running' AND r.stop_asked_at IS NULL;
    RETURN QUERY SELECT * FROM memkernel.runs WHERE session_id = run.session_id AND id = p_run;
END $$;

CREATE FUNCTION memkernel.run_delete(p_run text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    run memkernel.runs := memkernel.lock_run(p_run);
BEGIN
    IF run.status = 'running' THEN
        RAISE EXCEPTION USING ERRCODE = 'MK027', MESSAGE = 'the run is running',
            DETAIL = json_build_object('run', p_run)::text;
    END IF;
    DELETE FROM memkernel.run_events WHERE session_id = run.session_id AND run_id = p_run;
    DELETE FROM memkernel.runs WHERE session_id = run.session_id AND id = p_run;
END $$;

-- Whether a tool call has changed the store, under the store's lock: a backend that is still at work on it is waited
-- for.
CREATE FUNCTION memkernel.call_is_saved(p_store text, p_run text, p_tool_use text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    store memkernel.memory_stores := memkernel.lock_store(p_store, false);
BEGIN
    RETURN EXISTS (
        SELECT FROM memkernel.run_changes
        WHERE memory_store_id = p_store AND run_id = p_run AND tool_use_id = p_tool_use);
END $$;

-- A run that is lost changes nothing any more: what its process had sent before it was killed may reach the server after
-- somebody asked what was saved. The caller holds the store's lock, and so did whoever asked.
CREATE OR REPLACE FUNCTION memkernel.note_cause(
    p_store text, p_seq bigint, p_count integer, p_run text, p_tool_use text)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO memkernel.run_changes (workspace_id, memory_store_id, seq, run_id, tool_use_id)
    SELECT workspace_id, p_store, n, p_run, p_tool_use
    FROM memkernel.memory_stores, generate_series(p_seq, p_seq + p_count - 1) n WHERE id = p_store;
    IF EXISTS (SELECT FROM memkernel.runs WHERE id = p_run AND status = 'lost') THEN
        RAISE EXCEPTION USING ERRCODE = 'MK026', MESSAGE = 'the run was taken over',
            DETAIL = json_build_object('run', p_run)::text;
    END IF;
END $$;
