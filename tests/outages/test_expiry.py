"""A job that its provider does not claim is taken back on schedule and runs on another cluster."""

from __future__ import annotations

import asyncio

import pytest

from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.lifecycle.states import JobStatus
from tests.grid.customer import Customer
from tests.grid.runs import runs_of
from tests.grid.support import cold, steps
from tests.grid.writers import changed_constants

pytestmark = [pytest.mark.deep, pytest.mark.timeout(900)]


async def test_an_unclaimed_job_runs_on_another_cluster(customer: Customer) -> None:
    grid = customer.grid
    alpha, beta = (Wallet.load(grid.keys.file(name)).address for name in ("alpha", "beta"))
    grid.table.stop("supervisor-alpha")
    try:
        async with changed_constants(grid, claim_timeout=1):
            job_id = customer.submit(steps("echo elsewhere"))
            await customer.until(job_id, lambda job: job.provider == alpha)  # the cheapest
            await customer.until(job_id, lambda job: job.last_refuser == alpha)
            job = await customer.until(job_id, cold)
    finally:
        await asyncio.to_thread(grid.start, "supervisor-alpha")
    assert (job.status, job.provider) == (JobStatus.FINISHED, beta)
    await customer.settlement(job_id)
    told = customer.dps("job", "get", str(job_id), check=0).stdout
    assert "expired: alpha did not claim it within 1 min; the job waits for another cluster" in told
    messages = [run["state"]["message"] for run in await runs_of(grid, "expire_claims/grid", "COMPLETED")]
    assert f"Took back 1 job ({job_id})." in messages
