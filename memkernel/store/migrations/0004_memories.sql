-- One memory: created, changed, written (whichever of the two it needs), deleted.

-- The first version of a lineage. The caller holds the store.
CREATE FUNCTION memkernel.begin_lineage(
    p_store text, p_path text, p_ancestors text[], p_content bytea, p_sha256 bytea,
    p_memory text, p_version text, p_count integer, p_limit integer,
    p_actor_type text, p_actor text, p_run text, p_tool_use text) RETURNS memkernel.memories
LANGUAGE plpgsql AS $$
DECLARE
    head memkernel.memories;
    change record;
    nothing text := memkernel.refuse_overlap(p_store, p_path, p_ancestors, NULL);
BEGIN
    IF p_count >= p_limit THEN
        RAISE EXCEPTION USING ERRCODE = 'MK021', MESSAGE = 'the memory store is full',
            DETAIL = json_build_object('limit', p_limit)::text;
    END IF;
    UPDATE memkernel.memory_stores SET
        head_seq = head_seq + 1, head_at = greatest(clock_timestamp(), head_at), memory_count = memory_count + 1
    WHERE id = p_store RETURNING workspace_id, head_seq AS seq, head_at AS moment INTO change;
    INSERT INTO memkernel.memory_versions (
        workspace_id, memory_store_id, id, seq, ordinal, memory_id, operation, path,
        content, content_sha256, content_size_bytes, created_at, created_by_type, created_by_id)
    VALUES (
        change.workspace_id, p_store, p_version, change.seq, 1, p_memory, 'created', p_path,
        p_content, p_sha256, octet_length(p_content), change.moment, p_actor_type, p_actor);
    INSERT INTO memkernel.memories (
        workspace_id, memory_store_id, id, path, memory_version_id,
        content_sha256, content_size_bytes, created_at, updated_at)
    VALUES (
        change.workspace_id, p_store, p_memory, p_path, p_version,
        p_sha256, octet_length(p_content), change.moment, change.moment)
    RETURNING * INTO head;
    IF p_run IS NOT NULL THEN
        nothing := memkernel.note_cause(p_store, change.seq, 1, p_run, p_tool_use);
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
    nothing text;
BEGIN
    IF moves IS NOT TRUE AND (p_sha256 IS NULL OR p_sha256 = head.content_sha256) THEN
        RETURN head;
    END IF;
    IF p_expected <> head.content_sha256 THEN
        nothing := memkernel.refuse_unexpected(head.path, p_expected, head.content_sha256);
    END IF;
    IF moves THEN
        nothing := memkernel.refuse_overlap(head.memory_store_id, p_path, p_ancestors, head.id);
    END IF;
    UPDATE memkernel.memory_stores SET
        head_seq = head_seq + 1, head_at = greatest(clock_timestamp(), head_at)
    WHERE id = head.memory_store_id RETURNING head_seq AS seq, head_at AS moment INTO change;
    INSERT INTO memkernel.memory_versions (
        workspace_id, memory_store_id, id, seq, ordinal, memory_id, operation, path,
        content, content_sha256, content_size_bytes, created_at, created_by_type, created_by_id)
    SELECT
        head.workspace_id, head.memory_store_id, p_version, change.seq, before.ordinal + 1, head.id, 'modified',
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
        nothing := memkernel.note_cause(head.memory_store_id, change.seq, 1, p_run, p_tool_use);
    END IF;
    RETURN head;
END $$;

CREATE FUNCTION memkernel.memory_create(
    p_store text, p_path text, p_ancestors text[], p_content bytea, p_sha256 bytea,
    p_memory text, p_version text, p_limit integer,
    p_actor_type text, p_actor text, p_run text, p_tool_use text) RETURNS memkernel.memories
LANGUAGE plpgsql AS $$
DECLARE
    store memkernel.memory_stores := memkernel.lock_store(p_store, true);
BEGIN
    RETURN memkernel.begin_lineage(
        p_store, p_path, p_ancestors, p_content, p_sha256, p_memory, p_version, store.memory_count, p_limit,
        p_actor_type, p_actor, p_run, p_tool_use);
END $$;

CREATE FUNCTION memkernel.memory_update(
    p_store text, p_memory text, p_path text, p_ancestors text[], p_content bytea, p_sha256 bytea, p_expected bytea,
    p_version text, p_actor_type text, p_actor text, p_run text, p_tool_use text) RETURNS memkernel.memories
LANGUAGE plpgsql AS $$
DECLARE
    nothing text := pg_advisory_xact_lock(memkernel.lock_key(p_store));
    found_there record;
