-- What a caller may not see takes no place in a search, and a writer who may not see an artifact replaces none. Replaces
-- functions of 004 and 011.

-- A MemoryFilter leaves out memories of some sessions, too.
CREATE OR REPLACE FUNCTION context_memory_condition(filter jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT concat_ws(' AND ',
        'true',
        'm.session_id = ' || quote_literal(filter ->> 'session_id'),
        CASE WHEN (filter ->> 'with_unowned')::boolean IS NOT TRUE THEN concat_ws(' AND ',
            'true', 'm.user_id = ' || quote_literal(filter ->> 'user_id'),
            'm.metadata ->> ''persona_id'' = ' || quote_literal(filter ->> 'persona_id'))
        WHEN coalesce(filter ->> 'user_id', filter ->> 'persona_id') IS NULL THEN 'm.unowned'
        ELSE concat(
            '(m.unowned OR (m.user_id IS NULL', ' OR m.user_id = ' || quote_literal(filter ->> 'user_id'),
            ') AND (m.metadata ->> ''persona_id'' IS NULL',
            ' OR m.metadata ->> ''persona_id'' = ' || quote_literal(filter ->> 'persona_id'), '))')
        END,
        'm.id = ANY (' || quote_literal(nullif(ARRAY(SELECT jsonb_array_elements_text(filter -> 'ids')), '{}')) || ')',
        'coalesce(m.session_id <> ALL (' || quote_literal(nullif(
            ARRAY(SELECT jsonb_array_elements_text(filter -> 'without_sessions')), '{}')) || '), true)',
        'm.speaker = ' || quote_literal(filter ->> 'speaker'),
        'm.said_at >= ' || quote_literal((filter ->> 'since')::timestamptz),
        'm.said_at < ' || quote_literal((filter ->> 'until')::timestamptz),
        'm.kind = ANY (' || quote_literal(nullif(ARRAY(SELECT jsonb_array_elements_text(filter -> 'kinds')), '{}')) || ')',
        'm.tags @> ' || quote_literal(nullif(ARRAY(SELECT jsonb_array_elements_text(filter -> 'tags')), '{}')))
$$;

SELECT context_builder_guard('^context_memory_condition$', '^$');
