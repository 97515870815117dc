"""Scheduled runs cover all time: what an outage left out is part of the next run, and a repeated run is the same."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepgrid.billing.coverage import AGAIN_S, RUNS_KEPT, Chosen, Coverage
from deepgrid.billing.entries import Span
from deepgrid.billing.period import DAY_S
from deepgrid.errors import InputError

NOW = 1_800_000_000


def test_the_first_run_covers_a_day() -> None:
    chosen = Coverage().choose("one", NOW, NOW)
    assert chosen == Chosen(Span(NOW + 1 - DAY_S, NOW + 1), NOW - AGAIN_S)
    assert chosen.late_s == DAY_S


def test_a_run_after_an_outage_begins_where_the_last_one_ended() -> None:
    first = Coverage().choose("one", NOW, NOW)
    covered = Coverage().after("one", first)
    later = covered.choose("two", NOW + 5 * DAY_S, NOW + 5 * DAY_S)
    assert later.span == Span(NOW - AGAIN_S, NOW + 5 * DAY_S + 1)


def test_a_repeated_run_has_its_period_again() -> None:
    first = Coverage().choose("one", NOW, NOW)
    covered = Coverage().after("one", first)
    assert covered.choose("one", NOW + 999, NOW + 999) == first
    assert covered.after("one", first) == covered


def test_a_node_that_lags_hides_nothing() -> None:
    lagging = Coverage().choose("one", NOW, NOW - 3 * AGAIN_S)
    assert Coverage().after("one", lagging).until == NOW - 4 * AGAIN_S


def test_a_period_of_a_person_moves_nothing() -> None:
    chosen = Chosen(Span(1, 2))
    assert Coverage(7).after("one", chosen) == Coverage(7)
    assert chosen.late_s == 0


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**4), st.booleans()), max_size=40))
def test_no_second_is_left_out(runs: list[tuple[int, int, bool]]) -> None:
    """Each run comes some time after the one before, on a node that may lag, and may fail."""
    coverage, now, reached = Coverage(), NOW, None
    for number, (pause, lag, fails) in enumerate(runs):
        now += pause
        chosen = coverage.choose(str(number), now, now - lag)
        assert chosen.span.until == now + 1
        if reached is not None:
            assert chosen.span.since <= reached
        if not fails:
            coverage = Coverage.of(json.loads(json.dumps(coverage.after(str(number), chosen).as_json())))
            reached = now - lag if reached is None else max(reached, now - lag)
    assert len(coverage.runs) <= RUNS_KEPT


@pytest.mark.parametrize("value", [None, [], {}, {"until": "x", "runs": {}}, {"until": 1, "runs": {"a": [1]}}])
def test_a_damaged_file_is_refused(value: object) -> None:
    with pytest.raises(InputError, match="damaged"):
        Coverage.of(value)
