"""Short forms of amounts, times and addresses that fit into 80 columns of ASCII."""

from __future__ import annotations

import time
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal

from rich.cells import cell_len, set_cell_size

from deepgrid.errors import InputError
from deepgrid.plain_text import plain

UNKNOWN = "?"
NONE = "-"
CENT = Decimal("0.01")


def amount(credits: Decimal | None) -> str:
    """Return an amount for a table, rounded to two decimals. An unknown amount is `?`, never 0."""
    if credits is None:
        return UNKNOWN
    if 0 < credits < CENT:
        return "<0.01"
    rounded = f"{credits.quantize(CENT, ROUND_HALF_UP):f}"
    return rounded.rstrip("0").rstrip(".")


def exact(credits: Decimal) -> str:
    """Return an amount in full, for forms and confirmations."""
    text = f"{credits:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def span(seconds: float) -> str:
    """Return a duration: `45s`, `12m`, `3h05m`, `2d04h`."""
    whole = max(0, int(seconds))
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 60:
        return f"{whole}s"
    if minutes < 60:
        return f"{minutes}m"
    if hours < 24:
        return f"{hours}h{minutes % 60:02}m"
    return f"{days}d{hours % 24:02}h"


def age(seconds: float) -> str:
    """Return an age in coarse units, so that an idle screen is seldom redrawn: `now`, `20s`, `3m`."""
    whole = max(0, int(seconds))
    return "now" if whole < 10 else f"{whole // 10 * 10}s" if whole < 60 else span(whole)


def day_and_time(at: datetime | None) -> str:
    """Local `07-23 14:05`; a dash if there is no time."""
    return NONE if at is None else time.strftime("%m-%d %H:%M", time.localtime(at.timestamp()))


def full_time(at: datetime | None) -> str:
    """Local `2026-07-23 14:05:59`; a dash if there is no time."""
    return NONE if at is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at.timestamp()))


def short_address(address: str) -> str:
    """`0x1234..cdef`."""
    return f"{address[:6]}..{address[-4:]}"


def cluster_words(name: str, address: str | None) -> str:
    """Return a cluster's name with its short address, because strangers choose names."""
    if not address:
        return NONE
    return short_address(address) if name == address else f"{plain(name)} ({short_address(address)})"


def fit(text: str, width: int, *, right: bool = False) -> str:
    """`text` without control characters, in exactly `width` cells. `~` marks a cut."""
    clean = plain(text)
    length = cell_len(clean)
    if length > width:
        return set_cell_size(clean, max(0, width - 1)) + "~" if width else ""
    return " " * (width - length) + clean if right else clean + " " * (width - length)


def minutes_of(text: str) -> int:
    """Return a typed time in minutes, rounded up. A bare number means minutes. Raises InputError."""
    if text.isascii() and text.isdigit() and len(text) < 9:
        return int(text)
    from deepgrid.client.job_values import seconds_of

    seconds = seconds_of(text or None)
    if not seconds:
        raise InputError("A time is written like 4h or 90m.")
    return -(-int(seconds) // 60)
