"""axe-core looks at a page as it is: in light and dark, on a wide screen and on a phone."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from playwright.async_api import Page

WIDE = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


async def faults(page: Page) -> list[str]:
    """What axe finds at all, with the element; nothing should be."""
    await page.wait_for_load_state()
    script = (files("axe_playwright_python") / "axe.min.js").read_text()
    await page.evaluate(script)  # through the debugger: the page's policy lets no foreign script in
    options = {"runOnly": {"type": "tag", "values": RULES}}
    found: dict[str, Any] = await page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{one['id']}: {node['html'][:200]} {node.get('failureSummary', '')}"
        for one in found["violations"]
        for node in one["nodes"]
    ]


async def check_in_every_dress(page: Page) -> None:
    """Assert that nothing is wrong in light and dark, wide and narrow, and that nothing hangs out at the side."""
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        for size in (WIDE, PHONE):
            await page.set_viewport_size(size)  # type: ignore[arg-type]
            found = await faults(page)
            assert not found, f"{scheme} {size}: {found}"
            wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{scheme} {size}: {wide} pixels too wide"
    await page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    await page.emulate_media(color_scheme="light")
