"""The steps of a submission: check, store, allow, request."""

from __future__ import annotations

from deepgrid.client.engine.connection import Connection
from deepgrid.client.errors import NoOutput
from deepgrid.client.quoting import confirm
from deepgrid.client.values import Quote
from deepgrid.client.workflow import Source, Workflow, read_workflow
from deepgrid.customer.order import Order
from deepgrid.workflow.transport import TransportData


async def submit(connection: Connection, order: Order, *, approve: bool, quote: Quote | None) -> int:
    """Submit an order; returns the id of its job.

    Raises what `AsyncGrid.submit` raises.
    """
    session = connection.session
    if quote is not None:
        await confirm(connection.chain, order, quote, connection.settings.quote_age_s)
    await connection.patiently(lambda: session.check(order, approve=approve))
    async with connection.uploads:
        definition_hash = await session.store(order)
    async with connection.spending:
        job_id = await session.request(order, definition_hash, approve=approve)
    connection.outputs[job_id] = order.job.output
    return job_id


async def output_of(connection: Connection, job_id: int, workflow: Source | Workflow | None) -> TransportData | None:
    """Where a job sends its output: as `workflow` says, else as it was submitted by this client. Raises NoOutput."""
    if workflow is not None:
        return (await read_workflow(workflow)).definition.output
    if job_id not in connection.outputs:
        raise NoOutput(
            f"This client did not submit job {job_id}, so it does not know where its output is.",
            next_step="Pass the workflow: `download(to, workflow=FILE)`.",
        )
    return connection.outputs[job_id]
