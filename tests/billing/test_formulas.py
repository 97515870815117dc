"""The billing formulas of docs/explanation/contracts.md, with examples and random figures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepgrid.billing.formulas import affordable_minutes, bill, rate_wei_per_minute
from deepgrid.lifecycle.job import JobDefinition, Prices
from deepgrid.lifecycle.minutes import started_minutes

CREDIT = 10**18


@pytest.mark.parametrize(("seconds", "minutes"), [(0, 1), (1, 1), (60, 1), (61, 2), (3600, 60), (3601, 61)])
def test_started_minutes(seconds: int, minutes: int) -> None:
    assert started_minutes(1_000, 1_000 + seconds) == minutes


def test_rate_of_an_example_job() -> None:
    prices = Prices(85 * 10**17, 95 * 10**16, 8 * 10**13)
    definition = JobDefinition(gpus=1, mem_per_cpu_mb=1000, cpus_per_task=2, ntasks=3, definition_hash="")
    assert rate_wei_per_minute(definition, prices) == 1468 * 10**16


@pytest.mark.parametrize(
    ("locked", "rate", "minutes"),
    [(200 * CREDIT, 146 * 10**17, 13), (0, 1, 0), (CREDIT, 0, 525_600), (525_600, 1, 525_600), (525_601, 1, 525_600)],
)
def test_credits_buy_whole_minutes_up_to_one_year(locked: int, rate: int, minutes: int) -> None:
    assert affordable_minutes(locked, rate) == minutes


@pytest.mark.parametrize(("minutes", "cost"), [(525_600, 525_600), (525_601, 525_601), (525_602, 525_601)])
def test_at_most_one_minute_above_the_limit_is_billed(minutes: int, cost: int) -> None:
    assert bill(minutes, 1, CREDIT, 20).cost == cost


def test_the_cut_is_rounded_down_and_the_provider_gets_the_rest() -> None:
    parts = bill(1, 7, CREDIT, 20)  # 20 % of 7 wei are 1.4
    assert (parts.paid, parts.cut, parts.refunded) == (6, 1, CREDIT - 7)


@given(st.integers(0, 10**6), st.integers(0, 10**24), st.integers(0, 10**27), st.integers(0, 100))
def test_the_parts_of_a_bill_add_up_to_the_wei(minutes: int, rate: int, locked: int, cut: int) -> None:
    parts = bill(minutes, rate, locked, cut)
    assert parts.paid + parts.cut + parts.refunded == locked
    assert min(parts.paid, parts.cut, parts.refunded) >= 0
    assert parts.cost <= locked
