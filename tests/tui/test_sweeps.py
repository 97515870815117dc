"""The screens of sweeps: groups with their progress, a row per place, and retries of failed jobs."""

from __future__ import annotations

import pytest

from deepgrid.client import AsyncGrid, JobStatus
from deepgrid.tui.grid_app import GridApp
from deepgrid.tui.screens.sweeps import columns
from tests.client.conftest import cluster as cluster
from tests.client.support import End, SimulatedCluster
from tests.tui.support import NARROW, WIDE, opened, shows, text_of, until

HOSTILE = "\x1b[31mred [b]x"
SWEPT = """
resources: {tasks: 1, cpusPerTask: 1, memPerCpu: 128, gpus: 0}
steps:
  - run: {command: echo $N $TEXT}
"""


async def test_a_sweep_opens_and_its_failed_jobs_are_repeated(
    app: GridApp, grid: AsyncGrid, cluster: SimulatedCluster
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await opened(pilot)
        await pilot.press("w")
        await shows(pilot, "You have no sweeps yet.", "--array 1-100")
        cluster.ends = lambda job: End(status=JobStatus.FAILED if job.id == cluster.began[0] else JobStatus.FINISHED)
        sets = [{"N": 7, "TEXT": HOSTILE}, {"N": 8, "TEXT": "plain"}]
        sweep = await grid.map(SWEPT, sets, credits=100, name="scan", tags=["project=scan"])
        await sweep.wait(timeout="60s")
        await pilot.press("ctrl+r")
        await shows(pilot, sweep.sweep_id[:8], "scan", "1 finished, 1 failed of 2")
        await pilot.press("enter")
        text = await shows(pilot, "N", "TEXT", "red [b]x", "plain", "finished", "1 finished, 1 failed of 2")
        assert "\x1b" not in text
        before = await grid.jobs().count()
        await pilot.press("R")
        await shows(pilot, "Repeat 1 failed job", "It locks 100 credits. [y/N]")
        await pilot.press("n")
        await until(pilot, lambda: "[y/N]" not in text_of(app))
        assert await grid.jobs().count() == before
        await pilot.press("R")
        await shows(pilot, "[y/N]")
        await pilot.press("y")
        await shows(pilot, "Requested 1 job: ")
        assert await grid.jobs().count() == before + 1
        again = max([row async for row in grid.jobs()], key=lambda job: job.id)
        await again.wait(timeout="60s")
        await pilot.press("ctrl+r")
        await shows(pilot, "2 finished of 2")
        await pilot.press("R")
        await shows(pilot, "No job of this sweep has failed.")
        await pilot.press("enter")
        await shows(pilot, f"job {again.id}")
        await pilot.press("q", "q", "q")
        await until(pilot, lambda: "2 finished of 2" not in text_of(app))


@pytest.mark.usefixtures("cluster")
async def test_narrow_screens_leave_out_the_last_parameters(grid: AsyncGrid, app: GridApp) -> None:
    names = [f"LONG_NAME_{number}" for number in range(6)]
    sweep = await grid.map(
        SWEPT.replace("$N", " ".join(f"${name}" for name in names)),
        [dict.fromkeys(names, n) for n in (1, 2)],
        credits=100,
    )
    await sweep.wait(timeout="60s")
    (group,) = await grid.sweeps()
    assert [column.title for column in columns(group)][1:7] == names
    async with app.run_test(size=NARROW) as pilot:
        await opened(pilot)
        await pilot.press("w")
        await shows(pilot, group.id[:8])
        await pilot.press("enter")
        text = await shows(pilot, "of 2", "state", "cost")
        assert "LONG_NAME_5" not in text
