-- The graph of what was said: each point of a session's summary is a node with edges, made of its memory by triggers, so
-- that they come, change and go with it in one transaction. Runs as its owner, as in 002.

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
    SELECT CASE WHEN starts_with(id, session || ':point:') AND length(session) <= 128 AND session ~ '^[A-Za-z0-9._-]+$'
                THEN substring(substr(id, length(session) + 8, 19) FROM '^([0-9]+):')::bigint END
$$;

CREATE INDEX IF NOT EXISTS context_memories_points
    ON context_memories (tenant_id, session_id, context_session_point(session_id, id)) WHERE kind = 'point';

-- Derived edges are a point's, all from it; the others are somebody's own and outlive it.
ALTER TABLE context_edges ADD COLUMN IF NOT EXISTS derived boolean NOT NULL DEFAULT false;

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
        'content', m.text, 'sensitivity', 'internal', 'status', '', 'project', '', 'module', '',
        'session', m.session_id, 'speaker', m.speaker, 'time', m.said_at, 'tags', m.tags,
        'cites', CASE m.kind WHEN 'point' THEN context_session_cited(m.session_id, m.metadata) ELSE '{}' END,
        'superseded_by', (SELECT min(e.from_ref) FROM context_edges AS e
                          WHERE e.tenant_id = tenant AND e.to_ref = w.ref AND e.type = 'supersedes' AND e.from_ref <> w.ref),
        'projections', '[]'::jsonb)
    FROM w
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

-- The points that were remembered before there was a graph.
SELECT context_session_link(array_agg(m.tenant_id), array_agg('point:' || m.session_id || '/' || context_session_point(m.session_id, m.id)))
FROM context_memories AS m
WHERE m.kind = 'point' AND strpos(m.tenant_id, chr(31)) = 0 AND context_session_point(m.session_id, m.id) IS NOT NULL
HAVING count(*) > 0;

SELECT context_builder_guard('^context_(session_|knowledge_(name|said)$)', '^context_knowledge_said$');
SELECT context_builder_by_index('^context_knowledge_said$');
