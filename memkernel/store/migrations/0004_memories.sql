-- One memory: created, changed, written (whichever of the two it needs), deleted.

-- The first version of a lineage. The caller holds the store.
CREATE FUNCTION memkernel.begin_lineage(
    store memkernel.memory_stores, p_path text, p_ancestors text[], p_content bytea, p_sha256 bytea,
    p_memory text, p_version text, p_max_memories integer,
    p_actor_type text, p_actor text, p_run text, p_tool_use text) RETURNS memkernel.memories
LANGUAGE plpgsql AS $$
DECLARE
    head memkernel.memories;
    change record;
BEGIN
    PERFORM memkernel.refuse_overlap(store.id, p_path, p_ancestors, NULL);
    IF store.memory_count >= p_max_memories THEN
        RAISE EXCEPTION USING ERRCODE = 'MK021', MESSAGE = 'the memory store is full',
            DETAIL = json_build_object('limit', p_max_memories)::text;
    END IF;
    SELECT * INTO change FROM memkernel.take_seq(store.id, 1, 1);
    INSERT INTO memkernel.memory_versions (
        workspace_id, memory_store_id, id, seq, ordinal, memory_id, operation, path,
        content, content_sha256, content_size_bytes, created_at, created_by_type, created_by_id)
    VALUES (
        store.workspace_id, store.id, p_version, change.seq, 1, p_memory, 'created', p_path,
        p_content, p_sha256, octet_length(p_content), change.moment, p_actor_type, p_actor);
    INSERT INTO memkernel.memories (
        workspace_id, memory_store_id, id, path, memory_version_id,
        content_sha256, content_size_bytes, created_at, updated_at)
    VALUES (
        store.workspace_id, store.id, p_memory, p_path, p_version,
        p_sha256, octet_length(p_content), change.moment, change.moment)
    RETURNING * INTO head;
    IF p_run IS NOT NULL THEN
        PERFORM memkernel.note_cause(store.id, change.seq, 1, p_run, p_tool_use);
    END IF;
    RETURN head;
END $$;

-- The next version of a lineage: CONTRACT B.7, steps 2 to 6. A NULL path or content stays as it is.
-- The caller holds the store and has read the head under that lock.
CREATE FUNCTION memkernel.continue_lineage(
    head memkernel.memories, p_path text, p_ancestors text[], p_content bytea, p_sha256 bytea, p_expected bytea,
    p_version text, p_actor_type text, p_actor text, p_run text, p_tool_use text) RETURNS memkernel.memories
LANGUAGE plpgsql AS $$
DECLARE
    moves boolean := p_path <> head.path;
    change record;
BEGIN
    IF moves IS NOT TRUE AND (p_sha256 IS NULL OR p_sha256 = head.content_sha256) THEN
        RETURN head;
    END IF;
    IF p_expected <> head.content_sha256 THEN
        PERFORM memkernel.refuse_unexpected(head.path, p_expected, head.content_sha256);
    END IF;
    IF moves THEN
        PERFORM memkernel.refuse_overlap(head.memory_store_id, p_path, p_ancestors, head.id);
    END IF;
    SELECT * INTO change FROM memkernel.take_seq(head.memory_store_id, 1, 0);
    INSERT INTO memkernel.memory_versions (
        workspace_id, memory_store_id, id, seq, ordinal, memory_id, operation, path,
        content, content_sha256, content_size_bytes, created_at, created_by_type, created_by_id)
    SELECT
        before.workspace_id, before.memory_store_id, p_version, change.seq, before.ordinal + 1, head.id, 'modified',
        coalesce(p_path, head.path), coalesce(p_content, before.content), coalesce(p_sha256, head.content_sha256),
        coalesce(octet_length(p_content), head.content_size_bytes), change.moment, p_actor_type, p_actor
    FROM memkernel.memory_versions before
    WHERE before.memory_store_id = head.memory_store_id AND before.id = head.memory_version_id;
    UPDATE memkernel.memories SET
        path = coalesce(p_path, head.path), memory_version_id = p_version,
        content_sha256 = coalesce(p_sha256, head.content_sha256),
        content_size_bytes = coalesce(octet_length(p_content), head.content_size_bytes),
        updated_at = change.moment
    WHERE memory_store_id = head.memory_store_id AND id = head.id
    RETURNING * INTO head;
    IF p_run IS NOT NULL THEN
        PERFORM memkernel.note_cause(head.memory_store_id, change.seq, 1, p_run, p_tool_use);
    END IF;
    RETURN head;
