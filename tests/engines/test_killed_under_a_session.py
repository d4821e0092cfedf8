"""Whichever of its processes is killed, a session goes on within seconds, in a fleet as well, and nothing is lost."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import asyncpg
import orjson
import psutil
import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError

from context_builder.engines.postgres import PostgresEngine
from context_builder.engines.redis import RedisEngine
from context_builder.session.keys import Keys
from tests.services.daemon import Daemon
from tests.services.waiting import wait_until
from tests.session.saying import spoken

pytestmark = [pytest.mark.engines, pytest.mark.long]

LONG = "Helicase unwinds the double helix of the sample. " * 300  # which no loop reads by itself


class Engines:
    """The embedded engines of a home, and what a listener and an archive's reader see of them."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.redis_engine, self.postgres_engine = RedisEngine(home), PostgresEngine(home)
        self.number = 0

    def kill_redis(self) -> None:
        os.kill(int(json.loads((self.home / "redis.json").read_text())["pid"]), signal.SIGKILL)

    def kill_postgres(self) -> None:
        os.kill(int((self.home / "postgres" / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)

    async def say(self, session: str, text: str = "Whales sing in the bay.") -> int:
        """Push a message, as a listener does that tries until it is taken; its number."""
        self.number += 1
        pushed = orjson.dumps(spoken(self.number, f"{text} No. {self.number}."))
        await wait_until(lambda: self._push(session, pushed), "Redis takes a message", poll=0.1)
        return self.number

    async def _push(self, session: str, pushed: bytes) -> bool:
        if (address := self.redis_engine.running()) is None:
            return False
        try:
            async with Redis.from_url(address.url) as client:
                return bool(await client.lpush(Keys(session).input, pushed))
        except (RedisError, OSError):
            return False

    async def state(self, session: str) -> dict[str, object]:
        if (address := self.redis_engine.running()) is None:
            return {}
        try:
            async with Redis.from_url(address.url) as client:
                held: dict[str, object] = orjson.loads(await client.get(Keys(session).state) or b"{}")
                return held
        except (RedisError, OSError):
            return {}

    async def is_heard(self, session: str, number: int) -> bool:
        """Whether a message is in the state, or was summarized."""
        state = await self.state(session)
        summary, buffer = state.get("rolling_summary"), state.get("raw_recent_buffer")
        heard = {entry["message_number"] for entry in buffer} if isinstance(buffer, list) else set()
        return number in heard or (isinstance(summary, dict) and summary["covers_messages"][1] >= number)

    async def is_archived(self, session: str) -> bool:
        """Whether the archive's newest row of a session counts all messages."""
        if (address := self.postgres_engine.running()) is None:
            return False
        try:
            connection = await asyncpg.connect(address.url, timeout=2)
            try:
                counted = "SELECT max(message_count) FROM context_summaries WHERE session_id = $1"
                return (await connection.fetchval(counted, session) or 0) >= self.number
            finally:
                await connection.close()
        except (TimeoutError, asyncpg.PostgresError, OSError):
            return False


@pytest.fixture
async def engines(home: Path) -> AsyncIterator[Engines]:
    made = Engines(home)
    yield made
    await asyncio.to_thread(made.redis_engine.stop)
    await asyncio.to_thread(made.postgres_engine.stop)


def analysis_of(daemon: Daemon) -> list[psutil.Process]:
    children = psutil.Process(daemon.process.pid).children(recursive=True)
    return [one for one in children if "spawn_main" in " ".join(one.cmdline()) and one.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("arguments", [("run", "monday"), ("fleet",)], ids=["run", "fleet"])
async def test_each_process_is_killed_and_all_goes_on(
    engines: Engines, home: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    settings = {"raw_buffer_time_window": 0.3, "domain_inference_interval": 1, "domain_inference_time_interval": 1}

    async def goes_on(when: str, text: str = "Whales sing in the bay.") -> None:
        for _ in range(3):
            number = await engines.say("monday", text)
            heard = partial(engines.is_heard, "monday", number)
            await wait_until(heard, f"message {number} is heard {when}", poll=0.1)
        archived = partial(engines.is_archived, "monday")
        await wait_until(archived, f"all is archived {when}", poll=0.2)
        assert daemon.process.poll() is None, daemon.output

    with Daemon(tmp_path, *arguments, context_builder_home=home, **settings) as daemon:
        await wait_until(engines.redis_engine.running, "the engines have started")
        await goes_on("at first")
        engines.kill_postgres()
        await goes_on("once PostgreSQL was killed")
        engines.kill_redis()
        await goes_on("once Redis was killed")
        if arguments == ("fleet",):  # which has a process for long texts
            await goes_on("with long messages", LONG)
            for process in await wait_until(partial(analysis_of, daemon), "the analysis process runs"):
                process.kill()
            await goes_on("once the analysis was killed", LONG)
        engines.kill_redis()
        engines.kill_postgres()
        await goes_on("once both were killed")
        assert (await engines.state("monday"))["current_keywords"]
