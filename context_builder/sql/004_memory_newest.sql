-- What a search without a query means: the newest memories that meet the condition, the newest first.

CREATE INDEX IF NOT EXISTS context_memories_newest ON context_memories (tenant_id, said_at DESC NULLS LAST, position DESC NULLS LAST);

CREATE OR REPLACE FUNCTION context_memory_newest(tenant text, wanted integer DEFAULT 8, condition jsonb DEFAULT '{}')
RETURNS TABLE (memory jsonb, score float8, origins text[]) LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY EXECUTE format($newest$
        SELECT to_jsonb(m) - '{words,embedding,embedder,digest,tenant_id,created_at}'::text[], 1::float8, '{newest}'::text[]
        FROM context_memories AS m
        WHERE m.tenant_id = $1 AND %s
        ORDER BY m.said_at DESC NULLS LAST, m.position DESC NULLS LAST LIMIT $2
        $newest$, context_memory_condition(condition))
    USING tenant, wanted;
END
$$;

-- As for the functions before: its own search path, and nobody's but the application's and Supabase's service role's.
DO $$
DECLARE
    fn     regprocedure := 'context_memory_newest(text, integer, jsonb)'::regprocedure;
    caller name;
BEGIN
    EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp', fn, current_schema());
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', fn);
    FOR caller IN SELECT rolname FROM pg_roles
                  WHERE rolname IN ('context_builder_app', 'service_role', 'anon', 'authenticated')
    LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %I', fn, caller);
        IF caller IN ('context_builder_app', 'service_role') THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', fn, caller);
        END IF;
    END LOOP;
END
$$;
