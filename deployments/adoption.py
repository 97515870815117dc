"""Adoption: claims that nobody carries get their own run scheduled again.

At a supervisor's start that is every claim left by the last process; later, what a crash of
Prefect or a cancelled run left behind.
"""

from __future__ import annotations

import logging

from deepgrid.lifecycle.job import Job
from deepgrid.roles.provider import ProviderSession, carried_states
from tasks.claiming import schedule_again, start_job_run
from tasks.runs import is_carried

logger = logging.getLogger(__name__)


async def adopt(session: ProviderSession, job: Job) -> None:
    """Schedule the run of the job's present claim again, unless it is carried here.

    Call it only when no other process carries for this provider: it overrides the run's state.
    """
    if job.provider != session.address or job.status not in carried_states():
        return
    if session.carries(session.key_of(job)):
        return
    run = await start_job_run(session, job)
    if is_carried(run, f"provider-{session.settings.cluster}") or (run.state is not None and run.state.is_scheduled()):
        return
    logger.info("job %d is %s and nobody carries it: adopting", job.id, job.status.words)
    await schedule_again(session, run, "Adopted by the supervisor.")
