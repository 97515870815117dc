"""Amounts and durations as callers write them, and the values of jobs that the client returns.

Money is exact, so floats are refused: 1 credit = 10**18 wei. Returned values are frozen, their amounts are `Decimal`
credits, and their times are aware datetimes in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from operator import index
from typing import SupportsFloat, SupportsIndex

from deepgrid.billing.credits import format_credits, parse_credits
from deepgrid.billing.formulas import bill
from deepgrid.errors import InputError
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus

Credits = str | int | Decimal
"""An amount of credits, such as `100`, `"0.5"` or `Decimal("0.5")`."""

Duration = str | int | float | timedelta
"""A duration: seconds, a timedelta, or a text such as `90s`, `1h30m`, `2d` or, as Slurm writes it, `1-01:30:00`."""

Parameters = Mapping[str, object] | tuple[Mapping[str, object], ...]
"""The parameters of one job: one set, or a tuple of sets if jobs are packed (`pack`)."""

LAST_JOB = 2**31 - 1  # the largest number that a workflow file can name
TOO_FEW_CREDITS = "ERC20InsufficientBalance"  # name of the contract's error

_SLURM_TIME = re.compile(r"(?:([0-9]{1,6})-(?=[0-9]))?([0-9]{1,9}(?::[0-9]{1,2}){0,2})", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_UNIT = r"(?:s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)"
_PART = re.compile(rf"([0-9]+(?:\.[0-9]+)?) ?({_UNIT})(?![a-z])", re.ASCII | re.IGNORECASE)
_DURATION = re.compile(rf"{_PART.pattern}(?:(?:,? )?{_PART.pattern})*", re.ASCII | re.IGNORECASE)


def wei_of(amount: Credits) -> int:
    """Return the wei in an amount of credits.

    Raises:
        InputError: The amount is a float, is negative, has more than 18 decimals, or is not an amount.
    """
    if isinstance(amount, float):
        written = repr(float(amount))  # the repr of numpy's numbers contains their type
        raise InputError(
            f"{written} is a float, which cannot hold every amount of credits.",
            next_step=f"Write '{written}' or Decimal('{written}').",
        )
    if isinstance(amount, SupportsIndex) and not isinstance(amount, bool):
        return parse_credits(str(index(amount)))
    if not isinstance(amount, str | Decimal):
        raise InputError(f"{amount!r} is not an amount of credits.", next_step="Write it like 100 or '0.5'.")
    if isinstance(amount, Decimal) and amount.is_finite() and abs(amount.adjusted()) < 100:
        return parse_credits(f"{amount:f}")
    return parse_credits(str(amount))


def job_number(value: object, first: int = 0, last: int = 2**256 - 1) -> int:
    """Return the number of a job. It can be given as a job, an integer, or a string of digits. Raises InputError."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = int(value)
    if isinstance(value, SupportsIndex) and not isinstance(value, bool) and first <= index(value) <= last:
        return index(value)
    raise InputError(
        f"{str(value)[:40]!r} ({type(value).__name__}) is not the number of a job.",
        next_step="Write it like grid.job(12).",
    )


def credits_of(wei: int) -> Decimal:
    """`wei` in credits, exact."""
    return Decimal(format_credits(wei))  # the constructor is exact; arithmetic on Decimal would round to 28 digits


def seconds_of(duration: Duration | None) -> float | None:
    """Return a duration in seconds. None means no limit and stays None.

    Raises:
        InputError: The duration is negative or not a duration.
    """
    if duration is None:
        return None
    if isinstance(duration, timedelta):
        seconds = duration.total_seconds()
    elif isinstance(duration, str):
        seconds = _seconds_in(duration)
    elif isinstance(duration, bool) or not isinstance(duration, SupportsFloat):
        raise _not_a_duration(duration)
    else:
        seconds = float(duration if abs(duration) < 1e30 else "inf")
    if not 0 <= seconds < float("inf"):
        raise _not_a_duration(duration)
    return seconds


def _seconds_in(text: str) -> float:
    bare = text.strip()
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", bare, re.ASCII):
        raise InputError(
            f"{bare[:40]!r} has no unit of time.", next_step=f"Write {bare[:40]}s, {bare[:40]}m or {bare[:40]}h."
        )
    if slurm := _SLURM_TIME.fullmatch(bare):
        return _slurm_seconds(slurm[1], slurm[2].split(":"))
    if not _DURATION.fullmatch(bare):
        raise _not_a_duration(text)
    return sum(float(number) * _UNITS_S[unit[0].lower()] for number, unit in _PART.findall(text))


