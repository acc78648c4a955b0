-- One memory: created, changed, written (whichever of the two it needs), deleted.

-- The first version of a lineage. The caller holds the store's advisory lock.
CREATE FUNCTION memkernel.begin_lineage(
    p_store text, p_path text, p_ancestors text[], p_content bytea, p_sha256 bytea,
    p_memory text, p_version text, p_limit integer,
    p_actor_type text, p_actor text, p_run text, p_tool_use text) RETURNS memkernel.memories
LANGUAGE plpgsql AS $$
DECLARE
    head memkernel.memories;
    change record;
    nothing text;
BEGIN
    UPDATE memkernel.memory_stores SET
        head_seq = head_seq + 1, head_at = greatest(clock_timestamp(), head_at), memory_count = memory_count + 1
    WHERE id = p_store AND archived_at IS NULL
    RETURNING workspace_id, head_seq AS seq, head_at AS moment, memory_count INTO change;
    IF NOT FOUND THEN
        nothing := memkernel.find_store(p_store, true);
    END IF;
    nothing := memkernel.refuse_overlap(p_store, p_path, p_ancestors, NULL);
    IF change.memory_count > p_limit THEN
        RAISE EXCEPTION USING ERRCODE = 'MK021', MESSAGE = 'the memory store is full',
            DETAIL = json_build_object('limit', p_limit)::text;
    END IF;
    INSERT INTO memkernel.memory_versions (
        workspace_id, memory_store_id, id, seq, ordinal, memory_id, operation, path,
        content, content_sha256, content_size_bytes, created_at, created_by_type, created_by_id)
    VALUES (
        change.workspace_id, p_store, p_version, change.seq, 1, p_memory, 'created', p_path,
        p_content, p_sha256, octet_length(p_content), change.moment, p_actor_type, p_actor);
    INSERT INTO memkernel.memories (
        workspace_id, memory_store_id, id, path, memory_version_id, ordinal,
        content_sha256, content_size_bytes, created_at, updated_at)
    VALUES (
        change.workspace_id, p_store, p_memory, p_path, p_version, 1,
        p_sha256, octet_length(p_content), change.moment, change.moment)
    RETURNING * INTO head;
    IF p_run IS NOT NULL THEN
        nothing := memkernel.note_cause(p_store, change.seq, 1, p_run, p_tool_use);
    END IF;
    RETURN head;
END $$;

-- The next version of a lineage, with a seq that was taken for it. A NULL path or content stays as it is.
CREATE FUNCTION memkernel.continue_lineage(
    p_store text, p_memory text, p_path text, p_content bytea, p_sha256 bytea, p_seq bigint, p_moment timestamptz,
    p_version text, p_actor_type text, p_actor text, p_run text, p_tool_use text) RETURNS memkernel.memories
LANGUAGE plpgsql AS $$
DECLARE
    head memkernel.memories;
    nothing text;
BEGIN
    IF p_content IS NULL THEN
        SELECT before.content INTO p_content FROM memkernel.memories now_there
        JOIN memkernel.memory_versions before
            ON before.memory_store_id = p_store AND before.id = now_there.memory_version_id
        WHERE now_there.memory_store_id = p_store AND now_there.id = p_memory;
    END IF;
    UPDATE memkernel.memories SET
        path = coalesce(p_path, path), memory_version_id = p_version, ordinal = ordinal + 1,
        content_sha256 = coalesce(p_sha256, content_sha256), content_size_bytes = octet_length(p_content),
        updated_at = p_moment
    WHERE memory_store_id = p_store AND id = p_memory
    RETURNING * INTO head;
    INSERT INTO memkernel.memory_versions (
        workspace_id, memory_store_id, id, seq, ordinal, memory_id, operation, path,
        content, content_sha256, content_size_bytes, created_at, created_by_type, created_by_id)
    VALUES (
        head.workspace_id, p_store, p_version, p_seq, head.ordinal, p_memory, 'modified', head.path,
        p_content, head.content_sha256, head.content_size_bytes, p_moment, p_actor_type, p_actor);
    IF p_run IS NOT NULL THEN
        nothing := memkernel.note_cause(p_store, p_seq, 1, p_run, p_tool_use);
    END IF;
    RETURN head;
END $$;

