"""axe-core looks at a page as it is: in light and dark, on a wide screen and on a phone."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from playwright.async_api import Page

WIDE = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
BETWEEN = ({"width": 768, "height": 1024}, {"width": 981, "height": 700})
"""A tablet, and a window in which the navigation just stands in one row with the rest."""
RULES = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}


CONTRAST = {"type": "rule", "values": ["color-contrast"]}


async def load_axe(page: Page) -> None:
    """Load it through the debugger: the page's policy lets no foreign script in."""
    await page.wait_for_load_state()
    await page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text())


async def faults(page: Page, rules: dict[str, Any]) -> list[str]:
    """What axe finds at all, with the element; nothing should be."""
    options = {"runOnly": rules}
    found: dict[str, Any] = await page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{one['id']}: {node['html'][:200]} {node.get('failureSummary', '')}"
        for one in found["violations"]
        for node in one["nodes"]
    ]


async def too_wide(page: Page) -> int:
    """How many pixels hang out at the side."""
    return int(await page.evaluate("document.documentElement.scrollWidth - innerWidth"))


async def check_in_every_dress(page: Page) -> None:
    """Assert that nothing is wrong in light and dark, wide and narrow, and that nothing hangs out at the side.

    In the dark only contrasts are another matter.
    """
    await load_axe(page)
    for scheme, rules in (("light", RULES), ("dark", CONTRAST)):
        await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        for size in (WIDE, PHONE):
            await page.set_viewport_size(size)  # type: ignore[arg-type]
            found = await faults(page, rules)
            assert not found, f"{scheme} {size}: {found}"
            assert await too_wide(page) <= 0, f"{scheme} {size}"
    for size in BETWEEN:
        await page.set_viewport_size(size)  # type: ignore[arg-type]
        assert await too_wide(page) <= 0, size
    await page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    await page.emulate_media(color_scheme="light")
