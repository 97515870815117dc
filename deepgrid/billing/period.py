"""Parses periods: dates or times in UTC. `until` itself is not part of the period."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from deepgrid.billing.entries import Span
from deepgrid.errors import InputError

DAY_S = 86400


def parse_period(since: str | None, until: str | None, now: int) -> Span:
    """Return the period from `since` to `until`; by default the 24 hours before `now` (unix seconds).

    Each is a date (its midnight) or a time such as 2026-11-21T14:30, in UTC unless it names a time zone.
    Raises InputError for other formats, and for an end that is not after the start.
    """
    end = now + 1 if until is None else parse_time(until)
    begin = end - DAY_S if since is None else parse_time(since)
    if begin >= end:
        raise InputError(
            f"The period begins at {format_time(begin)} and ends at {format_time(end)}.",
            next_step="Give a `since` that is before `until`.",
        )
    return Span(begin, end)


def parse_periods(period: str, since: str | None, until: str | None, now: int) -> tuple[Span, Span]:
    """Return the period of a report, and the one before it.

    With `since`, it reaches to `until`, or to `now` if that is earlier, and the one before is as long. Otherwise it is
    the last whole week (Monday to Sunday) or month in UTC, and the one before is the week or month before that.
    Raises InputError for other periods.
    """
    if since is not None:
        span = parse_period(since, until, now)
        span = Span(span.since, min(span.until, now + 1))
        if span.since >= span.until:
            raise InputError("The period has not begun.", next_step="Give a `since` that is in the past.")
        return span, Span(2 * span.since - span.until, span.since)
    if until is not None:
        raise InputError("The period has an end and no start.", next_step="Give `since` too.")
    edges = [_midnight(datetime.fromtimestamp(now, UTC), period)]
    for _ in range(2):
        edges.append(_midnight(datetime.fromtimestamp(edges[-1] - 1, UTC), period))
    return Span(edges[1], edges[0]), Span(edges[2], edges[1])


def _midnight(time: datetime, period: str) -> int:
    """Return the start of the week or month that the time is in."""
    if period not in ("week", "month"):
        raise InputError(f"{period[:40]!r} is no period.", next_step="Use week or month.")
    days = time.weekday() if period == "week" else time.day - 1
    return int((time - timedelta(days=days)).replace(hour=0, minute=0, second=0, microsecond=0).timestamp())


def parse_time(text: str) -> int:
    """Unix seconds of a date or time. Raises InputError."""
    try:
        time = datetime.fromisoformat(text.strip())
        return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        raise InputError(
            f"{text[:40]!r} is neither a date nor a time.", next_step="Write it like 2026-11-21 or 2026-11-21T14:30."
        ) from None


def format_time(at: int | None) -> str:
    """Unix seconds as `2026-11-21 14:30:00`, UTC; empty for None and 0."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S") if at else ""


def file_name(span: Span) -> str:
    """Return the period as a name for a file: `2026-11-20T023000Z-2026-11-21T023000Z`."""
    return "-".join(datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H%M%SZ") for at in (span.since, span.until))
