"""The screen of a job's files: what the grid keeps of it, and the download into a folder of the job."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepgrid.client import AsyncGrid
from deepgrid.client.job import AsyncJob
from deepgrid.client.job_output import OutputFile
from deepgrid.errors import NotFound, ServiceError
from deepgrid.tui.grid_app import GridApp
from deepgrid.tui.screens.files_list import literal
from tests.cli.live import EXAMPLE
from tests.tui.support import NARROW, choose, opened, shows, text_of, until

HOSTILE = "plots/\x1b[31mred [b]*.png"


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[OutputFile]:
    """What the grid keeps of each job. The services of these tests keep no files."""
    monkeypatch.chdir(tmp_path)
    files: list[OutputFile] = []

    async def listed(_: AsyncJob) -> list[OutputFile]:
        if not files:
            raise NotFound("There are none.")
        return files

    async def download(_: AsyncJob, to: Path, only: str | None = None) -> list[Path]:
        if only == "table.csv":
            raise ServiceError("The grid's services do not answer.")
        (tmp_path / "asked").write_text(f"{to} {only}")
        return [to / file.path for file in files if only in (None, literal(file.path))]

    monkeypatch.setattr(AsyncJob, "files", listed)
    monkeypatch.setattr(AsyncJob, "download", download)
    return files


async def test_files_are_listed_and_downloaded(app: GridApp, grid: AsyncGrid, kept: list[OutputFile]) -> None:
    job = await grid.submit(EXAMPLE, credits=100, name="plot")
    async with app.run_test(size=NARROW) as pilot:
        await opened(pilot)
        await choose(pilot, job)
        await pilot.press("o")
        await shows(pilot, "has left no files with the grid yet", "output: {grid: {}}")
        kept += [OutputFile(HOSTILE, 1234567, "a" * 64, False), OutputFile("table.csv", 5, "b" * 64, False)]
        await pilot.press("ctrl+r")
        text = await shows(pilot, "1,234,567  plots/", "5  table.csv", "2 files, 1,234,572 bytes")
        assert "\x1b" not in text
        await pilot.press("enter")
        await shows(pilot, f"1 file of job {job.id} in job-{job.id}")
        assert Path("asked").read_text() == f"job-{job.id} plots/\x1b[[]31mred [[]b][*].png"
        await pilot.press("j", "enter")
        await shows(pilot, "do not answer")
        await pilot.press("a")
        await shows(pilot, f"2 files of job {job.id} in job-{job.id}")
        await pilot.press("q")
        await until(pilot, lambda: "table.csv" not in text_of(app))
