-- What the migrations make, to be read; nothing applies this file. A test compares it with a database.

CREATE TABLE context_access_calls (
    tenant_id text NOT NULL,
    caller text NOT NULL,
    key bytea NOT NULL,
    digest text NOT NULL,
    holder text NOT NULL,
    answer jsonb,
    begun_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE context_access_keys (
    id text NOT NULL,
    tenant_id text NOT NULL,
    role text NOT NULL,
    name text NOT NULL DEFAULT ''::text,
    digest text NOT NULL,
    created_at timestamp with time zone NOT NULL DEFAULT now(),
    revoked_at timestamp with time zone
);
CREATE TABLE context_access_secrets (
    name text NOT NULL,
    secret text NOT NULL,
    created_at timestamp with time zone NOT NULL DEFAULT now()
);
CREATE TABLE context_artifact_erasures (
    tenant_id text NOT NULL,
    ref text NOT NULL,
    version integer NOT NULL
);
CREATE TABLE context_artifacts (
    tenant_id text NOT NULL,
    ref text NOT NULL,
    version integer NOT NULL,
    is_current boolean NOT NULL DEFAULT true,
    kind text NOT NULL,
    title text NOT NULL,
    content text NOT NULL,
    digest bytea NOT NULL,
    project_id text NOT NULL DEFAULT ''::text,
    module_id text NOT NULL DEFAULT ''::text,
    status text NOT NULL DEFAULT 'draft'::text,
    sensitivity text NOT NULL DEFAULT 'internal'::text,
    type text NOT NULL DEFAULT ''::text,
    tags text[] NOT NULL DEFAULT '{}'::text[],
    source text,
    supersedes text,
    created_at timestamp with time zone NOT NULL DEFAULT now(),
    updated_at timestamp with time zone NOT NULL DEFAULT now(),
    supersedes_is_refused boolean
);
CREATE TABLE context_assessments (
    tenant_id text NOT NULL,
    ref text NOT NULL,
    assessor text NOT NULL,
    quality double precision NOT NULL,
    reason text NOT NULL DEFAULT ''::text,
    assessed_at timestamp with time zone NOT NULL DEFAULT now()
);
CREATE TABLE context_build_requests (
    tenant_id text NOT NULL,
    day date NOT NULL,
    id text NOT NULL,
    package_id text NOT NULL,
    status text NOT NULL DEFAULT 'building'::text,
    reason text NOT NULL DEFAULT ''::text,
    caller text NOT NULL,
    roles text[] NOT NULL,
    request jsonb NOT NULL,
    task_id text NOT NULL,
    trace_id text NOT NULL,
    traceparent text NOT NULL,
    requested_at timestamp with time zone NOT NULL,
    begun_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
) PARTITION BY RANGE (day);
CREATE TABLE context_builder_migrations (
    name text NOT NULL,
    applied_at timestamp with time zone NOT NULL DEFAULT now(),
    digest text NOT NULL DEFAULT ''::text
);
CREATE TABLE context_edges (
    tenant_id text NOT NULL,
    from_ref text NOT NULL,
    to_ref text NOT NULL,
    type text NOT NULL,
    weight double precision NOT NULL DEFAULT 1,
    derived boolean NOT NULL DEFAULT false
);
CREATE TABLE context_governance (
    tenant_id text NOT NULL,
    version bigint NOT NULL
);
CREATE TABLE context_memories (
    tenant_id text NOT NULL,
    id text NOT NULL,
    kind text NOT NULL,
    session_id text,
    user_id text,
    speaker text,
    said_at timestamp with time zone,
    position bigint,
    tags text[] NOT NULL DEFAULT '{}'::text[],
    metadata jsonb NOT NULL DEFAULT '{}'::jsonb,
    text text NOT NULL,
    present text[],
    audience text[],
    valid_from timestamp with time zone,
    valid_to timestamp with time zone,
    feedback jsonb,
    ratings jsonb,
    digest bytea,
    embedder text,
    words tsvector GENERATED ALWAYS AS (context_memory_words(text, speaker, said_at)) STORED,
    unowned boolean GENERATED ALWAYS AS (((user_id IS NULL) AND ((metadata ->> 'persona_id'::text) IS NULL))) STORED,
    created_at timestamp with time zone NOT NULL DEFAULT now()
);
CREATE TABLE context_memory_frequencies (
    tenant_id text NOT NULL,
    word text NOT NULL,
    memories bigint NOT NULL
);
CREATE TABLE context_memory_pending (
    tenant_id text NOT NULL,
    id text NOT NULL
);
CREATE TABLE context_memory_totals (
    tenant_id text NOT NULL,
    memories bigint NOT NULL,
    words bigint NOT NULL
);
CREATE TABLE context_memory_vectors (
    tenant_id text NOT NULL,
    id text NOT NULL,
    embedder text NOT NULL,
    embedding real[] NOT NULL
) PARTITION BY LIST (tenant_id);
CREATE TABLE context_package_contents (
    tenant_id text NOT NULL,
    ref text NOT NULL,
    digest bytea NOT NULL,
    session_id text,
    title text NOT NULL,
    heading text NOT NULL,
    content text NOT NULL,
    last_day date NOT NULL
);
CREATE TABLE context_package_erasures (
    tenant_id text NOT NULL,
    ref text NOT NULL,
    erased_at timestamp with time zone NOT NULL
);
CREATE TABLE context_package_events (
    number bigint NOT NULL,
    tenant_id text NOT NULL,
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    type text NOT NULL,
    subject text NOT NULL,
    at timestamp with time zone NOT NULL,
    traceparent text NOT NULL,
    data jsonb NOT NULL
);
CREATE TABLE context_package_feedback (
    tenant_id text NOT NULL,
    package_id text NOT NULL,
    caller text NOT NULL,
    day date NOT NULL,
    outcome double precision,
    helped jsonb NOT NULL,
    refs text[] NOT NULL,
    note text NOT NULL,
    at timestamp with time zone NOT NULL
);
CREATE TABLE context_package_heads (
    tenant_id text NOT NULL,
    package_id text NOT NULL,
    request_id text NOT NULL,
    request_day date NOT NULL,
    first_day date NOT NULL,
    created_at timestamp with time zone NOT NULL,
    revision integer NOT NULL,
    day date NOT NULL,
    refs text[] NOT NULL
);
CREATE TABLE context_package_keys (
    tenant_id text NOT NULL,
    caller text NOT NULL,
    key bytea NOT NULL,
    body_digest text NOT NULL,
    package_id text NOT NULL,
    expires_at timestamp with time zone NOT NULL
);
CREATE TABLE context_package_leases (
    tenant_id text NOT NULL,
    name text NOT NULL,
    holder text NOT NULL,
    acquired_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL
);
CREATE TABLE context_package_retention (
    is_all boolean NOT NULL DEFAULT true,
    days integer NOT NULL
);
CREATE TABLE context_package_uses (
    tenant_id text NOT NULL,
    day date NOT NULL,
    about bigint NOT NULL,
    package_id text NOT NULL,
    created_at timestamp with time zone NOT NULL
) PARTITION BY RANGE (day);
CREATE TABLE context_packages (
    tenant_id text NOT NULL,
    day date NOT NULL,
    id text NOT NULL,
    revision integer NOT NULL,
    request_id text NOT NULL,
    decision_id text NOT NULL,
    governance_version text NOT NULL,
    body jsonb NOT NULL,
    digest bytea NOT NULL,
    candidates jsonb NOT NULL,
    graph jsonb,
    created_at timestamp with time zone NOT NULL
) PARTITION BY RANGE (day);
CREATE TABLE context_policies (
    tenant_id text NOT NULL,
    name text NOT NULL,
    text text,
    updated_at timestamp with time zone NOT NULL DEFAULT now()
);
CREATE TABLE context_projections (
    tenant_id text NOT NULL,
    ref text NOT NULL,
    version integer NOT NULL,
    words integer NOT NULL,
    text text NOT NULL,
    model text NOT NULL DEFAULT ''::text
);
CREATE TABLE context_source_ratings (
    tenant_id text NOT NULL,
    ref text NOT NULL,
    caller text NOT NULL,
    shown double precision NOT NULL,
    helped double precision NOT NULL,
    at timestamp with time zone NOT NULL
);
CREATE TABLE context_source_usefulness (
    tenant_id text NOT NULL,
    ref text NOT NULL,
    callers double precision NOT NULL,
    helped double precision NOT NULL,
    at timestamp with time zone NOT NULL
);
CREATE TABLE context_summaries (
    session_id text NOT NULL,
    summary_seq integer,
    summary_text text NOT NULL,
    covers_message_start bigint,
    covers_message_end bigint,
    message_count bigint,
    time_range_start text,
    time_range_end text,
    domains_covered jsonb NOT NULL DEFAULT '[]'::jsonb,
    created_at timestamp with time zone NOT NULL DEFAULT now()
);
CREATE TABLE policy_audit (
    tenant_id text NOT NULL,
    day date NOT NULL,
    seq bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    decision_id text NOT NULL,
    package_id text NOT NULL,
    revision integer NOT NULL,
    policy_version text NOT NULL,
    caller text NOT NULL,
    ref text NOT NULL,
    version integer,
    access text NOT NULL,
    policies text NOT NULL,
    reason text NOT NULL,
    content_digest text NOT NULL,
    previous bytea NOT NULL,
    digest bytea NOT NULL
) PARTITION BY RANGE (day);
CREATE TABLE policy_audit_anchors (
    tenant_id text NOT NULL,
    day date NOT NULL,
    seq bigint NOT NULL,
    count bigint NOT NULL,
    digest bytea NOT NULL
);
CREATE TABLE policy_audit_heads (
    tenant_id text NOT NULL,
    seq bigint NOT NULL,
    digest bytea NOT NULL,
    day date NOT NULL
);
CREATE TABLE policy_decisions (
    tenant_id text NOT NULL,
    day date NOT NULL,
    id text NOT NULL,
    package_id text NOT NULL,
    revision integer NOT NULL,
    policy_version text NOT NULL,
    caller text NOT NULL,
    roles text[] NOT NULL,
    agent jsonb NOT NULL,
    sources jsonb NOT NULL,
    decided_at timestamp with time zone NOT NULL
) PARTITION BY RANGE (day);
CREATE INDEX context_access_calls_begun ON context_access_calls USING btree (begun_at);
CREATE INDEX context_artifacts_scope ON context_artifacts USING btree (tenant_id, project_id, module_id, updated_at DESC) WHERE is_current;
CREATE INDEX context_artifacts_superseding ON context_artifacts USING btree (tenant_id, supersedes) WHERE (is_current AND (supersedes IS NOT NULL));
CREATE INDEX context_edges_in ON context_edges USING btree (tenant_id, to_ref, weight DESC) INCLUDE (from_ref, type);
CREATE INDEX context_edges_out ON context_edges USING btree (tenant_id, from_ref, weight DESC) INCLUDE (to_ref, type);
CREATE INDEX context_memories_keys ON context_memories USING gin (context_memory_keys(tenant_id, tsvector_to_array(words))) WITH (fastupdate='on', gin_pending_list_limit='64');
CREATE INDEX context_memories_newest ON context_memories USING btree (tenant_id, said_at DESC NULLS LAST, "position" DESC NULLS LAST);
CREATE INDEX context_memories_points ON context_memories USING btree (tenant_id, session_id, context_session_point(session_id, id)) WHERE (kind = 'point'::text);
CREATE INDEX context_memories_session ON context_memories USING btree (tenant_id, session_id, "position");
CREATE INDEX context_memories_unowned ON context_memories USING btree (tenant_id) WHERE unowned;
CREATE INDEX context_memories_user ON context_memories USING btree (tenant_id, user_id);
CREATE INDEX context_package_contents_day ON context_package_contents USING btree (last_day);
CREATE INDEX context_package_contents_session ON context_package_contents USING btree (tenant_id, session_id) WHERE (session_id IS NOT NULL);
CREATE INDEX context_package_events_tenant ON context_package_events USING btree (tenant_id, number);
CREATE INDEX context_package_feedback_day ON context_package_feedback USING btree (day);
CREATE INDEX context_package_feedback_notes ON context_package_feedback USING gin (refs) WHERE (note <> ''::text);
CREATE INDEX context_package_heads_day ON context_package_heads USING btree (first_day);
CREATE INDEX context_package_keys_expiry ON context_package_keys USING btree (expires_at);
CREATE INDEX context_source_ratings_at ON context_source_ratings USING btree (at);
CREATE UNIQUE INDEX context_access_calls_pkey ON context_access_calls USING btree (tenant_id, caller, key);
CREATE UNIQUE INDEX context_access_keys_pkey ON context_access_keys USING btree (id);
CREATE UNIQUE INDEX context_access_secrets_pkey ON context_access_secrets USING btree (name);
CREATE UNIQUE INDEX context_artifact_erasures_pkey ON context_artifact_erasures USING btree (tenant_id, ref);
CREATE UNIQUE INDEX context_artifacts_current ON context_artifacts USING btree (tenant_id, ref) WHERE is_current;
CREATE UNIQUE INDEX context_artifacts_pkey ON context_artifacts USING btree (tenant_id, ref, version);
CREATE UNIQUE INDEX context_assessments_pkey ON context_assessments USING btree (tenant_id, ref, assessor);
CREATE UNIQUE INDEX context_build_requests_pkey ON ONLY context_build_requests USING btree (tenant_id, id, day);
CREATE UNIQUE INDEX context_builder_migrations_pkey ON context_builder_migrations USING btree (name);
CREATE UNIQUE INDEX context_edges_pkey ON context_edges USING btree (tenant_id, from_ref, to_ref, type);
CREATE UNIQUE INDEX context_governance_pkey ON context_governance USING btree (tenant_id);
CREATE UNIQUE INDEX context_memories_pkey ON context_memories USING btree (tenant_id, id);
CREATE UNIQUE INDEX context_memory_frequencies_pkey ON context_memory_frequencies USING btree (tenant_id, word);
CREATE UNIQUE INDEX context_memory_pending_pkey ON context_memory_pending USING btree (tenant_id, id);
CREATE UNIQUE INDEX context_memory_totals_pkey ON context_memory_totals USING btree (tenant_id);
CREATE UNIQUE INDEX context_memory_vectors_pkey ON ONLY context_memory_vectors USING btree (tenant_id, id);
CREATE UNIQUE INDEX context_package_contents_pkey ON context_package_contents USING btree (tenant_id, ref, digest);
CREATE UNIQUE INDEX context_package_erasures_pkey ON context_package_erasures USING btree (tenant_id, ref);
CREATE UNIQUE INDEX context_package_events_pkey ON context_package_events USING btree (number);
CREATE UNIQUE INDEX context_package_feedback_pkey ON context_package_feedback USING btree (tenant_id, package_id, caller);
CREATE UNIQUE INDEX context_package_heads_pkey ON context_package_heads USING btree (tenant_id, package_id);
CREATE UNIQUE INDEX context_package_keys_pkey ON context_package_keys USING btree (tenant_id, caller, key);
CREATE UNIQUE INDEX context_package_leases_pkey ON context_package_leases USING btree (tenant_id, name);
CREATE UNIQUE INDEX context_package_retention_pkey ON context_package_retention USING btree (is_all);
CREATE UNIQUE INDEX context_package_uses_pkey ON ONLY context_package_uses USING btree (tenant_id, about, day, package_id);
CREATE UNIQUE INDEX context_packages_pkey ON ONLY context_packages USING btree (tenant_id, id, revision, day);
CREATE UNIQUE INDEX context_policies_pkey ON context_policies USING btree (tenant_id, name);
CREATE UNIQUE INDEX context_projections_pkey ON context_projections USING btree (tenant_id, ref, version, words);
CREATE UNIQUE INDEX context_source_ratings_pkey ON context_source_ratings USING btree (tenant_id, ref, caller);
CREATE UNIQUE INDEX context_source_usefulness_pkey ON context_source_usefulness USING btree (tenant_id, ref);
CREATE UNIQUE INDEX context_summaries_session_id_summary_seq_key ON context_summaries USING btree (session_id, summary_seq);
CREATE UNIQUE INDEX policy_audit_anchors_pkey ON policy_audit_anchors USING btree (tenant_id, day);
CREATE UNIQUE INDEX policy_audit_heads_pkey ON policy_audit_heads USING btree (tenant_id);
CREATE UNIQUE INDEX policy_audit_pkey ON ONLY policy_audit USING btree (tenant_id, day, seq);
CREATE UNIQUE INDEX policy_decisions_pkey ON ONLY policy_decisions USING btree (tenant_id, id, day);
CREATE FUNCTION context_access_any(tenant text)
    RETURNS boolean SECURITY DEFINER;
CREATE FUNCTION context_access_call_begin(tenant text, caller_sub text, call_key text, call_digest text, by_holder text)
    RETURNS jsonb SECURITY DEFINER;
CREATE FUNCTION context_access_call_end(tenant text, caller_sub text, call_key text, by_holder text, answered jsonb DEFAULT NULL::jsonb)
    RETURNS void SECURITY DEFINER;
CREATE FUNCTION context_access_create(tenant text, key_id text, key_role text, key_name text, key_digest text)
    RETURNS void SECURITY DEFINER;
CREATE FUNCTION context_access_find(tenant text, key_id text)
    RETURNS SETOF jsonb SECURITY DEFINER;
CREATE FUNCTION context_access_list(tenant text, every_tenant boolean DEFAULT false)
    RETURNS SETOF jsonb SECURITY DEFINER;
CREATE FUNCTION context_access_revoke(tenant text, key_id text)
    RETURNS boolean SECURITY DEFINER;
CREATE FUNCTION context_access_secret(tenant text, proposed text)
    RETURNS text SECURITY DEFINER;
CREATE FUNCTION context_builder_by_index(functions text)
    RETURNS void;
CREATE FUNCTION context_builder_guard(functions text, callable text, tables text[] DEFAULT '{}'::text[], inlined text DEFAULT '^$'::text, beside text DEFAULT NULL::text)
    RETURNS void;
CREATE FUNCTION context_knowledge_any(names jsonb)
    RETURNS text;
CREATE FUNCTION context_knowledge_artifact(a context_artifacts)
    RETURNS jsonb;
CREATE FUNCTION context_knowledge_assess(tenant text, assessments jsonb)
    RETURNS void SECURITY DEFINER;
CREATE FUNCTION context_knowledge_changed(tenant text)
    RETURNS void;
CREATE FUNCTION context_knowledge_erase(tenant text, artifact text, document text)
    RETURNS boolean SECURITY DEFINER;
CREATE FUNCTION context_knowledge_get(tenant text, refs text[], wanted integer DEFAULT NULL::integer)
    RETURNS SETOF jsonb SECURITY DEFINER;
CREATE FUNCTION context_knowledge_govern(tenant text, policy text, new_text text, seen bigint)
    RETURNS boolean SECURITY DEFINER;
CREATE FUNCTION context_knowledge_governance(tenant text)
    RETURNS bigint SECURITY DEFINER;
CREATE FUNCTION context_knowledge_index(tenant text, document text, passages jsonb)
    RETURNS void;
CREATE FUNCTION context_knowledge_link(tenant text, edges jsonb)
    RETURNS bigint SECURITY DEFINER;
CREATE FUNCTION context_knowledge_matching(tenant text, filter jsonb, most integer)
    RETURNS SETOF text SECURITY DEFINER;
CREATE FUNCTION context_knowledge_name(name text)
    RETURNS text;
CREATE FUNCTION context_knowledge_neighbourhood(tenant text, seeds text[], depth integer, types text[], fan_out integer, most integer)
    RETURNS jsonb SECURITY DEFINER;
CREATE FUNCTION context_knowledge_nodes(tenant text, refs text[], longest integer)
    RETURNS SETOF jsonb SECURITY DEFINER;
CREATE FUNCTION context_knowledge_outlines(tenant text, refs text[], types text[])
    RETURNS SETOF jsonb SECURITY DEFINER;
CREATE FUNCTION context_knowledge_policies(tenant text)
    RETURNS jsonb SECURITY DEFINER;
CREATE FUNCTION context_knowledge_project(tenant text, artifact text, of_version integer, named text, projections jsonb DEFAULT '[]'::jsonb)
    RETURNS boolean SECURITY DEFINER;
CREATE FUNCTION context_knowledge_put(tenant text, artifact jsonb, document text, passages jsonb, projections jsonb DEFAULT '[]'::jsonb, seen timestamp with time zone DEFAULT NULL::timestamp with time zone)
    RETURNS jsonb SECURITY DEFINER;
CREATE FUNCTION context_knowledge_quality(tenant text, refs text[])
    RETURNS TABLE(ref text, quality double precision, assessors bigint) SECURITY DEFINER;
CREATE FUNCTION context_knowledge_said(tenant text, refs text[])
    RETURNS SETOF jsonb SECURITY DEFINER;
CREATE FUNCTION context_knowledge_sources(tenant text, project text)
    RETURNS TABLE(ref text, source text) SECURITY DEFINER;
CREATE FUNCTION context_knowledge_space(tenant text)
    RETURNS text;
CREATE FUNCTION context_knowledge_unlink(tenant text, edges jsonb)
    RETURNS bigint SECURITY DEFINER;
CREATE FUNCTION context_knowledge_unprojected(tenant text, longest integer, most integer)
    RETURNS SETOF jsonb SECURITY DEFINER;
CREATE FUNCTION context_knowledge_unsaid()
    RETURNS trigger SECURITY DEFINER;
CREATE FUNCTION context_memory_any(words text[])
    RETURNS tsquery;
CREATE FUNCTION context_memory_by_embedding(tenant text, by_embedder text, query_embedding real[], condition text, narrow boolean, depth integer)
    RETURNS SETOF context_memory_hit;
CREATE FUNCTION context_memory_by_words(tenant text, words text[], weights double precision[], rare text[], common text[], condition text, narrow boolean, depth integer)
    RETURNS SETOF context_memory_hit;
CREATE FUNCTION context_memory_condition(filter jsonb)
    RETURNS text;
CREATE FUNCTION context_memory_count()
    RETURNS trigger SECURITY DEFINER;
CREATE FUNCTION context_memory_embed(tenant text, by_embedder text, embeddings jsonb)
    RETURNS bigint SECURITY DEFINER;
CREATE FUNCTION context_memory_expansion(tenant text, ids text[], words text[])
    RETURNS TABLE(word text, weight double precision, memories bigint);
CREATE FUNCTION context_memory_forget(tenant text, ids text[] DEFAULT NULL::text[], condition jsonb DEFAULT NULL::jsonb)
    RETURNS bigint SECURITY DEFINER;
CREATE FUNCTION context_memory_full_text(tenant text, query text, condition text, narrow boolean, depth integer, options jsonb)
    RETURNS context_memory_hit[];
CREATE FUNCTION context_memory_fuse(by_text context_memory_hit[], by_vector context_memory_hit[], fusion double precision, words double precision)
    RETURNS TABLE(hit context_memory_hit, origins text[]);
CREATE FUNCTION context_memory_is_narrow(tenant text, filter jsonb)
    RETURNS boolean;
CREATE FUNCTION context_memory_json(m context_memories)
    RETURNS jsonb;
CREATE FUNCTION context_memory_keys(tenant text, words text[])
    RETURNS bigint[];
CREATE FUNCTION context_memory_neighbours(tenant text, hits context_memory_hit[], neighbours double precision[], speaker double precision, named tsquery, condition text)
    RETURNS TABLE(id text, score double precision);
CREATE FUNCTION context_memory_newest(tenant text, count integer DEFAULT 8, condition jsonb DEFAULT '{}'::jsonb)
    RETURNS TABLE(memory jsonb, score double precision, origins text[]) SECURITY DEFINER;
CREATE FUNCTION context_memory_place(m context_memories)
    RETURNS jsonb;
CREATE FUNCTION context_memory_prepare(tenant text, dimensions integer)
    RETURNS boolean SECURITY DEFINER;
CREATE FUNCTION context_memory_rare(words text[], counts bigint[])
    RETURNS text[];
CREATE FUNCTION context_memory_rate(tenant text, ratings jsonb)
    RETURNS bigint SECURITY DEFINER;
CREATE FUNCTION context_memory_relevance(tenant text, query text, ids text[])
    RETURNS double precision;
CREATE FUNCTION context_memory_remember(tenant text, memories jsonb)
    RETURNS void SECURITY DEFINER;
CREATE FUNCTION context_memory_search(tenant text, query text, wanted integer DEFAULT 8, threshold double precision DEFAULT 0, condition jsonb DEFAULT '{}'::jsonb, by_embedder text DEFAULT NULL::text, query_embedding real[] DEFAULT NULL::real[], options jsonb DEFAULT '{}'::jsonb)
    RETURNS TABLE(memory jsonb, score double precision, origins text[]) SECURITY DEFINER;
CREATE FUNCTION context_memory_separate(tenant text, dimensions integer)
    RETURNS void;
CREATE FUNCTION context_memory_tenant(asked text)
    RETURNS text;
CREATE FUNCTION context_memory_term(word text)
    RETURNS text;
CREATE FUNCTION context_memory_terms(tenant text, query text)
    RETURNS TABLE(word text, weight double precision, memories bigint);
CREATE FUNCTION context_memory_unembedded(tenant text, count integer)
    RETURNS TABLE(id text, text text, speaker text, said_at timestamp with time zone, digest text) SECURITY DEFINER;
CREATE FUNCTION context_memory_words(said text, speaker text, said_at timestamp with time zone)
    RETURNS tsvector;
CREATE FUNCTION context_memory_write(tenant text, memories jsonb, only_changed boolean, done text[])
    RETURNS TABLE(id text, replaced boolean);
CREATE FUNCTION context_package_about(kind text, name text)
    RETURNS bigint;
CREATE FUNCTION context_package_anchor(tenant text, today date, at timestamp with time zone)
    RETURNS void;
CREATE FUNCTION context_package_anchors(tenant text, at timestamp with time zone)
    RETURNS void SECURITY DEFINER;
CREATE FUNCTION context_package_append(tenant text, at timestamp with time zone, entries policy_audit[])
    RETURNS void;
CREATE FUNCTION context_package_audit(tenant text, package text, oldest timestamp with time zone)
    RETURNS SETOF jsonb SECURITY DEFINER;
CREATE FUNCTION context_package_audit_line(a policy_audit)
    RETURNS text;
CREATE FUNCTION context_package_audit_rows(tenant text, after_day integer, after_seq bigint, most integer)
    RETURNS SETOF text SECURITY DEFINER;
CREATE FUNCTION context_package_audit_state(tenant text)
    RETURNS jsonb SECURITY DEFINER;
CREATE FUNCTION context_package_audit_told(tenant text, after_day integer, after_seq bigint, most integer)
    RETURNS SETOF jsonb SECURITY DEFINER;
CREATE FUNCTION context_package_begin(tenant text, id text, package text, caller text, roles text[], request jsonb, task text, trace text, traceparent text, at timestamp with time zone)
    RETURNS void SECURITY DEFINER;
CREATE FUNCTION context_package_body(p context_packages, tells_erased boolean)
    RETURNS jsonb;
CREATE FUNCTION context_package_claim(tenant text, caller_sub text, idempotency_key text, digest text, package text, at timestamp with time zone, seconds double precision)
    RETURNS text SECURITY DEFINER;
CREATE FUNCTION context_package_count_voice(tenant text, source text, now timestamp with time zone, voices double precision, share double precision)
    RETURNS void;
CREATE FUNCTION context_package_daily()
    RETURNS text[];
CREATE FUNCTION context_package_day(at timestamp with time zone)
    RETURNS date;
CREATE FUNCTION context_package_erase(tenant text, source text)
    RETURNS void SECURITY DEFINER;
CREATE FUNCTION context_package_events_done(tenant text, by_holder text, last bigint)
    RETURNS void SECURITY DEFINER;
CREATE FUNCTION context_package_events_take(tenant text, by_holder text, seconds double precision, most integer)
    RETURNS SETOF jsonb SECURITY DEFINER;
CREATE FUNCTION context_package_events_waiting(tenant text)
    RETURNS SETOF text SECURITY DEFINER;
CREATE FUNCTION context_package_fail(tenant text, asked text, why text, at timestamp with time zone)
    RETURNS boolean SECURITY DEFINER;
CREATE FUNCTION context_package_finish(tenant text, built jsonb)
    RETURNS integer SECURITY DEFINER;
CREATE FUNCTION context_package_latest(tenant text, package text, oldest timestamp with time zone)
    RETURNS SETOF jsonb SECURITY DEFINER;
CREATE FUNCTION context_package_lease(tenant text, lease text, by_holder text, seconds double precision)
    RETURNS boolean SECURITY DEFINER;
CREATE FUNCTION context_package_left(since timestamp with time zone, at timestamp with time zone)
    RETURNS double precision;
CREATE FUNCTION context_package_listing(tenant text, kind text, name text, most integer, before text, oldest timestamp with time zone)
    RETURNS TABLE(package_id text, created_at timestamp with time zone) SECURITY DEFINER;
CREATE FUNCTION context_package_lock(tenant text)
    RETURNS void;
CREATE FUNCTION context_package_maintain(tenant text, now timestamp with time zone, oldest date)
    RETURNS bigint SECURITY DEFINER;
CREATE FUNCTION context_package_nodes(tenant text, refs text[], longest integer)
    RETURNS SETOF jsonb SECURITY DEFINER;
CREATE FUNCTION context_package_partitions(first date, last date)
    RETURNS void;
CREATE FUNCTION context_package_rate(tenant text, package text, caller_sub text, how_good double precision, what_helped jsonb, remark text, at timestamp with time zone, oldest timestamp with time zone)
    RETURNS boolean SECURITY DEFINER;
CREATE FUNCTION context_package_rebuild(tenant text, package text, seen integer, by_holder text, seconds double precision)
    RETURNS jsonb SECURITY DEFINER;
CREATE FUNCTION context_package_refuse_change()
    RETURNS trigger;
CREATE FUNCTION context_package_release(tenant text, lease text, by_holder text)
    RETURNS void SECURITY DEFINER;
CREATE FUNCTION context_package_retain(at_least integer)
    RETURNS void;
CREATE FUNCTION context_package_session(ref text)
    RETURNS text;
CREATE FUNCTION context_package_tell(tenant text, type text, subject text, at timestamp with time zone, traceparent text, data jsonb)
    RETURNS void;
CREATE FUNCTION context_package_told(r context_build_requests, p context_packages, d policy_decisions)
    RETURNS text;
CREATE FUNCTION context_package_told_time(at timestamp with time zone)
    RETURNS timestamp with time zone;
CREATE FUNCTION context_package_usefulness(tenant text, refs text[], now timestamp with time zone)
    RETURNS TABLE(ref text, reuse double precision, quality double precision, helped double precision) SECURITY DEFINER;
CREATE FUNCTION context_said_after(tenant text, session text, after bigint, most integer)
    RETURNS SETOF jsonb SECURITY DEFINER;
CREATE FUNCTION context_session_cited(session text, metadata jsonb)
    RETURNS text[];
CREATE FUNCTION context_session_graph()
    RETURNS trigger SECURITY DEFINER;
CREATE FUNCTION context_session_link(tenants text[], refs text[])
    RETURNS void;
CREATE FUNCTION context_session_point(session text, id text)
    RETURNS bigint;
CREATE FUNCTION context_session_sensitivities(tenant text, sessions text[])
    RETURNS TABLE(session text, sensitivity text) SECURITY DEFINER;
