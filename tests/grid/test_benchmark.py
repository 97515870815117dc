"""A cluster is measured through its deployment. Its labels are proposed, approved, used by a job and shown."""

from __future__ import annotations

import asyncio
import time

import pytest

from deepgrid.benchmark.labels import measured_of
from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.lifecycle.states import JobStatus
from deployments.onemachine.grid import LocalGrid
from tests.grid.customer import PATIENCE_S, Customer
from tests.grid.runs import api, run_now, unscheduled
from tests.grid.support import cold, steps

pytestmark = [pytest.mark.deep, pytest.mark.timeout(900)]

CLUSTER = "beta"
DEPLOYMENT = f"benchmark_cluster/{CLUSTER}"


async def labels_in_force(grid: LocalGrid, cluster: str) -> dict[str, str]:
    async with await Chain.connect(AddressBook.load(grid.book)) as chain:
        provider = await chain.provider(Wallet.load(grid.keys.file(cluster)).address)
    return {label.key: label.value for label in measured_of(provider.labels)}


async def test_a_job_goes_where_a_measured_label_says(grid: LocalGrid, customer: Customer) -> None:
    """The job runs on the more expensive cluster, because only that one was measured."""
    async with unscheduled(grid, DEPLOYMENT):
        run = await run_now(grid, DEPLOYMENT, cluster=CLUSTER, programs=["machine", "hpl"])
        assert run["state"]["type"] == "COMPLETED", run["state"]
        assert run["name"] == f"benchmark {CLUSTER}"
        assert "Proposed arch none -> x86_64" in run["state"]["message"] or "nothing moved" in run["state"]["message"]

        deadline = time.monotonic() + PATIENCE_S
        while "compute.gflops" not in (labels := await labels_in_force(grid, CLUSTER)):  # the operator approves them
            assert time.monotonic() < deadline, labels
            await asyncio.sleep(0.3)
        assert labels["os"] == "linux"

    async with api(grid) as client:
        shown = (await client.get(f"artifacts/benchmark-{CLUSTER}/latest")).raise_for_status().json()
    assert '"label": "compute.gflops"' in shown["data"]

    job_id = customer.submit(steps("true"), affinities=["compute.gflops>0.01"])
    job = await customer.until(job_id, cold)
    assert job.status is JobStatus.FINISHED
    assert job.provider == Wallet.load(grid.keys.file(CLUSTER)).address

    audited = customer.dps(
        "operator", "audit", CLUSTER, "--credits", "900", "--seconds", "1", "--cpus-per-rank", "8", "-f"
    )
    assert "submitted, waiting for its end" in audited.stderr, audited.stderr
    found = {line.split()[0]: line.split()[-1] for line in audited.stdout.splitlines()[1:]}
    assert found["os"] == found["arch"] == found["cpu.microarch"] == "agrees", audited.stdout
    assert audited.returncode == (0 if found["compute.gflops"] == "agrees" else 1)
