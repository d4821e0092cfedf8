-- API keys: who may call the server, for which tenant, and in which role. Of a key only a hash is kept. What is revoked
-- stays, to be listed. Functions run as their owner, as those of the memories do.

CREATE TABLE IF NOT EXISTS context_access_keys (
    id         text PRIMARY KEY,
    tenant_id  text NOT NULL,
    role       text NOT NULL CHECK (role IN ('reader', 'writer', 'admin')),
    name       text NOT NULL DEFAULT '',
    digest     text NOT NULL,                -- SHA-256 of the whole key, in hexadecimal; its secret has 256 random bits
    created_at timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz
);
ALTER TABLE context_access_keys ENABLE ROW LEVEL SECURITY;

CREATE OR REPLACE FUNCTION context_access_create(tenant text, key_id text, key_role text, key_name text, key_digest text)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    INSERT INTO context_access_keys (id, tenant_id, role, name, digest)
    VALUES (key_id, tenant, key_role, key_name, key_digest);
END
$$;

-- A key that holds, of whichever tenant: who asks for it is a server, which learns from it whose the caller is.
CREATE OR REPLACE FUNCTION context_access_find(tenant text, key_id text) RETURNS SETOF jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY SELECT jsonb_build_object('tenant_id', k.tenant_id, 'role', k.role, 'digest', k.digest)
    FROM context_access_keys AS k WHERE k.id = key_id AND k.revoked_at IS NULL;
END
$$;

-- All keys, of this tenant or of every one, the newest first.
CREATE OR REPLACE FUNCTION context_access_list(tenant text, every_tenant boolean DEFAULT false) RETURNS SETOF jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN QUERY SELECT jsonb_build_object('id', k.id, 'tenant_id', k.tenant_id, 'role', k.role, 'name', k.name,
                                           'created_at', k.created_at, 'revoked_at', k.revoked_at)
    FROM context_access_keys AS k WHERE every_tenant OR k.tenant_id = tenant ORDER BY k.created_at DESC, k.id;
END
$$;

-- Answers whether there is a key that holds, of whichever tenant.
CREATE OR REPLACE FUNCTION context_access_any(tenant text) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    RETURN EXISTS (SELECT FROM context_access_keys AS k WHERE k.revoked_at IS NULL);
END
$$;

-- Revokes a key of whichever tenant; answers whether it held until now.
CREATE OR REPLACE FUNCTION context_access_revoke(tenant text, key_id text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    UPDATE context_access_keys AS k SET revoked_at = now() WHERE k.id = key_id AND k.revoked_at IS NULL;
    RETURN FOUND;
END
$$;

-- The key with which servers sign what they keep in Redis: the one proposed, where there is none yet.
CREATE TABLE IF NOT EXISTS context_access_secrets (
    name       text PRIMARY KEY,
    secret     text NOT NULL,                -- 32 random bytes, in hexadecimal
    created_at timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE context_access_secrets ENABLE ROW LEVEL SECURITY;

CREATE OR REPLACE FUNCTION context_access_secret(tenant text, proposed text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM context_memory_tenant(tenant);
    IF proposed !~ '^[0-9a-f]{64}$' THEN
        RAISE invalid_parameter_value USING MESSAGE = 'a secret is 32 bytes in hexadecimal';
    END IF;
    INSERT INTO context_access_secrets (name, secret) VALUES ('redis', proposed) ON CONFLICT DO NOTHING;
    RETURN (SELECT s.secret FROM context_access_secrets AS s WHERE s.name = 'redis');
END
$$;

-- Calls that were made under an Idempotency-Key, and what they were answered: for a day, so that whoever does not know whether a
-- call arrived may make it again.
CREATE TABLE IF NOT EXISTS context_access_calls (
    tenant_id  text NOT NULL,
    caller     text NOT NULL,
    key        bytea NOT NULL,               -- SHA-256
    digest     text NOT NULL,                -- of the call
    holder     text NOT NULL,                -- who answers it
    answer     jsonb,                        -- null while it is being answered
    begun_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, caller, key)
);
ALTER TABLE context_access_calls ENABLE ROW LEVEL SECURITY;
CREATE INDEX IF NOT EXISTS context_access_calls_begun ON context_access_calls (begun_at);

-- Begins a call, unless it was made before: answers {"state": "begun"}, "answered" with the "answer", "busy" while another one
-- answers it, or "other" where the key was sent with another call. Who has not answered in a minute never will.
CREATE OR REPLACE FUNCTION context_access_call_begin(tenant text, caller_sub text, call_key text, call_digest text, by_holder text)
RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    held context_access_calls;
    name bytea := sha256(convert_to(call_key, 'UTF8'));
BEGIN
    PERFORM context_memory_tenant(tenant);
    DELETE FROM context_access_calls AS c WHERE c.ctid = ANY (ARRAY(
        SELECT o.ctid FROM context_access_calls AS o WHERE o.begun_at < clock_timestamp() - interval '1 day' LIMIT 100));
    INSERT INTO context_access_calls AS c (tenant_id, caller, key, digest, holder)
    VALUES (tenant, caller_sub, name, call_digest, by_holder)
    ON CONFLICT (tenant_id, caller, key) DO UPDATE SET holder = EXCLUDED.holder, begun_at = clock_timestamp()
    WHERE c.digest = EXCLUDED.digest AND c.answer IS NULL AND c.begun_at < clock_timestamp() - interval '1 minute'
    RETURNING * INTO held;
    IF FOUND THEN
        RETURN jsonb_build_object('state', 'begun');
    END IF;
    SELECT * INTO held FROM context_access_calls AS c WHERE c.tenant_id = tenant AND c.caller = caller_sub AND c.key = name;
    RETURN jsonb_build_object(
        'state', CASE WHEN held.digest IS DISTINCT FROM call_digest THEN 'other' WHEN held.answer IS NULL THEN 'busy' ELSE 'answered' END,
        'answer', CASE WHEN held.digest = call_digest THEN held.answer END);
END
$$;

-- Notes what a call was answered; without an answer it may be made again at once.
CREATE OR REPLACE FUNCTION context_access_call_end(tenant text, caller_sub text, call_key text, by_holder text, answered jsonb DEFAULT NULL)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    name bytea := sha256(convert_to(call_key, 'UTF8'));
BEGIN
    PERFORM context_memory_tenant(tenant);
    IF answered IS NULL THEN
        DELETE FROM context_access_calls AS c
        WHERE c.tenant_id = tenant AND c.caller = caller_sub AND c.key = name AND c.holder = by_holder AND c.answer IS NULL;
    ELSE
        UPDATE context_access_calls AS c SET answer = answered
        WHERE c.tenant_id = tenant AND c.caller = caller_sub AND c.key = name AND c.holder = by_holder;
    END IF;
END
$$;

SELECT context_builder_guard('^context_access_', '^context_access_', '{context_access_keys,context_access_secrets,context_access_calls}');
