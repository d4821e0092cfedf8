-- Shorter texts of artifacts in a model's words, in place of extracts. Runs as its owner, as in 002.

ALTER TABLE context_projections ADD COLUMN IF NOT EXISTS model text NOT NULL DEFAULT '';  -- that was asked for shorter texts; '': none

-- The current artifacts of at most "longest" characters that have extracts and nothing of a model yet, the oldest first. What
-- is confidential or restricted is not shown to a model.
CREATE OR REPLACE FUNCTION context_knowledge_unprojected(tenant text, longest integer, most integer) RETURNS SETOF jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY SELECT context_knowledge_artifact(a) FROM context_artifacts AS a
    WHERE a.tenant_id = tenant AND a.is_current AND a.sensitivity IN ('public', 'internal') AND length(a.content) <= longest
      AND (SELECT bool_and(p.model = '') FROM context_projections AS p
           WHERE p.tenant_id = tenant AND p.ref = a.ref AND p.version = a.version)
    ORDER BY a.updated_at, a.ref LIMIT most;
END
$$;

-- Puts {"words", "text"} of a model in place of extracts of an artifact's version, for none of which it is asked again; answers
-- whether the version is still the current one.
CREATE OR REPLACE FUNCTION context_knowledge_project(
    tenant text, artifact text, of_version integer, named text, projections jsonb DEFAULT '[]'
) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    PERFORM pg_advisory_xact_lock(hashtextextended('context_artifacts ' || tenant || ' ' || artifact, 0));
    IF NOT EXISTS (SELECT FROM context_artifacts AS a WHERE a.tenant_id = tenant AND a.ref = artifact AND a.is_current
                   AND a.version = of_version AND a.sensitivity IN ('public', 'internal')) THEN
        RETURN false;
    END IF;
    UPDATE context_projections AS p SET model = named
    WHERE p.tenant_id = tenant AND p.ref = artifact AND p.version = of_version;
    INSERT INTO context_projections (tenant_id, ref, version, words, text, model)
    SELECT tenant, artifact, of_version, p.words, p.text, named
    FROM jsonb_to_recordset(projections) AS p (words integer, text text)
    ON CONFLICT (tenant_id, ref, version, words) DO UPDATE SET text = EXCLUDED.text, model = EXCLUDED.model;
    RETURN true;
END
$$;

SELECT context_builder_guard('^context_knowledge_(unprojected|project)$', '^context_knowledge_(unprojected|project)$');
SELECT context_builder_by_index('^context_knowledge_unprojected$');
