"""Every view can be read without JavaScript."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect
from redis.asyncio import Redis

from context_builder.server.access.caller import Role
from tests.cli.publishing import publish
from tests.cli.samples import sample, sample_state
from tests.server.page.conftest import log_in
from tests.server.page.test_health import with_dead_letters
from tests.server.test_sessions import said
from tests.services.api_server import ApiServer
from tests.services.chromium import Visitor, visiting
from tests.services.running import published, push, running
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines


@pytest_asyncio.fixture(loop_scope="session")
async def reader(api: ApiServer, chromium: Browser, own_redis: None) -> AsyncIterator[Visitor]:
    """An admin whose browser runs no scripts."""
    async with visiting(chromium, api.url, java_script_enabled=False) as visitor:
        await log_in(visitor, api.key(Role.ADMIN))
        yield visitor


async def test_a_package_is_built_and_the_audit_verified(reader: Visitor) -> None:
    page = reader.page
    await page.goto("/ui/packages")
    if not await page.get_by_label("What it is for").is_visible():  # packages were built before
        await page.locator("summary", has_text="Build a package").click()
    await page.get_by_label("What it is for").fill("How are urchins surveyed?")
    await page.get_by_role("button", name="Build").click()
    await expect(page.get_by_role("heading", name="How are urchins surveyed?")).to_be_visible()
    await page.goto("/ui/audit")
    await page.get_by_role("button").filter(has_text="Verify").click()
    await expect(page.locator("main")).to_contain_text("row")


async def test_late_messages_and_corrections_are_in_their_place(redis: Redis, reader: Visitor) -> None:
    async with running(redis):
        await push(redis, said(1, "Wails sing."), said(3, "In the bay."))
        await push(redis, said(1, "Whales sing."), said(2, "Where?"))
        await wait_until(published(redis, lambda now: now["received_messages"] == 3), "all are published")
        await reader.page.goto("/ui/sessions/monday")
    rows = reader.page.locator(".message")
    await expect(rows.locator(".said")).to_have_text(["Whales sing.", "Where?", "In the bay."])
    await expect(rows.locator(".mark")).to_have_text(["correction", "came late"])


async def test_a_prompt_is_shown(redis: Redis, reader: Visitor) -> None:
    await publish(redis, sample(state=sample_state(session_id="point-arlen")))
    page = reader.page
    await page.goto("/ui/prompt?session=point-arlen")
    await page.get_by_label("Tokens at most").fill("3000")
    await page.get_by_role("button", name="Show the prompt").click()
    await expect(page.get_by_role("heading", name="of 3,000 tokens")).to_be_visible()
    await expect(page.locator("#drag")).to_be_hidden()


async def test_health_leads_to_dead_letters(redis: Redis, reader: Visitor) -> None:
    await with_dead_letters(redis, b"no JSON")
    page = reader.page
    await page.goto("/ui/health")
    await page.get_by_role("heading", name="Dead letters").wait_for()
    await page.locator("section", has_text="Dead letters").get_by_role("link", name="monday").click()
    await expect(page.locator(".letters li")).to_have_count(1)


async def test_what_was_said_is_corrected_renamed_and_struck(redis: Redis, reader: Visitor) -> None:
    page = reader.page
    async with running(redis):
        await push(redis, said(1, "Wails sing."), said(2, "Off the record."))
        await wait_until(published(redis, lambda now: now["received_messages"] == 2), "both are published")
        await page.goto("/ui/sessions/monday")
        await page.get_by_role("link", name="Correct", exact=True).click()
        await page.get_by_role("link", name="Wails sing.").click()
        await page.get_by_label("What was said").fill("Whales sing.")
        await page.get_by_role("button", name="Correct").click()
        await expect(page.get_by_role("status")).to_contain_text("The message is corrected.")
        await page.get_by_label("Name until now").select_option("Ida")
        await page.get_by_label("Name from now on").fill("Bo")
        await page.get_by_role("button", name="Rename").click()
        await expect(page.get_by_role("status")).to_contain_text("The speaker is renamed.")
        await page.get_by_role("link", name="Off the record.").click()
        await page.get_by_label("Delete it everywhere").check()
        await page.get_by_role("button", name="Strike").click()
        await expect(page.get_by_role("status")).to_contain_text("The message is struck")
        await page.goto("/ui/sessions/monday/revisions?done=Your+account+is+locked")
        await expect(page.get_by_role("status")).to_have_count(0)
        await page.goto("/ui/sessions/monday/revisions?message=9")
        await expect(page.get_by_role("alert")).to_contain_text("that message is not there any more")
        reader.complaints.clear()  # the browser tells the answer's status

        def struck(now: dict[str, Any]) -> bool:
            return [(one["speaker"], one["text"]) for one in now["raw_recent_buffer"]] == [("Bo", "Whales sing.")]

        await wait_until(published(redis, struck), "all of it is done")


async def test_a_session_whose_first_messages_wait_can_be_opened_to_correct(redis: Redis, reader: Visitor) -> None:
    await push(redis, said(1, "Whales sing."), session_id="waiting")
    await reader.page.goto("/ui/sessions/waiting")
    await reader.page.get_by_role("link", name="Correct", exact=True).click()
    await expect(reader.page.locator("main")).to_contain_text("No message is there.")


async def test_what_is_not_there_leads_to_the_view_that_it_would_be_in(reader: Visitor) -> None:
    page = reader.page
    for path, view in (("packages/cpk_none", "Packages"), ("recordings/none", "Back in time"), ("none", "Sessions")):
        await page.goto(f"/ui/{path}")
        await page.get_by_role("link", name=f"Go to {view}").click()
        await expect(page.get_by_label("Views", exact=True).locator("[aria-current]")).to_contain_text(view)
    await page.goto("/ui/audit")
    await expect(page.get_by_label("Views", exact=True).locator("[aria-current]")).to_contain_text("Packages")
    reader.complaints.clear()  # the browser tells the answers' status
