"""The packages' story: built, opened with why each candidate is in or out, rated, audited; and each tenant's own."""

from __future__ import annotations

import unicodedata
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import asyncpg
import httpx
import pytest
import pytest_asyncio
from playwright.async_api import expect

from context_builder.server.access.caller import Role
from tests.server.page.accessibility import PHONE, check_in_every_dress
from tests.server.page.conftest import logged_in, token_in
from tests.server.page.hostile import TEXTS, not_isolated
from tests.services.api_server import ApiServer
from tests.services.chromium import Visitor

pytestmark = pytest.mark.engines

INTENT = "How are urchins surveyed?"


@pytest_asyncio.fixture(loop_scope="session")
async def program(api: ApiServer, own_redis: None, tenant: str) -> AsyncIterator[httpx.AsyncClient]:
    async with api.client(api.key(Role.WRITER, tenant)) as client:
        yield client


async def put(program: httpx.AsyncClient, name: str, content: str, **fields: Any) -> str:
    ref = f"artifact:{name}"
    described = {"kind": "document", "title": name.title(), "content": content, "status": "approved", **fields}
    (await program.put(f"/knowledge/artifacts/{ref}", json=described)).raise_for_status()
    return ref


async def built(program: httpx.AsyncClient, **fields: Any) -> str:
    asked = {"intent": INTENT, "tokenBudget": 1000, **fields}
    answer = await program.post("/knowledge/context/build", json=asked)
    return str(answer.raise_for_status().json()["contextPackageId"])


async def test_one_builds_a_package_and_sees_why(program: httpx.AsyncClient, administrator: Visitor) -> None:
    await put(program, "protocol", "Urchins are surveyed in both coves, every week.")
    await put(program, "labels", "Urchins are surveyed by Ines, ines@example.org.", sensitivity="confidential")
    await put(program, "long", "Urchins are surveyed by divers. " * 900)
    edges = [{"from": "artifact:protocol", "to": "artifact:labels", "type": "mentions"}]
    (await program.put("/knowledge/edges", json=edges)).raise_for_status()
    page = administrator.page
    await page.goto("/ui/packages")
    await check_in_every_dress(page)
    await page.get_by_label("What it is for").fill(INTENT)
    await page.get_by_label("Tokens at most").fill("300")
    await page.get_by_label("Name of the task").fill("t-1")
    await page.get_by_role("button", name="Build").click()
    await expect(page.get_by_role("heading", name=INTENT)).to_be_visible()
    sources = page.locator("li.source")
    await expect(sources.filter(has_text="Protocol").locator(".ruling")).to_have_text("full")
    await expect(sources.filter(has_text="Labels").locator(".ruling")).to_have_text("redacted")
    await sources.filter(has_text="Labels").locator("summary").click()
    await expect(sources.filter(has_text="Labels").locator("pre")).not_to_contain_text("ines@example.org")
    for screen in await page.locator(".screen > summary").all():
        await screen.click()
    candidates = page.get_by_role("row").filter(has=page.get_by_text("artifact:labels", exact=True))
    await expect(candidates.first).to_contain_text("redacted")
    drawing = page.get_by_role("img", name="Neighbourhood in the graph")
    await expect(drawing.locator(".node.held")).not_to_have_count(0)
    await expect(drawing.locator("path.edge")).to_have_count(1)
    await check_in_every_dress(page)
    await page.get_by_label("It helped").first.check()
    await page.get_by_label("How good was it?").select_option("good")
    await page.get_by_role("button", name="Say what helped").click()
    await expect(page.get_by_role("status")).to_contain_text("Noted")
    await page.goto("/ui/packages")
    await page.get_by_role("link", name="Outcomes").click()
    await expect(page.get_by_role("row").filter(has_text="at most 500 tokens")).to_contain_text("1.00")
    await expect(page.get_by_role("row", name="Protocol")).to_be_visible()  # where there is room
    await page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    assert await page.evaluate("document.documentElement.scrollHeight") < 1.6 * PHONE["height"]  # others are closed
    await page.locator("section", has_text="By source").get_by_text("Show them").click()
    await expect(page.get_by_role("row", name="Protocol")).to_contain_text("0.21 – 1.00")
    await page.get_by_label("Feedback of").select_option("the last 7 days")
    await page.get_by_role("button", name="Show").click()
    await page.wait_for_url("**/outcomes?days=7")
    await check_in_every_dress(page)
    await page.goto("/ui/packages")
    await expect(page.get_by_label("What it is for")).to_be_hidden()
    await page.locator("[name=by]").select_option("task")
    await page.get_by_label("Search for").fill("t-1")
    await page.get_by_role("button", name="Find").click()
    row = page.get_by_role("row", name=INTENT)
    for name, told in (
        ("Task", "t-1"),
        ("Asked by", "for a test"),
        ("Sources", "3"),
        ("Outcome", "1.00"),
        ("Built", "s ago"),
    ):
        await expect(row.locator(f"[data-label='{name}']")).to_contain_text(told)
    await check_in_every_dress(page)
    await page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    box = await row.get_by_role("link", name=INTENT).bounding_box()
    assert box is not None
    assert box["height"] >= 24
    await row.get_by_role("link", name=INTENT).click()
    await expect(page.get_by_role("heading", name=INTENT)).to_be_visible()
    await expect(page.get_by_text("Asked by for a test at")).to_have_count(1)


