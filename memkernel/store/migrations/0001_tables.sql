-- The tables (DESIGN section 4). Every row can be found by its store alone, so that hash partitioning
-- or Citus can shard by it; ids are minted in Python; times and numbers follow the store's lock.
--
-- There is no foreign key and no CHECK on the rows of a change. All writing is done by the functions of the
-- later migrations, which hold the store's lock: a key would look up the store for each of 2,000 copied versions,
-- and CHECKs, parsed anew in each statement, were a seventh of the work of a change. The trigger
-- memory_stores_take_all does what ON DELETE CASCADE would.

CREATE TABLE memkernel.memory_stores (
    workspace_id text COLLATE "C" NOT NULL DEFAULT 'default',
    id text COLLATE "C" NOT NULL,
    name text NOT NULL,
    description text NOT NULL DEFAULT '',
    metadata jsonb NOT NULL DEFAULT '{}',
    head_seq bigint NOT NULL DEFAULT 0,
    head_at timestamptz,
    pruned_through_seq bigint NOT NULL DEFAULT 0,
    memory_count integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    archived_at timestamptz,
    CONSTRAINT memory_stores_pkey PRIMARY KEY (id)
) WITH (fillfactor = 50);  -- its row is rewritten with every change: room for it in the page

CREATE INDEX memory_stores_newest ON memkernel.memory_stores (workspace_id, created_at DESC, id DESC);
CREATE INDEX memory_stores_name ON memkernel.memory_stores (workspace_id, name);

CREATE TABLE memkernel.memories (
    workspace_id text COLLATE "C" NOT NULL DEFAULT 'default',
    memory_store_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    memory_version_id text COLLATE "C" NOT NULL,
    ordinal integer NOT NULL,  -- of that version: the next one need not look it up
    content_sha256 bytea NOT NULL,
    content_size_bytes integer NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    CONSTRAINT memories_pkey PRIMARY KEY (memory_store_id, id),
    CONSTRAINT memories_path_unique UNIQUE (memory_store_id, path)
) WITH (fillfactor = 50);  -- a batch may rewrite every row of a page

CREATE TABLE memkernel.memory_versions (
    workspace_id text COLLATE "C" NOT NULL DEFAULT 'default',
    memory_store_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    ordinal integer NOT NULL,
    memory_id text COLLATE "C" NOT NULL,
    operation text COLLATE "C" NOT NULL,
    path text COLLATE "C",
    content bytea,
    content_sha256 bytea,
    content_size_bytes integer,
    created_at timestamptz NOT NULL,
    created_by_type text COLLATE "C",
    created_by_id text COLLATE "C",
    redacted_at timestamptz,
    redacted_by_type text COLLATE "C",
    redacted_by_id text COLLATE "C",
    CONSTRAINT memory_versions_pkey PRIMARY KEY (memory_store_id, id),
    CONSTRAINT memory_versions_seq_unique UNIQUE (memory_store_id, seq)
) WITH (fillfactor = 95);

-- Texts are not compressed (pglz costs three times as much at 100 KB, and the wheel has no lz4).
ALTER TABLE memkernel.memory_versions ALTER COLUMN content SET STORAGE EXTERNAL;

CREATE INDEX memory_versions_lineage ON memkernel.memory_versions (memory_id, seq);
CREATE INDEX memory_versions_actor ON memkernel.memory_versions (memory_store_id, created_by_id, seq);
-- Nearly every version is 'modified': the index on seq finds those. Time needs no index, for it grows with seq
-- (memkernel.seq_at).
CREATE INDEX memory_versions_operation ON memkernel.memory_versions (memory_store_id, operation, seq)
    WHERE operation <> 'modified';
-- The lineage that ended at a path. Only deletions: no other index holds a path that redaction would have to reach.
CREATE INDEX memory_versions_ended ON memkernel.memory_versions (memory_store_id, path, seq)
    WHERE operation = 'deleted';

-- From a change to the tool call that made it, and back.
CREATE TABLE memkernel.run_changes (
    workspace_id text COLLATE "C" NOT NULL DEFAULT 'default',
    memory_store_id text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    run_id text COLLATE "C" NOT NULL,
    tool_use_id text COLLATE "C" NOT NULL,
    CONSTRAINT run_changes_pkey PRIMARY KEY (memory_store_id, seq)
);

CREATE INDEX run_changes_run ON memkernel.run_changes (run_id, tool_use_id);
