"""Columns and files of entries keep every wei, and windows of jobs give the same books as the whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepgrid.billing.columns.claims import Window
from deepgrid.billing.columns.entry_files import read_runs_only, read_windows, write_entries
from deepgrid.billing.columns.entry_tables import LIMB, EntryTables, amounts, job_in, limbs, tables_of
from deepgrid.billing.reconcile import Reconciliation, reconcile_windows
from deepgrid.billing.rules.differences import Side
from deepgrid.billing.rules.kinds import Kind
from deepgrid.billing.rules.prefilter import shared_runs
from deepgrid.billing.totals import Contract
from deepgrid.errors import ChainError
from tests.billing.books import history, provider_books
from tests.billing.frauds import plant
from tests.billing.histories import DAY, ME, History, Plan, plans

EDGES = [0, 1, 2**32 - 1, 2**32, 2**63 - 1, 2**63, LIMB - 1, LIMB, LIMB + 1, 2**96 - 2, 2**127, LIMB * LIMB - 1]
SINGLE = [kind for kind in Kind if kind not in (Kind.A_MINUTE_TOO_MUCH, Kind.LATE_ENDS)]


def column(values: list[int]) -> list[int]:
    high, low = limbs(values)
    return list(amounts(pa.table({"wei_hi": high, "wei_lo": low}), "wei"))


@given(st.lists(st.one_of(st.sampled_from(EDGES), st.integers(0, LIMB * LIMB - 1))))
def test_every_amount_comes_back(values: list[int]) -> None:
    found = column(values)
    assert found == values
    assert all(type(value) is int for value in found)


@given(st.lists(st.sampled_from(EDGES), min_size=1), st.integers(0, 2**20))
def test_sums_and_products_of_columns_do_not_overflow(values: list[int], minutes: int) -> None:
    exact = np.array(column(values), dtype=object)
    assert sum(exact.tolist()) == sum(values)
    assert (exact * minutes * 100).tolist() == [value * minutes * 100 for value in values]


@pytest.mark.parametrize("wei", [-1, LIMB * LIMB, 2**256 - 1])
def test_an_amount_that_the_contract_cannot_hold_is_refused(wei: int) -> None:
    with pytest.raises(ChainError, match="cannot hold"):
        limbs([wei])


@settings(max_examples=25, deadline=None)
@given(st.lists(plans, max_size=6))
def test_jobs_come_back_with_all_figures(some: list[Plan]) -> None:
    made = history(*some)
    ledger = made.ledger()
    for row in tables_of(ledger).jobs.to_pylist():
        job = ledger.jobs[row["id"]]
        plain = replace(job, assigned_at=0, definition=replace(job.definition, definition_hash=""))
        assert job_in(row) == plain


@settings(max_examples=25, deadline=None)
@given(st.lists(plans, max_size=6), st.lists(st.sampled_from(SINGLE), max_size=4), st.integers(1, 4))
def test_books_by_windows_equal_the_books_of_all(some: list[Plan], kinds: list[Kind], size: int) -> None:
    made = history(*(replace(plan, provider=ME) for plan in some))
    for kind in kinds:
        plant(made, kind)
    whole, parts = provider_books(made), by_windows(made, size)
    assert parts.differences == whole.differences
    assert set(parts.notes) == set(whole.notes)
    assert (parts.totals, parts.imbalances, parts.paid_back) == (whole.totals, whole.imbalances, whole.paid_back)
    assert parts.patterns == whole.patterns


def by_windows(made: History, size: int) -> Reconciliation:
    ledger = replace(made.ledger(), jobs=made.jobs)
    tables, window = tables_of(ledger, made.runs), Window.of(ledger, ME)
    with TemporaryDirectory() as folder:
        write_entries(Path(folder), one_window(tables))
        side = Side(DAY, strays_wei=ledger.strays_wei, shared=shared_runs(read_runs_only(Path(folder))))
        return reconcile_windows("alpha", read_windows(Path(folder), size), window, side, Contract.of(ledger))


def one_window(tables: EntryTables) -> Iterator[EntryTables]:
    yield tables
