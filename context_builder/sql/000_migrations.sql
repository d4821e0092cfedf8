-- What has been applied to this database. Runs first, every time.

CREATE TABLE IF NOT EXISTS context_builder_migrations (
    name       text PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- With row-level security on and no policy, only the owner (and Supabase's service role) sees it.
ALTER TABLE context_builder_migrations ENABLE ROW LEVEL SECURITY;
