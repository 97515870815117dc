"""No job is lost on a grid where one cluster refuses, one never claims, and the operator is killed in a round."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.client.session import CustomerSession, CustomerSettings, customer_session
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from deployments.onemachine.grid import LocalGrid
from tests.grid.customer import PATIENCE_S, Customer
from tests.grid.failing_clusters import (
    cluster_without_supervisor,
    kill_in_a_round,
    new_buyer,
    refusing_slurm,
    rows_of_rounds,
    second_operator,
    suspended_operator,
)
from tests.grid.gates import Gate
from tests.grid.runs import FINAL, run_now, run_until
from tests.grid.support import cold, steps
from tests.grid.writers import changed_constants

pytestmark = [pytest.mark.deep, pytest.mark.timeout(1800)]

CUSTOMERS, JOBS_EACH = 3, 10
IDLE, IDLE_CPUS = "delta", 3
SHORT_TIMEOUT_MINUTES = 1
"""Only while the idle cluster alone has unclaimed jobs. Slow machines take longer for some claims."""

GIVEN_BACK = "gave it back lately"
PLACE = r"\d+(st|nd|rd|th) in line, .*your share of CPUs is \d+ %; estimated start \d{4}-\d\d-\d\d \d\d:\d\d UTC at "


async def test_no_job_is_lost_with_a_refusing_and_a_silent_cluster_and_a_killed_operator(
    customer: Customer, tmp_path: Path
) -> None:
    grid, gate, since = customer.grid, Gate(customer.grid), datetime.now(UTC).isoformat()
    workflow = tmp_path / "job.yaml"
    workflow.write_text(steps(gate.pass_command))
    alpha, beta = (Wallet.load(grid.keys.file(name)).address for name in ("alpha", "beta"))
    buyers = [await new_buyer(grid, tmp_path / f"buyer-{number}", JOBS_EACH) for number in range(CUSTOMERS)]
    async with (
        cluster_without_supervisor(grid, tmp_path / IDLE, IDLE, IDLE_CPUS) as idle,
        second_operator(grid),
        customer_session(CustomerSettings(buyers[0].key, grid.book)) as session,
    ):
        with refusing_slurm(grid, "beta"):
            with suspended_operator(grid):
                requested = await asyncio.gather(*(one.submit(workflow, JOBS_EACH) for one in buyers))
            ids = [job_id for one in requested for job_id in one]
            killed = await kill_in_a_round(grid)
            waits = await a_refused_job_waits(session, ids, beta)
            gate.open()
            await all_over(session.chain, ids, besides=idle)
            await unclaimed_jobs_are_taken_back(grid, session.chain, ids, idle)
            jobs = await all_over(session.chain, ids)
        assert {(job.status, job.provider) for job in jobs} == {(JobStatus.FINISHED, alpha)}
        await run_until(grid, killed, lambda run: run["state"]["type"] in FINAL)
        said = {job_id: await remarks(session, job_id) for job_id in ids}
        await every_assignment_is_explained(session.chain, said)
        for job_id in ids:
            await customer.settlement(job_id)
    told = customer.dps("job", "get", str(waits), check=0).stdout
    assert GIVEN_BACK in told and "refused: Slurm refused:" in told, told
    assert re.search(PLACE, told), told
    everything = "\n".join(text for texts in said.values() for text in texts)
    assert f"expired: {IDLE} did not claim it within 1 min; the job waits for another cluster" in everything
    tables = "\n".join(await rows_of_rounds(grid, since))
    assert GIVEN_BACK in tables and '"of": "alpha"' in tables, tables  # the killed round has published none


async def remarks(session: CustomerSession, job_id: int) -> list[str]:
    """Return what the customer is told about the job, oldest first."""
    return [f"{one.kind}: {one.text}" for one in await session.services.notices(job_id)]


async def a_refused_job_waits(session: CustomerSession, ids: Sequence[int], refuser: str) -> int:
    """Wait until a job that the cluster refused has a place in the line and a reason. Returns its id."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        for job in await session.chain.jobs(ids):
            if job.status is JobStatus.PENDING and job.last_refuser == refuser:
                said = await remarks(session, job.id)
                if any(GIVEN_BACK in text and re.search(PLACE, text) for text in said):
                    return job.id
        assert time.monotonic() < deadline, "no refused job has a notice with its place and the reason"
        await asyncio.sleep(0.5)


async def all_over(chain: Chain, ids: Sequence[int], besides: str = "") -> list[Job]:
    """Wait for the end of all jobs, except those that wait at the cluster with the address `besides`."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        jobs = await chain.jobs(ids)
        if not (left := [job for job in jobs if not (cold(job) or job.provider == besides)]):
            return jobs
        assert time.monotonic() < deadline, left
        await asyncio.sleep(0.5)


async def unclaimed_jobs_are_taken_back(grid: LocalGrid, chain: Chain, ids: Sequence[int], idle: str) -> None:
    """Run the flow that takes jobs back, sooner than its schedule does, until the idle cluster has none."""
    deadline = time.monotonic() + PATIENCE_S
    async with changed_constants(grid, claim_timeout=SHORT_TIMEOUT_MINUTES):
        while left := [job for job in await chain.jobs(ids) if job.provider == idle]:
            assert time.monotonic() < deadline, left
            if max(job.assigned_at for job in left) + 60 * SHORT_TIMEOUT_MINUTES <= await chain.now():
                await run_now(grid, "expire_claims/grid")
            await asyncio.sleep(0.5)


async def every_assignment_is_explained(chain: Chain, said: dict[int, list[str]]) -> None:
    """Check that the customer knows why each cluster was chosen, including choices of the killed round."""
    for job_id, texts in said.items():
        assigned = [one for one in await chain.history(job_id) if one.after is JobStatus.META_SCHEDULED]
        explained = [text for text in texts if text.startswith("assigned: ")]
        assert len(explained) >= len(assigned), (job_id, assigned, texts)
