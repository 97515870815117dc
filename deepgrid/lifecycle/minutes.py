"""Minutes of a run as they are reported and billed.

The contract counts in the same way (docs/explanation/contracts.md).
"""

from __future__ import annotations


def started_minutes(started_at: int, ended_at: int) -> int:
    """Return the started minutes between two unix times, at least 1: 1 s -> 1, 60 s -> 1, 61 s -> 2."""
    return minutes_begun(ended_at - started_at)


def elapsed_minutes(start: int, end: int) -> int:
    """Return the most minutes that the contract bills between two of its times, 0 if no time passed."""
    return max(0, -(-(end - start) // 60))


def minutes_begun(seconds: int) -> int:
    """Return the started minutes within this many seconds, at least 1."""
    return max(1, -(-seconds // 60))
