"""Periods: how they are written, and which blocks belong to them."""

from __future__ import annotations

import pytest

from deepgrid.billing.entries import Span
from deepgrid.billing.period import DAY_S, file_name, format_time, parse_period, parse_periods, parse_time
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


@pytest.mark.parametrize(
    ("period", "now", "edges"),
    [
        ("week", "2026-11-21T12:00", ("2026-11-02", "2026-11-09", "2026-11-16")),
        ("week", "2026-11-23", ("2026-11-09", "2026-11-16", "2026-11-23")),
        ("week", "2026-11-22T23:59:59", ("2026-11-02", "2026-11-09", "2026-11-16")),
        ("week", "2027-01-04T04:30", ("2026-12-21", "2026-12-28", "2027-01-04")),
        ("month", "2026-11-21T12:00", ("2026-09-01", "2026-10-01", "2026-11-01")),
        ("month", "2026-03-01", ("2026-01-01", "2026-02-01", "2026-03-01")),
        ("month", "2028-03-31", ("2028-01-01", "2028-02-01", "2028-03-01")),
    ],
)
def test_a_report_is_of_the_last_whole_week_or_month(period: str, now: str, edges: tuple[str, str, str]) -> None:
    span, before = parse_periods(period, None, None, parse_time(now))
    assert before.until == span.since
    assert [format_time(at) for at in (before.since, span.since, span.until)] == [f"{day} 00:00:00" for day in edges]


def test_a_report_of_another_period_is_compared_with_one_of_its_length() -> None:
    asked = parse_periods("week", "2026-11-19", "2026-11-21", NOON)
    assert asked == (
        Span(parse_time("2026-11-19"), parse_time("2026-11-21")),
        Span(parse_time("2026-11-17"), asked[0].since),
    )
    assert parse_periods("week", "2026-11-19", "2027-01-01", NOON)[0].until == NOON + 1


@pytest.mark.parametrize(
    ("period", "since", "until"),
    [
        ("day", None, None),
        ("week", None, "2026-11-21"),
        ("week", "2026-11-22", None),
        ("week", "2027-01-01", "2027-02-01"),
    ],
)
def test_periods_that_cannot_be_reported_are_refused(period: str, since: str | None, until: str | None) -> None:
    with pytest.raises(InputError):
        parse_periods(period, since, until, NOON)
