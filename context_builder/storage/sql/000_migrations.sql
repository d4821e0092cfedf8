-- What has been applied to this database. Runs first, every time.

CREATE TABLE IF NOT EXISTS context_builder_migrations (
    name       text PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- With row-level security on and no policy, only the owner (and Supabase's service role) sees it.
ALTER TABLE context_builder_migrations ENABLE ROW LEVEL SECURITY;

DO $$
BEGIN
    IF EXISTS (SELECT FROM context_builder_migrations WHERE name = '001_context_summaries') THEN
        RAISE EXCEPTION 'this database was made before version 0.1.0: archived summaries stay, memories have to be made anew; run '
            'DROP TABLE context_memories, context_memory_frequencies, context_memory_totals, context_builder_migrations CASCADE; '
            'and migrate again' USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
END
$$;
