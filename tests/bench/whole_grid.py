"""One whole grid for a measurement, its customer in this process, and the costs of its processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

from deepgrid.chain.batches import Request
from deepgrid.client.order import Order, Terms
from deepgrid.client.session import CustomerSession, CustomerSettings, customer_session
from deepgrid.lifecycle.job import Job
from deepgrid.workflow import Definition
from deployments.onemachine.grid import LocalGrid
from tests.grid.operator_settings import assigned_at_once
from tests.grid.running import running_grid
from tests.grid.writers import writer_of

CREDIT_WEI = 10**18
PATIENCE_S = 900.0
UPLOADS_AT_ONCE, REQUESTS_AT_ONCE = 16, 100
MINTED_WEI = 1_000_000 * CREDIT_WEI


@dataclass
class MeasuredGrid:
    """The grid, a session of its customer, and the cluster to which all jobs go."""

    grid: LocalGrid
    customer: CustomerSession
    cluster: str

    async def order(self, command: str, count: int) -> list[int]:
        """Request `count` jobs of one CPU that run `command`. Returns their ids."""
        definition = Definition.model_validate(
            {
                "resources": {"tasks": 1, "cpusPerTask": 1, "memPerCpu": 50, "gpus": 0},
                "enableLogging": False,
                "steps": [{"run": {"command": command}}],
            }
        )
        order = Order(definition, "bench", 100 * CREDIT_WEI, Terms.of([f"name={self.cluster}"]))
        await self.customer.writer.approve(count * order.locked_wei)
        slots = asyncio.Semaphore(UPLOADS_AT_ONCE)

        async def stored() -> Request:
            async with slots:
                location = await self.customer.store(order)
            return Request(order.definition(location), order.locked_wei, order.name)

        requests = await asyncio.gather(*(stored() for _ in range(count)))
        some = (requests[first : first + REQUESTS_AT_ONCE] for first in range(0, count, REQUESTS_AT_ONCE))
        return [job_id for batch in some for job_id in await self.customer.writer.request_jobs(batch)]

    async def until(self, job_ids: list[int], reached: Callable[[Job], bool], pause_s: float = 0.5) -> list[Job]:
        """Wait until `reached` is true for all these jobs."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            jobs = await self.customer.chain.jobs(job_ids)
            if all(map(reached, jobs)):
                return jobs
            if time.monotonic() > deadline:
                raise TimeoutError(f"{sum(not reached(job) for job in jobs)} jobs are not as wanted")
            await asyncio.sleep(pause_s)

    def slurm(self, *argv: str) -> str:
        """Run a Slurm command as the cluster's administrator."""
        env = {**os.environ, **self.grid.slurm.environment(self.cluster)}
        return subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout

    async def until_slurm(self, holds: Callable[[int], bool], *filters: str) -> None:
        """Wait until the queue has the wanted number of jobs with these filters of squeue."""
        deadline = time.monotonic() + PATIENCE_S
        while not holds(len((await asyncio.to_thread(self.slurm, "squeue", "-h", "-a", *filters)).splitlines())):
            if time.monotonic() > deadline:
                raise TimeoutError("the queue is not as wanted")
            await asyncio.sleep(0.5)

    @contextmanager
    def no_nodes(self) -> Iterator[None]:
        """Keep jobs from starting on the cluster during the context."""
        self.slurm("scontrol", "update", "nodename=ALL", "state=drain", "reason=bench")
        try:
            yield
        finally:
            self.slurm("scontrol", "update", "nodename=ALL", "state=resume")

    async def claiming(self, *, active: bool) -> None:
        """Pause or resume the schedules of `claim_jobs`. Without them a supervisor claims nothing."""
        prefect = self.grid.prefect
        url = f"{prefect.ui_url}/api/"
        login = httpx.BasicAuth(*prefect.login().split(":"))
        async with httpx.AsyncClient(base_url=url, auth=login, trust_env=False) as api:
            found = (await api.get(f"deployments/name/claim_jobs/{self.cluster}")).raise_for_status().json()
            for schedule in found["schedules"]:
                path = f"deployments/{found['id']}/schedules/{schedule['id']}"
                (await api.patch(path, json={"active": active})).raise_for_status()

    def cpu_s(self) -> dict[str, float]:
        """Return the CPU seconds so far of each process of the grid and of its children."""
        return {name: cpu_s(pid) for name in self.grid.table.names() if (pid := self.grid.table.pid(name))}

    def memory_mb(self, name: str) -> float:
        """Return the resident memory of one process."""
        status = Path(f"/proc/{self.grid.table.pid(name)}/status").read_text()
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) / 1024


def cpu_s(root: int) -> float:
    """Return the CPU seconds so far of a process and its children, alive (such as PostgreSQL's backends) or not."""
    spent: dict[int, int] = {}
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # the process has just ended
            fields = stat.read_text().rpartition(") ")[2].split()
            pid = int(stat.parent.name)
            spent[pid], parents[pid] = sum(map(int, fields[11:15])), int(fields[1])

    def descends(pid: int) -> bool:
        return pid == root or (pid in parents and descends(parents[pid]))

    return sum(ticks for pid, ticks in spent.items() if descends(pid)) / os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def measured_grid(cluster: str) -> AsyncIterator[MeasuredGrid]:
    """Yield a grid for this measurement, removed afterwards. Its jobs wait in Slurm, not at the scheduler."""
    with running_grid(LocalGrid) as grid:
        settings = CustomerSettings(grid.keys.file("customer"), grid.book)
        async with writer_of(grid, "admin") as admin, customer_session(settings) as session:
            await admin.mint(session.address, MINTED_WEI)
            async with assigned_at_once(grid):
                yield MeasuredGrid(grid, session, cluster)
