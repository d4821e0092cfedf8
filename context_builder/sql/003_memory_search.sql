-- Finding memories: by their words as BM25 weighs them, by meaning where pgvector is there, and both fused.

DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector') THEN
        CREATE EXTENSION IF NOT EXISTS vector;
    ELSE
        RAISE NOTICE 'this server has no pgvector: memories are searched by their words alone';
    END IF;
EXCEPTION
    WHEN insufficient_privilege OR feature_not_supported THEN
        RAISE NOTICE 'pgvector may not be installed by this role: memories are searched by their words alone';
END
$$;

DO $$
BEGIN
    CREATE TYPE context_memory_hit AS (id text, session_id text, "position" bigint, score float8);
EXCEPTION
    WHEN duplicate_object THEN NULL;
END
$$;

-- A word of a memory, as a query for it; it is quoted, not parsed.
CREATE OR REPLACE FUNCTION context_memory_term(word text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT '''' || replace(replace(word, '\', '\\'), '''', '''''') || ''''
$$;

-- The query's words that some memory of the tenant has, the rarest first, each with its weight
-- (BM25's inverse document frequency) and how many memories have it.
CREATE OR REPLACE FUNCTION context_memory_terms(tenant text, query text)
RETURNS TABLE (word text, weight float8, memories bigint) LANGUAGE sql STABLE AS $$
    SELECT f.word, ln(1 + (greatest(t.memories - f.memories, 0) + 0.5) / (f.memories + 0.5)), f.memories
    FROM unnest(tsvector_to_array(to_tsvector('english', left(query, 10000)))) AS asked (word)
    JOIN context_memory_frequencies AS f ON f.tenant_id = tenant AND f.word = asked.word
    JOIN context_memory_totals AS t ON t.tenant_id = tenant
    WHERE f.memories > 0
    ORDER BY f.memories, f.word
    LIMIT 32
$$;

-- The best hits by words, scored by BM25 (k = 1.2, b = 0.4). How often a memory has a word comes from ts_rank, which for
-- one word is r = 6/pi^2 * sum(1/n^2) over its occurrences, so that there are about 0.608 r / (1 - r). Length is that
-- in different words. Where only a few words are looked up, the others still count in the score.
CREATE OR REPLACE FUNCTION context_memory_by_words(
    tenant text, words text[], weights float8[], looked_up text[], condition text, depth integer
) RETURNS SETOF context_memory_hit
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY EXECUTE format($hits$
        SELECT m.id, m.session_id, m.position, (%s)::float8 AS score
        FROM context_memories AS m, (
            SELECT greatest(o.words::float8 / greatest(o.memories, 1), 1) AS average
            FROM context_memory_totals AS o WHERE o.tenant_id = $1
        ) AS t
        WHERE m.tenant_id = $1 AND m.words @@ %L::tsquery AND %s
        ORDER BY score DESC, m.id LIMIT $2
        $hits$,
        (SELECT string_agg(format('%s * coalesce(1 / (1 + (1.184 + 0.79 * length(m.words) / t.average)
                                          * (1 / nullif(ts_rank(''{1,1,1,1}'', m.words, %L::tsquery), 0) - 1)), 0)',
                                  weight, context_memory_term(word)), ' + ')
         FROM unnest(words, weights) AS w (word, weight)),
        (SELECT string_agg(context_memory_term(word), ' | ') FROM unnest(looked_up) AS l (word)),
        condition)
    USING tenant, depth;
END
$$;

-- The best hits by meaning: cosine similarity, 0 to 1. An index serves one number of dimensions, see context_memory_prepare.
CREATE OR REPLACE FUNCTION context_memory_by_meaning(
    tenant text, by_embedder text, query_embedding real[], condition text, depth integer
) RETURNS SETOF context_memory_hit
LANGUAGE plpgsql AS $$
BEGIN
    IF query_embedding IS NULL OR to_regtype('halfvec') IS NULL THEN
        RETURN;
    END IF;
    PERFORM set_config('hnsw.ef_search', least(greatest(depth, 40), 1000)::text, true),
            set_config('hnsw.iterative_scan', 'strict_order', true);
    RETURN QUERY EXECUTE format($hits$
        SELECT m.id, m.session_id, m.position, greatest(1 - (m.embedding::halfvec(%1$s) <=> $4::halfvec(%1$s)), 0)
        FROM context_memories AS m
        WHERE cardinality(m.embedding) = %1$s AND m.tenant_id = $1 AND m.embedder = $2 AND %2$s
        ORDER BY m.embedding::halfvec(%1$s) <=> $4::halfvec(%1$s) LIMIT $3
        $hits$, cardinality(query_embedding), condition)
    USING tenant, by_embedder, depth, query_embedding;
END
$$;

