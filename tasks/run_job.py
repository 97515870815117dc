"""The side effects of `run_job`: each step of the carrier as a retried Prefect task."""

from __future__ import annotations

from deepgrid.lifecycle.actions import Awaited, ExtendLimit, ReportRunning, Settle
from deepgrid.provider.claims.steps import PlainSteps
from orchestration.retry_policy import side_effect, waiting
from orchestration.task_calls import as_task


@side_effect("fetch script of job {steps.job_id} on {steps.cluster}")
async def fetch_script(steps: PlainSteps) -> str | None:
    """Get the definition from the Job Definition service, verify it, and render the batch script."""
    return await steps.fetch_script()


@side_effect("submit job {steps.job_id} to Slurm on {steps.cluster}")
async def submit_to_slurm(steps: PlainSteps, script: str) -> None:
    """Hand the script to Slurm, at most once per claim."""
    await steps.submit(script)


@waiting("await {awaited.value} job {steps.job_id} on {steps.cluster}")
async def await_change(steps: PlainSteps, awaited: Awaited) -> None:
    """Wait until there is something else to do than to wait for `awaited`."""
    await steps.wait(awaited)


@side_effect("report job {steps.job_id} running on {steps.cluster}")
async def report_running(steps: PlainSteps, action: ReportRunning) -> None:
    """Report to the chain that the job runs."""
    await steps.report_running(action)


@side_effect("extend job {steps.job_id} to {action.minutes} minutes on {steps.cluster}")
async def extend_limit(steps: PlainSteps, action: ExtendLimit) -> None:
    """Raise the job's limit at Slurm to what its credits buy after a top-up."""
    await steps.extend_limit(action)


@side_effect("settle job {steps.job_id} as {action.status.words} on {steps.cluster}")
async def settle(steps: PlainSteps, action: Settle) -> None:
    """Report the end. The contract pays the provider and returns the rest."""
    await steps.settle(action)


@side_effect("refuse job {steps.job_id} on {steps.cluster}")
async def refuse(steps: PlainSteps, reason: str) -> None:
    """Give the job back, so that another cluster can run it."""
    await steps.refuse(reason)


@side_effect("cancel job {steps.job_id} at Slurm on {steps.cluster}")
async def cancel_at_slurm(steps: PlainSteps) -> None:
    """Cancel the claim's job at Slurm, and bar a late start."""
    await steps.cancel_at_slurm()


class TaskSteps:
    """The steps of one claim, each as the Prefect task above."""

    def __init__(self, plain: PlainSteps) -> None:
        self._plain = plain

    async def fetch_script(self) -> str | None:
        return await as_task(fetch_script, self._plain)

    async def submit(self, script: str) -> None:
        await as_task(submit_to_slurm, self._plain, script)

    async def wait(self, awaited: Awaited) -> None:
        await as_task(await_change, self._plain, awaited)

    async def report_running(self, action: ReportRunning) -> None:
        await as_task(report_running, self._plain, action)

    async def extend_limit(self, action: ExtendLimit) -> None:
        await as_task(extend_limit, self._plain, action)

    async def settle(self, action: Settle) -> None:
        await as_task(settle, self._plain, action)

    async def refuse(self, reason: str) -> None:
        await as_task(refuse, self._plain, reason)

    async def cancel_at_slurm(self) -> None:
        await as_task(cancel_at_slurm, self._plain)