BEGIN
    SELECT store.archived_at, memory.id, memory AS head INTO found_there
    FROM memkernel.memory_stores store
    LEFT JOIN memkernel.memories memory ON memory.memory_store_id = store.id AND memory.id = p_memory
    WHERE store.id = p_store;
    nothing := memkernel.check_store(p_store, FOUND, found_there.archived_at);
    IF found_there.id IS NULL THEN
        nothing := memkernel.refuse_missing(p_memory);
    END IF;
    RETURN memkernel.continue_lineage(
        found_there.head, p_path, p_ancestors, p_content, p_sha256, p_expected,
        p_version, p_actor_type, p_actor, p_run, p_tool_use);
END $$;

-- What the path shall hold, whether or not it holds something now. p_absent expects that it holds nothing.
CREATE FUNCTION memkernel.memory_write(
    p_store text, p_path text, p_ancestors text[], p_content bytea, p_sha256 bytea, p_expected bytea, p_absent boolean,
    p_memory text, p_version text, p_limit integer,
    p_actor_type text, p_actor text, p_run text, p_tool_use text) RETURNS memkernel.memories
LANGUAGE plpgsql AS $$
DECLARE
    nothing text := pg_advisory_xact_lock(memkernel.lock_key(p_store));
    found_there record;
BEGIN
    SELECT store.archived_at, store.memory_count, memory.id, memory.content_sha256, memory AS head INTO found_there
    FROM memkernel.memory_stores store
    LEFT JOIN memkernel.memories memory ON memory.memory_store_id = store.id AND memory.path = p_path
    WHERE store.id = p_store;
    nothing := memkernel.check_store(p_store, FOUND, found_there.archived_at);
    IF (p_expected IS NOT NULL AND found_there.id IS NULL) OR (p_absent AND found_there.content_sha256 <> p_sha256) THEN
        nothing := memkernel.refuse_unexpected(p_path, p_expected, found_there.content_sha256);
    END IF;
    IF found_there.id IS NOT NULL THEN
        RETURN memkernel.continue_lineage(
            found_there.head, NULL, NULL, p_content, p_sha256, p_expected,
            p_version, p_actor_type, p_actor, p_run, p_tool_use);
    END IF;
    RETURN memkernel.begin_lineage(
        p_store, p_path, p_ancestors, p_content, p_sha256, p_memory, p_version, found_there.memory_count, p_limit,
        p_actor_type, p_actor, p_run, p_tool_use);
END $$;

-- The last version of a lineage; its head goes. The caller holds the store.
CREATE FUNCTION memkernel.end_lineage(
    head memkernel.memories, p_version text, p_actor_type text, p_actor text, p_run text, p_tool_use text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    change record;
    nothing text;
BEGIN
    UPDATE memkernel.memory_stores SET
        head_seq = head_seq + 1, head_at = greatest(clock_timestamp(), head_at), memory_count = memory_count - 1
    WHERE id = head.memory_store_id RETURNING head_seq AS seq, head_at AS moment INTO change;
    INSERT INTO memkernel.memory_versions (
        workspace_id, memory_store_id, id, seq, ordinal, memory_id, operation, path,
        created_at, created_by_type, created_by_id)
    SELECT
        head.workspace_id, head.memory_store_id, p_version, change.seq, before.ordinal + 1, head.id, 'deleted', head.path,
        change.moment, p_actor_type, p_actor
    FROM memkernel.memory_versions before
    WHERE before.memory_store_id = head.memory_store_id AND before.id = head.memory_version_id;
    DELETE FROM memkernel.memories WHERE memory_store_id = head.memory_store_id AND id = head.id;
    IF p_run IS NOT NULL THEN
        nothing := memkernel.note_cause(head.memory_store_id, change.seq, 1, p_run, p_tool_use);
    END IF;
END $$;

-- An archived store still lets go of memories (CONTRACT 0.3, row 4).
CREATE FUNCTION memkernel.memory_delete(
    p_store text, p_memory text, p_expected bytea,
    p_version text, p_actor_type text, p_actor text, p_run text, p_tool_use text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    store memkernel.memory_stores := memkernel.lock_store(p_store, false);
    head memkernel.memories;
    nothing text;
BEGIN
    SELECT * INTO head FROM memkernel.memories WHERE memory_store_id = p_store AND id = p_memory;
    IF NOT FOUND THEN
        nothing := memkernel.refuse_missing(p_memory);
    END IF;
    IF p_expected <> head.content_sha256 THEN
        nothing := memkernel.refuse_unexpected(head.path, p_expected, head.content_sha256);
    END IF;
    nothing := memkernel.end_lineage(head, p_version, p_actor_type, p_actor, p_run, p_tool_use);
END $$;
