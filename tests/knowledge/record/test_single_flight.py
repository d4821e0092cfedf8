"""Of all who want a package rebuilt, on several servers, one builds, and the others get what it built."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from context_builder.database.postgres import PostgresDatabase
from context_builder.knowledge import record as recording
from context_builder.knowledge.record import PackageRecord
from tests.knowledge.record.samples import START, StoppedClock, built, revision, source
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines


@pytest.fixture
async def servers(migrated_url: str) -> AsyncIterator[list[PackageRecord]]:
    made = [PackageRecord(PostgresDatabase(migrated_url), clock=StoppedClock()) for _ in range(3)]
    yield made
    for one in made:
        await one.close()


async def rebuild(record: PackageRecord, number: int = 2, after: int = 1) -> tuple[str, int]:
    async with record.rebuilding("lab", "cpk_1", after=after) as newer:
        if newer is not None:
            return "waited", newer.revision
        return "built", await record.finish("lab", revision("cpk_1", START, [source("artifact:a")], number=number))


async def test_one_builds_for_all_who_ask_on_all_servers(servers: list[PackageRecord]) -> None:
    await built(servers[0], "cpk_1", START)
    results = await asyncio.gather(*(rebuild(servers[number % 3]) for number in range(60)))
    assert sorted(results) == [("built", 2)] + [("waited", 2)] * 59
    assert await rebuild(servers[0], number=3, after=2) == ("built", 3)


async def test_when_the_one_fails_the_next_builds(servers: list[PackageRecord]) -> None:
    await built(servers[0], "cpk_1", START)
    entered = asyncio.Event()

    async def failing() -> None:
        async with servers[0].rebuilding("lab", "cpk_1", after=1):
            entered.set()
            raise TimeoutError

    with pytest.raises(TimeoutError):
        await failing()
    assert await rebuild(servers[1]) == ("built", 2)


async def test_when_the_one_dies_another_builds_after_its_lease(
    servers: list[PackageRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "LEASE", 0.3)
    await built(servers[0], "cpk_1", START)
    await servers[0]._lease("lab", "cpk_1", 1, "of a server that is gone", 0.3)
    assert await rebuild(servers[1]) == ("built", 2)


async def test_the_lease_of_one_who_takes_long_is_renewed(
    servers: list[PackageRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "LEASE", 0.3)
    await built(servers[0], "cpk_1", START)
    renewals = []
    lease = servers[0]._flights._lease

    async def noted(*asked: object) -> tuple[int, bool]:
        renewals.append(answer := await lease(*asked))  # type: ignore[arg-type]
        return answer

    monkeypatch.setattr(servers[0]._flights, "_lease", noted)
    async with servers[0].rebuilding("lab", "cpk_1", after=1) as newer:
        assert newer is None
        other = asyncio.create_task(rebuild(servers[1]))
        await wait_until(lambda: len(renewals) > 5, "the lease was renewed for longer than it lasts")
        assert not other.done()
        await servers[0].finish("lab", revision("cpk_1", START, [], number=2))
    assert await other == ("waited", 2)
