-- Memory stores: made, changed, archived, deleted.

CREATE FUNCTION memkernel.lock_name(p_workspace text, p_name text) RETURNS void LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(hashtextextended('memkernel:name:' || p_workspace || ':' || p_name, 0))
$$;

-- Run twice with the same id, it makes one store. p_unique: no other active store may have the name.
CREATE FUNCTION memkernel.memory_store_create(
    p_workspace text, p_id text, p_name text, p_description text, p_metadata jsonb, p_unique boolean)
RETURNS SETOF memkernel.memory_stores LANGUAGE plpgsql AS $$
DECLARE
    nothing text;
BEGIN
    IF p_unique THEN
        nothing := memkernel.lock_name(p_workspace, p_name);
        IF EXISTS (
            SELECT FROM memkernel.memory_stores
            WHERE workspace_id = p_workspace AND name = p_name AND archived_at IS NULL AND id <> p_id
        ) THEN
            RAISE EXCEPTION USING ERRCODE = 'MK012', MESSAGE = 'a memory store has this name',
                DETAIL = json_build_object('name', p_name)::text;
        END IF;
    END IF;
    INSERT INTO memkernel.memory_stores (workspace_id, id, name, description, metadata, created_at, updated_at)
    SELECT p_workspace, p_id, p_name, p_description, p_metadata, moment, moment FROM clock_timestamp() AS moment
    ON CONFLICT DO NOTHING;
    RETURN QUERY SELECT * FROM memkernel.memory_stores WHERE id = p_id;
END $$;

-- CONTRACT B.3: a NULL stays as it is; the metadata is a patch whose nulls remove; what changes nothing
-- leaves updated_at.
CREATE FUNCTION memkernel.memory_store_update(
    p_store text, p_name text, p_description text, p_metadata jsonb, p_max_pairs integer)
RETURNS memkernel.memory_stores LANGUAGE plpgsql AS $$
DECLARE
    store memkernel.memory_stores := memkernel.lock_store(p_store, true);
    patched jsonb := jsonb_strip_nulls(store.metadata || coalesce(p_metadata, '{}'));
BEGIN
    IF (SELECT count(*) FROM jsonb_object_keys(patched)) > p_max_pairs THEN
        RAISE EXCEPTION USING ERRCODE = 'MK030',
            MESSAGE = format('the metadata would have more than %s pairs', p_max_pairs);
    END IF;
    IF (coalesce(p_name, store.name), coalesce(p_description, store.description), patched)
        = (store.name, store.description, store.metadata) THEN
        RETURN store;
    END IF;
    UPDATE memkernel.memory_stores SET
        name = coalesce(p_name, name), description = coalesce(p_description, description), metadata = patched,
        updated_at = greatest(clock_timestamp(), updated_at)
    WHERE id = p_store RETURNING * INTO store;
    RETURN store;
END $$;

CREATE FUNCTION memkernel.memory_store_archive(p_store text) RETURNS memkernel.memory_stores
LANGUAGE plpgsql AS $$
DECLARE
    store memkernel.memory_stores := memkernel.lock_store(p_store, false);
BEGIN
    IF store.archived_at IS NULL THEN
        UPDATE memkernel.memory_stores SET
            archived_at = greatest(clock_timestamp(), updated_at), updated_at = greatest(clock_timestamp(), updated_at)
        WHERE id = p_store RETURNING * INTO store;
    END IF;
    RETURN store;
END $$;

CREATE FUNCTION memkernel.memory_store_delete(p_store text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    store memkernel.memory_stores := memkernel.lock_store(p_store, false);
BEGIN
    DELETE FROM memkernel.memory_stores WHERE id = p_store;
END $$;
