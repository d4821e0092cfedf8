"""How the page presents things: on a phone and a laptop, in charts, by headings, and compressed."""

from __future__ import annotations

import asyncio
import gzip
import re
import time
from typing import Any

import httpx
import orjson
import pytest
from playwright.async_api import Locator, Page, Route, expect
from redis.asyncio import Redis

from context_builder.analysis.analyst import HEADINGS
from context_builder.domains import DOMAINS
from context_builder.fleet.sleepers import SLEEPERS
from context_builder.server.page.summary_view import shown_point
from context_builder.session.keys import SESSIONS, Keys
from tests.server.page.accessibility import PHONE, RULES, faults, load_axe
from tests.services.api_server import ApiServer
from tests.services.chromium import Visitor

pytestmark = pytest.mark.engines

ADDRESS = "/ui/sessions/monday"
BIOLOGY, PHYSICS = DOMAINS[0], DOMAINS[2]
LAPTOP = {"width": 1024, "height": 768}
TABLET = {"width": 768, "height": 1024}
COMPOSED = """document.activeElement.dispatchEvent(
    new KeyboardEvent("keydown", { key: "Enter", isComposing: true, bubbles: true, cancelable: true }))"""
KINDS = ("decision", "action", "question", "disagreement", "proposal", "claim", "consilience")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Forty metres.", ["Ida", "Kai"]),
        ("Ida: How deep? – Kai: Forty metres.", []),
        ("Bo: How deep? – Kai: Forty metres.", []),
    ],
)
def test_who_speaks_in_an_exchange_is_named_once(text: str, named: list[str]) -> None:
    assert shown_point({"id": 1, "text": text, "speakers": ["Ida", "Kai"]})["speakers"] == named


def message(number: int, domain: str, at: float) -> dict[str, Any]:
    return {
        "id": number,
        "speaker": "Consilience" if number == 3 else "Ida",
        "type": "consilience" if number == 3 else "user",
        "text": f"The hydrophone hears the whales sing, call {number}.",
        "time": at,
        "buffer_entry_time": at,
        "domains": [domain],
        "keywords": ["hydrophone", "whales"],
    }


def point(number: int, kind: str) -> dict[str, Any]:
    speaker = "Consilience" if kind == "consilience" else "Ida"
    cited = {"id": number, "message": number, "quote": "hears the whales sing", "speaker": speaker}
    text = f"The hydrophone hears the whales sing at dawn and at dusk, as was said for the time number {number}."
    return {"id": number, "text": text, "kind": kind, "speakers": [speaker], "ids": [number], "evidence": [cited]}


def state(**more: Any) -> bytes:
    """A state of ten messages, with a pause of an hour after the fifth, and two points of each kind."""
    now = time.time() - 7200
    buffer = [message(n, BIOLOGY if n < 5 else PHYSICS, now + 10 * n + 3600 * (n > 5)) for n in range(1, 11)]
    points = [point(1 + place, kind) for place, kind in enumerate(KINDS * 2)]
    published = {
        "raw_recent_buffer": buffer,
        "rolling_summary": {"points": points, "message_count": 10},
        "received_messages": 10,
        "current_domains": [PHYSICS],
        "domain_confidence": {PHYSICS: 0.9},
        "revision": 1,
        "updated_at": now,
    }
    return orjson.dumps({**published, **more})


async def opened(redis: Redis, visitor: Visitor, size: dict[str, int], **more: Any) -> Page:
    await redis.set(Keys("monday").state, state(**more))
    await visitor.page.set_viewport_size(size)  # type: ignore[arg-type]
    await visitor.page.goto(ADDRESS)
    await visitor.page.locator("[data-live=on]").wait_for()
    return visitor.page


async def lines(locator: Locator) -> int:
    """How many lines of text are to be seen within an element."""
    return int(
        await locator.evaluate("""(list) => {
          const seen = list.getBoundingClientRect();
          const tops = new Set();
          const walker = document.createTreeWalker(list, NodeFilter.SHOW_TEXT);
          while (walker.nextNode()) {
            const range = document.createRange();
            range.selectNodeContents(walker.currentNode);
            for (const one of range.getClientRects()) {
              if (one.top >= seen.top && one.bottom <= seen.bottom) tops.add(Math.round((one.top + one.bottom) / 20));
            }
          }
          return tops.size;
        }""")
    )


