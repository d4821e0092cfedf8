-- The archive of summaries: one row a summary, for good. Also completes a table that was made
-- with the original columns only; what it holds and the types of its time columns stay.

CREATE TABLE IF NOT EXISTS context_summaries (
    session_id           text NOT NULL,
    summary_seq          integer,             -- counts a session's summaries from 1; null in rows older than it
    summary_text         text NOT NULL,
    covers_message_start bigint,              -- message numbers go up to 2^53 - 1
    covers_message_end   bigint,
    message_count        bigint,
    -- Text, because the strings are archived as the messages carried them. A timestamptz would
    -- read one without an offset in the server's time zone, and forget every offset.
    time_range_start     text,
    time_range_end       text,
    domains_covered      jsonb NOT NULL DEFAULT '[]',
    superseded_by        integer,             -- the latest summary_seq that corrects what this one says
    created_at           timestamptz NOT NULL DEFAULT now()
);

ALTER TABLE context_summaries
    ADD COLUMN IF NOT EXISTS summary_seq          integer,
    ADD COLUMN IF NOT EXISTS covers_message_start bigint,
    ADD COLUMN IF NOT EXISTS covers_message_end   bigint,
    ADD COLUMN IF NOT EXISTS message_count        bigint,
    ADD COLUMN IF NOT EXISTS time_range_start     text,
    ADD COLUMN IF NOT EXISTS time_range_end       text,
    ADD COLUMN IF NOT EXISTS domains_covered      jsonb NOT NULL DEFAULT '[]',
    ADD COLUMN IF NOT EXISTS superseded_by        integer,
    ADD COLUMN IF NOT EXISTS created_at           timestamptz NOT NULL DEFAULT now();

DO $$
DECLARE
    narrow name;
BEGIN
    FOR narrow IN
        SELECT attname FROM pg_attribute
        WHERE attrelid = 'context_summaries'::regclass
          AND attname IN ('covers_message_start', 'covers_message_end', 'message_count')
          AND atttypid IN ('smallint'::regtype, 'integer'::regtype)
    LOOP
        EXECUTE format('ALTER TABLE context_summaries ALTER COLUMN %I TYPE bigint', narrow);
    END LOOP;
END
$$;

-- Delivering a summary again finds this and changes nothing.
CREATE UNIQUE INDEX IF NOT EXISTS context_summaries_session_id_summary_seq_key
    ON context_summaries (session_id, summary_seq);

-- Row-level security: the owner writes, and on Supabase the service role; nobody else sees a row.
-- A plain PostgreSQL has none of Supabase's roles, so each is only named where it exists.
ALTER TABLE context_summaries ENABLE ROW LEVEL SECURITY;

DO $$
DECLARE
    outsider name;
BEGIN
    DROP POLICY IF EXISTS context_summaries_service ON context_summaries;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'service_role') THEN
        CREATE POLICY context_summaries_service ON context_summaries
            FOR ALL TO service_role USING (true) WITH CHECK (true);
        GRANT SELECT, INSERT, UPDATE, DELETE ON context_summaries TO service_role;
    END IF;
    FOR outsider IN SELECT rolname FROM pg_roles WHERE rolname IN ('anon', 'authenticated') LOOP
        EXECUTE format('REVOKE ALL ON context_summaries FROM %I', outsider);
    END LOOP;
END
$$;
