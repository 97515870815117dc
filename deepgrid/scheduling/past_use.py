"""Past use of a customer's jobs, and its effect on the next ones. Pure.

A job keeps its resources from others from its assignment to its end, whether it runs or not. The average of what a
customer kept, with exponential decay, is its past use, as in HTCondor's user priority. Use of one half life ago counts
half. All times are the chain's, so the result does not depend on when rounds took place.

Cancelling a job that kept a cluster from others and never ran is free. So a customer gets a few such cancels. After
these, its pending jobs wait, each time twice as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from deepgrid.lifecycle.job import Job
from deepgrid.scheduling.market import Resources, SchedulerSettings, Usage

FIRST_WAIT_S, LONGEST_WAIT_S = 60.0, 3600.0
NOTHING = Resources()
NEGLIGIBLE = 1e-6  # of a CPU, of a MB, of a GPU, of a cancel


@dataclass(frozen=True, slots=True)
class Hold:
    """Resources that a customer's job keeps from others, since a unix time."""

    customer: str
    needs: Resources
    since: int

    @staticmethod
    def of(job: Job) -> Hold | None:
        """Return the resources that an assigned job keeps; None for a job without a provider."""
        return None if job.provider is None else Hold(job.customer, Resources.of(job.definition), job.assigned_at)


@dataclass(frozen=True, slots=True)
class Account:
    """Past use by a customer's ended jobs.

    Attributes:
        past: Average resources in use, at unix time `at`.
        at: Time up to which holds are counted.
        cancels: How often the customer cancelled a job that never ran, with decay, at `cancelled_at`.
        cancelled_at: Unix time of the last such cancel that counted.
    """

    past: Resources = NOTHING
    at: int = 0
    cancels: float = 0.0
    cancelled_at: int = 0

    def with_hold(self, hold: Hold, until: int, half_life_s: float) -> Account:
        """Return the account after a hold that ended at `until`."""
        until = max(until, hold.since)
        at = max(self.at, until)
        added = hold.needs * (
            _remaining_share(at - until, half_life_s) - _remaining_share(at - hold.since, half_life_s)
        )
        return replace(self, past=self.past_at(at, half_life_s) + added, at=at)

    def with_cancel(self, hold: Hold, at: int, half_life_s: float) -> Account:
        """Return the account after a cancel. Holds that began before the last cancel count with it, as one."""
        if hold.since < self.cancelled_at:
            return self
        return replace(self, cancels=self._cancels_at(at, half_life_s) + 1, cancelled_at=at)

    def past_at(self, now: int, half_life_s: float) -> Resources:
        """Past use at `now`, if nothing was held since."""
        return self.past * _remaining_share(now - self.at, half_life_s)

    def waits_until(self, free_cancels: int) -> int:
        """Unix time until which the customer's pending jobs wait; 0 if it cancelled no more than it may."""
        over = round(self.cancels) - free_cancels
        wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(over - 1, 10))
        return self.cancelled_at + int(wait_s) if over > 0 else 0

    def is_negligible(self, now: int, half_life_s: float) -> bool:
        """Return whether nothing is left to remember."""
        return max(*self.past_at(now, half_life_s), self._cancels_at(now, half_life_s)) < NEGLIGIBLE

    def _cancels_at(self, now: int, half_life_s: float) -> float:
        return self.cancels * _remaining_share(now - self.cancelled_at, half_life_s)


def usage_at(now: int, accounts: Mapping[str, Account], holds: Iterable[Hold], settings: SchedulerSettings) -> Usage:
    """Return past and present use per customer: of ended jobs, and of jobs that still hold resources."""
    half_life_s = settings.half_life_s
    past = {one: account.past_at(now, half_life_s) for one, account in accounts.items()}
    present: dict[str, Resources] = {}
    for hold in holds:
        present[hold.customer] = present.get(hold.customer, NOTHING) + hold.needs
        added = hold.needs * (1.0 - _remaining_share(now - hold.since, half_life_s))
        past[hold.customer] = past.get(hold.customer, NOTHING) + added
    waits = {one: account.waits_until(settings.free_cancels) for one, account in accounts.items()}
    return Usage(past, present, {one: until for one, until in waits.items() if until > now})


def _remaining_share(elapsed_s: float, half_life_s: float) -> float:
    """Return the part that still counts after this time."""
    return float(0.5 ** (max(0.0, elapsed_s) / half_life_s))
