"""The side effects of `cancel_jobs` and `top_up_jobs`."""

from __future__ import annotations

from deepgrid.lifecycle.job import Job
from deepgrid.provider.claims import steering
from deepgrid.provider.claims.steering import Steered
from deepgrid.provider.session import ProviderSession
from orchestration.retry_policy import side_effect
from tasks.claim_jobs import schedule_again, start_job_runs

read_cancel_requests = side_effect("read cancel requests on {session.settings.cluster}")(steering.read_cancel_requests)
read_top_ups = side_effect("read top-ups on {session.settings.cluster}")(steering.read_top_ups)
next_cancel_request = side_effect("next cancel request on {session.settings.cluster}")(steering.next_cancel_request)
next_top_up = side_effect("next top-up on {session.settings.cluster}")(steering.next_top_up)


@side_effect("have job {job.id} ended on {session.settings.cluster}")
async def have_ended(session: ProviderSession, job: Job) -> Steered:
    """Have the job's carrier cancel the job at Slurm and settle it. Without a carrier, schedule its run."""
    if not steering.at_cluster(session, job):
        return Steered.NOTHING_TO_DO
    if steering.wake_carrier(session, job):
        return Steered.CARRIER_WOKEN
    await _schedule_run(session, job)
    return Steered.RUN_SCHEDULED


@side_effect("have job {job.id} extended to {job.granted_minutes} minutes on {session.settings.cluster}")
async def have_extended(session: ProviderSession, job: Job) -> Steered:
    """Have the job's carrier extend its time limit. Without a carrier, extend it here and schedule its run."""
    if not steering.at_cluster(session, job):
        return Steered.NOTHING_TO_DO
    if steering.wake_carrier(session, job):
        return Steered.CARRIER_WOKEN
    await steering.give_time(session, job)
    await _schedule_run(session, job)
    return Steered.RUN_SCHEDULED


async def _schedule_run(session: ProviderSession, job: Job) -> None:
    """Create the claim's run, or schedule it again if it has ended.

    A run that Prefect shows as Running, but whose process is gone, is adopted by the supervisor.
    """
    [run] = await start_job_runs(session, [session.key_of(job)])
    if run.state is not None and run.state.is_final():
        await schedule_again(session, run, "The customer has sent a request for the job.")
