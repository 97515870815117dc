"""An administrator's questions, and where both of Prefect's user interfaces answer each within three clicks.

The clicks begin at the dashboard. Typing into a search field that a click has opened is no click.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from PIL import Image, ImageDraw
from playwright.async_api import Locator, Page, expect

from tests.grid.prefect_ui import PATIENCE_MS

MOST_CLICKS = 3
PICTURES = "DEEPGRID_PICTURES"  # in the environment: the folder that takes a picture of each answer
COLOURS = 48
UNTAGGED = "meta-schedule"  # a run that has no tag of a job, and is in each list without a filter
MARK, MARK_WIDTH, MARK_DISTANCE = "#d6336c", 3, 5
SAYS_NOTHING = "Finished in state Completed()"  # of each step, in the log of a run

Version = Literal["v1", "v2"]
Facts = Mapping[str, str]


class Desk:
    """One of Prefect's user interfaces, as a person uses it. It counts the clicks."""

    def __init__(self, page: Page, url: str, version: Version) -> None:
        self.page = page
        self.version = version
        self.clicks = 0
        self._start = f"{url}/dashboard" if version == "v1" else f"{url}/v2/dashboard"

    async def begin(self) -> None:
        """Open the dashboard."""
        self.clicks = 0
        await self.page.goto(self._start)

    async def menu(self, name: str) -> None:
        """Open a page of the menu."""
        await self._click(self.page.locator("a").get_by_text(name, exact=True).first)

    async def run(self, name: str) -> None:
        """Open the newest run with this name in the list of runs."""
        await self._click(self.page.locator("a").get_by_text(name, exact=True).first)

    async def deployment(self, flow: str) -> None:
        """Open the deployment of a flow of alpha in the list of deployments."""
        row = self.page.get_by_role("row").filter(has_text=flow).filter(has_text="alpha").first
        await self._click(row.locator("a").get_by_text("alpha", exact=True).first)

    async def tag(self, tag: str) -> None:
        """Show only runs with this tag."""
        if self.version == "v1":
            await self._click(self.page.get_by_text("All tags").first)
            await self.page.keyboard.type(tag)
            await self._click(self.page.locator(".p-select-option").filter(has_text=tag).last)
            await self.page.keyboard.press("Escape")
        else:
            box = self.page.get_by_placeholder("All tags")
            await self._click(box)
            await box.fill(tag)
            await box.press("Enter")
        await expect(self.page.locator("a").get_by_text(UNTAGGED, exact=True)).to_have_count(0, timeout=PATIENCE_MS)

    async def reads(self, answer: re.Pattern[str]) -> Locator:
        """Wait until the page shows the answer within three clicks, and return its place."""
        found = self.page.get_by_text(answer).locator("visible=true").first
        await expect(found).to_be_visible(timeout=PATIENCE_MS)
        assert self.clicks <= MOST_CLICKS, self.clicks
        return found

    async def _click(self, target: Locator) -> None:
        self.clicks += 1
        await target.click(timeout=PATIENCE_MS)


