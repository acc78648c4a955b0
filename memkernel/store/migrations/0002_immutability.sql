-- A version is written once. These triggers guard against mistakes, not against the owner of the tables.

CREATE FUNCTION memkernel.refuse_change() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING
        ERRCODE = 'MK090',
        CONSTRAINT = 'memory_versions_immutable',
        MESSAGE = format('memory versions are immutable: %s refused', lower(TG_OP));
END $$;

-- The one lawful UPDATE: texts become NULL, the redaction is noted, all else stays as it was.
CREATE TRIGGER memory_versions_update BEFORE UPDATE ON memkernel.memory_versions
FOR EACH ROW WHEN (NOT (
    OLD.redacted_at IS NULL
    AND num_nulls(NEW.redacted_at, NEW.redacted_by_type, NEW.redacted_by_id) = 0
    AND num_nonnulls(NEW.path, NEW.content, NEW.content_sha256, NEW.content_size_bytes) = 0
    AND (OLD.workspace_id, OLD.memory_store_id, OLD.id, OLD.seq, OLD.ordinal, OLD.memory_id, OLD.operation,
         OLD.created_at, OLD.created_by_type, OLD.created_by_id)
        IS NOT DISTINCT FROM
        (NEW.workspace_id, NEW.memory_store_id, NEW.id, NEW.seq, NEW.ordinal, NEW.memory_id, NEW.operation,
         NEW.created_at, NEW.created_by_type, NEW.created_by_id)
)) EXECUTE FUNCTION memkernel.refuse_change();

CREATE TRIGGER memory_versions_truncate BEFORE TRUNCATE ON memkernel.memory_versions
FOR EACH STATEMENT EXECUTE FUNCTION memkernel.refuse_change();

CREATE FUNCTION memkernel.refuse_delete_of_living() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (
        SELECT FROM memkernel.memory_stores store
        WHERE store.id IN (SELECT removed.memory_store_id FROM removed)
    ) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'MK090',
            CONSTRAINT = 'memory_versions_immutable',
            MESSAGE = 'memory versions are immutable: they go only with their store';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER memory_versions_delete AFTER DELETE ON memkernel.memory_versions
REFERENCING OLD TABLE AS removed
FOR EACH STATEMENT EXECUTE FUNCTION memkernel.refuse_delete_of_living();

CREATE FUNCTION memkernel.take_all_with_store() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM memkernel.run_changes WHERE memory_store_id IN (SELECT removed.id FROM removed);
    DELETE FROM memkernel.memories WHERE memory_store_id IN (SELECT removed.id FROM removed);
    DELETE FROM memkernel.memory_versions WHERE memory_store_id IN (SELECT removed.id FROM removed);
    RETURN NULL;
END $$;

CREATE TRIGGER memory_stores_take_all AFTER DELETE ON memkernel.memory_stores
REFERENCING OLD TABLE AS removed
FOR EACH STATEMENT EXECUTE FUNCTION memkernel.take_all_with_store();
