"""An HTTP front that maps PostgREST's table and RPC calls onto a real PostgreSQL.

What it covers is what the supabase client sends for this project: inserts and upserts, reads
and deletions with ``eq`` filters, function calls; each as the role that the API key names.
Errors have PostgREST's codes and shape, https://docs.postgrest.org/en/stable/references/errors.html
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.services.app_server import AppServer

SECRET_KEY = "sb_secret_of-this-project"  # gitleaks:allow
"""A key as Supabase issues them now, which is no JWT."""

SECRET = b"the-secret-that-signs-this-projects-keys"

# What a new Supabase project has: its roles, and every table open to them until a policy closes it.
PROJECT = """
DO $$
BEGIN
    PERFORM pg_advisory_xact_lock(1);
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'anon') THEN
        CREATE ROLE anon NOLOGIN;
        CREATE ROLE authenticated NOLOGIN;
        CREATE ROLE service_role NOLOGIN BYPASSRLS;
    END IF;
END
$$;
GRANT USAGE ON SCHEMA public TO anon, authenticated, service_role;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON TABLES TO anon, authenticated, service_role;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON SEQUENCES TO anon, authenticated, service_role;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON FUNCTIONS TO anon, authenticated, service_role;
"""

COLUMNS = """
SELECT attname FROM pg_attribute
WHERE attrelid = to_regclass('public.' || quote_ident($1)) AND attnum > 0 AND NOT attisdropped
"""
FUNCTION = """
SELECT proretset AS many, typtype = 'c' OR typname = 'record' AS rows, coalesce(proargnames, '{}') AS names,
       ARRAY(SELECT format_type(t, NULL) FROM unnest(proargtypes) AS t) AS types
FROM pg_proc JOIN pg_type ON pg_type.oid = prorettype
WHERE pronamespace = 'public'::regnamespace AND proname = $1
"""


class PostgrestError(Exception):
    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.response = JSONResponse(
            {"code": code, "message": message, "details": None, "hint": None}, status_code=status
        )


def api_key(role: str) -> str:
    """A key as Supabase issues them: a JWT that names the role."""

    def encode(part: bytes) -> bytes:
        return base64.urlsafe_b64encode(part).rstrip(b"=")

    signed = encode(b'{"alg":"HS256","typ":"JWT"}') + b"." + encode(json.dumps({"role": role}).encode())
    return (signed + b"." + encode(hmac.digest(SECRET, signed, hashlib.sha256))).decode()


class PostgrestFront(AppServer):
    """An API as PostgREST's for ``database_url``, served from a thread."""

    def __init__(self, database_url: str) -> None:
        self._database_url = database_url
        self.requests: list[str] = []
        self.max_rows = 1_000
        """What a project's API returns at most."""
        routes = [
            Route("/rest/v1/rpc/{function}", self._call, methods=["POST"]),
            Route("/rest/v1/{table}", self._read, methods=["GET"]),
            Route("/rest/v1/{table}", self._insert, methods=["POST"]),
            Route("/rest/v1/{table}", self._delete, methods=["DELETE"]),
        ]
        shaped = {PostgrestError: _shaped, asyncpg.PostgresError: _shaped}
        super().__init__(Starlette(routes=routes, exception_handlers=shaped))

    async def _read(self, request: Request) -> Response:
        async with self._as_caller(request) as connection:
            table, columns = await _known_table(connection, request)
            selected = request.query_params.get("select", "*")
            for name in [] if selected == "*" else selected.split(","):
                if name not in columns:
                    raise PostgrestError(400, "42703", f"column {table}.{name} does not exist")
            where = _where(request, table, columns)
            order = re.sub(
                r"(\w+)\.desc\.nullslast", r"ORDER BY \1 DESC NULLS LAST", request.query_params.get("order", "")
            )
            limit = f"LIMIT {int(request.query_params['limit'])}" if "limit" in request.query_params else ""
            rows = await connection.fetchval(
                f"SELECT coalesce(json_agg(r), '[]') FROM (SELECT {selected} FROM {table} {where} {order} {limit}) AS r"
            )
        return Response(rows, media_type="application/json")

    async def _insert(self, request: Request) -> Response:
        body = await request.json()
        rows: list[dict[str, Any]] = body if isinstance(body, list) else [body]
        async with self._as_caller(request) as connection:
            table, columns = await _known_table(connection, request)
            names = sorted({name for row in rows for name in row})
            conflict = request.query_params.get("on_conflict", "")
            for name in [*names, *filter(None, conflict.split(","))]:
                if name not in columns:
                    message = f"Could not find the '{name}' column of '{table}' in the schema cache"
                    raise PostgrestError(400, "PGRST204", message)
            into = ", ".join(names)
            prefer = request.headers.get("prefer", "")
            ignore = "resolution=ignore-duplicates" in prefer
            merge = "resolution=merge-duplicates" in prefer and conflict
            updates = ", ".join(f"{name} = excluded.{name}" for name in names)
            inserted = await connection.fetch(
                f"INSERT INTO {table} ({into}) SELECT {into} FROM json_populate_recordset(NULL::{table}, $1::json)"
                + (f" ON CONFLICT ({conflict}) DO NOTHING" if ignore else "")
                + (f" ON CONFLICT ({conflict}) DO UPDATE SET {updates}" if merge else "")
                + f" RETURNING to_json({table})",
                json.dumps(rows),
            )
        if "return=representation" not in request.headers.get("prefer", ""):
            return Response(status_code=201)
        shown = f"[{','.join(record[0] for record in inserted)}]"
        return Response(shown, status_code=201, media_type="application/json")

    async def _delete(self, request: Request) -> Response:
        async with self._as_caller(request) as connection:
            table, columns = await _known_table(connection, request)
            status = await connection.execute(f"DELETE FROM {table} {_where(request, table, columns)}")
        return Response(status_code=204, headers={"Content-Range": f"*/{status.removeprefix('DELETE ')}"})

    async def _call(self, request: Request) -> Response:
        name, arguments = request.path_params["function"], await request.json()
        async with self._as_caller(request) as connection:
            found = await connection.fetchrow(FUNCTION, name)
            if found is None or not set(arguments) <= set(found["names"]):
                message = f"Could not find the function public.{name} in the schema cache"
                raise PostgrestError(404, "PGRST202", message)
            given = [(n, t) for n, t in zip(found["names"], found["types"], strict=False) if n in arguments]
            passed = ", ".join(f"{n} := given.{n}" for n, _ in given)
            typed = ", ".join(f"{n} {t}" for n, t in given)
            source = f"json_to_record($1::json) AS given({typed})" if given else "(SELECT $1::json) AS given"
            one = "to_json(r)" if found["rows"] else "to_json(r.result)"
            alias = "r" if found["rows"] else "r(result)"
            called = f"SELECT {one} FROM {source}, LATERAL {name}({passed}) AS {alias}{_order(request)}"
            rows = [row[0] for row in await connection.fetch(called, json.dumps(arguments))]
        if not found["many"]:
            return Response(rows[0] or "null", media_type="application/json")
        offset = int(request.query_params.get("offset", 0))
        shown = rows[offset : offset + self.max_rows]
        headers = {"Content-Range": f"{offset}-{offset + len(shown) - 1}/{len(rows)}"}
        return Response(f"[{','.join(shown)}]", media_type="application/json", headers=headers)

    @asynccontextmanager
    async def _as_caller(self, request: Request) -> AsyncIterator[asyncpg.Connection]:
        """A connection in a transaction, as the role of the request's key."""
        self.requests.append(f"{request.method} {request.url.path}")
        claims = _claims_of(request)
        connection = await asyncpg.connect(self._database_url)
        try:
            async with connection.transaction():
                await connection.execute("SELECT set_config('request.jwt.claims', $1, true)", json.dumps(claims))
                await connection.execute(f'SET LOCAL ROLE "{claims["role"]}"')
                yield connection
        finally:
            await connection.close()


