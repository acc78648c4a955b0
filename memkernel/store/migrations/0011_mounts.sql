-- What each mount of a session last published: the baseline against which its files are judged (CONTRACT D.2).
-- It lists only what really is on disk: a change that the mount itself made enters with its version, in one
-- transaction; what is pulled enters after its file was written or removed.

CREATE TABLE memkernel.mount_baselines (
    workspace_id text COLLATE "C" NOT NULL DEFAULT 'default',
    memory_store_id text COLLATE "C" NOT NULL,
    session_id text COLLATE "C" NOT NULL,
    format integer NOT NULL,
    state text COLLATE "C" NOT NULL DEFAULT 'uninitialised',  -- or ready; uninitialised: its files are no edits
    is_pulling boolean NOT NULL DEFAULT false,  -- files may be ahead of the entries
    nonce text COLLATE "C",  -- the same lies beside the mount
    seq bigint NOT NULL DEFAULT 0,  -- of the store, when the mount was last brought up to it
    CONSTRAINT mount_baselines_pkey PRIMARY KEY (memory_store_id, session_id),
    CONSTRAINT mount_baselines_session FOREIGN KEY (session_id) REFERENCES memkernel.sessions (id) ON DELETE CASCADE
);

CREATE INDEX mount_baselines_by_session ON memkernel.mount_baselines (session_id);

-- No foreign key: it would look up the mount for each of 2,000 entries. The triggers do what it would.
CREATE TABLE memkernel.mount_entries (
    workspace_id text COLLATE "C" NOT NULL DEFAULT 'default',
    memory_store_id text COLLATE "C" NOT NULL,
    session_id text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    memory_id text COLLATE "C" NOT NULL,
    memory_version_id text COLLATE "C" NOT NULL,
    content_sha256 bytea NOT NULL,
    CONSTRAINT mount_entries_pkey PRIMARY KEY (memory_store_id, session_id, path)
) WITH (fillfactor = 50);  -- a sync may rewrite every row of a page

CREATE FUNCTION memkernel.take_entries_with_mount() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM memkernel.mount_entries entry USING removed
    WHERE entry.memory_store_id = removed.memory_store_id AND entry.session_id = removed.session_id;
    RETURN NULL;
END $$;

CREATE TRIGGER mount_baselines_take_entries AFTER DELETE ON memkernel.mount_baselines
REFERENCING OLD TABLE AS removed
FOR EACH STATEMENT EXECUTE FUNCTION memkernel.take_entries_with_mount();

CREATE FUNCTION memkernel.take_mounts_with_store() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM memkernel.mount_baselines WHERE memory_store_id IN (SELECT removed.id FROM removed);
    RETURN NULL;
END $$;

CREATE TRIGGER memory_stores_take_mounts AFTER DELETE ON memkernel.memory_stores
REFERENCING OLD TABLE AS removed
FOR EACH STATEMENT EXECUTE FUNCTION memkernel.take_mounts_with_store();

-- The mount's row; made, uninitialised, where there is none.
CREATE FUNCTION memkernel.mount_open(p_store text, p_session text, p_format integer)
RETURNS SETOF memkernel.mount_baselines LANGUAGE plpgsql AS $$
DECLARE
    store memkernel.memory_stores := memkernel.find_store(p_store, false);
BEGIN
    INSERT INTO memkernel.mount_baselines (workspace_id, memory_store_id, session_id, format)
    SELECT store.workspace_id, p_store, id, p_format FROM memkernel.sessions WHERE id = p_session
    ON CONFLICT DO NOTHING;
    RETURN QUERY SELECT * FROM memkernel.mount_baselines WHERE memory_store_id = p_store AND session_id = p_session;
END $$;

-- The changes that were made after p_after_seq came from this mount, where their files are what they say; the
-- files at p_unlike (merged texts) are not yet. The caller holds the store's lock.
CREATE FUNCTION memkernel.mount_publish(
    p_store text, p_session text, p_after_seq bigint, p_count integer, p_unlike text[], p_is_pulling boolean)
RETURNS void LANGUAGE plpgsql SET enable_nestloop = off AS $$
BEGIN
    DELETE FROM memkernel.mount_entries entry USING memkernel.memory_versions version
    WHERE version.memory_store_id = p_store AND version.seq > p_after_seq AND version.operation = 'deleted'
        AND entry.memory_store_id = p_store AND entry.session_id = p_session AND entry.path = version.path;
    INSERT INTO memkernel.mount_entries (
        workspace_id, memory_store_id, session_id, path, memory_id, memory_version_id, content_sha256)
    SELECT workspace_id, memory_store_id, p_session, path, memory_id, id, content_sha256
    FROM memkernel.memory_versions
    WHERE memory_store_id = p_store AND seq > p_after_seq AND operation <> 'deleted' AND path <> ALL (p_unlike)
    ON CONFLICT ON CONSTRAINT mount_entries_pkey DO UPDATE SET
        memory_id = excluded.memory_id, memory_version_id = excluded.memory_version_id,
        content_sha256 = excluded.content_sha256;
    UPDATE memkernel.mount_baselines SET
        is_pulling = is_pulling OR p_is_pulling, seq = CASE WHEN p_is_pulling THEN seq ELSE p_after_seq + p_count END
    WHERE memory_store_id = p_store AND session_id = p_session;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'MK004', MESSAGE = 'no such session',
            DETAIL = json_build_object('session', p_session)::text;
    END IF;
END $$;

-- Before files are written or removed.
CREATE FUNCTION memkernel.mount_begin_pull(p_store text, p_session text, p_state text, p_nonce text)
RETURNS void LANGUAGE sql AS $$
    UPDATE memkernel.mount_baselines SET state = p_state, nonce = p_nonce, is_pulling = true
    WHERE memory_store_id = p_store AND session_id = p_session
$$;

-- After files were written or removed: what is on disk now, and what is not any more. A mount that was begun anew
-- meanwhile (another nonce) is left alone; p_is_done: it is what the store was at p_seq.
CREATE FUNCTION memkernel.mount_end_pull(
    p_store text, p_session text, p_nonce text, p_seq bigint, p_is_done boolean, p_gone text[],
    p_paths text[], p_memories text[], p_versions text[], p_sha256s text[])
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE memkernel.mount_baselines SET
        state = CASE WHEN p_is_done THEN 'ready' ELSE state END,
        is_pulling = is_pulling AND NOT p_is_done, seq = CASE WHEN p_is_done THEN p_seq ELSE seq END
    WHERE memory_store_id = p_store AND session_id = p_session AND nonce = p_nonce;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF cardinality(p_gone) > 0 THEN
        DELETE FROM memkernel.mount_entries
        WHERE memory_store_id = p_store AND session_id = p_session AND path = ANY (p_gone);
    END IF;
    INSERT INTO memkernel.mount_entries (
        workspace_id, memory_store_id, session_id, path, memory_id, memory_version_id, content_sha256)
    SELECT mount.workspace_id, p_store, p_session, entry.path, entry.memory, entry.version, decode(entry.sha256, 'hex')
    FROM memkernel.mount_baselines mount, unnest(p_paths, p_memories, p_versions, p_sha256s)
        AS entry (path, memory, version, sha256)
    WHERE mount.memory_store_id = p_store AND mount.session_id = p_session
    ON CONFLICT ON CONSTRAINT mount_entries_pkey DO UPDATE SET
        memory_id = excluded.memory_id, memory_version_id = excluded.memory_version_id,
        content_sha256 = excluded.content_sha256;
    RETURN true;
END $$;
