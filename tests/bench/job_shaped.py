"""A flow like `run_job`, with the same number of tasks and empty bodies."""

from prefect import flow, task

from orchestration.prefect_internals import as_task


@task
async def step(number: int) -> None:
    """Stand in for one side effect."""


@flow(name="job_shaped", persist_result=False)
async def job_shaped(number: int) -> None:
    """Fetch, submit, await start, report, await end, settle: six tasks."""
    for part in range(6):
        await as_task(step.with_options(name=f"step_{part}"), number)
