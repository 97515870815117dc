"""The flow `reconcile_billing` tries again during an outage, and tells a difference from books that it cannot read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from prefect.client.schemas.objects import State
from prefect.logging import disable_run_logger

import flows.reconcile_billing as module
from deepgrid.billing.coverage import AGAIN_S, Chosen, Coverage
from deepgrid.billing.entries import Span
from deepgrid.billing.period import DAY_S
from deepgrid.errors import InputError, SlurmUnreachable
from deepgrid.files.private_files import write_json
from deepgrid.operator.operator_books import OperatorBooks
from orchestration.grid_events import BOOKS_DIFFER
from tasks.reconciliation import choose_period, cover

if TYPE_CHECKING:
    from deepgrid.billing.reconcile import Reconciliation
    from deepgrid.chain.ledger import Books

NOW = 1_800_000_000
AWAY = SlurmUnreachable("The login node n1:22 cannot be reached.", next_step="Run `dps provider doctor alpha`.")


class Attempts:
    """The attempts of one run: each fails with the next error, until none is left."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *errors: Exception, clean: bool = True) -> None:
        self.errors = list(errors)
        self.pauses: list[float] = []
        self.result = SimpleNamespace(clean=clean, message="1 of 9 jobs differs: job 7 (minutes).")
        monkeypatch.setattr(module, "open_books", self.open_books)
        monkeypatch.setattr(module, "run_step", self.run_step)
        monkeypatch.setattr(module.asyncio, "sleep", self.sleep)

    @asynccontextmanager
    async def open_books(self, *_: object) -> AsyncIterator[SimpleNamespace]:
        if self.errors:
            raise self.errors.pop(0)
        yield SimpleNamespace(period=None, read_chain=None, read_slurm=None)

    async def run_step(self, name: str, _step: Callable[..., object], *_: object) -> object:
        if name == "choose period":
            return Chosen(Span(0, 1))
        return self.result if name == "compare" else None

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    async def run(self, retry_minutes: int = 30) -> State[None]:
        with disable_run_logger():
            return await module.reconcile_billing.fn(cluster="alpha", retry_minutes=retry_minutes)


async def test_an_outage_is_tried_again_with_growing_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = Attempts(monkeypatch, AWAY, AWAY, AWAY)
    assert (await attempts.run()).is_completed()
    assert attempts.pauses == [30, 60, 120]


async def test_a_long_outage_is_no_difference_and_names_what_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    state = await Attempts(monkeypatch, AWAY).run(retry_minutes=0)
    assert (state.is_failed(), state.name) == (True, "Failed")
    assert state.message == f"The books were not compared. {AWAY}"


async def test_what_no_retry_mends_fails_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = Attempts(monkeypatch, InputError("The period ends before it begins."))
    assert (await attempts.run()).name == "Failed"
    assert attempts.pauses == []


async def test_a_difference_has_a_state_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    state = await Attempts(monkeypatch, clean=False).run()
    assert (state.is_failed(), state.name) == (True, BOOKS_DIFFER)
    assert state.message == "1 of 9 jobs differs: job 7 (minutes)."


class ChainAt:
    """A chain whose newest block has this time."""

    async def now(self) -> int:
        return NOW


class SomeBooks:
    """Books of no job."""

    def __init__(self, folder: Path, again_s: int = AGAIN_S) -> None:
        self.again_s = again_s
        self.folder = folder
        self.chain = ChainAt()
        self.again_from: int | None = None

    async def now(self) -> int:
        return NOW

    async def compare_again_from(self) -> int | None:
        return self.again_from


async def test_a_run_that_compared_all_moves_the_next_period_and_an_undecided_one_does_not(tmp_path: Path) -> None:
    books = cast("Books", SomeBooks(tmp_path))
    chosen = await choose_period(books, None, None, "one")
    await cover(books, chosen, "one", cast("Reconciliation", SimpleNamespace(undecided=True)))
    assert await choose_period(books, None, None, "two") == chosen
    await cover(books, chosen, "one", cast("Reconciliation", SimpleNamespace(undecided=False)))
    assert await choose_period(books, None, None, "one") == chosen, "a repeated run"
    assert (await choose_period(books, None, None, "two")).span == Span(NOW - AGAIN_S, NOW + 1)
    (tmp_path / "covered.json").write_text("{")
    with pytest.raises(InputError, match="damaged"):
        await choose_period(books, None, None, "two")


async def test_the_operator_reads_the_last_day_again_because_receipts_come_late(tmp_path: Path) -> None:
    """A receipt that came ten minutes after the nightly run was never compared."""
    books = cast("Books", SomeBooks(tmp_path, OperatorBooks.again_s))
    write_json(tmp_path / "covered.json", Coverage(NOW - 100).as_json())
    chosen = await choose_period(books, None, None, "one")
    await cover(books, chosen, "one", cast("Reconciliation", SimpleNamespace(undecided=False)))
    assert (await choose_period(books, None, None, "two")).span.since <= NOW - 100
    write_json(tmp_path / "covered.json", Coverage(NOW - 3 * DAY_S).as_json())
    chosen = await choose_period(books, None, None, "three")
    assert chosen.covers_until == NOW - DAY_S


async def test_a_receipt_that_comes_back_begins_the_period_at_its_settlement(tmp_path: Path) -> None:
    some = SomeBooks(tmp_path)
    books = cast("Books", some)
    write_json(tmp_path / "covered.json", Coverage(NOW - 100).as_json())
    some.again_from = NOW - 5 * DAY_S
    chosen = await choose_period(books, None, None, "one")
    assert (chosen.span, chosen.covers_until) == (Span(NOW - 5 * DAY_S, NOW + 1), NOW - 100)
    some.again_from = NOW - 50
    assert (await choose_period(books, None, None, "one")).span == Span(NOW - 100, NOW + 1)