-- Makes the index for embeddings of so many dimensions, unless it is there; whether embeddings can be searched at all.
CREATE OR REPLACE FUNCTION context_memory_prepare(tenant text, dimensions integer) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    IF to_regtype('halfvec') IS NULL OR dimensions NOT BETWEEN 1 AND 4000 THEN
        RETURN false;
    END IF;
    IF to_regclass('context_memories_embedding_' || dimensions) IS NULL THEN
        PERFORM pg_advisory_xact_lock(hashtextextended('context_memory_prepare', 0));
        EXECUTE format(
            'CREATE INDEX IF NOT EXISTS context_memories_embedding_%1$s ON context_memories
             USING hnsw ((embedding::halfvec(%1$s)) halfvec_cosine_ops) WHERE cardinality(embedding) = %1$s', dimensions);
    END IF;
    RETURN true;
END
$$;

-- A query's words and those of its best hits that stand alone: what a passage names leads on to the next one,
-- as in a conversation the place does. The words' weights are their share of the heaviest, times a fifth.
CREATE OR REPLACE FUNCTION context_memory_lead(tenant text, ids text[], words text[], weights float8[])
RETURNS TABLE (word text, weight float8) LANGUAGE sql STABLE AS $$
    WITH named AS (
        SELECT lexeme, sum(ln(1 + (greatest(t.memories - f.memories, 0) + 0.5) / (f.memories + 0.5))) AS weight,
               max(ln(1 + (greatest(t.memories - f.memories, 0) + 0.5) / (f.memories + 0.5))) AS rarity
        FROM context_memories AS m, unnest(m.words)
        JOIN context_memory_frequencies AS f ON f.tenant_id = tenant AND f.word = lexeme
        JOIN context_memory_totals AS t ON t.tenant_id = tenant
        WHERE m.tenant_id = tenant AND m.id = ANY (ids) AND lexeme <> ALL (context_memory_lead.words)
        GROUP BY lexeme ORDER BY 2 DESC, lexeme LIMIT 20
    )
    SELECT * FROM unnest(context_memory_lead.words, weights)
    UNION ALL
    SELECT lexeme, 0.2 * rarity * named.weight / max(named.weight) OVER () FROM named
$$;

-- Hits by words and by meaning as one list, by reciprocal rank (Cormack et al. 2009). A list alone keeps its own scores.
CREATE OR REPLACE FUNCTION context_memory_fuse(said context_memory_hit[], meant context_memory_hit[], fusion float8)
RETURNS TABLE (hit context_memory_hit, origins text[]) LANGUAGE sql STABLE AS $$
    SELECT ROW(id, min(session_id), min(position),
               CASE WHEN said = '{}' OR meant = '{}' THEN max(score) ELSE sum(1 / (fusion + place)) END)::context_memory_hit,
           array_agg(origin ORDER BY origin)
    FROM (
        SELECT 'full_text' AS origin, h.* FROM unnest(said) WITH ORDINALITY AS h (id, session_id, position, score, place)
        UNION ALL
        SELECT 'vector', h.* FROM unnest(meant) WITH ORDINALITY AS h (id, session_id, position, score, place)
    ) AS listed
    GROUP BY id
$$;

-- Hits with their neighbours: a part of each hit's score goes to the memories 1, 2, … places before and after it in
-- its session, which often say what the hit is about; and what is said by whom the query names counts "speaker" times.
CREATE OR REPLACE FUNCTION context_memory_spread(
    tenant text, hits context_memory_hit[], neighbours float8[], speaker float8, named tsquery, condition text
) RETURNS TABLE (id text, score float8) LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY EXECUTE format($spread$
        WITH near AS (
            SELECT h.session_id, h.position + side.sign * step.distance AS position, sum(h.score * step.part) AS score
            FROM unnest($2) AS h, unnest($3) WITH ORDINALITY AS step (part, distance), (VALUES (-1), (1)) AS side (sign)
            WHERE h.session_id IS NOT NULL AND h.position IS NOT NULL
            GROUP BY 1, 2
        ), reached AS (
            SELECT h.id, h.score, m.named FROM unnest($2) AS h
            CROSS JOIN LATERAL (SELECT m.words @@ $5 AS named FROM context_memories AS m
                WHERE m.tenant_id = $1 AND m.id = h.id) AS m
            UNION ALL
            SELECT m.id, near.score, m.named FROM near
            CROSS JOIN LATERAL (SELECT m.id, m.words @@ $5 AS named FROM context_memories AS m WHERE m.tenant_id = $1
                AND m.session_id = near.session_id AND m.position = near.position AND %s) AS m
        )
        SELECT r.id, sum(r.score) * CASE WHEN bool_or(r.named) THEN $4 ELSE 1 END FROM reached AS r GROUP BY r.id
        $spread$, condition)
    USING tenant, hits, neighbours, speaker, named;
END
$$;

-- What the query's words find; and what the words of the best passages find that these lead on to.
CREATE OR REPLACE FUNCTION context_memory_said(tenant text, query text, condition text, depth integer, options jsonb)
RETURNS context_memory_hit[] LANGUAGE plpgsql STABLE AS $$
DECLARE
    words     text[];
    weights   float8[];
    looked_up text[];
    said      context_memory_hit[];
    passages  text[];
BEGIN
    -- In a large tenant the common words are not looked up once rare ones find enough; but under a condition
    -- all are, because it may leave little of what rare ones find.
    SELECT array_agg(t.word), array_agg(CASE WHEN options ->> 'rarity' = 'false' THEN 1 ELSE t.weight END),
           array_agg(t.word) FILTER (WHERE condition <> 'true' OR t.before < 1000)
    INTO words, weights, looked_up
    FROM (SELECT *, sum(memories) OVER (ORDER BY memories, word) - memories AS before
          FROM context_memory_terms(tenant, query)) AS t;
    IF words IS NULL THEN
        RETURN '{}';
    END IF;
    said := ARRAY(SELECT h FROM context_memory_by_words(tenant, words, weights, looked_up, condition, depth) AS h);
    passages := ARRAY(SELECT h.id FROM unnest(said) AS h WHERE h.position IS NULL LIMIT 1);
    IF options ->> 'lead' = 'true' AND passages <> '{}' THEN
        SELECT array_agg(l.word), array_agg(l.weight) INTO words, weights
        FROM context_memory_lead(tenant, passages, words, weights) AS l;
        said := ARRAY(SELECT h FROM context_memory_by_words(tenant, words, weights, words, condition, depth) AS h);
    END IF;
    RETURN said;
END
$$;

-- What fits a query best, first; a score is the root of the share of the best one's. Of equal texts only the best is there.
-- Options are SearchOptions' fields.
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
            FROM (SELECT * FROM spread WHERE share >= threshold ORDER BY share DESC, id LIMIT 2 * wanted) AS s
            JOIN context_memories AS m ON m.tenant_id = tenant AND m.id = s.id
            ORDER BY md5(m.text), s.share DESC, m.id
        )
        SELECT to_jsonb(m) - '{words,embedding,embedder,digest,tenant_id,created_at}'::text[], b.share,
               coalesce(hits.origins, '{neighbour}')
        FROM (SELECT * FROM best ORDER BY share DESC, id LIMIT wanted) AS b
        JOIN context_memories AS m ON m.tenant_id = tenant AND m.id = b.id
        LEFT JOIN hits ON (hits.hit).id = b.id
        ORDER BY b.share DESC, b.id;
