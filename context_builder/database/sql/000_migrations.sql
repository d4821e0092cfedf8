-- What has been applied to this database, and how its functions are guarded. Runs first, every time.

CREATE TABLE IF NOT EXISTS context_builder_migrations (
    name       text PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now(),
    digest     text NOT NULL                  -- SHA-256 of the SQL
);

-- With row-level security on and no policy, only the owner (and Supabase's service role) sees it.
ALTER TABLE context_builder_migrations ENABLE ROW LEVEL SECURITY;

-- Refuses a database whose tables were made by other SQL than this version's, given as {name: digest}. What a later version
-- added has a name after all of these, and stays.
CREATE OR REPLACE FUNCTION context_builder_refuse_earlier(ours jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM context_builder_migrations AS m
               WHERE m.name COLLATE "C" <= (SELECT max(o.name COLLATE "C") FROM jsonb_object_keys(ours) AS o (name))
                 AND m.digest IS DISTINCT FROM ours ->> m.name) THEN
        RAISE EXCEPTION 'its tables are of an earlier version, which this one does not upgrade: write them to a file with '
            '`context-builder backup FILE`, and bring that into an empty database with `context-builder restore FILE`'
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
END
$$;

-- Lets nobody reach the tables but through functions. Of those whose names match "functions" only the application's role and
-- Supabase's service role may call the ones that match "callable", which verify the tenant; nobody may call the others
-- directly. Each sees this schema and "beside", and nothing that a caller could put before them; those that match "inlined"
-- keep the caller's, because PostgreSQL inlines no function with one of its own: they name nothing outside pg_catalog.
CREATE OR REPLACE FUNCTION context_builder_guard(
    functions text, callable text, tables text[] DEFAULT '{}', inlined text DEFAULT '^$', beside text DEFAULT NULL
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    fn     record;
    caller name;
    held   text;
    path   text := concat_ws(', ', 'pg_catalog', quote_ident(current_schema()), beside, 'pg_temp');
BEGIN
    FOR fn IN SELECT p.oid::regprocedure AS id, p.proname AS name FROM pg_proc AS p
              WHERE p.pronamespace = current_schema()::regnamespace AND p.proname ~ functions
    LOOP
        IF fn.name !~ inlined THEN
            EXECUTE format('ALTER FUNCTION %s SET search_path = %s', fn.id, path);
        END IF;
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', fn.id);
    END LOOP;
    FOR caller IN SELECT rolname FROM pg_roles
                  WHERE rolname IN ('context_builder_app', 'service_role', 'anon', 'authenticated')
    LOOP
        FOREACH held IN ARRAY tables LOOP
            EXECUTE format('REVOKE ALL ON %I FROM %I', held, caller);
        END LOOP;
        FOR fn IN SELECT p.oid::regprocedure AS id, p.proname AS name FROM pg_proc AS p
                  WHERE p.pronamespace = current_schema()::regnamespace AND p.proname ~ functions
        LOOP
            EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %I', fn.id, caller);
            IF caller IN ('context_builder_app', 'service_role') AND fn.name ~ callable THEN
                EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', fn.id, caller);
            END IF;
        END LOOP;
        IF caller = 'context_builder_app' THEN
            EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), caller);
        END IF;
    END LOOP;
END
$$;

-- Lets functions that read some rows of one tenant find them by indexes alone, each of which begins with the tenant or is of
-- the tenant's own keys: whatever the planner expects, and in whatever plan it keeps for every tenant, nothing of other
-- tenants is read. To compile such a plan, or to start another process for it, takes longer than it does.
CREATE OR REPLACE FUNCTION context_builder_by_index(functions text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    fn regprocedure;
BEGIN
    FOR fn IN SELECT p.oid FROM pg_proc AS p
              WHERE p.pronamespace = current_schema()::regnamespace AND p.proname ~ functions
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET enable_seqscan = off', fn);
        EXECUTE format('ALTER FUNCTION %s SET random_page_cost = 1.1', fn);
        EXECUTE format('ALTER FUNCTION %s SET jit = off', fn);
        EXECUTE format('ALTER FUNCTION %s SET max_parallel_workers_per_gather = 0', fn);
    END LOOP;
END
$$;
SELECT context_builder_guard('^context_builder_', '^$', inlined => '^context_builder_');
