"""One job: its life with remarks, why it waits, its bill, and the possible actions."""

from __future__ import annotations

from deepgrid.client import AsyncGrid, JobStatus
from deepgrid.tui.grid_app import GridApp
from tests.appending import push_log
from tests.cli.live import EXAMPLE
from tests.client.stage import Stage
from tests.tui.support import NARROW, WIDE, choose, fill, shows, text_of, until


async def test_life_remarks_and_bill(app: GridApp, grid: AsyncGrid, stage: Stage) -> None:
    job = await grid.submit(EXAMPLE, credits=100, name="tale", affinities=["os:in:lin"])
    await stage.operator.services.post_notice(job.id, "waiting", "every cluster is full")
    async with app.run_test(size=NARROW) as pilot:
        await choose(pilot, job)
        await pilot.press("v")
        await shows(pilot, "waits for   every cluster is full", "100 credits locked", "os:in:lin")
        await stage.run(job)
        await shows(pilot, "claimed by alpha", "on alpha")
        await stage.provider.writer.settle(job.id, JobStatus.FAILED, 1, "no such file", 512)
        await shows(pilot, "outcome     exit status 2: no such file", "returned")
        await pilot.press("G")
        await shows(pilot, "failed")
        await pilot.press("y")
        assert app.clipboard == str(job.id)
        await pilot.press("enter")
        await shows(pilot, f"Log of job {job.id} (tale), failed")


async def test_a_wide_screen_shows_the_end_of_the_log_beside(app: GridApp, grid: AsyncGrid, stage: Stage) -> None:
    job = await grid.submit(EXAMPLE, credits=100)
    await stage.run(job)
    await push_log(stage.provider.services, job.id, 0, b"one\ntwo\n")
    async with app.run_test(size=WIDE) as pilot:
        await choose(pilot, job)
        await pilot.press("v")
        await shows(pilot, "claimed by alpha", "two")


async def test_cancelling_asks_with_the_fee_and_only_y_means_yes(app: GridApp, grid: AsyncGrid, stage: Stage) -> None:
    job = await grid.submit(EXAMPLE, credits=100, name="train")
    await stage.run(job)
    async with app.run_test(size=NARROW) as pilot:
        await choose(pilot, job)
        await until(pilot, lambda: "running" in text_of(app))
        for key in ("n", "enter", "escape", "q"):
            await pilot.press("c")
            await shows(pilot, f"Cancel job {job.id} (train)? at least 5 minutes are billed [y/N]")
            await pilot.press(key)
            await until(pilot, lambda: "[y/N]" not in text_of(app))
        assert not (await job.refresh()).on_chain.has_cancel_request
        await pilot.press("c", "y")
        await shows(pilot, f"The cluster of job {job.id} was asked to stop it", "cancelling")
        assert (await job.refresh()).on_chain.has_cancel_request
        await pilot.press("c")
        await shows(pilot, "that was requested already; its cluster has until")
        await pilot.press("t")
        await shows(pilot, "cannot be topped up: its cancellation was requested")


async def test_a_job_that_waits_is_cancelled_at_once(app: GridApp, grid: AsyncGrid) -> None:
    job = await grid.submit(EXAMPLE, credits=100, name="idle")
    async with app.run_test(size=NARROW) as pilot:
        await choose(pilot, job)
        await pilot.press("t")
        await shows(pilot, "cannot be topped up: no cluster has claimed it")
        await pilot.press("c")
        await shows(pilot, "nothing is billed, unless a cluster claims it first")
        await pilot.press("y")
        await shows(pilot, f"Job {job.id} is cancelled", "1000 credits")
        await pilot.press("c")
        await shows(pilot, "cannot be cancelled: it is over")


async def test_a_top_up_shows_what_it_buys_and_asks(app: GridApp, grid: AsyncGrid, stage: Stage) -> None:
    job = await grid.submit(EXAMPLE, credits=100, name="long")
    await stage.run(job)
    async with app.run_test(size=NARROW) as pilot:
        await choose(pilot, job)
        await until(pilot, lambda: "running" in text_of(app))
        await pilot.press("t")
        await shows(pilot, "credits per minute")
        await fill(pilot, amount="1e3")
        await shows(pilot, "1e3")
        await pilot.press("enter")
        assert "[y/N]" not in text_of(app)
        app.screen.query_one("#amount").value = "50.5"  # type: ignore[attr-defined]
        await shows(pilot, "849.5 credits stay with you", "buys        about")
        await pilot.press("enter")
        await shows(pilot, "50.5 credits more", "0x", "849.5 credits are left. [y/N]")
        await pilot.press("y")
        await shows(pilot, f"Job {job.id} has 150.5 credits locked now", "849.5 credits")
        assert str((await job.refresh()).locked) == "150.5"
