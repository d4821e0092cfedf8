"""Attaching to a session on a real Redis."""

from __future__ import annotations

import asyncio
import io

import pytest
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from rich.console import Console

from context_builder.cli.watch import Rate, follow
from context_builder.session.client import SessionClient, Snapshot
from tests.cli.publishing import publish
from tests.cli.samples import sample
from tests.services.redis_server import RedisServer
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines


class Screen:
    """A terminal of which everything drawn is kept."""

    def __init__(self) -> None:
        self.console = Console(file=io.StringIO(), force_terminal=True, width=120, height=30)

    @property
    def text(self) -> str:
        return self.console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


async def test_it_shows_what_changes_until_it_is_stopped(redis: Redis) -> None:
    screen, stop = Screen(), asyncio.Event()
    seen: list[Snapshot] = []
    watching = asyncio.create_task(
        follow(SessionClient(redis, "point-arlen"), screen.console, stop=stop, on_snapshot=seen.append)
    )
    await wait_until(lambda: "context-builder run point-arlen" in screen.text, "the absent session is explained")
    await publish(redis, sample())
    await wait_until(lambda: "Barnacle" in screen.text, "the conversation is shown")
    stop.set()
    await watching
    assert seen[-1].state is not None
    assert screen.text.endswith("\x1b[?25h\x1b[?1049l")  # cursor and screen as they were


async def test_cancelled_it_gives_the_terminal_back(redis: Redis) -> None:
    screen = Screen()
    watching = asyncio.create_task(follow(SessionClient(redis, "x"), screen.console, stop=asyncio.Event()))
    await wait_until(lambda: screen.text, "something is drawn")
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    assert screen.text.endswith("\x1b[?25h\x1b[?1049l")


async def test_a_redis_that_goes_away_is_told_and_asked_again(redis: Redis, redis_server: RedisServer) -> None:
    async with Redis.from_url(redis_server.url, retry=Retry(NoBackoff(), 0)) as impatient:
        await publish(redis, sample())
        screen, stop = Screen(), asyncio.Event()
        watching = asyncio.create_task(follow(SessionClient(impatient, "point-arlen"), screen.console, stop=stop))
        await wait_until(lambda: "Barnacle" in screen.text, "the conversation is shown")
        redis_server.kill()
        try:
            await wait_until(lambda: "Redis is not available" in screen.text, "the lost Redis is told")
        finally:
            redis_server.start()
        drawn = len(screen.text)
        await wait_until(lambda: "● " in screen.text[drawn:] and "Redis:" not in screen.text[-3000:], "it is back")
        stop.set()
        await watching


def test_the_rate_is_of_the_last_minute() -> None:
    rate = Rate()
    assert rate.per_minute(0.0, 100) is None
    assert rate.per_minute(1.0, 110) is None
    assert rate.per_minute(10.0, 110) == 60.0
    assert rate.per_minute(100.0, 110) is None
    assert rate.per_minute(130.0, 125) == 30.0
    assert rate.per_minute(140.0, 5) == 0.0
