"""Warns customers before the paid time of a running job ends, with a line in its log and a notice.

A carrier announces each end once. A job with spending authority gets more time from the grid, so its later ends are
told only when the allowance lasts for less than an hour.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime

from deepgrid.errors import GridError
from deepgrid.lifecycle.decide import Observation
from deepgrid.lifecycle.ends import MONEY_ENDING
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.provider.session import ProviderSession

TOLD_BEFORE_S = 600
SCARCE_MINUTES = 60  # of further time that the allowance buys


@dataclass(frozen=True, slots=True)
class Further:
    """Minutes that the grid can still buy from the customer's allowance, within the customer's limit for the job."""

    minutes: int


@dataclass
class MoneyEnd:
    """What one carrier has told of the end of a job's bought time."""

    session: ProviderSession
    _told: set[int] = field(default_factory=set)  # ends, in unix seconds

    async def observed(self, seen: Observation) -> None:
        """Warn the customer if the paid time ends soon. An outage of the chain only delays it."""
        ends_at = end_of_bought_time(seen)
        if ends_at is None or ends_at in self._told or seen.now < ends_at - TOLD_BEFORE_S:
            return
        try:
            further = await self._further(seen.job) if seen.job.delegate_spending else None
        except GridError:
            return  # the next observation tries again
        is_first = not self._told
        self._told.add(ends_at)
        if further is not None and not is_first and further.minutes >= SCARCE_MINUTES:
            return
        text = ending_words(seen.job, ends_at, further)
        self.session.logs.say(seen.key, text)
        await self.session.explain(seen.key.job_id, MONEY_ENDING, text)

    async def _further(self, job: Job) -> Further:
        chain = self.session.chain
        constants, allowance, balance, spendable = await asyncio.gather(
            chain.constants(), chain.allowance(job.customer), chain.balance(job.customer), chain.spendable([job.id])
        )
        minutes, rate = constants.top_up_slice_minutes, job.rate_wei_per_minute
        has, most = min(allowance, balance), spendable[job.id]
        slices, rest = divmod(most, minutes * rate)  # the last slice is the rest of the limit
        bought = min(slices, has // (minutes * rate))
        whole = bought * minutes
        return Further(whole + rest // rate if bought == slices and has >= most else whole)


def end_of_bought_time(seen: Observation) -> int | None:
    """Return when Slurm ends the job for lack of credits, in unix seconds; None unless it runs for a price."""
    started_at, job = seen.slurm.started_at, seen.job
    if seen.is_foreign or seen.slurm.phase is not Phase.RUNNING or started_at is None or not job.rate_wei_per_minute:
        return None
    return started_at + 60 * job.granted_minutes


def ending_words(job: Job, ends_at: int, further: Further | None) -> str:
    """Return what the customer reads. `further` is None for a job without spending authority."""
    begin = f"the bought time ends at {datetime.fromtimestamp(ends_at, UTC):%F %H:%M} UTC"
    if further is None:
        return f"{begin}; `dps job topup {job.id} --time 1h` buys more"
    if not further.minutes:
        return (
            f"{begin}, and the grid may buy no more time: raise the allowance with `dps allowance set`, and the limit"
            f" of this job with `dps job auto-top-up {job.id} --limit CREDITS`"
        )
    return f"{begin}; the grid buys more, as you allowed: {further.minutes} more minutes at most"
