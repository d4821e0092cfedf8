-- Knowledge: artifacts with their versions, the edges between what is known, and what is thought of it, apart by tenant.
--
-- An artifact's passages are found as memories are, in a space of their own beside the tenant's memories: what was
-- said is never mixed with documents, whose readers a policy decides. Functions run as their owner, as in 002.

CREATE TABLE IF NOT EXISTS context_artifacts (
    tenant_id   text NOT NULL,
    ref         text NOT NULL,                -- chosen by the caller, unique within the tenant
    version     integer NOT NULL,
    is_current  boolean NOT NULL DEFAULT true, -- one version of each; the others are superseded by it
    kind        text NOT NULL,
    title       text NOT NULL,
    content     text NOT NULL,
    digest      bytea NOT NULL,               -- SHA-256 of the content: another one makes another version
    project_id  text NOT NULL DEFAULT '',
    module_id   text NOT NULL DEFAULT '',
    status      text NOT NULL DEFAULT 'draft',
    sensitivity text NOT NULL DEFAULT 'internal',
    type        text NOT NULL DEFAULT '',
    tags        text[] NOT NULL DEFAULT '{}',
    source      text,
    supersedes  text,                         -- ref of the artifact that this one replaces
    created_at  timestamptz NOT NULL DEFAULT now(),
    updated_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, ref, version)
);
CREATE UNIQUE INDEX IF NOT EXISTS context_artifacts_current ON context_artifacts (tenant_id, ref) WHERE is_current;
CREATE INDEX IF NOT EXISTS context_artifacts_scope ON context_artifacts (tenant_id, project_id, module_id, updated_at DESC)
    WHERE is_current;
CREATE INDEX IF NOT EXISTS context_artifacts_superseding ON context_artifacts (tenant_id, supersedes)
    WHERE is_current AND supersedes IS NOT NULL;

-- The last version of what was erased, so that the same ref never has the same version twice.
CREATE TABLE IF NOT EXISTS context_artifact_erasures (
    tenant_id text NOT NULL,
    ref       text NOT NULL,
    version   integer NOT NULL,
    PRIMARY KEY (tenant_id, ref)
);

-- Ends need not be there yet: an edge waits for them.
CREATE TABLE IF NOT EXISTS context_edges (
    tenant_id text NOT NULL,
    from_ref  text NOT NULL,
    to_ref    text NOT NULL,
    type      text NOT NULL,
    weight    float8 NOT NULL DEFAULT 1,      -- above 0
    PRIMARY KEY (tenant_id, from_ref, to_ref, type)
);
DROP INDEX IF EXISTS context_edges_from, context_edges_to;
CREATE INDEX IF NOT EXISTS context_edges_out ON context_edges (tenant_id, from_ref, weight DESC) INCLUDE (to_ref, type);
CREATE INDEX IF NOT EXISTS context_edges_in ON context_edges (tenant_id, to_ref, weight DESC) INCLUDE (from_ref, type);

-- Shorter texts that may stand for a version of an artifact, made once.
CREATE TABLE IF NOT EXISTS context_projections (
    tenant_id text NOT NULL,
    ref       text NOT NULL,
    version   integer NOT NULL,
    words     integer NOT NULL,               -- at most
    text      text NOT NULL,
    PRIMARY KEY (tenant_id, ref, version, words)
);

-- Cedar policies by name; a tenant without any row has the policies of the start.
CREATE TABLE IF NOT EXISTS context_policies (
    tenant_id  text NOT NULL,
    name       text NOT NULL,
    text       text,                          -- null: a policy of the start that was deleted
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, name)
);

-- Counts what changes what may be seen: policies, artifacts, and what was said and is deleted.
CREATE TABLE IF NOT EXISTS context_governance (
    tenant_id text PRIMARY KEY,
    version   bigint NOT NULL
);

CREATE TABLE IF NOT EXISTS context_assessments (
    tenant_id   text NOT NULL,
    ref         text NOT NULL,
    assessor    text NOT NULL,
    quality     float8 NOT NULL,              -- 0 to 1
    reason      text NOT NULL DEFAULT '',
    assessed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, ref, assessor)
);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY
        '{context_artifacts,context_artifact_erasures,context_edges,context_assessments,context_projections,context_policies,context_governance}'::text[] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('DROP POLICY IF EXISTS %I ON %I', name || '_tenant', name);
        EXECUTE format($policy$CREATE POLICY %I ON %I
            USING (tenant_id = nullif(current_setting('context_builder.tenant', true), ''))
            WITH CHECK (tenant_id = nullif(current_setting('context_builder.tenant', true), ''))$policy$, name || '_tenant', name);
    END LOOP;
