-- The record of context packages: who asked for what, what was served and why, kept for some days, apart by tenant.
--
-- What grows with every package is partitioned by day and dropped a day at a time; there is no default partition, so a
-- writer makes the day that it needs. Texts of sources are held once, beside the packages that show them: to erase a
-- source is to delete these few rows, and every hash, ref and verdict stays. Functions run as their owner, as those
-- of the memories do, and verify the tenant.

CREATE TABLE IF NOT EXISTS context_build_requests (
    tenant_id    text NOT NULL,
    day          date NOT NULL,               -- UTC
    id           text NOT NULL,
    package_id   text NOT NULL,
    status       text NOT NULL DEFAULT 'building', -- building, built or failed
    reason       text NOT NULL DEFAULT '',    -- why it failed
    caller       text NOT NULL,               -- as the credential says
    roles        text[] NOT NULL,
    request      jsonb NOT NULL,
    task_id      text NOT NULL,
    trace_id     text NOT NULL,
    traceparent  text NOT NULL,
    requested_at timestamptz NOT NULL,
    begun_at     timestamptz NOT NULL DEFAULT clock_timestamp(), -- by this server's clock, as erasures are
    erasures_are_kept boolean,                -- as long as what was shown; null of an earlier version's requests
    PRIMARY KEY (tenant_id, id, day)
) PARTITION BY RANGE (day);

CREATE TABLE IF NOT EXISTS context_packages (
    tenant_id          text NOT NULL,
    day                date NOT NULL,
    id                 text NOT NULL,
    revision           integer NOT NULL,
    request_id         text NOT NULL,
    decision_id        text NOT NULL,
    governance_version text NOT NULL,
    body               jsonb NOT NULL,        -- as served; a source's texts are in context_package_contents
    digest             bytea NOT NULL,        -- SHA-256 of the body as served, as jsonb's text
    candidates         jsonb NOT NULL,        -- [{ref, version, outcome, reason, score, signals, tokens, origins}]
    graph              jsonb,                 -- the neighbourhood that was used
    created_at         timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id, revision, day)
) PARTITION BY RANGE (day);

CREATE TABLE IF NOT EXISTS policy_decisions (
    tenant_id      text NOT NULL,
    day            date NOT NULL,
    id             text NOT NULL,
    package_id     text NOT NULL,
    revision       integer NOT NULL,
    policy_version text NOT NULL,
    caller         text NOT NULL,
    roles          text[] NOT NULL,
    agent          jsonb NOT NULL,            -- as the request names it
    sources        jsonb NOT NULL,            -- [{ref, access, policies, reason}]
    decided_at     timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id, day)
) PARTITION BY RANGE (day);

-- Append-only: one row for each source that was decided on, one for the package, with ref '', and one for what was erased,
-- of no package: its ref or, of several, ref '' and a JSON list of them as the reason. Rows of a tenant are
-- numbered without a gap, and each has the hash of the one before it; their days never go back.
CREATE TABLE IF NOT EXISTS policy_audit (
    tenant_id      text NOT NULL,
    day            date NOT NULL,
    seq            bigint NOT NULL,
    at             timestamptz NOT NULL,
    decision_id    text NOT NULL,
    package_id     text NOT NULL,
    revision       integer NOT NULL,
    policy_version text NOT NULL,
    caller         text NOT NULL,
    ref            text NOT NULL,
    version        integer,
    access         text NOT NULL,             -- read, redacted or denied; of the package: served; of what was erased: erased
    policies       text NOT NULL,             -- ids of policies, with commas between
    reason         text NOT NULL,
    content_digest text NOT NULL,             -- SHA-256 of what was served, hexadecimal; '' if it was not
    previous       bytea NOT NULL,            -- the digest of the row before
    digest         bytea NOT NULL,            -- SHA-256 of "previous" and of context_package_audit_line
    PRIMARY KEY (tenant_id, day, seq)
) PARTITION BY RANGE (day);

CREATE INDEX IF NOT EXISTS policy_audit_erased ON policy_audit (tenant_id, ref, day, seq) WHERE access = 'erased';
CREATE INDEX IF NOT EXISTS policy_audit_erased_first ON policy_audit (tenant_id, day, seq) WHERE access = 'erased';
CREATE INDEX IF NOT EXISTS policy_audit_denied ON policy_audit (tenant_id, package_id) WHERE access = 'denied';

-- Which package has to do with a task, a trace or a source, under the package's first day; "about" is a hash.
CREATE TABLE IF NOT EXISTS context_package_uses (
    tenant_id  text NOT NULL,
    day        date NOT NULL,
    about      bigint NOT NULL,
    package_id text NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, about, day, package_id)
) PARTITION BY RANGE (day);

-- The newest revision of each package.
CREATE TABLE IF NOT EXISTS context_package_heads (
    tenant_id   text NOT NULL,
    package_id  text NOT NULL,
    request_id  text NOT NULL,
    request_day date NOT NULL,
    first_day   date NOT NULL,                -- of revision 1
    created_at  timestamptz NOT NULL,         -- of revision 1
    revision    integer NOT NULL,
    day         date NOT NULL,
    refs        text[] NOT NULL,              -- of the sources in it
    PRIMARY KEY (tenant_id, package_id)
);
CREATE INDEX IF NOT EXISTS context_package_heads_day ON context_package_heads (first_day);

-- What was shown of a source, once however many packages show it.
CREATE TABLE IF NOT EXISTS context_package_contents (
    tenant_id  text NOT NULL,
    ref        text NOT NULL,
    digest     bytea NOT NULL,                -- SHA-256 of title, heading and content
    session_id text,                          -- of a point or a message
    title      text NOT NULL,
    heading    text NOT NULL,
    content    text NOT NULL,
    last_day   date NOT NULL,                 -- on which a package showed it
    PRIMARY KEY (tenant_id, ref, digest)
);
CREATE INDEX IF NOT EXISTS context_package_contents_session ON context_package_contents (tenant_id, session_id)
    WHERE session_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS context_package_contents_day ON context_package_contents (last_day);

-- What was erased, so that a package that was being built meanwhile does not bring it back, and an audit can tell what was
-- erased from what is missing.
CREATE TABLE IF NOT EXISTS context_package_erasures (
    tenant_id text NOT NULL,
    ref       text NOT NULL,
    erased_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, ref)
);

-- Who has sent what under an Idempotency-Key.
CREATE TABLE IF NOT EXISTS context_package_keys (
    tenant_id   text NOT NULL,
    caller      text NOT NULL,
    key         bytea NOT NULL,               -- SHA-256
    body_digest text NOT NULL,
    package_id  text NOT NULL,
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, caller, key)
);
CREATE INDEX IF NOT EXISTS context_package_keys_expiry ON context_package_keys (expires_at);

-- Leases, by this server's clock: who rebuilds a package, and who relays a tenant's events.
CREATE TABLE IF NOT EXISTS context_package_leases (
    tenant_id   text NOT NULL,
    name        text NOT NULL,
    holder      text NOT NULL,
    acquired_at timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, name)
);

-- Each caller's latest feedback to a package.
CREATE TABLE IF NOT EXISTS context_package_feedback (
    tenant_id  text NOT NULL,
    package_id text NOT NULL,
    caller     text NOT NULL,
    day        date NOT NULL,                 -- the package's first
    outcome    float8,                        -- 0 to 1
    helped     jsonb NOT NULL,                -- {ref: 0 to 1}
    refs       text[] NOT NULL,               -- of the sources that were in the package
    note       text NOT NULL,
    at         timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, package_id, caller)
);
CREATE INDEX IF NOT EXISTS context_package_feedback_day ON context_package_feedback (day);
CREATE INDEX IF NOT EXISTS context_package_feedback_notes ON context_package_feedback USING gin (refs) WHERE note <> '';

-- What a caller's packages say of a source, decayed to "at", the caller's latest feedback to one that shows it.
CREATE TABLE IF NOT EXISTS context_source_ratings (
    tenant_id text NOT NULL,
    ref       text NOT NULL,
    caller    text NOT NULL,
    shown     float8 NOT NULL,                -- in so many packages
    helped    float8 NOT NULL,                -- in so many of these
    at        timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, ref, caller)
);
CREATE INDEX IF NOT EXISTS context_source_ratings_at ON context_source_ratings (at);

-- Their sums: each caller is one voice, however many packages he rates, and fades with a half-life of 30 days.
CREATE TABLE IF NOT EXISTS context_source_usefulness (
    tenant_id text NOT NULL,
    ref       text NOT NULL,
    callers   float8 NOT NULL,
    helped    float8 NOT NULL,                -- the sum of each caller's share of packages in which it helped
    at        timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, ref)
);

