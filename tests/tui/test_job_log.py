"""The output of a job: it follows, moves, searches, shows times, wraps, is saved, and is shown for ended jobs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from textual.app import App, ComposeResult
from textual.widgets import Input

from deepgrid.client import AsyncGrid, AsyncJob, JobStatus
from deepgrid.tui.grid_app import GridApp
from deepgrid.tui.screens.job_log import LogScreen
from deepgrid.tui.screens.jobs import JobsScreen
from deepgrid.tui.widgets.log_view import LogView
from tests.appending import push_log
from tests.cli.live import EXAMPLE
from tests.client.stage import Stage
from tests.tui.support import NARROW, choose, lines_of, shows, text_of


@pytest.fixture
async def running(grid: AsyncGrid, stage: Stage) -> AsyncJob:
    job = await grid.submit(EXAMPLE, credits=100, name="talks")
    await stage.run(job)
    return job


async def test_the_log_follows_a_running_job_until_its_end(app: GridApp, running: AsyncJob, stage: Stage) -> None:
    services = stage.provider.services
    async with app.run_test(size=NARROW) as pilot:
        await choose(pilot, running)
        await pilot.press("enter")
        await shows(pilot, "No output yet")
        first = b"".join(b"line %d\n" % number for number in range(50))
        await push_log(services, running.id, 0, first)
        await shows(pilot, "line 49", "50 lines, following")
        assert "line 3\n" not in text_of(app)
        await pilot.press("g")
        await shows(pilot, "line 0", "paused, G follows")
        await push_log(services, running.id, len(first), b"the last one\n", final=True)
        await shows(pilot, "51 lines, complete")
        assert "the last one" not in text_of(app)
        await pilot.press("G")
        await shows(pilot, "the last one")
        await pilot.press("q")
        assert isinstance(app.screen, JobsScreen)


async def test_ended_jobs_have_their_log_and_l_peeks_at_it(
    app: GridApp, running: AsyncJob, stage: Stage, tmp_path: Path
) -> None:
    output = b"".join(b"line %d\n" % number for number in range(30)) + b"\x1b[31mred\x1b[0m \x1b]0;title\x07end\n"
    await push_log(stage.provider.services, running.id, 0, output, final=True)
    await stage.provider.writer.settle(running.id, JobStatus.FINISHED, 1)
    async with app.run_test(size=NARROW) as pilot:
        await choose(pilot, running)
        await pilot.press("l")
        await shows(pilot, f"Last lines of job {running.id}", "line 29", "red end")
        await pilot.press("l", "enter")
        await shows(pilot, "31 lines, complete", "red end")
        await pilot.press("s")
        field = app.screen.query_one("#ask", Input)
        assert field.value == f"job-{running.id}.log"
        field.value = str(tmp_path / "out.log")
        await pilot.press("enter")
        await shows(pilot, "Saved 31 lines")
        assert (tmp_path / "out.log").read_text().splitlines()[-2:] == ["line 29", "red end"]
        await pilot.press("s")
        field.value = str(tmp_path / "out.log")
        await pilot.press("enter")
        await shows(pilot, "name another file")
        await pilot.press("y")
        assert "line 29\nred end" in app.clipboard


async def test_search_goes_to_matches_forwards_and_backwards(app: GridApp, running: AsyncJob, stage: Stage) -> None:
    lines = [b"match %d" % number if number % 40 == 0 else b"other %d" % number for number in range(200)]
    await push_log(stage.provider.services, running.id, 0, b"\n".join(lines) + b"\n", final=True)
    async with app.run_test(size=NARROW) as pilot:
        await choose(pilot, running)
        await pilot.press("enter")
        await shows(pilot, "200 lines, complete")
        view = app.screen.query_one(LogView)
        await pilot.press("g", "slash", *"MATCH", "enter")
        assert lines_of(app)[1] == "match 0"
        for key, number in (("n", 40), ("n", 80), ("N", 40), ("N", 0), ("N", 160), ("n", 0)):
            await pilot.press(key)
            assert view.lines[view._found] == f"match {number}"
            assert f"match {number}" in text_of(app)
        await pilot.press("slash", *"nothing", "enter")
        await shows(pilot, "No line contains 'nothing'")
        await pilot.press("slash", "escape")
        assert isinstance(app.screen, LogScreen)


async def test_a_long_log_is_read_from_its_end_and_g_reads_all(app: GridApp, running: AsyncJob, stage: Stage) -> None:
    lines = [f"line {number} {'x' * 100}" for number in range(2_000)]
    await push_log(stage.provider.services, running.id, 0, ("\n".join(lines) + "\n").encode(), final=True)
    async with app.run_test(size=NARROW) as pilot:
        await choose(pilot, running)
        await pilot.press("enter")
        await shows(pilot, "last 500 lines, g reads all, complete", "line 1999")
        await pilot.press("slash", *"line 7 ", "enter")
        await shows(pilot, "No line contains 'line 7 ' among the last ones; g reads all")
        await pilot.press("g")
        await shows(pilot, "2000 lines, complete", "line 0 ")
        await pilot.press("n")
        await shows(pilot, "line 7 ")


class LogApp(App[None]):
    def compose(self) -> ComposeResult:
        yield LogView()


async def test_long_lines_wrap_or_are_cut_and_times_are_shown() -> None:
    app = LogApp()
    async with app.run_test(size=(40, 10)) as pilot:
        view = app.query_one(LogView)
        view.add(["a" * 100, "short", "\x1b[32m" + "ä" * 41 + "\x1b[0m"], 0.0)
        view.draw()
        assert view.row_count == 3 + 1 + 2
        view.switch(timed=True)
        assert view.row_count == 4 + 1 + 2
        view.switch(wraps=False, timed=False)
        view.aside(20)
        await pilot.pause()
        assert view.row_count == 3
        assert view.strip(0, 40).text == "a" * 40
        assert view.strip(2, 40).text == "ä" * 21


@pytest.mark.long
async def test_five_thousand_lines_per_second_leave_keys_quick() -> None:
    """The newest 100,000 lines are kept; adding is cheap, and drawing costs what is visible."""
    app = LogApp()
    async with app.run_test(size=NARROW) as pilot:
        view = app.query_one(LogView)
        view.focus()
        started = time.process_time()
        for second in range(25):
            view.add([f"\x1b[3{number % 8}mline {second} {number}\x1b[0m of the job" for number in range(5000)], 0.0)
            for _ in range(5):
                view.draw()
            await pilot.pause()
        assert (time.process_time() - started) / 25 < 0.5  # of a second, for what arrives in one
        assert len(view.lines) <= 100_000
        assert view.dropped + len(view.lines) == 125_000
        started = time.process_time()
        await pilot.press("k", "g", "G")
        assert not view.search("no such text")
        assert time.process_time() - started < 1
