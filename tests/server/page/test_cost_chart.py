"""The page shows what all sessions, and each, cost over time."""

from __future__ import annotations

import re

import orjson
import pytest
from playwright.async_api import expect
from redis.asyncio import Redis

from context_builder.costs import Usage
from context_builder.server.page.cost_chart import FEWEST_PLACES, cost_bars, first_instant
from context_builder.session.conversation.tasks import UsageTotals
from context_builder.session.conversation.usage_history import UsageHistory
from context_builder.session.keys import SESSIONS, Keys
from tests.server.page.accessibility import PHONE, WIDE, check_in_every_dress
from tests.services.chromium import Visitor

NOON = 1_795_780_800
"""2026-11-27 12:00 UTC."""

CALL = Usage("gpt-4o-mini", prompt_tokens=900, completion_tokens=100, calls=1, dollars=0.25)


def test_bars_are_dollars_and_the_newest_is_the_last() -> None:
    history = UsageHistory()
    history.add(NOON, 9_000, 0.1)
    history.add(NOON + 300, 10, 0.4)
    first, last = cost_bars(history)
    assert (first.place, last.place) == (FEWEST_PLACES - 6, FEWEST_PLACES - 1)
    assert (first.height, last.height, last.step) == (0.25, 1.0, "minute")
    assert (first.begin, first.end) == (NOON, NOON + 60)
    assert first_instant([first, last]) == NOON + 360 - 60 * FEWEST_PLACES


def test_bars_are_tokens_where_no_price_is_known() -> None:
    history = UsageHistory()
    history.add(NOON, 10, 0.0)
    history.add(NOON + 86_400 * 3, 40, 0.0)
    assert [(one.height, one.step) for one in cost_bars(history)] == [(0.25, "6 hours"), (1.0, "6 hours")]
    assert cost_bars(UsageHistory()) == []


def test_the_bars_of_a_young_session_fill_their_chart() -> None:
    history = UsageHistory()
    for minute in range(20):
        history.add(NOON + 60 * minute, 10, 0.1)
    bars = cost_bars(history)
    assert [one.place for one in bars] == [*range(20)]
    assert first_instant(bars) == NOON


def test_bars_that_are_too_far_apart_stand_beside_each_other() -> None:
    history = UsageHistory()
    for at in (NOON, NOON + 86_400, NOON + 86_400 * 1100):
        history.add(at, 10, 0.1)
    bars = cost_bars(history)
    assert [one.place for one in bars] == [FEWEST_PLACES - 3, FEWEST_PLACES - 2, FEWEST_PLACES - 1]
    assert first_instant(bars) is None


def test_what_cost_nothing_has_no_bars() -> None:
    history = UsageHistory()
    history.restore({"seconds": 60, "steps": [[NOON, 0, 0.0]]})
    assert cost_bars(history) == []


@pytest.mark.engines
async def test_one_sees_when_all_sessions_and_each_cost_how_much(redis: Redis, visitor: Visitor) -> None:
    for name, moments in (("monday", (NOON, NOON + 60)), ("tuesday", (NOON + 60, NOON + 600))):
        totals = UsageTotals()
        for at in moments:
            totals.add("summary", CALL, at)
        await redis.zadd(SESSIONS, {name: NOON})
        head = orjson.dumps({"counters": {"cost": totals.wire()}})
        await redis.hset(Keys(name).checkpoint, "head", head)  # type: ignore[misc]
    page = visitor.page
    await page.goto("/ui/health")
    chart = page.get_by_role("img", name="Cost over time, by minute from 12:00:00 to 12:11:00 UTC")
    await expect(chart.locator("rect")).to_have_count(3)
    assert "12:01:00 to 12:02:00 UTC: $0.5000, 2,000 tokens" in await chart.inner_html()
    await expect(page.locator(".cost-chart figcaption span")).to_have_text(
        [re.compile("11:59:00"), re.compile("by minute, at most [$]0.5000"), re.compile("12:11:00 UTC")]
    )
    for name in ("monday", "tuesday"):
        row = page.get_by_role("row", name=name)
        await expect(row.get_by_role("img", name=f"Cost of {name}").locator("rect")).to_have_count(2)
        await expect(row).to_contain_text("2,000")  # tokens, of a session whose published state has expired
    for size in (WIDE, PHONE):
        await page.set_viewport_size(size)  # type: ignore[arg-type]
        for table in await page.locator(".costs .table").all():
            assert await table.evaluate("(one) => one.scrollWidth <= one.clientWidth")
        await expect(page.get_by_role("columnheader", name="US dollars")).to_have_count(2)
    await check_in_every_dress(page)
