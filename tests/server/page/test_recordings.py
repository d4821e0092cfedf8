"""Back in time: any instant of a recording, played at speed; this tenant's, in the folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from playwright.async_api import Browser, expect

from context_builder.server.access.caller import Role
from context_builder.server.page.views.recordings import strip
from tests.recording.written import WrittenRecording
from tests.server.page.accessibility import PHONE, check_in_every_dress
from tests.server.page.conftest import logged_in, visiting_as
from tests.server.page.hostile import TEXTS, not_isolated
from tests.services.api_server import ApiServer
from tests.services.chromium import Visitor

pytestmark = pytest.mark.engines

SAID = [f"Urchin survey {number} of the northern cove" for number in range(1, 61)]


@pytest.fixture
def folder(api: ApiServer) -> Iterator[Path]:
    api.recordings.mkdir(exist_ok=True)
    yield api.recordings
    for path in api.recordings.iterdir():
        path.unlink()


@pytest.fixture
def monday(folder: Path) -> WrittenRecording:
    written = WrittenRecording(folder / "monday.jsonl", "monday")
    written.say(SAID)
    written.write()
    return written


def test_talk_still_shows_beside_a_backlog_that_came_at_once() -> None:
    moment = SimpleNamespace(talk=(100, 0, 1), summaries=())
    backlog, one = strip(moment).bars  # type: ignore[arg-type]
    assert one.height * 10 == pytest.approx(backlog.height, rel=0.05)


async def test_one_goes_to_any_instant_and_plays_on(monday: WrittenRecording, visitor: Visitor) -> None:
    page = visitor.page
    await page.goto("/ui/recordings")
    await check_in_every_dress(page)
    await page.get_by_role("link", name="monday").click()
    messages = page.locator(".messages")
    await expect(messages).to_contain_text("survey 60 of")
    await expect(page.locator(".points")).to_contain_text("Said: Urchin survey 1 of")
    assert await messages.locator("li").count() > 20
    assert 0 < await messages.locator("li:has(.chip)").count() < 6  # a domain is named only where it changes
    await page.locator("#at").fill("40")
    await expect(messages.locator("li")).to_have_count(10)
    await expect(messages).not_to_contain_text("survey 11 of")
    await expect(page.locator(".instant")).to_contain_text("0:40 of 4:00 2023")
    await expect(page.locator(".instant")).to_contain_text("22:14:00 UTC")
    assert await page.evaluate("document.documentElement.scrollHeight <= innerHeight")
    await page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    assert await page.evaluate("document.documentElement.scrollHeight") < 1.25 * PHONE["height"]
    await expect(page.locator(".points")).to_be_hidden()
    marks = page.locator(".finished path")
    assert set(await marks.evaluate_all("all => all.map((one) => one.getBoundingClientRect().width)")) == {8}
    await check_in_every_dress(page)
    await page.get_by_role("link", name="Next message").click()
    await expect(messages.locator("li")).to_have_count(11)
    await page.get_by_role("link", name="Previous message").click()
    await expect(messages.locator("li")).to_have_count(10)
    await page.get_by_label("Speed").select_option("60×")
    await page.get_by_role("button", name="Play").click()
    await expect(messages).to_contain_text("survey 60 of")
    await expect(page.get_by_role("button", name="Play")).to_be_visible()  # it stops at the end by itself
    assert "at=240.0" in page.url
    await page.locator("#at").focus()
    await page.keyboard.press("Home")
    await expect(page.locator(".instant")).to_contain_text("22:13:20 UTC")


async def test_it_works_without_scripts(api: ApiServer, chromium: Browser, monday: WrittenRecording) -> None:
    async with visiting_as(chromium, api, api.key(), java_script_enabled=False) as visitor:
        page = visitor.page
        await page.goto("/ui/recordings/monday?at=40")
        await expect(page.locator(".messages li")).to_have_count(10)
        await page.get_by_role("link", name="Next message").click()
        await expect(page.locator(".messages li")).to_have_count(11)
        await page.get_by_role("button", name="Go there").click()
        await expect(page.locator(".messages li")).to_have_count(11)
        await expect(page.get_by_role("button", name="Play")).to_be_hidden()


async def test_a_session_leads_to_its_recording_and_its_prompt(api: ApiServer, monday: WrittenRecording) -> None:
    async with api.client() as client:
        await logged_in(api, client, api.key())
        for path, target in (
            ("/ui/sessions/monday/recording", "/ui/recordings/monday"),
            ("/ui/sessions/tuesday/recording", "/ui/recordings"),
            ("/ui/sessions/monday/prompt", "/ui/prompt?session=monday"),
        ):
            assert (await client.get(path)).headers["location"] == target


async def test_whatever_was_said_is_text(folder: Path, visitor: Visitor) -> None:
    written = WrittenRecording(folder / "hostile.jsonl", "hostile")
    speakers = tuple(text.replace("\x00", "")[:100] for text in TEXTS)
    written.say([text.replace("\x00", "") for text in TEXTS], speakers=speakers)
    written.write()
    page = visitor.page
    await page.goto("/ui/recordings/hostile")
    assert "owned" not in await page.title()
    assert await page.locator("main").locator("script, img, iframe, b, #owned").count() == 0
    assert await not_isolated(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await page.locator("#at").fill("20")
    await expect(page.locator(".messages li")).to_have_count(5)
    assert await page.locator("#moment").locator("script, img, iframe, b, #owned, svg").count() == 0


async def test_recordings_are_those_of_the_servers_own_tenant(api: ApiServer, monday: WrittenRecording) -> None:
    async with api.client() as client:
        await logged_in(api, client, api.key(Role.ADMIN, "club"))
        assert "monday" not in (await client.get("/ui/recordings")).text
        assert (await client.get("/ui/recordings/monday")).status_code == 404


async def test_nothing_outside_of_the_folder_is_opened(api: ApiServer, monday: WrittenRecording, folder: Path) -> None:
    monday.path.rename(folder.parent / "outside.jsonl")
    (folder / "linked.jsonl").symlink_to(folder.parent / "outside.jsonl")
    async with api.client() as client:
        await logged_in(api, client, api.key())
        assert "linked" not in (await client.get("/ui/recordings")).text
        for name in (
            "linked",
            "..%2Foutside",
            "../outside",
            "..",
            "%2Fetc%2Fpasswd",
            "outside.jsonl",
            "a" * 200,
            "%00",
        ):
            assert (await client.get(f"/ui/recordings/{name}")).status_code in (303, 404, 422), name
    (folder.parent / "outside.jsonl").unlink()


async def test_what_is_no_recording_is_told(api: ApiServer, folder: Path) -> None:
    (folder / "broken.jsonl").write_text("a secret that is no recording\n")
    async with api.client() as client:
        await logged_in(api, client, api.key())
        answer = await client.get("/ui/recordings/broken")
        assert (answer.status_code, "is not a recording" in answer.text) == (409, True)
        assert str(folder) not in answer.text


@pytest.mark.parametrize("at", ["-5", "1e308", "nan", "inf", "-inf", "x", "", "9" * 400])
async def test_any_instant_is_within_the_recording(api: ApiServer, monday: WrittenRecording, at: str) -> None:
    async with api.client() as client:
        await logged_in(api, client, api.key())
        assert (await client.get("/ui/recordings/monday", params={"at": at})).status_code == 200


async def test_of_several_wishes_the_last_is_met_also_after_one_failed(visitor: Visitor) -> None:
    done = await visitor.page.evaluate("""async () => {
      const { latest } = await import("/ui/static/refresh.js");
      const done = [];
      const wish = latest(async (one) => {
        done.push(one);
        await new Promise((resolve) => setTimeout(resolve, 20));
        if (one === "fails") throw new Error("no answer");
      });
      const first = wish("fails").catch(() => null);
      await first;
      const second = wish(1);
      wish(2);
      wish(3);
      await second;
      return done;
    }""")
    assert done == ["fails", 1, 3]
