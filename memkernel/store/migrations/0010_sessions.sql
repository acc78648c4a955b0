-- Sessions, and the memory stores that they attach (CONTRACT C). What a session attaches is a snapshot: it
-- outlives changes to the store, and the store itself once the session has ended.
--
-- A session row is locked by the statement that changes it; a new session locks the stores that it attaches first,
-- in ascending id, so that none of them is archived or deleted meanwhile.

CREATE TABLE memkernel.sessions (
    workspace_id text COLLATE "C" NOT NULL DEFAULT 'default',
    id text COLLATE "C" NOT NULL,
    title text,
    metadata jsonb NOT NULL DEFAULT '{}',
    status text COLLATE "C" NOT NULL DEFAULT 'idle',
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    archived_at timestamptz,
    CONSTRAINT sessions_pkey PRIMARY KEY (id)
);

CREATE INDEX sessions_newest ON memkernel.sessions (workspace_id, created_at DESC, id DESC);

-- Few rows, written once: here a key costs nothing that counts. There is none to memory_stores, which may lie on
-- another shard.
CREATE TABLE memkernel.session_resources (
    workspace_id text COLLATE "C" NOT NULL DEFAULT 'default',
    session_id text COLLATE "C" NOT NULL,
    memory_store_id text COLLATE "C" NOT NULL,
    position integer NOT NULL,
    name text NOT NULL,
    description text NOT NULL,
    access text COLLATE "C" NOT NULL,
    instructions text,
    mount_path text COLLATE "C" NOT NULL,
    CONSTRAINT session_resources_pkey PRIMARY KEY (session_id, memory_store_id),
    CONSTRAINT session_resources_mount_path_unique UNIQUE (session_id, mount_path),
    CONSTRAINT session_resources_session FOREIGN KEY (session_id) REFERENCES memkernel.sessions ON DELETE CASCADE
);

CREATE INDEX session_resources_store ON memkernel.session_resources (memory_store_id, session_id);

-- The stores of these ids that there are. The row locks hold off a deletion by hand, which knows no advisory lock.
CREATE FUNCTION memkernel.lock_stores(p_workspace text, p_stores text[]) RETURNS SETOF memkernel.memory_stores
LANGUAGE plpgsql AS $$
DECLARE
    place text;
    nothing text;
BEGIN
    FOR place IN SELECT DISTINCT store COLLATE "C" FROM unnest(p_stores) AS store ORDER BY 1 LOOP
        nothing := pg_advisory_xact_lock(memkernel.lock_key(place));
    END LOOP;
    RETURN QUERY
        SELECT * FROM memkernel.memory_stores
        WHERE workspace_id = p_workspace AND id = ANY (p_stores) ORDER BY id FOR KEY SHARE;
END $$;

-- Run twice with the same id, it makes one session. The caller holds the locks of the stores.
CREATE FUNCTION memkernel.session_create(
    p_workspace text, p_id text, p_title text, p_metadata jsonb, p_resources jsonb) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO memkernel.sessions (workspace_id, id, title, metadata, created_at, updated_at)
    SELECT p_workspace, p_id, p_title, p_metadata, moment, moment FROM clock_timestamp() AS moment
    ON CONFLICT DO NOTHING;
    IF FOUND THEN
        INSERT INTO memkernel.session_resources (
            workspace_id, session_id, position,
            memory_store_id, name, description, access, instructions, mount_path)
        SELECT p_workspace, p_id, item.position,
            value->>0, value->>1, value->>2, value->>3, value->>4, value->>5
        FROM jsonb_array_elements(p_resources) WITH ORDINALITY AS item(value, position);
    END IF;
END $$;

-- The session, which must be there, with its row locked.
CREATE FUNCTION memkernel.lock_session(p_session text) RETURNS memkernel.sessions
LANGUAGE plpgsql AS $$
DECLARE
    session memkernel.sessions;
BEGIN
    SELECT * INTO session FROM memkernel.sessions WHERE id = p_session FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'MK004', MESSAGE = 'no such session',
            DETAIL = json_build_object('session', p_session)::text;
    END IF;
    RETURN session;
END $$;

-- A NULL stays as it is; an empty title is none; the metadata is a patch whose nulls remove; what changes nothing
-- leaves updated_at. A session that was terminated stays so: its stores may be gone.
CREATE FUNCTION memkernel.session_update(
    p_session text, p_title text, p_metadata jsonb, p_status text, p_max_pairs integer) RETURNS memkernel.sessions
LANGUAGE plpgsql AS $$
DECLARE
    session memkernel.sessions := memkernel.lock_session(p_session);
    patched jsonb := jsonb_strip_nulls(session.metadata || coalesce(p_metadata, '{}'));
    new_title text := CASE WHEN p_title IS NULL THEN session.title ELSE nullif(p_title, '') END;
    new_status text := coalesce(p_status, session.status);
BEGIN
    IF (SELECT count(*) FROM jsonb_object_keys(patched)) > p_max_pairs THEN
        RAISE EXCEPTION USING ERRCODE = 'MK030',
            MESSAGE = format('the metadata would have more than %s pairs', p_max_pairs);
    END IF;
    IF session.status = 'terminated' AND new_status <> 'terminated' THEN
        RAISE EXCEPTION USING ERRCODE = 'MK030',
            MESSAGE = format('session %s is terminated: it cannot become %s', p_session, new_status);
    END IF;
    IF (new_title, patched, new_status) IS NOT DISTINCT FROM (session.title, session.metadata, session.status) THEN
        RETURN session;
    END IF;
    UPDATE memkernel.sessions SET
        title = new_title, metadata = patched, status = new_status,
        updated_at = greatest(clock_timestamp(), updated_at)
    WHERE id = p_session RETURNING * INTO session;
    RETURN session;
END $$;

CREATE FUNCTION memkernel.session_archive(p_session text) RETURNS memkernel.sessions
LANGUAGE plpgsql AS $$
DECLARE
    session memkernel.sessions := memkernel.lock_session(p_session);
BEGIN
    IF session.archived_at IS NULL THEN
        UPDATE memkernel.sessions SET
            archived_at = greatest(clock_timestamp(), updated_at), updated_at = greatest(clock_timestamp(), updated_at)
        WHERE id = p_session RETURNING * INTO session;
    END IF;
    RETURN session;
END $$;

CREATE FUNCTION memkernel.session_delete(p_session text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    session memkernel.sessions := memkernel.lock_session(p_session);
BEGIN
    DELETE FROM memkernel.sessions WHERE id = p_session;
END $$;

-- CONTRACT B.3: a store that a session attaches is not deleted, not by hand either; one that has ended lets it go.
CREATE FUNCTION memkernel.refuse_delete_of_attached() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attached record;
BEGIN
    SELECT resource.memory_store_id AS store, json_agg(session.id ORDER BY session.id) AS sessions INTO attached
    FROM memkernel.session_resources resource JOIN memkernel.sessions session ON session.id = resource.session_id
    WHERE resource.memory_store_id IN (SELECT removed.id FROM removed) AND session.status <> 'terminated'
    GROUP BY resource.memory_store_id ORDER BY resource.memory_store_id LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'MK024', MESSAGE = 'the memory store is attached to a session',
            DETAIL = json_build_object('store', attached.store, 'sessions', attached.sessions)::text;
    END IF;
    RETURN NULL;
END $$;

-- By name before memory_stores_take_all.
CREATE TRIGGER memory_stores_attached AFTER DELETE ON memkernel.memory_stores
REFERENCING OLD TABLE AS removed
FOR EACH STATEMENT EXECUTE FUNCTION memkernel.refuse_delete_of_attached();
