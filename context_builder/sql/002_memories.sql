-- What is remembered for good, apart by tenant. Needs no extension; 003 adds search by meaning.
--
-- Applications work as role context_builder_app, which owns nothing, cannot bypass row-level security and
-- reaches the rows through the functions below alone. They run as their owner, because PostgreSQL does not use
-- a full-text index under a row-level policy (its operator is not leakproof), and so check the tenant themselves.

DO $$
BEGIN
    CREATE ROLE context_builder_app NOLOGIN NOBYPASSRLS;
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN NULL;  -- roles belong to the whole server: another database made it
    WHEN insufficient_privilege THEN
        RAISE NOTICE 'role context_builder_app is not there and may not be made: memories stay with the owner''s role';
END
$$;

DO $$
BEGIN
    EXECUTE format('GRANT context_builder_app TO %I', current_user);
EXCEPTION
    WHEN undefined_object OR insufficient_privilege OR invalid_grant_operation THEN NULL;
END
$$;

-- What a memory is found by: its words, who said it (A) and its day (B). Immutable, as a generated column needs.
CREATE OR REPLACE FUNCTION context_memory_words(said text, speaker text, said_at timestamptz) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT to_tsvector('english', left(said, 200000))
        || setweight(to_tsvector('english', coalesce(speaker, '')), 'A')
        || setweight(to_tsvector('english', coalesce(
               extract(day FROM said_at AT TIME ZONE 'UTC')::text || ' '
               || ('{january,february,march,april,may,june,july,august,september,october,november,december}'::text[])
                  [extract(month FROM said_at AT TIME ZONE 'UTC')::integer]
               || ' ' || extract(year FROM said_at AT TIME ZONE 'UTC')::text, '')), 'B')
$$;

CREATE TABLE IF NOT EXISTS context_memories (
    tenant_id  text NOT NULL,
    id         text NOT NULL,                 -- the caller's, unique within the tenant
    kind       text NOT NULL,
    session_id text,
    user_id    text,
    speaker    text,
    said_at    timestamptz,
    position   bigint,                        -- orders the memories of a session, so that neighbours can be found
    tags       text[] NOT NULL DEFAULT '{}',
    metadata   jsonb NOT NULL DEFAULT '{}',
    text       text NOT NULL,
    digest     bytea,                         -- of what an embedding is made of
    embedder   text,                          -- what made the embedding
    embedding  real[],                        -- an array, so that this table needs no extension
    words      tsvector GENERATED ALWAYS AS (context_memory_words(text, speaker, said_at)) STORED,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id)
) WITH (toast_tuple_target = 1500);           -- embeddings move out of the rows that a search reads

ALTER TABLE context_memories ALTER COLUMN embedding SET STORAGE EXTERNAL;

CREATE INDEX IF NOT EXISTS context_memories_words ON context_memories USING gin (words) WITH (fastupdate = off);
CREATE INDEX IF NOT EXISTS context_memories_session ON context_memories (tenant_id, session_id, position);
CREATE INDEX IF NOT EXISTS context_memories_user ON context_memories (tenant_id, user_id);

-- How many of a tenant's memories have a word: what is rare weighs more, and is looked up first.
CREATE TABLE IF NOT EXISTS context_memory_frequencies (
    tenant_id text NOT NULL,
    word      text NOT NULL,
    memories  bigint NOT NULL,
    PRIMARY KEY (tenant_id, word)
);
CREATE TABLE IF NOT EXISTS context_memory_totals (
    tenant_id text PRIMARY KEY,
    memories  bigint NOT NULL,
    words     bigint NOT NULL
);

ALTER TABLE context_memories ENABLE ROW LEVEL SECURITY;
ALTER TABLE context_memory_frequencies ENABLE ROW LEVEL SECURITY;
ALTER TABLE context_memory_totals ENABLE ROW LEVEL SECURITY;

