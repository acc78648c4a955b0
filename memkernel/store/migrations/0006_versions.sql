-- Finding by time, redaction (CONTRACT B.10) and restoring.

-- The number of the newest change that was made by a moment; 0 if none was. Time grows with seq, so halving finds
-- it: 20 look-ups among a million. Where history was pruned, a place is answered for by the next one.
CREATE FUNCTION memkernel.seq_at(p_store text, p_moment timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
    low bigint := 0;
    high bigint := coalesce((SELECT head_seq FROM memkernel.memory_stores WHERE id = p_store), 0);
    middle bigint;
BEGIN
    WHILE low < high LOOP
        middle := low + (high - low + 1) / 2;
        IF (SELECT created_at <= p_moment FROM memkernel.memory_versions
             WHERE memory_store_id = p_store AND seq >= middle ORDER BY seq LIMIT 1) THEN
            low := middle;
        ELSE
            high := middle - 1;
        END IF;
    END LOOP;
    RETURN low;
END $$;

-- The caller holds the store.
CREATE FUNCTION memkernel.locked_version(p_store text, p_version text) RETURNS memkernel.memory_versions
LANGUAGE plpgsql AS $$
DECLARE
    version memkernel.memory_versions;
BEGIN
    SELECT * INTO version FROM memkernel.memory_versions WHERE memory_store_id = p_store AND id = p_version;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'MK003', MESSAGE = 'no such memory version',
            DETAIL = json_build_object('version', p_version)::text;
    END IF;
    RETURN version;
END $$;

CREATE FUNCTION memkernel.memory_version_redact(p_store text, p_version text, p_actor_type text, p_actor text)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    store memkernel.memory_stores := memkernel.lock_store(p_store, false);
    version memkernel.memory_versions := memkernel.locked_version(p_store, p_version);
BEGIN
    IF version.redacted_at IS NOT NULL THEN
        RETURN;
    END IF;
    IF EXISTS (
        SELECT FROM memkernel.memories
        WHERE memory_store_id = p_store AND id = version.memory_id AND memory_version_id = p_version
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'MK022', MESSAGE = 'the version is the head of a live memory',
            DETAIL = json_build_object('version', p_version)::text;
    END IF;
    UPDATE memkernel.memory_versions SET
        path = NULL, content = NULL, content_sha256 = NULL, content_size_bytes = NULL,
        redacted_at = clock_timestamp(), redacted_by_type = p_actor_type, redacted_by_id = p_actor
    WHERE memory_store_id = p_store AND id = p_version;
END $$;

CREATE FUNCTION memkernel.ancestors(p_path text) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(array_agg(array_to_string(segments[:n], '/') ORDER BY n), '{}')
    FROM string_to_array(p_path, '/') AS segments, generate_series(2, cardinality(segments) - 1) AS n
$$;

-- The version's text becomes the memory's next version; a deleted memory begins a new lineage at p_path, or, where
-- that is NULL, at the version's path.
CREATE FUNCTION memkernel.memory_version_restore(
    p_store text, p_restored text, p_path text, p_expected bytea, p_absent boolean,
    p_memory text, p_version text, p_limit integer,
    p_actor_type text, p_actor text, p_run text, p_tool_use text) RETURNS memkernel.memories
LANGUAGE plpgsql AS $$
DECLARE
    store memkernel.memory_stores := memkernel.lock_store(p_store, true);
    version memkernel.memory_versions := memkernel.locked_version(p_store, p_restored);
    place text := coalesce(p_path, version.path);
    head memkernel.memories;
    nothing text;
BEGIN
    IF version.redacted_at IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'MK023', MESSAGE = 'the version was redacted',
            DETAIL = json_build_object('version', p_restored)::text;
    END IF;
    IF version.operation = 'deleted' THEN
        RAISE EXCEPTION USING ERRCODE = 'MK030', MESSAGE = format(
            '%s is the deletion of %s and holds no text; restore the version before it', p_restored, version.path);
    END IF;
    SELECT * INTO head FROM memkernel.memories WHERE memory_store_id = p_store AND id = version.memory_id;
    IF (p_expected IS NOT NULL AND head.id IS NULL) OR (p_absent AND head.content_sha256 <> version.content_sha256) THEN
        nothing := memkernel.refuse_unexpected(coalesce(head.path, place), p_expected, head.content_sha256);
    END IF;
    IF head.id IS NOT NULL THEN
        RETURN memkernel.memory_update(
            p_store, head.id, NULL, NULL, version.content, version.content_sha256, p_expected,
            p_version, p_actor_type, p_actor, p_run, p_tool_use);
    END IF;
    RETURN memkernel.begin_lineage(
        p_store, place, memkernel.ancestors(place), version.content, version.content_sha256,
        p_memory, p_version, p_limit, p_actor_type, p_actor, p_run, p_tool_use);
END $$;