CREATE TABLE IF NOT EXISTS policy_audit_heads (
    tenant_id text PRIMARY KEY,
    seq       bigint NOT NULL,                -- of the last row
    digest    bytea NOT NULL,
    day       date NOT NULL
);
CREATE TABLE IF NOT EXISTS policy_audit_anchors (
    tenant_id text NOT NULL,
    day       date NOT NULL,
    seq       bigint NOT NULL,                -- of the day's last row
    count     bigint NOT NULL,                -- of the day's rows
    digest    bytea NOT NULL,                 -- of the day's last row
    PRIMARY KEY (tenant_id, day)
);

-- The outbox: what happened, in order, until it is in the event stream. Never content.
CREATE TABLE IF NOT EXISTS context_package_events (
    number      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id   text NOT NULL,
    id          uuid NOT NULL DEFAULT gen_random_uuid(),
    type        text NOT NULL,
    subject     text NOT NULL,
    at          timestamptz NOT NULL,
    traceparent text NOT NULL,
    data        jsonb NOT NULL
);
CREATE INDEX IF NOT EXISTS context_package_events_tenant ON context_package_events (tenant_id, number);

-- How many days the record is kept at least. The owner says so, as `migrate` does; who only calls functions cannot shorten it.
CREATE TABLE IF NOT EXISTS context_package_retention (
    is_all boolean PRIMARY KEY DEFAULT true CHECK (is_all),
    days   integer NOT NULL CHECK (days > 0)
);
ALTER TABLE context_package_retention ENABLE ROW LEVEL SECURITY;
CREATE OR REPLACE FUNCTION context_package_retain(at_least integer) RETURNS void LANGUAGE sql AS $$
    INSERT INTO context_package_retention (days) VALUES (at_least) ON CONFLICT (is_all) DO UPDATE SET days = EXCLUDED.days
$$;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY '{context_build_requests,context_packages,policy_decisions,policy_audit,context_package_uses,
        context_package_heads,context_package_contents,context_package_erasures,context_package_keys,context_package_leases,
        context_package_feedback,context_source_ratings,context_source_usefulness,policy_audit_heads,policy_audit_anchors,
        context_package_events}'::text[] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('DROP POLICY IF EXISTS %I ON %I', name || '_tenant', name);
        EXECUTE format($policy$CREATE POLICY %I ON %I
            USING (tenant_id = nullif(current_setting('context_builder.tenant', true), ''))
            WITH CHECK (tenant_id = nullif(current_setting('context_builder.tenant', true), ''))$policy$, name || '_tenant', name);
    END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION context_package_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE insufficient_privilege USING MESSAGE = 'policy_audit is append-only';
END
$$;
CREATE OR REPLACE TRIGGER policy_audit_append_only BEFORE UPDATE OR DELETE ON policy_audit
    FOR EACH ROW EXECUTE FUNCTION context_package_refuse_change();

-- The tables that are partitioned by day.
CREATE OR REPLACE FUNCTION context_package_daily() RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT '{context_build_requests,context_packages,policy_decisions,policy_audit,context_package_uses}'::text[]
$$;

-- Makes the partitions of some days. To attach one locks out neither readers nor writers of the others; to create it in
-- place would. Whoever writes the first row of a day comes here before anything else, so that nobody waits in a circle.
CREATE OR REPLACE FUNCTION context_package_partitions(first date, last date) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    schema   text := (SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = 'context_packages'::regclass);
    day      date;
    parent   text;
    name     text;
    outsider text;
