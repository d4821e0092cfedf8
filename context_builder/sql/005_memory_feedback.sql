-- Which memories helped: the mean of their ratings (0 to 1), how many there were, and when the latest was given.

ALTER TABLE context_memories ADD COLUMN IF NOT EXISTS feedback jsonb;

-- Takes an array of {id, score, timestamp} into account; how many memories were there to be rated.
CREATE OR REPLACE FUNCTION context_memory_rate(tenant text, ratings jsonb) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    rated bigint;
BEGIN
    PERFORM context_memory_tenant(tenant);
    PERFORM pg_advisory_xact_lock(hashtextextended('context_memories ' || tenant, 0));
    UPDATE context_memories AS m SET feedback = jsonb_build_object(
        'score', (before.score * before.count + r.score) / (before.count + 1),
        'count', before.count + 1,
        'timestamp', r.timestamp
    )
    FROM jsonb_to_recordset(ratings) AS r (id text, score float8, "timestamp" text)
    JOIN context_memories AS k ON k.tenant_id = tenant AND k.id = r.id
    CROSS JOIN LATERAL (
        SELECT coalesce((k.feedback ->> 'score')::float8, 0) AS score, coalesce((k.feedback ->> 'count')::bigint, 0) AS count
    ) AS before
    WHERE m.tenant_id = tenant AND m.id = r.id;
    GET DIAGNOSTICS rated = ROW_COUNT;
    RETURN rated;
END
$$;

-- As 003 has it for the other functions: a fixed search path, and callers that check the tenant.
DO $$
DECLARE
    caller name;
BEGIN
    EXECUTE format('ALTER FUNCTION context_memory_rate SET search_path = pg_catalog, %I, pg_temp', current_schema());
    REVOKE ALL ON FUNCTION context_memory_rate FROM PUBLIC;
    FOR caller IN SELECT rolname FROM pg_roles
                  WHERE rolname IN ('context_builder_app', 'service_role', 'anon', 'authenticated')
    LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION context_memory_rate FROM %I', caller);
        IF caller IN ('context_builder_app', 'service_role') THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION context_memory_rate TO %I', caller);
        END IF;
    END LOOP;
END
$$;
