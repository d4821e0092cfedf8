"""The list of sessions: current by itself, searched, readable without scripts, and each tenant's own."""

from __future__ import annotations

import re

import httpx
import orjson
import pytest
from playwright.async_api import Browser, expect
from redis.asyncio import Redis

from context_builder.server.page.session_list import SessionLister
from context_builder.session.keys import SESSIONS, Keys
from context_builder.session.servers import SessionServer, SessionServers
from tests.server.page.accessibility import check_in_every_dress
from tests.server.page.conftest import log_in, logged_in, token_in
from tests.server.page.hostile import TEXTS, not_isolated
from tests.server.test_sessions import said
from tests.services.api_server import ApiServer
from tests.services.chromium import Visitor, visiting
from tests.services.running import published, push, running
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines


async def test_a_session_appears_by_itself_and_is_kept_current(redis: Redis, visitor: Visitor) -> None:
    page = visitor.page
    await expect(page.get_by_role("heading", name="No sessions yet")).to_be_visible()
    async with running(redis):
        await push(redis, said(1, "Whales sing.", "Ida"), said(2, "Where?", "Bo"))
        row = page.get_by_role("row", name="monday")
        await expect(row).to_contain_text("live")
        await expect(row).to_contain_text("Bo, Ida".replace(", ", ""))
        await expect(row.locator("[data-slot=messages]")).to_have_text("2")
        await push(redis, said(3, "In the bay.", "Ida"))
        await expect(row.locator("[data-slot=messages]")).to_have_text("3")
        await expect(page.locator("[data-live]")).to_have_text("Connected")
    await expect(row).to_contain_text("not running")
    await push(redis, said(1, "Hello", "Eve"), session_id="tuesday")
    await expect(page.get_by_role("row", name="tuesday")).to_contain_text("not running")
    assert await page.locator("tbody tr").count() == 2


async def test_one_searches_by_name_speaker_and_status(redis: Redis, visitor: Visitor) -> None:
    page = visitor.page
    for name, speaker in (("monday", "Ida"), ("tuesday", "Bo"), ("kelp-forest", "Ida")):
        async with running(redis, name):
            await push(redis, said(1, "Whales sing.", speaker), session_id=name)
            await wait_until(published(redis, lambda now: now["raw_recent_buffer"], name), "it is heard")
    rows = page.locator("tbody tr")
    await expect(rows).to_have_count(3)
    search = page.get_by_role("searchbox")
    for words, names in {
        "kelp": ["kelp-forest"],
        "bo": ["tuesday"],
        "IDA not running": ["kelp-forest", "monday"],
    }.items():
        await search.fill(words)
        await expect(rows.locator("th a")).to_have_text(names)
    await search.fill("<b>nobody</b>")
    await expect(page.get_by_role("heading")).to_have_text(["Sessions", "Nothing fits “<b>nobody</b>”"])
    await page.reload()
    await expect(search).to_have_value("<b>nobody</b>")
    await expect(page.get_by_role("heading")).to_have_text(["Sessions", "Nothing fits “<b>nobody</b>”"])


async def test_a_columns_heading_sorts_by_it_live_and_the_other_way_round(redis: Redis, visitor: Visitor) -> None:
    for name, count in (("a", 2), ("b", 3), ("c", 1)):
        await redis.lpush(Keys(name).input, *(b"{}",) * count)  # type: ignore[misc]
    page = visitor.page
    names = page.locator("tbody th a")
    await expect(names).to_have_count(3)
    behind = page.locator("thead").get_by_role("link", name="Behind")
    await behind.click()
    await expect(names).to_have_text(["b", "a", "c"])
    await expect(page.get_by_role("columnheader", name="Behind")).to_have_attribute("aria-sort", "descending")
    await redis.lpush(Keys("c").input, *(b"{}",) * 9)  # type: ignore[misc]
    await expect(names).to_have_text(["c", "b", "a"])
    await behind.click()
    await expect(names).to_have_text(["a", "b", "c"])
    await page.get_by_role("searchbox").fill("not running")
    await expect(page.locator("thead a").first).to_have_attribute("href", re.compile(r"\?sort=session&q=not\+running$"))
    await page.goto("/ui/sessions?sort=no-such")
    await expect(names).to_have_count(3)


async def test_without_scripts_the_list_is_read_and_searched(api: ApiServer, redis: Redis, chromium: Browser) -> None:
    async with running(redis):
        await push(redis, said(1, "Whales sing.", "Ida"))
        await wait_until(published(redis, lambda now: now["raw_recent_buffer"]), "it is heard")
    async with visiting(chromium, api.url, java_script_enabled=False) as visitor:
        await log_in(visitor, api.key())
        rows = visitor.page.locator("tbody tr")

        async def is_current() -> bool:  # the server shows what it read less than a second ago
            await visitor.page.reload()
            return await rows.count() == 1

        await wait_until(is_current, "the session alone is listed")
        await visitor.page.get_by_role("searchbox").fill("nobody")
        await visitor.page.get_by_role("searchbox").press("Enter")
        await expect(rows).to_have_count(0)
        await visitor.page.get_by_role("button", name="Log out").click()
        await expect(visitor.page.get_by_role("heading")).to_have_text("Log in")


