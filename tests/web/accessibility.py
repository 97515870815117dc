"""Checks of a page in the browser: serious faults that axe-core finds, and sideways scrolling."""

from __future__ import annotations

from pathlib import Path

from playwright.async_api import Page

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")


async def faults_of(page: Page) -> list[str]:
    """Return serious faults of accessibility, each with its element. The page must have loaded `AXE`."""
    found = await page.evaluate("axe.run(document)")
    assert found["passes"], "axe has checked nothing"
    return [
        f"{one['id']}: {node['html'][:120]}"
        for one in found["violations"]
        if one["impact"] in SERIOUS
        for node in one["nodes"]
    ]


async def overflow_of(page: Page, width: int) -> list[str]:
    """Return what is wrong if the page scrolls sideways at this width, in pixels."""
    await page.set_viewport_size({"width": width, "height": 900})
    wide = await page.evaluate("document.documentElement.scrollWidth")
    return [] if wide <= width else [f"is {wide} pixels wide"]
