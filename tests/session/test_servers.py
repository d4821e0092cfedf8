"""On which of several Redis servers a session is, and which a new one comes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from fakeredis.aioredis import FakeRedis
from redis.asyncio import Redis

from context_builder.engines.engine import LOOPBACK, free_port
from context_builder.errors import SessionIdError, StoreError, StoreUnavailable
from context_builder.session.keys import Keys
from context_builder.session.servers import SessionServer, SessionServers
from context_builder.storage.redis import client_for


@pytest.fixture
async def clients() -> AsyncIterator[list[Redis]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(FakeRedis()) for _ in range(3)]


def named(clients: list[Redis], tenant_id: str = "default") -> SessionServers:
    return SessionServers([SessionServer(f"redis-{n}:6379/0", one, tenant_id) for n, one in enumerate(clients)])


@pytest.mark.parametrize("key", ["input", "checkpoint", "owner"])
async def test_a_session_is_where_something_of_it_is(clients: list[Redis], key: str) -> None:
    servers = named(clients)
    assert await servers.find("monday") is None
    await clients[1].lpush(getattr(Keys("monday"), key), "x")
    found = await servers.find("monday")
    assert found is not None
    assert found.redis is clients[1]


async def test_deliveries_that_went_astray_do_not_hide_where_it_is_run(clients: list[Redis]) -> None:
    await clients[0].lpush(Keys("monday").input, "x")
    await clients[2].hset(Keys("monday").checkpoint, "head", "{}")
    found = await named(clients).find("monday")
    assert found is not None
    assert found.redis is clients[2]
    await clients[1].hset(Keys("monday").checkpoint, "head", "{}")
    with pytest.raises(StoreError, match=r"monday is on redis-1:6379/0 and redis-2:6379/0; set REDIS_URLS"):
        await named(clients).find("monday")


async def test_a_session_that_may_be_on_a_silent_server_is_not_begun_on_another(clients: list[Redis]) -> None:
    async with client_for(f"redis://{LOOPBACK}:{free_port()}/0") as nobody:
        servers = named([*clients, nobody])
        with pytest.raises(StoreUnavailable, match=r"monday may be on redis-3:6379/0"):
            await servers.find("monday")
        await clients[0].lpush(Keys("monday").input, "x")
        assert await servers.find("monday") is not None


async def test_the_only_server_is_not_asked(clients: list[Redis]) -> None:
    assert await named(clients[:1]).find("monday") is not None
    with pytest.raises(SessionIdError):
        await named(clients).find("no session")


async def test_new_sessions_are_spread_evenly_and_another_server_takes_only_its_share(clients: list[Redis]) -> None:
    names = [f"session-{number}" for number in range(3_000)]
    two, three = named(clients[:2]), named(clients)
    before = {name: two.place(name).name for name in names}
    after = {name: three.place(name).name for name in names}
    assert min(Counter(before.values()).values()) > 1_400
    assert min(Counter(after.values()).values()) > 900
    assert {after[name] for name in names if after[name] != before[name]} == {"redis-2:6379/0"}
    assert after == {name: SessionServers([*three][::-1]).place(name).name for name in names}


async def test_a_tenant_has_its_own_servers(clients: list[Redis]) -> None:
    servers = SessionServers([*named(clients[:2], "lab"), *named(clients[2:])])
    assert [one.redis for one in servers.of_tenant("lab")] == clients[:2]
    assert servers.of_tenant("default").place("monday").redis is clients[2]
    with pytest.raises(StoreError, match="none of REDIS_URLS is for sessions of this tenant"):
        servers.of_tenant("nobody").place("monday")


async def test_all_sessions_are_listed(clients: list[Redis]) -> None:
    for number, client in enumerate(clients):
        await client.lpush(Keys(f"session-{number}").input, "x")
    assert {one.session_id for one in await named(clients).sessions()} == {"session-0", "session-1", "session-2"}