def _slurm_seconds(days: str | None, parts: list[str]) -> float:
    """Return the seconds of a time limit as Slurm writes it: `MM:SS`, `HH:MM:SS`, `D-HH`, `D-HH:MM` or `D-HH:MM:SS`."""
    if days is None:
        parts = ["0"] * (3 - len(parts)) + parts
    hours, minutes, seconds = (int(part) for part in (*parts, "0", "0")[:3])
    return float(((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds)


def _not_a_duration(value: object) -> InputError:
    return InputError(
        f"{str(value)[:40]!r} is not a duration.", next_step="Write a text like 90s or 1h30m, or 01:30:00."
    )


@dataclass(frozen=True, slots=True)
class Bill:
    """The bill of a job that is over. `cost` + `refund` = `locked`; `to_provider` + `platform_cut` = `cost`.

    Attributes:
        rate: Credits per minute; 0 if no cluster was assigned.
        minutes: Billed minutes; None for a job without a price.
        cost: Credits that the job cost.
        to_provider: Credits that the provider got.
        platform_cut: Credits that the platform got.
        refund: Credits that came back.
        locked: Credits that were locked.
    """

    rate: Decimal
    minutes: int | None
    cost: Decimal
    to_provider: Decimal
    platform_cut: Decimal
    refund: Decimal
    locked: Decimal


@dataclass(frozen=True, slots=True)
class Step:
    """A change of a job's state.

    Attributes:
        status: The new state.
        at: Time of the block.
        words: What happened, such as `claimed by alpha`.
        transaction: Hash of the transaction.
    """

    status: JobStatus
    at: datetime
    words: str
    transaction: str


@dataclass(frozen=True, slots=True)
class JobChange:
    """A change of one of the customer's jobs, as the grid's `watch` yields it.

    Attributes:
        job_id: Number of the job.
        status: Its new state. A new job is pending.
        at: Time of the block.
        transaction: Hash of the transaction.
        cursor: Position on the chain after this change. `watch(cursor)` continues there.
    """

    job_id: int
    status: JobStatus
    at: datetime
    transaction: str
    cursor: str


@dataclass(frozen=True, slots=True)
class Remark:
    """A remark of the meta-scheduler or of a cluster on a job. Strangers write its text.

    Attributes:
        at: When it was published.
        kind: A word, such as `waiting`, `assigned` or `refused`.
        text: The remark, on one line.
        author: Address that signed it.
    """

    at: datetime
    kind: str
    text: str
    author: str = ""


class MoneyEnding(Remark):
    """A cluster's remark, published about ten minutes before the paid time of a job ends.

    For a job that the grid tops up, it says how much longer the allowance lasts, if at all.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ViewMessage:
    """A message from the client about a watched job: an outage, a cancel request, or a restart of its output.

    Attributes:
        at: When it happened, or when the client learned it.
        text: The sentence.
    """

    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a job's output, without its end and without control sequences other than colours.

    Attributes:
        arrived: When this client got the line.
        text: The line.
        claim: 1 for the first cluster that ran the job while this log was read, 2 for the next one.
        written: When the end of the line reached the grid; None if the services do not say so.
        continues: Whether the next line continues this one: lines are cut after 65,536 characters.
    """

    arrived: datetime
    text: str
    claim: int = 1
    written: datetime | None = None
    continues: bool = False


def bill_of(job: Job) -> Bill:
    """Return the bill of a job that is over. Its cost is the contract's; the division is by the contract's formula."""
    rate, cost = job.rate_wei_per_minute, job.final_cost_wei
    minutes = -(-cost // rate) if rate else None  # a last minute that the credits did not cover is billed in part
    parts = bill(minutes or 0, rate, job.locked_wei, job.cut_percent)
    amounts = cost, parts.paid, parts.cut, job.locked_wei - cost, job.locked_wei
    return Bill(credits_of(rate), minutes, *map(credits_of, amounts))


def datetime_of(unix_s: int) -> datetime:
    """Return a time of the chain as a datetime."""
    return datetime.fromtimestamp(unix_s, UTC)


def moment_of(unix_s: int) -> datetime | None:
    """Return a time of the chain as a datetime; None for 0, which means that it did not happen."""
    return datetime_of(unix_s) if unix_s else None


@dataclass(frozen=True, slots=True)
class LogStatus:
    """How complete the log of a job is. Unlike lines in the log, which a job can print too, these figures are facts.

    Attributes:
        size: Bytes of the log that can be read now.
        left_out: Bytes of the output that are not in the log and will not be.
        pending: Bytes of the output that the cluster still has to deliver.
        final: Whether nothing will be added to the log.
        closed: Whether the cluster said that the log is complete, except for what is left out.
    """

    size: int
    left_out: int = 0
    pending: int = 0
    final: bool = False
    closed: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the log holds all that the job wrote."""
        return self.final and self.closed and not self.left_out

    @property
    def words(self) -> str:
        """The same as a sentence."""
        if self.is_whole:
            return f"The log is whole: {self.size:,} bytes."
        lacks = [f"{self.left_out:,} bytes are left out"] if self.left_out else []
        if not self.final:
            lacks.append(f"{self.pending:,} bytes are still to come" if self.pending else "more may come")
        elif not self.closed:
            count = f"the last {self.pending:,} bytes" if self.pending else "its end"
            lacks.append(f"its cluster did not deliver {count}")
        return f"The log is not whole: {', and '.join(lacks)}."
