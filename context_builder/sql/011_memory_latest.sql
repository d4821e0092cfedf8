-- What was stated last holds, in whichever order it arrives: a preference gives way to none that was stated before it.

-- As in 008, but for the order of preferences and the last condition.
CREATE OR REPLACE FUNCTION context_memory_remember(tenant text, memories jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    PERFORM pg_advisory_xact_lock(hashtextextended('context_memories ' || tenant, 0));
    INSERT INTO context_memories AS m (tenant_id, id, kind, session_id, user_id, speaker, said_at, position, tags,
                                       metadata, text, digest, embedder, embedding)
    SELECT DISTINCT ON (r.id) tenant, r.id, r.kind, r.session_id, r.user_id, r.speaker, r.said_at, r.position,
           coalesce(r.tags, '{}'), coalesce(r.metadata, '{}'), r.text, decode(r.digest, 'hex'), r.embedder, r.embedding
    FROM ROWS FROM (jsonb_to_recordset(memories) AS (
        id text, kind text, session_id text, user_id text, speaker text, said_at timestamptz, position bigint,
        tags text[], metadata jsonb, text text, digest text, embedder text, embedding real[]
    )) WITH ORDINALITY AS r (id, kind, session_id, user_id, speaker, said_at, position, tags, metadata, text,
                             digest, embedder, embedding, place)
    ORDER BY r.id, CASE WHEN r.kind = 'preference' THEN r.said_at END DESC NULLS LAST, r.place DESC
    ON CONFLICT (tenant_id, id) DO UPDATE SET
        kind = EXCLUDED.kind, session_id = EXCLUDED.session_id, user_id = EXCLUDED.user_id,
        speaker = EXCLUDED.speaker, said_at = EXCLUDED.said_at, position = EXCLUDED.position, tags = EXCLUDED.tags,
        metadata = EXCLUDED.metadata, text = EXCLUDED.text, digest = EXCLUDED.digest,
        embedder = coalesce(EXCLUDED.embedder, CASE WHEN m.digest = EXCLUDED.digest THEN m.embedder END),
        embedding = coalesce(EXCLUDED.embedding, CASE
            WHEN m.digest = EXCLUDED.digest AND m.embedder = coalesce(EXCLUDED.embedder, m.embedder) THEN m.embedding END)
    WHERE m.kind <> 'preference' OR m.said_at IS NULL OR EXCLUDED.said_at IS NULL OR m.said_at <= EXCLUDED.said_at;
END
$$;

DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION context_memory_remember(text, jsonb) SET search_path = %s', concat_ws(', ', 'pg_catalog',
        quote_ident(current_schema()), (SELECT quote_ident(n.nspname) FROM pg_extension AS e
            JOIN pg_namespace AS n ON n.oid = e.extnamespace
            WHERE e.extname = 'vector' AND n.nspname <> current_schema()), 'pg_temp'));
END
$$;
