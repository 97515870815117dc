"""Forms: submission with a quote that follows the input, transfer, allowance.

Money moves only after a form and a confirmation.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import cast

import pytest
from textual.widgets import Input

from deepgrid.client import AsyncGrid
from deepgrid.tui.earlier_terms import EarlierTerms
from deepgrid.tui.grid_app import GridApp
from deepgrid.tui.screens.jobs import JobsScreen
from deepgrid.tui.screens.submit_form import SubmitForm
from tests.chain.grid import approve_waiting
from tests.cli.live import CREDIT, EXAMPLE, HARDWARE, LABELS, PRICES
from tests.client.stage import Stage
from tests.tui.conftest import NewApp
from tests.tui.support import NARROW, WIDE, choose, fill, opened, shows, text_of, until


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def field(app: GridApp, name: str) -> Input:
    return app.screen.query_one(f"#{name}", Input)


async def test_a_job_is_submitted_by_keys_alone(app: GridApp, grid: AsyncGrid, stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text(EXAMPLE.read_text())
    async with app.run_test(size=NARROW) as pilot:
        await opened(pilot)
        await pilot.press("s")
        await shows(pilot, "Name a workflow file")
        await pilot.press(*"tr")
        await until(pilot, lambda: field(app, "file")._suggestion == "train.yaml")
        await pilot.press("right", "enter")
        assert field(app, "file").value == "train.yaml"
        await pilot.press(*"120", "tab", "ctrl+n", "ctrl+p", "shift+tab", "enter", "enter", "enter", *"os=linux")
        await shows(pilot, "alpha", "per minute", "needed", "100 credits for that time")
        await pilot.press("enter")
        text = await shows(pilot, "Submit train.yaml? 120 credits are locked", "880 are left. [y/N]")
        assert "0x" in text
        assert [job async for job in grid.jobs()] == []
        await pilot.press("n", "enter", "y")
        await shows(pilot, "(train) is submitted; 120 credits are locked", "880 credits")
        (job,) = [job async for job in grid.jobs()]
        assert (job.name, job.locked, [use.key for use in job.on_chain.definition.uses]) == ("train", 120, ["os"])
        await choose(pilot, job)
        await pilot.press("r")  # again: the form knows file, credits and labels
        await shows(pilot, "train.yaml", "os=linux")
        assert (field(app, "file").value, field(app, "amount").value) == ("train.yaml", "120")


async def test_faults_have_their_lines_and_the_file_is_read_again_when_it_changes(
    app: GridApp, stage: Stage, tmp_path: Path
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("enableLogging: true\nresources:\n  tasks: none\nsteps: []\n")
    async with app.run_test(size=WIDE) as pilot:
        await opened(pilot)
        await pilot.press("s")
        await fill(pilot, file="job.yaml")
        await shows(pilot, "job.yaml:3", "tasks: none")
        await pilot.press("enter", *"100", "enter", "enter", "enter", "enter")
        assert "[y/N]" not in text_of(app)
        file.write_text(EXAMPLE.read_text())
        await shows(pilot, "alpha", "smallest useful job")
        field(app, "amount").value = "99"
        await pilot.press("enter")
        await shows(pilot, "99 credits are too few. Lock at least 100.")
        field(app, "amount").value = "1001"
        await pilot.press("enter")
        await shows(pilot, "You have 1000 credits")


async def test_an_old_quote_is_renewed_and_never_submitted(new_app: NewApp, stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(EXAMPLE.read_text())
    late_s = [0.0]
    app = new_app(now=lambda: 1_800_000_000 + late_s[0])
    async with app.run_test(size=NARROW) as pilot:
        await opened(pilot)
        await pilot.press("s")
        await fill(pilot, file="job.yaml", amount="100")
        await shows(pilot, "prices are fixed at assignment")
        form = cast(SubmitForm, app.screen)
        late_s[0] += 61
        form.go_on()
        await shows(pilot, "The quote was too old")
        assert "[y/N]" not in text_of(app)
        await until(pilot, lambda: form.fresh, "no new quote")
        late_s[0] += 61  # no key is pressed from here on
        await until(pilot, lambda: form.fresh, "the quote was not renewed")


async def test_without_credits_the_time_decides_and_the_form_says_so(
    app: GridApp, grid: AsyncGrid, stage: Stage, tmp_path: Path
) -> None:
    (tmp_path / "job.yaml").write_text(EXAMPLE.read_text())
    async with app.run_test(size=(80, 60)) as pilot:  # the quote has a line per cluster
        await opened(pilot)
        await pilot.press("s")
        await fill(pilot, file="job.yaml")
        field(app, "time").value = "5h"
        await shows(pilot, "for 5h", "188.4 credits, what this time costs: no credits are typed")
        field(app, "time").value = "1m"
        await shows(pilot, "100 credits, what this time costs")  # the least that the grid locks
        field(app, "time").value = "five hours"
        await shows(pilot, "five hours")
        field(app, "time").value = "5h"
        await shows(pilot, "188.4 credits, what this time costs")
        field(app, "labels").focus()
        await pilot.press("enter")
        await shows(pilot, "188.4 credits are locked", "811.6 are left. [y/N]")
        await pilot.press("y")
        await shows(pilot, "(job) is submitted; 188.4 credits are locked")
        (job,) = [job async for job in grid.jobs()]
        assert job.locked == Decimal("188.4")


async def test_a_price_that_rose_refuses_the_quote_shows_a_new_one_and_asks_again(
    app: GridApp, grid: AsyncGrid, stage: Stage, tmp_path: Path
) -> None:
    (tmp_path / "job.yaml").write_text(EXAMPLE.read_text())

    def rate() -> Decimal | None:
        quote = app.screen._quote if isinstance(app.screen, SubmitForm) else None
        return (
            next((one.rate for one in quote.offers if one.address == stage.provider.address), None) if quote else None
        )

    async with app.run_test(size=NARROW) as pilot:
        await opened(pilot)
        await pilot.press("s")
        await fill(pilot, file="job.yaml", amount="100")
        await until(pilot, lambda: rate() == Decimal("0.628"), "no quote")
        field(app, "labels").focus()
        await pilot.press("enter")
        await shows(pilot, "Submit job.yaml?", "[y/N]")
        dearer = replace(PRICES, cpu_wei_per_minute=7 * CREDIT)
        await stage.provider.writer.register(HARDWARE, dearer, LABELS)
        await approve_waiting(stage.operator.writer, stage.provider.address)
        await pilot.press("y")
        await shows(pilot, "The price at alpha rose from 0.628 to 7.128 credits per minute")
        await until(pilot, lambda: rate() == Decimal("7.128"), "no new quote")
        assert [job async for job in grid.jobs()] == []
        await pilot.press("enter")
        await shows(pilot, "Submit job.yaml?", "[y/N]")
        assert [job async for job in grid.jobs()] == []
        await pilot.press("y")
        await shows(pilot, "(job) is submitted; 100 credits are locked")


async def test_templates_and_the_editor(
    app: GridApp, stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = tmp_path / "editor.py"
    editor.write_text("import sys; open(sys.argv[1], 'a').write('# edited\\n')")
    monkeypatch.setenv("EDITOR", f"{sys.executable} {editor}")
    monkeypatch.delenv("VISUAL", raising=False)
    async with app.run_test(size=NARROW) as pilot:
        await opened(pilot)
        await pilot.press("s", "ctrl+e")
        await shows(pilot, "Name a file first")
        await pilot.press("ctrl+t")
        await shows(pilot, "hello-world", "The smallest useful job")
        await pilot.press("slash", "q", "ctrl+t", "G", "g", "enter")
        await shows(pilot, "Wrote environment.yaml", "alpha")
        assert (tmp_path / "environment.yaml").exists()
        monkeypatch.setattr(type(app), "suspend", _not_suspended)
        await pilot.press("ctrl+e")
        assert "# edited" in (tmp_path / "environment.yaml").read_text()
        await pilot.press("ctrl+q")
        assert isinstance(app.screen, JobsScreen)


def _not_suspended(_: GridApp) -> object:
    from contextlib import nullcontext

    return nullcontext()


async def test_leaving_forms(app: GridApp) -> None:
    async with app.run_test(size=NARROW) as pilot:
        await opened(pilot)
        for key, leave in (("s", "escape"), ("ctrl+t", "ctrl+q"), ("a", "escape")):
            await pilot.press(key)
            assert not isinstance(app.screen, JobsScreen)
            await pilot.press("q")  # a letter in a field
            assert not isinstance(app.screen, JobsScreen)
            await pilot.press(leave)
            assert isinstance(app.screen, JobsScreen)


async def test_a_transfer_needs_a_whole_address_and_a_yes(app: GridApp, stage: Stage) -> None:
    receiver = stage.provider.address
    before = await stage.operator.writer.chain.balance(receiver)
    async with app.run_test(size=NARROW) as pilot:
        await opened(pilot)
        await pilot.press("ctrl+t")
        await fill(pilot, to=receiver[:-1])
        await shows(pilot, "is not an address with its checksum")
        await pilot.press(receiver[-1], "enter", *"12.25")
        await shows(pilot, "987.75 credits stay with you", "cannot be undone")
        await pilot.press("enter")
        await shows(pilot, "Send 12.25 credits to", receiver[-12:], "987.75 credits are left")
        await pilot.press("y")
        await shows(pilot, "Sent 12.25 credits", "987.75 credits")
    assert await stage.operator.writer.chain.balance(receiver) == before + 12_250_000_000_000_000_000


async def test_the_allowance_is_set(app: GridApp, grid: AsyncGrid) -> None:
    async with app.run_test(size=NARROW) as pilot:
        await opened(pilot)
        await pilot.press("a")
        await shows(pilot, "now         0 credits")
        await pilot.press(*"77", "enter")
        await shows(pilot, "lock up to 77 of your")
        await pilot.press("y")
        await shows(pilot, "The grid may lock 77 credits", "allowance 77")
    assert await grid.wallet.allowance == 77


async def test_run_again_fetches_the_file_that_is_kept(
    app: GridApp, grid: AsyncGrid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    job = await grid.submit(
        EXAMPLE,
        credits=100,
        name="old",
        uses=["os=linux"],
        affinities=["mem>=4"],
        tags={"project": "wing body"},
        note="second mesh",
        min_time="90s",
        max_price=5,
        give_up_after="1h",
        prefer="price",
        delegate_spending=True,
    )
    async with app.run_test(size=NARROW) as pilot:
        await choose(pilot, job)
        await pilot.press("r")
        assert isinstance(app.screen, SubmitForm)
        await shows(pilot, f"Wrote job-{job.id}.yaml, the file of job {job.id}", "os=linux mem>=4")
        assert (tmp_path / f"job-{job.id}.yaml").read_text() == (await job.file()).text
        assert (field(app, "name").value, field(app, "amount").value) == ("old", "100")
        await shows(pilot, "at most 5 credits per minute; at least 2 minutes; price first")
        field(app, "labels").focus()
        await pilot.press("enter")
        await shows(pilot, "? 100 credits are locked", "[y/N]")
        await pilot.press("y")
        await shows(pilot, "(old) is submitted")
    again = max([row async for row in grid.jobs()], key=lambda row: row.id)
    assert again.id != job.id
    terms, kept = EarlierTerms.of(job).terms, EarlierTerms.of(again).terms
    assert 3000 < kept.give_up_after_s <= 3600  # from the block of each request on
    assert replace(kept, give_up_after_s=terms.give_up_after_s) == terms
    file = await again.file()
    assert (file.tags, file.note) == ({"project": "wing body"}, "second mesh")
