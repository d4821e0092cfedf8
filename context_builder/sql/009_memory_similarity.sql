-- A score that means the same in every search: how alike the best hits and the query are, 0 to 1, and the others by rank.

-- How much of the query the best of these memories holds: the fourth root of its share in the weight of the query's telling
-- words, the eight rarest. The root, because one telling word of several is much. A word that no memory has is as rare as
-- can be, so that a query about something else finds nothing much alike.
CREATE OR REPLACE FUNCTION context_memory_likeness(tenant text, query text, ids text[]) RETURNS float8
LANGUAGE plpgsql STABLE AS $$
DECLARE
    asked  text[];
    weighs float8[];
    whole  float8;
BEGIN
    SELECT array_agg(a.word), array_agg(a.weight), sum(a.weight) FILTER (WHERE a.place <= 8) INTO asked, weighs, whole
    FROM (
        SELECT w.word, w.weight, row_number() OVER (ORDER BY w.weight DESC, w.word) AS place
        FROM (
            SELECT a.word, ln(1 + (greatest(t.memories - coalesce(f.memories, 0), 0) + 0.5) / (coalesce(f.memories, 0) + 0.5)) AS weight
            FROM context_memory_totals AS t, unnest(tsvector_to_array(to_tsvector('english', left(query, 10000)))) AS a (word)
            LEFT JOIN context_memory_frequencies AS f ON f.tenant_id = tenant AND f.word = a.word
            WHERE t.tenant_id = tenant
        ) AS w ORDER BY place LIMIT 32
    ) AS a;
    RETURN sqrt(sqrt(least(max(held.weight) / whole, 1))) FROM (
        SELECT (SELECT sum(a.weight) FROM unnest(asked, weighs) AS a (word, weight)
                WHERE a.word = ANY (tsvector_to_array(m.words))) AS weight
        FROM context_memories AS m WHERE m.tenant_id = tenant AND m.id = ANY (ids)
    ) AS held;
END
$$;

-- As in 003, but a tenant of few memories is read as a whole: beside large ones an index of all would give it few of its
-- own. For others it is read on until there are enough, where pgvector can (0.8 and later).
CREATE OR REPLACE FUNCTION context_memory_by_meaning(
    tenant text, by_embedder text, query_embedding real[], condition text, depth integer
) RETURNS SETOF context_memory_hit
LANGUAGE plpgsql AS $$
DECLARE
    is_small boolean := (SELECT t.memories <= 500 FROM context_memory_totals AS t WHERE t.tenant_id = tenant);
BEGIN
    IF query_embedding IS NULL OR to_regtype('halfvec') IS NULL THEN
        RETURN;
    END IF;
    PERFORM '[1]'::halfvec;  -- loads pgvector, and with it its settings
    PERFORM set_config('hnsw.ef_search', least(greatest(depth, 40), 1000)::text, true);
    IF current_setting('hnsw.iterative_scan', true) IS NOT NULL THEN
        PERFORM set_config('hnsw.iterative_scan', 'strict_order', true);
    END IF;
    RETURN QUERY EXECUTE format($hits$
        SELECT m.id, m.session_id, m.position, greatest(1 - m.distance, 0)
        FROM (
            SELECT m.id, m.session_id, m.position, m.embedding::halfvec(%1$s) <=> $4::halfvec(%1$s) AS distance
            FROM context_memories AS m
            WHERE cardinality(m.embedding) = %1$s AND m.tenant_id = $1 AND m.embedder = $2 AND %2$s %3$s
        ) AS m
        ORDER BY m.distance LIMIT $3
        $hits$, cardinality(query_embedding), condition, CASE WHEN is_small THEN 'OFFSET 0' END)
    USING tenant, by_embedder, depth, query_embedding;
END
$$;

