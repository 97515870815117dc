"""The side effects of `cancel_jobs` and `top_up_jobs`."""

from __future__ import annotations

from deepgrid.lifecycle.job import Job
from deepgrid.provider import steering
from deepgrid.provider.session import ProviderSession
from deepgrid.provider.steering import Steered
from runtime.retry_policy import side_effect
from tasks.claim_jobs import schedule_again, start_job_runs


@side_effect("read cancel requests on {session.settings.cluster}")
async def read_cancel_requests(session: ProviderSession) -> list[Job]:
    """Claimed jobs that their customers have asked to end."""
    return await steering.to_be_cancelled(session)


@side_effect("read top-ups on {session.settings.cluster}")
async def read_top_ups(session: ProviderSession) -> list[Job]:
    """Claimed jobs whose credits grew."""
    return await steering.topped_up(session)


@side_effect("next cancel request on {session.settings.cluster}")
async def next_cancel_request(session: ProviderSession) -> Job | None:
    """Take the next entry off the on-chain queue of cancel requests; None when it is empty."""
    return await steering.next_cancel_request(session)


@side_effect("next top-up on {session.settings.cluster}")
async def next_top_up(session: ProviderSession) -> Job | None:
    """Take the next entry off the on-chain queue of top-ups; None when it is empty."""
    return await steering.next_top_up(session)


@side_effect("have job {job.id} ended on {session.settings.cluster}")
async def have_ended(session: ProviderSession, job: Job) -> Steered:
    """Let the job's carrier, or whoever becomes it, end the job at Slurm and settle it."""
    if not steering.at_cluster(session, job):
        return Steered.NOTHING_TO_DO
    if steering.wake_carrier(session, job):
        return Steered.CARRIER_WOKEN
    await _schedule_run(session, job)
    return Steered.RUN_SCHEDULED


@side_effect("have job {job.id} extended to {job.granted_minutes} minutes on {session.settings.cluster}")
async def have_extended(session: ProviderSession, job: Job) -> Steered:
    """Let the job's carrier give it the time that its credits buy; one that nobody carries gets it here."""
    if not steering.at_cluster(session, job):
        return Steered.NOTHING_TO_DO
    if steering.wake_carrier(session, job):
        return Steered.CARRIER_WOKEN
    await steering.give_time(session, job)
    await _schedule_run(session, job)
    return Steered.RUN_SCHEDULED


async def _schedule_run(session: ProviderSession, job: Job) -> None:
    """See that the claim has a run that comes: one that ended is scheduled again, another one is under way.

    One that seems to run, and whose process is gone, is the supervisor's to adopt.
    """
    [run] = await start_job_runs(session, [session.key_of(job)])
    if run.state is not None and run.state.is_final():
        await schedule_again(session, run, "The job's customer wants something of it.")
