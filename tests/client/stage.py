"""A customer of the live grid, and the operator's and provider's steps for the customer's jobs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from deepgrid.client import AsyncJob
from tests.chain.grid import pass_a_second
from tests.cli.live import Party


@dataclass(frozen=True)
class Customer:
    """A customer with 1,000 credits: the key file, and the address book."""

    key: Path
    book: Path


@dataclass(frozen=True)
class Stage:
    """Moves a job of the live grid through its states, as the operator and a provider do."""

    operator: Party
    provider: Party

    async def run(self, job: AsyncJob) -> None:
        """Assign the job to the cluster alpha, which claims and starts it."""
        await self.operator.writer.meta_schedule(job.id, self.provider.address)
        await self.provider.writer.claim_next()
        await self.provider.writer.set_running(job.id, 0)
        await pass_a_second(self.provider.writer.chain)
