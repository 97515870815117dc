"""The books of one cluster, from the chain and its Slurm."""

from __future__ import annotations

from deepgrid.billing.entries import Ledger, Runs, Span
from deepgrid.chain.ledger import Books
from deepgrid.provider.session import ProviderSession
from deepgrid.slurm.supervision.accounting import read_runs


class ProviderBooks(Books):
    """The books of one cluster."""

    def __init__(self, session: ProviderSession) -> None:
        settings = session.settings
        super().__init__(settings.cluster, session.chain, settings.state / "books", session.address)
        self._session = session

    async def read_slurm(self, span: Span, ledger: Ledger) -> Runs | None:
        """Return the Slurm jobs of the period, and the jobs of this provider's claims whatever their age."""
        own = [job for job in ledger.jobs.values() if job.provider == self.provider and job.claimed_at]
        claims = [self._session.key_of(job) for job in own]
        return await read_runs(self._session.cluster, span, self._session.key(0, 0), claims)

    async def hot(self) -> list[int]:
        """Return jobs that the provider has claimed but not settled."""
        return await self.chain.claimed_jobs(self._session.address)