BEGIN
    FOR day IN SELECT d::date FROM generate_series(first::timestamp, last::timestamp, '1 day') AS d LOOP
        FOREACH parent IN ARRAY context_package_daily() LOOP
            name := parent || to_char(day, '_YYYYMMDD');
            CONTINUE WHEN to_regclass(schema || '.' || name) IS NOT NULL;
            PERFORM pg_advisory_xact_lock(hashtextextended('context_packages', 0));
            -- Not to_regclass, which may go by what this session knew before it waited.
            CONTINUE WHEN EXISTS (SELECT FROM pg_class AS c
                                  WHERE c.relname = name AND c.relnamespace::regnamespace::text = schema);
            EXECUTE format('CREATE TABLE %s.%I (LIKE %s.%I INCLUDING ALL)', schema, name, schema, parent);
            EXECUTE format('ALTER TABLE %s.%I ENABLE ROW LEVEL SECURITY', schema, name);
            FOR outsider IN SELECT rolname FROM pg_roles
                            WHERE rolname IN ('context_builder_app', 'service_role', 'anon', 'authenticated') LOOP
                EXECUTE format('REVOKE ALL ON %s.%I FROM %I', schema, name, outsider);
            END LOOP;
            IF parent = 'policy_audit' THEN
                EXECUTE format('CREATE TRIGGER policy_audit_not_truncated BEFORE TRUNCATE ON %s.%I
                                EXECUTE FUNCTION %s.context_package_refuse_change()', schema, name, schema);
            END IF;
            EXECUTE format('ALTER TABLE %s.%I ATTACH PARTITION %s.%I FOR VALUES FROM (%L) TO (%L)',
                           schema, parent, schema, name, day, day + 1);
        END LOOP;
    END LOOP;
END
$$;

-- Writers of a tenant's record run one after the other: the audit has one order, and events have it, too.
CREATE OR REPLACE FUNCTION context_package_lock(tenant text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('context_packages ' || tenant, 0));
END
$$;

CREATE OR REPLACE FUNCTION context_package_day(at timestamptz) RETURNS date LANGUAGE sql IMMUTABLE AS $$
    SELECT (at AT TIME ZONE 'UTC')::date
$$;

-- A time that a server tells, whose clock may be ahead by a day at most: days that are far away would never be over.
CREATE OR REPLACE FUNCTION context_package_told_time(at timestamptz) RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT least(at, clock_timestamp() + interval '1 day')
$$;

CREATE OR REPLACE FUNCTION context_package_about(kind text, name text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT hashtextextended(kind || ' ' || name, 0)
$$;

-- The session of a ref that is made of one.
CREATE OR REPLACE FUNCTION context_package_session(ref text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN ref LIKE 'point:%' OR ref LIKE 'message:%' OR ref LIKE 'session:%'
           THEN nullif(split_part(substr(ref, strpos(ref, ':') + 1), '/', 1), '') END
$$;

CREATE OR REPLACE FUNCTION context_package_tell(
    tenant text, type text, subject text, at timestamptz, traceparent text, data jsonb
) RETURNS void LANGUAGE sql AS $$
    INSERT INTO context_package_events (tenant_id, type, subject, at, traceparent, data)
    VALUES (tenant, type, subject, at, traceparent, data || jsonb_build_object('tenantId', tenant))
$$;

-- Notes a request, before anything is retrieved for it.
CREATE OR REPLACE FUNCTION context_package_begin(
    tenant text, id text, package text, caller text, roles text[], request jsonb, task text, trace text,
    traceparent text, at timestamptz
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    at := context_package_told_time(at);
    PERFORM context_package_partitions(context_package_day(at), context_package_day(at));
    PERFORM context_package_lock(tenant);
    INSERT INTO context_build_requests (tenant_id, day, id, package_id, caller, roles, request, task_id, trace_id, traceparent,
                                        requested_at, erasures_are_kept)
    VALUES (tenant, context_package_day(at), id, package, caller, roles, request, task, trace, traceparent, at, true);
    PERFORM context_package_tell(tenant, 'ContextBuildRequested', id, at, traceparent, jsonb_build_object(
        'contextBuildRequestId', id, 'contextPackageId', package, 'taskId', task, 'traceId', trace,
        'tokenBudget', request -> 'tokenBudget', 'pinned', jsonb_array_length(coalesce(request -> 'pinned', '[]'))));
END
$$;

-- Marks a request that is being built as failed; answers whether it was.
CREATE OR REPLACE FUNCTION context_package_fail(tenant text, asked text, why text, at timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    UPDATE context_build_requests AS r SET status = 'failed', reason = why
    WHERE r.tenant_id = tenant AND r.id = asked AND r.status = 'building'
      AND r.day BETWEEN context_package_day(at) - 1 AND context_package_day(at) + 1;
    RETURN FOUND;
END
$$;

-- A text as it stands in a row of the audit: none may hold the tab that stands between fields.
CREATE OR REPLACE FUNCTION context_package_field(value text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT regexp_replace(value, '[\x01-\x1f]', ' ', 'g')
$$;

-- What an audit row's hash is of. Fields have no tab and no line feed in them.
CREATE OR REPLACE FUNCTION context_package_audit_line(a policy_audit) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT concat(a.tenant_id, E'\t', a.day - '2000-01-01'::date, E'\t', a.seq, E'\t',
                  (extract(epoch FROM a.at) * 1000000)::bigint, E'\t', a.decision_id, E'\t', a.package_id, E'\t', a.revision,
                  E'\t', a.policy_version, E'\t', a.caller, E'\t', a.ref, E'\t', a.version, E'\t', a.access, E'\t',
                  a.policies, E'\t', a.reason, E'\t', a.content_digest)
$$;

-- All else that an audit tells of a revision, of which its last row in policy_audit has the hash: the request and who made
-- it, the decision, every candidate's verdict, the graph, and the package with the hashes of its texts.
CREATE OR REPLACE FUNCTION context_package_told(r context_build_requests, p context_packages, d policy_decisions) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_array(
        r.id, r.package_id, r.caller, r.roles, r.request, r.task_id, r.trace_id, r.traceparent,
        (extract(epoch FROM r.requested_at) * 1000000)::bigint,
        p.id, p.revision, p.request_id, p.decision_id, p.governance_version, p.body, encode(p.digest, 'hex'), p.candidates,
        p.graph, (extract(epoch FROM p.created_at) * 1000000)::bigint,
        d.id, d.policy_version, d.caller, d.roles, d.agent, d.sources, (extract(epoch FROM d.decided_at) * 1000000)::bigint)::text
$$;

-- Closes the day of the last row, if it is over, with an anchor. The caller has the tenant's lock.
CREATE OR REPLACE FUNCTION context_package_anchor(tenant text, today date, at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    head   policy_audit_heads;
    before bigint;
BEGIN
    SELECT * INTO head FROM policy_audit_heads AS h WHERE h.tenant_id = tenant;
    IF head.day IS NULL OR head.day >= today THEN
        RETURN;
    END IF;
    SELECT coalesce(max(a.seq), 0) INTO before FROM policy_audit_anchors AS a WHERE a.tenant_id = tenant;
    IF head.seq > before THEN
        INSERT INTO policy_audit_anchors (tenant_id, day, seq, count, digest)
        VALUES (tenant, head.day, head.seq, head.seq - before, head.digest);
        PERFORM context_package_tell(tenant, 'AuditAnchored', to_char(head.day, 'YYYY-MM-DD'), at, '', jsonb_build_object(
            'day', to_char(head.day, 'YYYY-MM-DD'), 'seq', head.seq, 'count', head.seq - before,
            'hash', 'sha256:' || encode(head.digest, 'hex')));
    END IF;
    UPDATE policy_audit_heads AS h SET day = today WHERE h.tenant_id = tenant;
END
$$;

-- Closes the day of every tenant whose last row is of a day before.
CREATE OR REPLACE FUNCTION context_package_anchors(tenant text, at timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    other text;
BEGIN
    PERFORM context_memory_tenant(tenant);
    at := context_package_told_time(at);
    FOR other IN SELECT h.tenant_id FROM policy_audit_heads AS h WHERE h.day < context_package_day(at) ORDER BY 1 LOOP
        PERFORM context_package_lock(other);
        PERFORM context_package_anchor(other, context_package_day(at), at);
    END LOOP;
END
$$;

-- Appends rows to the audit; their tenant, day, number, time and hashes are set here. The caller has the tenant's lock.
CREATE OR REPLACE FUNCTION context_package_append(tenant text, at timestamptz, entries policy_audit[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    head  policy_audit_heads;
    entry policy_audit;
    chain policy_audit[] := '{}';
BEGIN
    PERFORM context_package_anchor(tenant, context_package_day(at), at);
    SELECT * INTO head FROM policy_audit_heads AS h WHERE h.tenant_id = tenant;
    head.seq := coalesce(head.seq, 0);
    head.digest := coalesce(head.digest, sha256(convert_to('context_builder.policy_audit ' || tenant, 'UTF8')));
    head.day := greatest(head.day, context_package_day(at));
    FOREACH entry IN ARRAY entries LOOP
        head.seq := head.seq + 1;
        entry.tenant_id := tenant;
        entry.day := head.day;
        entry.seq := head.seq;
        entry.at := at;
        IF concat(entry.caller, entry.ref, entry.policies, entry.reason) ~ '[\x01-\x1f]' THEN
            entry.caller := context_package_field(entry.caller);
            entry.ref := context_package_field(entry.ref);
            entry.policies := context_package_field(entry.policies);
            entry.reason := context_package_field(entry.reason);
        END IF;
        entry.previous := head.digest;
        head.digest := sha256(head.digest || convert_to(context_package_audit_line(entry), 'UTF8'));
        entry.digest := head.digest;
        chain := array_append(chain, entry);
    END LOOP;
    INSERT INTO policy_audit SELECT * FROM unnest(chain);
    INSERT INTO policy_audit_heads AS h (tenant_id, seq, digest, day) VALUES (tenant, head.seq, head.digest, head.day)
    ON CONFLICT (tenant_id) DO UPDATE SET seq = EXCLUDED.seq, digest = EXCLUDED.digest, day = EXCLUDED.day;
END
$$;

-- Records the next revision of a package: {package_id, request_id, created_at, body, candidates, graph, governance_version,
-- trace_id, traceparent, decision: {id, policy_version, caller, roles, agent, sources}}. Answers its number.
CREATE OR REPLACE FUNCTION context_package_finish(tenant text, built jsonb) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    at       timestamptz := context_package_told_time((built ->> 'created_at')::timestamptz);
    today    date := context_package_day(at);
    package  text := built ->> 'package_id';
    decision jsonb := built -> 'decision';
    number   integer;
    head     context_package_heads;
    asked    context_build_requests;
    made     context_packages;
    decided  policy_decisions;
    told     text;
    begun    timestamptz;
    body     jsonb;
    served   bytea;  -- the body's hash
    shown    jsonb;
    refs     text[]; -- of the sources
    digests  text[]; -- of their contents, hexadecimal
BEGIN
    PERFORM context_memory_tenant(tenant);
    PERFORM context_package_partitions(today, today);
    PERFORM context_package_lock(tenant);
    SELECT * INTO head FROM context_package_heads AS h WHERE h.tenant_id = tenant AND h.package_id = package;
    UPDATE context_build_requests AS r SET status = 'built', reason = ''
    WHERE r.tenant_id = tenant AND r.id = built ->> 'request_id'
      AND r.day BETWEEN coalesce(head.request_day, today - 1) AND coalesce(head.request_day, today + 1)
    RETURNING * INTO asked;
    IF asked.package_id IS DISTINCT FROM package THEN
        RAISE foreign_key_violation USING MESSAGE = 'a package is built for a request that was noted for it';
    END IF;
    number := coalesce(head.revision, 0) + 1;
    body := jsonb_set(built -> 'body', '{revision}', to_jsonb(number));
    served := sha256(convert_to(body::text, 'UTF8'));
    begun := CASE WHEN head.revision IS NULL THEN asked.begun_at ELSE coalesce(
        (SELECT l.acquired_at FROM context_package_leases AS l WHERE l.tenant_id = tenant AND l.name = 'rebuild ' || package),
        clock_timestamp() - interval '1 minute') END;

    WITH sources AS (
        SELECT s.source, s.place, s.source ->> 'ref' AS ref,
               sha256(convert_to(concat_ws(E'\n', coalesce(s.source ->> 'title', ''), coalesce(s.source ->> 'heading', ''),
                                           coalesce(s.source ->> 'content', '')), 'UTF8')) AS digest,
               encode(sha256(convert_to(coalesce(s.source ->> 'content', ''), 'UTF8')), 'hex') AS content_digest
        FROM jsonb_array_elements(body -> 'sources') WITH ORDINALITY AS s (source, place)
    ), held AS (
        INSERT INTO context_package_contents AS c (tenant_id, ref, digest, session_id, title, heading, content, last_day)
        SELECT DISTINCT ON (s.ref, s.digest) tenant, s.ref, s.digest, context_package_session(s.ref),
               coalesce(s.source ->> 'title', ''), coalesce(s.source ->> 'heading', ''),
               coalesce(s.source ->> 'content', ''), today
        FROM sources AS s
        WHERE NOT EXISTS (SELECT FROM context_package_erasures AS e WHERE e.tenant_id = tenant AND e.erased_at >= begun
                          AND e.ref IN (s.ref, 'session:' || context_package_session(s.ref)))
        ON CONFLICT (tenant_id, ref, digest) DO UPDATE SET last_day = EXCLUDED.last_day WHERE c.last_day < EXCLUDED.last_day
    )
    SELECT coalesce(jsonb_agg(s.source - '{title,heading,content}'::text[] || jsonb_build_object(
               'digest', encode(s.digest, 'hex'), 'contentDigest', s.content_digest) ORDER BY s.place), '[]'),
           coalesce(array_agg(s.ref), '{}'), array_agg(s.content_digest)
    INTO shown, refs, digests FROM sources AS s;

    INSERT INTO context_packages (tenant_id, day, id, revision, request_id, decision_id, governance_version, body, digest,
                                  candidates, graph, created_at)
    VALUES (tenant, today, package, number, asked.id, decision ->> 'id', built ->> 'governance_version',
            jsonb_set(body, '{sources}', shown), served, built -> 'candidates',
            nullif(built -> 'graph', 'null'), at)
    RETURNING * INTO made;
    INSERT INTO context_package_heads AS h (tenant_id, package_id, request_id, request_day, first_day, created_at, revision,
                                            day, refs)
    VALUES (tenant, package, asked.id, asked.day, today, at, number, today,
            ARRAY(SELECT DISTINCT r FROM unnest(refs) AS r))
    ON CONFLICT (tenant_id, package_id) DO UPDATE SET revision = EXCLUDED.revision, day = EXCLUDED.day, refs = EXCLUDED.refs
    RETURNING * INTO head;
    INSERT INTO context_package_uses (tenant_id, day, about, package_id, created_at)
    SELECT DISTINCT tenant, head.first_day, u.about, package, head.created_at
    FROM (SELECT context_package_about('ref', r) FROM unnest(head.refs) AS r
          UNION ALL SELECT context_package_about('trace', t) FROM unnest(ARRAY[asked.trace_id, built ->> 'trace_id']) AS t
                    WHERE t <> ''
          UNION ALL SELECT context_package_about('task', asked.task_id) WHERE asked.task_id <> '') AS u (about)
    ON CONFLICT DO NOTHING;
    INSERT INTO policy_decisions (tenant_id, day, id, package_id, revision, policy_version, caller, roles, agent, sources,
                                  decided_at)
    VALUES (tenant, today, decision ->> 'id', package, number, decision ->> 'policy_version', decision ->> 'caller',
            ARRAY(SELECT jsonb_array_elements_text(decision -> 'roles')), decision -> 'agent', decision -> 'sources', at)
    RETURNING * INTO decided;
    told := encode(sha256(convert_to(context_package_told(asked, made, decided), 'UTF8')), 'hex');
    PERFORM context_package_append(tenant, at, ARRAY(
        WITH candidates AS (
            SELECT c.ref, max(c.version) AS version
            FROM jsonb_to_recordset(built -> 'candidates') AS c (ref text, version integer) GROUP BY c.ref
        ), contents AS (
            SELECT c.ref, min(c.digest) AS digest FROM unnest(refs, digests) AS c (ref, digest) GROUP BY c.ref
        ), entries AS (
            SELECT s.place, s.ref, c.version, s.access, array_to_string(s.policies, ',') AS policies, coalesce(s.reason, '') AS reason,
                   coalesce(b.digest, '') AS digest
            FROM ROWS FROM (jsonb_to_recordset(decision -> 'sources') AS (ref text, access text, policies text[], reason text))
                 WITH ORDINALITY AS s (ref, access, policies, reason, place)
            LEFT JOIN candidates AS c ON c.ref = s.ref
            LEFT JOIN contents AS b ON b.ref = s.ref
            UNION ALL SELECT 9223372036854775807, '', NULL, 'served', '', 'told sha256:' || told, encode(served, 'hex')
        )
        SELECT ROW(tenant, today, 0, at, decision ->> 'id', package, number, decision ->> 'policy_version', decision ->> 'caller',
                   e.ref, e.version, e.access, e.policies, e.reason, e.digest, '', '')::policy_audit
        FROM entries AS e ORDER BY e.place));
    PERFORM context_package_tell(
        tenant, 'ContextPackageBuilt', package, at, coalesce(nullif(built ->> 'traceparent', ''), asked.traceparent),
        jsonb_build_object(
            'contextPackageId', package, 'contextBuildRequestId', asked.id, 'revision', number, 'taskId', asked.task_id,
            'traceId', coalesce(nullif(built ->> 'trace_id', ''), asked.trace_id), 'policyDecisionId', decision ->> 'id',
            'graphProjectionId', body -> 'graphProjectionId', 'tokenBudget', body -> 'tokenBudget',
            'tokensUsed', body -> 'tokensUsed', 'sources', jsonb_array_length(shown), 'denied', body -> 'denied',
            'redacted', body -> 'redacted', 'excluded', body -> 'excluded', 'rebuilt', number > 1));
    RETURN number;
END
$$;

-- Appends the denials of sources of which who asked for a package may not know, which are looked for once it is answered:
-- [{ref, version, access, policies, reason}]. Those that the decision has are left out.
CREATE OR REPLACE FUNCTION context_package_deny(tenant text, package text, number integer, denied jsonb, at timestamptz)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    told    timestamptz := context_package_told_time(at);
    today   date := context_package_day(told);
    decided policy_decisions;
    entries policy_audit[];
BEGIN
    PERFORM context_memory_tenant(tenant);
    PERFORM context_package_partitions(today, today);
    PERFORM context_package_lock(tenant);
    SELECT d.* INTO decided
    FROM context_packages AS p JOIN policy_decisions AS d ON d.tenant_id = tenant AND d.day = p.day AND d.id = p.decision_id
    WHERE p.tenant_id = tenant AND p.id = package AND p.revision = number AND p.day BETWEEN today - 1 AND today;
    SELECT array_agg(ROW(tenant, today, 0, told, decided.id, package, number, decided.policy_version, decided.caller, s.ref,
                         s.version, s.access, array_to_string(s.policies, ','), coalesce(s.reason, ''), '', '', '')::policy_audit
                     ORDER BY s.place)
    INTO entries
    FROM (
        SELECT DISTINCT ON (context_package_field(r.ref)) r.*
        FROM ROWS FROM (jsonb_to_recordset(denied) AS (ref text, version integer, access text, policies text[], reason text))
             WITH ORDINALITY AS r (ref, version, access, policies, reason, place)
        WHERE r.access = 'denied' ORDER BY context_package_field(r.ref), r.place
    ) AS s
    WHERE decided.id IS NOT NULL
      AND NOT EXISTS (SELECT FROM jsonb_array_elements(decided.sources) AS d (source) WHERE d.source ->> 'ref' = s.ref)
      AND NOT EXISTS (SELECT FROM policy_audit AS a  -- sent again
                      WHERE a.tenant_id = tenant AND a.package_id = package AND a.access = 'denied' AND a.revision = number
                        AND a.ref = context_package_field(s.ref));
    IF entries IS NOT NULL THEN
        PERFORM context_package_append(tenant, told, entries);
    END IF;
END
$$;

-- The denials of a revision that are in the audit alone: of sources of which who asked for it may not know.
CREATE OR REPLACE FUNCTION context_package_unknown(p context_packages, d policy_decisions) RETURNS SETOF policy_audit
LANGUAGE sql STABLE AS $$
    SELECT a.* FROM policy_audit AS a
    WHERE a.tenant_id = p.tenant_id AND a.package_id = p.id AND a.access = 'denied' AND a.revision = p.revision
      AND a.day BETWEEN p.day AND p.day + 1
      AND NOT EXISTS (SELECT FROM jsonb_array_elements(d.sources) AS s (source)
                      WHERE context_package_field(s.source ->> 'ref') = a.ref)
    ORDER BY a.day, a.seq
$$;

-- A body as it was served, but for what was erased since: of that, the texts are empty, and "erased" is true where
-- that is to be told.
CREATE OR REPLACE FUNCTION context_package_body(p context_packages, tells_erased boolean) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_set(p.body, '{sources}', coalesce((
        SELECT jsonb_agg(s.source - '{digest,contentDigest}'::text[] || jsonb_build_object(
                             'title', coalesce(c.title, ''), 'heading', coalesce(c.heading, ''),
                             'content', coalesce(c.content, ''))
                         || CASE WHEN c.ref IS NULL AND tells_erased
                            THEN jsonb_build_object('erased', true, 'contentDigest', s.source ->> 'contentDigest')
                            ELSE '{}' END ORDER BY s.place)
        FROM jsonb_array_elements(p.body -> 'sources') WITH ORDINALITY AS s (source, place)
        LEFT JOIN context_package_contents AS c ON c.tenant_id = p.tenant_id AND c.ref = s.source ->> 'ref'
                                               AND c.digest = decode(s.source ->> 'digest', 'hex')), '[]'))
$$;

-- A package's request and newest revision; no row where there is none, or its first day is before "oldest".
CREATE OR REPLACE FUNCTION context_package_latest(tenant text, package text, oldest timestamptz) RETURNS SETOF jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
DECLARE
    head context_package_heads;
BEGIN
    PERFORM context_memory_tenant(tenant);
    SELECT * INTO head FROM context_package_heads AS h
    WHERE h.tenant_id = tenant AND h.package_id = package AND h.created_at >= oldest;
    RETURN QUERY
        SELECT jsonb_build_object(
            'package_id', p.id, 'request_id', r.id, 'request', r.request, 'caller', r.caller, 'roles', r.roles,
            'task_id', r.task_id, 'trace_id', r.trace_id, 'traceparent', r.traceparent, 'revision', p.revision,
            'body', context_package_body(p, false), 'governance_version', p.governance_version, 'created_at', p.created_at)
        FROM context_build_requests AS r, context_packages AS p
        WHERE r.tenant_id = tenant AND r.day = head.request_day AND r.id = head.request_id
          AND p.tenant_id = tenant AND p.day = head.day AND p.id = package AND p.revision = head.revision;
END
$$;

-- The packages that have to do with a task, a trace or a ref ("kind"), the newest first, from the one after "before" on.
CREATE OR REPLACE FUNCTION context_package_listing(
    tenant text, kind text, name text, most integer, before text, oldest timestamptz
) RETURNS TABLE (package_id text, created_at timestamptz) LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY
        SELECT u.package_id, u.created_at FROM context_package_uses AS u
        WHERE u.tenant_id = tenant AND u.about = context_package_about(kind, name) AND u.created_at >= oldest
          AND u.day >= context_package_day(oldest)
          AND (before IS NULL OR (u.day, u.package_id) < (
               SELECT h.first_day, h.package_id FROM context_package_heads AS h
               WHERE h.tenant_id = tenant AND h.package_id = before))
        ORDER BY u.day DESC, u.package_id DESC LIMIT most;
END
$$;

-- The newest packages, what they were asked for and what is in them: one caller's, or without a caller all; with "among", of
-- these ids. Of the 1,000 newest.
CREATE OR REPLACE FUNCTION context_package_recent(
    tenant text, asked_by text, most integer, oldest timestamptz, among text[] DEFAULT NULL
) RETURNS TABLE (
    package_id text, created_at timestamptz, intent text, task_id text, project text, caller text, sources integer,
    tokens_used integer, token_budget integer, outcome double precision
)
LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY
        SELECT h.package_id, h.created_at, COALESCE(r.request ->> 'intent', ''), r.task_id,
               COALESCE(r.request -> 'scope' ->> 'projectId', ''), r.caller,
               cardinality(h.refs), (p.body ->> 'tokensUsed')::integer, (p.body ->> 'tokenBudget')::integer,
               (SELECT avg(f.outcome) FROM context_package_feedback AS f
                WHERE f.tenant_id = tenant AND f.package_id = h.package_id)
        FROM (SELECT n.* FROM context_package_heads AS n
              WHERE n.tenant_id = tenant AND n.created_at >= oldest AND (among IS NULL OR n.package_id = ANY (among))
              ORDER BY n.package_id DESC LIMIT 1000) AS h -- an id begins with the moment at which it was made
        JOIN context_build_requests AS r ON r.tenant_id = tenant AND r.day = h.request_day AND r.id = h.request_id
        JOIN context_packages AS p
            ON p.tenant_id = tenant AND p.id = h.package_id AND p.revision = h.revision AND p.day = h.day
        WHERE asked_by IS NULL OR r.caller = asked_by
        ORDER BY h.package_id DESC LIMIT most;
END
$$;

-- All that is recorded of a package: its request, and each revision with its decision and candidates.
CREATE OR REPLACE FUNCTION context_package_audit(tenant text, package text, oldest timestamptz) RETURNS SETOF jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
DECLARE
    head context_package_heads;
BEGIN
    PERFORM context_memory_tenant(tenant);
    SELECT * INTO head FROM context_package_heads AS h
    WHERE h.tenant_id = tenant AND h.package_id = package AND h.created_at >= oldest;
    RETURN QUERY
        SELECT jsonb_build_object(
            'package_id', package,
            'request', jsonb_build_object(
                -- it was built: its revisions tell that, and what else its row says of it is in no hash
                'id', r.id, 'status', 'built', 'reason', '', 'caller', r.caller, 'roles', r.roles, 'body', r.request,
                'task_id', r.task_id, 'trace_id', r.trace_id, 'requested_at', r.requested_at),
            'revisions', (
                SELECT jsonb_agg(jsonb_build_object(
                    'revision', p.revision, 'created_at', p.created_at, 'governance_version', p.governance_version,
                    'hash', 'sha256:' || encode(p.digest, 'hex'), 'body', context_package_body(p, true),
                    'candidates', p.candidates || u.candidates, 'graph', p.graph,
                    'decision', CASE WHEN d.id IS NOT NULL THEN jsonb_build_object(
                        'id', d.id, 'policy_version', d.policy_version, 'caller', d.caller, 'roles', d.roles,
                        'agent', d.agent, 'sources', d.sources || u.sources, 'decided_at', d.decided_at) END)
                    ORDER BY p.revision)
                FROM context_packages AS p
                LEFT JOIN policy_decisions AS d ON d.tenant_id = tenant AND d.day = p.day AND d.id = p.decision_id
                CROSS JOIN LATERAL (
                    SELECT coalesce(jsonb_agg(jsonb_build_object(
                               'ref', a.ref, 'version', a.version, 'outcome', a.access, 'reason', a.reason, 'score', 0,
                               'signals', '{}'::jsonb, 'tokens', 0, 'origins', '["semantic"]'::jsonb)), '[]') AS candidates,
                           coalesce(jsonb_agg(jsonb_build_object(
                               'ref', a.ref, 'access', a.access, 'policies', string_to_array(a.policies, ','),
                               'reason', a.reason)), '[]') AS sources
                    FROM context_package_unknown(p, d) AS a) AS u
                WHERE p.tenant_id = tenant AND p.id = package AND p.day BETWEEN head.first_day - 1 AND head.day + 1))
        FROM context_build_requests AS r
        WHERE r.tenant_id = tenant AND r.day = head.request_day AND r.id = head.request_id;
END
$$;

-- Where the audit's chain stands: {"head": {"seq", "hash"}, "anchors": [{"day", "seq", "count", "hash"}]}, hexadecimal.
CREATE OR REPLACE FUNCTION context_package_audit_state(tenant text) RETURNS jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN jsonb_build_object(
        'head', (SELECT jsonb_build_object('seq', h.seq, 'hash', encode(h.digest, 'hex')) FROM policy_audit_heads AS h
                 WHERE h.tenant_id = tenant),
        'anchors', (SELECT coalesce(jsonb_agg(jsonb_build_object(
                        'day', to_char(a.day, 'YYYY-MM-DD'), 'seq', a.seq, 'count', a.count, 'hash', encode(a.digest, 'hex'))
                        ORDER BY a.day), '[]') FROM policy_audit_anchors AS a WHERE a.tenant_id = tenant));
END
$$;

-- The next rows of the audit after one of a day, given as days since 2000-01-01: of each the line that its hash is of,
-- then "previous" and "digest" in hexadecimal.
CREATE OR REPLACE FUNCTION context_package_audit_rows(tenant text, after_day integer, after_seq bigint, most integer)
RETURNS SETOF text LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY
        SELECT concat(context_package_audit_line(p), E'\t', encode(p.previous, 'hex'), E'\t', encode(p.digest, 'hex'))
        FROM policy_audit AS p
        WHERE p.tenant_id = tenant AND p.day >= '2000-01-01'::date + after_day
          AND (p.day, p.seq) > ('2000-01-01'::date + after_day, after_seq)
        ORDER BY p.day, p.seq LIMIT most;
END
$$;

-- What was told of the packages of the next rows of the audit, as "audit_rows" pages them: {"seq", "day", "package_id",
-- "hash", "is_kept", "is_found", "told", "contents": [[ref, digest, title, heading, content]], "missing": [ref]}, hashes in
-- hexadecimal; "told" is null where something of it is gone. "missing" are sources whose texts are gone, and were not erased. "is_kept" says whether the package should still be shown: a later revision may outlive
-- its first one, with which its head goes. "is_found" says whether the head, if there is one, leads to all of this.
CREATE OR REPLACE FUNCTION context_package_audit_told(tenant text, after_day integer, after_seq bigint, most integer)
RETURNS SETOF jsonb LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
DECLARE
    first_erased record;
BEGIN
    PERFORM context_memory_tenant(tenant);
    SELECT b.day, b.seq INTO first_erased FROM policy_audit AS b
    WHERE b.tenant_id = tenant AND b.access = 'erased' ORDER BY b.day, b.seq LIMIT 1;
    RETURN QUERY
        WITH together AS MATERIALIZED (  -- the last day on which a ref was erased with others; read where a text is missing
            SELECT coalesce(jsonb_object_agg(e.ref, e.day), '{}') AS days
            FROM (SELECT r.ref, max(b.day) AS day
                  FROM policy_audit AS b CROSS JOIN LATERAL jsonb_array_elements_text(b.reason::jsonb) AS r (ref)
                  WHERE b.tenant_id = tenant AND b.access = 'erased' AND b.ref = ''
                    AND b.day >= '2000-01-01'::date + after_day - 1
                  GROUP BY r.ref) AS e)
        SELECT jsonb_build_object(
            'seq', a.seq, 'day', a.day - '2000-01-01'::date, 'package_id', a.package_id, 'decision_id', a.decision_id,
            'hash', substr(a.reason, 13), 'is_kept', h.package_id IS NOT NULL OR a.revision = 1,
            'is_found', coalesce(
                h.request_id = p.request_id AND p.revision <= h.revision AND p.day BETWEEN h.first_day - 1 AND h.day + 1
                AND (p.revision > 1 OR h.created_at = p.created_at), true)
                AND (d.package_id = a.package_id AND d.revision = a.revision) IS NOT FALSE,
            'told', CASE WHEN r.id IS NOT NULL AND p.id IS NOT NULL AND d.id IS NOT NULL THEN context_package_told(r, p, d) END,
            'contents', (SELECT coalesce(jsonb_agg(jsonb_build_array(
                             c.ref, encode(c.digest, 'hex'), c.title, c.heading, c.content)), '[]')
                         FROM jsonb_array_elements(p.body -> 'sources') AS s (source)
                         JOIN context_package_contents AS c ON c.tenant_id = tenant AND c.ref = s.source ->> 'ref'
                                                           AND c.digest = decode(s.source ->> 'digest', 'hex')),
            'missing', (SELECT coalesce(jsonb_agg(s.source ->> 'ref'), '[]')
                        FROM jsonb_array_elements(p.body -> 'sources') AS s (source)
                        WHERE r.erasures_are_kept
                          AND NOT EXISTS (SELECT FROM context_package_contents AS c
                                          WHERE c.tenant_id = tenant AND c.ref = s.source ->> 'ref'
                                            AND c.digest = decode(s.source ->> 'digest', 'hex'))
                          -- Not EXISTS, which may be planned as a join that reads all erasures for each source.
                          AND (SELECT true FROM context_package_erasures AS e
                               WHERE e.tenant_id = tenant AND e.erased_at >= r.begun_at AND e.ref IN (
                                   s.source ->> 'ref', 'session:' || context_package_session(s.source ->> 'ref'))
                                 -- a chain that has an erasure has all that came later
                                 AND ((first_erased.day, first_erased.seq) < (a.day, a.seq) IS NOT TRUE
                                      OR (SELECT true FROM policy_audit AS b
                                          WHERE b.tenant_id = tenant AND b.access = 'erased'
                                            AND b.ref = context_package_field(e.ref) AND b.day >= a.day - 1 LIMIT 1)
                                      OR ((SELECT t.days FROM together AS t) ->> e.ref)::date >= a.day - 1)
                               LIMIT 1) IS NULL))
        FROM (SELECT n.* FROM policy_audit AS n
              WHERE n.tenant_id = tenant AND n.day >= '2000-01-01'::date + after_day
                AND (n.day, n.seq) > ('2000-01-01'::date + after_day, after_seq) AND n.ref = '' AND n.reason LIKE 'told sha256:%'
              ORDER BY n.day, n.seq LIMIT most) AS a
        LEFT JOIN context_package_heads AS h ON h.tenant_id = tenant AND h.package_id = a.package_id
        LEFT JOIN context_packages AS p ON p.tenant_id = tenant AND p.id = a.package_id AND p.revision = a.revision
                                       AND p.day BETWEEN a.day - 1 AND a.day + 1
        LEFT JOIN policy_decisions AS d ON d.tenant_id = tenant AND d.id = a.decision_id AND d.day = p.day
        LEFT JOIN context_build_requests AS r ON r.tenant_id = tenant AND r.id = p.request_id AND r.day = h.request_day
        ORDER BY a.day, a.seq;
END
$$;

-- Takes an idempotency key for a package, unless one holds it. Answers the package that does, null for another body.
CREATE OR REPLACE FUNCTION context_package_claim(
    tenant text, caller_sub text, idempotency_key text, digest text, package text, at timestamptz, seconds float8
) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    held context_package_keys;
BEGIN
    PERFORM context_memory_tenant(tenant);
    INSERT INTO context_package_keys AS k (tenant_id, caller, key, body_digest, package_id, expires_at)
    VALUES (tenant, caller_sub, sha256(convert_to(idempotency_key, 'UTF8')), digest, package, at + make_interval(secs => seconds))
    ON CONFLICT (tenant_id, caller, key) DO UPDATE SET
        body_digest = CASE WHEN k.expires_at <= at THEN EXCLUDED.body_digest ELSE k.body_digest END,
        package_id = CASE WHEN k.expires_at <= at THEN EXCLUDED.package_id ELSE k.package_id END,
        expires_at = CASE WHEN k.expires_at <= at THEN EXCLUDED.expires_at ELSE k.expires_at END
    RETURNING * INTO held;
    RETURN CASE WHEN held.body_digest = digest THEN held.package_id END;
END
$$;

-- Takes or renews a lease for so many seconds; answers whether it is the holder's.
CREATE OR REPLACE FUNCTION context_package_lease(tenant text, lease text, by_holder text, seconds float8) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    until timestamptz := clock_timestamp() + make_interval(secs => seconds);
BEGIN
    PERFORM context_memory_tenant(tenant);
    INSERT INTO context_package_leases AS l (tenant_id, name, holder, acquired_at, expires_at)
    VALUES (tenant, lease, by_holder, clock_timestamp(), until)
    ON CONFLICT (tenant_id, name) DO UPDATE SET
        holder = by_holder, expires_at = until,
        acquired_at = CASE WHEN l.holder = by_holder THEN l.acquired_at ELSE EXCLUDED.acquired_at END
    WHERE l.holder = by_holder OR l.expires_at <= clock_timestamp();
    RETURN FOUND;
END
$$;

CREATE OR REPLACE FUNCTION context_package_release(tenant text, lease text, by_holder text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    DELETE FROM context_package_leases AS l WHERE l.tenant_id = tenant AND l.name = lease AND l.holder = by_holder;
END
$$;

-- Takes the lease to rebuild a package, unless there is a revision after "seen" already. Answers {"revision", "held"}.
CREATE OR REPLACE FUNCTION context_package_rebuild(tenant text, package text, seen integer, by_holder text, seconds float8)
RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    newest integer;
    held   boolean;
BEGIN
    held := context_package_lease(tenant, 'rebuild ' || package, by_holder, seconds);
    SELECT h.revision INTO newest FROM context_package_heads AS h WHERE h.tenant_id = tenant AND h.package_id = package;
    IF held AND newest > seen THEN
        PERFORM context_package_release(tenant, 'rebuild ' || package, by_holder);
        held := false;
    END IF;
    RETURN jsonb_build_object('revision', coalesce(newest, 0), 'held', held);
END
$$;

-- The tenants of whom events wait, whoever asks: each by a look into the index, however many events there are.
CREATE OR REPLACE FUNCTION context_package_events_waiting(tenant text) RETURNS SETOF text
LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY
        WITH RECURSIVE waiting (name) AS (
            SELECT min(e.tenant_id) FROM context_package_events AS e
            UNION ALL
            SELECT (SELECT min(e.tenant_id) FROM context_package_events AS e WHERE e.tenant_id > w.name)
            FROM waiting AS w WHERE w.name IS NOT NULL
        )
        SELECT w.name FROM waiting AS w WHERE w.name IS NOT NULL;
END
$$;

-- The tenant's oldest events, for who has or gets the lease to relay them; nobody else is answered any.
CREATE OR REPLACE FUNCTION context_package_events_take(tenant text, by_holder text, seconds float8, most integer)
RETURNS SETOF jsonb LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF context_package_lease(tenant, 'events', by_holder, seconds) THEN
        RETURN QUERY
            SELECT jsonb_build_object('number', e.number, 'id', e.id, 'type', e.type, 'subject', e.subject, 'at', e.at,
                                      'traceparent', e.traceparent, 'data', e.data)
            FROM context_package_events AS e WHERE e.tenant_id = tenant ORDER BY e.number LIMIT most;
    END IF;
END
$$;

-- Deletes the events up to one, which are in the stream, and gives the lease back.
CREATE OR REPLACE FUNCTION context_package_events_done(tenant text, by_holder text, last bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    DELETE FROM context_package_events AS e WHERE e.tenant_id = tenant AND e.number <= last;
    PERFORM context_package_release(tenant, 'events', by_holder);
END
$$;

-- How much of something is left after some time, with a half-life of 30 days.
CREATE OR REPLACE FUNCTION context_package_left(since timestamptz, at timestamptz) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
    SELECT power(0.5::float8, least(greatest(extract(epoch FROM at - since)::float8, 0) / 2592000, 1000))
$$;

-- The newest packages with an outcome or a note, of feedback after "since": the mean of its callers' outcomes, the latest note,
-- and what it was made of, its newest revision without any text.
CREATE OR REPLACE FUNCTION context_package_outcomes(tenant text, since timestamptz, most integer) RETURNS SETOF jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY
        SELECT jsonb_build_object(
            'package_id', f.package_id, 'outcome', f.outcome, 'callers', f.callers, 'note', f.note, 'at', f.at,
            'tokens_used', p.body -> 'tokensUsed', 'token_budget', p.body -> 'tokenBudget', 'policy_version', p.body -> 'policyVersion',
            'sources', (SELECT coalesce(jsonb_agg(jsonb_build_object('ref', s -> 'ref', 'tokens', s -> 'tokens', 'signals', s -> 'signals',
                                                                     'projection', s -> 'projection')), '[]')
                        FROM jsonb_array_elements(p.body -> 'sources') AS s WHERE s ->> 'erased' IS NULL))
        FROM (
            SELECT b.package_id, avg(b.outcome) AS outcome, count(*) AS callers, max(b.at) AS at,
                   (array_agg(b.note ORDER BY b.at DESC) FILTER (WHERE b.note <> ''))[1] AS note
            FROM context_package_feedback AS b
            WHERE b.tenant_id = tenant AND b.at >= since AND (b.outcome IS NOT NULL OR b.note <> '')
            GROUP BY b.package_id ORDER BY max(b.at) DESC LIMIT most
        ) AS f
        JOIN context_package_heads AS h ON h.tenant_id = tenant AND h.package_id = f.package_id
        JOIN context_packages AS p ON p.tenant_id = tenant AND p.id = h.package_id AND p.revision = h.revision AND p.day = h.day
        ORDER BY f.at DESC, f.package_id;
END
$$;

-- Notes a caller's feedback to a package in place of an earlier one; false for a package that is not there. What helped
-- counts for sources that were in it, null for those that the caller may not see. Without any, nothing is said of them.
CREATE OR REPLACE FUNCTION context_package_rate(
    tenant text, package text, caller_sub text, how_good float8, what_helped jsonb, remark text, at timestamptz, oldest timestamptz
) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    head  context_package_heads;
    hidden text[];
    old   context_package_feedback;
    moved record;
    own   context_source_ratings;
    was   context_source_ratings;
BEGIN
    PERFORM context_memory_tenant(tenant);
    PERFORM context_package_lock(tenant);
    SELECT * INTO head FROM context_package_heads AS h
    WHERE h.tenant_id = tenant AND h.package_id = package AND h.created_at >= oldest;
    IF head.package_id IS NULL THEN
        RETURN false;
    END IF;
    hidden := ARRAY(SELECT e.key FROM jsonb_each(what_helped) AS e WHERE e.value = 'null');
    head.refs := ARRAY(SELECT r FROM unnest(head.refs) AS r WHERE r <> ALL (hidden));
    what_helped := (SELECT coalesce(jsonb_object_agg(e.key, e.value), '{}') FROM jsonb_each(what_helped) AS e
                    WHERE e.key = ANY (head.refs));
    SELECT * INTO old FROM context_package_feedback AS f
    WHERE f.tenant_id = tenant AND f.package_id = package AND f.caller = caller_sub;
    INSERT INTO context_package_feedback AS f (tenant_id, package_id, caller, day, outcome, helped, refs, note, at)
    VALUES (tenant, package, caller_sub, head.first_day, how_good, what_helped, head.refs, remark, at)
    ON CONFLICT (tenant_id, package_id, caller) DO UPDATE SET
        outcome = EXCLUDED.outcome, helped = EXCLUDED.helped, refs = EXCLUDED.refs, note = EXCLUDED.note, at = EXCLUDED.at;
    FOR moved IN
        SELECT v.ref, sum(v.weight) AS shown, sum(v.weight * least(greatest(coalesce(v.value, 0), 0), 1)) AS helped FROM (
            SELECT r AS ref, -context_package_left(old.at, at) AS weight, (old.helped ->> r)::float8 AS value
            FROM unnest(old.refs) AS r WHERE old.helped <> '{}'
            UNION ALL
            SELECT r, 1, (what_helped ->> r)::float8 FROM unnest(head.refs) AS r WHERE what_helped <> '{}'
        ) AS v GROUP BY v.ref
    LOOP
        SELECT * INTO was FROM context_source_ratings AS r
        WHERE r.tenant_id = tenant AND r.ref = moved.ref AND r.caller = caller_sub;
        own.shown := coalesce(was.shown, 0) * context_package_left(coalesce(was.at, at), at) + moved.shown;
        own.helped := coalesce(was.helped, 0) * context_package_left(coalesce(was.at, at), at) + moved.helped;
        IF own.shown < 1e-6 THEN  -- the only package that said something of it
            own.shown := 0;
            DELETE FROM context_source_ratings AS r WHERE r.tenant_id = tenant AND r.ref = moved.ref AND r.caller = caller_sub;
        ELSE
            own.helped := least(greatest(own.helped, 0), own.shown);
            INSERT INTO context_source_ratings AS r (tenant_id, ref, caller, shown, helped, at)
            VALUES (tenant, moved.ref, caller_sub, own.shown, own.helped, at)
            ON CONFLICT (tenant_id, ref, caller) DO UPDATE SET shown = EXCLUDED.shown, helped = EXCLUDED.helped, at = EXCLUDED.at;
        END IF;
        PERFORM context_package_count_voice(
            tenant, moved.ref, at,
            (own.shown > 0)::integer - CASE WHEN was.shown > 0 THEN context_package_left(was.at, at) ELSE 0 END,
            CASE WHEN own.shown > 0 THEN own.helped / own.shown ELSE 0 END
                - CASE WHEN was.shown > 0 THEN context_package_left(was.at, at) * was.helped / was.shown ELSE 0 END);
    END LOOP;
    RETURN true;
END
$$;

-- Adds to a source's sums, which are decayed to "now".
CREATE OR REPLACE FUNCTION context_package_count_voice(tenant text, source text, now timestamptz, voices float8, share float8)
RETURNS void LANGUAGE sql AS $$
    INSERT INTO context_source_usefulness AS u (tenant_id, ref, callers, helped, at)
    VALUES (tenant, source, greatest(voices, 0), least(greatest(share, 0), greatest(voices, 0)), now)
    ON CONFLICT (tenant_id, ref) DO UPDATE SET
        callers = greatest(u.callers * context_package_left(u.at, now) + voices, 0),
        helped = least(greatest(u.helped * context_package_left(u.at, now) + share, 0),
                       greatest(u.callers * context_package_left(u.at, now) + voices, 0)),
        at = greatest(u.at, now)
$$;

-- Of each ref that anything is known of: "reuse", the share in which it helped, of 40 callers at least, so that one moves
-- it by no more than 1/40, and twice that for a pattern or a blueprint; "quality", the mean of its assessments, each caller's
-- as one, and of what helped, in which what helped stands for 20 voices at least, so that one moves it by no more than 1/20.
CREATE OR REPLACE FUNCTION context_package_usefulness(tenant text, refs text[], now timestamptz)
RETURNS TABLE (ref text, reuse float8, quality float8, helped float8) LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY
        SELECT k.ref, least(1, k.twice * k.helped / greatest(40, k.callers)),
               k.assessed + (k.helped - k.callers * k.assessed) / greatest(20, k.voices + k.callers),
               CASE WHEN k.callers > 0 THEN k.helped / k.callers END
        FROM (
            SELECT r.ref, CASE WHEN a.kind IN ('pattern', 'blueprint') THEN 2 ELSE 1 END AS twice,
                   coalesce(u.callers * context_package_left(u.at, now), 0) AS callers,
                   coalesce(u.helped * context_package_left(u.at, now), 0) AS helped,
                   coalesce(s.quality, 0.5) AS assessed, s.voices
            FROM unnest(refs) AS r (ref)
            LEFT JOIN context_source_usefulness AS u ON u.tenant_id = tenant AND u.ref = r.ref
            LEFT JOIN context_artifacts AS a ON a.tenant_id = tenant AND a.ref = r.ref AND a.is_current
            CROSS JOIN LATERAL (SELECT avg(v.quality) AS quality, count(*) AS voices
                                FROM (SELECT avg(s.quality) AS quality FROM context_assessments AS s
                                      WHERE s.tenant_id = tenant AND s.ref = r.ref GROUP BY s.caller) AS v) AS s
            WHERE u.ref IS NOT NULL OR s.voices > 0
        ) AS k;
END
$$;

-- Erases what the record shows of sources, and of sessions ("session:…") with all that was said in them: titles, contents
-- and the notes of those who saw it. Hashes, refs and verdicts stay. One row of the audit tells of all of them.
CREATE OR REPLACE FUNCTION context_package_erase_all(tenant text, sources text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    sessions text[] := ARRAY(SELECT context_package_session(s) FROM unnest(sources) AS s WHERE s LIKE 'session:%');
    is_one   boolean := cardinality(sources) = 1;
    at       timestamptz := clock_timestamp();
    today    date := context_package_day(at);
    gone     text[];
BEGIN
    IF cardinality(sources) = 0 THEN
        RETURN;
    END IF;
    PERFORM context_package_partitions(today, today);
    PERFORM context_package_lock(tenant);
    INSERT INTO context_package_erasures (tenant_id, ref, erased_at)  -- as of now: a package may have begun meanwhile
    SELECT DISTINCT ON (s) tenant, s, clock_timestamp() FROM unnest(sources) AS s
    ON CONFLICT (tenant_id, ref) DO UPDATE SET erased_at = EXCLUDED.erased_at;
    PERFORM context_package_append(tenant, at, ARRAY[
        ROW(tenant, today, 0, at, '', '', 0, '', '', CASE WHEN is_one THEN sources[1] ELSE '' END, NULL, 'erased', '',
            CASE WHEN is_one THEN '' ELSE to_jsonb(sources)::text END, '', '', '')::policy_audit]);
    WITH erased AS (
        DELETE FROM context_package_contents AS c
        WHERE c.tenant_id = tenant AND (c.ref = ANY (sources) OR c.session_id = ANY (sessions)) RETURNING c.ref
    )
    SELECT array_agg(DISTINCT e.ref) || sources INTO gone FROM erased AS e;
    UPDATE context_package_feedback AS f SET note = '' WHERE f.tenant_id = tenant AND f.note <> '' AND f.refs && gone;
END
$$;

-- Erases what the record shows of a source, or of a session.
CREATE OR REPLACE FUNCTION context_package_erase(tenant text, source text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    PERFORM context_package_erase_all(tenant, ARRAY[source]);
END
$$;

-- Erases what the record shows of these messages of a session, and of its points.
CREATE OR REPLACE FUNCTION context_package_strike(tenant text, session text, said text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    PERFORM context_package_erase_all(tenant, ARRAY(
        SELECT c.ref FROM context_package_contents AS c
        WHERE c.tenant_id = tenant AND c.session_id = session AND c.ref LIKE 'point:%'
        UNION SELECT unnest(said) ORDER BY 1));
END
$$;

-- Makes the partitions of the next days, drops those before "oldest", and deletes what expired elsewhere, of all tenants.
-- A partition that is in use for longer than a moment is dropped the next time, as is what else there is too much of for
-- one statement. At least a day is kept.
CREATE OR REPLACE FUNCTION context_package_maintain(tenant text, now timestamptz, oldest date) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    schema text := (SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = 'context_packages'::regclass);
    today  date := context_package_day(least(now, clock_timestamp()));
    name   text;
    gone   bigint := 0;
BEGIN
    -- Whoever calls this goes by another clock, or may want the audit gone: the owner's days are kept by this one.
    now := least(now, clock_timestamp());
    oldest := least(oldest, today - 1, context_package_day(clock_timestamp())
                    - coalesce((SELECT k.days FROM context_package_retention AS k), 90));
    PERFORM context_package_partitions(today, today + 2);
    PERFORM set_config('lock_timeout', '200', true);
    FOR name IN
        SELECT c.relname FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid JOIN pg_class AS p ON p.oid = i.inhparent
        WHERE p.relname = ANY (context_package_daily()) AND p.relnamespace::regnamespace::text = schema
          AND to_date(right(c.relname, 8), 'YYYYMMDD') < oldest
        ORDER BY c.relname
    LOOP
        BEGIN
            EXECUTE format('DROP TABLE %s.%I', schema, name);
            gone := gone + 1;
        EXCEPTION
            WHEN undefined_table THEN NULL;
            WHEN lock_not_available THEN EXIT;  -- those who wait for what was locked until now wait no longer
        END;
    END LOOP;
    PERFORM set_config('lock_timeout', '0', true);
    DELETE FROM context_package_heads AS h WHERE h.ctid = ANY (ARRAY(
        SELECT o.ctid FROM context_package_heads AS o WHERE o.first_day < oldest LIMIT 20000));
    DELETE FROM context_package_feedback AS f WHERE f.ctid = ANY (ARRAY(
        SELECT o.ctid FROM context_package_feedback AS o WHERE o.day < oldest LIMIT 20000));
    DELETE FROM context_package_contents AS c WHERE c.ctid = ANY (ARRAY(
        SELECT o.ctid FROM context_package_contents AS o WHERE o.last_day < oldest LIMIT 20000));
    DELETE FROM context_package_keys AS k WHERE k.ctid = ANY (ARRAY(
        SELECT o.ctid FROM context_package_keys AS o WHERE o.expires_at < now LIMIT 20000));
    DELETE FROM context_package_leases AS l WHERE l.expires_at < clock_timestamp() - interval '1 day';
    DELETE FROM context_package_erasures AS e WHERE e.ctid = ANY (ARRAY(
        SELECT o.ctid FROM context_package_erasures AS o WHERE context_package_day(o.erased_at) < oldest LIMIT 20000));
    DELETE FROM context_source_ratings AS r WHERE r.at < now - interval '600 days';  -- a millionth is left
    -- The last anchor before the oldest rows is where a verification begins.
    DELETE FROM policy_audit_anchors AS a WHERE a.day < (
        SELECT max(b.day) FROM policy_audit_anchors AS b WHERE b.tenant_id = a.tenant_id AND b.day < oldest);
    RETURN gone;
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
    '^context_package_',
    '^context_package_(begin|finish|deny|fail|latest|listing|recent|audit|claim|release|lease|rebuild|rate|outcomes|usefulness|erase|strike|maintain|'
    'anchors|nodes|audit_state|audit_rows|audit_told|events_waiting|events_take|events_done)$',
    '{context_build_requests,context_packages,policy_decisions,policy_audit,context_package_uses,context_package_heads,'
    'context_package_contents,context_package_erasures,context_package_keys,context_package_leases,context_package_feedback,'
    'context_source_ratings,context_source_usefulness,policy_audit_heads,policy_audit_anchors,context_package_events,context_package_retention}',
    inlined => '^context_package_(audit_line|left|about|session|day)$');

SELECT context_builder_by_index('^context_package_(usefulness|nodes|audit_rows|listing)$');

-- A page in the order of the index: of a table not analyzed yet it would else sort all rows for each page.
DO $$
DECLARE
    fn regprocedure;
BEGIN
    FOR fn IN SELECT p.oid FROM pg_proc AS p
              WHERE p.pronamespace = current_schema()::regnamespace AND p.proname ~ '^context_package_(audit_rows|listing)$'
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET enable_sort = off', fn);
        EXECUTE format('ALTER FUNCTION %s SET enable_bitmapscan = off', fn);
    END LOOP;
END
$$;
