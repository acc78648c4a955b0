-- What became of a change whose connection was lost. Both take the store's advisory lock first: a backend
-- that is still at work on it is waited for.

CREATE FUNCTION memkernel.versions_saved(p_store text, p_versions text[]) RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(memkernel.lock_key(p_store));
    RETURN (SELECT count(*) FROM memkernel.memory_versions WHERE memory_store_id = p_store AND id = ANY (p_versions));
END $$;

-- The head that this version was when it was written.
CREATE FUNCTION memkernel.version_result(p_store text, p_version text) RETURNS SETOF memkernel.memories
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(memkernel.lock_key(p_store));
    RETURN QUERY
        SELECT made.workspace_id, made.memory_store_id, made.memory_id, made.path, made.id, made.ordinal,
               made.content_sha256, made.content_size_bytes, first.created_at, made.created_at
        FROM memkernel.memory_versions made
        JOIN memkernel.memory_versions first
            ON first.memory_store_id = made.memory_store_id AND first.memory_id = made.memory_id AND first.ordinal = 1
        WHERE made.memory_store_id = p_store AND made.id = p_version;
END $$;
