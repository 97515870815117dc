"""Garbage collection of a provider: claims that Slurm lost, and Slurm jobs whose claim is over.

The cluster is queried twice, with a grace period in between. Each query takes one command for all claims, and two more
for the missing ones. If the cluster gives no answer or half an answer, SlurmUnreachable is raised and nothing is
collected. The actions are the carrier's own steps, keyed by the claim, so a carrier may do the same meanwhile.
Each action returns what it did: the Slurm job, its account and the reason.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from deepgrid.lifecycle.actions import ReportRunning, Settle
from deepgrid.lifecycle.decide import Attempt, Observation
from deepgrid.lifecycle.ends import may_be_failed_launch
from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.lifecycle.slurm_state import Phase, SlurmJob
from deepgrid.lifecycle.zombies import is_left_over, is_suspect, put_right_by, why_over
from deepgrid.observability.action_taken import ActionTaken
from deepgrid.provider.claims.carrier import Carrier
from deepgrid.provider.claims.observer import launch_failures
from deepgrid.provider.session import ProviderSession
from deepgrid.slurm.commands.job_row import Row
from deepgrid.slurm.observe.holdings import Holdings
from deepgrid.slurm.supervision.monitor import query_verdicts


@dataclass(frozen=True, slots=True)
class Suspect:
    """A claim that was missing in Slurm at the first query. `seen_at` is by time.monotonic()."""

    key: JobKey
    slurm: SlurmJob
    seen_at: float


@dataclass(frozen=True, slots=True)
class Zombie:
    """A claim that needs an action. Its Slurm job and account may be unknown: None, and empty."""

    seen: Observation
    slurm_id: int | None
    account: str


@dataclass(frozen=True, slots=True)
class LeftOver:
    """A job in Slurm's queue whose claim is over. `why` describes the claim's end."""

    key: JobKey
    slurm_id: int | None
    account: str
    why: str


@dataclass(frozen=True, slots=True)
class Findings:
    """Result of the first query: the number of claims, suspect claims, and Slurm jobs whose claim is over.

    `foreign` are jobs that customers' accounts run without a claim, and so without payment.
    """

    claims: int
    suspects: tuple[Suspect, ...] = ()
    left_over: tuple[LeftOver, ...] = ()
    foreign: tuple[Row, ...] = ()


async def look_for_zombies(session: ProviderSession) -> Findings:
    """Compare the claims on chain with the cluster's queue, spool and accounting. Changes nothing."""
    claimed = await session.chain.jobs(await session.chain.claimed_jobs(session.address))
    jobs = {session.key_of(job): job for job in claimed}
    look, states = await query_verdicts(session.cluster, list(jobs))
    seen_at = time.monotonic()
    suspects = [
        Suspect(key, states[key], seen_at)
        for key, job in jobs.items()
        if is_suspect(job, states[key], submitted=key.comment in look.ids)
    ]
    held = await session.cluster.queue(session.key(0, 0))
    foreign = () if session.settings.trust_customers else held.foreign  # trusted customers may use accounts otherwise
    return Findings(len(jobs), tuple(suspects), await _left_over(session, held, jobs), foreign)


async def look_again(session: ProviderSession, suspects: Sequence[Suspect], grace_s: int) -> list[Zombie]:
    """Query all suspects again after the grace period. Returns those that need an action."""
    look, states = await query_verdicts(session.cluster, [suspect.key for suspect in suspects])
    jobs = await session.chain.jobs([suspect.key.job_id for suspect in suspects])
    seen = [
        await _observation(session, *pair, look.clock, states, grace_s) for pair in zip(suspects, jobs, strict=True)
    ]
    return [
        Zombie(one, look.ids.get(one.key.comment), look.users.get(one.key.comment, ""))
        for one in seen
        if put_right_by(one) is not None
    ]


async def put_right(session: ProviderSession, zombie: Zombie) -> ActionTaken:
    """Settle or refuse one claim, as it ended or as lost."""
    seen = zombie.seen
    carrier = Carrier(session, seen.key)
    carrier.observer.seen = seen.slurm
    if seen.slurm.phase is Phase.ENDED:
        session.logs.follow(seen.key)
    while isinstance(action := put_right_by(seen), ReportRunning):
        await carrier.report_running(action)
        seen = replace(seen, job=await session.chain.job(seen.key.job_id))
    why = ""
    if isinstance(action, Settle):
        await carrier.settle(action)
        why = action.error
    elif action is not None:
        await carrier.refuse(action.reason)
        why = action.reason
    if seen.slurm.phase is Phase.ENDED and not session.carries(seen.key):
        await carrier.finish()
    job = await session.chain.job(seen.key.job_id)
    return ActionTaken(
        verb="settled" if job.status.cold else "gave back",
        noun="job",
        reason=f"it is {job.status.words}" + (f", {why}" if why else ""),
        job_id=job.id,
        slurm_id=zombie.slurm_id,
        account=zombie.account,
        customer=job.customer,
        cost_wei=job.final_cost_wei,
    )


async def cancel_left_over(session: ProviderSession, left: LeftOver) -> ActionTaken:
    """Cancel a Slurm job whose claim is over."""
    await session.cluster.cancel(left.key)
    return ActionTaken("cancelled", "Slurm job", left.why, left.key.job_id, left.slurm_id, left.account)


async def end_foreign(session: ProviderSession, foreign: Sequence[Row]) -> list[ActionTaken]:
    """End jobs of customers' accounts without a claim, each as its own account. Names those that Slurm keeps, too."""
    ended = set(await session.cluster.end_foreign(foreign))
    return [
        ActionTaken(
            verb="ended" if row.slurm_id in ended else "could not end",
            noun="Slurm job",
            reason="it belongs to no claim",
            slurm_id=row.slurm_id,
            account=row.user,
        )
        for row in foreign
    ]


async def _left_over(session: ProviderSession, held: Holdings, claims: dict[JobKey, Job]) -> tuple[LeftOver, ...]:
    """Return claims in the queue that are over. Jobs of other grids are left alone."""
    head = await session.chain.head()  # claims newer than this node's head are skipped
    last = await session.chain.job_count(head.number)
    rows = {
        key: row
        for key, row in sorted(held.claims.items(), key=lambda item: item[0].comment)
        if key not in claims and 0 < key.job_id <= last and key.claimed_at < head.timestamp
    }
    jobs = await session.chain.jobs([key.job_id for key in rows], head.number)
    return tuple(
        LeftOver(key, row.slurm_id, held.accounts[key], why_over(key, job))
        for (key, row), job in zip(rows.items(), jobs, strict=True)
        if is_left_over(key, job, row)
    )


async def _observation(
    session: ProviderSession, suspect: Suspect, job: Job, now: int, states: dict[JobKey, SlurmJob], grace_s: int
) -> Observation:
    """Return the observation for `decide`. Slurm accepted the job once, so there is nothing to submit."""
    absent_s = time.monotonic() - suspect.seen_at if suspect.slurm.phase is Phase.ABSENT else None
    slurm = states[suspect.key]
    failures = await launch_failures(session.chain, job) if may_be_failed_launch(slurm) else 0
    return Observation(
        suspect.key, session.address, job, slurm, now, Attempt(), absent_s=absent_s, grace_s=grace_s,
        launch_failures=failures,
    )  # fmt: skip
