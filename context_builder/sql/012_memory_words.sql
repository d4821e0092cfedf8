-- A search takes as long as its rare words are common in the tenant, however much the tenant and others remember.

-- A tenant's words as numbers, which an index keeps apart: of two tenants, the same word is two numbers.
CREATE OR REPLACE FUNCTION context_memory_keys(tenant text, words text[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1000 AS $$
    SELECT coalesce(array_agg(hashtextextended(tenant || E'\x1f' || w.word, 0)), '{}') FROM unnest(words) AS w (word)
$$;

CREATE INDEX IF NOT EXISTS context_memories_keys ON context_memories
    USING gin (context_memory_keys(tenant_id, tsvector_to_array(words))) WITH (fastupdate = off);
DROP INDEX IF EXISTS context_memories_words;

-- Where most of a tenant belongs to users, what belongs to nobody is found without reading all that has the words.
CREATE INDEX IF NOT EXISTS context_memories_unowned ON context_memories (tenant_id) WHERE unowned;

-- Any of the words, as a query.
CREATE OR REPLACE FUNCTION context_memory_any(words text[]) RETURNS tsquery LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(string_agg(context_memory_term(w.word), ' | '), '')::tsquery FROM unnest(words) AS w (word)
$$;

-- The words that are looked up: the rarest, until they are in five hundred memories. In a small tenant these are nearly all.
CREATE OR REPLACE FUNCTION context_memory_rare(words text[], counts bigint[]) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(array_agg(w.word) FILTER (WHERE w.before < 500 AND w.count <= 1000), '{}')
    FROM (
        SELECT *, sum(u.count) OVER (ORDER BY u.count, u.word) - u.count AS before
        FROM unnest(words, counts) AS u (word, count)
    ) AS w
$$;

-- The best hits by words, scored by BM25 as in 003, among the memories that have a word of "rare"; if words are given as
-- "common", also among some that have the first of these with one of the next three, and some that have it without.
DROP FUNCTION IF EXISTS context_memory_by_words(text, text[], float8[], text[], text, integer);
CREATE OR REPLACE FUNCTION context_memory_by_words(
    tenant text, words text[], weights float8[], rare text[], common text[], condition text, depth integer
) RETURNS SETOF context_memory_hit
LANGUAGE plpgsql STABLE AS $$
DECLARE
    average float8 := (SELECT greatest(t.words::float8 / greatest(t.memories, 1), 1)
                       FROM context_memory_totals AS t WHERE t.tenant_id = tenant);
    keys    text := 'context_memory_keys(m.tenant_id, tsvector_to_array(m.words))';
    asked   text := format('SELECT m.id, m.session_id, m.position, m.words FROM context_memories AS m
                            WHERE m.tenant_id = $1 AND %s AND ', condition);
    score   text := (
        -- How often a memory has a word: see 003. Here the sum is solved for a single use of ts_rank.
        SELECT string_agg(format('coalesce(%s::float8 / (1 - m.norm + m.norm
                                  / nullif(ts_rank(''{1,1,1,1}'', m.words, %L::tsquery), 0)), 0)', w.weight,
                                 context_memory_term(w.word)), ' + ')
        FROM unnest(words, weights) AS w (word, weight));
    found   text := asked || keys || ' && context_memory_keys($1, $4)';
BEGIN
    IF cardinality(common) > 0 THEN
        asked := asked || 'NOT m.words @@ context_memory_any($4) AND ' || keys || ' @> context_memory_keys($1, $5[1:1]) AND ';
        found := format($found$
            %s UNION ALL (%s %s && context_memory_keys($1, $5[2:4]) LIMIT 2000)
            UNION ALL (%s NOT m.words @@ context_memory_any($5[2:4]) LIMIT 1000)
            $found$, found, asked, keys, asked);
    END IF;
    RETURN QUERY EXECUTE format($hits$
        SELECT m.id, m.session_id, m.position, (%s)::float8 AS score
        FROM (SELECT m.*, 1.184::float8 + 0.79::float8 * length(m.words) / $3 AS norm FROM (%s) AS m OFFSET 0) AS m
        ORDER BY score DESC, m.id LIMIT $2
        $hits$, score, found)
    USING tenant, depth, average, rare, common;
END
$$;

-- The words of a query's best hits that stand alone, see 003, the heaviest first, without the query's own.
DROP FUNCTION IF EXISTS context_memory_lead(text, text[], text[], float8[]);
CREATE OR REPLACE FUNCTION context_memory_lead(tenant text, ids text[], words text[])
RETURNS TABLE (word text, weight float8, memories bigint) LANGUAGE sql STABLE AS $$
    SELECT n.word, 0.2 * n.rarity * n.weight / max(n.weight) OVER (), n.memories
    FROM (
        SELECT l.lexeme AS word, sum(r.rarity) AS weight, max(r.rarity) AS rarity, max(f.memories) AS memories
        FROM context_memories AS m, unnest(m.words) AS l
        JOIN context_memory_frequencies AS f ON f.tenant_id = tenant AND f.word = l.lexeme
        JOIN context_memory_totals AS t ON t.tenant_id = tenant
        CROSS JOIN LATERAL (
            SELECT ln(1 + (greatest(t.memories - f.memories, 0) + 0.5) / (f.memories + 0.5)) AS rarity
        ) AS r
        WHERE m.tenant_id = tenant AND m.id = ANY (ids) AND l.lexeme <> ALL (context_memory_lead.words)
        GROUP BY l.lexeme ORDER BY 2 DESC, 1 LIMIT 20
    ) AS n
$$;

-- What the query's words find: the rare ones, some of the common ones where these find too little, and all where that does
-- too, as under a condition that leaves little. And what the words of the best passages find that these lead on to.
CREATE OR REPLACE FUNCTION context_memory_said(tenant text, query text, condition text, depth integer, options jsonb)
RETURNS context_memory_hit[] LANGUAGE plpgsql STABLE AS $$
DECLARE
    words    text[];
    weights  float8[];
    counts   bigint[];
    rare     text[];
    common   text[] := '{}';
    said     context_memory_hit[];
    passages text[];
BEGIN
    SELECT array_agg(t.word ORDER BY t.memories, t.word),
           array_agg(CASE WHEN options ->> 'rarity' = 'false' THEN 1 ELSE t.weight END ORDER BY t.memories, t.word),
           array_agg(t.memories ORDER BY t.memories, t.word)
    INTO words, weights, counts
    FROM context_memory_terms(tenant, query) AS t;
    IF words IS NULL THEN
        RETURN '{}';
    END IF;
    rare := context_memory_rare(words, counts);
    said := ARRAY(SELECT h FROM context_memory_by_words(tenant, words, weights, rare, common, condition, depth) AS h);
    IF cardinality(said) < depth AND rare <> words THEN
        common := words[cardinality(rare) + 1:];
        said := ARRAY(SELECT h FROM context_memory_by_words(tenant, words, weights, rare, common, condition, depth) AS h);
    END IF;
    IF cardinality(said) < depth AND cardinality(common) > 1 THEN
        rare := words;
        common := '{}';
        said := ARRAY(SELECT h FROM context_memory_by_words(tenant, words, weights, rare, common, condition, depth) AS h);
    END IF;
    passages := ARRAY(SELECT h.id FROM unnest(said) AS h WHERE h.position IS NULL LIMIT 1);
    IF options ->> 'lead' = 'true' AND passages <> '{}' THEN
        SELECT words || array_agg(l.word), weights || array_agg(l.weight),
               rare || context_memory_rare(array_agg(l.word), array_agg(l.memories))
        INTO words, weights, rare
        FROM context_memory_lead(tenant, passages, words) AS l;
        said := ARRAY(SELECT h FROM context_memory_by_words(tenant, words, weights, rare, common, condition, depth) AS h);
    END IF;
    RETURN said;
END
$$;

-- As in 003, the best first, without what is not alike at all.
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
    WHERE score > 0
    GROUP BY id
    ORDER BY CASE WHEN said = '{}' OR meant = '{}' THEN max(score) ELSE sum(1 / (fusion + place)) END DESC, id
$$;

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

-- As in 003; what is near a hit is read in one go, and of the better half of the hits: what the others would add is little.
CREATE OR REPLACE FUNCTION context_memory_spread(
    tenant text, hits context_memory_hit[], neighbours float8[], speaker float8, named tsquery, condition text
) RETURNS TABLE (id text, score float8) LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY EXECUTE format($spread$
        WITH reached AS (
            SELECT h.id, h.score, m.words @@ $5 AS named
            FROM unnest($2) AS h
            JOIN context_memories AS m ON m.tenant_id = $1 AND m.id = h.id
            UNION ALL
            SELECT m.id, h.score * $3[abs(m.position - h.position)], m.named
            FROM unnest($2[:greatest(50, cardinality($2) / 2)]) AS h
            CROSS JOIN LATERAL (
                SELECT m.id, m.position, m.words @@ $5 AS named FROM context_memories AS m
                WHERE m.tenant_id = $1 AND m.session_id = h.session_id AND m.position <> h.position AND %s
                    AND m.position BETWEEN h.position - cardinality($3) AND h.position + cardinality($3)
            ) AS m
        )
        SELECT r.id, sum(r.score) * CASE WHEN bool_or(r.named) THEN $4 ELSE 1 END FROM reached AS r GROUP BY r.id
        $spread$, condition)
    USING tenant, hits, neighbours, speaker, named;
END
$$;

-- What a function loses that is replaced, see 003; and nobody calls these.
DO $$
DECLARE
    fn     regprocedure;
    caller name;
BEGIN
    FOR fn IN SELECT p.oid FROM pg_proc AS p WHERE p.pronamespace = current_schema()::regnamespace
              AND p.proname ~ '^context_memory_(keys|any|rare|by_words|lead|said|fuse|likeness|spread)$'
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp', fn, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', fn);
        FOR caller IN SELECT rolname FROM pg_roles
                      WHERE rolname IN ('context_builder_app', 'service_role', 'anon', 'authenticated')
        LOOP
            EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %I', fn, caller);
        END LOOP;
    END LOOP;
END
$$;