END
$$;

-- The space of a tenant's documents among the memories. No tenant has the separator in its name.
CREATE OR REPLACE FUNCTION context_knowledge_space(tenant text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF strpos(tenant, chr(31)) > 0 THEN
        RAISE invalid_parameter_value USING MESSAGE = 'a tenant''s name holds no control characters';
    END IF;
    RETURN tenant || chr(31) || 'documents';
END
$$;

-- Counts a change of what may be seen. Comes before anything that waits for other writers of the tenant.
CREATE OR REPLACE FUNCTION context_knowledge_changed(tenant text) RETURNS void LANGUAGE sql AS $$
    INSERT INTO context_governance AS g (tenant_id, version) VALUES (tenant, 1)
    ON CONFLICT (tenant_id) DO UPDATE SET version = g.version + 1
$$;

-- What was said and is deleted is not seen any more, also where it was cached.
CREATE OR REPLACE FUNCTION context_knowledge_unsaid() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM context_knowledge_changed(t.tenant_id)
    FROM (SELECT DISTINCT g.tenant_id FROM gone AS g WHERE strpos(g.tenant_id, chr(31)) = 0) AS t;
    RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER context_knowledge_unsaid AFTER DELETE ON context_memories
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION context_knowledge_unsaid();

-- Replaces the passages of a document, by which its artifact is found. Their positions begin at 0.
CREATE OR REPLACE FUNCTION context_knowledge_index(tenant text, document text, passages jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    space text := context_knowledge_space(tenant);
BEGIN
    PERFORM set_config('context_builder.tenant', space, true);
    DELETE FROM context_memories AS m
    WHERE m.tenant_id = space AND m.session_id = document AND m.position >= jsonb_array_length(passages);
    PERFORM context_memory_remember(space, passages);
    PERFORM set_config('context_builder.tenant', tenant, true);
END
$$;

-- What a program is shown of an artifact; "superseded_by" is the one that replaces it.
CREATE OR REPLACE FUNCTION context_knowledge_artifact(a context_artifacts) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'ref', a.ref, 'version', a.version, 'current', a.is_current, 'kind', a.kind, 'title', a.title,
        'content', a.content, 'project_id', a.project_id, 'module_id', a.module_id, 'status', a.status,
        'sensitivity', a.sensitivity, 'type', a.type, 'tags', a.tags, 'source', a.source, 'supersedes', a.supersedes,
        'created_at', a.created_at, 'updated_at', a.updated_at,
        'superseded_by', (SELECT min(s.ref) FROM context_artifacts AS s
                          WHERE s.tenant_id = a.tenant_id AND s.supersedes = a.ref AND s.is_current AND s.ref <> a.ref))
$$;

DROP FUNCTION IF EXISTS context_knowledge_put(text, jsonb, text, jsonb), context_knowledge_put(text, jsonb, text, jsonb, jsonb),
    context_knowledge_find(text, jsonb, integer);

-- Stores an artifact, whose passages are memories of the document. What is equal changes nothing; other content makes the
-- next version, and other metadata keeps the version. It is stored only over what was "seen", by when that was updated, where
-- that is given; the first moment of 1970 stands for nothing. "projections" are {"words", "text"}. Answers the version, and whether anything changed.
CREATE OR REPLACE FUNCTION context_knowledge_put(
    tenant text, artifact jsonb, document text, passages jsonb, projections jsonb DEFAULT '[]', seen timestamptz DEFAULT NULL
) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    new  context_artifacts;
    held context_artifacts;
BEGIN
    PERFORM context_memory_tenant(tenant);
    new := jsonb_populate_record(NULL::context_artifacts, artifact);
    new.tenant_id := tenant;
    new.digest := sha256(convert_to(new.content, 'UTF8'));
    new.created_at := now();
    new.updated_at := now();
    new.is_current := true;
    PERFORM pg_advisory_xact_lock(hashtextextended('context_artifacts ' || tenant || ' ' || new.ref, 0));
    SELECT * INTO held FROM context_artifacts AS a WHERE a.tenant_id = tenant AND a.ref = new.ref AND a.is_current;
    IF seen IS DISTINCT FROM coalesce(held.updated_at, '1970-01-01 00:00:00+00') AND seen IS NOT NULL THEN
        RETURN jsonb_build_object('conflict', true);
    END IF;
    IF held.digest = new.digest THEN
        new.version := held.version;
        new.created_at := held.created_at;
        IF (new.kind, new.title, new.project_id, new.module_id, new.status, new.sensitivity, new.type, new.tags, new.source,
            new.supersedes) IS NOT DISTINCT FROM
           (held.kind, held.title, held.project_id, held.module_id, held.status, held.sensitivity, held.type, held.tags,
            held.source, held.supersedes) THEN
            RETURN jsonb_build_object('version', held.version, 'changed', false);
        END IF;
        PERFORM context_knowledge_changed(tenant);
        DELETE FROM context_artifacts AS a WHERE a.tenant_id = tenant AND a.ref = new.ref AND a.version = held.version;
    ELSE
        PERFORM context_knowledge_changed(tenant);
        UPDATE context_artifacts AS a SET is_current = false, updated_at = now()
        WHERE a.tenant_id = tenant AND a.ref = new.ref AND a.is_current;
        new.version := 1 + greatest(
            held.version, (SELECT e.version FROM context_artifact_erasures AS e WHERE e.tenant_id = tenant AND e.ref = new.ref), 0);
    END IF;
    INSERT INTO context_artifacts SELECT new.*;
    INSERT INTO context_projections (tenant_id, ref, version, words, text)
    SELECT tenant, new.ref, new.version, p.words, p.text FROM jsonb_to_recordset(projections) AS p (words integer, text text)
    ON CONFLICT DO NOTHING;
    PERFORM context_knowledge_index(tenant, document, passages);
    RETURN jsonb_build_object('version', new.version, 'changed', true);
END
$$;

-- The artifact's current version, or the one asked for; no row where there is none.
CREATE OR REPLACE FUNCTION context_knowledge_get(tenant text, refs text[], wanted integer DEFAULT NULL)
RETURNS SETOF jsonb LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY SELECT context_knowledge_artifact(a) FROM context_artifacts AS a
    WHERE a.tenant_id = tenant AND a.ref = ANY (refs)
      AND CASE WHEN wanted IS NULL THEN a.is_current ELSE a.version = wanted END;
END
$$;

-- Erases all versions, passages, edges and assessments of an artifact; answers whether it was there.
CREATE OR REPLACE FUNCTION context_knowledge_erase(tenant text, artifact text, document text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    last integer;
BEGIN
    PERFORM context_memory_tenant(tenant);
    PERFORM pg_advisory_xact_lock(hashtextextended('context_artifacts ' || tenant || ' ' || artifact, 0));
    PERFORM context_package_erase(tenant, artifact);
    SELECT max(a.version) INTO last FROM context_artifacts AS a WHERE a.tenant_id = tenant AND a.ref = artifact;
    IF last IS NULL THEN
        RETURN false;
    END IF;
    PERFORM context_knowledge_changed(tenant);
    INSERT INTO context_artifact_erasures AS e (tenant_id, ref, version) VALUES (tenant, artifact, last)
    ON CONFLICT (tenant_id, ref) DO UPDATE SET version = EXCLUDED.version;
    DELETE FROM context_artifacts AS a WHERE a.tenant_id = tenant AND a.ref = artifact;
    DELETE FROM context_projections AS p WHERE p.tenant_id = tenant AND p.ref = artifact;
    DELETE FROM context_edges AS e WHERE e.tenant_id = tenant AND artifact IN (e.from_ref, e.to_ref);
    DELETE FROM context_assessments AS s WHERE s.tenant_id = tenant AND s.ref = artifact;
    PERFORM context_knowledge_index(tenant, document, '[]');
    RETURN true;
END
$$;

-- Any of the names, as part of a condition; null where there is no list of them.
CREATE OR REPLACE FUNCTION context_knowledge_any(names jsonb) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT 'ANY (' || quote_literal(ARRAY(SELECT jsonb_array_elements_text(names))) || ')'
$$;

-- The refs of the current artifacts that meet a filter of equal fields, the newest first: {"kinds", "types", "statuses",
-- "modules", "tags" (all of them), "project_id"}; what is left out does not restrict.
CREATE OR REPLACE FUNCTION context_knowledge_matching(tenant text, filter jsonb, most integer)
RETURNS SETOF text LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY EXECUTE format($matching$
        SELECT a.ref FROM context_artifacts AS a
        WHERE a.tenant_id = $1 AND a.is_current AND %s
        ORDER BY a.updated_at DESC, a.ref LIMIT $2
        $matching$, concat_ws(' AND ',
            'true',
            'a.project_id = ' || quote_literal(filter ->> 'project_id'),
            'a.kind = ' || context_knowledge_any(filter -> 'kinds'),
            'a.type = ' || context_knowledge_any(filter -> 'types'),
            'a.status = ' || context_knowledge_any(filter -> 'statuses'),
            'a.module_id = ' || context_knowledge_any(filter -> 'modules'),
            'a.tags @> ' || quote_literal(ARRAY(SELECT jsonb_array_elements_text(filter -> 'tags')))))
    USING tenant, most;
END
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
                          WHERE s.tenant_id = tenant AND s.supersedes = a.ref AND s.is_current AND s.ref <> a.ref),
        'projections', (SELECT coalesce(jsonb_agg(p.text ORDER BY p.words DESC), '[]') FROM context_projections AS p
                        WHERE p.tenant_id = tenant AND p.ref = a.ref AND p.version = a.version))
    FROM context_artifacts AS a WHERE a.tenant_id = tenant AND a.ref = ANY (refs) AND a.is_current;