async def test_who_runs_a_session_is_told_and_how_to_run_it(redis: Redis, visitor: Visitor) -> None:
    page = await opened(redis, visitor, LAPTOP)
    status, notice = page.locator("[data-head=status]"), page.locator(".summary .trouble")
    await expect(status).to_have_text("not running")
    await expect(notice).to_contain_text("context-builder run monday")
    await redis.lpush(Keys("monday").input, b"{}")  # type: ignore[misc]
    await expect(notice).to_contain_text("1 message waits.")
    await redis.zadd(SLEEPERS, {"monday": time.time()})
    await expect(status).to_have_text("asleep")
    await expect(notice).to_be_hidden()
    await redis.set(Keys("monday").owner, orjson.dumps({"pid": 1, "host": "lab"}))
    await expect(status).to_have_text("idle")
    await redis.set(Keys("monday").conversation, orjson.dumps({"last_message_time": time.time()}))
    await expect(status).to_have_text("live")


async def test_a_failing_summary_is_told_where_the_summary_would_be(redis: Redis, visitor: Visitor) -> None:
    told = {"since": time.time(), "tries": 3, "reason": "the model does not answer", "tokens": 4_000}
    empty = {"points": [], "message_count": 0}
    page = await opened(redis, visitor, LAPTOP, failing={"summary": told}, rolling_summary=empty)
    trouble = page.locator(".summary .trouble.is-bad")
    await expect(trouble).to_contain_text("The summary fails")
    await expect(trouble).to_contain_text("3 tries failed and used 4,000 tokens.")
    await redis.set(Keys("monday").state, state(rolling_summary=empty, revision=2, messages_since_summary=10))
    await expect(trouble).to_have_count(0)
    await expect(page.locator("[data-no-points]")).to_have_text("Nothing is summarized: nobody runs the session.")
    await redis.set(Keys("monday").state, state(failing={"summary": told}, revision=3))
    await redis.zadd(SESSIONS, {"monday": time.time()})
    await page.goto("/ui/sessions")
    await expect(page.get_by_role("row", name="monday")).to_contain_text("summary fails")


async def test_beside_the_conversation_a_laptop_shows_a_dozen_lines_of_summary(redis: Redis, visitor: Visitor) -> None:
    page = await opened(redis, visitor, LAPTOP)
    assert await lines(page.locator("[data-points]")) >= 12
    headings = page.locator(".under h3")
    await expect(headings).to_have_text(
        [f"{name} {4 if name == 'Said' else 2}" for name in dict.fromkeys(HEADINGS.values())]
    )
    await expect(page.locator(".under").first.locator(".point .text").first).to_contain_text("number 8")
    await page.locator(".point[data-id='1'] .point-button").click()
    await expect(page.locator(".quoted")).to_have_text("Ida “hears the whales sing”")
    await expect(page.locator(".message mark")).to_have_text("hears the whales sing")
    await page.locator(".quoted").click()
    await expect(page.locator("#m1")).to_be_in_viewport()


async def test_a_domain_is_named_only_where_it_changes(redis: Redis, visitor: Visitor) -> None:
    page = await opened(redis, visitor, LAPTOP)
    rows = page.locator(".message")
    await expect(rows).to_have_count(10)
    await expect(rows.locator(".chip")).to_have_text(["Biology", "Physics"])
    await expect(rows.nth(4).locator(".chip")).to_have_text("Physics")


async def test_bands_tell_what_was_talked_about_and_pauses_are_narrow(redis: Redis, visitor: Visitor) -> None:
    page = await opened(redis, visitor, LAPTOP)
    chart = page.locator("[data-chart] svg")
    await expect(page.locator("[data-lanes] li")).to_have_text(["Physics", "Biology"])
    await expect(page.locator("[data-now-shares] li").first).to_have_text("90 %")
    await expect(chart.locator(".pause")).to_have_count(1)
    place = await chart.bounding_box()
    assert place is not None
    assert place["height"] < 50
    await page.mouse.move(place["x"] + 2, place["y"] + 5)
    await expect(page.locator("[data-tip]")).to_contain_text("1 message: Biology 100 %")
    pause = await chart.locator(".pause").bounding_box()
    assert pause is not None
    assert pause["width"] < place["width"] / 5
    await page.mouse.move(pause["x"] + pause["width"] / 2, pause["y"] + 5)
    await expect(page.locator("[data-tip]")).to_contain_text("Pause of 1 h")
    await expect(page.locator("[data-caption] span").nth(1)).to_be_visible()
    columns = page.locator("[data-chart] rect:not(.pause)")
    before = await columns.count()
    await page.mouse.move(place["x"] + 2, place["y"] + 5)
    await page.mouse.down()
    await page.mouse.move(pause["x"] - 2, place["y"] + 5)
    await page.mouse.up()
    await expect(chart.locator(".pause")).to_have_count(0)
    await expect(page.locator("[data-changes]")).to_have_text("")  # neither changes nor pauses
    assert await columns.count() < before
    await page.get_by_role("button", name="Show all").click()
    await expect(chart.locator(".pause")).to_have_count(1)
    moment = page.get_by_role("slider")
    await moment.press("Home")
    await expect(moment).to_have_attribute("aria-valuetext", re.compile("1 message: Biology 100 %"))
    await moment.press("+")
    await expect(chart.locator(".pause")).to_have_count(0)
    await moment.press("Escape")
    await expect(chart.locator(".pause")).to_have_count(1)
    await moment.press("Home")
    await moment.press("Enter")
    await expect(page.locator("#m1")).to_be_in_viewport()


