"""The tables of jobs x clusters agree with the plain functions for one job and one cluster."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from deepgrid.billing.formulas import rate_wei_per_minute
from deepgrid.lifecycle.job import Affinity, Hardware, Label, Prices
from deepgrid.scheduling.fit import lack, unmet
from deepgrid.scheduling.tables.fits import FitTable, Shape
from deepgrid.scheduling.tables.label_rules import ConditionTable
from deepgrid.scheduling.tables.rates import ROUNDING, PriceTable
from deepgrid.scheduling.tables.rows import RecentRows

FIGURES = st.integers(0, 9) | st.sampled_from((64, 2**31 - 1, 2**31, 2**64 - 1))
HARDWARE = st.lists(st.tuples(FIGURES, FIGURES, FIGURES), max_size=5).map(
    lambda nodes: Hardware(*(tuple(node[n] for node in nodes) for n in range(3)))
)
SHAPES = st.builds(Shape, *[FIGURES] * 4)
TEXTS = st.text(max_size=3) | st.sampled_from(("1", "1.0", "1e3", "NaN", "sNaN", "Infinity", "abc", "1_0", " 2 "))
KEYS = st.sampled_from(("a", "b"))


@settings(deadline=None)
@given(SHAPES, st.lists(HARDWARE, max_size=4))
def test_fits(shape: Shape, hardware: list[Hardware]) -> None:
    assert FitTable(hardware).lacks(shape).tolist() == [lack(shape, one)[0] for one in hardware]


@settings(deadline=None)
@given(
    st.lists(st.lists(st.builds(Label, KEYS, TEXTS), max_size=3), max_size=4),
    st.builds(Affinity, KEYS, st.sampled_from(("<", "<=", "==", "=", ">=", ">", "!=", "in", ":in:", "?")), TEXTS),
)
def test_conditions(labels: list[list[Label]], condition: Affinity) -> None:
    expected = [not unmet(own, (), (condition,)) for own in labels]
    assert ConditionTable(labels).met(condition).tolist() == expected


WEI = st.integers(0, 10) | st.integers(10**18 - 3, 10**18 + 3) | st.integers(0, 2**256 - 1)


@settings(deadline=None)
@given(SHAPES, st.lists(st.builds(Prices, WEI, WEI, WEI), min_size=1, max_size=6), st.integers(-2, 2))
def test_prices_are_exact_to_the_wei(shape: Shape, prices: list[Prices], nearby: int) -> None:
    table, every = PriceTable(prices), np.arange(len(prices))
    exact = [rate_wei_per_minute(shape, one) for one in prices]
    rates = table.rates(shape)
    for rounded, rate in zip(rates.tolist(), exact, strict=True):
        assert abs(Fraction(rounded) - rate) <= Fraction(ROUNDING) / 4 * rate
    limit = max(0, exact[0] + nearby)
    assert table.at_most(limit, shape, rates).tolist() == [rate <= limit for rate in exact]
    assert table.are_cheapest(shape, every, rates).tolist() == [rate == min(exact) for rate in exact]


def test_a_row_is_computed_once_and_dropped_after_a_round_without_use() -> None:
    rows: RecentRows[str, str] = RecentRows()
    computed: list[str] = []

    def compute(key: str) -> str:
        computed.append(key)
        return key

    for keys in ("ab", "a", "ab"):
        rows.next_round()
        for key in keys:
            rows.get(key, compute)
    assert computed == ["a", "b", "b"]
