"""The form of a question to Slurm, and the text forms that its answers share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import ClassVar, Protocol, TypeVar

Answer_co = TypeVar("Answer_co", covariant=True)
COMMAND_PREFIX = ("env", "LC_ALL=C", "TZ=UTC", "SLURM_TIME_FORMAT=%s")


class Query(Protocol[Answer_co]):
    """A question to Slurm. It does no I/O."""

    program: ClassVar[str]

    def argv(self) -> list[str]:
        """Return the command line that asks."""

    def parse(self, text: str) -> Answer_co:
        """Parse the command's output. Never fails on unknown text."""


def columns(text: str, count: int, *, numeric: bool = True) -> Iterator[list[str]]:
    """Yield the rows of `count` columns; with `numeric`, only rows that begin with the ids of a job and an account."""
    for line in text.split("\n"):
        row = [column.strip() for column in line.split("|", count - 1)]
        if len(row) == count and (not numeric or (is_id(row[0]) and is_id(row[1]))):
            yield row


def is_id(text: str) -> bool:
    """Return whether the text is the id of a job or an account, and nothing else."""
    return re.fullmatch(r"[0-9]{1,10}", text) is not None


def number(text: str) -> int | None:
    """Return a whole number, or None for other text, such as `inf`."""
    try:
        return int(float(text))
    except (ValueError, OverflowError):
        return None


def seconds(text: str) -> int | None:
    """Return unix seconds, or None for `Unknown`, `None`, `N/A` and 0."""
    return number(text) or None


def utc(unix_seconds: int) -> str:
    """Return a time in the form that Slurm reads under TZ=UTC."""
    return f"{datetime.fromtimestamp(unix_seconds, UTC):%FT%T}"


def duration_s(text: str) -> int | None:
    """Return the seconds of Slurm's duration: `0:05`, `1:05:00`, `2-01:05:00`; None for another text."""
    minutes = limit_minutes(text)
    return None if minutes is None else 60 * minutes + int(text[-2:])


def limit_minutes(text: str) -> int | None:
    """Return the minutes of Slurm's time limit: `5:00`, `1:05:00`, `2-01:05:00`; None for a word like `UNLIMITED`."""
    found = re.fullmatch(r"(?:(?:([0-9]{1,9})-)?([0-9]{1,9}):)?([0-9]{1,9}):[0-9]{2}", text)
    if not found:
        return None
    days, hours, minutes = (int(part or 0) for part in found.groups())
    return (days * 24 + hours) * 60 + minutes
