"""The machine's own Chromium, one process for the whole run; each test has a fresh profile in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from context_builder.engines.engine import LOOPBACK, free_port
from context_builder.storage.bounded_http import trusted_authorities

HEADLESS = "/usr/lib/chromium/chromium-headless-shell"
"""Debian's Chromium without a browser's windows, which takes a quarter of the time to show a page."""

NAMES = (HEADLESS, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = "no Chromium: `apt-get install chromium-headless-shell`, or `brew install --cask chromium`"
PATIENCE = 10_000
"""Milliseconds that a page may take for anything."""

expect.set_options(timeout=PATIENCE)

OPTIONS = (
    "--headless=new",
    "--no-sandbox",  # which root cannot have
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-features=SpareRendererForSitePerProcess",  # one more process for each fresh profile
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
)


def program() -> str:
    """The browser's path; without one the test is skipped on a laptop, and fails in CI."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None and os.environ.get("CI"):
        pytest.fail(MISSING)
    if found is None:
        pytest.skip(MISSING)
    return found


class Chromium:
    """A running browser; ``address`` is where Playwright connects."""

    def __init__(self) -> None:
        path = program()
        self._profile = tempfile.mkdtemp(prefix="chromium-")
        port = free_port()
        self.address = f"http://{LOOPBACK}:{port}"
        options = (*OPTIONS, f"--remote-debugging-port={port}", f"--user-data-dir={self._profile}", "about:blank")
        self._process = subprocess.Popen([path, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not self._answers():
            assert self._process.poll() is None, "Chromium has ended"
            assert time.monotonic() < deadline, "Chromium does not answer"
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            answer = httpx.get(f"{self.address}/json/version", verify=trusted_authorities())
            return answer.status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(10)
        shutil.rmtree(self._profile, ignore_errors=True)


class Visitor:
    """Somebody with a browser of their own: ``page`` is what they look at, ``asked`` every address it asked for."""

    def __init__(self, context: BrowserContext, page: Page) -> None:
        self.context = context
        self.page = page
        self.asked: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("console", lambda message: self.complaints.append(message.text) if message.type == "error" else None)
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    """A running browser, and Playwright's driver of it, for as many visitors as one event loop has."""
    chromium = Chromium()
    try:
        async with async_playwright() as playwright:
            yield await playwright.chromium.connect_over_cdp(chromium.address)
    finally:
        chromium.close()


@asynccontextmanager
async def visiting(chromium: Browser, base_url: str, **options: Any) -> AsyncIterator[Visitor]:
    """A visitor of a server; whatever happens, no other host was asked and the page complained of nothing."""
    context = await chromium.new_context(base_url=base_url, **options)
    context.set_default_timeout(PATIENCE)
    visitor = Visitor(context, await context.new_page())
    try:
        yield visitor
    finally:
        await context.close()
    foreign = [address for address in visitor.asked if not address.startswith((base_url, "data:", "about:"))]
    assert not foreign, foreign
    assert not visitor.complaints, visitor.complaints
