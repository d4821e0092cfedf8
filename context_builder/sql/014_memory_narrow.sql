-- Under a condition that leaves little of a large tenant, what is found has any of the query's words, common ones too.

-- Where most of it belongs to users, what belongs to nobody is found without reading all that has the words.
CREATE INDEX IF NOT EXISTS context_memories_unowned ON context_memories (tenant_id) WHERE unowned;

-- As in 012, but for the third look.
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

-- A function that is replaced loses its search path.
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION context_memory_said(text, text, text, integer, jsonb) SET search_path = pg_catalog, %I, pg_temp',
                   current_schema());
END
$$;
