"""The memory's story: found, narrowed, replaced, and forgotten after a question; nobody else's, and text alone."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from context_builder.memory.memory import Memory, point_id
from context_builder.memory.sql_memory import PostgresMemory
from context_builder.server.access.caller import Role
from tests.server.page.accessibility import check_in_every_dress
from tests.server.page.conftest import logged_in, token_in, visiting_as
from tests.server.page.hostile import TEXTS, not_isolated
from tests.services.api_server import ApiServer
from tests.services.chromium import Visitor

pytestmark = pytest.mark.engines

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
ECOLOGY = "Environmental Science / Ecology"


@pytest_asyncio.fixture(loop_scope="session")
async def memory(api: ApiServer) -> AsyncIterator[PostgresMemory]:
    store = PostgresMemory(api.database_url)
    yield store
    await store.close()


def said(number: int, text: str, speaker: str = "Ines", **more: object) -> Memory:
    fields = {"session_id": "cove", "speaker": speaker, "time": NOON + timedelta(days=number), "position": number}
    return Memory(f"cove:message:{number}", text, **{**fields, **more})  # type: ignore[arg-type]


def decided(number: int, text: str, **metadata: object) -> Memory:
    at = NOON + timedelta(hours=number)
    named = {"point": "decision", "cites": [number], "speakers": ["Ines"], **metadata}
    return Memory(point_id("cove", number, at.timestamp()), text, "point", "cove", None, "Ines", at, metadata=named)


async def test_one_finds_narrows_and_forgets(memory: PostgresMemory, administrator: Visitor, tenant: str) -> None:
    page = administrator.page
    await page.goto("/ui/memory")
    await expect(page.get_by_text("Nothing is remembered yet")).to_be_visible()
    texts = {1: "Urchins graze the kelp.", 2: "Otters eat urchins.", 3: "The budget is small."}
    await memory.remember(tenant, [said(n, text, "Ines" if n < 3 else "Kai") for n, text in texts.items()])
    await memory.remember(tenant, [said(4, "Kelp grows a foot a day.", "Kai", tags=(ECOLOGY,))])
    cards = page.locator("li.memory")
    await page.get_by_role("searchbox").fill("urchins")
    await page.get_by_role("button", name="Search").click()
    await expect(cards.first).to_contain_text("rchins")
    await page.goto("/ui/memory")
    await expect(cards).to_have_count(4)
    await page.get_by_text("Who said it, what kind").click()
    await page.get_by_label("Said by").select_option("Kai")
    await page.get_by_label("Domain").select_option(ECOLOGY)
    await page.get_by_role("button", name="Search").click()
    await expect(cards).to_have_count(1)
    await page.goto("/ui/memory?since=2026-03-04&until=2026-03-05")
    await expect(cards).to_have_count(2)
    await page.goto("/ui/memory")
    forget = page.get_by_role("button", name="Forget those chosen")
    await expect(forget).to_be_hidden()
    await page.set_viewport_size({"width": 1024, "height": 360})
    await page.get_by_label("Choose: Otters").check()
    await page.get_by_label("Choose: The budget").check()
    await expect(forget).to_be_in_viewport()
    await forget.click()
    await expect(page.get_by_role("heading", name="Forget these 2 memories for good?")).to_be_visible()
    await check_in_every_dress(page)
    await page.get_by_role("link", name="Keep them").click()
    await expect(cards).to_have_count(4)
    await page.get_by_label("Choose: Otters").check()
    await page.get_by_label("Choose: The budget").check()
    await page.get_by_role("button", name="Forget those chosen").click()
    await page.get_by_role("button", name="Forget them").click()
    await expect(page.get_by_role("status")).to_have_text("2 memories are forgotten.")
    await expect(cards).to_have_count(2)


async def test_what_replaced_what_is_told_and_preferences_to_admins(
    api: ApiServer, chromium: Browser, memory: PostgresMemory, own_redis: None, tenant: str
) -> None:
    await memory.remember(tenant, [decided(1, "Survey every week."), decided(2, "Survey twice a month.", supersedes=1)])
    withdrawn = {"withdrawn": "prefers tea"}
    no_tea = said(9, "no longer prefers tea", kind="preference", user_id="Ines", metadata=withdrawn)
    await memory.remember(tenant, [no_tea])
    async with visiting_as(chromium, api, api.key(Role.WRITER, tenant)) as writer:
        await writer.page.goto("/ui/memory")
        cards = writer.page.locator("li.memory")
        await expect(cards.filter(has_text="Replaced by: Survey twice a month.")).to_have_count(1)
        await expect(cards.filter(has_text="Replaces: Survey every week.")).to_have_count(1)
        await expect(cards.filter(has_text="Takes back: prefers tea")).to_have_count(0)
    async with visiting_as(chromium, api, api.key(Role.ADMIN, tenant)) as admin:
        await admin.page.goto("/ui/memory")
        cards = admin.page.locator("li.memory")
        await expect(cards.filter(has_text="Takes back: prefers tea")).to_have_count(1)
        await check_in_every_dress(admin.page)


async def test_on_a_phone_a_page_of_memories_is_two_screens_and_a_tap_shows_the_whole_of_one(
    memory: PostgresMemory, administrator: Visitor, tenant: str
) -> None:
    text = "Urchins graze the kelp in both coves, and nobody knows how many there are. " * 6
    tags = (ECOLOGY, "Robotics / Automation")
    await memory.remember(tenant, [said(n, f"{n}. {text} The end.", tags=tags) for n in range(12)])
    page = administrator.page
    await page.set_viewport_size({"width": 360, "height": 780})
    await page.goto("/ui/memory")
    assert await page.evaluate("document.documentElement.scrollHeight") < 2 * 780
    card = page.locator("li.memory").first
    height = "(one) => one.getBoundingClientRect().height"
    before = await card.evaluate(height)
    facts = "(one) => [...one.children].filter((it) => it.offsetWidth).map((it) => it.getBoundingClientRect())"
    boxes = await card.locator(".facts").evaluate(f"(one) => ({facts})(one).map((it) => [it.left, it.right])")
    assert all(one[1] <= following[0] for one, following in itertools.pairwise(boxes))  # none covers another
    await card.get_by_text("11. Urchins").click()
    assert await card.evaluate(height) > before + 100
    await expect(card.get_by_role("link", name="Robotics")).to_be_visible()
    await check_in_every_dress(page)


async def test_it_works_without_scripts(api: ApiServer, chromium: Browser, memory: PostgresMemory, tenant: str) -> None:
    await memory.remember(tenant, [said(1, "Urchins graze the kelp.")])
    async with visiting_as(chromium, api, api.key(Role.ADMIN, tenant), java_script_enabled=False) as visitor:
        page = visitor.page
        await page.goto("/ui/memory?q=kelp")
        await page.get_by_label("Choose: Urchins").check()
        await page.get_by_role("button", name="Forget those chosen").click()
        await page.get_by_role("button", name="Forget it").click()
        await expect(page.get_by_role("status")).to_have_text("One memory is forgotten.")


async def test_whatever_was_said_is_text(memory: PostgresMemory, administrator: Visitor, tenant: str) -> None:
    hostile = [said(n, text, text[:200], tags=(text[:100],)) for n, text in enumerate(TEXTS)]
    await memory.remember(tenant, hostile)
    page = administrator.page
    for path in ("/ui/memory", "/ui/memory?q=owned", "/ui/memory/forget?id=cove:message:0&id=cove:message:4"):
        await page.goto(path)
        assert "owned" not in await page.title()
        assert await page.locator("main").locator("script, img, iframe, b, #owned, svg").count() == 0
        assert await not_isolated(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_a_wrong_field_is_told_and_kept(administrator: Visitor) -> None:
    await administrator.page.goto("/ui/memory?since=2026-03-05&until=2026-03-01&q=kelp")
    await expect(administrator.page.get_by_role("alert")).to_have_text("the first day is after the last one")
    await expect(administrator.page.get_by_role("searchbox")).to_have_value("kelp")
    administrator.complaints.clear()  # the browser reports the status


async def forgetting(api: ApiServer, client: httpx.AsyncClient, *ids: str) -> httpx.Response:
    """Forget by the form, as a browser would."""
    csrf = token_in((await client.get("/ui/memory")).text)
    return await client.post("/ui/memory/forget", data={"csrf": csrf, "id": ids}, headers={"Origin": api.url})


async def test_another_tenants_memory_is_neither_shown_nor_forgotten(
    api: ApiServer, memory: PostgresMemory, own_redis: None, tenant: str
) -> None:
    await memory.remember(tenant, [said(1, "Urchins graze the kelp.")])
    async with api.client() as stranger, api.client() as client:
        await logged_in(api, stranger, api.key(Role.ADMIN, f"{tenant}-club"))
        for path in ("/ui/memory", "/ui/memory?q=urchins", "/ui/memory/forget?id=cove:message:1"):
            assert "Urchins" not in (await stranger.get(path)).text
        answer = await forgetting(api, stranger, "cove:message:1")
        assert answer.headers["location"] == "/ui/memory?forgotten=0"
        await logged_in(api, client, api.key(Role.WRITER, tenant))
        assert "Urchins" in (await client.get("/ui/memory")).text
        assert "Forget" not in (await client.get("/ui/memory")).text
        assert (await forgetting(api, client, "cove:message:1")).status_code == 403
        assert (await client.get("/ui/memory/forget?id=cove:message:1")).status_code == 403


async def test_what_a_policy_denies_is_not_there_to_be_forgotten(
    api: ApiServer, memory: PostgresMemory, own_redis: None, tenant: str
) -> None:
    await memory.remember(tenant, [said(1, "Urchins graze the kelp.")])
    async with api.client(api.key(Role.ADMIN, tenant)) as admin, api.client() as client:
        text = 'forbid (principal, action, resource) when { resource.kind == "message" };'
        (await admin.put("/knowledge/policies/shut", content=text)).raise_for_status()
        await logged_in(api, client, api.key(Role.ADMIN, tenant))
        assert "Urchins" not in (await client.get("/ui/memory")).text
        answer = await forgetting(api, client, "cove:message:1")
        assert answer.headers["location"] == "/ui/memory?forgotten=0"
        (await admin.delete("/knowledge/policies/shut")).raise_for_status()
        assert "Urchins" in (await client.get("/ui/memory")).text


async def test_nothing_is_forgotten_without_the_forms_token(
    api: ApiServer, memory: PostgresMemory, own_redis: None, tenant: str
) -> None:
    await memory.remember(tenant, [said(1, "Urchins graze the kelp.")])
    async with api.client() as client:
        await logged_in(api, client, api.key(Role.ADMIN, tenant))
        for fields, headers in (
            ({"id": "cove:message:1"}, {"Origin": api.url}),
            ({"id": "cove:message:1", "csrf": "guessed"}, {"Origin": api.url}),
            ({"id": "cove:message:1"}, {"Origin": "https://elsewhere.example"}),
        ):
            answer = await client.post("/ui/memory/forget", data=fields, headers=headers)
            assert answer.status_code == 403
        assert "Urchins" in (await client.get("/ui/memory")).text


async def test_a_forgotten_message_leaves_the_packages_that_showed_it(
    api: ApiServer, memory: PostgresMemory, own_redis: None, tenant: str
) -> None:
    await memory.remember(tenant, [said(1, "Urchins graze the kelp in the northern cove.")])
    async with api.client(api.key(Role.WRITER, tenant)) as program, api.client() as client:
        asked = {"intent": "urchins in the northern cove", "tokenBudget": 1000}
        package = (await program.post("/knowledge/context/build", json=asked)).json()
        path = f"/knowledge/context/{package['contextPackageId']}"
        assert "Urchins graze" in (await program.get(path)).text
        await logged_in(api, client, api.key(Role.ADMIN, tenant))
        assert (await forgetting(api, client, "cove:message:1")).headers["location"].endswith("forgotten=1")
        assert "Urchins graze" not in (await program.get(path)).text
        assert "Urchins graze" not in (await program.get(f"{path}/audit")).text
