"""The parties of a provider's test: the provider, the operator, a customer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from deepgrid.chain.writer import Writer
from deepgrid.lifecycle.job import JobDefinition, JobKey, Label, Prices
from deepgrid.provider.session import ProviderSession
from tests.chain.grid import CREDIT

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

    async def claimed(self, definition: JobDefinition = SMALL_JOB) -> JobKey:
        """Let the provider claim a job. It must be approved."""
        job_id = await self.customer.request_job(definition, 100 * CREDIT, "a job", approve_first=100 * CREDIT)
        await self.operator.meta_schedule(job_id, self.session.address)
        (job,) = await self.session.claim_waiting()
        assert job.id == job_id
        return self.session.key_of(job)
