-- What an ingestion compares a folder's files with, so that it sends only what changed. Runs as its owner, as in 002.

-- Of each current artifact: every field that context_knowledge_put compares, with the SHA-256 of the content in its place, and its
-- edges of these types as [to, type, weight].
CREATE OR REPLACE FUNCTION context_knowledge_outlines(tenant text, refs text[], types text[]) RETURNS SETOF jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY SELECT jsonb_build_object(
        'ref', a.ref,
        'fields', jsonb_build_object(
            'digest', encode(a.digest, 'hex'), 'kind', a.kind, 'title', a.title, 'project_id', a.project_id,
            'module_id', a.module_id, 'status', a.status, 'sensitivity', a.sensitivity, 'type', a.type, 'tags', a.tags,
            'source', a.source, 'supersedes', a.supersedes),
        'edges', (SELECT coalesce(jsonb_agg(jsonb_build_array(e.to_ref, e.type, e.weight)), '[]') FROM context_edges AS e
                  WHERE e.tenant_id = tenant AND e.from_ref = a.ref AND e.type = ANY (types)))
    FROM context_artifacts AS a WHERE a.tenant_id = tenant AND a.ref = ANY (refs) AND a.is_current;
END
$$;

SELECT context_builder_guard('^context_knowledge_outlines$', '^context_knowledge_outlines$');
