"""Why something is in a prompt: each part with its source and verdict, budgets that are dragged, and what helped."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import expect
from redis.asyncio import Redis

from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery
from context_builder.memory.sql_memory import PostgresMemory
from context_builder.server.access.caller import Role
from context_builder.session.keys import SESSIONS
from tests.cli.publishing import publish
from tests.cli.samples import entries, sample, sample_state
from tests.server.page.accessibility import PHONE, RULES, WIDE, check_in_every_dress, faults, load_axe
from tests.server.page.conftest import logged_in, token_in
from tests.server.page.hostile import TEXTS, not_isolated
from tests.services.api_server import TENANT, ApiServer
from tests.services.chromium import Visitor

pytestmark = pytest.mark.engines

MESSAGE = "What did we decide about the urchin survey?"


@pytest_asyncio.fixture(loop_scope="session")
async def memory(api: ApiServer) -> AsyncIterator[PostgresMemory]:
    store = PostgresMemory(api.database_url)
    yield store
    await store.forget(TENANT, filter=MemoryFilter())
    await store.close()


@pytest_asyncio.fixture(loop_scope="session")
async def session(redis: Redis, own_redis: None) -> str:
    await publish(redis, sample(state=sample_state(session_id="point-arlen")))
    return "point-arlen"


def remembered(text: str, number: int = 0) -> Memory:
    return Memory(f"earlier-{uuid4().hex}-{number}", text, session_id="earlier", speaker="Ines", time=datetime.now(UTC))


async def asked(visitor: Visitor, session: str, message: str = MESSAGE, budget: str = "4000") -> None:
    page = visitor.page
    await page.goto(f"/ui/prompt?session={session}")
    await expect(page.get_by_label("Session")).to_have_value(session)
    await page.get_by_role("textbox", name="Message").fill(message)
    await page.get_by_label("Tokens at most").fill(budget)
    async with page.expect_response(lambda answer: answer.request.method == "POST"):  # a prompt is there before
        await page.get_by_role("button", name="Show the prompt").click()


async def test_one_sees_each_part_drags_the_budget_and_says_what_helped(
    memory: PostgresMemory, session: str, visitor: Visitor
) -> None:
    helped, idle = (remembered(text) for text in ("We decided on an urchin survey each week.", "Urchin survey, again."))
    await memory.remember(TENANT, [helped, idle])
    page = visitor.page
    await asked(visitor, session)
    await expect(page.get_by_role("heading", name="of 4,000 tokens")).to_be_visible()
    await expect(page.locator("article.outgoing").last).to_contain_text(MESSAGE)
    kept = page.get_by_role("row").filter(has_text=helped.text)
    await expect(kept).to_contain_text("included")
    await expect(kept).to_contain_text("similarity")
    for table in await page.locator("#taken table").all():
        ranked = await table.get_by_role("columnheader", name="Score").count()
        assert "" not in [
            text.strip() for text in await table.locator("td:not([data-label=Helped])").all_text_contents()
        ]
        assert bool(ranked) is bool(await table.get_by_text("similarity").count())
    await check_in_every_dress(page)
    await page.locator("#drag").fill("300")
    await expect(page.get_by_role("heading", name="4,000 → 300 tokens")).to_be_visible()
    await expect(page.locator(".change-out").first).to_be_visible()
    await expect(page.get_by_label("Tokens at most")).to_have_value("300")
    await page.locator("#drag").fill("2000")
    await expect(page.get_by_role("heading", name="300 → 2,000 tokens")).to_be_visible()
    await expect(page.locator(".change-in").first).to_be_visible()
    await page.get_by_label(f"It helped: {helped.text}").check()
    await page.get_by_role("button", name="Say what helped").click()
    await expect(page.get_by_role("status")).to_contain_text("Noted for 2 memories")
    where = MemoryFilter(ids=(helped.id, idle.id))
    found = {one.memory.id: one.feedback for one in await memory.search(TENANT, MemoryQuery("", filter=where))}
    assert [one and one.score for one in (found[helped.id], found[idle.id])] == [1.0, 0.0]


async def test_on_a_phone_a_prompt_takes_few_screens(memory: PostgresMemory, session: str, visitor: Visitor) -> None:
    texts = [f"We decided on the urchin survey of week {number}, in the north cove." for number in range(40)]
    await memory.remember(TENANT, [remembered(text, number) for number, text in enumerate(texts)])
    page = visitor.page
    await page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    await asked(visitor, session)
    await expect(page.get_by_role("heading", name="of 4,000 tokens")).to_be_visible()
    await expect(page.locator("article.outgoing").first).to_be_hidden()
    assert await page.evaluate("document.documentElement.scrollHeight") <= 2 * PHONE["height"]
    summary = page.locator("#taken .narrow-fold table").first
    await expect(summary).to_be_hidden()
    await page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    await expect(summary).to_be_visible()  # a wide screen folds nothing
    await page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    await page.get_by_role("heading", name="As it would go out").click()
    await expect(page.locator("article.outgoing").first).to_be_visible()
    await load_axe(page)
    assert await faults(page, RULES) == []
    await expect(page.locator("#taken table").first).to_be_hidden()
    await page.locator("#drag").fill("300")
    await expect(page.get_by_role("heading", name="4,000 → 300 tokens")).to_be_visible()
    await expect(page.locator("article.outgoing").first).to_be_visible()  # the screen that was open stays so


async def test_looking_keeps_nothing(memory: PostgresMemory, session: str, visitor: Visitor) -> None:
    await asked(visitor, session, budget="120")  # in which hardly anything of the conversation fits
    await expect(visitor.page.get_by_role("heading", name="of 120 tokens")).to_be_visible()
    await asked(visitor, session)
    await expect(visitor.page.get_by_role("heading", name="of 4,000 tokens")).to_be_visible()
    await visitor.page.goto(f"/ui/prompt?session={session}")  # which shows it without a click
    await expect(visitor.page.get_by_role("heading", name="of 4,000 tokens")).to_be_visible()
    assert await memory.search(TENANT, MemoryQuery("")) == []


async def test_what_cannot_be_built_is_told(session: str, visitor: Visitor) -> None:
    page = visitor.page
    await page.goto("/ui/prompt")
    await check_in_every_dress(page)
    await asked(visitor, "nowhere")
    await expect(page.get_by_role("alert")).to_contain_text("this session does not exist, has not run yet")
    await asked(visitor, session, budget="5")
    await expect(page.get_by_role("alert")).to_contain_text("more than the limit of 5")
    await expect(page.get_by_role("textbox", name="Message")).to_have_value(MESSAGE)
    await asked(visitor, "../etc")
    await expect(page.get_by_role("alert")).to_contain_text("this session does not exist, has not run yet")
    visitor.complaints.clear()  # the browser reports the status


async def test_whatever_was_said_is_text(
    redis: Redis, memory: PostgresMemory, own_redis: None, visitor: Visitor
) -> None:
    buffer = [{**entries(29, 30)[0], "id": n, "text": text, "speaker": text[:100]} for n, text in enumerate(TEXTS)]
    await publish(redis, sample(state=sample_state(session_id="point-arlen", raw_recent_buffer=buffer)))
    await memory.remember(TENANT, [remembered(f"owned {text}", number) for number, text in enumerate(TEXTS)])
    await asked(visitor, "point-arlen", message=f"owned? {TEXTS[4]}", budget="30000")
    page = visitor.page
    for budget in (None, "9000"):
        if budget is not None:
            await page.locator("#drag").fill(budget)
        await expect(page.get_by_role("heading", name="As it would go out")).to_be_visible()
        assert "owned" not in await page.title()
        assert await page.locator("#result").locator("script, img, iframe, b, #owned").count() == 0
        assert await not_isolated(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_another_tenants_session_is_not_there(api: ApiServer, memory: PostgresMemory, session: str) -> None:
    mine = remembered("We decided on an urchin survey each week.")
    await memory.remember(TENANT, [mine])
    async with api.client() as client:
        await logged_in(api, client, api.key(Role.ADMIN, "club"))
        page = (await client.get("/ui/prompt")).text
        assert session not in page
        sent = {"csrf": token_in(page), "session": session, "query": MESSAGE, "budget": "4000"}
        answer = await client.post("/ui/prompt", data=sent, headers={"Origin": api.url})
        assert (answer.status_code, "urchin survey each week" in answer.text) == (404, False)
        rated = {"csrf": token_in(page), "helped": mine.id, "shown": mine.id}
        answer = await client.post("/ui/prompt/helped", data=rated, headers={"Origin": api.url})
        assert answer.headers["location"] == "/ui/prompt?noted=0"
    (found,) = await memory.search(TENANT, MemoryQuery("", filter=MemoryFilter(ids=(mine.id,))))
    assert found.feedback is None


async def test_nothing_is_shown_or_noted_without_the_forms_token(api: ApiServer, session: str) -> None:
    async with api.client() as client:
        await logged_in(api, client, api.key())
        for path in ("/ui/prompt", "/ui/prompt/helped"):
            sent = {"session": session, "query": MESSAGE, "budget": "100", "helped": "x", "csrf": "guessed"}
            assert (await client.post(path, data=sent, headers={"Origin": api.url})).status_code == 403


@pytest.mark.parametrize("budget", ["0", "-1", "2000001", "1e3", "", "999999999999", "٣"])
async def test_a_budget_that_is_none_is_told(api: ApiServer, session: str, budget: str) -> None:
    async with api.client() as client:
        await logged_in(api, client, api.key())
        csrf = token_in((await client.get("/ui/prompt")).text)
        sent = {"csrf": csrf, "session": session, "query": MESSAGE, "budget": budget}
        answer = await client.post("/ui/prompt", data=sent, headers={"Origin": api.url})
        assert (answer.status_code, "not a whole number" in answer.text) == (422, True)


async def test_the_form_suggests_the_newest_sessions_without_looking_at_each(
    redis: Redis, reader: httpx.AsyncClient
) -> None:
    await redis.config_resetstat()
    await redis.zadd(SESSIONS, {"monday": 1, "tuesday": 2})
    page = (await reader.get("/ui/prompt")).text
    assert page.index("<option selected>tuesday</option>") < page.index("<option>monday</option>")
    assert "cmdstat_scan" not in await redis.info("commandstats")
