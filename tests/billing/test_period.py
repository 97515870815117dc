"""Periods: how they are written, and which blocks belong to them."""

from __future__ import annotations

import pytest

from deepgrid.billing.entries import Span
from deepgrid.billing.period import DAY_S, file_name, parse_period, parse_time
from deepgrid.errors import InputError
from tests.billing.histories import DAY, History

NOON = 1_795_262_400  # 2026-11-21 12:00 UTC


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-11-21", NOON - DAY_S // 2),
        ("2026-11-21T12:00", NOON),
        (" 2026-11-21 12:00:01 ", NOON + 1),
        ("2026-11-21T13:00+01:00", NOON),
        ("2026-11-21T12:00Z", NOON),
    ],
)
def test_dates_and_times_are_utc_unless_they_say_otherwise(text: str, at: int) -> None:
    assert parse_time(text) == at


@pytest.mark.parametrize("text", ["", "yesterday", "21.11.2026", "2026-13-01", "1795262400.5"])
def test_other_spellings_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="2026-11-21T14:30"):
        parse_time(text)


def test_the_default_period_is_the_last_day_up_to_now() -> None:
    assert parse_period(None, None, NOON) == Span(NOON + 1 - DAY_S, NOON + 1)
    assert parse_period("2026-11-20", None, NOON).until == NOON + 1
    assert parse_period(None, "2026-11-21", NOON) == Span(NOON - 3 * DAY_S // 2, NOON - DAY_S // 2)


def test_a_period_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(InputError, match="before `until`"):
        parse_period("2026-11-21", "2026-11-20", NOON)
    with pytest.raises(InputError, match="before `until`"):
        parse_period("2026-11-21", "2026-11-21", NOON)


def test_the_file_is_named_by_the_period() -> None:
    assert file_name(Span(NOON - DAY_S, NOON)) == "2026-11-20T120000Z-2026-11-21T120000Z"


def test_each_block_belongs_to_one_period() -> None:
    """A bill in the first or last block of a day is in the books of that day and of no other."""
    today = History().ledger()
    tomorrow = History(Span(DAY.until, DAY.until + 86_400)).ledger()
    edges = (today.first_block, today.last_block, tomorrow.first_block)
    found = [(today.in_period(block), tomorrow.in_period(block)) for block in edges]
    assert found == [(True, False), (True, False), (False, True)]
