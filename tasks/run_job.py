"""The side effects of `run_job`, each a retried task around one step of the carrier."""

from __future__ import annotations

from typing import Any

from prefect.task_engine import run_task_async
from prefect.tasks import Task
from prefect.utilities.callables import get_call_parameters

from deepgrid.lifecycle.actions import Awaited, ExtendLimit, ReportRunning, Settle
from deepgrid.provider.carrier import Call, Carrier
from runtime.retry_policy import side_effect, waiting


@side_effect("fetch script of job {carrier.job_id} on {carrier.cluster}")
async def fetch_script(carrier: Carrier) -> str | None:
    """Get the definition from the Job Definition service, verify it, render the script."""
    return await carrier.fetch_script()


@side_effect("submit job {carrier.job_id} to Slurm on {carrier.cluster}")
async def submit_to_slurm(carrier: Carrier, script: str) -> None:
    """Hand the script to Slurm, at most once per claim."""
    await carrier.submit(script)


@waiting("await {awaited.value} job {carrier.job_id} on {carrier.cluster}")
async def await_change(carrier: Carrier, awaited: Awaited) -> None:
    """Wait until there is something else to do than to wait for `awaited`."""
    await carrier.wait(awaited)


@side_effect("report job {carrier.job_id} running on {carrier.cluster}")
async def report_running(carrier: Carrier, action: ReportRunning) -> None:
    """Tell the chain that the job runs."""
    await carrier.report_running(action)


@side_effect("extend job {carrier.job_id} to {action.minutes} minutes on {carrier.cluster}")
async def extend_limit(carrier: Carrier, action: ExtendLimit) -> None:
    """Give the job at Slurm the time that its credits buy after a top-up."""
    await carrier.extend_limit(action)


@side_effect("settle job {carrier.job_id} as {action.status.words} on {carrier.cluster}")
async def settle(carrier: Carrier, action: Settle) -> None:
    """Report the end; the contract pays the provider and returns the rest."""
    await carrier.settle(action)


@side_effect("refuse job {carrier.job_id} on {carrier.cluster}")
async def refuse(carrier: Carrier, reason: str) -> None:
    """Give the job back, so that another cluster can run it."""
    await carrier.refuse(reason)


@side_effect("cancel job {carrier.job_id} at Slurm on {carrier.cluster}")
async def cancel_at_slurm(carrier: Carrier) -> None:
    """Cancel whatever Slurm holds of this claim, and bar a late start."""
    await carrier.cancel_at_slurm()


TASKS: dict[str, Task[..., Any]] = {
    step.__name__: task
    for step, task in (
        (Carrier.fetch_script, fetch_script),
        (Carrier.submit, submit_to_slurm),
        (Carrier.wait, await_change),
        (Carrier.report_running, report_running),
        (Carrier.extend_limit, extend_limit),
        (Carrier.settle, settle),
        (Carrier.refuse, refuse),
        (Carrier.cancel_at_slurm, cancel_at_slurm),
    )
}


async def as_task(step: Call, *arguments: object) -> Any:
    """Call a step of a carrier as the task of that name.

    Prefect is told of it as it begins, and not as it is made too: a third of the events of all tasks.
    """
    task = TASKS[step.__name__]
    parameters = get_call_parameters(task.fn, arguments, {})
    run = await task.create_local_run(parameters=parameters)
    return await run_task_async(task, task_run=run, parameters=parameters)
