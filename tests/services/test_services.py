"""The services that other tests stand on do what they say."""

from __future__ import annotations

from pathlib import Path

import asyncpg
import httpx
import pytest
from redis.asyncio import Redis
from supabase import AsyncClientOptions, PostgrestAPIError, acreate_client

from tests.services.postgrest import PostgrestFront, api_key
from tests.services.redis_server import RedisServer

pytestmark = pytest.mark.engines


async def test_redis_keeps_its_data_over_a_kill(redis: Redis, redis_server: RedisServer) -> None:
    await redis.config_set("appendfsync", "always")  # else the last second may go while the disk is busy
    await redis.set("kept", "yes")
    redis_server.restart()
    await redis.connection_pool.disconnect()
    assert await redis.get("kept") == b"yes"


async def test_commands_that_the_oldest_redis_does_not_know_are_found_also_in_scripts(tmp_path: Path) -> None:
    server = RedisServer(tmp_path)
    server.start()
    try:
        async with Redis.from_url(server.url) as client:
            await client.set("key", "value", ex=5)
            await client.config_get("dir")
            assert server.newer_commands() == []
            if (await client.info("server"))["redis_version"].startswith("6."):
                pytest.skip("this server cannot tell since when it has a command")
            await client.eval("return redis.call('LMPOP', 1, 'list', 'LEFT')", 0)
            await client.expiretime("key")
        assert server.newer_commands() == ["expiretime", "lmpop"]
    finally:
        server.kill()


async def test_postgrest_calls_a_function_as_the_keys_role(
    supabase_project: PostgrestFront, database: asyncpg.Connection
) -> None:
    await database.execute(
        "CREATE FUNCTION whoami(greeting text, times int DEFAULT 1) RETURNS text LANGUAGE sql"
        " AS $$ SELECT repeat(greeting, times) || current_user $$;"
        "CREATE FUNCTION pairs() RETURNS TABLE (a int, b text) LANGUAGE sql AS $$ VALUES (1, 'x'), (2, 'y') $$"
    )
    http = httpx.AsyncClient()
    client = await acreate_client(supabase_project.url, api_key("anon"), AsyncClientOptions(httpx_client=http))
    answer = await client.rpc("whoami", {"greeting": "hi ", "times": 2}).execute()
    assert answer.data == "hi hi anon"
    assert (await client.rpc("pairs", {}).execute()).data == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    with pytest.raises(PostgrestAPIError, match="PGRST202"):
        await client.rpc("missing", {}).execute()
    await http.aclose()
