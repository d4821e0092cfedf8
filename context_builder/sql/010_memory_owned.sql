-- Nearly every search asks for what belongs to nobody. As a column of its own the planner knows how common that is; of the
-- two conditions it is made of it would think that they leave next to nothing, and read all of the tenant to find it.
ALTER TABLE context_memories ADD COLUMN IF NOT EXISTS unowned boolean
    GENERATED ALWAYS AS (user_id IS NULL AND metadata ->> 'persona_id' IS NULL) STORED;

-- As in 006.
CREATE OR REPLACE FUNCTION context_memory_condition(wanted jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT concat_ws(' AND ',
        'true',
        'm.session_id = ' || quote_literal(wanted ->> 'session_id'),
        CASE WHEN (wanted ->> 'with_unowned')::boolean IS NOT TRUE THEN concat_ws(' AND ',
            'true', 'm.user_id = ' || quote_literal(wanted ->> 'user_id'),
            'm.metadata ->> ''persona_id'' = ' || quote_literal(wanted ->> 'persona_id'))
        WHEN coalesce(wanted ->> 'user_id', wanted ->> 'persona_id') IS NULL THEN 'm.unowned'
        ELSE concat(
            '(m.unowned OR (m.user_id IS NULL', ' OR m.user_id = ' || quote_literal(wanted ->> 'user_id'),
            ') AND (m.metadata ->> ''persona_id'' IS NULL',
            ' OR m.metadata ->> ''persona_id'' = ' || quote_literal(wanted ->> 'persona_id'), '))')
        END,
        'm.said_at >= ' || quote_literal((wanted ->> 'since')::timestamptz),
        'm.said_at < ' || quote_literal((wanted ->> 'until')::timestamptz),
        'm.kind = ANY (' || quote_literal(nullif(ARRAY(SELECT jsonb_array_elements_text(wanted -> 'kinds')), '{}')) || ')',
        'm.tags @> ' || quote_literal(nullif(ARRAY(SELECT jsonb_array_elements_text(wanted -> 'tags')), '{}')))
$$;

DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION context_memory_condition(jsonb) SET search_path = pg_catalog, %I, pg_temp', current_schema());
END
$$;
