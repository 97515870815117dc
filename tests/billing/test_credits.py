"""Amounts are exact: parsing and formatting are inverse, and unknown formats are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepgrid.billing.credits import MAX_WEI, format_credits, parse_credits
from deepgrid.errors import InputError


@pytest.mark.parametrize(
    ("text", "wei"),
    [("0.5", 5 * 10**17), ("100", 10**20), ("0", 0), ("1.000000000000000001", 10**18 + 1), (" 007.10 ", 71 * 10**17)],
)
def test_amounts_in_words_people_use(text: str, wei: int) -> None:
    assert parse_credits(text) == wei


@pytest.mark.parametrize(
    "text",
    [
        "", ".", ".5", "5.", "-1", "+1", "1e3", "1E3", "1_000", "1,5", "0x10", "inf", "nan", "½", "\u0661", "1 2",
        "0.0000000000000000001", "9" * 70, str(2**256), "1" * 10_000,
    ],
)  # fmt: skip
def test_other_spellings_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_credits(text)


@given(st.integers(min_value=0, max_value=MAX_WEI))
def test_formatting_loses_nothing(wei: int) -> None:
    assert parse_credits(format_credits(wei)) == wei


@pytest.mark.parametrize(
    ("wei", "text"), [(1, "0." + 17 * "0" + "1"), (5 * 10**17, "0.5"), (-(10**18), "-1"), (0, "0")]
)
def test_formatted_amounts(wei: int, text: str) -> None:
    assert format_credits(wei) == text
