"""Converts between credits, as people write them, and wei. Exact, without floats.

1 credit = 10**18 wei.
"""

from __future__ import annotations

import re

from deepgrid.errors import InputError

DECIMALS = 18
WEI_PER_CREDIT: int = 10**DECIMALS
MAX_WEI = 2**256 - 1

_AMOUNT = re.compile(r"([0-9]{1,60})(?:\.([0-9]{1,60}))?", re.ASCII)


def parse_credits(text: str) -> int:
    """Return the wei in an amount of credits such as `100` or `0.5`.

    Raises InputError for signs, exponents, more than 18 decimals, and more than the contract can hold.
    """
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{text[:40]!r} is not an amount of credits.", next_step="Write it like 100 or 0.5.")
    whole, decimals = match[1], match[2] or ""
    if len(decimals) > DECIMALS:
        raise InputError(f"{text[:40]!r} has more than {DECIMALS} decimals; a credit has {DECIMALS}.")
    wei = int(whole) * WEI_PER_CREDIT + int(decimals.ljust(DECIMALS, "0"))
    if wei > MAX_WEI:
        raise InputError(f"{text[:40]!r} is more than the credit contract can hold.")
    return wei


def format_credits(wei: int) -> str:
    """`wei` in credits, exact, without trailing zeros: `0.5`, `100`, `-2.92`."""
    sign = "-" if wei < 0 else ""
    whole, decimals = divmod(abs(wei), WEI_PER_CREDIT)
    fraction = f"{decimals:0{DECIMALS}d}".rstrip("0")
    return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"
