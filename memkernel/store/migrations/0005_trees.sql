-- A file or everything below a directory, in one go. A path is '' for the whole store. A directory's functions are
-- called under the store's lock.
--
-- The caller brings one version id for each memory that is changed; where there are more memories than
-- ids, MK040 says how many are needed and nothing is changed. The n-th memory in path order takes the n-th id.

CREATE FUNCTION memkernel.refuse_too_few_ids(p_needed integer, p_ids text[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF p_needed > cardinality(p_ids) THEN
        RAISE EXCEPTION USING ERRCODE = 'MK040', MESSAGE = 'too few version ids',
            DETAIL = json_build_object('needed', p_needed)::text;
    END IF;
END $$;

CREATE FUNCTION memkernel.delete_directory(
    p_store text, p_path text, p_versions text[],
    p_actor_type text, p_actor text, p_run text, p_tool_use text) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    store memkernel.memory_stores := memkernel.find_store(p_store, false);
    how_many integer;
    change record;
    nothing text;
BEGIN
    SELECT count(*) INTO how_many FROM memkernel.memories
    WHERE memory_store_id = p_store AND path > p_path || '/' AND path < p_path || '0';
    IF how_many = 0 THEN
        IF p_path <> '' THEN
            nothing := memkernel.refuse_missing(p_path);
        END IF;
        RETURN 0;
    END IF;
    nothing := memkernel.refuse_too_few_ids(how_many, p_versions);
    UPDATE memkernel.memory_stores SET
        head_seq = head_seq + how_many, head_at = greatest(clock_timestamp(), head_at),
        memory_count = memory_count - how_many
    WHERE id = p_store RETURNING head_seq - how_many AS seq, head_at AS moment INTO change;
    INSERT INTO memkernel.memory_versions (
        workspace_id, memory_store_id, id, seq, ordinal, memory_id, operation, path,
        created_at, created_by_type, created_by_id)
    SELECT
        ended.workspace_id, p_store, p_versions[ended.n], change.seq + ended.n, ended.ordinal + 1, ended.id, 'deleted',
        ended.path, change.moment, p_actor_type, p_actor
    FROM (
        SELECT *, row_number() OVER (ORDER BY path) AS n FROM memkernel.memories
        WHERE memory_store_id = p_store AND path > p_path || '/' AND path < p_path || '0'
    ) ended;
    DELETE FROM memkernel.memories
    WHERE memory_store_id = p_store AND path > p_path || '/' AND path < p_path || '0';
    IF p_run IS NOT NULL THEN
        nothing := memkernel.note_cause(p_store, change.seq + 1, how_many, p_run, p_tool_use);
    END IF;
    RETURN how_many;
END $$;

CREATE FUNCTION memkernel.memories_delete(
    p_store text, p_path text, p_versions text[],
    p_actor_type text, p_actor text, p_run text, p_tool_use text) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    nothing text := pg_advisory_xact_lock(memkernel.lock_key(p_store));
    change record;
BEGIN
    UPDATE memkernel.memory_stores store SET
        head_seq = head_seq + 1, head_at = greatest(clock_timestamp(), head_at), memory_count = memory_count - 1
    FROM memkernel.memories head
    WHERE store.id = p_store AND head.memory_store_id = p_store AND head.path = p_path
    RETURNING store.head_seq AS seq, store.head_at AS moment, head.id AS memory INTO change;
    IF NOT FOUND THEN
        RETURN memkernel.delete_directory(p_store, p_path, p_versions, p_actor_type, p_actor, p_run, p_tool_use);
    END IF;
    nothing := memkernel.end_lineage(
        p_store, change.memory, change.seq, change.moment, p_versions[1], p_actor_type, p_actor, p_run, p_tool_use);
    RETURN 1;
END $$;

-- A path of the directory that would break the rules of paths at its new place.
CREATE FUNCTION memkernel.refuse_illegal_move(p_store text, p_old text, p_new text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    new_segments integer := length(p_new) - length(replace(p_new, '/', '')) - length(p_old) + length(replace(p_old, '/', ''));
    illegal text;
BEGIN
    IF starts_with(p_new, p_old || '/') THEN
        RAISE EXCEPTION USING ERRCODE = 'MK031', MESSAGE = format('it lies inside %s', p_old),
            DETAIL = json_build_object('path', p_new)::text;
    END IF;
    SELECT p_new || substr(path, length(p_old) + 1) INTO illegal FROM memkernel.memories
    WHERE memory_store_id = p_store AND path > p_old || '/' AND path < p_old || '0'
        AND (octet_length(p_new) + octet_length(path) - octet_length(p_old) > 1024
             OR length(path) - length(replace(path, '/', '')) + new_segments > 20)
    ORDER BY path LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'MK031', MESSAGE = 'it would have more than 1,024 bytes or 20 segments',
            DETAIL = json_build_object('path', illegal)::text;
    END IF;
END $$;

CREATE FUNCTION memkernel.rename_directory(
    p_store text, p_old text, p_new text, p_ancestors text[], p_versions text[],
    p_actor_type text, p_actor text, p_run text, p_tool_use text) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    store memkernel.memory_stores := memkernel.find_store(p_store, true);
    how_many integer;
    change record;
    nothing text;
BEGIN
    SELECT count(*) INTO how_many FROM memkernel.memories
    WHERE memory_store_id = p_store
        AND (path > p_old || '/' AND path < p_old || '0' OR path = p_old AND p_new = p_old);
    IF how_many = 0 THEN
        nothing := memkernel.refuse_missing(p_old);
    END IF;
    IF p_new = p_old THEN
        RETURN 0;
    END IF;
    nothing := memkernel.refuse_illegal_move(p_store, p_old, p_new);
    nothing := memkernel.refuse_overlap(p_store, p_new, p_ancestors, NULL);
    nothing := memkernel.refuse_too_few_ids(how_many, p_versions);
    UPDATE memkernel.memory_stores SET
        head_seq = head_seq + how_many, head_at = greatest(clock_timestamp(), head_at)
    WHERE id = p_store RETURNING head_seq - how_many AS seq, head_at AS moment INTO change;
    INSERT INTO memkernel.memory_versions (
        workspace_id, memory_store_id, id, seq, ordinal, memory_id, operation, path,
        content, content_sha256, content_size_bytes, created_at, created_by_type, created_by_id)
    SELECT
        moved.workspace_id, p_store, p_versions[moved.n], change.seq + moved.n, moved.ordinal + 1, moved.id, 'modified',
        p_new || substr(moved.path, length(p_old) + 1),
        before.content, before.content_sha256, before.content_size_bytes, change.moment, p_actor_type, p_actor
    FROM (
        SELECT *, row_number() OVER (ORDER BY path) AS n FROM memkernel.memories
        WHERE memory_store_id = p_store AND path > p_old || '/' AND path < p_old || '0'
    ) moved
    CROSS JOIN LATERAL (
        SELECT content, content_sha256, content_size_bytes FROM memkernel.memory_versions
        WHERE memory_store_id = p_store AND id = moved.memory_version_id LIMIT 1
    ) before;
    UPDATE memkernel.memories head SET
        path = moved.path, memory_version_id = moved.id, ordinal = moved.ordinal, updated_at = moved.created_at
    FROM memkernel.memory_versions moved
    WHERE moved.memory_store_id = p_store AND moved.seq > change.seq
        AND head.memory_store_id = p_store AND head.id = moved.memory_id;
    IF p_run IS NOT NULL THEN
        nothing := memkernel.note_cause(p_store, change.seq + 1, how_many, p_run, p_tool_use);
    END IF;
    RETURN how_many;
END $$;

CREATE FUNCTION memkernel.memories_rename(
    p_store text, p_old text, p_new text, p_ancestors text[], p_versions text[],
    p_actor_type text, p_actor text, p_run text, p_tool_use text) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    nothing text := pg_advisory_xact_lock(memkernel.lock_key(p_store));
    change record;
BEGIN
    UPDATE memkernel.memory_stores store SET
        head_seq = head_seq + 1, head_at = greatest(clock_timestamp(), head_at)
    FROM memkernel.memories head
    WHERE store.id = p_store AND store.archived_at IS NULL AND head.memory_store_id = p_store AND head.path = p_old
        AND p_old <> p_new
    RETURNING store.head_seq AS seq, store.head_at AS moment, head.id AS memory INTO change;
    IF NOT FOUND THEN
        RETURN memkernel.rename_directory(
            p_store, p_old, p_new, p_ancestors, p_versions, p_actor_type, p_actor, p_run, p_tool_use);
    END IF;
    nothing := memkernel.refuse_overlap(p_store, p_new, p_ancestors, change.memory);
    nothing := memkernel.continue_lineage(
        p_store, change.memory, p_new, NULL, NULL, change.seq, change.moment,
        p_versions[1], p_actor_type, p_actor, p_run, p_tool_use);
    RETURN 1;
END $$;