END
$$;

-- The tenant's policies {"version": of governance, "policies": {name: text, null where one of the start was deleted}}.
CREATE OR REPLACE FUNCTION context_knowledge_policies(tenant text) RETURNS jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN jsonb_build_object(
        'version', coalesce((SELECT g.version FROM context_governance AS g WHERE g.tenant_id = tenant), 0),
        'policies', (SELECT coalesce(jsonb_object_agg(p.name, p.text), '{}') FROM context_policies AS p
                     WHERE p.tenant_id = tenant));
END
$$;

-- Which version of governance holds.
CREATE OR REPLACE FUNCTION context_knowledge_governance(tenant text) RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN coalesce((SELECT g.version FROM context_governance AS g WHERE g.tenant_id = tenant), 0);
END
$$;

-- Stores a policy, provided that governance is still at "seen"; answers whether it was. A null text deletes it.
CREATE OR REPLACE FUNCTION context_knowledge_govern(tenant text, policy text, new_text text, seen bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    PERFORM context_knowledge_changed(tenant);
    IF (SELECT g.version FROM context_governance AS g WHERE g.tenant_id = tenant) <> seen + 1 THEN
        UPDATE context_governance AS g SET version = g.version - 1 WHERE g.tenant_id = tenant;
        RETURN false;
    END IF;
    INSERT INTO context_policies AS p (tenant_id, name, text) VALUES (tenant, policy, new_text)
    ON CONFLICT (tenant_id, name) DO UPDATE SET text = EXCLUDED.text, updated_at = now();
    RETURN true;
END
$$;

-- The current artifacts of a project and where each is from.
CREATE OR REPLACE FUNCTION context_knowledge_sources(tenant text, project text)
RETURNS TABLE (ref text, source text) LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY SELECT a.ref, a.source FROM context_artifacts AS a
    WHERE a.tenant_id = tenant AND a.is_current AND a.project_id = project AND a.source IS NOT NULL;
END
$$;

-- Stores edges, an array of {from_ref, to_ref, type, weight}; of two equal ones the last counts. Answers how many.
CREATE OR REPLACE FUNCTION context_knowledge_link(tenant text, edges jsonb) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    stored bigint;
BEGIN
    PERFORM context_memory_tenant(tenant);
    INSERT INTO context_edges AS e (tenant_id, from_ref, to_ref, type, weight)
    SELECT DISTINCT ON (r.from_ref, r.to_ref, r.type) tenant, r.from_ref, r.to_ref, r.type, coalesce(r.weight, 1)
    FROM ROWS FROM (jsonb_to_recordset(edges) AS (from_ref text, to_ref text, type text, weight float8))
         WITH ORDINALITY AS r (from_ref, to_ref, type, weight, place)
    ORDER BY r.from_ref, r.to_ref, r.type, r.place DESC
    ON CONFLICT (tenant_id, from_ref, to_ref, type) DO UPDATE SET weight = EXCLUDED.weight, derived = false;
    GET DIAGNOSTICS stored = ROW_COUNT;
    RETURN stored;
END
$$;

-- Deletes edges, an array of {from_ref, to_ref, type}; answers how many there were.
CREATE OR REPLACE FUNCTION context_knowledge_unlink(tenant text, edges jsonb) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    gone bigint;
BEGIN
    PERFORM context_memory_tenant(tenant);
    DELETE FROM context_edges AS e USING jsonb_to_recordset(edges) AS r (from_ref text, to_ref text, type text)
    WHERE e.tenant_id = tenant AND (e.from_ref, e.to_ref, e.type) = (r.from_ref, r.to_ref, r.type);
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END
$$;

-- Notes an assessor's latest opinion of each artifact: an array of {ref, assessor, quality, reason}.
CREATE OR REPLACE FUNCTION context_knowledge_assess(tenant text, assessments jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    INSERT INTO context_assessments AS s (tenant_id, ref, assessor, quality, reason)
    SELECT DISTINCT ON (r.ref, r.assessor) tenant, r.ref, r.assessor, r.quality, coalesce(r.reason, '')
    FROM ROWS FROM (jsonb_to_recordset(assessments) AS (ref text, assessor text, quality float8, reason text))
         WITH ORDINALITY AS r (ref, assessor, quality, reason, place)
    ORDER BY r.ref, r.assessor, r.place DESC
    ON CONFLICT (tenant_id, ref, assessor) DO UPDATE
        SET quality = EXCLUDED.quality, reason = EXCLUDED.reason, assessed_at = now();
END
$$;

-- The mean quality of each artifact that was assessed.
CREATE OR REPLACE FUNCTION context_knowledge_quality(tenant text, refs text[])
RETURNS TABLE (ref text, quality float8, assessors bigint) LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY SELECT s.ref, avg(s.quality), count(*) FROM context_assessments AS s
    WHERE s.tenant_id = tenant AND s.ref = ANY (refs) GROUP BY s.ref;
END
$$;

-- The neighbourhood of some refs over edges in both directions, at most so many steps away: of each node the heaviest
-- edges are followed, at most "fan_out" each way, and at most "most" nodes are returned, an equal share for each step, of
-- those with the most weight towards what was reached before.
-- Answers {"nodes": [ref, …], "steps": [how many lead there, …], "edges": [[from, to, type, weight], …]}, edges by the
-- places of their nodes.
CREATE OR REPLACE FUNCTION context_knowledge_neighbourhood(
    tenant text, seeds text[], depth integer, types text[], fan_out integer, most integer
) RETURNS jsonb LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
DECLARE
    reached  text[] := seeds;
    steps    integer[] := array_fill(0, ARRAY[cardinality(seeds)]);
    frontier text[] := seeds;
    among    jsonb;
BEGIN
    PERFORM context_memory_tenant(tenant);
    FOR step IN 1 .. depth LOOP
        -- Edges are read first: joined one node at a time, each would go through all that is reached.
        WITH next AS MATERIALIZED (
            SELECT n.ref, n.weight FROM unnest(frontier) AS f (ref) CROSS JOIN LATERAL (
                (SELECT e.to_ref, e.weight FROM context_edges AS e
                 WHERE e.tenant_id = tenant AND e.from_ref = f.ref AND (types IS NULL OR e.type = ANY (types))
                 ORDER BY e.weight DESC LIMIT fan_out)
                UNION ALL
                (SELECT e.from_ref, e.weight FROM context_edges AS e
                 WHERE e.tenant_id = tenant AND e.to_ref = f.ref AND (types IS NULL OR e.type = ANY (types))
                 ORDER BY e.weight DESC LIMIT fan_out)
            ) AS n (ref, weight)
        )
        SELECT array_agg(found.ref) INTO frontier FROM (
            SELECT next.ref FROM next
            WHERE NOT EXISTS (SELECT FROM unnest(reached) AS r (ref) WHERE r.ref = next.ref)
            GROUP BY next.ref ORDER BY sum(next.weight) DESC, next.ref
            LIMIT ceil((most - cardinality(reached))::float8 / (depth - step + 1))
        ) AS found;
        EXIT WHEN frontier IS NULL;
        reached := reached || frontier;
        steps := steps || array_fill(step, ARRAY[cardinality(frontier)]);
    END LOOP;
    WITH edges AS MATERIALIZED (
        SELECT r.place, e.* FROM unnest(reached) WITH ORDINALITY AS r (ref, place) CROSS JOIN LATERAL (
            SELECT o.to_ref, o.type, o.weight FROM context_edges AS o WHERE o.tenant_id = tenant AND o.from_ref = r.ref
            AND (types IS NULL OR o.type = ANY (types)) ORDER BY o.weight DESC LIMIT fan_out
        ) AS e
    )
    SELECT coalesce(jsonb_agg(jsonb_build_array(e.place - 1, o.place - 1, e.type, e.weight)), '[]') INTO among
    FROM edges AS e JOIN unnest(reached) WITH ORDINALITY AS o (ref, place) ON o.ref = e.to_ref;
    RETURN jsonb_build_object('nodes', to_jsonb(reached), 'steps', to_jsonb(steps), 'edges', among);
END
$$;

SELECT context_builder_guard(
    '^context_knowledge_',
    '^context_knowledge_(put|get|erase|matching|nodes|sources|link|unlink|assess|quality|neighbourhood|policies|governance|govern)$',
    '{context_artifacts,context_artifact_erasures,context_edges,context_assessments,context_projections,context_policies,context_governance}');
SELECT context_builder_by_index('^context_knowledge_(get|matching|nodes|sources|quality|neighbourhood)$');
