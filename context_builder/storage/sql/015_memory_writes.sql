-- Writing costs the same however much a tenant remembers. Replaces a function of 002, and options of an index of 003.

-- Writes the memories whose ids are not in "done"; with "only_changed" only those that are new, or differ from before in digest
-- or embedder. Returns their ids, and whether each replaced an older one. Only the key's index is asked for it, as by every
-- INSERT with a conflict: in a join the planner would read all of a tenant that its statistics do not know.
CREATE OR REPLACE FUNCTION context_memory_write(tenant text, memories jsonb, only_changed boolean, done text[])
RETURNS TABLE (id text, replaced boolean) LANGUAGE sql AS $$
    INSERT INTO context_memories AS m (tenant_id, id, kind, session_id, user_id, speaker, said_at, position, tags, metadata, text,
                                       digest, embedder)
    SELECT DISTINCT ON (r.id)
           tenant, r.id, r.kind, r.session_id, r.user_id, r.speaker, r.said_at, r.position, coalesce(r.tags, '{}'),
           coalesce(r.metadata, '{}'), r.text, decode(r.digest, 'hex'), r.embedder
    FROM ROWS FROM (jsonb_to_recordset(memories) AS (
        id text, kind text, session_id text, user_id text, speaker text, said_at timestamptz, position bigint,
        tags text[], metadata jsonb, text text, digest text, embedder text
    )) WITH ORDINALITY AS r (id, kind, session_id, user_id, speaker, said_at, position, tags, metadata, text, digest, embedder, place)
    WHERE r.id NOT IN (SELECT unnest(done))
    ORDER BY r.id, CASE WHEN r.kind = 'preference' THEN r.said_at END DESC NULLS LAST, r.place DESC
    ON CONFLICT (tenant_id, id) DO UPDATE SET
        kind = EXCLUDED.kind, session_id = EXCLUDED.session_id, user_id = EXCLUDED.user_id,
        speaker = EXCLUDED.speaker, said_at = EXCLUDED.said_at, position = EXCLUDED.position, tags = EXCLUDED.tags,
        metadata = EXCLUDED.metadata, text = EXCLUDED.text, digest = EXCLUDED.digest,
        embedder = coalesce(EXCLUDED.embedder, CASE WHEN m.digest = EXCLUDED.digest THEN m.embedder END)
    WHERE (m.kind <> 'preference' OR m.said_at IS NULL OR EXCLUDED.said_at IS NULL OR m.said_at <= EXCLUDED.said_at)
      AND NOT (only_changed AND m.digest IS NOT DISTINCT FROM EXCLUDED.digest
               AND m.embedder IS NOT DISTINCT FROM coalesce(EXCLUDED.embedder, m.embedder))
    RETURNING m.id, m.xmax <> 0
$$;

-- Stores a batch, as in 002. What is new or has another digest is to be embedded, again; what is left has the same text as before.
CREATE OR REPLACE FUNCTION context_memory_remember(tenant text, memories jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    changed  text[];
    replaced text[];
BEGIN
    PERFORM context_memory_tenant(tenant);
    PERFORM pg_advisory_xact_lock(hashtextextended('context_memories ' || tenant, 0));
    SELECT coalesce(array_agg(w.id), '{}'), array_agg(w.id) FILTER (WHERE w.replaced) INTO changed, replaced
    FROM context_memory_write(tenant, memories, true, '{}') AS w;
    IF cardinality(changed) < jsonb_array_length(memories) THEN
        PERFORM context_memory_write(tenant, memories, false, changed);
    END IF;
    IF replaced IS NOT NULL THEN
        DELETE FROM context_memory_vectors AS v WHERE v.tenant_id = tenant AND v.id = ANY (replaced);
    END IF;
    INSERT INTO context_memory_pending (tenant_id, id) SELECT tenant, c.id FROM unnest(changed) AS c (id)
    ON CONFLICT DO NOTHING;
END
$$;

SELECT context_builder_guard('^context_memory_(remember|write)$', '^context_memory_remember$');

-- What is new waits in a list, which a search looks through, until that is larger than 64 kB and all of it is sorted in at
-- once: a call touches each word's entry once, not once for each memory.
ALTER INDEX context_memories_keys SET (fastupdate = on, gin_pending_list_limit = 64);