async def make_project(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    await connection.execute(PROJECT)
    await connection.close()


@asynccontextmanager
async def serving_project(database_url: str) -> AsyncIterator[PostgrestFront]:
    """Make the database a Supabase project's, and serve it."""
    await make_project(database_url)
    with PostgrestFront(database_url) as front:
        yield front


async def _known_table(connection: asyncpg.Connection, request: Request) -> tuple[str, Sequence[str]]:
    table = request.path_params["table"]
    columns = [row["attname"] for row in await connection.fetch(COLUMNS, table)]
    if not columns:
        raise PostgrestError(404, "PGRST205", f"Could not find the table 'public.{table}' in the schema cache")
    return table, columns


def _where(request: Request, table: str, columns: Sequence[str]) -> str:
    conditions = []
    for name, value in request.query_params.multi_items():
        if name in ("select", "order", "limit", "columns", "on_conflict"):
            continue
        if name not in columns:
            raise PostgrestError(400, "42703", f"column {table}.{name} does not exist")
        filtered = re.fullmatch(r"eq\.(.*)", value, re.DOTALL)
        if filtered is None:
            raise PostgrestError(400, "PGRST100", f"failed to parse filter ({value})")
        literal = filtered[1].replace("'", "''")
        conditions.append(f"{name} = '{literal}'")
    return f"WHERE {' AND '.join(conditions)}" if conditions else ""


def _order(request: Request) -> str:
    name = request.query_params.get("order", "").partition(".")[0]
    return f" ORDER BY r.{name}" if name.isidentifier() else ""


def _claims_of(request: Request) -> dict[str, Any]:
    """What the caller may do: by its token, or by a key that is none, which stands in ``apikey`` alone."""
    token = request.headers.get("authorization", "").removeprefix("Bearer ")
    if token and token.count(".") != 2:
        raise PostgrestError(401, "PGRST301", f"Expected 3 parts in JWT; got {token.count('.') + 1}")
    if not token and request.headers.get("apikey") == SECRET_KEY:
        return {"role": "service_role"}
    return _verified_claims(token)


def _verified_claims(key: str) -> dict[str, Any]:
    try:
        payload = key.split(".")[1]
        claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        genuine = hmac.compare_digest(key, api_key(claims["role"]))
    except (IndexError, KeyError, ValueError):
        genuine = False
    if not genuine:
        raise PostgrestError(401, "PGRST301", "JWSError JWSInvalidSignature")
    return claims


async def _shaped(request: Request, error: Exception) -> Response:
    if isinstance(error, PostgrestError):
        return error.response
    assert isinstance(error, asyncpg.PostgresError)
    statuses = {"42501": 403, "42P01": 404, "23505": 409}
    body = {"code": error.sqlstate, "message": error.args[0], "details": error.detail, "hint": error.hint}
    return JSONResponse(body, status_code=statuses.get(error.sqlstate or "", 400))
