"""Real services behind nginx, a real Slurm with a running job, and a supervisor's host of tunnels between them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from deepgrid.client.tunnel.job_tunnel import JobTunnel
from deepgrid.client.tunnel.live_job import LiveJob
from deepgrid.lifecycle.job import Job, JobDefinition, JobKey
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.lifecycle.states import JobStatus
from deepgrid.provider.session import ProviderSession
from deepgrid.provider.tunnels.tunnel_host import TunnelHost, TunnelSettings
from deepgrid.services.client import ServicesClient
from deepgrid.services.edge.proxy_file import EdgeLimits
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.submit.protocol import SubmitRequest
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from tests.services.support import ACCOUNTS, DOMAIN, Grid, starting
from tests.slurm.support import SMALL, Box, bash, new_key, until

WITHIN_S = 240.0


@dataclass
class LiveGrid:
    """Services, one cluster, and its host of tunnels."""

    services: Grid
    box: Box
    cluster: Cluster
    monitor: SlurmMonitor
    host: TunnelHost
    serving: asyncio.Task[None]
    keys: dict[int, JobKey] = field(default_factory=dict)

    async def running_job(
        self, script: str = "sleep 600", customer: str = "customer", asked: SubmitRequest = SMALL
    ) -> Job:
        """Start a job in Slurm that the chain calls running, and return it."""
        made = new_key()
        key = JobKey(DOMAIN.chain_id, DOMAIN.verifying_contract, made.job_id, made.claimed_at)
        self.monitor.watch(key)
        await self.cluster.submit(key, bash(script), asked)
        await until(self.monitor, key, Phase.RUNNING)
        self.keys[key.job_id] = key
        definition = JobDefinition(0, asked.mem_per_cpu_mb, asked.cpus_per_task, asked.ntasks, "ab" * 32)
        address = ACCOUNTS[customer].address
        changes = {"claimed_at": key.claimed_at, "customer": address, "definition": definition}
        return self.services.chain.put(key.job_id, "ab" * 32, JobStatus.RUNNING, **changes)

    def at(self, job: Job, customer: str = "customer") -> LiveJob:
        """Return the job as this customer's program has it."""
        return live_job(job, self.services.clients[customer], self.services.authority)


def live_job(job: Job, client: ServicesClient, authority: Path | None = None) -> LiveJob:
    """Return a job that this client gets into."""

    async def read(_: int) -> Job:
        return job

    found = LiveJob()
    found._job = job
    book = SimpleNamespace(authorities=authority.read_text() if authority else None)
    reads, session = SimpleNamespace(job=read), SimpleNamespace(services=client)
    found._connection = cast(Any, SimpleNamespace(session=session, reads=reads, chain=SimpleNamespace(book=book)))
    return found


@asynccontextmanager
async def live_grid(
    box: Box, folder: Path, settings: TunnelSettings | None = None, edge: EdgeLimits | None = None
) -> AsyncIterator[LiveGrid]:
    """Start the services behind nginx, and the host of the cluster's tunnels."""
    async with starting(folder) as start:
        services = await start(edge=edge or EdgeLimits())
        login = Login(box.settings)
        cluster = Cluster(login, box.settings)
        monitor = SlurmMonitor(cluster, poll_s=0.2)
        grid = LiveGrid(services, box, cluster, monitor, cast(Any, None), cast(Any, None))
        grid.host = TunnelHost(_supervisor(grid), settings or TunnelSettings())
        grid.serving = asyncio.create_task(grid.host.serve())
        try:
            yield grid
        finally:
            grid.serving.cancel()
            await asyncio.gather(grid.serving, return_exceptions=True)
            for key in grid.keys.values():
                await cluster.cancel(key)
            await monitor.close()
            await login.close()


def _supervisor(grid: LiveGrid) -> ProviderSession:
    """Return what the host needs of a supervisor's session, on these parts."""
    account = ACCOUNTS["provider"]
    session = SimpleNamespace(
        address=account.address,
        services=grid.services.clients["provider"],
        monitor=grid.monitor,
        runs_jobs=True,
        settings=SimpleNamespace(login=grid.box.settings, sessions=True),
        sender=SimpleNamespace(wallet=SimpleNamespace(account=account)),
        chain=SimpleNamespace(job=grid.services.chain.job, book=SimpleNamespace(authorities=None)),
        key_of=lambda job: JobKey(DOMAIN.chain_id, DOMAIN.verifying_contract, job.id, job.claimed_at),
        carries=lambda key: key in grid.keys.values(),
    )
    return cast(ProviderSession, session)


async def opened(job: LiveJob) -> JobTunnel:
    """Open a tunnel."""
    async with asyncio.timeout(WITHIN_S):
        return await job._tunnel()


async def until_true(check: Callable[[], bool], what: str) -> None:
    """Wait until the check is true."""
    async with asyncio.timeout(WITHIN_S):
        while not check():
            await asyncio.sleep(0.05)
    assert check(), what
