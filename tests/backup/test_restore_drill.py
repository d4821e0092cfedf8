"""The restore drill: everything is lost, and comes back from the backup into fresh engines."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from redis.asyncio import Redis

from context_builder.backup.tables import MIGRATIONS_TABLE, names
from context_builder.session.client import SessionClient, spoken
from context_builder.session.keys import FENCE
from context_builder.storage.redis import client_for
from tests.services.redis_server import RedisServer
from tests.services.waiting import wait_until
from tests.stories.conftest import Command, Done
from tests.stories.talk import BEGAN, SAID, Talk

pytestmark = [pytest.mark.engines, pytest.mark.slow]

MANY = 160
"""Messages of a session that talks while it is backed up."""

OF_THE_MOMENT = ("owner", "conversation_state", "recent", "control")


async def rows(url: str) -> dict[str, list[str]]:
    """Every row of every table, as text."""
    connection = await asyncpg.connect(url)
    try:
        return {
            name: sorted(row[0] for row in await connection.fetch(f"SELECT t::text FROM {name} AS t"))
            for name in names()
            if name != MIGRATIONS_TABLE
        }
    finally:
        await connection.close()


async def keys(redis: Redis) -> dict[str, Any]:
    """Every key of ours but those of the moment, and what it holds."""
    found: dict[str, Any] = {}
    readers: dict[bytes, Any] = {
        b"string": redis.get,
        b"hash": redis.hgetall,
        b"list": lambda key: redis.lrange(key, 0, -1),
        b"set": redis.smembers,
        b"zset": lambda key: redis.zrange(key, 0, -1, withscores=True),
        b"stream": lambda key: redis.xlen(key),
    }
    async for raw in redis.scan_iter("*context_builder*"):
        key = raw.decode()
        if not any(name in key for name in (*OF_THE_MOMENT, "fence", "forgotten", "events", "package")):
            found[key] = await readers[await redis.type(raw)](raw)
    return found


async def test_everything_is_back_and_goes_on(
    context_builder: Command,
    done: Done,
    redis: Redis,
    database_url: str,
    fresh_redis: RedisServer,
    fresh_database_url: str,
    tmp_path: Path,
) -> None:
    there = {"database_url": database_url, "raw_buffer_time_window": 3}
    done("migrate", database_url=database_url)

    # A session is summarized, and has more to say; another one waits to be run; there are documents and a package.
    talk = Talk(redis)
    daemon = context_builder("run", "monday", **there)
    await talk.happens()
    await talk.is_visible()
    await is_summarized(talk)
    await SessionClient(redis, "monday").push(spoken("monday", 6, "Chen", "We should also order primers.", BEGAN))
    await wait_until(lambda: buffered(talk), "the last words are taken in")
    daemon.stop()
    await SessionClient(redis, "tuesday").push(spoken("tuesday", 1, "Ida", "Is anybody here?", BEGAN))
    await SessionClient(redis, "tuesday").push({"speaker": "Ida", "text": 'bytes \x00 and "quotes"\n'})
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "protocol.md").write_text("# Labelling protocol\n\nLabel clips twice. See [rules](rules.md).\n")
    (docs / "rules.md").write_text("# Rules\n\nNobody labels alone.\n")
    done("ingest", str(docs), "--project", "kelp", **there)
    ask = ("package", "build", "--intent", "How do we label clips?", "--project", "kelp", "--json")
    built = done(*ask, **there)
    package = json.loads(built[built.index("{") :])["contextPackageId"]
    done("keys", "create", "--tenant", "lab", "--role", "writer", **there)

    # It is backed up, and lost.
    before, held = await rows(database_url), await keys(redis)
    assert len(before["policy_audit"]) > 0
    fence = int(await redis.hget(FENCE, "token"))  # type: ignore[misc,arg-type]
    backup = tmp_path / "all.backup"
    done("backup", str(backup), **there)
    assert backup.stat().st_mode & 0o777 == 0o600
    assert [key async for key in redis.scan_iter("context_builder:copy:*")] == []
    await redis.flushall()

    # Fresh engines have all of it again.
    here = {"database_url": fresh_database_url, "redis_url": fresh_redis.url, "raw_buffer_time_window": 3}
    done("restore", str(backup), **here)
    assert await rows(fresh_database_url) == before
    async with client_for(fresh_redis.url) as fresh:
        assert await keys(fresh) == held
        assert int(await fresh.hget(FENCE, "token")) > fence  # type: ignore[misc,arg-type]
        assert [key async for key in fresh.scan_iter("context_builder:copy:*")] == []
        done("audit", "verify", "--tenant", "default", **here)
        done("package", "show", package, **here)
        assert "Label clips twice" in done("package", "show", package, "--prompt", **here)

        # The session goes on with the next message, and what the listener sends again changes nothing.
        again = Talk(fresh)
        context_builder("run", "monday", **here)
        await again.happens()
        await SessionClient(fresh, "monday").push(spoken("monday", 7, "Alice", "The primers are ordered now.", BEGAN))

        async def all_summarized() -> bool:
            return (await again.state())["rolling_summary"]["message_count"] == len(SAID) + 3

        await wait_until(all_summarized, "the new words are summarized")
        ended = context_builder("end", "monday", **here)
        assert ended.wait(60) == 0, ended.output
    after = await rows(fresh_database_url)
    connection = await asyncpg.connect(fresh_database_url)
    numbers = await connection.fetch("SELECT summary_seq FROM context_summaries ORDER BY summary_seq")
    messages = await connection.fetchval(
        "SELECT count(*) FROM context_memories WHERE session_id = 'monday' AND kind = 'message'"
    )
    await connection.close()
    assert [row[0] for row in numbers] == [*range(1, len(numbers) + 1)]
    assert {*before["context_summaries"]} < {*after["context_summaries"]}
    assert messages == len(SAID) + 3


async def is_summarized(talk: Talk) -> None:
    async def summarized() -> bool:
        return (await talk.state())["rolling_summary"]["message_count"] == len(SAID) + 1

    await wait_until(summarized, "all is summarized")


async def buffered(talk: Talk) -> bool:
    return len((await talk.state())["raw_recent_buffer"]) == 1


async def test_a_session_that_talks_meanwhile_is_backed_up_whole(
    context_builder: Command,
    done: Done,
    redis: Redis,
    migrated_url: str,
    fresh_redis: RedisServer,
    fresh_database_url: str,
    tmp_path: Path,
) -> None:
    there = {"database_url": migrated_url, "raw_buffer_time_window": 1, "summary_keep_last": 2}
    messages = [
        spoken("monday", number, "Alice", f"Remark {number} is about enzyme number {number}.", BEGAN)
        for number in range(1, MANY + 1)
    ]
    session = SessionClient(redis, "monday")
    daemon = context_builder("run", "monday", **there)
    await wait_until(lambda: daemon.is_ready, "it runs")

    backed_up = asyncio.Event()
    said = 0

    async def talking() -> None:
        nonlocal said
        while said < MANY:  # some of it is left to be said after the backup, however long that takes
            if said < MANY - 40 or backed_up.is_set():
                await session.push(*messages[said : said + 2])
                said += 2
            await asyncio.sleep(0.05)

    talks = asyncio.create_task(talking())
    backup = tmp_path / "live.backup"

    async def is_going() -> bool:
        return ((await session.state()) or {}).get("received_messages", 0) >= 40

    await wait_until(is_going, "some of it is said")
    backing_up = context_builder("backup", str(backup), **there)
    await wait_until(lambda: backing_up.process.poll() is not None, "it is backed up")
    assert backing_up.process.poll() == 0, backing_up.output
    backed_up.set()
    await talks
    daemon.kill()

    here = {**there, "database_url": fresh_database_url, "redis_url": fresh_redis.url}
    done("restore", str(backup), **here)
    async with client_for(fresh_redis.url) as fresh:
        restored = SessionClient(fresh, "monday")
        held = await restored.remembered()
        assert held is not None
        taken_in, waiting = held["received_messages"], await restored.waiting()
        assert taken_in + waiting >= 40
        context_builder("run", "monday", **here)
        await restored.push(*messages)  # a listener that begins again sends its whole session

        async def all_there() -> bool:
            state = await restored.state()
            return bool(state and state["received_messages"] == MANY)

        await wait_until(all_there, "every message is there, once")
        ended = context_builder("end", "monday", **here)
        assert ended.wait(60) == 0, ended.output
    connection = await asyncpg.connect(fresh_database_url)
    archived = await connection.fetch("SELECT * FROM context_summaries ORDER BY summary_seq")
    remembered = await connection.fetch("SELECT text FROM context_memories WHERE kind = 'message'")
    await connection.close()
    assert [row["summary_seq"] for row in archived] == [*range(1, len(archived) + 1)]
    assert archived[-1]["message_count"] == MANY
    assert len({row["text"] for row in remembered}) == len(remembered) == MANY
