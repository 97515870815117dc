"""The table of jobs: live data, the keys of tables, the filter."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult
from textual.widgets import Input

from deepgrid.client import AsyncGrid, JobStatus
from deepgrid.tui.grid_app import GridApp
from deepgrid.tui.screens.jobs import JobsScreen
from deepgrid.tui.widgets.table import Cell, Column, Table
from tests.cli.live import EXAMPLE
from tests.client.stage import Stage
from tests.tui.support import NARROW, choose, lines_of, opened, shows, text_of, type_ahead, until


async def test_without_jobs_the_screen_says_how_to_submit_one(app: GridApp) -> None:
    async with app.run_test(size=NARROW) as pilot:
        text = await shows(pilot, "You have no jobs yet", "Press s to submit one")
        assert "1000 credits" in text
        await pilot.press("enter", "v", "l", "c", "t", "y", "r", "j", "G")  # nothing is chosen: nothing happens
        assert isinstance(app.screen, JobsScreen)


async def test_the_table_shows_states_costs_and_why_a_job_waits_and_follows_changes(
    app: GridApp, grid: AsyncGrid, stage: Stage
) -> None:
    done = await grid.submit(EXAMPLE, credits=100, name="done")
    await stage.run(done)
    await stage.provider.writer.settle(done.id, JobStatus.FAILED, 1, "the disk is full", 768)
    job = await grid.submit(EXAMPLE, credits=100, name="fresh")
    await stage.operator.services.post_notice(job.id, "waiting", "no cluster is free")
    async with app.run_test(size=NARROW) as pilot:
        text = await shows(pilot, "fresh", "pending", f"{job.id}: waiting: no cluster is free")
        assert "failed" in text and "alpha" in text
        await stage.run(job)
        await shows(pilot, "running", "~")
        await choose(pilot, done)
        await shows(pilot, f"{done.id}: exit status 3: the disk is full")


MOVES = [
    (("down",), 1), (("j", "j", "up"), 1), (("j", "k"), 0), (("f",), 17), (("space", "pagedown"), 34), (("f", "b"), 0),
    (("f", "pageup"), 0), (("d",), 8), (("ctrl+d", "u"), 0), (("d", "ctrl+u"), 0), (("G",), 59), (("end", "g"), 0),
    (("end", "home"), 0), (("up",), 0),
]  # fmt: skip


class TableApp(App[None]):
    """A table of 60 rows on 17 lines below its heading."""

    def compose(self) -> ComposeResult:
        yield Table([Column("number")], lambda row: [Cell(str(row))])


async def test_the_keys_of_tables_move_the_cursor() -> None:
    app = TableApp()
    async with app.run_test(size=(80, 18)) as pilot:
        table = app.query_one(Table)
        table.focus()
        for keys, row in MOVES:
            table.show(60, 0)
            await pilot.press(*keys)
            assert (table.cursor, row in table.visible_rows) == (row, True), keys


async def test_keys_that_arrive_with_the_slash_are_typed_into_the_filter(app: GridApp) -> None:
    """Keys were once lost on a slow line, because the field got the focus after them."""
    async with app.run_test(size=NARROW) as pilot:
        await opened(pilot)
        type_ahead(app, "slash", "c", "slash", "q", "7")
        await until(pilot, lambda: app.screen.query_one("#filter", Input).value == "c/q7", "the filter is not typed")
        assert len(app.screen_stack) == 2, "no letter was a command"


async def test_a_filter_finds_jobs_by_words_and_esc_removes_it(app: GridApp, grid: AsyncGrid) -> None:
    for name in ("train-a", "train-b", "sweep"):
        await grid.submit(EXAMPLE, credits=100, name=name)
    async with app.run_test(size=NARROW) as pilot:
        await shows(pilot, "train-a", "train-b", "sweep")
        await pilot.press("slash", *"train")
        await until(pilot, lambda: "sweep" not in text_of(app))
        await shows(pilot, "train-a", "[train: 2 of 3]")
        await pilot.press("enter", "j")
        assert app.screen.query_one(Table).cursor == 1
        await pilot.press("escape")
        await shows(pilot, "sweep")
        await pilot.press("slash", *"zzz", "enter")
        await shows(pilot, "No job matches 'zzz'")


async def test_a_filter_finds_jobs_by_tag_sweep_and_parameter(app: GridApp, grid: AsyncGrid) -> None:
    await grid.submit(EXAMPLE, credits=100, name="tagged", tags=["project=wing"])
    await grid.submit(EXAMPLE, credits=100, name="other")
    sweep = await (
        await grid.map(EXAMPLE, [{"GREETING": "a"}, {"GREETING": "b"}], credits=100, name="greet")
    ).requested()
    async with app.run_test(size=NARROW) as pilot:
        await shows(pilot, "tagged", "other")
        for words, found in (("project=wing", 1), (sweep.sweep_id[:8], 2), ("greeting=b", 1)):
            await pilot.press("slash", *words)
            await shows(pilot, f"[{words}: {found} of 4]")
            await pilot.press("enter", "escape")
            await shows(pilot, "tagged", "other")


async def test_copy_and_the_list_of_keys(app: GridApp, grid: AsyncGrid) -> None:
    job = await grid.submit(EXAMPLE, credits=100)
    async with app.run_test(size=NARROW) as pilot:
        await choose(pilot, job)
        await pilot.press("y")
        assert app.clipboard == str(job.id)
        await pilot.press("question_mark")
        text = await shows(pilot, "run the job again", "half a page down", "q close")
        assert "ctrl+u u" in text
        await pilot.press("q")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen))


async def test_the_palette_runs_what_keys_do(app: GridApp) -> None:
    async with app.run_test(size=NARROW) as pilot:
        await opened(pilot)
        await pilot.press("colon", *"clusters")
        await shows(pilot, "Clusters and prices", "key p")
        await pilot.press("enter")
        await shows(pilot, "prices for 1 x 1 CPU")


@pytest.mark.parametrize("key", ["q", "escape", "ctrl+q", "ctrl+c"])
async def test_the_app_is_left_by_a_key(app: GridApp, key: str) -> None:
    async with app.run_test(size=NARROW) as pilot:
        await opened(pilot)
        await pilot.press(key)
        await until(pilot, lambda: not app.is_running)


async def test_a_wide_screen_has_details_and_more_columns(app: GridApp, grid: AsyncGrid) -> None:
    job = await grid.submit(EXAMPLE, credits=100, name="broad")
    async with app.run_test(size=(140, 40)) as pilot:
        await choose(pilot, job)
        text = await shows(pilot, "deposit", "submitted", "1 task of 1 CPU", "asks for")
        assert text.count("broad") == 2
        await pilot.resize_terminal(*NARROW)
        await until(pilot, lambda: "asks for" not in text_of(app))
        assert max(map(len, lines_of(app))) <= 80


async def test_another_customer_is_watched_without_a_key(grid: AsyncGrid) -> None:
    job = await grid.submit(EXAMPLE, credits=100, name="theirs")
    app = GridApp(lambda: AsyncGrid.read_only(grid._book), grid.address)
    async with app.run_test(size=NARROW) as pilot:
        await choose(pilot, job)
        await shows(pilot, "theirs", "read-only")
        for key in ("s", "t", "c", "r", "a", "ctrl+t"):
            app.tell("")
            await pilot.press(key)
            await shows(pilot, "read-only, without a key")
        await pilot.press("enter")
        await shows(pilot, "The output cannot be shown")
