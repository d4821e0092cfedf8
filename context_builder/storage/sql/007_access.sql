-- API keys: who may call the server, for which tenant, and in which role. Of a key only a hash is kept. What is revoked
-- stays, to be listed. Functions run as their owner, as in 002.

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

SELECT context_builder_guard('^context_access_', '^context_access_', '{context_access_keys,context_access_secrets}');
