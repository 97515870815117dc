"""The market: prices for a shape of job, records, the estimator."""

from __future__ import annotations

from deepgrid.tui.grid_app import GridApp
from deepgrid.tui.screens.cluster_list import ClustersScreen
from deepgrid.tui.screens.jobs import JobsScreen
from tests.client.stage import Stage
from tests.tui.support import NARROW, WIDE, opened, shows, text_of, until


async def test_clusters_with_prices_and_an_estimate(app: GridApp, stage: Stage) -> None:
    async with app.run_test(size=NARROW) as pilot:
        await opened(pilot)
        await pilot.press("p")
        await shows(pilot, "prices for 1 x 1 CPU, 1000 MB per CPU, 0 GPU", "alpha", "1.5")
        await pilot.press("y")
        assert app.clipboard.startswith("0x")
        await pilot.press("G", "enter")
        await shows(pilot, "1.5 credits per minute", "100 credits last 66 minutes (1h06m)", "os=linux")
        await pilot.press("backspace", *"2", "enter", "enter", "enter", "enter", "backspace", "backspace", "backspace")
        await pilot.press(*"9")
        await shows(pilot, "3 credits per minute", "9 credits last 3 minutes (3m)")
        await pilot.press("backspace", *"x")
        await shows(pilot, "is not an amount")
        await pilot.press("escape")
        await shows(pilot, "prices for 2 x 1 CPU")
        assert isinstance(app.screen, ClustersScreen)
        await until(pilot, lambda: " 3 " in text_of(app))
        await pilot.press("q")
        assert isinstance(app.screen, JobsScreen)


async def test_a_wide_screen_shows_the_chosen_cluster_beside(app: GridApp, stage: Stage) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await opened(pilot)
        await pilot.press("p")
        await shows(pilot, "hardware", "started, 0 refused")
