-- Pruning: the one way in which versions of a living store go (CONTRACT 0.3, row 18). seq, ordinals and heads stay, so
-- that a store's log then has gaps, and a lineage begins later than at 1.

ALTER TABLE memkernel.memory_stores
    ADD COLUMN pruned_count bigint NOT NULL DEFAULT 0,  -- of the head_seq versions that there ever were
    ADD COLUMN pruned_before timestamptz;  -- from this moment on, all that was current is there

-- A head does not go in any case. (A planner without statistics would look for it among all heads, for each row.)
CREATE OR REPLACE FUNCTION memkernel.refuse_delete_of_living() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_nestloop = off AS $$
BEGIN
    IF EXISTS (
        SELECT FROM memkernel.memory_stores store
        WHERE store.id IN (SELECT removed.memory_store_id FROM removed)
    ) AND (
        current_setting('memkernel.is_pruning', true) IS DISTINCT FROM 'on'
        OR EXISTS (
            SELECT FROM memkernel.memories head JOIN removed
                ON removed.memory_store_id = head.memory_store_id AND removed.id = head.memory_version_id)
    ) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MK090',
            CONSTRAINT = 'memory_versions_immutable',
            MESSAGE = 'memory versions are immutable: they go only with their store, or by prune';
    END IF;
    RETURN NULL;
END $$;

-- What may go of the changes up to p_through_seq: what was superseded by one of them, and deletions; but of a live
-- memory not its newest p_keep versions. Of every lineage these are the first ones.
CREATE FUNCTION memkernel.prunable(p_store text, p_through_seq bigint, p_keep integer)
RETURNS TABLE (seq bigint, content_size_bytes integer) LANGUAGE sql STABLE AS $$
    SELECT old.seq, old.content_size_bytes
    FROM (
        SELECT version.seq, version.ordinal, version.memory_id, version.operation, version.content_size_bytes,
            lead(version.seq) OVER (PARTITION BY version.memory_id ORDER BY version.seq) AS superseded_by
        FROM memkernel.memory_versions version
        WHERE version.memory_store_id = p_store AND version.seq <= p_through_seq
    ) old
    LEFT JOIN memkernel.memories head ON head.memory_store_id = p_store AND head.id = old.memory_id
    WHERE (old.superseded_by IS NOT NULL OR old.operation = 'deleted')
        AND (head.id IS NULL OR old.ordinal <= head.ordinal - p_keep)
$$;

-- One store, under its lock. Readers are not held up. What p_dry_run counts is what would go.
--
-- The setting lets the deletion pass the trigger. (SET as a clause of the function would need a superuser.)
CREATE FUNCTION memkernel.memory_store_prune(
    p_store text, p_older_than interval, p_keep integer, p_dry_run boolean,
    OUT name text, OUT versions bigint, OUT content_bytes bigint, OUT pruned_through_seq bigint)
LANGUAGE plpgsql AS $$
DECLARE
    store memkernel.memory_stores := memkernel.lock_store(p_store, false);
    cutoff timestamptz := clock_timestamp() - p_older_than;
    through bigint := memkernel.seq_at(p_store, cutoff - interval '1 us');
    nothing text;
BEGIN
    name := store.name;
    pruned_through_seq := store.pruned_through_seq;
    IF p_dry_run THEN
        SELECT count(*), coalesce(sum(old.content_size_bytes), 0) INTO versions, content_bytes
        FROM memkernel.prunable(p_store, through, p_keep) old;
    ELSE
        nothing := set_config('memkernel.is_pruning', 'on', true);
        WITH gone AS (
            DELETE FROM memkernel.memory_versions version USING memkernel.prunable(p_store, through, p_keep) old
            WHERE version.memory_store_id = p_store AND version.seq = old.seq
            RETURNING version.seq, version.content_size_bytes
        ), causes AS (
            DELETE FROM memkernel.run_changes cause USING gone
            WHERE cause.memory_store_id = p_store AND cause.seq = gone.seq
        )
        SELECT count(*), coalesce(sum(gone.content_size_bytes), 0) INTO versions, content_bytes FROM gone;
        nothing := set_config('memkernel.is_pruning', 'off', true);
    END IF;
    IF versions = 0 THEN
        RETURN;
    END IF;
    pruned_through_seq := greatest(store.pruned_through_seq, through);
    IF NOT p_dry_run THEN
        UPDATE memkernel.memory_stores pruned SET
            pruned_through_seq = greatest(store.pruned_through_seq, through),
            pruned_count = store.pruned_count + versions,
            pruned_before = greatest(store.pruned_before, cutoff)
        WHERE pruned.id = p_store;
    END IF;
END $$;