-- As in 003, but a score is the root of the share of the best one's, times how alike the best ten and the query are:
-- by their words, or by meaning if that is more. The order stays.
CREATE OR REPLACE FUNCTION context_memory_search(
    tenant text, query text, wanted integer DEFAULT 8, threshold float8 DEFAULT 0, condition jsonb DEFAULT '{}',
    by_embedder text DEFAULT NULL, query_embedding real[] DEFAULT NULL, options jsonb DEFAULT '{}'
) RETURNS TABLE (memory jsonb, score float8, origins text[])
LANGUAGE plpgsql SECURITY DEFINER AS $$
#variable_conflict use_column
DECLARE
    met        text := context_memory_condition(condition);
    depth      integer := least(greatest(wanted, 50), 1000);
    neighbours float8[] := ARRAY(SELECT jsonb_array_elements_text(options -> 'neighbours')::float8);
    asked      tsquery := array_to_string(ARRAY(SELECT context_memory_term(word) || ':A'
                   FROM unnest(tsvector_to_array(to_tsvector('english', left(query, 10000)))) AS a (word)), ' | ')::tsquery;
    said       context_memory_hit[];
    meant      context_memory_hit[];
BEGIN
    PERFORM context_memory_tenant(tenant);
    said := context_memory_said(tenant, query, met, depth, options);
    meant := ARRAY(SELECT h FROM context_memory_by_meaning(tenant, by_embedder, query_embedding, met, depth) AS h);
    RETURN QUERY
        WITH hits AS MATERIALIZED (
            SELECT hit, origins FROM context_memory_fuse(said, meant, coalesce((options ->> 'fusion')::float8, 10))
        ), spread AS (
            SELECT id, score, sqrt(score / max(score) OVER ()) AS share
            FROM context_memory_spread(tenant, ARRAY(SELECT hit FROM hits), neighbours,
                                       coalesce((options ->> 'speaker')::float8, 1), asked, met)
        ), best AS (
            SELECT DISTINCT ON (md5(m.text)) m.id, s.share
            FROM (SELECT * FROM spread ORDER BY share DESC, id LIMIT 2 * wanted) AS s
            JOIN context_memories AS m ON m.tenant_id = tenant AND m.id = s.id
            ORDER BY md5(m.text), s.share DESC, m.id
        ), first AS MATERIALIZED (
            SELECT * FROM best ORDER BY share DESC, id LIMIT wanted
        ), top AS (
            SELECT ARRAY(SELECT id FROM first ORDER BY share DESC, id LIMIT 10) AS ids
        ), alike AS MATERIALIZED (
            SELECT least(greatest(
                (SELECT context_memory_likeness(tenant, query, top.ids) FROM top),
                (SELECT max(h.score) FROM top, unnest(meant) AS h WHERE h.id = ANY (top.ids)), 0), 1) AS similarity
        )
        SELECT context_memory_shown(m), first.share * alike.similarity, coalesce(hits.origins, '{neighbour}')
        FROM first
        CROSS JOIN alike
        JOIN context_memories AS m ON m.tenant_id = tenant AND m.id = first.id
        LEFT JOIN hits ON (hits.hit).id = first.id
        WHERE first.share * alike.similarity >= threshold
        ORDER BY first.share DESC, first.id;
END
$$;

-- What a function loses that is replaced, see 003; and nobody calls the inner ones.
DO $$
DECLARE
    fn     regprocedure;
    caller name;
    path   text := concat_ws(', ', 'pg_catalog', quote_ident(current_schema()), (
        SELECT quote_ident(n.nspname) FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
        WHERE e.extname = 'vector' AND n.nspname <> current_schema()), 'pg_temp');
BEGIN
    FOR fn IN SELECT p.oid FROM pg_proc AS p WHERE p.pronamespace = current_schema()::regnamespace
              AND p.proname IN ('context_memory_search', 'context_memory_by_meaning', 'context_memory_likeness')
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %s', fn, path);
        IF split_part(fn::text, '(', 1) LIKE '%\_search' THEN
            EXECUTE format('ALTER FUNCTION %s SET random_page_cost = 1.1', fn);
            EXECUTE format('ALTER FUNCTION %s SET enable_hashjoin = off', fn);
            EXECUTE format('ALTER FUNCTION %s SET enable_mergejoin = off', fn);
            EXECUTE format('ALTER FUNCTION %s SET jit = off', fn);
        END IF;
    END LOOP;
    REVOKE ALL ON FUNCTION context_memory_likeness FROM PUBLIC;
    FOR caller IN SELECT rolname FROM pg_roles
                  WHERE rolname IN ('context_builder_app', 'service_role', 'anon', 'authenticated')
    LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION context_memory_likeness FROM %I', caller);
    END LOOP;
END
$$;
