"""A Prefect flow whose tasks are jobs of the grid. Needs `pip install . prefect` in a checkout.

The idempotency key makes it safe to repeat a task: a retry, and a flow that is started again, find the same job. So
the grid is the cache. A task is repeated after an outage, not after a job that failed: it would fail again.
"""

from typing import Any

from prefect import flow, task
from prefect.tasks import exponential_backoff

from deepgrid import Grid, GridError

WORKFLOW = """
enableLogging: true
resources: {tasks: 1, cpusPerTask: 1, memPerCpu: 500, gpus: 0}
steps:
  - run: {command: 'echo $((SIDE * SIDE))'}
"""


async def is_outage(_task: Any, _run: Any, state: Any) -> bool:
    error = await state.aresult(raise_on_failure=False)
    return isinstance(error, GridError) and error.transient


@task(retries=5, retry_delay_seconds=exponential_backoff(2), retry_condition_fn=is_outage)
def area(study: str, side: int) -> int:
    """Run one job, and read its result from its output."""
    with Grid() as grid:
        workflow = grid.workflow(WORKFLOW).env(SIDE=side)
        job = grid.run(workflow, credits=100, key=f"{study}-{side}", name=study)
        return int(next(job.logs(follow=True)).text)


@flow(log_prints=True)
def areas(study: str = "squares", sides: tuple[int, ...] = (2, 3, 4)) -> list[int]:
    """Run all jobs of a study at the same time."""
    results: list[int] = area.map(study, list(sides)).result()
    print(f"the areas are {results}")
    return results


if __name__ == "__main__":
    areas()