async def keep_picture(desk: Desk, answer: Locator, name: str) -> None:
    """Mark the answer, and write a small picture of the page into the folder that the environment names."""
    if not (folder := os.environ.get(PICTURES)):
        return
    await desk.page.wait_for_timeout(1500)  # until diagrams have their place
    await answer.evaluate("place => place.scrollIntoView({block: 'center'})")
    await desk.page.wait_for_timeout(500)
    picture = Image.open(io.BytesIO(await desk.page.screenshot())).convert("RGB")
    box = await answer.bounding_box()
    assert box
    corners = (box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"])
    assert corners[1] >= 0 and corners[3] <= picture.height, f"the picture {name} does not show its answer"
    frame = [at + (MARK_DISTANCE if number > 1 else -MARK_DISTANCE) for number, at in enumerate(corners)]
    ImageDraw.Draw(picture).rectangle(frame, outline=MARK, width=MARK_WIDTH)
    Path(folder).mkdir(parents=True, exist_ok=True)
    picture.quantize(COLOURS).save(Path(folder) / f"{name}-{desk.version}.png", optimize=True)


@dataclass(frozen=True)
class Question:
    """A question, the clicks that lead to its answer, and the answer as the page shows it. `facts` fill in names."""

    name: str
    asks: str
    path: Callable[[Desk, Facts], Awaitable[None]]
    answer: str  # a regular expression with names of facts in braces

    async def ask(self, desk: Desk, facts: Facts) -> None:
        """Find the answer, beginning at the dashboard."""
        await desk.begin()
        await self.path(desk, facts)
        pattern = re.sub(r"\{(\w+)\}", lambda name: re.escape(facts[name[1]]), self.answer)
        found = await desk.reads(re.compile(pattern))
        await expect(desk.page.get_by_text(SAYS_NOTHING)).to_have_count(0)
        await keep_picture(desk, found, self.name)


async def run_of_job(desk: Desk, facts: Facts) -> None:
    await desk.menu("Runs")
    await desk.run(f"job {facts['job']} on alpha")


async def runs_of_customer(desk: Desk, facts: Facts) -> None:
    await desk.menu("Runs")
    await desk.tag(f"customer:{facts['customer']}")


async def failed_runs(desk: Desk, _: Facts) -> None:
    await desk.menu("Runs")
    await desk.tag("failed")


async def variables(desk: Desk, _: Facts) -> None:
    await desk.menu("Variables")


async def deployed_benchmark(desk: Desk, _: Facts) -> None:
    await desk.menu("Deployments")
    await desk.deployment("benchmark_cluster")


def newest_run(flow: str, name: str) -> Callable[[Desk, Facts], Awaitable[None]]:
    """Return the path to the newest run of a flow. The list of a deployment has runs of any age."""

    async def path(desk: Desk, facts: Facts) -> None:
        await desk.menu("Deployments")
        await desk.deployment(flow)
        await desk.run(name.format_map(facts))

    return path


WHY_FAILED = Question(
    "job", "Why did job N fail?", run_of_job, "ended as FAILED with exit status 7 after [0-9]+ s: minutes=1"
)
QUESTIONS = (
    WHY_FAILED,
    Question("job-earned", "What did it earn?", run_of_job, r"settled as failed: minutes=1 earned=[0-9.]+ cut="),
    Question("job-node", "On which node did it run?", run_of_job, r"started at .* UTC on alpha-n[12]"),
    Question("customer", "Which jobs of customer X ran yesterday?", runs_of_customer, r"{yesterday} [0-9:]+\s(AM|PM)"),
    Question("failed", "Which jobs failed this week, and by whose fault?", failed_runs, "^fault:job$"),
    Question(
        "collector",
        "What did the garbage collector do?",
        newest_run("collect_zombies", "collect zombies of alpha"),
        r"done: ended .*slurm_id=[0-9]+ .*it belongs to no claim",
    ),
    Question("claiming", "Is the cluster claiming, and if not, why?", variables, "No: alpha is drained"),
    Question("next-benchmark", "When does the next benchmark run?", deployed_benchmark, r"{next_run}"),
    Question(
        "march",
        "How fast was the cluster in March?",
        newest_run("benchmark_cluster", "benchmark alpha"),
        r"medians of {march}: compute\.gflops=12\.50",
    ),
    Question(
        "books",
        "Do the books agree?",
        newest_run("reconcile_billing", "reconcile billing of alpha"),
        r"[0-9]+ jobs? agree, and the totals balance to the wei",
    ),
    Question(
        "payer",
        "Who paid most last month?",
        newest_run("report_usage", "usage of alpha, {period}"),
        r"; {customer} paid most: [0-9.]+ credits",
    ),
    Question(
        "offer",
        "What changed in my offer?",
        newest_run("register_provider", "register alpha"),
        r"done: proposed change: cluster=alpha: credits per CPU and minute: [0-9.]+ -> [0-9.]+",
    ),
)
