"""A session as it happens, in a real browser: what is said, the silence, the summary, and where each belongs."""

from __future__ import annotations

import re
import time
from typing import Any

import httpx
import orjson
import pytest
from playwright.async_api import Browser, expect
from redis.asyncio import Redis

from context_builder.session.keys import Keys
from context_builder.testing import StubAnalyst
from tests.server.page.accessibility import check_in_every_dress
from tests.server.page.conftest import log_in, logged_in
from tests.server.page.hostile import TEXTS, not_isolated
from tests.server.test_sessions import said
from tests.services.api_server import ApiServer
from tests.services.chromium import Visitor, visiting
from tests.services.running import parts_of, published, push, running, state
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines

ADDRESS = "/ui/sessions/monday"


async def test_what_is_said_appears_and_silence_is_counted(redis: Redis, visitor: Visitor) -> None:
    page = visitor.page
    await push(redis, said(1, "Whales sing.", "Ida"))
    async with running(redis, silence=1.0):
        await page.goto(ADDRESS)
        rows = page.locator(".message")
        await expect(rows).to_have_count(1)
        await push(redis, said(2, "Where do they sing?", "Bo"))
        await expect(rows).to_have_count(2)
        await expect(rows.nth(1)).to_contain_text("Where do they sing?")
        await expect(page.locator("[data-head=messages]")).to_have_text("2")
        await expect(page.locator("[data-head=silence]")).to_have_class("value clock is-silent")
        await push(redis, said(3, "In the bay.", "Ida"))
        await expect(page.locator("[data-head=silence]")).to_have_class("value clock")


async def test_a_late_message_goes_where_it_belongs(redis: Redis, visitor: Visitor) -> None:
    page = visitor.page
    async with running(redis):
        await push(redis, said(1, "First."), said(3, "Third."))
        await page.goto(ADDRESS)
        texts = page.locator(".message .said")
        await expect(texts).to_have_text(["First.", "Third."])
        await push(redis, said(2, "Second."))
        await expect(texts).to_have_text(["First.", "Second.", "Third."])
        await expect(page.locator(".message").nth(1)).to_contain_text("came late")
        await push(redis, said(4, "Fourth."))
        await expect(texts).to_have_text(["First.", "Second.", "Third.", "Fourth."])
        await page.reload()
        await expect(texts).to_have_text(["First.", "Second.", "Third.", "Fourth."])


async def test_late_messages_are_in_order_among_themselves(redis: Redis, visitor: Visitor) -> None:
    page = visitor.page
    texts = page.locator(".message .said")
    async with running(redis):
        await push(redis, said(1, "First."), said(5, "Fifth."))
        await page.goto(ADDRESS)
        await expect(texts).to_have_count(2)
        await push(redis, said(3, "Third."))
        await expect(texts).to_have_count(3)
        await push(redis, said(2, "Second."), said(4, "Fourth."))
        for _ in ("as they come", "when it is opened again"):
            await expect(texts).to_have_text(["First.", "Second.", "Third.", "Fourth.", "Fifth."])
            await page.reload()


async def test_a_corrected_message_is_shown_as_it_is_now_and_marked(redis: Redis, visitor: Visitor) -> None:
    page = visitor.page
    rows = page.locator(".message")
    texts = rows.locator(".said")
    async with running(redis):
        await push(redis, said(1, "Wails sing."), said(2, "Where?"), said(3, "In the bay."))
        await page.goto(ADDRESS)
        await expect(texts).to_have_text(["Wails sing.", "Where?", "In the bay."])
        await push(redis, said(1, "Whales sing."))
        for _ in ("as it comes", "when it is opened again"):
            await expect(texts).to_have_text(["Whales sing.", "Where?", "In the bay."])
            await expect(rows.nth(0)).to_contain_text("correction")
            await page.reload()


async def test_a_struck_message_goes_from_an_open_page(redis: Redis, visitor: Visitor) -> None:
    page = visitor.page
    texts = page.locator(".message .said")
    async with running(redis):
        await push(redis, said(1, "Off the record."), said(2, "On the record."))
        await page.goto(ADDRESS)
        await expect(texts).to_have_count(2)
        await push(redis, {"strikes": 1, "timestamp": "2026-01-01T00:00:00"})
        await expect(texts).to_have_text(["On the record."])


