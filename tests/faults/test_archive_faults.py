"""The archive fails: summaries wait in Redis, in order, and arrive once each."""

from __future__ import annotations

import asyncio

import pytest

from context_builder.archive.archive import SummaryRow
from context_builder.errors import DatabaseUnavailable
from context_builder.session.keys import Keys
from context_builder.testing import InMemoryArchive
from tests.services.waiting import wait_until
from tests.session.live import Live

pytestmark = pytest.mark.engines

HOURS = 24


class HangingArchive(InMemoryArchive):
    """Takes a row and never answers."""

    async def deliver(self, row: SummaryRow) -> int:
        await super().deliver(row)
        await asyncio.Event().wait()
        return row.summary_seq


async def summarize(live: Live, number: int) -> None:
    """Say one message, and let it be summarized."""
    await live.say(number)
    await live.shows(number)
    live.clock.advance(121)
    await live.until(f"message {number} is summarized", message_count=number)


async def test_a_day_without_archive_loses_nothing(live: Live) -> None:
    live.archive.failure = DatabaseUnavailable("away")
    session = await live.start()
    for hour in range(1, HOURS + 1):
        await summarize(live, hour)
        live.clock.advance(3600)
    keys = Keys("monday")
    assert await live.redis.llen(keys.outbox) == HOURS
    assert await live.redis.ttl(keys.outbox) == -1
    await live.stop(session)
    live.archive.failure = None
    await live.start()
    await wait_until(lambda: len(live.archive.rows) == HOURS, "every summary is archived")
    assert list(live.archive.rows) == [("monday", seq) for seq in range(1, HOURS + 1)]
    await wait_until(lambda: live.lacks(Keys("monday").outbox), "the outbox is empty")


async def test_an_archive_that_hangs_slows_nothing(live: Live) -> None:
    live.archive = HangingArchive()
    await live.start()
    for number in range(1, 4):
        await summarize(live, number)
    await live.say(4)
    await live.shows(4)


async def test_a_death_between_delivery_and_its_acknowledgement_archives_once(live: Live) -> None:
    live.archive = HangingArchive()
    session = await live.start()
    await summarize(live, 1)
    await wait_until(lambda: live.archive.deliveries, "the row was delivered")
    live.die(session)
    delivered, live.archive = live.archive.rows, InMemoryArchive()
    live.archive.rows = delivered
    await live.start(takeover=True)
    await wait_until(lambda: live.lacks(Keys("monday").outbox), "the outbox is empty")
    assert live.archive.deliveries == 1  # again
    assert list(live.archive.rows) == [("monday", 1)]
