"""Takes the pictures of the documentation: ``python -m tests.server.page.pictures``, which plays the demo for them."""

from __future__ import annotations

import asyncio
import re
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from playwright.async_api import Page

from tests.services.chromium import Chromium, visiting
from tests.services.daemon import ROOT, Daemon
from tests.services.waiting import wait_until

FOLDER = ROOT / "docs" / "images"
SIZE = {"width": 1000, "height": 600}
POINTS = 12
"""Points that the summary has when it is taken."""


async def take(chromium: Chromium, daemon: Daemon) -> None:
    """Write a picture of each view into the folder of the documentation."""
    await wait_until(lambda: "login?code=" in daemon.output, "the demo has begun", timeout=60)
    found = re.search(r"(\S+) is talking: (http://\S+)", daemon.output)
    assert found, daemon.output
    session_id, address = found.groups()
    parts = urlsplit(address)
    async with visiting(chromium, f"{parts.scheme}://{parts.netloc}", viewport=SIZE) as visitor:
        page = visitor.page
        await page.goto("/ui/login")
        await _write(page, "login")
        await page.goto(address)
        await page.goto(f"/ui/sessions/{session_id}")
        await page.locator(".point").nth(POINTS).wait_for(timeout=60_000)
        await page.locator(".point-button").first.click()
        await page.locator(".message.lit").first.wait_for()
        await page.evaluate("scrollTo(0, 0)")
        await _write(page, "session")
        await page.goto("/ui/sessions")
        await page.locator("[data-live=on]").wait_for()
        await _write(page, "sessions")
        await page.goto("/ui/health")
        await _write(page, "health")
        await page.goto("/ui/memory")
        await _write(page, "memory")
        await page.goto(f"/ui/recordings/{session_id}")
        await page.locator("#moment").wait_for()
        await _write(page, "recording")


async def _write(page: Page, name: str) -> None:
    await page.screenshot(path=FOLDER / f"page-{name}.png")


def main() -> None:
    """Play the demo, and take all pictures."""
    FOLDER.mkdir(exist_ok=True)
    chromium = Chromium()
    try:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o755)  # the database's own user enters it, too
            with Daemon(Path(folder), "demo", "--page", "--speed", "12", record_dir=f"{folder}/recordings") as daemon:
                asyncio.run(take(chromium, daemon))
                daemon.stop()
    finally:
        chromium.close()


if __name__ == "__main__":
    main()
