-- Knowledge: artifacts with their versions, the edges between what is known, and what is thought of it, apart by tenant.
--
-- An artifact's passages are found as memories are, in a space of their own beside the tenant's memories: what was
-- said is never mixed with documents, whose readers a policy decides. Functions run as their owner,
-- as those of the memories do, and verify the tenant.

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
    supersedes_is_refused boolean,            -- its writer may not see that artifact, which is not replaced then
    created_at  timestamptz NOT NULL DEFAULT now(),
    updated_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, ref, version)
);
CREATE UNIQUE INDEX IF NOT EXISTS context_artifacts_current ON context_artifacts (tenant_id, ref) WHERE is_current;
CREATE INDEX IF NOT EXISTS context_artifacts_scope ON context_artifacts (tenant_id, project_id, module_id, updated_at DESC)
    WHERE is_current;
CREATE INDEX IF NOT EXISTS context_artifacts_superseding ON context_artifacts (tenant_id, supersedes)
    WHERE is_current AND supersedes IS NOT NULL;
-- What not everybody may see, which a search leaves out for who may not.
CREATE INDEX IF NOT EXISTS context_artifacts_sensitive ON context_artifacts (tenant_id, sensitivity, ref)
    WHERE is_current AND sensitivity IN ('confidential', 'restricted');

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
    derived   boolean NOT NULL DEFAULT false, -- from a point, made and deleted with it; the others are somebody's own and outlive it
    PRIMARY KEY (tenant_id, from_ref, to_ref, type)
);
CREATE INDEX IF NOT EXISTS context_edges_out ON context_edges (tenant_id, from_ref, weight DESC) INCLUDE (to_ref, type);
CREATE INDEX IF NOT EXISTS context_edges_in ON context_edges (tenant_id, to_ref, weight DESC) INCLUDE (from_ref, type);

-- Shorter texts that may stand for a version of an artifact, made once.
CREATE TABLE IF NOT EXISTS context_projections (
    tenant_id text NOT NULL,
    ref       text NOT NULL,
    version   integer NOT NULL,
    words     integer NOT NULL,               -- at most
    text      text NOT NULL,
    model     text NOT NULL DEFAULT '',       -- that was asked for shorter texts; '': none, an extract
    PRIMARY KEY (tenant_id, ref, version, words)
);

-- Cedar policies by name; a tenant without any row has the policies of the start.
CREATE TABLE IF NOT EXISTS context_policies (
    tenant_id  text NOT NULL,
    name       text NOT NULL,
    text       text,                          -- null: a policy of the start that was deleted
    version    bigint NOT NULL DEFAULT 0,     -- of governance, since which it is so
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
    caller      text NOT NULL DEFAULT '',     -- who says so, as the credential does
    assessor    text NOT NULL,                -- as the caller names them
    quality     float8 NOT NULL,              -- 0 to 1
    reason      text NOT NULL DEFAULT '',
    assessed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, ref, caller, assessor)
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
                          WHERE s.tenant_id = a.tenant_id AND s.supersedes = a.ref AND s.is_current
                            AND s.supersedes_is_refused IS NOT TRUE AND s.ref <> a.ref))
$$;

-- Whether what was decided about an artifact still holds: policies are as they were at that version of "governance", and the
-- artifact is what it was decided by, {"kind", "sensitivity", "status", "project_id", "module_id", "tags"}, or still not there.
CREATE OR REPLACE FUNCTION context_knowledge_holds(tenant text, artifact text, decided jsonb) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT NOT EXISTS (SELECT FROM context_policies AS p
                       WHERE p.tenant_id = tenant AND p.version > (decided ->> 'governance')::bigint)
       AND decided -> 'artifact' = coalesce(
           (SELECT jsonb_build_object('kind', a.kind, 'sensitivity', a.sensitivity, 'status', a.status,
                                      'project_id', a.project_id, 'module_id', a.module_id, 'tags', a.tags)
            FROM context_artifacts AS a WHERE a.tenant_id = tenant AND a.ref = artifact AND a.is_current), 'null')
$$;

