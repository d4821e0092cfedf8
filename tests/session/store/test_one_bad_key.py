"""A key that somebody made something else is named; lists, sweeps, backups and forgetting go on with the others."""

from __future__ import annotations

from typing import Any, Final

import orjson
import pytest
from redis.asyncio import Redis

from context_builder.backup.sessions import read_shared_counts, session_lines, write_shared_counts
from context_builder.errors import LeaseLost
from context_builder.session.keys import SESSIONS, SUMMARY_SEQS, Keys
from context_builder.session.servers import SessionServer, SessionServers
from context_builder.session.store.registry import SessionRegistry
from context_builder.session.store.session_copy import read_shared
from tests.session.live import Live
from tests.session.saying import START
from tests.session.store.test_registry import LATER, ended

pytestmark = pytest.mark.engines

KEYS = Keys("broken")
COUNTED = [KEYS.input, KEYS.checkpoint, KEYS.pending, KEYS.outbox, KEYS.memory_outbox, KEYS.owner]


@pytest.fixture
def catalog(live: Live) -> SessionRegistry:
    return SessionRegistry(live.redis)


async def spoil(live: Live, key: str) -> None:
    await live.redis.delete(key)
    await live.redis.zadd(key, {"x": 1})


@pytest.mark.parametrize("key", COUNTED)
async def test_it_is_listed_with_its_fault_beside_the_others(live: Live, catalog: SessionRegistry, key: str) -> None:
    await ended(live, "monday")
    await ended(live, "broken")
    await spoil(live, key)
    listed = {each.session_id: each for each in await catalog.sessions()}
    assert (listed["monday"].messages, listed["monday"].fault) == (1, "")
    assert listed["broken"].fault.startswith(f"{key}: WRONGTYPE")
    found = await catalog.find("broken")
    assert found is not None
    assert found.fault == listed["broken"].fault
    assert await catalog.owner("broken") is None
    await live.redis.delete(key)


@pytest.mark.parametrize("name", ["owner", "checkpoint"])
async def test_garbage_in_place_of_json_is_no_ones_fault(live: Live, catalog: SessionRegistry, name: str) -> None:
    await ended(live, "monday")
    key = getattr(KEYS, name)
    await (live.redis.set(key, "garbage") if name == "owner" else live.redis.hset(key, "head", "garbage"))
    await live.redis.zadd(SESSIONS, {"broken": START})
    assert {each.session_id for each in await catalog.sessions()} == {"monday", "broken"}
    await live.redis.delete(key)


LEASES: Final = (b"garbage", b"\xff", b"5", b"[]", b"{}", b'{"pid":' + b"9" * 400 + b"}", b"[" * 2_000)


@pytest.mark.parametrize("lease", LEASES)
async def test_nobody_holds_a_lease_that_is_none(live: Live, lease: bytes) -> None:
    await live.redis.set(KEYS.owner, lease)
    await live.stop(await live.start("broken"))


@pytest.mark.parametrize("lease", LEASES)
async def test_a_session_whose_lease_is_made_none_leaves_it_and_says_so(live: Live, lease: bytes) -> None:
    session = await live.start("broken")
    await live.redis.set(KEYS.owner, lease)
    with pytest.raises(LeaseLost):
        await live.gone(session)
    await live.redis.delete(KEYS.owner)


async def test_one_that_cannot_be_swept_is_left(live: Live, catalog: SessionRegistry) -> None:
    for name in ("a", "broken", "z"):
        await ended(live, name)
    await spoil(live, KEYS.checkpoint)
    await live.redis.zadd(SESSIONS, {b"no session": START, b"\xff\xfe": START})
    assert sorted(await catalog.sweep(LATER)) == ["a", "z"]
    await live.redis.delete(KEYS.checkpoint)


@pytest.mark.parametrize("key", [*COUNTED, KEYS.packages, KEYS.seen])
async def test_it_can_be_forgotten(live: Live, catalog: SessionRegistry, key: str) -> None:
    await ended(live, "broken")
    await spoil(live, key)
    await catalog.forget("broken")
    assert [name for name in await live.redis.keys("*broken*") if name != KEYS.owner.encode()] == []


@pytest.mark.parametrize("name", ["input", "state", "checkpoint", "pending", "seen"])
async def test_a_backup_leaves_out_the_key_and_says_so(live: Live, name: str) -> None:
    await ended(live, "monday")
    await ended(live, "broken")
    key = getattr(KEYS, name)
    await spoil(live, key)
    told: list[str] = []
    left_out: list[str] = []
    lines: list[Any] = [
        orjson.loads(line) async for line in session_lines(live.redis, 0, told=told.append, left_out=left_out.append)
    ]
    assert sorted(told) == ["broken", "monday"]
    assert [line.startswith(f"left out {key}: it is a zset") for line in left_out] == [True]
    (end,) = (line for line in lines if line.get("end") == "broken")
    assert (end["summary"] > 2**50) is (name == "checkpoint")  # nothing is trimmed that may be ahead of what is unknown
    await live.redis.delete(key)


async def test_a_backup_leaves_out_counts_that_are_none(live: Live) -> None:
    await ended(live, "monday")
    await ended(live, "broken")
    await live.redis.hset(SUMMARY_SEQS, mapping={"broken": "garbage", "monday": 2})
    left_out: list[str] = []
    lines: list[Any] = [
        orjson.loads(line) async for line in session_lines(live.redis, 0, told=lambda _: None, left_out=left_out.append)
    ]
    assert {line["session"]: line["seq"] for line in lines if "session" in line} == {"monday": 2, "broken": None}
    assert left_out == [f"left out the field broken of {SUMMARY_SEQS}: it is no count"]
    counts = await read_shared(live.redis)
    assert read_shared_counts(write_shared_counts(counts)) == counts
    assert counts.summary_seqs == {b"monday": b"2"}


async def test_a_server_that_does_not_answer_is_named_beside_the_sessions_of_the_others(live: Live) -> None:
    await ended(live, "monday")
    await live.redis.lpush("context_builder:no session:input", "x")
    async with Redis(port=1) as silent:
        servers = SessionServers([SessionServer("one", live.redis, "lab"), SessionServer("two", silent, "lab")])
        found = await servers.find_all()
    assert [each.session_id for each in found.sessions] == ["monday"]
    assert found.unusable == ["no session"]
    assert [*found.away] == ["two"]
    await live.redis.delete("context_builder:no session:input")


@pytest.mark.parametrize("failing", ["summary", [1], {"summary": 5}])
async def test_what_fails_may_be_anything(live: Live, catalog: SessionRegistry, failing: Any) -> None:
    await live.redis.zadd(SESSIONS, {"broken": 1})
    await live.redis.hset(KEYS.checkpoint, "head", orjson.dumps({"counters": {"failing": failing}}))
    (listed,) = await catalog.sessions()
    assert not any(listed.failing.values())
