-- Workspaces (DESIGN section 4): the API's role, which is bound by these policies, reaches the rows of one workspace,
-- whatever a query asks for. The owner of the tables is exempt, and a superuser: notebook, command line, migrations
-- and sync run as they are.
--
-- The policies are TO PUBLIC and name no role, so that a migration needs the right to make none: memkernel_api is
-- made, and given its rights to the tables that have a policy, when it is first needed (store/workspaces.py). Where
-- no workspace is set, current_setting is NULL, and nothing is seen.
--
-- A role belongs to the whole server: who owns another database there may become memkernel_api, too, connect to this
-- one and set any workspace. So a login sees rows only if it may become the owner of the tables.

DO $$
DECLARE
    place text;
    seen constant text := 'workspace_id = current_setting(''memkernel.workspace_id'', true) AND '
        '(SELECT pg_has_role(session_user, relowner, ''MEMBER'') '
        'FROM pg_class WHERE oid = ''memkernel.memory_stores''::regclass)';
BEGIN
    FOREACH place IN ARRAY ARRAY[
        'memory_stores', 'memories', 'memory_versions', 'run_changes',
        'sessions', 'session_resources', 'mount_baselines', 'mount_entries'
    ] LOOP
        EXECUTE format('ALTER TABLE memkernel.%I ENABLE ROW LEVEL SECURITY', place);
        EXECUTE format('CREATE POLICY workspace ON memkernel.%1$I USING (%2$s) WITH CHECK (%2$s)', place, seen);
    END LOOP;
END $$;

-- A cause belongs to the workspace of its store.
CREATE OR REPLACE FUNCTION memkernel.note_cause(
    p_store text, p_seq bigint, p_count integer, p_run text, p_tool_use text)
RETURNS void LANGUAGE sql AS $$
    INSERT INTO memkernel.run_changes (workspace_id, memory_store_id, seq, run_id, tool_use_id)
    SELECT workspace_id, p_store, n, p_run, p_tool_use
    FROM memkernel.memory_stores, generate_series(p_seq, p_seq + p_count - 1) n WHERE id = p_store
$$;

UPDATE memkernel.run_changes SET workspace_id = store.workspace_id
FROM memkernel.memory_stores store WHERE store.id = memory_store_id AND store.workspace_id <> 'default';

-- What opens the API: only the owner reads it. A secret is shown once and kept as its hash.
CREATE TABLE memkernel.api_keys (
    workspace_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    name text NOT NULL DEFAULT '',
    secret_sha256 bytea NOT NULL,
    read_only boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz,
    CONSTRAINT api_keys_pkey PRIMARY KEY (id),
    CONSTRAINT api_keys_secret_unique UNIQUE (secret_sha256)
);

-- With what page tokens are signed: every server on this database takes those of the others.
CREATE TABLE memkernel.page_key (
    is_only boolean NOT NULL DEFAULT true CONSTRAINT page_key_is_only CHECK (is_only),
    key bytea NOT NULL,
    CONSTRAINT page_key_pkey PRIMARY KEY (is_only)
);

INSERT INTO memkernel.page_key (key) SELECT sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));
