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

SELECT context_builder_guard('^context_said_after$', '^context_said_after$');
SELECT context_builder_by_index('^context_said_after$');
