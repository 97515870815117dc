"""A notebook with the client, run without a browser: its cells show the right output, and nothing harmful."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from deepgrid.client import AsyncGrid, JobStatus
from tests.appending import push_log
from tests.cli.live import EXAMPLE
from tests.client.stage import Customer, Stage

WITHIN_S = 120
HOSTILE = "<img src=x onerror=a()>\u202e"


async def run(cells: list[str], customer: Customer, folder: Path) -> list[Any]:
    """Run a notebook in its own kernel. Returns the outputs of each cell."""
    opened = f"grid_options = dict(key={str(customer.key)!r}, book={str(customer.book)!r})"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in (opened, *cells)])
    client = NotebookClient(
        notebook,
        timeout=WITHIN_S,
        startup_timeout=WITHIN_S,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    await client.async_execute()
    return [cell.outputs for cell in notebook.cells[1:]]


def html_of(outputs: Any) -> str:
    """Return all HTML of a cell."""
    return "".join(str(one.data.get("text/html", "")) for one in outputs if "data" in one)


def assert_harmless(html: str) -> None:
    """Check that there is no element of a stranger, no script and no outside address."""
    assert html
    assert not re.search(r"<(script|style|img|a|iframe|link)\b|\b(src|href)=\"|url\(", html)
    assert not re.search(r"https?://(?!127\.0\.0\.1)", html)
    assert "\u202e" not in html


@pytest.fixture(autouse=True)
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of this Python, with their files in the test's folder."""
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


async def test_values_are_tables_with_escaped_names(
    grid: AsyncGrid, customer: Customer, stage: Stage, tmp_path: Path
) -> None:
    job = await grid.submit(EXAMPLE, credits=100, name=HOSTILE)
    await stage.run(job)
    cells = [
        "from deepgrid import AsyncGrid\nfrom deepgrid.client import Clusters\ngrid = AsyncGrid(**grid_options)",
        f"await grid.job({job.id})",
        f"Clusters([one for one in await grid.clusters() if one.address == {stage.provider.address!r}])",
        f"await grid.estimate({str(EXAMPLE)!r}, minutes=90)",
        "grid.wallet",
        "await grid.close()",
        "from deepgrid import Grid\nsync = Grid(**grid_options)",
        "sync.wallet",
        "sync.close()",
    ]
    _, shown, clusters, quote, wallet, _, _, balances, _ = await run(cells, customer, tmp_path)
    assert "&lt;img src=x onerror=a()&gt;[U+202E]" in html_of(shown)
    assert "alpha" in html_of(clusters)
    assert f"{stage.provider.address[:8]}…" in html_of(clusters)
    assert "credits per minute" in html_of(quote)
    assert grid.address in html_of(wallet)
    assert re.search(r"credits</bdi></td><td[^>]*>900</td>.*allowance in credits.*gas", html_of(balances))
    for outputs in (shown, clusters, quote, wallet, balances):
        assert_harmless(html_of(outputs))


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_watch_redraws_one_cell_until_the_job_is_over(
    kind: str, grid: AsyncGrid, customer: Customer, stage: Stage, tmp_path: Path
) -> None:
    job = await grid.submit(EXAMPLE, credits=100)
    await stage.run(job)
    ready = tmp_path / "ready"
    mark = f"open({str(ready)!r}, 'w').close()"
    if kind == "async":
        cell = f"""from deepgrid import AsyncGrid
async with AsyncGrid(**grid_options) as grid:
    job = await grid.job({job.id})
    {mark}
    await job.watch()"""
    else:
        cell = f"""from deepgrid import Grid
with Grid(**grid_options) as grid:
    job = grid.job({job.id})
    {mark}
    job.watch()"""
    notebook = asyncio.create_task(run([cell, "job"], customer, tmp_path))
    async with asyncio.timeout(WITHIN_S):
        while not ready.exists():
            assert not notebook.done(), notebook.exception()
            await asyncio.sleep(0.05)
        await push_log(stage.provider.services, job.id, 0, b"hello <b>\x1b[31m\n", final=False)
        await push_log(stage.provider.services, job.id, len(b"hello <b>\x1b[31m\n"), b"", final=True)
        await stage.provider.writer.settle(job.id, JobStatus.FINISHED, 1)
        watched, shown = await notebook
    assert len([one for one in watched if "data" in one]) == 1
    html = html_of(watched)
    assert f"Job {job.id}" in html
    assert "finished" in html
    assert "hello &lt;b&gt;" in html
    assert "[U+001B]" not in html
    assert_harmless(html)
    assert "finished" in html_of(shown)


async def test_elsewhere_watch_prints_lines(grid: AsyncGrid, stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    job = await grid.submit(EXAMPLE, credits=100)
    await stage.run(job)
    await push_log(stage.provider.services, job.id, 0, b"hello\nworld\n", final=True)
    await stage.provider.writer.settle(job.id, JobStatus.FINISHED, 1)
    async with asyncio.timeout(WITHIN_S):
        assert await job.watch() is job
    lines = capsys.readouterr().out.splitlines()
    assert lines.index("hello") < lines.index("world")
    assert re.fullmatch(rf"\d\d:\d\d:\d\d job {job.id} finished: exit status 0", lines[-1])
    assert job.over


async def test_without_ipython_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from deepgrid.client.display.screens import CellScreen
    from deepgrid.errors import ConfigurationError

    monkeypatch.setitem(__import__("sys").modules, "IPython.display", None)
    with pytest.raises(ConfigurationError, match=r"deepgrid\[notebook\]"):
        CellScreen()
