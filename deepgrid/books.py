"""Reading the books of one party: a provider's from the chain and its Slurm, the operator's from the chain alone."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from deepgrid.billing.entries import Ledger, Runs, Span
from deepgrid.billing.period import parse_period
from deepgrid.chain.client import Chain
from deepgrid.chain.ledger import read_ledger, read_older_strays
from deepgrid.operator.session import OperatorSession
from deepgrid.provider.session import ProviderSession
from deepgrid.slurm.supervision.accounting import read_runs


class Books(ABC):
    """What both parties' books have in common. `provider` is None for those of the whole grid."""

    def __init__(self, name: str, chain: Chain, folder: Path, provider: str | None) -> None:
        self.name = name
        self.chain = chain
        self.folder = folder
        self.provider = provider

    async def period(self, since: str | None, until: str | None) -> Span:
        """The period asked for; without an end, up to now: the newest block, or this machine's clock if later."""
        return parse_period(since, until, max(await self.chain.now(), int(time.time())))

    async def read_chain(self, span: Span) -> Ledger:
        """What the chain tells of the period."""
        return await read_ledger(self.chain, span, await self.hot(), self.provider)

    async def read_slurm(self, span: Span, ledger: Ledger) -> Runs | None:
        """What ran in the period; None where there is no Slurm to ask."""
        return None

    @abstractmethod
    async def hot(self) -> list[int]:
        """Jobs that may have been hot all the time, in which case no event names them."""

    async def with_jobs(self, ledger: Ledger, runs: Runs | None) -> Ledger:
        """The ledger with the jobs that only Slurm names, as far as they exist."""
        named = {run.job_id for run in runs.runs} if runs is not None else set()
        missing = await self._existing(named - ledger.jobs.keys())
        jobs = await self.chain.jobs(missing)
        return replace(ledger, jobs={**ledger.jobs, **{job.id: job for job in jobs}})

    async def with_older_strays(self, ledger: Ledger) -> Ledger:
        """The ledger with what came to the contract, for no job, since the grid began."""
        return replace(ledger, older_strays_wei=await read_older_strays(self.chain, ledger))

    async def _existing(self, job_ids: Iterable[int]) -> list[int]:
        count = await self.chain.job_count()
        return sorted(job_id for job_id in job_ids if 1 <= job_id <= count)


class ProviderBooks(Books):
    """The books of one cluster."""

    def __init__(self, session: ProviderSession) -> None:
        settings = session.settings
        super().__init__(settings.cluster, session.chain, settings.state / "books", session.address)
        self._session = session

    async def read_slurm(self, span: Span, ledger: Ledger) -> Runs | None:
        """What ran in the period, and what became of this provider's claims, however old."""
        own = [job for job in ledger.jobs.values() if job.provider == self.provider and job.claimed_at]
        claims = [self._session.key_of(job) for job in own]
        return await read_runs(self._session.cluster, span, self._session.key(0, 0), claims)

    async def hot(self) -> list[int]:
        """Jobs that the provider has claimed and not ended."""
        return await self.chain.claimed_jobs(self._session.address)


class OperatorBooks(Books):
    """The books of the whole grid. The operator has no Slurm: they compare contract and token."""

    def __init__(self, name: str, session: OperatorSession) -> None:
        super().__init__(name, session.chain, session.settings.state / "books", None)
        self._session = session

    async def hot(self) -> list[int]:
        """Jobs that were hot when the operator's index was last brought up to date, and those that it never saw."""
        index = self._session.index
        unseen = range(index.last_id() + 1, await self.chain.job_count() + 1)
        return await self._existing({*index.hot(), *unseen})
