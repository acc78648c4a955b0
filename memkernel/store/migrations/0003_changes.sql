-- The steps that every change is made of. The order of locks is: the store's advisory lock (it keeps 32
-- writers from collapsing on the row), the store's row, memory, version. Each statement of a function takes
-- its own snapshot, so what is read after the lock is what the writer before has committed.
--
-- A refusal is raised with an SQLSTATE of its own, and with its facts as JSON in DETAIL; memkernel/store/translate.py
-- is the one place that reads them.

CREATE FUNCTION memkernel.lock_key(p_store text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT hashtextextended('memkernel:' || p_store, 0) $$;

CREATE FUNCTION memkernel.lock_store(p_store text, p_writing boolean) RETURNS memkernel.memory_stores
LANGUAGE plpgsql AS $$
DECLARE
    store memkernel.memory_stores;
BEGIN
    PERFORM pg_advisory_xact_lock(memkernel.lock_key(p_store));
    SELECT * INTO store FROM memkernel.memory_stores WHERE id = p_store FOR NO KEY UPDATE;
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
CREATE FUNCTION memkernel.refuse_overlap(p_store text, p_path text, p_ancestors text[], p_memory text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    other record;
BEGIN
    SELECT id, path INTO other FROM (
        (SELECT id, path FROM memkernel.memories
          WHERE memory_store_id = p_store AND path = ANY (p_ancestors || p_path)
            AND id IS DISTINCT FROM p_memory)
        UNION ALL
        (SELECT id, path FROM memkernel.memories
          WHERE memory_store_id = p_store AND path > p_path || '/' AND path < p_path || '0'
            AND id IS DISTINCT FROM p_memory
          ORDER BY path LIMIT 1)
    ) overlapping LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'MK011', MESSAGE = 'the path overlaps with a memory',
            DETAIL = json_build_object('path', p_path, 'conflicting_memory_id', other.id,
                                       'conflicting_path', other.path)::text;
    END IF;
END $$;

-- The next p_count numbers of the store: returns the first of them, and the time that they all share.
CREATE FUNCTION memkernel.take_seq(
    p_store text, p_count integer, p_new_memories integer, OUT seq bigint, OUT moment timestamptz)
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE memkernel.memory_stores SET
        head_seq = head_seq + p_count,
        head_at = greatest(clock_timestamp(), head_at),
        memory_count = memory_count + p_new_memories
    WHERE id = p_store
    RETURNING head_seq - p_count + 1, head_at INTO seq, moment;
END $$;

CREATE FUNCTION memkernel.note_cause(p_store text, p_seq bigint, p_count integer, p_run text, p_tool_use text)
RETURNS void LANGUAGE sql AS $$
    INSERT INTO memkernel.run_changes (memory_store_id, seq, run_id, tool_use_id)
    SELECT p_store, n, p_run, p_tool_use FROM generate_series(p_seq, p_seq + p_count - 1) n
$$;