END
$$;

-- Every function here sees this schema and pgvector's, and nothing that a caller could put before them. Only the
-- application's role and Supabase's service role may call those that check the tenant; the others are theirs alone.
DO $$
DECLARE
    fn     regprocedure;
    caller name;
    path   text := concat_ws(', ', 'pg_catalog', quote_ident(current_schema()), (
        SELECT quote_ident(n.nspname) FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
        WHERE e.extname = 'vector' AND n.nspname <> current_schema()), 'pg_temp');
BEGIN
    FOR fn IN SELECT p.oid FROM pg_proc AS p
              WHERE p.pronamespace = current_schema()::regnamespace AND p.proname LIKE 'context\_memory\_%'
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %s', fn, path);
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', fn);
        IF split_part(fn::text, '(', 1) LIKE '%\_search' THEN
            -- A search is many reads of a few rows by an index each, and compiling it would take longer than it does.
            EXECUTE format('ALTER FUNCTION %s SET random_page_cost = 1.1', fn);
            EXECUTE format('ALTER FUNCTION %s SET enable_hashjoin = off', fn);
            EXECUTE format('ALTER FUNCTION %s SET enable_mergejoin = off', fn);
            EXECUTE format('ALTER FUNCTION %s SET jit = off', fn);
        END IF;
    END LOOP;
    FOR caller IN SELECT rolname FROM pg_roles
                  WHERE rolname IN ('context_builder_app', 'service_role', 'anon', 'authenticated')
    LOOP
        EXECUTE format('REVOKE ALL ON context_memories, context_memory_frequencies, context_memory_totals FROM %I', caller);
        FOR fn IN SELECT p.oid FROM pg_proc AS p
                  WHERE p.pronamespace = current_schema()::regnamespace AND p.proname LIKE 'context\_memory\_%'
        LOOP
            EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %I', fn, caller);
            IF caller IN ('context_builder_app', 'service_role')
               AND split_part(fn::text, '(', 1) ~ '_(remember|embedded|forget|prepare|search)$' THEN
                EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', fn, caller);
            END IF;
        END LOOP;
        IF caller = 'context_builder_app' THEN
            EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), caller);
        END IF;
    END LOOP;
END
$$;
