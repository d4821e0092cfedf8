"""Health and cost, and dead letters that are put back after a question."""

from __future__ import annotations

import httpx
import pytest
from playwright.async_api import expect
from redis.asyncio import Redis

from context_builder.server.access.caller import Role
from context_builder.server.page.session_list import MOST_SHOWN
from context_builder.session.keys import Keys
from tests.server.page.accessibility import check_in_every_dress
from tests.server.page.conftest import logged_in, token_in
from tests.server.page.hostile import TEXTS, not_isolated
from tests.server.test_sessions import said
from tests.services.api_server import ApiServer
from tests.services.chromium import Visitor
from tests.services.running import published, push, running
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines


async def with_dead_letters(redis: Redis, *deliveries: bytes) -> None:
    """Let a session refuse deliveries, and stop."""
    async with running(redis):
        await push(redis, said(1, "Whales sing."), *deliveries)
        heard = published(redis, lambda now: now["dead_letters"] == len(deliveries))
        await wait_until(heard, "they are refused")


async def test_the_page_tells_of_services_costs_and_dead_letters(redis: Redis, visitor: Visitor) -> None:
    await with_dead_letters(redis, b"no JSON")
    page = visitor.page
    await page.get_by_role("link", name="Health & cost").click()
    for name in ("Database", "Memory", "Model", "Delivery"):
        await expect(page.locator(".checks").first).to_contain_text(name)
    await expect(page.get_by_role("link", name="monday").first).to_be_visible()
    await expect(page.locator(".checks li", has_text="Delivery")).to_contain_text("nothing waits")
    await expect(page.get_by_role("img", name="Redis since")).to_be_visible()
    await check_in_every_dress(page)
    await page.goto("/ui/sessions")
    await expect(page.get_by_role("row", name="monday")).to_contain_text("1 dead")
    await page.goto("/ui/sessions/monday")
    await page.locator("[data-live=on]").wait_for()
    await page.get_by_role("link", name="See why, and put them back").click()
    await expect(page.locator(".letters li")).to_have_count(1)


async def test_what_is_counted_over_the_newest_sessions_says_so(redis: Redis, reader: httpx.AsyncClient) -> None:
    assert "newest sessions" not in (await reader.get("/ui/health")).text
    async with redis.pipeline() as pipe:
        for number in range(MOST_SHOWN + 1):
            pipe.lpush(Keys(f"session-{number}").input, b"{}")
        await pipe.execute()
    shown = (await reader.get("/ui/health")).text
    assert "every summary is in it, of the 200 newest sessions" in shown
    assert "everything is delivered, of the 200 newest sessions" in shown


async def test_a_dead_letter_is_put_back_after_a_question(redis: Redis, visitor: Visitor) -> None:
    await with_dead_letters(redis, b"no JSON", b'{"speaker": "Ida"}')
    page = visitor.page
    await page.goto("/ui/dead/monday")
    await expect(page.locator(".letters li")).to_have_count(2)
    await page.locator(".letters li", has_text="no JSON").get_by_role("link").click()
    await expect(page.get_by_role("heading", name="Put this letter back?")).to_be_visible()
    assert await redis.llen("context_builder:monday:input") == 0  # type: ignore[misc]
    await check_in_every_dress(page)
    await page.get_by_role("button", name="Put back").click()
    await expect(page.get_by_role("status")).to_contain_text("Put back: 1.")
    assert await redis.lrange("context_builder:monday:input", 0, -1) == [b"no JSON"]  # type: ignore[misc]
    await page.goto("/ui/dead/monday?put=all")
    await page.get_by_role("button", name="Put back").click()
    await expect(page.get_by_text("There are none.")).to_be_visible()
    assert await redis.llen("context_builder:monday:input") == 2  # type: ignore[misc]


async def test_dead_letters_are_text(redis: Redis, visitor: Visitor) -> None:
    await with_dead_letters(redis, *(text.encode("utf-8", "replace") for text in TEXTS))
    page = visitor.page
    await page.goto("/ui/dead/monday?put=<script>")
    await expect(page.locator(".letters li")).to_have_count(len(TEXTS))
    assert await page.title() == "Dead letters of monday · context_builder"
    assert await not_isolated(page) == []
    assert await page.locator(".raw").locator("script, img, svg, iframe, b").count() == 0
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_who_only_reads_puts_nothing_back(api: ApiServer, redis: Redis) -> None:
    await with_dead_letters(redis, b"no JSON")
    async with api.client() as client:
        await logged_in(api, client, api.key(Role.READER))
        page = (await client.get("/ui/dead/monday?put=all")).text
        sent = {"csrf": token_in(page), "letter": "all"}
        answer = await client.post("/ui/dead/monday", data=sent, headers={"Origin": api.url})
    assert (answer.status_code, "role writer" in answer.text) == (403, True)
    assert await redis.llen("context_builder:monday:input") == 0  # type: ignore[misc]


async def test_nothing_is_put_back_without_the_forms_token(
    api: ApiServer, redis: Redis, reader: httpx.AsyncClient
) -> None:
    await with_dead_letters(redis, b"no JSON")
    answer = await reader.post("/ui/dead/monday", data={"letter": "all"}, headers={"Origin": api.url})
    assert answer.status_code == 403
    assert await redis.llen("context_builder:monday:input") == 0  # type: ignore[misc]


async def test_another_tenant_sees_nothing_of_it(api: ApiServer, redis: Redis) -> None:
    await with_dead_letters(redis, b"no JSON")
    async with api.client() as client:
        await logged_in(api, client, api.key(tenant="other"))
        page = (await client.get("/ui/health")).text
        assert "/ui/sessions/monday" not in page
        assert "Redis 127" not in page
        assert (await client.get("/ui/dead/monday")).status_code == 404
