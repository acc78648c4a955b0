-- What a session was asked for besides its stores (CONTRACT C.1). memkernel runs no agent in it and enforces no
-- budget: it keeps what it was told. NULL where nobody said: a sandbox's own session.

ALTER TABLE memkernel.sessions
    ADD COLUMN agent jsonb,  -- {"id": …, "version": …}
    ADD COLUMN environment_id text COLLATE "C",
    ADD COLUMN vault_ids jsonb NOT NULL DEFAULT '[]',
    ADD COLUMN budget jsonb;  -- {"amount": …, "currency": …}

DROP FUNCTION memkernel.session_create(text, text, text, jsonb, jsonb);
DROP FUNCTION memkernel.session_update(text, text, jsonb, text, integer);
DROP FUNCTION memkernel.session_delete(text);

-- Run twice with the same id, it makes one session. The caller holds the locks of the stores.
CREATE FUNCTION memkernel.session_create(
    p_workspace text, p_id text, p_title text, p_metadata jsonb, p_resources jsonb,
    p_agent jsonb, p_environment text, p_vaults jsonb, p_budget jsonb) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO memkernel.sessions (
        workspace_id, id, title, metadata, agent, environment_id, vault_ids, budget, created_at, updated_at)
    SELECT p_workspace, p_id, p_title, p_metadata, p_agent, p_environment, p_vaults, p_budget, moment, moment
    FROM clock_timestamp() AS moment
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

-- A NULL stays as it is; an empty title is none, a budget of JSON's null removes it; the metadata is a patch whose
-- nulls remove; what changes nothing leaves updated_at. A session that was terminated stays so: its stores may be gone.
CREATE FUNCTION memkernel.session_update(
    p_session text, p_title text, p_metadata jsonb, p_status text, p_budget jsonb, p_max_pairs integer)
RETURNS memkernel.sessions LANGUAGE plpgsql AS $$
DECLARE
    session memkernel.sessions := memkernel.lock_session(p_session);
    patched jsonb := jsonb_strip_nulls(session.metadata || coalesce(p_metadata, '{}'));
    new_title text := CASE WHEN p_title IS NULL THEN session.title ELSE nullif(p_title, '') END;
    new_status text := coalesce(p_status, session.status);
    new_budget jsonb := CASE WHEN p_budget IS NULL THEN session.budget ELSE nullif(p_budget, 'null') END;
BEGIN
    IF (SELECT count(*) FROM jsonb_object_keys(patched)) > p_max_pairs THEN
        RAISE EXCEPTION USING ERRCODE = 'MK030',
            MESSAGE = format('the metadata would have more than %s pairs', p_max_pairs);
    END IF;
    IF session.status = 'terminated' AND new_status <> 'terminated' THEN
        RAISE EXCEPTION USING ERRCODE = 'MK030',
            MESSAGE = format('session %s is terminated: it cannot become %s', p_session, new_status);
    END IF;
    IF new_budget IS DISTINCT FROM session.budget AND (session.budget IS NULL OR session.status = 'terminated') THEN
        RAISE EXCEPTION USING ERRCODE = 'MK030', MESSAGE = format('budget: session %s %s', p_session,
            CASE WHEN session.budget IS NULL THEN 'was made without one: none can be added' ELSE 'is terminated' END);
    END IF;
    IF (new_title, patched, new_status, new_budget)
        IS NOT DISTINCT FROM (session.title, session.metadata, session.status, session.budget) THEN
        RETURN session;
    END IF;
    UPDATE memkernel.sessions SET
        title = new_title, metadata = patched, status = new_status, budget = new_budget,
        updated_at = greatest(clock_timestamp(), updated_at)
    WHERE id = p_session RETURNING * INTO session;
    RETURN session;
END $$;

-- At one moment.
CREATE OR REPLACE FUNCTION memkernel.session_archive(p_session text) RETURNS memkernel.sessions
LANGUAGE plpgsql AS $$
DECLARE
    session memkernel.sessions := memkernel.lock_session(p_session);
    moment timestamptz := greatest(clock_timestamp(), session.updated_at);
BEGIN
    IF session.archived_at IS NULL THEN
        UPDATE memkernel.sessions SET archived_at = moment, updated_at = moment
        WHERE id = p_session RETURNING * INTO session;
    END IF;
    RETURN session;
END $$;

-- Where a sandbox has mounted stores of it and has not ended, that may hold edits which only it can save.
-- The row lock holds off a mount that is being opened.
CREATE FUNCTION memkernel.session_delete(p_session text, p_running_too boolean) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    session memkernel.sessions := memkernel.lock_session(p_session);
BEGIN
    PERFORM FROM memkernel.sessions WHERE id = p_session FOR UPDATE;
    IF NOT p_running_too AND (session.status IN ('running', 'rescheduling') OR session.status <> 'terminated'
        AND EXISTS (SELECT FROM memkernel.mount_baselines WHERE session_id = p_session)) THEN
        RAISE EXCEPTION USING ERRCODE = 'MK025', MESSAGE = 'the session runs',
            DETAIL = json_build_object('session', p_session)::text;
    END IF;
    DELETE FROM memkernel.sessions WHERE id = p_session;
END $$;
