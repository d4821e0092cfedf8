-- Memory search: BM25 over full text, nearest vectors where pgvector is installed, fused by reciprocal rank.

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

-- Gives a tenant with more than 1,000 vectors a partition of its own, and this an HNSW index for "dimensions": of half-precision
-- vectors up to 4,000, and of the signs of their figures beyond, which is what pgvector's indexes hold. Has to come before anything else in a transaction: it locks the default partition, which others may hold while they wait for this.
CREATE OR REPLACE FUNCTION context_memory_separate(tenant text, dimensions integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    name   text := 'context_memory_vectors_' || md5(tenant);
    schema text := (SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = 'context_memory_vectors'::regclass);
BEGIN
    IF to_regclass(name) IS NULL THEN
        IF (SELECT count(*) FROM (SELECT FROM context_memory_vectors_default WHERE tenant_id = tenant LIMIT 1001) AS v) <= 1000 THEN
            RETURN;
        END IF;
        PERFORM pg_advisory_xact_lock(hashtextextended('context_memory_vectors', 0));
        EXECUTE format('CREATE TABLE %s.%I (LIKE context_memory_vectors, CHECK (tenant_id = %L))', schema, name, tenant);
        EXECUTE format('ALTER TABLE %s.%I ENABLE ROW LEVEL SECURITY', schema, name);
        EXECUTE format('WITH moved AS (DELETE FROM context_memory_vectors_default WHERE tenant_id = $1 RETURNING *)
                        INSERT INTO %s.%I SELECT * FROM moved', schema, name) USING tenant;
        EXECUTE format('ALTER TABLE context_memory_vectors ATTACH PARTITION %s.%I FOR VALUES IN (%L)', schema, name, tenant);
    END IF;
    IF to_regtype('halfvec') IS NOT NULL AND dimensions > 0 AND to_regclass(name || '_' || dimensions) IS NULL THEN
        EXECUTE format('CREATE INDEX IF NOT EXISTS %I ON %s.%I USING hnsw (' || CASE WHEN dimensions <= 4000
                           THEN '(embedding::halfvec(%s)) halfvec_cosine_ops'
                           ELSE '(binary_quantize(embedding::halfvec(%s))::bit(%4$s)) bit_hamming_ops' END
                       || ') WHERE cardinality(embedding) = %4$s', name || '_' || dimensions, schema, name, dimensions);
    END IF;
END
$$;

-- Whether embeddings of so many dimensions can be searched: a half-precision vector has at most 16,000.
CREATE OR REPLACE FUNCTION context_memory_prepare(tenant text, dimensions integer) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN to_regtype('halfvec') IS NOT NULL AND dimensions BETWEEN 1 AND 16000;
END
$$;

-- How many of the tenant's memories another embedder embedded, or this one with another number of dimensions; the latter is
-- told by the oldest of its vectors, so that not all of them are read.
CREATE OR REPLACE FUNCTION context_memory_outdated_count(tenant text, by_embedder text, dimensions integer) RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
DECLARE
    is_resized boolean;
BEGIN
    PERFORM context_memory_tenant(tenant);
    SELECT coalesce(bool_or(cardinality(v.embedding) NOT IN (0, dimensions)), false) INTO is_resized
    FROM (SELECT o.embedding FROM context_memory_vectors AS o
          WHERE o.tenant_id = tenant AND o.embedder = by_embedder LIMIT 20) AS v;
    RETURN (SELECT count(*) FROM context_memory_vectors AS v
            WHERE v.tenant_id = tenant
              AND (v.embedder <> by_embedder OR (is_resized AND cardinality(v.embedding) NOT IN (0, dimensions))));
END
$$;

-- The next of them by their ids, with what an embedding is made from.
CREATE OR REPLACE FUNCTION context_memory_outdated(
    tenant text, by_embedder text, dimensions integer, after text, count integer
) RETURNS TABLE (id text, text text, speaker text, said_at timestamptz, digest text)
LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY
        SELECT m.id, m.text, m.speaker, m.said_at, encode(m.digest, 'hex')
        FROM (
            SELECT v.id FROM context_memory_vectors AS v
            WHERE v.tenant_id = tenant AND v.id > after
              AND (v.embedder <> by_embedder OR cardinality(v.embedding) NOT IN (0, dimensions))
            ORDER BY v.id LIMIT count
        ) AS v
        JOIN context_memories AS m ON m.tenant_id = tenant AND m.id = v.id
        ORDER BY m.id;
END
$$;

-- Some of the tenant's memories that have no embedding yet, with what one is made from.
CREATE OR REPLACE FUNCTION context_memory_unembedded(tenant text, count integer)
RETURNS TABLE (id text, text text, speaker text, said_at timestamptz, digest text)
LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY
        SELECT m.id, m.text, m.speaker, m.said_at, encode(m.digest, 'hex')
        FROM (SELECT p.id FROM context_memory_pending AS p WHERE p.tenant_id = tenant LIMIT count) AS p
        JOIN context_memories AS m ON m.tenant_id = tenant AND m.id = p.id;
END
$$;

-- How many these are.
CREATE OR REPLACE FUNCTION context_memory_unembedded_count(tenant text) RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN (SELECT count(*) FROM context_memory_pending AS p WHERE p.tenant_id = tenant);
END
$$;

-- Adds embeddings, an array of {id, digest, embedding}, to memories whose text is still the one that was embedded.
CREATE OR REPLACE FUNCTION context_memory_embed(tenant text, by_embedder text, embeddings jsonb) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    embedded_count bigint;
BEGIN
    PERFORM context_memory_tenant(tenant);
    PERFORM pg_advisory_xact_lock(hashtextextended('context_memories ' || tenant, 0));
    PERFORM context_memory_separate(tenant, (SELECT max(jsonb_array_length(e -> 'embedding'))
                                             FROM jsonb_array_elements(embeddings) AS e));
    WITH fitting AS MATERIALIZED (
        SELECT m.id, e.embedding
        FROM jsonb_to_recordset(embeddings) AS e (id text, digest text, embedding real[])
        JOIN context_memories AS m ON m.tenant_id = tenant AND m.id = e.id AND m.digest IS NOT DISTINCT FROM decode(e.digest, 'hex')
    ), named AS (  -- mostly none: they were remembered with the name of what embeds them
        UPDATE context_memories AS m SET embedder = by_embedder FROM fitting AS f
        WHERE m.tenant_id = tenant AND m.id = f.id AND m.embedder IS DISTINCT FROM by_embedder
    ), done AS (
        DELETE FROM context_memory_pending AS p USING fitting AS f WHERE p.tenant_id = tenant AND p.id = f.id
    )
    INSERT INTO context_memory_vectors AS v (tenant_id, id, embedder, embedding)
    SELECT tenant, f.id, by_embedder, f.embedding FROM fitting AS f
    ON CONFLICT (tenant_id, id) DO UPDATE SET embedder = EXCLUDED.embedder, embedding = EXCLUDED.embedding;
    GET DIAGNOSTICS embedded_count = ROW_COUNT;
    RETURN embedded_count;
END
$$;

-- A lexeme as a quoted term of a tsquery.
CREATE OR REPLACE FUNCTION context_memory_term(word text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT '''' || replace(replace(word, '\', '\\'), '''', '''''') || ''''
$$;

-- Any of the words, as a tsquery.
CREATE OR REPLACE FUNCTION context_memory_any(words text[]) RETURNS tsquery LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(string_agg(context_memory_term(w.word), ' | '), '')::tsquery FROM unnest(words) AS w (word)
$$;

-- A tenant's words as numbers that differ from another tenant's, so that one index keeps tenants apart and a search takes
-- as long as its rare words are common in this tenant, however much others remember.
CREATE OR REPLACE FUNCTION context_memory_keys(tenant text, words text[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1000 AS $$
    SELECT coalesce(array_agg(hashtextextended(tenant || E'\x1f' || w.word, 0)), '{}') FROM unnest(words) AS w (word)
$$;

-- What is new waits in a list, which a search looks through, until that is larger than 64 kB and all of it is sorted in at
-- once: a call touches each word's entry once, not once for each memory.
CREATE INDEX IF NOT EXISTS context_memories_keys ON context_memories
    USING gin (context_memory_keys(tenant_id, tsvector_to_array(words))) WITH (fastupdate = on, gin_pending_list_limit = 64);

-- The query's lexemes in every language that the tenant has memories of, with the place of the word that each is of.
CREATE OR REPLACE FUNCTION context_memory_lexemes(tenant text, query text)
RETURNS TABLE (word text, place integer) LANGUAGE sql STABLE AS $$
    SELECT DISTINCT ON (s.lexeme) s.lexeme, s.positions[1]::integer
    FROM (
        SELECT 'english' AS language
        UNION ALL
        SELECT l.language FROM unnest(context_memory_languages()) AS l (language)
        JOIN context_memory_frequencies AS f ON f.tenant_id = tenant AND f.word = context_memory_language_mark(l.language)
        WHERE f.memories > 0
    ) AS l, unnest(context_memory_stems(left(query, 10000), l.language)) AS s
    ORDER BY s.lexeme, 2
$$;

-- The query's words that some memory of the tenant has, the rarest first, each with BM25's inverse document frequency.
CREATE OR REPLACE FUNCTION context_memory_terms(tenant text, query text)
RETURNS TABLE (word text, weight float8, memories bigint) LANGUAGE sql STABLE AS $$
    SELECT f.word, ln(1 + (greatest(t.memories - f.memories, 0) + 0.5) / (f.memories + 0.5)), f.memories
    FROM context_memory_lexemes(tenant, query) AS q
    JOIN context_memory_frequencies AS f ON f.tenant_id = tenant AND f.word = q.word
    JOIN context_memory_totals AS t ON t.tenant_id = tenant
    WHERE f.memories > 0
    ORDER BY f.memories, f.word
    LIMIT 32
$$;

-- The words that are looked up: the rarest, until they are in five hundred memories. In a small tenant these are nearly all.
CREATE OR REPLACE FUNCTION context_memory_rare(words text[], counts bigint[]) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(array_agg(w.word) FILTER (WHERE w.before < 500 AND w.count <= 1000), '{}')
    FROM (
        SELECT *, sum(u.count) OVER (ORDER BY u.count, u.word) - u.count AS before
        FROM unnest(words, counts) AS u (word, count)
    ) AS w
$$;

-- Whether a filter admits nothing but what not everybody may see, as the search for what is denied does.
CREATE OR REPLACE FUNCTION context_memory_is_of_hidden(filter jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(filter -> 'sensitivities' <@ '["confidential", "restricted"]' AND filter -> 'sensitivities' <> '[]', false)
$$;

-- Whether a filter admits nothing at all, since the tenant has nothing that is hidden: one look into an index of these alone.
CREATE OR REPLACE FUNCTION context_memory_admits_nothing(tenant text, filter jsonb) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF NOT context_memory_is_of_hidden(filter) THEN
        RETURN false;
    END IF;
    RETURN NOT EXISTS (
        SELECT FROM context_artifacts AS a
        WHERE a.tenant_id = split_part(tenant, chr(31), 1) AND a.is_current
          AND a.sensitivity IN ('confidential', 'restricted') AND filter -> 'sensitivities' ? a.sensitivity);
END
$$;

-- Whether a filter's session, user, times or hidden sensitivities let so few memories through that to read all of these is quicker than to look for
-- them in an index of everybody's: of n memories of which k pass, some 50 n / k are read there until 50 pass. Counted, because
-- what the planner knows of sessions and users is of all tenants together. One condition that is selective is enough.
CREATE OR REPLACE FUNCTION context_memory_is_narrow(tenant text, filter jsonb) RETURNS boolean
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    enough    bigint;
    of_hidden boolean := context_memory_is_of_hidden(filter);
BEGIN
    IF NOT (filter ?| '{session_id,user_id,since,until}' OR of_hidden) THEN
        RETURN false;
    END IF;
    enough := 1 + least(sqrt(50.0 * coalesce((SELECT t.memories FROM context_memory_totals AS t WHERE t.tenant_id = tenant), 0)), 5000);
    RETURN (filter ? 'session_id' AND enough > (SELECT count(*) FROM (
                SELECT FROM context_memories AS m
                WHERE m.tenant_id = tenant AND m.session_id = filter ->> 'session_id' LIMIT enough) AS of_session))
        OR (filter ? 'user_id' AND enough > (SELECT count(*) FROM (
                (SELECT FROM context_memories AS m
                 WHERE m.tenant_id = tenant AND m.user_id = filter ->> 'user_id' LIMIT enough)
                UNION ALL
                (SELECT FROM context_memories AS m
                 WHERE (filter ->> 'with_unowned')::boolean AND m.tenant_id = tenant AND m.user_id IS NULL LIMIT enough)) AS of_user))
        OR (filter ?| '{since,until}' AND enough > (SELECT count(*) FROM (
                SELECT FROM context_memories AS m
                WHERE m.tenant_id = tenant AND m.said_at >= coalesce((filter ->> 'since')::timestamptz, '-infinity')
                  AND m.said_at < coalesce((filter ->> 'until')::timestamptz, 'infinity') LIMIT enough) AS of_times))
        OR (of_hidden AND enough > (SELECT count(*) FROM (
                SELECT FROM context_artifacts AS a
                JOIN context_memories AS m ON m.tenant_id = tenant AND m.session_id = context_memory_key(
                    CASE WHEN strpos(tenant, chr(31)) > 0 THEN a.ref ELSE substr(a.ref, 9) END)  -- behind "session:"
                WHERE a.tenant_id = split_part(tenant, chr(31), 1) AND a.is_current
                  AND a.sensitivity IN ('confidential', 'restricted') AND filter -> 'sensitivities' ? a.sensitivity
                LIMIT enough) AS hidden));
END
$$;

-- The best hits by words, scored by BM25 (k = 1.2, b = 0.4), among the memories that have one of the "rare" words; with
-- "common" words also among some that have the first two of these, and some that have the first without the second.
-- How often a memory has a word is read from ts_rank, which for one word is r = 6/pi^2 * sum(1/n^2) over its
-- occurrences, so that there are about 0.608 r / (1 - r). The length of a memory is its number of different words.
CREATE OR REPLACE FUNCTION context_memory_by_words(
    tenant text, words text[], weights float8[], rare text[], common text[], condition text, narrow boolean, depth integer
) RETURNS SETOF context_memory_hit
LANGUAGE plpgsql STABLE AS $$
DECLARE
    average float8 := (SELECT greatest(t.words::float8 / greatest(t.memories, 1), 1)
                       FROM context_memory_totals AS t WHERE t.tenant_id = tenant);
    keys    text := 'context_memory_keys(m.tenant_id, tsvector_to_array(m.words))';
    -- Keys are the tenant's own. Where nothing else of the condition is in an index, that of the tenant is kept out of the
    -- plan: to find all its memories, to look for some hundred among them, takes longer than all the rest. Where the
    -- condition is narrow it is the keys that are kept out.
    matching   text := format('SELECT m.id, m.session_id, m.position, m.words FROM context_memories AS m
                            WHERE m.tenant_id %s = $1 AND %s AND ',
                              CASE WHEN narrow OR condition ~ 'm\.(session_id|user_id|said_at) ' THEN '' ELSE '|| ''''' END, condition);
    has_any text := CASE WHEN narrow THEN 'm.words @@ context_memory_any($4)' ELSE keys || ' && context_memory_keys($1, $4)' END;
    has_all text := CASE WHEN narrow THEN 'tsvector_to_array(m.words) @> (' ELSE keys || ' @> context_memory_keys($1, ' END;
    score   text := (
        -- BM25's sum, solved for a single use of ts_rank.
        SELECT string_agg(format('coalesce(%s::float8 / (1 - m.norm + m.norm
                                  / nullif(ts_rank(''{1,1,1,1}'', m.words, %L::tsquery), 0)), 0)', w.weight,
                                 context_memory_term(w.word)), ' + ')
        FROM unnest(words, weights) AS w (word, weight));
    found   text := matching || has_any;
BEGIN
    IF cardinality(common) > 0 THEN
        matching := matching || 'NOT m.words @@ context_memory_any($4) AND ' || has_all;
        found := format('%s UNION ALL (%s $5[1:2]) LIMIT 1000)', found, matching);
    END IF;
    IF cardinality(common) > 1 THEN
        found := format($found$
            %s UNION ALL (SELECT * FROM (%s $5[1:1]) LIMIT 1500) AS m
                          WHERE NOT m.words @@ context_memory_any($5[2:2]) LIMIT 500)
            $found$, found, matching);
    END IF;
    RETURN QUERY EXECUTE format($hits$
        SELECT m.id, m.session_id, m.position, (%s)::float8 AS score
        FROM (SELECT m.*, 1.184::float8 + 0.79::float8 * length(m.words) / $3 AS norm FROM (%s) AS m OFFSET 0) AS m
        ORDER BY score DESC, m.id LIMIT $2
        $hits$, score, found)
    USING tenant, depth, average, rare, common;
END
$$;

-- The best hits by embedding: cosine similarity, 0 to 1. A small tenant's vectors are compared one by one, and so are those of
-- a narrow condition; else a large tenant's index is read on until there are enough hits that meet the condition, where
-- pgvector can (0.8 and later), or it has read 20,000. Beyond 4,000 dimensions the index gives those whose figures have the
-- most signs in common, several times as many as are wanted, of which the most alike count.
CREATE OR REPLACE FUNCTION context_memory_by_embedding(
    tenant text, by_embedder text, query_embedding real[], condition text, narrow boolean, depth integer
) RETURNS SETOF context_memory_hit
LANGUAGE plpgsql AS $$
DECLARE
    coarse integer := CASE WHEN to_regclass('context_memory_vectors_' || md5(tenant)) IS NULL THEN 1001 ELSE 8 * depth END;
BEGIN
    IF query_embedding IS NULL OR to_regtype('halfvec') IS NULL OR cardinality(query_embedding) > 16000 THEN
        RETURN;
    END IF;
    IF narrow THEN
        -- OFFSET 0: each memory's vector is looked up, whatever the planner expects.
        RETURN QUERY EXECUTE format($hits$
            SELECT m.id, m.session_id, m.position, greatest(1 - v.distance, 0)
            FROM (
                SELECT m.id, m.session_id, m.position FROM context_memories AS m WHERE m.tenant_id = %2$L AND %3$s OFFSET 0
            ) AS m
            CROSS JOIN LATERAL (
                SELECT v.embedding::halfvec(%1$s) <=> $3::halfvec(%1$s) AS distance FROM context_memory_vectors AS v
                WHERE v.tenant_id = %2$L AND v.id = m.id AND cardinality(v.embedding) = %1$s AND v.embedder = $1 OFFSET 0
            ) AS v
            ORDER BY v.distance LIMIT $2
            $hits$, cardinality(query_embedding), tenant, condition)
        USING by_embedder, depth, query_embedding;
        RETURN;
    END IF;
    PERFORM '[1]'::halfvec;  -- loads pgvector, and with it its settings
    PERFORM set_config('hnsw.ef_search', least(greatest(depth, 40), 1000)::text, true);
    IF current_setting('hnsw.iterative_scan', true) IS NOT NULL THEN
        PERFORM set_config('hnsw.iterative_scan', 'strict_order', true);
    END IF;
    IF cardinality(query_embedding) > 4000 THEN
        RETURN QUERY EXECUTE format($hits$
            SELECT v.id, v.session_id, v.position, greatest(1 - (v.embedding::halfvec(%1$s) <=> $3::halfvec(%1$s)), 0) AS score
            FROM (
                SELECT v.id, m.session_id, m.position, v.embedding
                FROM context_memory_vectors AS v
                JOIN context_memories AS m ON m.tenant_id = %2$L AND m.id = v.id AND %3$s
                WHERE v.tenant_id = %2$L AND cardinality(v.embedding) = %1$s AND v.embedder = $1
                ORDER BY binary_quantize(v.embedding::halfvec(%1$s))::bit(%1$s) <~> binary_quantize($3::halfvec(%1$s))::bit(%1$s)
                LIMIT $4
            ) AS v
            ORDER BY score DESC LIMIT $2
            $hits$, cardinality(query_embedding), tenant, condition)
        USING by_embedder, depth, query_embedding, coarse;
        RETURN;
    END IF;
    RETURN QUERY EXECUTE format($hits$
        SELECT m.id, m.session_id, m.position, greatest(1 - v.distance, 0)
        FROM (
            SELECT v.id, v.embedding::halfvec(%1$s) <=> $3::halfvec(%1$s) AS distance
            FROM context_memory_vectors AS v
            WHERE v.tenant_id = %2$L AND cardinality(v.embedding) = %1$s AND v.embedder = $1
            ORDER BY v.embedding::halfvec(%1$s) <=> $3::halfvec(%1$s)
        ) AS v
        JOIN context_memories AS m ON m.tenant_id = %2$L AND m.id = v.id AND %3$s
        ORDER BY v.distance LIMIT $2
        $hits$, cardinality(query_embedding), tenant, condition)
    USING by_embedder, depth, query_embedding;
END
$$;

-- Query expansion: the weightiest words of the best passages beside the query's own, at two fifths of their weight.
CREATE OR REPLACE FUNCTION context_memory_expansion(tenant text, ids text[], words text[])
RETURNS TABLE (word text, weight float8, memories bigint) LANGUAGE sql STABLE AS $$
    SELECT n.word, 0.4 * n.rarity * n.weight / max(n.weight) OVER (), n.memories
    FROM (
        SELECT l.lexeme AS word, sum(r.rarity) AS weight, max(r.rarity) AS rarity, max(f.memories) AS memories
        FROM context_memories AS m, unnest(m.words) AS l
        JOIN context_memory_frequencies AS f ON f.tenant_id = tenant AND f.word = l.lexeme
        JOIN context_memory_totals AS t ON t.tenant_id = tenant
        CROSS JOIN LATERAL (
            SELECT ln(1 + (greatest(t.memories - f.memories, 0) + 0.5) / (f.memories + 0.5)) AS rarity
        ) AS r
        WHERE m.tenant_id = tenant AND m.id = ANY (ids) AND l.lexeme <> ALL (context_memory_expansion.words)
            AND left(l.lexeme, 1) <> chr(31)  -- marks a language
        GROUP BY l.lexeme ORDER BY 2 DESC, 1 LIMIT 40
    ) AS n
$$;

-- Full-text hits: by the rare words, by some common ones where these find too few, by all where that does too (as under
-- a selective condition); then expanded by the words of the best hit, if it stands alone.
CREATE OR REPLACE FUNCTION context_memory_full_text(
    tenant text, query text, condition text, narrow boolean, depth integer, options jsonb
) RETURNS context_memory_hit[] LANGUAGE plpgsql STABLE AS $$
DECLARE
    words    text[];
    weights  float8[];
    counts   bigint[];
    rare     text[];
    common   text[] := '{}';
    hits     context_memory_hit[] := '{}';
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
    IF rare = words OR depth <= (SELECT sum(w.count) FROM unnest(words, counts) AS w (word, count) WHERE w.word = ANY (rare)) THEN
        hits := ARRAY(SELECT h FROM context_memory_by_words(tenant, words, weights, rare, common, condition, narrow, depth) AS h);
    END IF;
    IF cardinality(hits) < depth AND rare <> words THEN
        common := words[cardinality(rare) + 1:];
        hits := ARRAY(SELECT h FROM context_memory_by_words(tenant, words, weights, rare, common, condition, narrow, depth) AS h);
    END IF;
    IF cardinality(hits) < depth AND cardinality(common) > 1 THEN
        rare := words;
        common := '{}';
        hits := ARRAY(SELECT h FROM context_memory_by_words(tenant, words, weights, rare, common, condition, narrow, depth) AS h);
    END IF;
    passages := ARRAY(SELECT h.id FROM unnest(hits[:1]) AS h WHERE h.position IS NULL);
    IF options ->> 'lead' = 'true' AND passages <> '{}' THEN
        SELECT words || array_agg(l.word), weights || array_agg(l.weight),
               rare || context_memory_rare(array_agg(l.word), array_agg(l.memories))
        INTO words, weights, rare
        FROM context_memory_expansion(tenant, passages, words) AS l;
        hits := ARRAY(SELECT h FROM context_memory_by_words(tenant, words, weights, rare, common, condition, narrow, depth) AS h);
    END IF;
    RETURN hits;
END
$$;

-- Full-text and vector hits as one list by reciprocal rank (Cormack et al. 2009), the former weighing "words" times; one
-- list alone keeps its own scores. What waits for its embedding has the rank by meaning that it has by words. "seed" is the
-- score with words weighing "seed_words" times.
CREATE OR REPLACE FUNCTION context_memory_fuse(
    tenant text, by_text context_memory_hit[], by_vector context_memory_hit[], fusion float8, words float8, seed_words float8
) RETURNS TABLE (hit context_memory_hit, origins text[], seed float8) LANGUAGE sql STABLE AS $$
    SELECT ROW(id, min(session_id), min(position),
               CASE WHEN by_text = '{}' OR by_vector = '{}' THEN max(score) ELSE sum(weight / (fusion + place)) END)::context_memory_hit,
           array_agg(origin ORDER BY origin),
           CASE WHEN by_text = '{}' OR by_vector = '{}' THEN max(score) ELSE sum(seed_weight / (fusion + place)) END
    FROM (
        SELECT 'full_text' AS origin, words + w.meaning AS weight, seed_words + w.meaning AS seed_weight, h.*
        FROM unnest(by_text) WITH ORDINALITY AS h (id, session_id, position, score, place)
        LEFT JOIN context_memory_pending AS p ON p.tenant_id = tenant AND p.id = h.id
        CROSS JOIN LATERAL (
            SELECT CASE WHEN p.id IS NULL OR h.id IN (SELECT v.id FROM unnest(by_vector) AS v) THEN 0 ELSE 1 END
        ) AS w (meaning)
        UNION ALL
        SELECT 'vector', 1, 1, h.* FROM unnest(by_vector) WITH ORDINALITY AS h (id, session_id, position, score, place)
    ) AS ranked
    WHERE score > 0
    GROUP BY id
    ORDER BY CASE WHEN by_text = '{}' OR by_vector = '{}' THEN max(score) ELSE sum(weight / (fusion + place)) END DESC, id
$$;

-- Adds neighbours: a share of each hit's score goes to the memories 1, 2, … places before and after it in its session,
-- of the better half of the hits. What is said by somebody the query names counts "speaker" times. OFFSET 0: the places are
-- looked up, where the planner, expecting little of a session that a condition names, would read all of it for each hit.
CREATE OR REPLACE FUNCTION context_memory_neighbours(
    tenant text, hits context_memory_hit[], neighbours float8[], speaker float8, named tsquery, condition text
) RETURNS TABLE (id text, score float8) LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF neighbours = '{}' AND speaker = 1 THEN
        RETURN QUERY SELECT h.id, h.score FROM unnest(hits) AS h;
        RETURN;
    END IF;
    RETURN QUERY EXECUTE format($neighbours$
        WITH scored AS (
            SELECT h.id, h.score, m.words @@ $5 AS named
            FROM unnest($2) AS h
            JOIN context_memories AS m ON m.tenant_id = $1 AND m.id = h.id
            UNION ALL
            SELECT m.id, h.score * $3[abs(m.position - h.position)], m.named
            FROM unnest($2[:greatest(50, cardinality($2) / 2)]) AS h
            CROSS JOIN LATERAL (
                SELECT m.id, m.position, m.words @@ $5 AS named FROM context_memories AS m
                WHERE cardinality($3) > 0 AND m.tenant_id = $1 AND m.session_id = h.session_id AND m.position <> h.position AND %s
                    AND m.position BETWEEN h.position - cardinality($3) AND h.position + cardinality($3)
                OFFSET 0
            ) AS m
        )
        SELECT r.id, sum(r.score) * CASE WHEN bool_or(r.named) THEN $4 ELSE 1 END FROM scored AS r GROUP BY r.id
        $neighbours$, condition)
    USING tenant, hits, neighbours, speaker, named;
END
$$;

-- How relevant the best of these memories is: the fourth root of its share in the weight of the query's eight rarest words.
-- The root, because one telling word of several is much. A word that no memory has is as rare as can be, so that a
-- query about something else finds nothing relevant; where no memory has any of the words, relevance is 0. A word that
-- few memories have, and none of these, counts as one that none has: who may not see the few does not learn of them.
-- Fifty further memories without any of the words are assumed: among a handful of memories alone, a word that none of them
-- has would weigh several times as much as those that they have.
CREATE OR REPLACE FUNCTION context_memory_relevance(tenant text, query text, ids text[]) RETURNS float8
LANGUAGE plpgsql STABLE AS $$
DECLARE
    terms   text[];
    weights float8[];
    whole   float8;
    seen    text[] := ARRAY(SELECT DISTINCT l.lexeme FROM context_memories AS m, unnest(m.words) AS l
                            WHERE m.tenant_id = tenant AND m.id = ANY (ids));
BEGIN
    SELECT array_agg(a.word), array_agg(a.weight), sum(a.weight) FILTER (WHERE a.place <= 8) INTO terms, weights, whole
    FROM (
        SELECT w.word, w.weight, row_number() OVER (ORDER BY w.weight DESC, w.word) AS place
        FROM (
            SELECT DISTINCT ON (a.place)  -- of a word's stems in several languages, the one that is there
                   a.word, ln(1 + (greatest(t.memories - known.memories, 0) + 50.5) / (known.memories + 0.5)) AS weight
            FROM context_memory_totals AS t, context_memory_lexemes(tenant, query) AS a
            LEFT JOIN context_memory_frequencies AS f ON f.tenant_id = tenant AND f.word = a.word
            CROSS JOIN LATERAL (
                SELECT CASE WHEN f.memories >= 50 OR a.word = ANY (seen) THEN coalesce(f.memories, 0) ELSE 0 END
            ) AS known (memories)
            WHERE t.tenant_id = tenant
            ORDER BY a.place, known.memories DESC
        ) AS w ORDER BY place LIMIT 32
    ) AS a;
    RETURN sqrt(sqrt(least(coalesce(max(matched.weight) / whole, 0), 1))) FROM (
        SELECT (SELECT sum(a.weight) FROM unnest(terms, weights) AS a (word, weight)
                WHERE a.word = ANY (tsvector_to_array(m.words))) AS weight
        FROM context_memories AS m WHERE m.tenant_id = tenant AND m.id = ANY (ids)
    ) AS matched;
END
$$;

-- The cosine similarity (0..1) of a query and whichever of these memories is most alike; null where none is embedded.
CREATE OR REPLACE FUNCTION context_memory_likeness(tenant text, by_embedder text, query_embedding real[], ids text[]) RETURNS float8
LANGUAGE plpgsql STABLE AS $$
DECLARE
    likeness float8;
BEGIN
    IF query_embedding IS NOT NULL AND to_regtype('halfvec') IS NOT NULL AND cardinality(query_embedding) <= 16000 THEN
        EXECUTE format($likeness$
            SELECT max(1 - (v.embedding::halfvec(%1$s) <=> $3::halfvec(%1$s))) FROM context_memory_vectors AS v
            WHERE v.tenant_id = $1 AND v.id = ANY ($4) AND cardinality(v.embedding) = %1$s AND v.embedder = $2
            $likeness$, cardinality(query_embedding))
        INTO likeness USING tenant, by_embedder, query_embedding, ids;
    END IF;
    RETURN likeness;
END
$$;

-- What fits a query best, the best first. A score is the root of the share of the best hit's, times how relevant the best
-- ten are: by their words, or by meaning if that is more, so a threshold means the same in every search. Of equal texts
-- only the best is returned. "options" holds the fields of SearchOptions; "texts" is false for memories without theirs.
-- "towards" is the embedding that memories are ranked by in place of the query's, which still tells how relevant they are.
-- With "seed_words", each has its score with words weighing so much, as "seed".
CREATE OR REPLACE FUNCTION context_memory_search(
    tenant text, query text, wanted integer DEFAULT 8, threshold float8 DEFAULT 0, condition jsonb DEFAULT '{}',
    by_embedder text DEFAULT NULL, query_embedding real[] DEFAULT NULL, options jsonb DEFAULT '{}'
) RETURNS TABLE (memory jsonb, score float8, origins text[], seed float8)
LANGUAGE plpgsql SECURITY DEFINER AS $$
#variable_conflict use_column
DECLARE
    where_clause text;
    narrow       boolean;
    depth        integer := least(greatest(wanted, 50), 1000);
    seed_words   float8 := (options ->> 'seed_words')::float8;
    neighbours   float8[] := ARRAY(SELECT jsonb_array_elements_text(options -> 'neighbours')::float8);
    speakers     tsquery;
    towards      real[] := translate(options ->> 'towards', '[]', '{}');
    by_text      context_memory_hit[];
    by_vector    context_memory_hit[];
BEGIN
    PERFORM context_memory_tenant(tenant);
    IF context_memory_admits_nothing(tenant, condition) THEN
        RETURN;
    END IF;
    options := options - 'towards';  -- some options are looked up for each hit
    where_clause := context_memory_condition(condition || jsonb_build_object('tenant', tenant));
    speakers := array_to_string(ARRAY(SELECT context_memory_term(word) || ':A'
                  FROM context_memory_lexemes(tenant, query) AS a), ' | ')::tsquery;
    narrow := context_memory_is_narrow(tenant, condition);
    by_text := context_memory_full_text(tenant, query, where_clause, narrow, depth, options);
    by_vector := ARRAY(SELECT h FROM context_memory_by_embedding(tenant, by_embedder, coalesce(towards, query_embedding), where_clause,
                                                                 narrow, depth) AS h);
    RETURN QUERY
        WITH hits AS MATERIALIZED (
            SELECT hit, origins, seed
            FROM context_memory_fuse(tenant, by_text, by_vector, coalesce((options ->> 'fusion')::float8, 10),
                                     coalesce((options ->> 'words')::float8, 1), seed_words)
        ), spread AS (
            -- Grouped and not joined: without hash joins, a join would compare every hit with every other.
            SELECT id, sqrt(sum(score) / max(sum(score)) OVER ()) AS share, max(origins) AS origins,
                   sqrt(max(seed) / max(max(seed)) OVER ()) AS seed
            FROM (
                SELECT n.id, n.score, NULL::text[] AS origins, NULL::float8 AS seed
                FROM context_memory_neighbours(tenant, ARRAY(SELECT hit FROM hits), neighbours,
                                               coalesce((options ->> 'speaker')::float8, 1), speakers, where_clause) AS n
                UNION ALL
                SELECT (hit).id, 0, origins, seed FROM hits
            ) AS s GROUP BY id
        ), best AS (
            SELECT DISTINCT ON (CASE WHEN options ->> 'repeats' = 'true' THEN m.id ELSE md5(m.text) END) m, s.share, s.origins, s.seed
            FROM (SELECT * FROM spread ORDER BY share DESC, id LIMIT 2 * wanted) AS s
            JOIN context_memories AS m ON m.tenant_id = tenant AND m.id = s.id
            ORDER BY CASE WHEN options ->> 'repeats' = 'true' THEN m.id ELSE md5(m.text) END, s.share DESC, m.id
        ), first AS MATERIALIZED (
            SELECT * FROM best ORDER BY share DESC, (m).id LIMIT wanted
        ), top AS (
            SELECT ARRAY(SELECT (m).id FROM first ORDER BY share DESC, (m).id LIMIT 10) AS ids
        ), relevant AS MATERIALIZED (
            SELECT least(greatest(
                (SELECT context_memory_relevance(tenant, query, top.ids) FROM top),
                CASE WHEN towards IS NULL
                     THEN (SELECT max(h.score) FROM top, unnest(by_vector) AS h WHERE h.id = ANY (top.ids))
                     ELSE (SELECT context_memory_likeness(tenant, by_embedder, query_embedding, top.ids) FROM top) END, 0), 1) AS similarity
        )
        SELECT CASE WHEN options ->> 'texts' = 'false' THEN context_memory_place(first.m) ELSE context_memory_json(first.m) END,
               first.share * relevant.similarity, coalesce(first.origins, '{neighbour}'),
               CASE WHEN seed_words IS NOT NULL THEN first.seed * relevant.similarity END
        FROM first
        CROSS JOIN relevant
        WHERE first.share * relevant.similarity >= threshold
        ORDER BY first.share DESC, (first.m).id;
END
$$;

SELECT context_builder_guard(
    '^context_memory_', '^context_memory_(remember|unembedded|unembedded_count|outdated|outdated_count|embed|prepare|search|newest|rate|forget)$',
    '{context_memories,context_memory_pending,context_memory_vectors,context_memory_vectors_default,context_memory_frequencies,context_memory_totals}',
    inlined => '^context_memory_(json|place)$',
    beside => (SELECT quote_ident(n.nspname) FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
               WHERE e.extname = 'vector' AND n.nspname <> current_schema()));

SELECT context_builder_by_index('^context_memory_(search|newest|unembedded|outdated|is_narrow|admits_nothing)$');

-- A search joins few rows, each of which an index finds.
DO $$
DECLARE
    fn regprocedure;
BEGIN
    FOR fn IN SELECT p.oid FROM pg_proc AS p
              WHERE p.pronamespace = current_schema()::regnamespace AND p.proname = 'context_memory_search'
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET enable_hashjoin = off', fn);
        EXECUTE format('ALTER FUNCTION %s SET enable_mergejoin = off', fn);
    END LOOP;
END
$$;
