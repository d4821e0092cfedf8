-- What packages are made of: nodes with what is known of their usefulness, in one call.

-- The nodes of these refs, without the content of those longer than "longest" characters; of what was said a beginning
-- of whole words stands for it then.
CREATE OR REPLACE FUNCTION context_package_nodes(tenant text, refs text[], longest integer)
RETURNS SETOF jsonb LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY
        SELECT CASE WHEN u.ref IS NULL THEN n.node
               ELSE n.node || jsonb_build_object('quality', u.quality, 'reuse', u.reuse) END
        FROM (
            SELECT * FROM context_knowledge_nodes(tenant, refs, longest)
            UNION ALL
            SELECT CASE WHEN length(s.node ->> 'content') <= longest THEN s.node ELSE s.node || jsonb_build_object(
                'content', NULL,
                'projections', ARRAY[regexp_replace(left(s.node ->> 'content', longest), '\s\S*$', '')]) END
            FROM context_knowledge_said(tenant, refs) AS s (node)
        ) AS n (node)
        LEFT JOIN context_package_usefulness(tenant, refs, now()) AS u ON u.ref = n.node ->> 'ref';
END
$$;

SELECT context_builder_guard('^context_package_nodes$', '^context_package_nodes$');
SELECT context_builder_by_index('^context_package_nodes$');
