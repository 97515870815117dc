"""What tests of the books do on the whole grid: many jobs, a cluster without its supervisor, wrong reports by hand."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.client.order import Order, read_order
from deepgrid.client.session import CustomerSession, CustomerSettings, customer_session
from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.lifecycle.slurm_state import Phase, SlurmJob
from deepgrid.lifecycle.states import JobStatus
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.submit.protocol import SubmitRequest
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deployments.onemachine.grid import LocalGrid
from tests.grid.customer import PATIENCE_S, Customer
from tests.grid.runs import Json, api
from tests.grid.support import HEAD, cold, steps
from tests.grid.writers import writer_of

LOCKED_WEI = 100 * 10**18


@asynccontextmanager
async def supervised_by_nobody(grid: LocalGrid, cluster: str) -> AsyncIterator[None]:
    """Stop the cluster's supervisor during the context, so that the test can use its key."""
    grid.table.stop(f"supervisor-{cluster}")
    try:
        yield
    finally:
        await asyncio.to_thread(grid.start, f"supervisor-{cluster}")


async def bill_too_much(customer: Customer, job_id: int) -> Job:
    """Bill two minutes for a job that ran for one second on beta, while its supervisor is stopped."""
    await customer.until(job_id, lambda job: job.status is JobStatus.META_SCHEDULED)
    async with writer_of(customer.grid, "beta") as beta:
        claimed = await beta.claim_next()
        assert claimed is not None
        assert claimed.job_id == job_id
        job = await customer.job(job_id)
        book = beta.chain.book
        await run_in_slurm(customer.grid, JobKey(book.chain_id, book.meta_scheduler, job_id, job.claimed_at))
        await beta.set_running(job_id, 1)
        started_at = (await customer.job(job_id)).started_at
        deadline = time.monotonic() + PATIENCE_S
        while await beta.chain.now() <= started_at + 60:  # the contract refuses to bill a minute that has not begun
            assert time.monotonic() < deadline
            await asyncio.sleep(0.5)
        await beta.settle(job_id, JobStatus.FINISHED, 2)
    return await customer.job(job_id)


async def run_in_slurm(grid: LocalGrid, key: JobKey) -> SlurmJob:
    """Run the claim to its end, with the same functions as the supervisor."""
    settings = grid.slurm.login("beta")
    customer = Wallet.load(grid.keys.file("customer")).address
    login = Login(settings)
    cluster = Cluster(login, settings)
    monitor = SlurmMonitor(cluster)
    try:
        await cluster.submit(key, "#!/bin/bash -l\ntrue\n", SubmitRequest(1, 1, 100, 0, 5, customer=customer))
        monitor.watch(key)
        deadline = time.monotonic() + PATIENCE_S
        while (job := monitor.observe(key)).phase is not Phase.ENDED:
            assert time.monotonic() < deadline, job
            await monitor.changed(key, job, 5)
        return job
    finally:
        await monitor.close()
        await login.close()


async def submit_many(
    customer: Customer, count: int, cluster: str = "alpha", command: str = "true", head: str = HEAD
) -> list[int]:
    """Submit small jobs for one cluster at the same time. Returns their ids."""
    file = customer.home / f"many-{cluster}.yaml"
    file.write_text(steps(command).replace(HEAD, head))
    order = read_order(file, LOCKED_WEI, uses=(f"name={cluster}",))
    settings = CustomerSettings(customer.grid.keys.file("customer"), customer.grid.book)
    async with customer_session(settings) as session:
        async with writer_of(customer.grid, "admin") as admin:
            await admin.mint(session.address, count * LOCKED_WEI)
        places = await asyncio.gather(*(session.store(order) for _ in range(count)))
        return list(await asyncio.gather(*(_request(session, order, place) for place in places)))


async def _request(session: CustomerSession, order: Order, place: str) -> int:
    return await session.writer.request_job(
        order.definition(place), order.locked_wei, order.name, approve_first=order.locked_wei
    )


async def all_cold(chain: Chain, ids: list[int]) -> None:
    """Wait for the end of all these jobs, with one query per poll. Each wait for the next end has a limit."""
    deadline, left = time.monotonic() + PATIENCE_S, len(ids)
    while hot := [job.id for job in await chain.jobs(ids) if not cold(job)]:
        if len(hot) < left:
            deadline, left = time.monotonic() + PATIENCE_S, len(hot)
        assert time.monotonic() < deadline, hot
        await asyncio.sleep(1)


async def artifact(grid: LocalGrid, key: str) -> Json:
    """Return the newest artifact with this key."""
    async with api(grid) as client:
        return dict((await client.get(f"artifacts/{key}/latest")).raise_for_status().json())
