-- Which memories helped whom: of each user, and of nobody in particular, the latest rating alone counts, so that nobody
-- decides by rating often how a memory ranks for all. Only the newest 100 raters of a memory are kept.

ALTER TABLE context_memories ADD COLUMN IF NOT EXISTS ratings jsonb;  -- {user or '': {score, timestamp}}
UPDATE context_memories SET ratings = jsonb_build_object('', feedback - 'count') WHERE feedback IS NOT NULL AND ratings IS NULL;

-- Takes an array of {id, user_id, score, timestamp} into account; how many memories were there to be rated.
CREATE OR REPLACE FUNCTION context_memory_rate(tenant text, ratings jsonb) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    rated bigint;
BEGIN
    PERFORM context_memory_tenant(tenant);
    PERFORM pg_advisory_xact_lock(hashtextextended('context_memories ' || tenant, 0));
    UPDATE context_memories AS m SET ratings = kept.ratings, feedback = kept.feedback
    FROM (
        SELECT r.id, jsonb_object_agg(coalesce(r.user_id, ''),
                                      jsonb_build_object('score', r.score, 'timestamp', r.timestamp)) AS given
        FROM jsonb_to_recordset(context_memory_rate.ratings) AS r (id text, user_id text, score float8, "timestamp" timestamptz)
        GROUP BY r.id
    ) AS new
    JOIN context_memories AS k ON k.tenant_id = tenant AND k.id = new.id
    CROSS JOIN LATERAL (
        SELECT jsonb_object_agg(newest.key, newest.value) AS ratings,
               jsonb_build_object('score', avg((newest.value ->> 'score')::float8), 'count', count(*),
                                  'timestamp', max((newest.value ->> 'timestamp')::timestamptz)) AS feedback
        FROM (SELECT e.key, e.value FROM jsonb_each(coalesce(k.ratings, '{}') || new.given) AS e
              ORDER BY (e.value ->> 'timestamp')::timestamptz DESC, e.key LIMIT 100) AS newest
    ) AS kept
    WHERE m.tenant_id = tenant AND m.id = k.id;
    GET DIAGNOSTICS rated = ROW_COUNT;
    RETURN rated;
END
$$;

-- What a program is given of a memory: not what its search needs, nor who rated it.
CREATE OR REPLACE FUNCTION context_memory_shown(m context_memories) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('id', m.id, 'kind', m.kind, 'session_id', m.session_id, 'user_id', m.user_id,
                              'speaker', m.speaker, 'said_at', m.said_at, 'position', m.position, 'tags', m.tags,
                              'metadata', m.metadata, 'text', m.text, 'feedback', m.feedback)
$$;

CREATE OR REPLACE FUNCTION context_memory_newest(tenant text, wanted integer DEFAULT 8, condition jsonb DEFAULT '{}')
RETURNS TABLE (memory jsonb, score float8, origins text[]) LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY EXECUTE format($newest$
        SELECT context_memory_shown(m), 1::float8, '{newest}'::text[]
        FROM context_memories AS m
        WHERE m.tenant_id = $1 AND %s
        ORDER BY m.said_at DESC NULLS LAST, m.position DESC NULLS LAST LIMIT $2
        $newest$, context_memory_condition(condition))
    USING tenant, wanted;
END
$$;

-- Their search path, which a function that is replaced loses; and nobody calls the inner one.
DO $$
DECLARE
    fn     regprocedure;
    caller name;
BEGIN
    FOREACH fn IN ARRAY '{"context_memory_rate(text,jsonb)","context_memory_newest(text,integer,jsonb)",
                          context_memory_shown(context_memories)}'::regprocedure[] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp', fn, current_schema());
    END LOOP;
    REVOKE ALL ON FUNCTION context_memory_shown FROM PUBLIC;
    FOR caller IN SELECT rolname FROM pg_roles
                  WHERE rolname IN ('context_builder_app', 'service_role', 'anon', 'authenticated')
    LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION context_memory_shown FROM %I', caller);
    END LOOP;
END
$$;