async def test_of_many_sessions_those_whose_names_fit_are_found_at_once(redis: Redis) -> None:
    await redis.zadd(SESSIONS, {f"session-{number}": number for number in range(1, 3001)} | {"kelp": 0.5})
    server = SessionServer("redis", redis, "lab")
    found = await SessionLister().find(SessionServers([server]), "KELP")
    assert ([row.session_id for row in found.rows], found.total) == (["kelp"], 3001)


@pytest.mark.parametrize("name", ["state", "conversation"])
async def test_a_key_that_somebody_made_another_type_hides_no_other_session(redis: Redis, name: str) -> None:
    await redis.zadd(SESSIONS, {"broken": 1, "kelp": 2})
    await redis.zadd(getattr(Keys("broken"), name), {"x": 1})
    await redis.set(Keys("kelp").state, orjson.dumps({"last_message_time": 7.0}))
    found = await SessionLister().find(SessionServers([SessionServer("redis", redis, "lab")]))
    assert [(row.session_id, row.last_spoke) for row in found.rows] == [("kelp", 7.0), ("broken", 1.0)]
    await redis.delete(getattr(Keys("broken"), name))


async def test_another_tenant_sees_none(api: ApiServer, redis: Redis) -> None:
    await push(redis, said(1, "Whales sing."), session_id="kelp")
    async with api.client() as client:
        await logged_in(api, client, api.key(tenant="other"))
        answer = await client.get("/ui/sessions")
        assert (answer.status_code, "kelp" in answer.text) == (200, False)
        async with client.stream("GET", "/ui/live/sessions") as stream:
            async for line in stream.aiter_lines():
                if line.startswith("data: "):
                    assert '"rows":[]' in line
                    break


async def test_the_stream_ends_with_the_login(api: ApiServer, reader: httpx.AsyncClient) -> None:
    async with reader.stream("GET", "/ui/live/sessions") as stream:
        lines = stream.aiter_lines()
        assert await anext(lines)
        csrf = token_in((await reader.get("/ui/sessions")).text)
        await reader.post("/ui/logout", data={"csrf": csrf}, headers={"Origin": api.url})
        async for _ in lines:
            pass


async def test_speakers_cannot_be_more_than_text(redis: Redis, visitor: Visitor) -> None:
    page = visitor.page
    async with running(redis):
        for number, name in enumerate(TEXTS, 1):
            await push(redis, said(number, "Hello", name))
        row = page.get_by_role("row", name="monday")
        await expect(row.locator("[data-slot=messages]")).to_have_text(str(len(TEXTS)))
        for _ in range(2):
            assert await page.title() == "Sessions · context_builder"
            assert await page.locator("tbody").locator("script, img, svg, iframe, b, #owned").count() == 0
            assert await not_isolated(page) == []
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            await page.reload()
            await row.wait_for()


async def test_everybody_can_use_it(redis: Redis, visitor: Visitor) -> None:
    page = visitor.page
    async with running(redis, "reef-survey"), running(redis, "kelp"):
        await push(redis, said(1, "How does DNA replication work?", "Ida"), session_id="reef-survey")
        await push(redis, said(1, "We count whales.", "Dr. Bo Nørgaard"), session_id="kelp")
        await push(redis, said(1, "Hello", "Eve"), session_id="a-very-long-name-" * 6)
        await expect(page.locator("tbody tr")).to_have_count(3)
        await check_in_every_dress(page)
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        toggle = page.get_by_role("button", name="Switch between dark and light")
        await toggle.click()
        assert await page.evaluate("document.documentElement.dataset.theme") == "dark"
        await page.reload()
        assert await page.evaluate("document.documentElement.dataset.theme") == "dark"


async def test_the_login_can_be_used_by_everybody(api: ApiServer, chromium: Browser) -> None:
    async with visiting(chromium, api.url) as visitor:
        await visitor.page.goto("/ui/login")
        await check_in_every_dress(visitor.page)
        await visitor.page.get_by_label("API key, JWT or local token").fill("wrong")
        await visitor.page.get_by_role("button", name="Log in").click()
        await expect(visitor.page.get_by_role("alert")).to_contain_text("unknown, expired or revoked")
        visitor.complaints.clear()  # the browser reports a status of 401 as an error


async def test_who_spoke_is_named_also_where_only_the_summary_has_it_yet(redis: Redis) -> None:
    points = [{"id": 1, "text": "The tables are wrong.", "speakers": ["Ida"]}]
    state = {"raw_recent_buffer": [{"speaker": "Bo", "text": "Oh."}], "rolling_summary": {"points": points}}
    await redis.set(Keys("monday").state, orjson.dumps(state))
    await redis.zadd(SESSIONS, {"monday": 1})
    (row,) = (await SessionLister().find(SessionServers([SessionServer("redis", redis, "lab")]))).rows
    assert row.speakers == ("Bo", "Ida")