async def test_the_assistant_has_one_style_and_nothing_the_browsers_own(redis: Redis, visitor: Visitor) -> None:
    page = await opened(redis, visitor, LAPTOP)
    names = page.locator("bdi", has_text="Consilience")
    await expect(names).to_have_count(3)
    colours = await names.evaluate_all("all => all.map((one) => getComputedStyle(one).color)")
    accent = await page.evaluate("getComputedStyle(document.querySelector('.views [aria-current]')).color")
    assert set(colours) == {accent}
    for path, control in (("/ui/prompt", "#drag"), ("/ui/memory", "[name=q]")):
        await page.goto(path)
        colour = await page.locator(control).evaluate("(one) => getComputedStyle(one).accentColor")
        assert colour == accent
    typed, hint = await page.locator("[name=q]").evaluate(
        "(one) => [getComputedStyle(one).color, getComputedStyle(one, '::placeholder').color]"
    )
    assert typed != hint


async def test_on_a_phone_a_tap_on_a_point_shows_its_messages_and_leads_there(redis: Redis, visitor: Visitor) -> None:
    page = await opened(redis, visitor, PHONE)
    await expect(page.locator("[data-head=dollars]")).to_be_hidden()  # as it is nothing
    await page.get_by_role("button", name="Summary").click()
    await expect(page.locator(".talk")).to_be_hidden()
    oldest = page.locator(".point[data-id='1']")
    await oldest.locator(".point-button").click()
    await expect(oldest.locator(".behind")).to_contain_text("The hydrophone hears the whales sing, call 1.")
    await expect(oldest.locator("mark")).to_have_text("hears the whales sing")
    await oldest.get_by_role("button", name="Show it in the conversation").click()
    await expect(page.locator("#m1")).to_be_in_viewport()
    await expect(page.locator("#m1")).to_have_class("message lit")
    await expect(page.locator("#m1 mark")).to_have_text("hears the whales sing")


@pytest.mark.parametrize("name", ["-".join(["a-name-that-a-program-made"] * 4), "W" * 128, "\u05e9" * 38])
async def test_a_long_name_makes_no_view_wider_than_the_screen_and_takes_two_lines(
    redis: Redis, visitor: Visitor, name: str
) -> None:
    spoken = [message(n, PHYSICS, time.time() - n) | {"speaker": name, "text": name * 9} for n in range(1, 5)]
    points = [point(1, "decision") | {"speakers": [name]}]
    published = state(raw_recent_buffer=spoken, rolling_summary={"points": points}, current_keywords=[name])
    await redis.set(Keys(name).state, published)
    await redis.zadd(SESSIONS, {name: 1})
    await redis.lpush(Keys(name).dead, b"{}")  # type: ignore[misc]
    page = visitor.page
    of_session = (f"sessions/{name}", f"sessions/{name}/revisions", f"dead/{name}")
    by_choice = (f"prompt?session={name}", f"memory?session={name}&speaker={name}", f"packages?project={name}")
    for address in ("sessions", "health", "recordings", *of_session, *by_choice):
        await page.goto(f"/ui/{address}")
        for size in (LAPTOP, {"width": 360, "height": 740}):
            await page.set_viewport_size(size)  # type: ignore[arg-type]
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (address, size)
            names = page.locator("main :is(h1, .sessions th, .crumb, .speaker):visible", has_text=name[:20])
            for height in [await one.evaluate("(one) => one.offsetHeight") for one in await names.all()]:
                assert height <= 120, (address, size)