-- The last version of a lineage, with a seq that was taken for it; its head goes.
CREATE FUNCTION memkernel.end_lineage(
    p_store text, p_memory text, p_seq bigint, p_moment timestamptz,
    p_version text, p_actor_type text, p_actor text, p_run text, p_tool_use text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    head memkernel.memories;
    nothing text;
BEGIN
    DELETE FROM memkernel.memories WHERE memory_store_id = p_store AND id = p_memory RETURNING * INTO head;
    INSERT INTO memkernel.memory_versions (
        workspace_id, memory_store_id, id, seq, ordinal, memory_id, operation, path,
        created_at, created_by_type, created_by_id)
    VALUES (
        head.workspace_id, p_store, p_version, p_seq, head.ordinal + 1, p_memory, 'deleted', head.path,
        p_moment, p_actor_type, p_actor);
    IF p_run IS NOT NULL THEN
        nothing := memkernel.note_cause(p_store, p_seq, 1, p_run, p_tool_use);
    END IF;
END $$;

CREATE FUNCTION memkernel.memory_create(
    p_store text, p_path text, p_ancestors text[], p_content bytea, p_sha256 bytea,
    p_memory text, p_version text, p_limit integer,
    p_actor_type text, p_actor text, p_run text, p_tool_use text) RETURNS memkernel.memories
LANGUAGE plpgsql AS $$
DECLARE
    nothing text := pg_advisory_xact_lock(memkernel.lock_key(p_store));
BEGIN
    RETURN memkernel.begin_lineage(
        p_store, p_path, p_ancestors, p_content, p_sha256, p_memory, p_version, p_limit,
        p_actor_type, p_actor, p_run, p_tool_use);
END $$;

-- Why an update took no seq, in the order of CONTRACT B.7: it is refused, or all is so already.
CREATE FUNCTION memkernel.unchanged_head(p_store text, p_memory text, p_path text, p_sha256 bytea, p_expected bytea)
RETURNS memkernel.memories LANGUAGE plpgsql AS $$
DECLARE
    store memkernel.memory_stores := memkernel.find_store(p_store, true);
    head memkernel.memories;
    nothing text;
BEGIN
    SELECT * INTO head FROM memkernel.memories WHERE memory_store_id = p_store AND id = p_memory;
    IF NOT FOUND THEN
        nothing := memkernel.refuse_missing(p_memory);
    END IF;
    IF p_path <> head.path OR p_sha256 <> head.content_sha256 THEN
        nothing := memkernel.refuse_unexpected(head.path, p_expected, head.content_sha256);
    END IF;
    RETURN head;
END $$;

-- CONTRACT B.7. A NULL path or content stays as it is.
CREATE FUNCTION memkernel.memory_update(
    p_store text, p_memory text, p_path text, p_ancestors text[], p_content bytea, p_sha256 bytea, p_expected bytea,
    p_version text, p_actor_type text, p_actor text, p_run text, p_tool_use text) RETURNS memkernel.memories
LANGUAGE plpgsql AS $$
DECLARE
    nothing text := pg_advisory_xact_lock(memkernel.lock_key(p_store));
    change record;
BEGIN
    UPDATE memkernel.memory_stores store SET
        head_seq = head_seq + 1, head_at = greatest(clock_timestamp(), head_at)
    FROM memkernel.memories head
    WHERE store.id = p_store AND store.archived_at IS NULL AND head.memory_store_id = p_store AND head.id = p_memory
        AND (p_path <> head.path OR p_sha256 <> head.content_sha256)
        AND (p_expected = head.content_sha256) IS NOT FALSE
    RETURNING store.head_seq AS seq, store.head_at AS moment, p_path <> head.path AS moves INTO change;
    IF NOT FOUND THEN
        RETURN memkernel.unchanged_head(p_store, p_memory, p_path, p_sha256, p_expected);
    END IF;
    IF change.moves THEN
        nothing := memkernel.refuse_overlap(p_store, p_path, p_ancestors, p_memory);
    END IF;
    RETURN memkernel.continue_lineage(
        p_store, p_memory, p_path, p_content, p_sha256, change.seq, change.moment,
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
    now_there record;
BEGIN
    SELECT id, content_sha256 INTO now_there FROM memkernel.memories WHERE memory_store_id = p_store AND path = p_path;
    IF (p_expected IS NOT NULL AND now_there.id IS NULL) OR (p_absent AND now_there.content_sha256 <> p_sha256) THEN
        nothing := memkernel.find_store(p_store, true);
        nothing := memkernel.refuse_unexpected(p_path, p_expected, now_there.content_sha256);
    END IF;
    IF now_there.id IS NOT NULL THEN
        RETURN memkernel.memory_update(
            p_store, now_there.id, NULL, NULL, p_content, p_sha256, p_expected,
            p_version, p_actor_type, p_actor, p_run, p_tool_use);
    END IF;
    RETURN memkernel.begin_lineage(
        p_store, p_path, p_ancestors, p_content, p_sha256, p_memory, p_version, p_limit,
        p_actor_type, p_actor, p_run, p_tool_use);
END $$;

-- An archived store still lets go of memories (CONTRACT 0.3, row 4).
CREATE FUNCTION memkernel.memory_delete(
    p_store text, p_memory text, p_expected bytea,
    p_version text, p_actor_type text, p_actor text, p_run text, p_tool_use text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    nothing text := pg_advisory_xact_lock(memkernel.lock_key(p_store));
    change record;
BEGIN
    UPDATE memkernel.memory_stores store SET
        head_seq = head_seq + 1, head_at = greatest(clock_timestamp(), head_at), memory_count = memory_count - 1
    FROM memkernel.memories head
    WHERE store.id = p_store AND head.memory_store_id = p_store AND head.id = p_memory
    RETURNING store.head_seq AS seq, store.head_at AS moment, head.path, head.content_sha256 AS sha256 INTO change;
    IF NOT FOUND THEN
        nothing := memkernel.find_store(p_store, false);
        nothing := memkernel.refuse_missing(p_memory);
    END IF;
    IF p_expected <> change.sha256 THEN
        nothing := memkernel.refuse_unexpected(change.path, p_expected, change.sha256);
    END IF;
    nothing := memkernel.end_lineage(
        p_store, p_memory, change.seq, change.moment, p_version, p_actor_type, p_actor, p_run, p_tool_use);
END $$;