DROP POLICY IF EXISTS context_memories_tenant ON context_memories;
CREATE POLICY context_memories_tenant ON context_memories
    USING (tenant_id = nullif(current_setting('context_builder.tenant', true), ''))
    WITH CHECK (tenant_id = nullif(current_setting('context_builder.tenant', true), ''));
DROP POLICY IF EXISTS context_memory_frequencies_tenant ON context_memory_frequencies;
CREATE POLICY context_memory_frequencies_tenant ON context_memory_frequencies
    USING (tenant_id = nullif(current_setting('context_builder.tenant', true), ''));
DROP POLICY IF EXISTS context_memory_totals_tenant ON context_memory_totals;
CREATE POLICY context_memory_totals_tenant ON context_memory_totals
    USING (tenant_id = nullif(current_setting('context_builder.tenant', true), ''));

-- The tenant of this transaction, or an error when another one is asked for. Supabase's service role, which
-- only the project's own servers hold, names the tenant it acts for. The role is the caller's even in here.
CREATE OR REPLACE FUNCTION context_memory_tenant(asked text) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF asked = nullif(current_setting('context_builder.tenant', true), '')
       OR current_setting('role') = 'service_role' AND asked <> '' THEN
        RETURN asked;
    END IF;
    RAISE insufficient_privilege USING MESSAGE = 'another tenant''s memories were asked for';
END
$$;

-- Keeps the counts. Words are taken in order, and writers of a tenant one after the other, so that none wait in a ring.
CREATE OR REPLACE FUNCTION context_memory_count() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    added text := CASE WHEN TG_OP = 'DELETE' THEN NULL ELSE 'SELECT 1 AS sign, tenant_id, words FROM arrived' END;
    gone  text := CASE WHEN TG_OP = 'INSERT' THEN NULL ELSE 'SELECT -1 AS sign, tenant_id, words FROM departed' END;
BEGIN
    EXECUTE format($count$
        WITH changed AS (%s),
        counted AS (
            INSERT INTO context_memory_totals AS t (tenant_id, memories, words)
            SELECT tenant_id, sum(sign), sum(sign * length(words)) FROM changed GROUP BY 1 ORDER BY 1
            ON CONFLICT (tenant_id) DO UPDATE
                SET memories = t.memories + EXCLUDED.memories, words = t.words + EXCLUDED.words
        )
        INSERT INTO context_memory_frequencies AS f (tenant_id, word, memories)
        SELECT tenant_id, lexeme, sum(sign) FROM changed, unnest(words) GROUP BY 1, 2 HAVING sum(sign) <> 0 ORDER BY 1, 2
        ON CONFLICT (tenant_id, word) DO UPDATE SET memories = f.memories + EXCLUDED.memories
        $count$, concat_ws(' UNION ALL ', added, gone));
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM context_memory_frequencies AS f USING (
            SELECT DISTINCT tenant_id, lexeme FROM departed, unnest(words)
        ) AS d WHERE f.tenant_id = d.tenant_id AND f.word = d.lexeme AND f.memories <= 0;
    END IF;
    RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER context_memories_inserted AFTER INSERT ON context_memories
    REFERENCING NEW TABLE AS arrived FOR EACH STATEMENT EXECUTE FUNCTION context_memory_count();
CREATE OR REPLACE TRIGGER context_memories_updated AFTER UPDATE ON context_memories
    REFERENCING OLD TABLE AS departed NEW TABLE AS arrived FOR EACH STATEMENT EXECUTE FUNCTION context_memory_count();
CREATE OR REPLACE TRIGGER context_memories_deleted AFTER DELETE ON context_memories
    REFERENCING OLD TABLE AS departed FOR EACH STATEMENT EXECUTE FUNCTION context_memory_count();

