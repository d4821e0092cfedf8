-- What has no word of the query is as alike as its meaning is, and what is not alike at all is no hit.

-- As in 009, but where none of these memories has a word of the query, they are not alike by words.
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
    RETURN sqrt(sqrt(least(coalesce(max(held.weight) / whole, 0), 1))) FROM (
        SELECT (SELECT sum(a.weight) FROM unnest(asked, weighs) AS a (word, weight)
                WHERE a.word = ANY (tsvector_to_array(m.words))) AS weight
        FROM context_memories AS m WHERE m.tenant_id = tenant AND m.id = ANY (ids)
    ) AS held;
END
$$;

-- As in 012, without what is not alike at all: where nothing else was found, there would be no best to have a share of.
CREATE OR REPLACE FUNCTION context_memory_fuse(said context_memory_hit[], meant context_memory_hit[], fusion float8)
RETURNS TABLE (hit context_memory_hit, origins text[]) LANGUAGE sql STABLE AS $$
    SELECT ROW(f.id, f.session_id, f.position, f.score)::context_memory_hit, f.origins
    FROM (
        SELECT l.id, min(l.session_id) AS session_id, min(l.position) AS position,
               CASE WHEN said = '{}' OR meant = '{}' THEN max(l.score) ELSE sum(1 / (fusion + l.place)) END AS score,
               array_agg(l.origin ORDER BY l.origin) AS origins
        FROM (
            SELECT 'full_text' AS origin, h.* FROM unnest(said) WITH ORDINALITY AS h (id, session_id, position, score, place)
            UNION ALL
            SELECT 'vector', h.* FROM unnest(meant) WITH ORDINALITY AS h (id, session_id, position, score, place)
        ) AS l
        WHERE l.score > 0
        GROUP BY l.id
    ) AS f
    ORDER BY f.score DESC, f.id LIMIT greatest(cardinality(said), cardinality(meant))
$$;

-- A function that is replaced loses its search path.
DO $$
DECLARE
    fn regprocedure;
BEGIN
    FOR fn IN SELECT p.oid FROM pg_proc AS p WHERE p.pronamespace = current_schema()::regnamespace
              AND p.proname IN ('context_memory_likeness', 'context_memory_fuse')
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp', fn, current_schema());
    END LOOP;
END
$$;
