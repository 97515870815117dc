"""Submits the job of a workflow file."""

from __future__ import annotations

from pathlib import Path

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from tasks.submit_job import allow_credits, open_customer, request_job, store_definition, validate


@flow(name="submit_job", flow_run_name="submit {file}", persist_result=False)
async def submit_job(
    customer: str,
    file: Path,
    credits: str,
    job_name: str | None = None,
    uses: tuple[str, ...] = (),
    affinities: tuple[str, ...] = (),
    delegate_spending: bool = False,
) -> State[int]:
    """Submit a job. The result is its id.

    Args:
        customer: Name of the customer block.
        file: Workflow file, on the machine that runs the flow.
        credits: Credits to lock, such as 100 or 0.5. Unused credits are returned.
        job_name: Name of at most 32 bytes; by default the file's name.
        uses: Labels that the cluster must have, such as os=linux.
        affinities: Conditions on labels of the cluster, such as mem>=4000.
        delegate_spending: Let the grid top the job up from the customer's allowance.
    """
    async with open_customer(customer) as session:
        order = await validate(session, file, credits, job_name, uses, affinities, delegate_spending)
        definition_hash = await store_definition(session, order)
        await allow_credits(session, order)
        job_id = await request_job(session, order, definition_hash)
    return Completed(message=f"Job {job_id} is submitted.", data=job_id)