async def test_on_a_phone_troubles_stand_with_the_summary_and_a_sign_leads_there(
    redis: Redis, visitor: Visitor
) -> None:
    await redis.lpush(Keys("monday").dead, b"{}")  # type: ignore[misc]
    page = await opened(redis, visitor, PHONE)
    top = await page.locator(".talk").evaluate("(one) => one.getBoundingClientRect().top")
    assert top < 0.35 * PHONE["height"]
    await page.get_by_role("button", name="Summary 14 to look at").click()
    await expect(page.locator(".summary .trouble")).to_have_count(2)
    leads = page.get_by_role("link", name="See why, and put them back")
    await expect(leads).to_have_attribute("href", "/ui/dead/monday")


async def test_a_phone_has_the_navigation_in_one_row_and_cards_without_empty_labels(
    redis: Redis, visitor: Visitor
) -> None:
    await redis.lpush(Keys("unheard").input, b"{}")  # type: ignore[misc]
    page = visitor.page
    await page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    await page.goto("/ui/sessions")
    places = await page.locator(".views a").evaluate_all("all => all.map((one) => one.getBoundingClientRect().top)")
    assert len(set(places)) == 1
    assert await page.locator(".views").evaluate("(one) => one.scrollWidth <= one.clientWidth")
    row = page.get_by_role("row", name="unheard")
    await expect(row.locator("[data-label=Behind]")).to_be_visible()
    for name in ("Cost", "Run by", "Domains"):
        await expect(row.locator(f"[data-label='{name}']")).to_be_hidden()


async def test_an_upright_tablet_shows_the_list_of_sessions_whole(redis: Redis, visitor: Visitor) -> None:
    owner = orjson.dumps({"host": "a-machine-with-a-long-name.example.org", "pid": 12345})
    await redis.set(Keys("monday").owner, owner)
    page = await opened(redis, visitor, TABLET, cost={"dollars": 1.25})
    assert await page.locator(".strip").evaluate("(one) => one.offsetHeight") <= 70
    await redis.zadd(SESSIONS, {"monday": 1})
    await page.goto("/ui/sessions")
    await page.get_by_role("row", name="monday").wait_for()
    assert await page.locator(".table").evaluate("(one) => one.scrollWidth <= one.clientWidth")


async def test_a_few_words_lead_to_a_view_or_a_session(redis: Redis, visitor: Visitor) -> None:
    page = visitor.page
    await redis.lpush(Keys("monday").input, b"{}")  # type: ignore[misc]
    await page.get_by_role("row", name="monday").wait_for()
    await page.keyboard.press("Control+k")
    places, words = page.get_by_role("option"), page.get_by_role("combobox", name="Where to")
    await expect(words).to_be_focused()
    await expect(places.filter(has_text="monday")).to_have_count(1)
    await expect(places.first).to_have_attribute("aria-selected", "true")
    await load_axe(page)
    assert await faults(page, RULES) == []
    await page.keyboard.press("ArrowDown")
    await expect(places.nth(1)).to_have_attribute("aria-selected", "true")
    await words.fill("no such place")
    await expect(page.get_by_role("dialog").get_by_role("status")).to_have_text("Nothing has that name.")
    await words.fill("mon")
    await expect(places).to_have_text(["mondaysession"])
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/ui/sessions/monday")
    answered = asyncio.Event()

    async def late(route: Route) -> None:
        await answered.wait()
        await route.continue_()

    await page.route("**/data/places?q=*", late)
    await page.get_by_role("button", name="Go to").click()
    await expect(words).to_have_value("")
    await words.fill("health")
    await page.evaluate(COMPOSED)
    await page.keyboard.press("Enter")
    answered.set()
    await page.wait_for_url("**/ui/health")
    await page.get_by_role("button", name="Go to").click()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_be_hidden()


async def test_the_login_and_assets_are_compressed_and_nothing_with_a_secret(
    api: ApiServer, reader: httpx.AsyncClient
) -> None:
    async with api.client() as client:
        for path in ("/ui/login", "/ui/static/page.css", "/ui/static/session.js"):
            async with client.stream("GET", path, headers={"Accept-Encoding": "gzip"}) as answer:
                body = b"".join([part async for part in answer.aiter_raw()])
                assert (answer.status_code, answer.headers["content-encoding"]) == (200, "gzip"), path
                assert len(body) < 0.5 * len(gzip.decompress(body))
    for path in ("/ui/sessions", "/ui/prompt"):
        assert "content-encoding" not in (await reader.get(path)).headers
