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
from deepgrid.scheduling.expiry import GIVE_UPS_EVERY_S, full_give_up_time


@dataclass(frozen=True)
class Chained:
    """Pending jobs whose earlier job is not over (`waiting`), or that can never start because of it.

    `in_vain` can be ended now, each after its earlier job. `doomed` jobs were requested to run after a job that had
    already failed. They are ended later, at full five minutes like jobs that are given up: else a customer could lock
    and get back the same credits at once, and make the operator pay.
    """

    waiting: tuple[Job, ...] = ()
    in_vain: tuple[Job, ...] = ()
    doomed: tuple[Job, ...] = ()

    @property
    def all(self) -> tuple[Job, ...]:
        """All jobs that must not be assigned now."""
        return self.waiting + self.in_vain + self.doomed


NOT_CHAINED = Chained()


async def read_chained(session: OperatorSession, pending: Sequence[Job], now: int) -> Chained:
    """Return the jobs of `pending` that cannot be assigned because of an earlier job."""
    chained = [job for job in pending if job.wishes.after_job]
    if not chained:
        return NOT_CHAINED
    earlier = await session.chain.jobs(sorted({job.wishes.after_job for job in chained}))
    return sort_chained(chained, earlier, now)


def sort_chained(chained: Sequence[Job], earlier: Sequence[Job], now: int) -> Chained:
    """Return those that must wait, and those that wait in vain. The others are ready.

    A chain of jobs ends as a whole, because the contract ends them in this order, and each names an older one.
    """
    first_by_id = {job.id: job for job in earlier}
    waiting, in_vain, doomed, ending = list[Job](), list[Job](), list[Job](), set[int]()
    for job in sorted(chained, key=lambda one: one.id):
        first = first_by_id[job.wishes.after_job]
        if first.status.hot and (first.id not in ending or job.wishes.after_any):
            waiting.append(job)
        elif first.status is JobStatus.FINISHED or job.wishes.after_any:
            continue
        elif first.status.cold and first.ended_at < job.submitted_at and now < doomed_until(job):
            doomed.append(job)
        else:
            in_vain.append(job)
            ending.add(job.id)
    return Chained(tuple(waiting), tuple(in_vain), tuple(doomed))


def doomed_until(job: Job) -> int:
    """Return the unix time at which the operator ends a job that was requested to run after a failed one."""
    return full_give_up_time(job.submitted_at + GIVE_UPS_EVERY_S)