async def test_points_light_what_they_cite_and_messages_the_points_that_cite_them(
    redis: Redis, visitor: Visitor
) -> None:
    page = visitor.page
    await push(redis, said(1, "We decide to place the hydrophone in the bay.", "Ida"))
    await page.goto(ADDRESS)
    async with running(redis):
        await expect(page.locator(".message")).to_have_count(1)
    async with running(redis, parts=parts_of(StubAnalyst()), buffer_window=0.3):
        point = page.locator(".point-button").first
        await point.wait_for()
        assert (await state(redis))["rolling_summary"]["points"][0]["speakers"] == ["Ida"]
        await expect(point).to_contain_text("Ida")
        await point.click()
        await expect(point).to_have_attribute("aria-pressed", "true")
        await expect(page.locator(".message.lit")).to_contain_text("hydrophone")
        await point.click()
        await expect(page.locator(".message.lit")).to_have_count(0)
        await page.locator(".message .cites").first.click()
        await expect(page.locator(".point.lit")).to_have_count(1)


async def test_it_comes_back_by_itself_and_lacks_nothing(redis: Redis, visitor: Visitor) -> None:
    page = visitor.page
    async with running(redis):
        await push(redis, said(1, "Before."))
        await page.goto(ADDRESS)
        await expect(page.locator(".message")).to_have_count(1)
        await visitor.context.set_offline(True)
        cdp = await visitor.context.new_cdp_session(page)
        await cdp.send("Network.enable")
        await visitor.context.set_offline(False)
        await push(redis, *(said(number, f"Meanwhile {number}.") for number in range(2, 30)))
        await expect(page.locator("[data-head=messages]")).to_have_text("29")
        await expect(page.locator(".message").last).to_contain_text("Meanwhile 29.")


async def events_of(client: httpx.AsyncClient, headers: dict[str, str] | None = None) -> tuple[str, str, Any]:
    """The first event's name, id and data."""
    async with client.stream("GET", "/ui/live/sessions/monday", headers=headers) as stream:
        fields: dict[str, str] = {}
        async for line in stream.aiter_lines():
            if not line and "event" in fields:
                return fields["event"], fields.get("id", ""), orjson.loads(fields["data"])
            name, _, value = line.partition(": ")
            fields[name] = value
    raise AssertionError("the stream has ended")


async def test_the_last_event_id_continues_while_somebody_watches(redis: Redis, reader: httpx.AsyncClient) -> None:
    await push(redis, said(1, "Before."))
    async with running(redis), reader.stream("GET", "/ui/live/sessions/monday") as watched:
        lines = watched.aiter_lines()
        await anext(lines)
        name, token, data = await events_of(reader)
        assert (name, [one["text"] for one in data["messages"]]) == ("begin", ["Before."])
        await push(redis, said(2, "Meanwhile."))
        await wait_until(published(redis, lambda now: len(now["raw_recent_buffer"]) == 2), "it is heard")
        name, _, data = await events_of(reader, {"Last-Event-ID": token})
        assert (name, [one["text"] for one in data["messages"]]) == ("change", ["Meanwhile."])
        assert (await events_of(reader, {"Last-Event-ID": "other-1"}))[0] == "begin"


async def test_another_tenants_session_is_not_there(api: ApiServer, redis: Redis) -> None:
    await push(redis, said(1, "Whales sing."))
    async with running(redis), api.client() as client:
        await logged_in(api, client, api.key(tenant="other"))
        for path in (ADDRESS, "/ui/live/sessions/monday", "/ui/data/sessions/monday/messages"):
            assert (await client.get(path)).status_code == 404
        assert (await client.get("/ui/sessions/never")).status_code == 404


async def test_whatever_is_said_stays_text(api: ApiServer, redis: Redis, visitor: Visitor, chromium: Browser) -> None:
    page = visitor.page
    async with running(redis):
        await page.goto(ADDRESS)
        await page.locator("[data-live=on]").wait_for()
        await push(redis, *(said(number, text, text[:100]) for number, text in enumerate(TEXTS, 1)))
        await expect(page.locator(".message")).to_have_count(len(TEXTS))
        shown = await page.locator(".message .said").all_text_contents()
        assert [text[:40] for text in shown] == [text[:40] for text in TEXTS]
        async with visiting(chromium, api.url, java_script_enabled=False) as other:
            await log_in(other, api.key())
            await other.page.goto(ADDRESS)
            await expect(other.page.locator(".message")).to_have_count(len(TEXTS))
            await expect(other.page.locator(".message").nth(8)).to_contain_text("{{ 7*7 }}")
            assert await other.page.title() == "monday · context_builder"
            assert await not_isolated(other.page) == []
    async with running(redis, buffer_window=0.1, parts=parts_of(StubAnalyst())):
        await page.locator(".point").first.wait_for()
        await _is_unharmed(page)
        assert await not_isolated(page) == []


async def _is_unharmed(page: Any) -> None:
    assert await page.title() == "monday · context_builder"
    inside = page.locator(".messages, .points")
    assert await inside.locator("script, img, svg, iframe, b, a, #owned, style, textarea").count() == 0
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    inline = "[...document.querySelectorAll('.messages *, .points *')].flatMap(one => one.getAttributeNames())"
    assert not [name for name in await page.evaluate(inline) if name.startswith("on") or name == "style"]


