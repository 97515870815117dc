"""Failures: outages, transactions while the user leaves, errors of the program."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from deepgrid.client import AsyncGrid, ClientSettings, ConfigurationError
from deepgrid.tui.grid_app import GridApp
from tests.cli.live import EXAMPLE, Live, Wire
from tests.client.stage import Customer
from tests.tui.support import NARROW, choose, opened, shows, text_of, until


async def test_an_outage_is_one_line_and_the_screen_keeps_what_it_knew(
    customer: Customer, live: Live, grid: AsyncGrid, tmp_path: Path
) -> None:
    job = await grid.submit(EXAMPLE, credits=100, name="kept")
    book = live.address_book()
    async with Wire(book.rpc_url) as wire:
        there = book.model_copy(update={"rpc_url": wire.url}).save(tmp_path / "wire.json")
        app = GridApp(lambda: AsyncGrid(customer.key, there, settings=ClientSettings(patience_s=0.1)))
        async with app.run_test(size=NARROW) as pilot:
            await choose(pilot, job)
            await wire.cut()
            await shows(pilot, "No answer since", "kept", "900 credits")
            assert app.screen.query_one("#table").stale  # type: ignore[attr-defined]
            await pilot.press("v")
            await shows(pilot, "No answer since")
            await pilot.press("q", "p")
            await shows(pilot, "No answer since", "cannot be read")
            await pilot.press("q", "s", "escape")
            await wire.mend()
            await until(pilot, lambda: "No answer" not in text_of(app), "the outage is over")
            await shows(pilot, "kept")


async def test_without_a_grid_the_screen_says_why_and_keys_answer(
    customer: Customer, live: Live, tmp_path: Path
) -> None:
    there = live.address_book().model_copy(update={"rpc_url": "http://127.0.0.1:9"}).save(tmp_path / "none.json")
    app = GridApp(lambda: AsyncGrid(customer.key, there, settings=ClientSettings(patience_s=0.1)))
    async with app.run_test(size=NARROW) as pilot:
        await shows(pilot, "Jobs cannot be read", "Trying again")
        await pilot.press("question_mark", "q", "slash", "escape", "q")
        await until(pilot, lambda: not app.is_running)


async def test_a_grid_that_cannot_be_opened_is_said_in_a_sentence() -> None:
    def refused() -> AsyncGrid:
        raise ConfigurationError("The key file can be read by others.", next_step="Run chmod 600.")

    app = GridApp(refused)
    async with app.run_test(size=NARROW) as pilot:
        await shows(pilot, "The key file can be read by others. Run chmod 600.")
        await pilot.press("s", "p", "q", "q")


async def test_leaving_during_a_transaction_asks_and_says_how_to_look_it_up(
    app: GridApp, grid: AsyncGrid, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = asyncio.Event()

    async def slow(*_: object) -> str:
        await go_on.wait()
        return "Done at last."

    async with app.run_test(size=NARROW) as pilot:
        await opened(pilot)
        app.send("5 credits to a friend", slow, app.tell_outcome)
        await shows(pilot, "Sending: 5 credits to a friend")
        for key in ("q", "ctrl+c"):
            await pilot.press(key)
            text = await shows(pilot, "Still being sent: 5 credits to a friend", "[y/N]")
            assert "dps job list" in text
            await pilot.press("n")
            assert app.is_running
        go_on.set()
        await shows(pilot, "Done at last.")
        go_on.clear()
        app.send("more", slow, app.tell_outcome)
        await pilot.press("q", "y")
        await until(pilot, lambda: not app.is_running)
    assert list(app.in_flight.values()) == ["more"]


async def test_a_refusal_by_the_contract_is_a_sentence(app: GridApp, grid: AsyncGrid) -> None:
    job = await grid.submit(EXAMPLE, credits=100)
    async with app.run_test(size=NARROW) as pilot:
        await choose(pilot, job)
        await pilot.press("c")
        await shows(pilot, "[y/N]")
        await job.cancel()  # meanwhile, elsewhere
        await pilot.press("y")
        await until(pilot, lambda: app.screen.query_one("#news").has_class("-wrong"), "no refusal")


async def test_an_error_of_the_program_ends_it_and_is_kept_for_the_caller(
    app: GridApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise KeyError("a fault")

    with pytest.raises(KeyError):
        async with app.run_test(size=NARROW) as pilot:
            await opened(pilot)
            app.call_later(broken)
            await until(pilot, lambda: not app.is_running)
    assert isinstance(app.failure, KeyError)