async def test_an_audit_is_verified_and_what_was_altered_is_named(
    api: ApiServer, program: httpx.AsyncClient, administrator: Visitor, tenant: str
) -> None:
    await put(program, "protocol", "Urchins are surveyed in both coves.")
    await built(program)
    page = administrator.page
    await page.goto("/ui/packages")
    await page.get_by_role("link", name="Audit").click()
    await page.get_by_role("button", name="Verify it now").click()
    await expect(page.get_by_role("status")).to_contain_text("The audit is intact")
    await check_in_every_dress(page)
    connection = await asyncpg.connect(api.database_url)
    try:
        async with connection.transaction():  # what a superuser does who knows his way
            await connection.execute("SET LOCAL session_replication_role = replica")
            await connection.execute("UPDATE policy_audit SET access = 'denied' WHERE tenant_id = $1", tenant)
    finally:
        await connection.close()
    await page.get_by_role("button", name="Verify it now").click()
    await expect(page.get_by_role("alert")).to_contain_text("was altered")


async def test_pinned_sources_over_the_budget_are_told_with_their_sizes(
    program: httpx.AsyncClient, administrator: Visitor
) -> None:
    ref = await put(program, "protocol", "Urchins are surveyed in both coves.")
    page = administrator.page
    await page.goto("/ui/packages")
    await page.get_by_label("What it is for").fill(INTENT)
    await page.get_by_label("Tokens at most").fill("3")
    await page.get_by_text("what is to be in it in any case").click()
    await page.get_by_label("Protocol").check()
    await page.get_by_role("button", name="Build").click()
    await expect(page.get_by_role("alert")).to_contain_text("pinned sources exceed")
    await expect(page.get_by_role("row", name=ref)).to_be_visible()
    await expect(page.get_by_label("Protocol")).to_be_checked()
    await expect(page.get_by_label("What it is for")).to_have_value(INTENT)
    administrator.complaints.clear()  # the browser reports the status


