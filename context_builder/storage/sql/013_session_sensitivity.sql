-- A session's sensitivity is stated by an artifact under its ref, session:{id}: what was said there has it, too. Replaces
-- functions of 004, 005 and 009.

-- The sensitivities that are stated of sessions.
CREATE OR REPLACE FUNCTION context_session_sensitivities(tenant text, sessions text[])
RETURNS TABLE (session text, sensitivity text) LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY SELECT s.name, a.sensitivity FROM unnest(sessions) AS s (name)
    JOIN context_artifacts AS a ON a.tenant_id = tenant AND a.ref = 'session:' || s.name AND a.is_current;
END
$$;

-- What points and messages are as nodes, by their refs; of two with one ref, from two runs of a session, the later one.
-- What belongs to a user or persona is nobody else's, so not a node.
CREATE OR REPLACE FUNCTION context_knowledge_said(tenant text, refs text[])
RETURNS SETOF jsonb LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY WITH w AS MATERIALIZED (
        SELECT u.ref, split_part(u.ref, ':', 1) AS kind, split_part(split_part(u.ref, ':', 2), '/', 1) AS session,
               split_part(u.ref, '/', 2)::bigint AS number
        FROM unnest(refs) AS u (ref)
        WHERE u.ref ~ '^(point|message):[A-Za-z0-9._-]+/[0-9]+$' AND length(split_part(u.ref, '/', 2)) <= 18
    )
    SELECT DISTINCT ON (w.ref) jsonb_build_object(
        'ref', w.ref, 'version', 0, 'kind', CASE m.kind WHEN 'point' THEN coalesce(m.metadata ->> 'point', 'claim') ELSE m.kind END,
        'title', CASE WHEN length(line.text) > 80 THEN regexp_replace(left(line.text, 80), ' [^ ]*$', '') ELSE line.text END,
        'content', m.text, 'sensitivity', coalesce(stated.sensitivity, 'internal'), 'status', '', 'project', '', 'module', '',
        'session', m.session_id, 'speaker', m.speaker, 'time', m.said_at, 'tags', m.tags,
        'cites', CASE m.kind WHEN 'point' THEN context_session_cited(m.session_id, m.metadata) ELSE '{}' END,
        'superseded_by', (SELECT min(e.from_ref) FROM context_edges AS e
                          WHERE e.tenant_id = tenant AND e.to_ref = w.ref AND e.type = 'supersedes' AND e.from_ref <> w.ref),
        'projections', '[]'::jsonb)
    FROM w
    LEFT JOIN context_session_sensitivities(tenant, ARRAY(SELECT DISTINCT v.session FROM w AS v)) AS stated USING (session)
    CROSS JOIN LATERAL (
        SELECT p.* FROM context_memories AS p
        WHERE w.kind = 'point' AND p.tenant_id = tenant AND p.session_id = w.session AND p.kind = 'point'
          AND context_session_point(p.session_id, p.id) = w.number AND p.unowned
        UNION ALL
        SELECT s.* FROM context_memories AS s
        WHERE w.kind = 'message' AND s.tenant_id = tenant AND s.session_id = w.session AND s.kind = 'message'
          AND s.position = w.number AND s.unowned
    ) AS m
    CROSS JOIN LATERAL (
        -- Nearly all is one line with single blanks, which is told ten times as fast. OFFSET 0: once for each.
        SELECT CASE WHEN b.text ~ '\s\s|(?! )\s' THEN regexp_replace(b.text, '\s+', ' ', 'g') ELSE b.text END
        FROM (SELECT trim(left(m.text, 400)) OFFSET 0) AS b (text) OFFSET 0
    ) AS line (text)
    ORDER BY w.ref, m.said_at DESC NULLS LAST, m.id;
END
$$;

-- Erases all versions, passages, edges and assessments of an artifact; answers whether it was there. Under a session's ref
-- is what is stated of the session, which stays, with its edges and what packages show of it.
CREATE OR REPLACE FUNCTION context_knowledge_erase(tenant text, artifact text, document text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    last       integer;
    is_session boolean := artifact LIKE 'session:%';
BEGIN
    PERFORM context_memory_tenant(tenant);
    PERFORM pg_advisory_xact_lock(hashtextextended('context_artifacts ' || tenant || ' ' || artifact, 0));
    IF NOT is_session THEN
        PERFORM context_package_erase(tenant, artifact);
    END IF;
    SELECT max(a.version) INTO last FROM context_artifacts AS a WHERE a.tenant_id = tenant AND a.ref = artifact;
    IF last IS NULL THEN
        RETURN false;
    END IF;
    PERFORM context_knowledge_changed(tenant);
    INSERT INTO context_artifact_erasures AS e (tenant_id, ref, version) VALUES (tenant, artifact, last)
    ON CONFLICT (tenant_id, ref) DO UPDATE SET version = EXCLUDED.version;
    DELETE FROM context_artifacts AS a WHERE a.tenant_id = tenant AND a.ref = artifact;
    DELETE FROM context_projections AS p WHERE p.tenant_id = tenant AND p.ref = artifact;
    DELETE FROM context_edges AS e WHERE e.tenant_id = tenant AND artifact IN (e.from_ref, e.to_ref) AND NOT is_session;
    DELETE FROM context_assessments AS s WHERE s.tenant_id = tenant AND s.ref = artifact;
    PERFORM context_knowledge_index(tenant, document, '[]');
    RETURN true;
END
$$;

-- The nodes of these refs, without the content of those longer than "longest" characters; of what was said a beginning
-- of whole words stands for it then. What is stated of a session is none.
CREATE OR REPLACE FUNCTION context_package_nodes(tenant text, refs text[], longest integer)
RETURNS SETOF jsonb LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY
        SELECT CASE WHEN u.ref IS NULL THEN n.node
               ELSE n.node || jsonb_build_object('quality', u.quality, 'reuse', u.reuse) END
        FROM (
            SELECT * FROM context_knowledge_nodes(
                tenant, ARRAY(SELECT r FROM unnest(refs) AS r WHERE r NOT LIKE 'session:%'), longest)
            UNION ALL
            SELECT CASE WHEN length(s.node ->> 'content') <= longest THEN s.node ELSE s.node || jsonb_build_object(
                'content', NULL,
                'projections', ARRAY[regexp_replace(left(s.node ->> 'content', longest), '\s\S*$', '')]) END
            FROM context_knowledge_said(tenant, refs) AS s (node)
        ) AS n (node)
        LEFT JOIN context_package_usefulness(tenant, refs, now()) AS u ON u.ref = n.node ->> 'ref';
END
$$;

SELECT context_builder_guard(
    '^context_(session_sensitivities|knowledge_(said|erase)|package_nodes)$',
    '^context_(session_sensitivities|knowledge_(said|erase)|package_nodes)$');
SELECT context_builder_by_index('^context_(session_sensitivities|knowledge_said|package_nodes)$');