-- Stores an artifact, whose passages are memories of the document. What is equal changes nothing; other content makes the
-- next version, and other metadata keeps the version. It is stored only over what was "seen", by when that was updated, where
-- that is given; the first moment of 1970 stands for nothing. Nor is it stored where what was "decided" about it holds no longer.
-- "projections" are {"words", "text"}. Answers the version, and whether anything changed.
CREATE OR REPLACE FUNCTION context_knowledge_put(
    tenant text, artifact jsonb, document text, passages jsonb, projections jsonb DEFAULT '[]', seen timestamptz DEFAULT NULL,
    decided jsonb DEFAULT NULL
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
    IF NOT context_knowledge_holds(tenant, new.ref, decided) THEN
        RETURN jsonb_build_object('undecided', true);
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

-- Erases all versions, passages, edges and assessments of an artifact; answers whether it was there, and null if it is not what
-- it was when it was "seen", or what was "decided" about it holds no longer. Under a session's ref is what is stated of the session, which stays, with its edges and what
-- packages show of it.
CREATE OR REPLACE FUNCTION context_knowledge_erase(
    tenant text, artifact text, document text, seen timestamptz DEFAULT NULL, decided jsonb DEFAULT NULL
) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    last       integer;
    is_session boolean := artifact LIKE 'session:%';
BEGIN
    PERFORM context_memory_tenant(tenant);
    PERFORM pg_advisory_xact_lock(hashtextextended('context_artifacts ' || tenant || ' ' || artifact, 0));
    IF seen IS NOT NULL AND NOT EXISTS (SELECT FROM context_artifacts AS a WHERE a.tenant_id = tenant AND a.ref = artifact
                                        AND a.is_current AND a.updated_at = seen) THEN
        RETURN NULL;
    END IF;
    IF NOT context_knowledge_holds(tenant, artifact, decided) THEN
        RETURN NULL;
    END IF;
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
                          WHERE s.tenant_id = tenant AND s.supersedes = a.ref AND s.is_current
                            AND s.supersedes_is_refused IS NOT TRUE AND s.ref <> a.ref),
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
    INSERT INTO context_policies AS p (tenant_id, name, text, version) VALUES (tenant, policy, new_text, seen + 1)
    ON CONFLICT (tenant_id, name) DO UPDATE SET text = EXCLUDED.text, version = EXCLUDED.version, updated_at = now();
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