async def test_whatever_a_document_says_is_text(program: httpx.AsyncClient, administrator: Visitor) -> None:
    for number, text in enumerate(TEXTS):
        title = "".join(char for char in text[:200] if unicodedata.category(char)[0] != "C") or "Nothing"
        await put(program, f"hostile-{number}", f"Urchins are surveyed. {text}".replace("\x00", ""), title=title)
    package_id = await built(program, tokenBudget=30_000, taskId="<b id=owned>")
    page = administrator.page
    for path in (f"/ui/packages/{package_id}", f"/ui/packages?by=task&value={quote('<b id=owned>')}"):
        await page.goto(path)
        assert "owned" not in await page.title()
        assert await page.locator("main").locator("script, img, iframe, b, #owned").count() == 0
        assert await not_isolated(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert await page.locator("main").locator(f"a[href$='{package_id}']").count() == 1


async def test_a_package_is_found_by_words_who_asked_and_what_is_in_it(
    program: httpx.AsyncClient, administrator: Visitor
) -> None:
    ref = await put(program, "protocol", "Urchins are surveyed every week.", projectId="kelp")
    await built(program, pinned=[ref], taskId="t-9", scope={"projectId": "kelp"})
    await built(
        program, intent="Which beacons are permitted?", retrieval=dict.fromkeys(("graph", "semantic", "metadata"))
    )
    page = administrator.page
    rows = page.locator(".packages tbody tr")
    for value, count in (
        ("surveyed URCHINS", 1),
        ("urchins beacons", 0),
        ("for a test", 2),
        (ref, 1),
        ("t-9 kelp", 1),
        ("cpk_", 2),
        ("100%", 0),
    ):
        await page.goto("/ui/packages")
        await page.get_by_label("Search for").fill(value)
        await page.get_by_role("button", name="Find").click()
        await expect(page.get_by_role("heading", name="Anything")).to_contain_text(value)
        await expect(rows).to_have_count(count)


async def test_another_tenants_package_is_not_there(api: ApiServer, program: httpx.AsyncClient, tenant: str) -> None:
    await put(program, "protocol", "Urchins are surveyed in both coves.")
    package_id = await built(program, taskId="t-9")
    async with api.client() as stranger, api.client() as reader:
        await logged_in(api, stranger, api.key(Role.ADMIN, f"{tenant}-club"))
        csrf = token_in((await stranger.get("/ui/packages")).text)
        assert (await stranger.get(f"/ui/packages/{package_id}")).status_code == 404
        sent = {"csrf": csrf, "helped": "artifact:protocol"}
        rated = await stranger.post(f"/ui/packages/{package_id}/feedback", data=sent, headers={"Origin": api.url})
        assert rated.status_code == 404
        for query in ("by=task&value=t-9", "by=ref&value=artifact:protocol"):
            assert package_id not in (await stranger.get(f"/ui/packages?{query}")).text
        await logged_in(api, reader, api.key(Role.READER, tenant))
        opened = await reader.get(f"/ui/packages/{package_id}")
        assert "Somebody else asked for this package" in opened.text
        assert INTENT not in opened.text
        for someone in (stranger, reader):
            assert (await someone.get("/ui/data/places")).json() == []
        assert (await reader.get("/ui/audit")).status_code == 403
        assert (await reader.get("/ui/packages/outcomes")).status_code == 403


async def test_nothing_is_built_or_noted_without_the_forms_token(api: ApiServer, program: httpx.AsyncClient) -> None:
    package_id = await built(program)
    async with api.client() as client:
        await logged_in(api, client, api.key(Role.ADMIN))
        for path in ("/ui/packages", f"/ui/packages/{package_id}/feedback", "/ui/audit"):
            fields = {"intent": INTENT, "budget": "100", "csrf": "guessed"}
            assert (await client.post(path, data=fields, headers={"Origin": api.url})).status_code == 403


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"intent": "x", "budget": "2000001"}, "less than or equal to 2000000"),
        ({"intent": "x", "budget": "1e9"}, "not a whole number"),
        ({"intent": "x" * 8_001, "budget": "10"}, "longer than 8,000"),
        ({"intent": "x", "budget": "10", "others": "a&lt;b"}, "pinned"),
    ],
)
async def test_what_cannot_be_built_is_told(
    api: ApiServer, own_redis: None, tenant: str, fields: dict[str, str], told: str
) -> None:
    async with api.client() as client:
        await logged_in(api, client, api.key(Role.READER, tenant))
        csrf = token_in((await client.get("/ui/packages")).text)
        answer = await client.post("/ui/packages", data={"csrf": csrf, **fields}, headers={"Origin": api.url})
        assert (answer.status_code, told in answer.text) == (422, True), answer.text


@pytest.mark.parametrize("days", ["0", "3651", "-1", "x", "9" * 5_000, "٣"])
async def test_outcomes_of_no_number_of_days_are_refused(
    api: ApiServer, own_redis: None, tenant: str, days: str
) -> None:
    async with api.client() as client:
        await logged_in(api, client, api.key(Role.ADMIN, tenant))
        answer = await client.get("/ui/packages/outcomes", params={"days": days})
        assert (answer.status_code, "from 1 to 3,650" in answer.text) == (422, True)
        assert "No package has an outcome" in (await client.get("/ui/packages/outcomes")).text
