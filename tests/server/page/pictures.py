"""Takes the pictures of the documentation: ``python -m tests.server.page.pictures``, which plays the demo for them.

With a folder as argument it takes whole pages there instead, in light, in dark and as on a phone: to look at.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from playwright.async_api import Page, ViewportSize

from context_builder.cli.demo import BUDGET, INTENT, PROJECT
from context_builder.demo import load_demo_document
from tests.server.page.conftest import log_in
from tests.services.chromium import browsing, visiting
from tests.services.daemon import ROOT, Daemon
from tests.services.waiting import wait_until

FOLDER = ROOT / "docs" / "images"
SIZE: ViewportSize = {"width": 1000, "height": 600}
TALL: ViewportSize = {"width": 1000, "height": 900}
"""For views whose results stand below a form."""
PATIENT: Mapping[str, object] = {"retrieval_time": 5, "context_deadline": 8, "embedded_embeddings": "true"}
"""Settings with which nothing is left out, on a machine that may be busy."""
POINTS = 12
"""Points that the summary has when it is taken."""
LOOKS: Mapping[str, tuple[ViewportSize, Literal["light", "dark"]]] = {
    "light": ({"width": 1280, "height": 800}, "light"),
    "dark": ({"width": 1280, "height": 800}, "dark"),
    "phone": ({"width": 390, "height": 844}, "light"),
}


async def take(daemon: Daemon, folder: Path | None) -> None:
    """Write a picture of each view into the folder of the documentation, or of each look into ``folder``."""
    await wait_until(lambda: "is talking" in daemon.output, "the demo has begun", timeout=60)
    found = re.search(r"(\S+) is talking: (http://\S+)", daemon.output)
    assert found, daemon.output
    session_id, address = found.groups()
    parts = urlsplit(address)
    async with browsing() as browser, visiting(browser, f"{parts.scheme}://{parts.netloc}", viewport=SIZE) as visitor:
        page = visitor.page
        page.set_default_timeout(60_000)  # on a machine that may be busy
        await page.goto("/ui/login")
        if folder is None:
            await page.screenshot(path=FOLDER / "page-login.png")
        await log_in(visitor, (daemon.folder / "home/serve.token").read_text().strip())
        async for name in views(page, session_id):
            if folder is None:
                await page.screenshot(path=FOLDER / f"page-{name}.png")
                continue
            for look, (size, colours) in LOOKS.items():
                await page.set_viewport_size(size)
                await page.emulate_media(color_scheme=colours)
                await page.screenshot(path=folder / f"{name}-{look}.png", full_page=True)
            await page.set_viewport_size(SIZE)
            await page.emulate_media(color_scheme="light")


async def views(page: Page, session_id: str) -> AsyncIterator[str]:
    """Yield each view's name, while it is shown."""
    await page.goto(f"/ui/sessions/{session_id}")
    await page.locator(".point").nth(POINTS).wait_for(timeout=60_000)
    await page.locator(".point-button").first.click()
    await page.locator(".message.lit").first.wait_for()
    await page.evaluate("scrollTo(0, 0)")
    yield "session"
    await page.goto("/ui/sessions")
    await page.locator("[data-live=on]").wait_for()
    yield "sessions"
    await page.goto("/ui/health")
    yield "health"
    await page.goto("/ui/memory")
    yield "memory"
    await page.goto(f"/ui/recordings/{session_id}")
    await page.locator("#moment").wait_for()
    yield "recording"
    await page.goto(f"/ui/prompt?session={session_id}")
    await page.get_by_role("textbox", name="Message").fill("What do we need before the beacon may be mounted?")
    async with page.expect_response(lambda answer: answer.request.method == "POST"):
        await page.get_by_role("button", name="Show the prompt").click()
    await page.get_by_role("heading", name="As it would go out").wait_for()
    await page.set_viewport_size(TALL)
    yield "prompt"
    await page.set_viewport_size(SIZE)
    await page.goto(f"/ui/packages?project={PROJECT}")  # opens the form
    await page.get_by_label("What it is for").fill(INTENT)
    await page.get_by_label("Tokens at most").fill(str(BUDGET))
    await page.get_by_text("Conversations to look in first").click()
    await page.get_by_label(session_id).check()
    await page.get_by_role("button", name="Build").click()
    await page.get_by_role("heading", name="What is in it").wait_for()
    await page.set_viewport_size(TALL)
    yield "package"
    await page.set_viewport_size(SIZE)
    await page.goto("/ui/packages")
    yield "packages"
    await page.goto("/ui/audit")
    await page.get_by_role("button", name="Verify it now").click()
    await page.get_by_role("status").wait_for()
    yield "audit"
    await page.goto("/ui/recordings")
    yield "recordings"


def prepare(home: Path) -> None:
    """Store a document, and make the folder for recordings."""
    documents = home / "documents"
    documents.mkdir()
    (documents / "permits.md").write_text(load_demo_document(), encoding="utf-8")
    _run(home, "ingest", str(documents), "--project", PROJECT)
    (home / "recordings").mkdir()


def _run(home: Path, *arguments: str) -> None:
    with Daemon(home, *arguments, **PATIENT) as command:
        assert command.wait(120) == 0, command.output


def main() -> None:
    """Play the demo, and take all pictures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    (folder or FOLDER).mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o755)  # the database's own user enters it, too
        prepare(Path(home))
        settings = {**PATIENT, "record_dir": Path(home, "recordings")}
        with Daemon(Path(home), "demo", "--page", "--speed", "12", **settings) as daemon:
            asyncio.run(take(daemon, folder))
            daemon.stop()
        with Daemon(Path(home), "engines", "stop") as engines:
            engines.wait(60)


if __name__ == "__main__":
    main()
