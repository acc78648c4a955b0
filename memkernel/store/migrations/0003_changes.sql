-- The steps that every change is made of.
--
-- Locks, in this order: the store's advisory lock (it keeps 32 writers from collapsing on the row), the store's
-- row (by the UPDATE that takes the next seq), memory, version. Each statement of a function takes its own
-- snapshot, so what is read after the advisory lock is what the writer before has committed.
--
-- A statement inside a function costs 10-20 us, a nested call next to nothing as long as it is assigned
-- (PERFORM would make a statement of it): hence the assignments to `nothing`, and few statements. Names are
-- qualified instead of SET search_path, which costs as much as a statement.
--
-- A refusal is raised with an SQLSTATE of its own, and with its facts as JSON in DETAIL; memkernel/store/translate.py
-- is the one place that reads them.

CREATE FUNCTION memkernel.lock_key(p_store text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT hashtextextended('memkernel:' || p_store, 0) $$;

-- The store, which must be there, and must not be archived if it is to be written to. The caller holds its lock.
CREATE FUNCTION memkernel.find_store(p_store text, p_writing boolean) RETURNS memkernel.memory_stores
LANGUAGE plpgsql AS $$
DECLARE
    store memkernel.memory_stores;
BEGIN
    SELECT * INTO store FROM memkernel.memory_stores WHERE id = p_store;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'MK001', MESSAGE = 'no such memory store',
            DETAIL = json_build_object('store', p_store)::text;
    END IF;
    IF p_writing AND store.archived_at IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'MK020', MESSAGE = 'the memory store is archived',
            DETAIL = json_build_object('store', p_store)::text;
    END IF;
    RETURN store;
END $$;

CREATE FUNCTION memkernel.lock_store(p_store text, p_writing boolean) RETURNS memkernel.memory_stores
LANGUAGE plpgsql AS $$
DECLARE
    nothing text := pg_advisory_xact_lock(memkernel.lock_key(p_store));
BEGIN
    RETURN memkernel.find_store(p_store, p_writing);
END $$;

CREATE FUNCTION memkernel.refuse_missing(p_memory text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'MK002', MESSAGE = 'no such memory',
        DETAIL = json_build_object('memory', p_memory)::text;
END $$;

-- CONTRACT B.7, step 4. An expectation of NULL expects nothing; a hash that is NULL is no memory.
CREATE FUNCTION memkernel.refuse_unexpected(p_path text, p_expected bytea, p_actual bytea) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'MK010', MESSAGE = 'the content is not the expected one',
        DETAIL = json_build_object(
            'path', p_path, 'expected', encode(p_expected, 'hex'), 'actual', encode(p_actual, 'hex'))::text;
END $$;

-- CONTRACT B.6: nothing may be at the path, above it or below it, except the memory itself. Live memories
-- never overlap each other, so at most one is at or above; the first one below is the first in path order.
-- Each path is looked up on its own: for path = ANY (…) a planner without statistics reads the whole store.
CREATE FUNCTION memkernel.refuse_overlap(p_store text, p_path text, p_ancestors text[], p_memory text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    at_or_above text[] := p_ancestors || p_path;
    other record;
BEGIN
    IF NOT EXISTS (
        SELECT FROM memkernel.memories
        WHERE memory_store_id = p_store AND path > p_path || '/' AND path < p_path || '0'
            AND id IS DISTINCT FROM p_memory
    ) AND NOT EXISTS (
        SELECT FROM unnest(at_or_above) AS place, LATERAL (
            SELECT id FROM memkernel.memories WHERE memory_store_id = p_store AND path = place LIMIT 1) memory
        WHERE memory.id IS DISTINCT FROM p_memory
    ) THEN
        RETURN;
    END IF;
    SELECT id, path INTO other FROM memkernel.memories
    WHERE memory_store_id = p_store AND id IS DISTINCT FROM p_memory
        AND (path = ANY (at_or_above) OR path > p_path || '/' AND path < p_path || '0')
    ORDER BY path LIMIT 1;
    RAISE EXCEPTION USING ERRCODE = 'MK011', MESSAGE = 'the path overlaps with a memory',
        DETAIL = json_build_object('path', p_path, 'conflicting_memory_id', other.id,
                                   'conflicting_path', other.path)::text;
END $$;

CREATE FUNCTION memkernel.note_cause(p_store text, p_seq bigint, p_count integer, p_run text, p_tool_use text)
RETURNS void LANGUAGE sql AS $$
    INSERT INTO memkernel.run_changes (memory_store_id, seq, run_id, tool_use_id)
    SELECT p_store, n, p_run, p_tool_use FROM generate_series(p_seq, p_seq + p_count - 1) n
$$;