async def test_everybody_can_use_it(redis: Redis, visitor: Visitor) -> None:
    page = visitor.page
    async with running(redis, parts=parts_of(StubAnalyst()), buffer_window=0.5):
        await push(redis, *(said(number, f"How does DNA replication work, part {number}?") for number in range(1, 20)))
        await page.goto(ADDRESS)
        await page.locator(".point").first.wait_for()
        await check_in_every_dress(page)


async def test_everybody_can_correct_what_was_said(redis: Redis, visitor: Visitor) -> None:
    page = visitor.page
    async with running(redis):
        await push(redis, said(1, "Wails sing."))
        await page.goto(ADDRESS)
        await page.get_by_text("Wails sing.").wait_for()
        await page.get_by_role("link", name="Correct", exact=True).click()
        await check_in_every_dress(page)
        await page.get_by_role("link", name="Wails sing.").click()
        await check_in_every_dress(page)


def long_ago(newest: int) -> bytes:
    """A state of so many messages, the first of which are no longer kept, with a point that cites them."""
    buffer = [
        {"id": number, "speaker": "Ida", "text": f"Call {number}.", "buffer_entry_time": 1_800_000_000.0 + number}
        for number in range(50, newest + 1)
    ]
    point = {"id": 1, "text": "Whales sang.", "kind": "claim", "speakers": ["Ida"], "ids": [2]}
    return orjson.dumps(
        {"rolling_summary": {"points": [point]}, "raw_recent_buffer": buffer, "revision": 1, "updated_at": 1.0}
    )


async def test_what_cannot_be_loaded_is_asked_for_once_a_click(redis: Redis, visitor: Visitor) -> None:
    page, asked = visitor.page, "**/ui/data/sessions/monday/messages*"
    await redis.set("context_builder:monday:state", long_ago(1500))
    await page.goto(ADDRESS)
    await expect(page.locator("[data-messages] .said").last).to_have_text("Call 1500.")
    await page.route(asked, lambda route: route.fulfill(status=503, body="{}"))
    point = page.locator("[data-point='1']")

    def count() -> int:
        return sum("/messages?" in one for one in visitor.asked)

    for turn in (1, 2):
        async with page.expect_response("**/messages*"):
            await point.click()
        await page.wait_for_timeout(300)
        assert count() == turn
        await point.click()  # which chooses nothing
    visitor.complaints.clear()  # the browser reports a status of 503 as an error
    await page.unroute(asked)
    async with page.expect_response("**/messages?after=200*"):
        await point.click()
    await wait_until(lambda: count() == 4, "what is before is asked for, too, where there is nothing")
    await page.wait_for_timeout(300)
    assert count() == 4


async def test_silence_is_what_is_published(redis: Redis, visitor: Visitor) -> None:
    page, clock = visitor.page, visitor.page.locator("[data-head=silence]")
    await redis.set("context_builder:monday:state", long_ago(60))

    async def publish(*, silent: bool) -> None:
        said = {"silence": silent, "last_message_time": time.time() - 10}
        await redis.set("conversation_state:monday", orjson.dumps(said))

    await publish(silent=False)
    await page.goto(ADDRESS)
    await expect(clock).to_have_text(re.compile(r"1\d\.\d s"))
    await expect(clock).to_have_class("value clock")
    await publish(silent=True)
    await expect(clock).to_have_class("value clock is-silent")


@pytest.mark.parametrize("odd", [None, 7, "text", [1, "a", None], {"a": 1}])
async def test_a_state_of_other_types_is_shown_as_far_as_it_goes(
    odd: object, redis: Redis, reader: httpx.AsyncClient
) -> None:
    message = dict.fromkeys(("speaker", "domains", "keywords", "domain_confidence", "buffer_entry_time", "time"), odd)
    point = dict.fromkeys(("id", "kind", "speakers", "ids", "time"), odd)
    of_session = ("current_domains", "current_keywords", "domain_confidence", "cost", "analyst", "last_message_time")
    whole = {
        "raw_recent_buffer": [{**message, "id": 1, "text": "Whales sing."}, odd],
        "rolling_summary": {"points": [{**point, "text": "They sing."}, odd], "message_count": odd},
        **dict.fromkeys(of_session, odd),
    }
    for state_of in (whole, {**whole, "rolling_summary": odd}, {**whole, "raw_recent_buffer": odd}):
        await redis.set(Keys("monday").state, orjson.dumps(state_of))
        answer = await reader.get(ADDRESS)
        assert answer.status_code == 200
        assert ("Whales sing." in answer.text) is (state_of["raw_recent_buffer"] != odd)
