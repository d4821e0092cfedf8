-- Long-term memory: what is remembered for good, separated by tenant. Needs no extension; 003_search adds search.
--
-- Applications connect as role context_builder_app, which owns nothing, cannot bypass row-level security and
-- reaches rows only through the functions below. These run as their owner, because under a row-level policy
-- PostgreSQL does not use a full-text index (its operator is not leakproof), and so verify the tenant themselves.

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

-- A text with blanks where its script has none: Thai, Lao, Burmese, Khmer, Japanese and Chinese become overlapping pairs of
-- letters, which are found as words are (Nie et al. 1999, on Chinese: pairs find as much as words that a dictionary tells).
-- Korean has blanks, but none before its particles: pairs find a noun with and without any of them (Lee and Ahn 1996). Particles
-- that end no noun are left out, and a noun of one letter, which is no pair, stands alone too.
CREATE OR REPLACE FUNCTION context_memory_spaced(said text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN octet_length(said) = length(said) THEN said ELSE (
        SELECT string_agg(CASE WHEN NOT c.in_pairs THEN c.letter
                               WHEN c.next_too THEN ' ' || c.letter || c.next || ' '
                               WHEN c.last_too THEN ' '
                               ELSE ' ' || c.letter || ' ' END, '' ORDER BY c.place)
        FROM (
            SELECT l.letter, l.place, l.in_pairs, lead(l.letter) OVER w AS next, coalesce(lead(l.in_pairs) OVER w, false) AS next_too,
                   coalesce(lag(l.in_pairs) OVER w, false) AS last_too
            FROM (
                SELECT a.letter, a.place,
                       a.code BETWEEN 3584 AND 3839 OR a.code BETWEEN 4096 AND 4255 OR a.code BETWEEN 6016 AND 6143
                       OR a.code BETWEEN 12352 AND 12543 OR a.code BETWEEN 13312 AND 40959 OR a.code BETWEEN 44032 AND 55203
                       OR a.code BETWEEN 63744 AND 64255
                       AS in_pairs
                FROM (SELECT u.letter, u.place, ascii(u.letter) AS code
                      FROM unnest(string_to_array(regexp_replace(regexp_replace(
                          said, '(?<=[A-Za-z0-9가-힣])((에서|에게|한테|까지|부터|으로)[는도]?|에[는도])(?![가-힣])', '', 'g'),
                          '(?<![가-힣])([가-힣])([은는이가을를에의도로와과만])(?![가-힣])', '\1 \1\2', 'g'), NULL)) WITH ORDINALITY AS u (letter, place)) AS a
            ) AS l
            WINDOW w AS (ORDER BY l.place)
        ) AS c) END
$$;

-- The languages whose words are taken to their stems; of any other, and where it is not known, the stems are English's.
CREATE OR REPLACE FUNCTION context_memory_languages() RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT '{english,arabic,danish,dutch,finnish,french,german,greek,hungarian,indonesian,italian,norwegian,portuguese,romanian,russian,spanish,swedish,tamil,turkish}'::text[]
$$;

-- The lexemes of a text in a language.
CREATE OR REPLACE FUNCTION context_memory_stems(said text, language text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT to_tsvector((CASE WHEN language = ANY (context_memory_languages()) THEN language ELSE 'english' END)::regconfig,
                       context_memory_spaced(said))
$$;

-- Marks the language of a memory among its lexemes, so that the frequencies of words tell which languages a tenant has.
CREATE OR REPLACE FUNCTION context_memory_language_mark(language text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT chr(31) || language
$$;

-- The lexemes of a memory: its text, its speaker (weight A) and its date (weight B). Immutable, as a generated column needs.
CREATE OR REPLACE FUNCTION context_memory_words(said text, speaker text, said_at timestamptz, language text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT context_memory_stems(left(said, 200000), language)
        || CASE WHEN language <> 'english' THEN array_to_tsvector(ARRAY[context_memory_language_mark(language)]) ELSE '' END
        || setweight(context_memory_stems(left(coalesce(speaker, ''), 1000), language), 'A')
        || setweight(to_tsvector('english', coalesce(
               extract(day FROM said_at AT TIME ZONE 'UTC')::text || ' '
               || ('{january,february,march,april,may,june,july,august,september,october,november,december}'::text[])
                  [extract(month FROM said_at AT TIME ZONE 'UTC')::integer]
               || ' ' || extract(year FROM said_at AT TIME ZONE 'UTC')::text, '')), 'B')
$$;

CREATE TABLE IF NOT EXISTS context_memories (
    tenant_id  text NOT NULL,
    id         text NOT NULL,                 -- chosen by the caller, unique within the tenant
    kind       text NOT NULL,
    session_id text,
    user_id    text,
    speaker    text,
    said_at    timestamptz,
    position   bigint,                        -- orders the memories of a session, so that neighbours can be found
    tags       text[] NOT NULL DEFAULT '{}',
    metadata   jsonb NOT NULL DEFAULT '{}',
    text       text NOT NULL,
    language   text,                          -- of the text, as a text search configuration is called; null: not known
    present    text[],                        -- who was there when it was said; null: unknown
    audience   text[],                        -- who may know it; null: everybody in the tenant
    valid_from timestamptz,                   -- when it began to hold; null: when it was said
    valid_to   timestamptz,                   -- when it ceased to hold; null: it holds
    feedback   jsonb,                         -- {score, count, timestamp}: the mean of its ratings, 0 to 1
    ratings    jsonb,                         -- {user or '': {score, timestamp}}: the latest of each user
    digest     bytea,                         -- of the text that an embedding is made from
    embedder   text,                          -- the model that embeds it
    words      tsvector GENERATED ALWAYS AS (context_memory_words(text, speaker, said_at, language)) STORED,
    -- A column of its own, so that the planner knows how common it is: of the two conditions it is made from it would
    -- expect next to nothing, and read the whole tenant to find it.
    unowned    boolean GENERATED ALWAYS AS (user_id IS NULL AND metadata ->> 'persona_id' IS NULL) STORED,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id)
);

CREATE INDEX IF NOT EXISTS context_memories_session ON context_memories (tenant_id, session_id, position);
CREATE INDEX IF NOT EXISTS context_memories_user ON context_memories (tenant_id, user_id);
CREATE INDEX IF NOT EXISTS context_memories_newest ON context_memories (tenant_id, said_at DESC NULLS LAST, position DESC NULLS LAST);
CREATE INDEX IF NOT EXISTS context_memories_unowned ON context_memories (tenant_id) WHERE unowned;

-- The memories whose embedding is still to be made. Not a column of theirs: one that gets its embedding would be written anew,
-- and its former version stay in every index until so much of all tenants' is dead that the table is vacuumed.
CREATE TABLE IF NOT EXISTS context_memory_pending (
    tenant_id text NOT NULL,
    id        text NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

-- Embeddings, partitioned by tenant: the default partition holds the small tenants, whose vectors are compared one by
-- one; a tenant that outgrows it gets a partition with an HNSW index of its own, so that no tenant slows another.
CREATE TABLE IF NOT EXISTS context_memory_vectors (
    tenant_id text NOT NULL,
    id        text NOT NULL,
    embedder  text NOT NULL,
    embedding real[] NOT NULL,                -- an array, so that this table needs no extension; empty: cannot be embedded
    PRIMARY KEY (tenant_id, id)
) PARTITION BY LIST (tenant_id);
CREATE TABLE IF NOT EXISTS context_memory_vectors_default PARTITION OF context_memory_vectors DEFAULT;

-- How many of a tenant's memories contain a word: rare words weigh more and are looked up first.
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

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY '{context_memories,context_memory_pending,context_memory_vectors,context_memory_frequencies,context_memory_totals}'::text[] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('DROP POLICY IF EXISTS %I ON %I', name || '_tenant', name);
        EXECUTE format($policy$CREATE POLICY %I ON %I
            USING (tenant_id = nullif(current_setting('context_builder.tenant', true), ''))
            WITH CHECK (tenant_id = nullif(current_setting('context_builder.tenant', true), ''))$policy$, name || '_tenant', name);
    END LOOP;
    ALTER TABLE context_memory_vectors_default ENABLE ROW LEVEL SECURITY;
END
$$;

-- The tenant of this transaction, or an error when another one is requested. Supabase's service role, which only the
-- project's own servers hold, names the tenant it acts for. current_setting('role') is the caller's role even in here.
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

-- Keeps word frequencies and deletes what there is of the embeddings of deleted memories. Words are updated in order, and writers of one
-- tenant run one after the other, so that no two of them deadlock.
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
    IF TG_OP = 'DELETE' THEN
        DELETE FROM context_memory_vectors AS v USING departed AS d WHERE v.tenant_id = d.tenant_id AND v.id = d.id;
        DELETE FROM context_memory_pending AS p USING departed AS d WHERE p.tenant_id = d.tenant_id AND p.id = d.id;
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

-- Writes the memories whose ids are not in "done"; with "only_changed" only those that are new, or differ from before in digest
-- or embedder. Returns their ids, and whether each replaced an older one. Only the key's index is asked for it, as by every
-- INSERT with a conflict: in a join the planner would read all of a tenant that its statistics do not know.
CREATE OR REPLACE FUNCTION context_memory_write(tenant text, memories jsonb, only_changed boolean, done text[])
RETURNS TABLE (id text, replaced boolean) LANGUAGE sql AS $$
    INSERT INTO context_memories AS m (tenant_id, id, kind, session_id, user_id, speaker, said_at, position, tags, metadata, text,
                                       language, digest, embedder)
    SELECT DISTINCT ON (r.id)
           tenant, r.id, r.kind, r.session_id, r.user_id, r.speaker, r.said_at, r.position, coalesce(r.tags, '{}'),
           coalesce(r.metadata, '{}'), r.text, r.language, decode(r.digest, 'hex'), r.embedder
    FROM ROWS FROM (jsonb_to_recordset(memories) AS (
        id text, kind text, session_id text, user_id text, speaker text, said_at timestamptz, position bigint,
        tags text[], metadata jsonb, text text, language text, digest text,
        embedder text
    )) WITH ORDINALITY AS r (id, kind, session_id, user_id, speaker, said_at, position, tags, metadata, text, language, digest, embedder,
                             place)
    WHERE r.id NOT IN (SELECT unnest(done))
    ORDER BY r.id, CASE WHEN r.kind = 'preference' THEN r.said_at END DESC NULLS LAST, r.place DESC
    ON CONFLICT (tenant_id, id) DO UPDATE SET
        kind = EXCLUDED.kind, session_id = EXCLUDED.session_id, user_id = EXCLUDED.user_id,
        speaker = EXCLUDED.speaker, said_at = EXCLUDED.said_at, position = EXCLUDED.position, tags = EXCLUDED.tags,
        metadata = EXCLUDED.metadata, text = EXCLUDED.text, language = EXCLUDED.language, digest = EXCLUDED.digest,
        embedder = coalesce(EXCLUDED.embedder, CASE WHEN m.digest = EXCLUDED.digest THEN m.embedder END)
    WHERE (m.kind <> 'preference' OR m.said_at IS NULL OR EXCLUDED.said_at IS NULL OR m.said_at <= EXCLUDED.said_at)
      AND NOT (only_changed AND m.digest IS NOT DISTINCT FROM EXCLUDED.digest
               AND m.embedder IS NOT DISTINCT FROM coalesce(EXCLUDED.embedder, m.embedder))
    RETURNING m.id, m.xmax <> 0
$$;

-- Stores a batch: an array of objects with the columns' names. Of two with one id the last counts; of two preferences
-- the one stated last, in whatever order they arrive. An embedding stays as long as text and embedder are the same: what is
-- new or has another digest is to be embedded, again.
CREATE OR REPLACE FUNCTION context_memory_remember(tenant text, memories jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    changed  text[];
    replaced text[];
BEGIN
    PERFORM context_memory_tenant(tenant);
    PERFORM pg_advisory_xact_lock(hashtextextended('context_memories ' || tenant, 0));
    SELECT coalesce(array_agg(w.id), '{}'), array_agg(w.id) FILTER (WHERE w.replaced) INTO changed, replaced
    FROM context_memory_write(tenant, memories, true, '{}') AS w;
    IF cardinality(changed) < jsonb_array_length(memories) THEN
        PERFORM context_memory_write(tenant, memories, false, changed);
    END IF;
    IF replaced IS NOT NULL THEN
        DELETE FROM context_memory_vectors AS v WHERE v.tenant_id = tenant AND v.id = ANY (replaced);
    END IF;
    INSERT INTO context_memory_pending (tenant_id, id) SELECT tenant, c.id FROM unnest(changed) AS c (id)
    ON CONFLICT DO NOTHING;
END
$$;

-- What a program is shown of a memory: not what only search needs, nor who rated it.
CREATE OR REPLACE FUNCTION context_memory_json(m context_memories) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('id', m.id, 'kind', m.kind, 'session_id', m.session_id, 'user_id', m.user_id,
                              'speaker', m.speaker, 'said_at', m.said_at, 'position', m.position, 'tags', m.tags,
                              'metadata', m.metadata, 'text', m.text, 'feedback', m.feedback)
$$;

-- Where a memory belongs, without what it says: what a search is told that only refers to what it finds.
CREATE OR REPLACE FUNCTION context_memory_place(m context_memories) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('id', m.id, 'kind', m.kind, 'session_id', m.session_id, 'position', m.position,
                              'metadata', m.metadata, 'text', '')
$$;

-- A session's id or an artifact's ref as memories have it in session_id: of a long one a beginning and a digest.
CREATE OR REPLACE FUNCTION context_memory_key(name text) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT CASE WHEN length(name) <= 200 THEN name
           ELSE left(name, 167) || ' ' || left(encode(sha256(convert_to(name, 'UTF8')), 'hex'), 32) END
$$;

-- What is of these sensitivities, as a condition on m: a session without a stated one, and what is of no session, is internal.
-- Lists are made once for a query, and call no function for each short name, which would take some 20 times as long. In parentheses, session_id is no column by which memories are looked up.
CREATE OR REPLACE FUNCTION context_memory_sensitivity(tenant text, among text[]) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT format(CASE WHEN 'internal' = ANY (among) THEN 'coalesce((m.session_id) NOT IN (%s), true)' ELSE '(m.session_id) IN (%s)' END,
        format('SELECT CASE WHEN length(%1$s) <= 200 THEN %1$s ELSE context_memory_key(%1$s) END FROM context_artifacts AS a WHERE a.tenant_id = %2$L AND a.is_current AND a.sensitivity = ANY (%3$L)',
               CASE WHEN strpos(tenant, chr(31)) > 0 THEN 'a.ref' ELSE 'substr(a.ref, 9)' END,  -- behind "session:"
               split_part(tenant, chr(31), 1),
               ARRAY(SELECT s FROM unnest('{public,internal,confidential,restricted}'::text[]) AS s
                     WHERE (s = ANY (among)) <> ('internal' = ANY (among))))
        || CASE WHEN strpos(tenant, chr(31)) > 0 THEN '' ELSE ' AND starts_with(a.ref, ''session:'')' END)
$$;

-- A MemoryFilter as a condition on m, every value quoted; its sensitivities are of the filter's "tenant". "with_unowned" also admits what belongs to no user or persona;
-- where the filter names neither, only that is admitted.
CREATE OR REPLACE FUNCTION context_memory_condition(filter jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT concat_ws(' AND ',
        'true',
        'm.session_id = ' || quote_literal(filter ->> 'session_id'),
        CASE WHEN (filter ->> 'with_unowned')::boolean IS NOT TRUE THEN concat_ws(' AND ',
            'true', 'm.user_id = ' || quote_literal(filter ->> 'user_id'),
            'm.metadata ->> ''persona_id'' = ' || quote_literal(filter ->> 'persona_id'))
        WHEN coalesce(filter ->> 'user_id', filter ->> 'persona_id') IS NULL THEN 'm.unowned'
        ELSE concat(
            '(m.unowned OR (m.user_id IS NULL', ' OR m.user_id = ' || quote_literal(filter ->> 'user_id'),
            ') AND (m.metadata ->> ''persona_id'' IS NULL',
            ' OR m.metadata ->> ''persona_id'' = ' || quote_literal(filter ->> 'persona_id'), '))')
        END,
        'm.id = ANY (' || quote_literal(nullif(ARRAY(SELECT jsonb_array_elements_text(filter -> 'ids')), '{}')) || ')',
        'coalesce(m.session_id <> ALL (' || quote_literal(nullif(
            ARRAY(SELECT jsonb_array_elements_text(filter -> 'without_sessions')), '{}')) || '), true)',
        context_memory_sensitivity(filter ->> 'tenant', nullif(ARRAY(SELECT jsonb_array_elements_text(filter -> 'sensitivities')), '{}')),
        'm.kind <> ALL (' || quote_literal(nullif(ARRAY(SELECT jsonb_array_elements_text(filter -> 'without_kinds')), '{}')) || ')',
        'm.speaker = ' || quote_literal(filter ->> 'speaker'),
        'm.said_at >= ' || quote_literal((filter ->> 'since')::timestamptz),
        'm.said_at < ' || quote_literal((filter ->> 'until')::timestamptz),
        'm.kind = ANY (' || quote_literal(nullif(ARRAY(SELECT jsonb_array_elements_text(filter -> 'kinds')), '{}')) || ')',
        'm.tags @> ' || quote_literal(nullif(ARRAY(SELECT jsonb_array_elements_text(filter -> 'tags')), '{}')))
$$;

-- Deletes the memories with one of the ids that meet the condition, either of which may be left out; returns how many.
-- With a session alone that is forgotten, also by the record of context packages; with a session and ids, its messages of
-- these ids, and all of its points, whose earlier words may rest on them. A space of documents has no sessions.
CREATE OR REPLACE FUNCTION context_memory_forget(tenant text, ids text[] DEFAULT NULL, condition jsonb DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    gone      bigint;
    session   text := condition ->> 'session_id';
    said      text[];
    today     date := (clock_timestamp() AT TIME ZONE 'UTC')::date;
    is_struck boolean := ids IS NULL AND session IS NOT NULL AND condition ? 'ids' AND strpos(tenant, chr(31)) = 0;
    is_erased boolean := ids IS NULL AND session IS NOT NULL AND condition - 'session_id' = '{}' AND strpos(tenant, chr(31)) = 0;
BEGIN
    PERFORM context_memory_tenant(tenant);
    IF ids IS NULL AND condition IS NULL THEN
        RETURN 0;
    END IF;
    IF is_struck OR is_erased THEN  -- before any lock, so that nobody waits in a circle
        PERFORM context_package_partitions(today, today);
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('context_memories ' || tenant, 0));
    IF is_struck THEN
        SELECT array_agg('message:' || session || '/' || m.position) INTO said FROM context_memories AS m
        WHERE m.tenant_id = tenant AND m.session_id = session AND m.kind = 'message'
          AND m.id IN (SELECT jsonb_array_elements_text(condition -> 'ids'));
        PERFORM context_package_strike(tenant, session, coalesce(said, '{}'));
    END IF;
    EXECUTE format('DELETE FROM context_memories AS m WHERE m.tenant_id = $1 AND ($2 IS NULL OR m.id = ANY ($2)) AND %s',
                   context_memory_condition(coalesce(condition, '{}') || jsonb_build_object('tenant', tenant)))
        USING tenant, ids;
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF is_erased THEN
        PERFORM context_package_erase(tenant, 'session:' || session);
    END IF;
    RETURN gone;
END
$$;

-- Records an array of {id, user_id, score, timestamp} and returns how many of the memories exist. Of each user only the
-- latest rating counts, so that nobody decides by rating often; the newest 100 raters of a memory are kept.
CREATE OR REPLACE FUNCTION context_memory_rate(tenant text, ratings jsonb) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    rated bigint;
BEGIN
    PERFORM context_memory_tenant(tenant);
    PERFORM pg_advisory_xact_lock(hashtextextended('context_memories ' || tenant, 0));
    UPDATE context_memories AS m SET ratings = kept.ratings, feedback = kept.feedback
    FROM (
        SELECT r.id, jsonb_object_agg(coalesce(r.user_id, ''),
                                      jsonb_build_object('score', r.score, 'timestamp', r.timestamp)) AS received
        FROM jsonb_to_recordset(context_memory_rate.ratings) AS r (id text, user_id text, score float8, "timestamp" timestamptz)
        GROUP BY r.id
    ) AS new
    JOIN context_memories AS k ON k.tenant_id = tenant AND k.id = new.id
    CROSS JOIN LATERAL (
        SELECT jsonb_object_agg(newest.key, newest.value) AS ratings,
               jsonb_build_object('score', avg((newest.value ->> 'score')::float8), 'count', count(*),
                                  'timestamp', max((newest.value ->> 'timestamp')::timestamptz)) AS feedback
        FROM (SELECT e.key, e.value FROM jsonb_each(coalesce(k.ratings, '{}') || new.received) AS e
              ORDER BY (e.value ->> 'timestamp')::timestamptz DESC, e.key LIMIT 100) AS newest
    ) AS kept
    WHERE m.tenant_id = tenant AND m.id = k.id;
    GET DIAGNOSTICS rated = ROW_COUNT;
    RETURN rated;
END
$$;

-- The newest memories that meet the condition, the newest first: what a search without a query means.
CREATE OR REPLACE FUNCTION context_memory_newest(tenant text, count integer DEFAULT 8, condition jsonb DEFAULT '{}')
RETURNS TABLE (memory jsonb, score float8, origins text[]) LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY EXECUTE format($newest$
        SELECT context_memory_json(m), 1::float8, '{newest}'::text[]
        FROM context_memories AS m
        WHERE m.tenant_id = $1 AND %s
        ORDER BY m.said_at DESC NULLS LAST, m.position DESC NULLS LAST LIMIT $2
        $newest$, context_memory_condition(condition || jsonb_build_object('tenant', tenant)))
    USING tenant, count;
END
$$;

-- The messages of a session in the order in which they arrived, page by page, also long after they left its buffer.
-- A message's position counts arrivals.
CREATE OR REPLACE FUNCTION context_said_after(tenant text, session text, after bigint, most integer)
RETURNS SETOF jsonb LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY SELECT context_memory_json(m) FROM context_memories AS m
    WHERE m.tenant_id = tenant AND m.session_id = session AND m.position > after AND m.kind = 'message'
    ORDER BY m.position, m.said_at LIMIT most;
END
$$;

SELECT context_builder_guard('^context_said_after$', '^context_said_after$');
SELECT context_builder_by_index('^context_said_after$');
