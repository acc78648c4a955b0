-- A batch (CONTRACT D.4): its versions are copied straight into the table by the caller, who holds the store's
-- lock and has judged the preconditions; then the heads follow them.

-- How the store stands under its lock, and the time that the batch's versions share.
CREATE FUNCTION memkernel.batch_begin(p_store text, OUT workspace_id text, OUT seq bigint, OUT moment timestamptz,
    OUT archived boolean)
LANGUAGE plpgsql AS $$
DECLARE
    store memkernel.memory_stores := memkernel.lock_store(p_store, false);
BEGIN
    workspace_id := store.workspace_id;
    seq := store.head_seq;
    moment := greatest(clock_timestamp(), store.head_at);
    archived := store.archived_at IS NOT NULL;
END $$;

-- Two live memories overlap if, in the order of path || '/', one begins with the one before it.
CREATE FUNCTION memkernel.refuse_overlap_anywhere(p_store text, p_after_seq bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    above record;
    above_is_new boolean;
BEGIN
    SELECT * INTO above FROM (
        SELECT id, path, lead(id) OVER pathwise AS below_id, lead(path) OVER pathwise AS below_path
        FROM memkernel.memories WHERE memory_store_id = p_store
        WINDOW pathwise AS (ORDER BY path || '/' COLLATE "C")
    ) pair WHERE starts_with(below_path, path || '/') ORDER BY path LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    above_is_new := NOT EXISTS (
        SELECT FROM memkernel.memory_versions
        WHERE memory_store_id = p_store AND memory_id = above.id AND seq <= p_after_seq);
    RAISE EXCEPTION USING ERRCODE = 'MK011', MESSAGE = 'the path overlaps with a memory',
        DETAIL = CASE WHEN above_is_new
            THEN json_build_object('path', above.path, 'conflicting_memory_id', above.below_id,
                                   'conflicting_path', above.below_path)
            ELSE json_build_object('path', above.below_path, 'conflicting_memory_id', above.id,
                                   'conflicting_path', above.path)
        END::text;
END $$;

-- The heads follow the versions that were copied after p_after_seq. Capacity and overlap are judged on the
-- result. Each version must have moved one head.
CREATE FUNCTION memkernel.batch_finish(
    p_store text, p_after_seq bigint, p_count integer, p_moment timestamptz, p_limit integer,
    p_run text, p_tool_use text) RETURNS void
-- Without fresh statistics a nested loop may look for each version among all heads: 2,000 times 2,000.
LANGUAGE plpgsql SET enable_nestloop = off AS $$
DECLARE
    deleted integer;
    modified integer;
    created integer;
    memories_now integer;
    nothing text;
BEGIN
    DELETE FROM memkernel.memories head USING memkernel.memory_versions version
    WHERE version.memory_store_id = p_store AND version.seq > p_after_seq AND version.operation = 'deleted'
        AND head.memory_store_id = p_store AND head.id = version.memory_id;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    UPDATE memkernel.memories head SET
        memory_version_id = version.id, ordinal = version.ordinal, content_sha256 = version.content_sha256,
        content_size_bytes = version.content_size_bytes, updated_at = version.created_at
    FROM memkernel.memory_versions version
    WHERE version.memory_store_id = p_store AND version.seq > p_after_seq AND version.operation = 'modified'
        AND head.memory_store_id = p_store AND head.id = version.memory_id;
    GET DIAGNOSTICS modified = ROW_COUNT;
    INSERT INTO memkernel.memories (
        workspace_id, memory_store_id, id, path, memory_version_id, ordinal,
        content_sha256, content_size_bytes, created_at, updated_at)
    SELECT
        workspace_id, memory_store_id, memory_id, path, id, ordinal,
        content_sha256, content_size_bytes, created_at, created_at
    FROM memkernel.memory_versions
    WHERE memory_store_id = p_store AND seq > p_after_seq AND operation = 'created';
    GET DIAGNOSTICS created = ROW_COUNT;
    IF deleted + modified + created <> p_count THEN
        RAISE EXCEPTION USING ERRCODE = 'MK099', MESSAGE = format(
            'a batch of %s changes moved %s heads', p_count, deleted + modified + created);
    END IF;
    UPDATE memkernel.memory_stores SET
        head_seq = head_seq + p_count, head_at = p_moment, memory_count = memory_count + created - deleted
    WHERE id = p_store RETURNING memory_count INTO memories_now;
    IF created > 0 AND memories_now > p_limit THEN
        RAISE EXCEPTION USING ERRCODE = 'MK021', MESSAGE = 'the memory store is full',
            DETAIL = json_build_object('limit', p_limit)::text;
    END IF;
    IF created > 0 THEN
        nothing := memkernel.refuse_overlap_anywhere(p_store, p_after_seq);
    END IF;
    IF p_run IS NOT NULL THEN
        nothing := memkernel.note_cause(p_store, p_after_seq + 1, p_count, p_run, p_tool_use);
    END IF;
END $$;
