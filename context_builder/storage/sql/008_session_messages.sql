-- The messages of a session in the order in which they arrived, page by page, also long after they left its buffer.
-- Among the memories a message's position counts arrivals. Runs as its owner, as in 002.

CREATE OR REPLACE FUNCTION context_said_after(tenant text, session text, after bigint, most integer)
RETURNS SETOF jsonb LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY SELECT context_memory_json(m) FROM context_memories AS m
    WHERE m.tenant_id = tenant AND m.session_id = session AND m.position > after AND m.kind = 'message'
    ORDER BY m.position, m.said_at LIMIT most;
END
$$;

-- As at the end of 003: only who verifies the tenant may call.
DO $$
DECLARE
    fn     regprocedure := 'context_said_after(text, text, bigint, integer)'::regprocedure;
    caller name;
BEGIN
    EXECUTE format('ALTER FUNCTION %s SET search_path = %s', fn,
                   concat_ws(', ', 'pg_catalog', quote_ident(current_schema()), 'pg_temp'));
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
