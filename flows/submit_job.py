"""Submits the job of a workflow file."""

from __future__ import annotations

from pathlib import Path

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from deepgrid.client.order import Preference, Terms
from orchestration.sessions import BlockName
from tasks.customer_orders import open_customer, validate
from tasks.run_step import run_step


@flow(name="submit_job", flow_run_name="submit {file}", persist_result=False)
async def submit_job(
    customer: BlockName,
    file: Path,
    credits: str,
    job_name: str | None = None,
    uses: tuple[str, ...] = (),
    affinities: tuple[str, ...] = (),
    delegate_spending: bool = False,
    min_time: str | None = None,
    max_price: str | None = None,
    give_up_after: str | None = None,
    prefer: Preference = "balanced",
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
        min_time: Time that the credits must buy at the cluster, such as 2h. The default is one minute.
        max_price: Maximum credits per minute, which the contract enforces, or any. The default is the highest price
            among the clusters that can take the job now.
        give_up_after: If no cluster has the job after this time, it is cancelled and refunded. At least 10 minutes.
        prefer: What counts most when a cluster is chosen.
    """
    async with open_customer(customer) as session:
        terms = Terms.of(uses, affinities, delegate_spending, min_time, max_price, give_up_after, prefer)
        order = await run_step(f"validate {file}", validate, session, file, credits, job_name, terms)
        definition_hash = await run_step("store definition", session.store, order)
        await run_step("allow credits", session.allow, order)
        job_id = await run_step("request job", session.request, order, definition_hash)
    return Completed(message=f"Job {job_id} is submitted.", data=job_id)