-- Keeps a batch: an array of objects with the columns' names. The last of two with one id counts.
-- An embedding that is not given stays as long as it is of the same text (digest).
CREATE OR REPLACE FUNCTION context_memory_remember(tenant text, memories jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    PERFORM pg_advisory_xact_lock(hashtextextended('context_memories ' || tenant, 0));
    INSERT INTO context_memories AS m (tenant_id, id, kind, session_id, user_id, speaker, said_at, position, tags,
                                       metadata, text, digest, embedder, embedding)
    SELECT DISTINCT ON (r.id) tenant, r.id, r.kind, r.session_id, r.user_id, r.speaker, r.said_at, r.position,
           coalesce(r.tags, '{}'), coalesce(r.metadata, '{}'), r.text, decode(r.digest, 'hex'), r.embedder, r.embedding
    FROM ROWS FROM (jsonb_to_recordset(memories) AS (
        id text, kind text, session_id text, user_id text, speaker text, said_at timestamptz, position bigint,
        tags text[], metadata jsonb, text text, digest text, embedder text, embedding real[]
    )) WITH ORDINALITY AS r (id, kind, session_id, user_id, speaker, said_at, position, tags, metadata, text,
                             digest, embedder, embedding, place)
    ORDER BY r.id, r.place DESC
    ON CONFLICT (tenant_id, id) DO UPDATE SET
        kind = EXCLUDED.kind, session_id = EXCLUDED.session_id, user_id = EXCLUDED.user_id,
        speaker = EXCLUDED.speaker, said_at = EXCLUDED.said_at, position = EXCLUDED.position, tags = EXCLUDED.tags,
        metadata = EXCLUDED.metadata, text = EXCLUDED.text, digest = EXCLUDED.digest,
        embedder = CASE WHEN EXCLUDED.embedding IS NULL AND m.digest = EXCLUDED.digest
                        THEN m.embedder ELSE EXCLUDED.embedder END,
        embedding = CASE WHEN EXCLUDED.embedding IS NULL AND m.digest = EXCLUDED.digest
                         THEN m.embedding ELSE EXCLUDED.embedding END;
END
$$;

-- Of these digests, those whose text this embedder has embedded for the tenant already.
CREATE OR REPLACE FUNCTION context_memory_embedded(tenant text, by_embedder text, ids text[], digests text[])
RETURNS SETOF text LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY
        SELECT m.id FROM context_memories AS m
        JOIN unnest(ids, digests) AS asked (id, digest) ON m.id = asked.id AND m.digest = decode(asked.digest, 'hex')
        WHERE m.tenant_id = tenant AND m.embedder = by_embedder AND m.embedding IS NOT NULL;
END
$$;

-- The condition on m that a filter makes, an object with MemoryFilter's names; every value quoted.
CREATE OR REPLACE FUNCTION context_memory_condition(wanted jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT concat_ws(' AND ',
        'true',
        'm.session_id = ' || quote_literal(wanted ->> 'session_id'),
        'm.user_id = ' || quote_literal(wanted ->> 'user_id'),
        'm.metadata ->> ''persona_id'' = ' || quote_literal(wanted ->> 'persona_id'),
        'm.said_at >= ' || quote_literal((wanted ->> 'since')::timestamptz),
        'm.said_at < ' || quote_literal((wanted ->> 'until')::timestamptz),
        'm.kind = ANY (' || quote_literal(nullif(ARRAY(SELECT jsonb_array_elements_text(wanted -> 'kinds')), '{}')) || ')',
        'm.tags @> ' || quote_literal(nullif(ARRAY(SELECT jsonb_array_elements_text(wanted -> 'tags')), '{}')))
$$;

-- Deletes what has one of the ids and meets the condition, of which one may be left out; how many there were.
CREATE OR REPLACE FUNCTION context_memory_forget(tenant text, ids text[] DEFAULT NULL, condition jsonb DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    gone bigint;
BEGIN
    PERFORM context_memory_tenant(tenant);
    IF ids IS NULL AND condition IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('context_memories ' || tenant, 0));
    EXECUTE format('DELETE FROM context_memories AS m WHERE m.tenant_id = $1 AND ($2 IS NULL OR m.id = ANY ($2)) AND %s',
                   context_memory_condition(coalesce(condition, '{}')))
        USING tenant, ids;
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END
$$;
