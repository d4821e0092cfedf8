"""The campaign's Redis loses what it is told to lose, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from scripts.campaign.redis_host import EMPTY, Moment, RedisHost, client_of
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines


@pytest.fixture
async def host(engine_folder: Path, tmp_path: Path) -> AsyncIterator[RedisHost]:
    async with RedisHost.opened(engine_folder / f"host-{tmp_path.name}") as host:
        yield host


async def kept(host: RedisHost) -> list[bytes]:
    """What programs find that reach it over the link."""
    client = client_of(host.link.port)
    try:
        return await client.lrange("said", 0, -1)
    finally:
        await client.aclose()


async def say(host: RedisHost, *words: str) -> None:
    await host.redis.rpush("said", *words)


async def test_it_falls_back_to_a_moment(host: RedisHost) -> None:
    await say(host, "before")
    moment = host.moment()
    await say(host, "after", "later")
    await host.fall_back(moment)
    assert await kept(host) == [b"before"]
    await say(host, "again")
    await host.fall_back(host.moment())
    assert await kept(host) == [b"before", b"again"]


@pytest.mark.parametrize("lost", [1, 20, 60])
async def test_what_a_script_wrote_is_there_as_a_whole_or_not_at_all(host: RedisHost, lost: int) -> None:
    await say(host, "before")
    before = host.moment()
    await host.redis.eval("redis.call('RPUSH', 'said', 'one') redis.call('RPUSH', 'said', 'two')", 0)
    lengths = {file: length - lost * (length > before.lengths[file]) for file, length in host.moment().lengths.items()}
    await host.fall_back(Moment(before.at, lengths))
    assert await kept(host) == [b"before"]


async def test_it_falls_back_to_nothing(host: RedisHost) -> None:
    await say(host, "before")
    await host.fall_back(EMPTY)
    assert await kept(host) == []


async def test_a_replica_that_lagged_behind_lacks_what_it_had_not_yet(host: RedisHost) -> None:
    await say(host, "before")
    async with host.replicated() as replica:
        await say(host, "in time")
        await wait_until(lambda: replica.redis.lrange("said", 1, -1), "the replica has it")
        async with replica.link.stalled():
            await say(host, "too late")
            await host.promote(replica)
    assert await kept(host) == [b"before", b"in time"]
    await say(host, "afterwards")
    moment = host.moment()
    await say(host, "lost")
    await host.fall_back(moment)
    assert await kept(host) == [b"before", b"in time", b"afterwards"]


async def test_an_orderly_change_of_roles_loses_nothing(host: RedisHost) -> None:
    async with host.replicated() as replica:
        await say(host, "at the last moment")
        await host.fail_over(replica)
    assert await kept(host) == [b"at the last moment"]


async def test_a_replica_that_is_not_promoted_changes_nothing(host: RedisHost) -> None:
    async with host.replicated():
        await say(host, "here")
    assert await kept(host) == [b"here"]
