-- Writing costs the same however much a tenant remembers. Replaces a function of 002, and options of an index of 003.

-- Stores a batch, as in 002. What is held is looked up id by id: the tenant comes from the batch, so that it is no constant
-- to the planner, which takes a tenant that its statistics do not know for a small one, and would read all of it.
CREATE OR REPLACE FUNCTION context_memory_remember(tenant text, memories jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    changed text[];
    replaced text[];
BEGIN
    PERFORM context_memory_tenant(tenant);
    PERFORM pg_advisory_xact_lock(hashtextextended('context_memories ' || tenant, 0));
    WITH given AS MATERIALIZED (
        SELECT DISTINCT ON (r.id) tenant AS tenant_id, r.*
        FROM ROWS FROM (jsonb_to_recordset(memories) AS (
            id text, kind text, session_id text, user_id text, speaker text, said_at timestamptz, position bigint,
            tags text[], metadata jsonb, text text, digest text, embedder text
        )) WITH ORDINALITY AS r (id, kind, session_id, user_id, speaker, said_at, position, tags, metadata, text,
                                 digest, embedder, place)
        ORDER BY r.id, CASE WHEN r.kind = 'preference' THEN r.said_at END DESC NULLS LAST, r.place DESC
    ), held AS MATERIALIZED (
        SELECT h.id, h.digest, h.embedder FROM given AS g CROSS JOIN LATERAL (
            SELECT m.id, m.digest, m.embedder FROM context_memories AS m
            WHERE m.tenant_id = g.tenant_id AND m.id = g.id OFFSET 0
        ) AS h
    ), written AS (
        INSERT INTO context_memories AS m (tenant_id, id, kind, session_id, user_id, speaker, said_at, position, tags,
                                           metadata, text, digest, embedder)
        SELECT g.tenant_id, g.id, g.kind, g.session_id, g.user_id, g.speaker, g.said_at, g.position, coalesce(g.tags, '{}'),
               coalesce(g.metadata, '{}'), g.text, decode(g.digest, 'hex'), g.embedder
        FROM given AS g
        ON CONFLICT (tenant_id, id) DO UPDATE SET
            kind = EXCLUDED.kind, session_id = EXCLUDED.session_id, user_id = EXCLUDED.user_id,
            speaker = EXCLUDED.speaker, said_at = EXCLUDED.said_at, position = EXCLUDED.position, tags = EXCLUDED.tags,
            metadata = EXCLUDED.metadata, text = EXCLUDED.text, digest = EXCLUDED.digest,
            embedder = coalesce(EXCLUDED.embedder, CASE WHEN m.digest = EXCLUDED.digest THEN m.embedder END)
        WHERE m.kind <> 'preference' OR m.said_at IS NULL OR EXCLUDED.said_at IS NULL OR m.said_at <= EXCLUDED.said_at
        RETURNING m.id, m.digest, m.embedder
    )
    SELECT array_agg(w.id), array_agg(w.id) FILTER (WHERE h.id IS NOT NULL) INTO changed, replaced
    FROM written AS w LEFT JOIN held AS h ON h.id = w.id
    WHERE h.id IS NULL OR (h.digest, h.embedder) IS DISTINCT FROM (w.digest, w.embedder);
    IF replaced IS NOT NULL THEN
        DELETE FROM context_memory_vectors AS v WHERE v.tenant_id = tenant AND v.id = ANY (replaced);
    END IF;
    INSERT INTO context_memory_pending (tenant_id, id) SELECT tenant, c.id FROM unnest(changed) AS c (id)
    ON CONFLICT DO NOTHING;
END
$$;

SELECT context_builder_guard('^context_memory_remember$', '^context_memory_remember$');

-- What is new waits in a list of at most 64 kB, which a search looks through, until all of it is sorted in at once: a call
-- touches each word's entry once, not once for each memory.
ALTER INDEX context_memories_keys SET (fastupdate = on, gin_pending_list_limit = 64);
