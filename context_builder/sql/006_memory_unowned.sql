-- A condition may ask for what belongs to the user and the persona it names or to none, as what was said in a session
-- does: "with_unowned". What belongs to others is not met by it; where it names nobody, what belongs to anybody is not.
CREATE OR REPLACE FUNCTION context_memory_condition(wanted jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT concat_ws(' AND ',
        'true',
        'm.session_id = ' || quote_literal(wanted ->> 'session_id'),
        CASE WHEN (wanted ->> 'with_unowned')::boolean THEN concat(
            '(m.user_id IS NULL', ' OR m.user_id = ' || quote_literal(wanted ->> 'user_id'),
            ') AND (m.metadata ->> ''persona_id'' IS NULL',
            ' OR m.metadata ->> ''persona_id'' = ' || quote_literal(wanted ->> 'persona_id'), ')')
        ELSE concat_ws(' AND ',
            'true', 'm.user_id = ' || quote_literal(wanted ->> 'user_id'),
            'm.metadata ->> ''persona_id'' = ' || quote_literal(wanted ->> 'persona_id')) END,
        'm.said_at >= ' || quote_literal((wanted ->> 'since')::timestamptz),
        'm.said_at < ' || quote_literal((wanted ->> 'until')::timestamptz),
        'm.kind = ANY (' || quote_literal(nullif(ARRAY(SELECT jsonb_array_elements_text(wanted -> 'kinds')), '{}')) || ')',
        'm.tags @> ' || quote_literal(nullif(ARRAY(SELECT jsonb_array_elements_text(wanted -> 'tags')), '{}')))
$$;

-- As in 003, but under a condition too the common words are only looked up where rare ones find too little: almost
-- every search has one now.
CREATE OR REPLACE FUNCTION context_memory_said(tenant text, query text, condition text, depth integer, options jsonb)
RETURNS context_memory_hit[] LANGUAGE plpgsql STABLE AS $$
DECLARE
    words    text[];
    weights  float8[];
    rare     text[];
    said     context_memory_hit[];
    passages text[];
BEGIN
    SELECT array_agg(t.word), array_agg(CASE WHEN options ->> 'rarity' = 'false' THEN 1 ELSE t.weight END),
           array_agg(t.word) FILTER (WHERE t.before < 1000)
    INTO words, weights, rare
    FROM (SELECT *, sum(memories) OVER (ORDER BY memories, word) - memories AS before
          FROM context_memory_terms(tenant, query)) AS t;
    IF words IS NULL THEN
        RETURN '{}';
    END IF;
    said := ARRAY(SELECT h FROM context_memory_by_words(tenant, words, weights, rare, condition, depth) AS h);
    IF condition <> 'true' AND rare <> words AND cardinality(said) < depth THEN
        said := ARRAY(SELECT h FROM context_memory_by_words(tenant, words, weights, words, condition, depth) AS h);
    END IF;
    passages := ARRAY(SELECT h.id FROM unnest(said) AS h WHERE h.position IS NULL LIMIT 1);
    IF options ->> 'lead' = 'true' AND passages <> '{}' THEN
        SELECT array_agg(l.word), array_agg(l.weight) INTO words, weights
        FROM context_memory_lead(tenant, passages, words, weights) AS l;
        said := ARRAY(SELECT h FROM context_memory_by_words(tenant, words, weights, words, condition, depth) AS h);
    END IF;
    RETURN said;
END
$$;

-- A function that is replaced loses its search path.
DO $$
DECLARE
    fn regprocedure;
BEGIN
    FOREACH fn IN ARRAY '{context_memory_condition(jsonb),
                          "context_memory_said(text,text,text,integer,jsonb)"}'::regprocedure[] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp', fn, current_schema());
    END LOOP;
END
$$;