END $$;

CREATE FUNCTION memkernel.memory_create(
    p_store text, p_path text, p_ancestors text[], p_content bytea, p_sha256 bytea,
    p_memory text, p_version text, p_max_memories integer,
    p_actor_type text, p_actor text, p_run text, p_tool_use text) RETURNS memkernel.memories
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN memkernel.begin_lineage(
        memkernel.lock_store(p_store, true), p_path, p_ancestors, p_content, p_sha256,
        p_memory, p_version, p_max_memories, p_actor_type, p_actor, p_run, p_tool_use);
END $$;

CREATE FUNCTION memkernel.memory_update(
    p_store text, p_memory text, p_path text, p_ancestors text[], p_content bytea, p_sha256 bytea, p_expected bytea,
    p_version text, p_actor_type text, p_actor text, p_run text, p_tool_use text) RETURNS memkernel.memories
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    head memkernel.memories;
BEGIN
    PERFORM memkernel.lock_store(p_store, true);
    SELECT * INTO head FROM memkernel.memories WHERE memory_store_id = p_store AND id = p_memory;
    IF NOT FOUND THEN
        PERFORM memkernel.refuse_missing(p_memory);
    END IF;
    RETURN memkernel.continue_lineage(
        head, p_path, p_ancestors, p_content, p_sha256, p_expected,
        p_version, p_actor_type, p_actor, p_run, p_tool_use);
END $$;

-- What the path shall hold, whether or not it holds something now. p_absent expects that it holds nothing.
CREATE FUNCTION memkernel.memory_write(
    p_store text, p_path text, p_ancestors text[], p_content bytea, p_sha256 bytea, p_expected bytea, p_absent boolean,
    p_memory text, p_version text, p_max_memories integer,
    p_actor_type text, p_actor text, p_run text, p_tool_use text) RETURNS memkernel.memories
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    store memkernel.memory_stores := memkernel.lock_store(p_store, true);
    head memkernel.memories;
BEGIN
    SELECT * INTO head FROM memkernel.memories WHERE memory_store_id = p_store AND path = p_path;
    IF FOUND THEN
        IF p_absent AND head.content_sha256 <> p_sha256 THEN
            PERFORM memkernel.refuse_unexpected(p_path, NULL, head.content_sha256);
        END IF;
        RETURN memkernel.continue_lineage(
            head, NULL, NULL, p_content, p_sha256, p_expected, p_version, p_actor_type, p_actor, p_run, p_tool_use);
    END IF;
    IF p_expected IS NOT NULL THEN
        PERFORM memkernel.refuse_unexpected(p_path, p_expected, NULL);
    END IF;
    RETURN memkernel.begin_lineage(
        store, p_path, p_ancestors, p_content, p_sha256,
        p_memory, p_version, p_max_memories, p_actor_type, p_actor, p_run, p_tool_use);
END $$;

-- An archived store still lets go of memories (CONTRACT 0.3, row 4).
CREATE FUNCTION memkernel.memory_delete(
    p_store text, p_memory text, p_expected bytea,
    p_version text, p_actor_type text, p_actor text, p_run text, p_tool_use text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    head memkernel.memories;
BEGIN
    PERFORM memkernel.lock_store(p_store, false);
    SELECT * INTO head FROM memkernel.memories WHERE memory_store_id = p_store AND id = p_memory;
    IF NOT FOUND THEN
        PERFORM memkernel.refuse_missing(p_memory);
    END IF;
    IF p_expected <> head.content_sha256 THEN
        PERFORM memkernel.refuse_unexpected(head.path, p_expected, head.content_sha256);
    END IF;
    PERFORM memkernel.end_lineages(
        p_store, ARRAY[head.id], ARRAY[p_version], p_actor_type, p_actor, p_run, p_tool_use);
END $$;
