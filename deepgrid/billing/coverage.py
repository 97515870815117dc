"""Which time the books have covered: the cursor of the scheduled runs. Pure.

A scheduled run begins where the last one ended. So a period that no run has compared, because of an outage, is part of
the next run. A run that is repeated gets its own period again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from deepgrid.billing.entries import Span
from deepgrid.billing.period import DAY_S
from deepgrid.errors import InputError

AGAIN_S = 600  # read again by the next run: a reorganisation may change the newest blocks
RUNS_KEPT = 20


@dataclass(frozen=True)
class Chosen:
    """The period of a run. `covers_until` is where the next scheduled run begins, None for a period of a person."""

    span: Span
    covers_until: int | None = None

    @property
    def late_s(self) -> int:
        """Seconds before the period for which rows of accounting count that came late."""
        return 0 if self.covers_until is None else DAY_S


@dataclass(frozen=True)
class Coverage:
    """What scheduled runs compared. `until` is the time that they reached, None before the first one.

    `runs` are the periods of the last runs.
    """

    until: int | None = None
    runs: dict[str, tuple[int, int, int]] = field(default_factory=dict)

    def choose(self, run: str, now: int, newest_block_at: int, again_s: int = AGAIN_S) -> Chosen:
        """Return the period of a scheduled run: since the last run, or the last 24 hours.

        It ends now. The next one begins `again_s` before the newest block, which a node that lags may show late.
        """
        if run in self.runs:
            since, until, covers = self.runs[run]
            return Chosen(Span(since, until), covers)
        since = now + 1 - DAY_S if self.until is None else min(self.until, now)
        return Chosen(Span(since, now + 1), max(since, min(newest_block_at, now) - again_s))

    def after(self, run: str, chosen: Chosen) -> Coverage:
        """Return the coverage after a run."""
        if chosen.covers_until is None:
            return self
        periods = {**self.runs, run: (chosen.span.since, chosen.span.until, chosen.covers_until)} if run else self.runs
        kept = dict(list(periods.items())[-RUNS_KEPT:])
        return Coverage(max(chosen.covers_until, self.until or 0), kept)

    def as_json(self) -> dict[str, Any]:
        """Return the content of its file."""
        return {"until": self.until, "runs": self.runs}

    @classmethod
    def of(cls, value: Any) -> Coverage:
        """Return the coverage in a file. Raises InputError for a file that is damaged."""
        try:
            runs = {str(run): (int(a), int(b), int(c)) for run, (a, b, c) in value["runs"].items()}
            return cls(None if value["until"] is None else int(value["until"]), runs)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise InputError(
                "The file that says which time the books have covered is damaged.",
                next_step="Delete covered.json in the folder of the books, and run the missing period by hand.",
            ) from None
