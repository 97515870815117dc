"""The parties of a provider's test: the provider, the operator, a customer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deepgrid.lifecycle.job import JobDefinition, JobKey, Label, Prices
from deepgrid.provider.registration import register
from deepgrid.provider.session import Intervals, ProviderSession, ProviderSettings, provider_session
from deepgrid.provider.shared.log_shipping import LogShippingSettings
from deepgrid.sbatch import StoragePaths
from deepgrid.slurm.ssh.login_settings import LoginSettings
from tests.chain.grid import CREDIT, Grid, approve_waiting
from tests.slurm.support import WAIT_S

# A single query of Slurm must suffice, however busy the machine is. There are no services that could accept logs.
INTERVALS = Intervals(slurm_answers_s=WAIT_S, look_at_node_s=0)
LOG_SHIPPING = LogShippingSettings(drain_s=0.1)

PRICES = Prices(gpu_wei_per_minute=0, cpu_wei_per_minute=CREDIT, mem_wei_per_mb_minute=0)


OWN_LABELS = (Label("name", "unit"), Label("region", "ch"))


SMALL_JOB = JobDefinition(gpus=0, mem_per_cpu_mb=100, cpus_per_task=1, ntasks=1, definition_hash="ab" * 32)
FOREIGN_JOB = replace(SMALL_JOB, definition_hash="Qm" + "x" * 44)  # names no definition in this grid's format


@dataclass(frozen=True)
class Scene:
    """A provider that is not registered yet, the operator, and a customer with credits."""

    session: ProviderSession
    operator: Writer
    customer: Writer

    async def approve(self) -> None:
        """Let the provider claim jobs from now on."""
        await register(self.session)
        await approve_waiting(self.operator, self.session.address)

    async def claimed(self, definition: JobDefinition = SMALL_JOB) -> JobKey:
        """Let the provider claim a job. It must be approved."""
        job_id = await self.customer.request_job(definition, 100 * CREDIT, "a job", approve_first=100 * CREDIT)
        await self.operator.meta_schedule(job_id, self.session.address)
        (job,) = await self.session.claim_waiting()
        assert job.id == job_id
        return self.session.key_of(job)


@asynccontextmanager
async def scene_with(grid: Grid, login: LoginSettings, folder: Path, customer: Wallet) -> AsyncIterator[Scene]:
    """Yield a scene on this chain and this cluster. The provider has a new key, and keeps its state in `folder`."""
    provider = f"provider-of-{customer.address}"
    grid.new_key(provider)
    settings = ProviderSettings(
        cluster="unit", book=grid.book.save(folder / "grid.json"), key_file=grid.keys / provider,
        login=login, storage=StoragePaths.under(str(folder)), prices=PRICES, labels=OWN_LABELS,
        state=folder, claim_stays_s=0, trust_customers=True,
    )  # fmt: skip
    async with provider_session(settings, INTERVALS, LOG_SHIPPING) as session:
        operator = Writer(session.chain, Sender(session.chain, Wallet.load(grid.operator_key)))
        writer = Writer(session.chain, Sender(session.chain, customer))
        await operator.mint(customer.address, 1000 * CREDIT)
        yield Scene(session, operator, writer)
        await operator.sender.close()
        await writer.sender.close()
