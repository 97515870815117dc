"""Jobs that wait for an earlier one: some must wait longer, others wait in vain.

The contract refuses to assign a job before, so the scheduler does not count it. If the earlier job fails, the contract
lets anyone end the later one with a full refund.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from deepgrid.operator.session import OperatorSession


@dataclass(frozen=True)
class Chained:
    """Pending jobs whose earlier job is not over (`waiting`), or ended without being finished (`in_vain`)."""

    waiting: tuple[Job, ...] = ()
    in_vain: tuple[Job, ...] = ()


NOT_CHAINED = Chained()


async def read_chained(session: OperatorSession, pending: Sequence[Job]) -> Chained:
    """Return the jobs of `pending` that cannot be assigned because of an earlier job."""
    chained = [job for job in pending if job.wishes.after_job]
    if not chained:
        return NOT_CHAINED
    earlier = await session.chain.jobs(sorted({job.wishes.after_job for job in chained}))
    return sort_chained(chained, {job.id: job.status for job in earlier})


def sort_chained(chained: Sequence[Job], earlier: dict[int, JobStatus]) -> Chained:
    """Return those that must wait and those that wait in vain. The others are ready."""
    waiting = tuple(job for job in chained if earlier[job.wishes.after_job].hot)
    in_vain = tuple(
        job
        for job in chained
        if earlier[job.wishes.after_job].cold
        and earlier[job.wishes.after_job] is not JobStatus.FINISHED
        and not job.wishes.after_any
    )
    return Chained(waiting, in_vain)
