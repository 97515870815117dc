"""Converts amounts and durations as callers write them. Money is exact: floats are refused.

1 credit = 10**18 wei.
"""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

from deepgrid.billing.credits import format_credits, parse_credits
from deepgrid.errors import InputError

Credits = str | int | Decimal
"""An amount of credits, such as `100`, `"0.5"` or `Decimal("0.5")`."""

Duration = str | int | float | timedelta
"""A duration: seconds, a text such as `90s`, `1h30m` or `2d`, or a timedelta."""

TOO_FEW_CREDITS = "ERC20InsufficientBalance"  # name of the contract's error

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhd])", re.ASCII)
_DURATION = re.compile(rf"(?:{_PART.pattern})+", re.ASCII)


def wei_of(amount: Credits) -> int:
    """Wei in an amount of credits.

    Raises:
        InputError: The amount is a float, is negative, has more than 18 decimals, or is no amount.
    """
    if isinstance(amount, float):
        raise InputError(
            f"{amount!r} is a float, which cannot hold every amount of credits.",
            next_step=f"Write '{amount!r}' or Decimal('{amount!r}').",
        )
    if isinstance(amount, bool) or not isinstance(amount, str | int | Decimal):
        raise InputError(f"{amount!r} is not an amount of credits.", next_step="Write it like 100 or '0.5'.")
    if isinstance(amount, Decimal) and amount.is_finite() and abs(amount.adjusted()) < 100:
        return parse_credits(f"{amount:f}")
    return parse_credits(str(amount))


def credits_of(wei: int) -> Decimal:
    """`wei` in credits, exact."""
    return Decimal(format_credits(wei))  # the constructor is exact; arithmetic on Decimal would round to 28 digits


def seconds_of(duration: Duration | None) -> float | None:
    """A duration in seconds; None, which means no limit, stays None.

    Raises:
        InputError: The duration is negative or not a duration.
    """
    if duration is None:
        return None
    if isinstance(duration, timedelta):
        seconds = duration.total_seconds()
    elif isinstance(duration, str):
        seconds = _parsed(duration)
    elif isinstance(duration, bool) or not isinstance(duration, int | float):
        raise _not_a_duration(duration)
    else:
        seconds = float(duration)
    if not 0 <= seconds < float("inf"):
        raise _not_a_duration(duration)
    return seconds


def _parsed(text: str) -> float:
    if not _DURATION.fullmatch(text.strip()):
        raise _not_a_duration(text)
    return sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(text))


def _not_a_duration(value: object) -> InputError:
    return InputError(
        f"{str(value)[:40]!r} is not a duration.", next_step="Write seconds, or a text like 90s or 1h30m."
    )
