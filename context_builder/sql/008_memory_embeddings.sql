-- A memory is stored at once and embedded afterwards; what could not be embedded then is found here, and embedded later.

CREATE INDEX IF NOT EXISTS context_memories_lacking ON context_memories (tenant_id) WHERE embedding IS NULL;

-- As in 002, but "embedder" names who will embed what comes without an embedding: one by another embedder is dropped.
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
    ORDER BY r.id, r.place DESC
    ON CONFLICT (tenant_id, id) DO UPDATE SET
        kind = EXCLUDED.kind, session_id = EXCLUDED.session_id, user_id = EXCLUDED.user_id,
        speaker = EXCLUDED.speaker, said_at = EXCLUDED.said_at, position = EXCLUDED.position, tags = EXCLUDED.tags,
        metadata = EXCLUDED.metadata, text = EXCLUDED.text, digest = EXCLUDED.digest,
        embedder = coalesce(EXCLUDED.embedder, CASE WHEN m.digest = EXCLUDED.digest THEN m.embedder END),
        embedding = coalesce(EXCLUDED.embedding, CASE
            WHEN m.digest = EXCLUDED.digest AND m.embedder = coalesce(EXCLUDED.embedder, m.embedder) THEN m.embedding END);
END
$$;

-- Some of the tenant's memories that have no embedding, with what one is made of.
CREATE OR REPLACE FUNCTION context_memory_lacking(tenant text, wanted integer)
RETURNS TABLE (id text, text text, speaker text, said_at timestamptz, digest text)
LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY
        SELECT m.id, m.text, m.speaker, m.said_at, encode(m.digest, 'hex')
        FROM context_memories AS m WHERE m.tenant_id = tenant AND m.embedding IS NULL LIMIT wanted;
END
$$;

-- Adds embeddings, an array of {id, digest, embedding}, to memories whose text is still the one that was embedded.
CREATE OR REPLACE FUNCTION context_memory_embed(tenant text, by_embedder text, embeddings jsonb) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    embedded bigint;
BEGIN
    PERFORM context_memory_tenant(tenant);
    PERFORM pg_advisory_xact_lock(hashtextextended('context_memories ' || tenant, 0));
    UPDATE context_memories AS m SET embedder = by_embedder, embedding = e.embedding
    FROM jsonb_to_recordset(embeddings) AS e (id text, digest text, embedding real[])
    WHERE m.tenant_id = tenant AND m.id = e.id AND m.digest IS NOT DISTINCT FROM decode(e.digest, 'hex');
    GET DIAGNOSTICS embedded = ROW_COUNT;
    RETURN embedded;
END
$$;

-- As for the functions before: a search path of their own, and callers that check the tenant.
DO $$
DECLARE
    fn     regprocedure;
    caller name;
BEGIN
    FOREACH fn IN ARRAY '{"context_memory_remember(text,jsonb)","context_memory_lacking(text,integer)",
                          "context_memory_embed(text,text,jsonb)"}'::regprocedure[] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %s', fn, concat_ws(', ', 'pg_catalog',
            quote_ident(current_schema()), (SELECT quote_ident(n.nspname) FROM pg_extension AS e
                JOIN pg_namespace AS n ON n.oid = e.extnamespace
                WHERE e.extname = 'vector' AND n.nspname <> current_schema()), 'pg_temp'));
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', fn);
        FOR caller IN SELECT rolname FROM pg_roles
                      WHERE rolname IN ('context_builder_app', 'service_role', 'anon', 'authenticated')
        LOOP
            EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %I', fn, caller);
            IF caller IN ('context_builder_app', 'service_role') THEN
                EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', fn, caller);
            END IF;
        END LOOP;
    END LOOP;
END
$$;
