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

-- The best hits by words. For one word, ts_rank is sum(1/n^2) over its occurrences: a saturation as BM25's, with
-- no more to fetch than the row. Where only a few words are looked up, the rest still counts in the score.
CREATE OR REPLACE FUNCTION context_memory_by_words(
    tenant text, words text[], weights float8[], looked_up text[], condition text, depth integer
) RETURNS TABLE (id text, session_id text, "position" bigint, score float8)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY EXECUTE format($hits$
        SELECT m.id, m.session_id, m.position, ((%s) / (0.8 + 0.2 * length(m.words) / t.average))::float8 AS score
        FROM context_memories AS m, (
            SELECT greatest(o.words::float8 / greatest(o.memories, 1), 1) AS average
            FROM context_memory_totals AS o WHERE o.tenant_id = $1
        ) AS t
        WHERE m.tenant_id = $1 AND m.words @@ %L::tsquery AND %s
        ORDER BY score DESC, m.id LIMIT $2
        $hits$,
        (SELECT string_agg(format('%s * ts_rank(''{1,1,1,1}'', m.words, %L::tsquery)', weight, context_memory_term(word)), ' + ')
         FROM unnest(words, weights) AS w (word, weight)),
        (SELECT string_agg(context_memory_term(word), ' | ') FROM unnest(looked_up) AS l (word)),
        condition)
    USING tenant, depth;
END
$$;

-- The best hits by meaning: cosine similarity, 0 to 1. An index serves one number of dimensions, see context_memory_prepare.
CREATE OR REPLACE FUNCTION context_memory_by_meaning(
    tenant text, by_embedder text, query_embedding real[], condition text, depth integer
) RETURNS TABLE (id text, session_id text, "position" bigint, score float8)
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
CREATE OR REPLACE FUNCTION context_memory_prepare(dimensions integer) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
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
        WHERE m.tenant_id = tenant AND m.id = ANY (ids) AND lexeme <> ALL (words)
        GROUP BY lexeme ORDER BY 2 DESC, lexeme LIMIT 20
    )
    SELECT * FROM unnest(words, weights)
    UNION ALL
    SELECT lexeme, 0.2 * rarity * named.weight / max(named.weight) OVER () FROM named
$$;

-- What fits a query best. Options, for measuring what each is worth: "neighbours" (how much of a hit's score goes to
-- the memories 1, 2, … places before and after it), "speaker" (factor for what is said by whom the query names),
-- "lead" (whether a second search follows what passages name), "rarity" (false: all words weigh alike).
CREATE OR REPLACE FUNCTION context_memory_search(
    tenant text, query text, wanted integer DEFAULT 8, threshold float8 DEFAULT 0, condition jsonb DEFAULT '{}',
    by_embedder text DEFAULT NULL, query_embedding real[] DEFAULT NULL, options jsonb DEFAULT '{}'
) RETURNS TABLE (memory jsonb, score float8, origins text[])
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    met        text := context_memory_condition(condition);
    depth      integer := least(greatest(wanted, 100), 1000);
    words      text[];
    weights    float8[];
    looked_up  text[];
    hits       context_memory_hit[] := '{}';
    passages   text[];
    neighbours float8[] := ARRAY(SELECT jsonb_array_elements_text(options -> 'neighbours')::float8);
BEGIN
    PERFORM context_memory_tenant(tenant);
    -- In a large tenant the common words are not looked up, once rare ones have found enough. A condition
    -- may leave little of what rare words find, so then all are.
    SELECT array_agg(t.word), array_agg(CASE WHEN options ->> 'rarity' = 'false' THEN 1 ELSE t.weight END),
           array_agg(t.word) FILTER (WHERE met <> 'true' OR t.before < 2000)
    INTO words, weights, looked_up
    FROM (SELECT *, coalesce(sum(memories) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) + memories AS before
          FROM context_memory_terms(tenant, query)) AS t;
    RETURN;
END
$$;
