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

-- Who may not see an artifact does not replace it, though the artifact says so, as it may of one that is not there.
ALTER TABLE context_artifacts ADD COLUMN IF NOT EXISTS supersedes_is_refused boolean;

-- What a program is shown of an artifact; "superseded_by" is the one that replaces it.
CREATE OR REPLACE FUNCTION context_knowledge_artifact(a context_artifacts) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'ref', a.ref, 'version', a.version, 'current', a.is_current, 'kind', a.kind, 'title', a.title,
        'content', a.content, 'project_id', a.project_id, 'module_id', a.module_id, 'status', a.status,
        'sensitivity', a.sensitivity, 'type', a.type, 'tags', a.tags, 'source', a.source, 'supersedes', a.supersedes,
        'created_at', a.created_at, 'updated_at', a.updated_at,
        'superseded_by', (SELECT min(s.ref) FROM context_artifacts AS s
                          WHERE s.tenant_id = a.tenant_id AND s.supersedes = a.ref AND s.is_current
                            AND s.supersedes_is_refused IS NOT TRUE AND s.ref <> a.ref))
$$;

-- The artifacts of these refs, as they are found: without the content of those longer than "longest" characters.
CREATE OR REPLACE FUNCTION context_knowledge_nodes(tenant text, refs text[], longest integer)
RETURNS SETOF jsonb LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY SELECT jsonb_build_object(
        'ref', a.ref, 'version', a.version, 'kind', a.kind, 'title', a.title,
        'content', CASE WHEN length(a.content) <= longest THEN a.content END, 'project', a.project_id,
        'module', a.module_id, 'status', a.status, 'sensitivity', a.sensitivity, 'tags', a.tags,
        'time', a.updated_at,
        'superseded_by', (SELECT min(s.ref) FROM context_artifacts AS s
                          WHERE s.tenant_id = tenant AND s.supersedes = a.ref AND s.is_current
                            AND s.supersedes_is_refused IS NOT TRUE AND s.ref <> a.ref),
        'projections', (SELECT coalesce(jsonb_agg(p.text ORDER BY p.words DESC), '[]') FROM context_projections AS p
                        WHERE p.tenant_id = tenant AND p.ref = a.ref AND p.version = a.version))
    FROM context_artifacts AS a WHERE a.tenant_id = tenant AND a.ref = ANY (refs) AND a.is_current;
END
$$;

SELECT context_builder_guard('^context_knowledge_(artifact|nodes)$', '^context_knowledge_nodes$');
SELECT context_builder_by_index('^context_knowledge_nodes$');
