-- A condition may let through what belongs to no user or persona, as what was said in a session does: "with_unowned".
CREATE OR REPLACE FUNCTION context_memory_condition(wanted jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT concat_ws(' AND ',
        'true',
        'm.session_id = ' || quote_literal(wanted ->> 'session_id'),
        '(m.user_id = ' || quote_literal(wanted ->> 'user_id') || unowned.or_user || ')',
        '(m.metadata ->> ''persona_id'' = ' || quote_literal(wanted ->> 'persona_id') || unowned.or_persona || ')',
        'm.said_at >= ' || quote_literal((wanted ->> 'since')::timestamptz),
        'm.said_at < ' || quote_literal((wanted ->> 'until')::timestamptz),
        'm.kind = ANY (' || quote_literal(nullif(ARRAY(SELECT jsonb_array_elements_text(wanted -> 'kinds')), '{}')) || ')',
        'm.tags @> ' || quote_literal(nullif(ARRAY(SELECT jsonb_array_elements_text(wanted -> 'tags')), '{}')))
    FROM (SELECT CASE WHEN too THEN ' OR m.user_id IS NULL' ELSE '' END AS or_user,
                 CASE WHEN too THEN ' OR m.metadata ->> ''persona_id'' IS NULL' ELSE '' END AS or_persona
          FROM (SELECT coalesce((wanted ->> 'with_unowned')::boolean, false) AS too) AS asked) AS unowned
$$;
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION context_memory_condition SET search_path = pg_catalog, %I, pg_temp', current_schema());
END
$$;
