"""A provider's machine is lost while jobs run. A new one with an old backup settles all of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from deepgrid.billing.period import format_time
from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.lifecycle.states import JobStatus
from tests.grid.customer import Customer
from tests.grid.gates import Gate
from tests.grid.runs import run_now
from tests.grid.support import cold, in_slurm, steps
from tests.scaled.recovery.machines import dps, lose_provider, write_settings

pytestmark = [pytest.mark.deep, pytest.mark.timeout(1200)]

CLUSTER, USE = "alpha", "name=alpha"


async def test_a_new_machine_settles_the_jobs_of_a_lost_one(customer: Customer, tmp_path: Path) -> None:
    grid, archive = customer.grid, tmp_path / "alpha.tar"
    settings = await write_settings(grid, CLUSTER, tmp_path / "machine.toml")
    await dps(grid, "provider", "init", settings, "--yes")
    said = await dps(grid, "provider", "backup", settings, archive)
    assert "It holds keys, so keep it as secret." in said
    async with await Chain.connect(AddressBook.load(grid.book)) as chain:
        since = format_time(await chain.now())

    starts, gate, never = grid.state / "storage" / "starts", Gate(grid), Gate(grid)
    starts.touch(mode=0o666)
    starts.chmod(0o666)
    held, shut = (steps(f"echo $SLURM_JOB_NAME >> {starts}", one.pass_command) for one in (gate, never))
    running = [customer.submit(held, USE) for _ in range(2)]
    cancelled = customer.submit(shut, USE)
    for job_id in (*running, cancelled):
        await customer.until(job_id, lambda job: job.status is JobStatus.RUNNING)

    await lose_provider(grid, CLUSTER, settings)
    gate.open()
    while any(in_slurm(customer, job_id) for job_id in running):
        await asyncio.sleep(0.5)
    customer.dps("job", "cancel", str(cancelled), check=0)
    late = customer.submit(steps(f"echo $SLURM_JOB_NAME >> {starts}"), USE)
    await customer.until(late, lambda job: job.status is JobStatus.META_SCHEDULED)

    assert "Restored" in await dps(grid, "provider", "restore", archive, "--yes")
    await dps(grid, "provider", "init", settings, "--yes")
    await asyncio.to_thread(grid.start, f"supervisor-{CLUSTER}")
    ended = [await customer.until(job_id, cold) for job_id in (*running, late, cancelled)]
    assert [job.status for job in ended] == [*[JobStatus.FINISHED] * 3, JobStatus.CANCELLED]
    assert in_slurm(customer, cancelled) == ""
    for job in ended:
        await customer.settlement(job.id)
    assert Counter(starts.read_text().split()) == Counter(f"dg-{job.id}" for job in ended), "each ran once"
    books = await run_now(grid, f"reconcile_billing/{CLUSTER}", cluster=CLUSTER, since=since)
    assert books["state"]["type"] == "COMPLETED", books["state"]["message"]