-- Notes an assessor's latest opinion of each artifact: an array of {ref, caller, assessor, quality, reason}.
CREATE OR REPLACE FUNCTION context_knowledge_assess(tenant text, assessments jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    INSERT INTO context_assessments AS s (tenant_id, ref, caller, assessor, quality, reason)
    SELECT DISTINCT ON (r.ref, r.caller, r.assessor)
           tenant, r.ref, coalesce(r.caller, ''), r.assessor, r.quality, coalesce(r.reason, '')
    FROM ROWS FROM (jsonb_to_recordset(assessments) AS (ref text, caller text, assessor text, quality float8, reason text))
         WITH ORDINALITY AS r (ref, caller, assessor, quality, reason, place)
    ORDER BY r.ref, r.caller, r.assessor, r.place DESC
    ON CONFLICT (tenant_id, ref, caller, assessor) DO UPDATE
        SET quality = EXCLUDED.quality, reason = EXCLUDED.reason, assessed_at = now();
END
$$;

-- The mean quality of each artifact that was assessed: each caller is one voice, however many assessors it names.
CREATE OR REPLACE FUNCTION context_knowledge_quality(tenant text, refs text[])
RETURNS TABLE (ref text, quality float8, assessors bigint) LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY SELECT v.ref, avg(v.quality), count(*)
    FROM (SELECT s.ref, avg(s.quality) AS quality FROM context_assessments AS s
          WHERE s.tenant_id = tenant AND s.ref = ANY (refs) GROUP BY s.ref, s.caller) AS v
    GROUP BY v.ref;
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

-- The graph of what was said: each point of a session's summary is a node with edges, made of its memory by triggers, so
-- that they come, change and go with it in one transaction.

-- Refs hold [A-Za-z0-9:._/@-] alone. A name that does too, without ':' and '/', stands for itself; any other is what it
-- has of these, '/' and 12 digits of its SHA-256, so that no two names are one: "Ann Lee" is "Ann-Lee/38f1…".
CREATE OR REPLACE FUNCTION context_knowledge_name(name text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN length(name) <= 100 AND name ~ '^[A-Za-z0-9._@-]+$' THEN name
           ELSE left(trim('-' FROM regexp_replace(left(name, 400), '[^A-Za-z0-9._@-]+', '-', 'g')), 100)
                || '/' || left(encode(sha256(convert_to(name, 'UTF8')), 'hex'), 12) END
$$;

-- The number of the point in a memory's id, {session}:point:{number}:{time}; null of any other id. Lengths are compared
-- beside the patterns: a bound in a pattern makes it many times slower.
CREATE OR REPLACE FUNCTION context_session_point(session text, id text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN starts_with(id, session || ':point:') AND length(session) <= 128 AND session !~ '[\x01-\x2a/;<>?\x5b-\x5e\x60\x7b-\x7d\x7f]'
                THEN substring(substr(id, length(session) + 8, 19) FROM '^([0-9]+):')::bigint END
$$;

CREATE INDEX IF NOT EXISTS context_memories_points
    ON context_memories (tenant_id, session_id, context_session_point(session_id, id)) WHERE kind = 'point';

-- Makes the edges of points anew. What many points share, such as session, speaker and domain, weighs less. A word
-- of a point is an artifact's ref if it begins with "artifact:" or there is such an artifact.
CREATE OR REPLACE FUNCTION context_session_link(tenants text[], refs text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM context_edges AS e USING unnest(tenants, refs) AS c (tenant, ref)
    WHERE e.tenant_id = c.tenant AND e.from_ref = c.ref AND e.derived;
    INSERT INTO context_edges (tenant_id, from_ref, to_ref, type, weight, derived)
    SELECT p.tenant_id, c.ref, o.to_ref, o.type, max(o.weight), true
    FROM (
        SELECT DISTINCT u.tenant, u.ref, split_part(substr(u.ref, 7), '/', 1) AS session,
                        split_part(u.ref, '/', 2)::bigint AS number
        FROM unnest(tenants, refs) AS u (tenant, ref)
    ) AS c
    JOIN context_memories AS p ON p.tenant_id = c.tenant AND p.session_id = c.session AND p.kind = 'point'
     AND context_session_point(p.session_id, p.id) = c.number
    CROSS JOIN LATERAL (
        SELECT 'session:' || c.session, 'said_in', 0.2
        UNION ALL SELECT 'session:' || c.session, 'decided_in', 0.2 WHERE p.metadata ->> 'point' = 'decision'
        UNION ALL SELECT 'person:' || context_knowledge_name(s.name), 'said_by', 0.2
            FROM (
                SELECT jsonb_array_elements_text(p.metadata -> 'speakers')
                WHERE jsonb_typeof(p.metadata -> 'speakers') = 'array'
                UNION ALL SELECT unnest(string_to_array(p.speaker, ', '))
                WHERE jsonb_typeof(p.metadata -> 'speakers') IS DISTINCT FROM 'array'
            ) AS s (name) WHERE s.name <> ''
        UNION ALL SELECT cited.ref, 'cites', 1
            FROM unnest(context_session_cited(c.session, p.metadata)) AS cited (ref)
        UNION ALL SELECT 'domain:' || context_knowledge_name(d.name), 'about', 0.2 FROM unnest(p.tags) AS d (name)
        UNION ALL SELECT named.ref, 'about', 1
            FROM (
                SELECT DISTINCT rtrim(r.found[1], '.:-/') FROM regexp_matches(p.text, '[A-Za-z0-9:._/@-]+', 'g') AS r (found)
            ) AS named (ref)
            WHERE length(named.ref) <= 512 AND (named.ref LIKE 'artifact:_%' OR EXISTS (
                SELECT FROM context_artifacts AS a WHERE a.tenant_id = c.tenant AND a.ref = named.ref AND a.is_current))
        UNION ALL (
            SELECT 'point:' || c.session || '/' || context_session_point(b.session_id, b.id), 'follows', 0.5
            FROM context_memories AS b
            WHERE b.tenant_id = c.tenant AND b.session_id = c.session AND b.kind = 'point'
              AND context_session_point(b.session_id, b.id) < c.number
            ORDER BY context_session_point(b.session_id, b.id) DESC LIMIT 1)
        UNION ALL SELECT 'point:' || c.session || '/' || (p.metadata ->> 'supersedes'), 'supersedes', 1
            WHERE length(p.metadata ->> 'supersedes') <= 18 AND p.metadata ->> 'supersedes' ~ '^[0-9]+$'
    ) AS o (to_ref, type, weight)
    GROUP BY p.tenant_id, c.ref, o.to_ref, o.type
    ON CONFLICT DO NOTHING;
END
$$;

-- The refs of the messages that a point's metadata cites.
CREATE OR REPLACE FUNCTION context_session_cited(session text, metadata jsonb) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(array_agg('message:' || session || '/' || c.id ORDER BY c.place), '{}')
    FROM jsonb_array_elements_text(CASE WHEN jsonb_typeof(metadata -> 'cites') = 'array' THEN metadata -> 'cites' ELSE '[]' END)
         WITH ORDINALITY AS c (id, place) WHERE length(c.id) <= 18 AND c.id ~ '^[0-9]+$'
$$;

-- Which points a statement changed, and which of those after them have another one before them now.
CREATE OR REPLACE FUNCTION context_session_graph() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    tenants text[];
    refs    text[];
BEGIN
    IF TG_OP = 'INSERT' THEN
        SELECT array_agg(c.tenant_id), array_agg('point:' || c.session_id || '/' || o.number) INTO tenants, refs
        FROM (
            SELECT a.tenant_id, a.session_id, context_session_point(a.session_id, a.id) AS number FROM arrived AS a
            WHERE a.kind = 'point' AND strpos(a.tenant_id, chr(31)) = 0
        ) AS c CROSS JOIN LATERAL (
            SELECT c.number UNION ALL (
                SELECT context_session_point(n.session_id, n.id) FROM context_memories AS n
                WHERE n.tenant_id = c.tenant_id AND n.session_id = c.session_id AND n.kind = 'point'
                  AND context_session_point(n.session_id, n.id) > c.number
                ORDER BY context_session_point(n.session_id, n.id) LIMIT 1)
        ) AS o (number) WHERE o.number IS NOT NULL;
    ELSE
        IF TG_OP = 'DELETE' THEN
            SELECT array_agg(d.tenant_id), array_agg('point:' || d.session_id || '/' || context_session_point(d.session_id, d.id))
            INTO tenants, refs FROM departed AS d
            WHERE d.kind = 'point' AND strpos(d.tenant_id, chr(31)) = 0 AND context_session_point(d.session_id, d.id) IS NOT NULL;
        ELSE
            WITH old AS (
                SELECT tenant_id, session_id, id, speaker, tags, metadata, text FROM departed
                WHERE kind = 'point' AND strpos(tenant_id, chr(31)) = 0
            ), new AS (
                SELECT tenant_id, session_id, id, speaker, tags, metadata, text FROM arrived
                WHERE kind = 'point' AND strpos(tenant_id, chr(31)) = 0
            )
            SELECT array_agg(c.tenant_id), array_agg('point:' || c.session_id || '/' || context_session_point(c.session_id, c.id))
            INTO tenants, refs FROM ((TABLE old EXCEPT TABLE new) UNION ALL (TABLE new EXCEPT TABLE old)) AS c
            WHERE context_session_point(c.session_id, c.id) IS NOT NULL;
        END IF;
        SELECT tenants || array_agg(e.tenant_id), refs || array_agg(e.from_ref) INTO tenants, refs
        FROM unnest(tenants, refs) AS c (tenant, ref)
        JOIN context_edges AS e ON e.tenant_id = c.tenant AND e.to_ref = c.ref AND e.type = 'follows' AND e.derived;
    END IF;
    IF refs IS NOT NULL THEN
        PERFORM context_session_link(tenants, refs);
    END IF;
    RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER context_session_graph_inserted AFTER INSERT ON context_memories
    REFERENCING NEW TABLE AS arrived FOR EACH STATEMENT EXECUTE FUNCTION context_session_graph();
CREATE OR REPLACE TRIGGER context_session_graph_updated AFTER UPDATE ON context_memories
    REFERENCING OLD TABLE AS departed NEW TABLE AS arrived FOR EACH STATEMENT EXECUTE FUNCTION context_session_graph();
CREATE OR REPLACE TRIGGER context_session_graph_deleted AFTER DELETE ON context_memories
    REFERENCING OLD TABLE AS departed FOR EACH STATEMENT EXECUTE FUNCTION context_session_graph();

-- The sensitivities of sessions: each is stated by an artifact under the session's ref, session:{id}, for all that was said there.
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
        SELECT u.ref, split_part(u.ref, ':', 1) AS kind, split_part(substr(u.ref, strpos(u.ref, ':') + 1), '/', 1) AS session,
               split_part(u.ref, '/', 2)::bigint AS number
        FROM unnest(refs) AS u (ref)
        WHERE u.ref ~ '^(point|message):[^\x01-\x2a/;<>?\x5b-\x5e\x60\x7b-\x7d\x7f]+/[0-9]+$' AND length(split_part(u.ref, '/', 2)) <= 18
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

SELECT context_builder_guard(
    '^context_(knowledge|session)_',
    '^context_(session_sensitivities|knowledge_(put|get|erase|matching|nodes|sources|link|unlink|assess|quality|neighbourhood|policies|'
    'governance|govern|unprojected|project|outlines|said))$',
    '{context_artifacts,context_artifact_erasures,context_edges,context_assessments,context_projections,context_policies,context_governance}');
SELECT context_builder_by_index(
    '^context_(session_sensitivities|knowledge_(get|matching|nodes|sources|quality|neighbourhood|unprojected|said))$');
