-- What the migrations make, to be read; nothing applies this file. A test compares it with a database.

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
    updated_at timestamp with time zone NOT NULL DEFAULT now()
);
CREATE TABLE context_assessments (
    tenant_id text NOT NULL,
    ref text NOT NULL,
    assessor text NOT NULL,
    quality double precision NOT NULL,
    reason text NOT NULL DEFAULT ''::text,
    assessed_at timestamp with time zone NOT NULL DEFAULT now()
);
CREATE TABLE context_builder_migrations (
    name text NOT NULL,
    applied_at timestamp with time zone NOT NULL DEFAULT now()
);
CREATE TABLE context_edges (
    tenant_id text NOT NULL,
    from_ref text NOT NULL,
    to_ref text NOT NULL,
    type text NOT NULL,
    weight double precision NOT NULL DEFAULT 1
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
    embedded boolean NOT NULL DEFAULT false,
    words tsvector GENERATED ALWAYS AS (context_memory_words(text, speaker, said_at)) STORED,
    unowned boolean GENERATED ALWAYS AS (((user_id IS NULL) AND ((metadata ->> 'persona_id'::text) IS NULL))) STORED,
    created_at timestamp with time zone NOT NULL DEFAULT now()
);
CREATE TABLE context_memory_frequencies (
    tenant_id text NOT NULL,
    word text NOT NULL,
    memories bigint NOT NULL
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
CREATE INDEX context_artifacts_scope ON context_artifacts USING btree (tenant_id, project_id, module_id, updated_at DESC) WHERE is_current;
CREATE INDEX context_artifacts_superseding ON context_artifacts USING btree (tenant_id, supersedes) WHERE (is_current AND (supersedes IS NOT NULL));
CREATE INDEX context_edges_from ON context_edges USING btree (tenant_id, from_ref, weight DESC);
CREATE INDEX context_edges_to ON context_edges USING btree (tenant_id, to_ref, weight DESC);
CREATE INDEX context_memories_keys ON context_memories USING gin (context_memory_keys(tenant_id, tsvector_to_array(words))) WITH (fastupdate=off);
CREATE INDEX context_memories_newest ON context_memories USING btree (tenant_id, said_at DESC NULLS LAST, "position" DESC NULLS LAST);
CREATE INDEX context_memories_session ON context_memories USING btree (tenant_id, session_id, "position");
CREATE INDEX context_memories_unembedded ON context_memories USING btree (tenant_id) WHERE (NOT embedded);
CREATE INDEX context_memories_unowned ON context_memories USING btree (tenant_id) WHERE unowned;
CREATE INDEX context_memories_user ON context_memories USING btree (tenant_id, user_id);
CREATE UNIQUE INDEX context_artifact_erasures_pkey ON context_artifact_erasures USING btree (tenant_id, ref);
CREATE UNIQUE INDEX context_artifacts_current ON context_artifacts USING btree (tenant_id, ref) WHERE is_current;
CREATE UNIQUE INDEX context_artifacts_pkey ON context_artifacts USING btree (tenant_id, ref, version);
CREATE UNIQUE INDEX context_assessments_pkey ON context_assessments USING btree (tenant_id, ref, assessor);
CREATE UNIQUE INDEX context_builder_migrations_pkey ON context_builder_migrations USING btree (name);
CREATE UNIQUE INDEX context_edges_pkey ON context_edges USING btree (tenant_id, from_ref, to_ref, type);
CREATE UNIQUE INDEX context_memories_pkey ON context_memories USING btree (tenant_id, id);
CREATE UNIQUE INDEX context_memory_frequencies_pkey ON context_memory_frequencies USING btree (tenant_id, word);
CREATE UNIQUE INDEX context_memory_totals_pkey ON context_memory_totals USING btree (tenant_id);
CREATE UNIQUE INDEX context_memory_vectors_pkey ON ONLY context_memory_vectors USING btree (tenant_id, id);
CREATE UNIQUE INDEX context_summaries_session_id_summary_seq_key ON context_summaries USING btree (session_id, summary_seq);
CREATE FUNCTION context_knowledge_artifact(a context_artifacts)
    RETURNS jsonb;
CREATE FUNCTION context_knowledge_assess(tenant text, assessments jsonb)
    RETURNS void SECURITY DEFINER;
CREATE FUNCTION context_knowledge_erase(tenant text, artifact text, document text)
    RETURNS boolean SECURITY DEFINER;
CREATE FUNCTION context_knowledge_find(tenant text, filter jsonb, most integer)
    RETURNS SETOF jsonb SECURITY DEFINER;
CREATE FUNCTION context_knowledge_get(tenant text, refs text[], wanted integer DEFAULT NULL::integer)
    RETURNS SETOF jsonb SECURITY DEFINER;
CREATE FUNCTION context_knowledge_index(tenant text, document text, passages jsonb)
    RETURNS void;
CREATE FUNCTION context_knowledge_link(tenant text, edges jsonb)
    RETURNS bigint SECURITY DEFINER;
CREATE FUNCTION context_knowledge_neighbourhood(tenant text, seeds text[], depth integer, types text[], fan_out integer, most integer)
    RETURNS jsonb SECURITY DEFINER;
CREATE FUNCTION context_knowledge_put(tenant text, artifact jsonb, document text, passages jsonb)
    RETURNS jsonb SECURITY DEFINER;
CREATE FUNCTION context_knowledge_quality(tenant text, refs text[])
    RETURNS TABLE(ref text, quality double precision, assessors bigint) SECURITY DEFINER;
CREATE FUNCTION context_knowledge_sources(tenant text, project text)
    RETURNS TABLE(ref text, source text) SECURITY DEFINER;
CREATE FUNCTION context_knowledge_space(tenant text)
    RETURNS text;
CREATE FUNCTION context_knowledge_unlink(tenant text, edges jsonb)
    RETURNS bigint SECURITY DEFINER;
CREATE FUNCTION context_memory_any(words text[])
    RETURNS tsquery;
CREATE FUNCTION context_memory_by_embedding(tenant text, by_embedder text, query_embedding real[], condition text, depth integer)
    RETURNS SETOF context_memory_hit;
CREATE FUNCTION context_memory_by_words(tenant text, words text[], weights double precision[], rare text[], common text[], condition text, depth integer)
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
CREATE FUNCTION context_memory_full_text(tenant text, query text, condition text, depth integer, options jsonb)
    RETURNS context_memory_hit[];
CREATE FUNCTION context_memory_fuse(by_text context_memory_hit[], by_vector context_memory_hit[], fusion double precision)
    RETURNS TABLE(hit context_memory_hit, origins text[]);
CREATE FUNCTION context_memory_json(m context_memories)
    RETURNS jsonb;
CREATE FUNCTION context_memory_keys(tenant text, words text[])
    RETURNS bigint[];
CREATE FUNCTION context_memory_neighbours(tenant text, hits context_memory_hit[], neighbours double precision[], speaker double precision, named tsquery, condition text)
    RETURNS TABLE(id text, score double precision);
CREATE FUNCTION context_memory_newest(tenant text, count integer DEFAULT 8, condition jsonb DEFAULT '{}'::jsonb)
    RETURNS TABLE(memory jsonb, score double precision, origins text[]) SECURITY DEFINER;
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
