"""Reads the books of one party: a provider's from the chain and its Slurm, the operator's from the chain alone."""

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
    """Common part of both parties' books. `provider` is None for the books of the whole grid."""

    def __init__(self, name: str, chain: Chain, folder: Path, provider: str | None) -> None:
        self.name = name
        self.chain = chain
        self.folder = folder
        self.provider = provider

    async def period(self, since: str | None, until: str | None) -> Span:
        """The requested period. Without an end it ends now: at the newest block, or at this machine's time if later."""
        return parse_period(since, until, max(await self.chain.now(), int(time.time())))

    async def read_chain(self, span: Span) -> Ledger:
        """The chain's entries of the period."""
        return await read_ledger(self.chain, span, await self.hot(), self.provider)

    async def read_slurm(self, span: Span, ledger: Ledger) -> Runs | None:
        """The Slurm jobs of the period; None for the operator, who has no Slurm."""
        return None

    @abstractmethod
    async def hot(self) -> list[int]:
        """Jobs that may have been hot for the whole period. No event of the period names these."""

    async def with_jobs(self, ledger: Ledger, runs: Runs | None) -> Ledger:
        """The ledger, with those jobs that only Slurm names and that exist on chain."""
        named = {run.job_id for run in runs.runs} if runs is not None else set()
        missing = await self._existing(named - ledger.jobs.keys())
        jobs = await self.chain.jobs(missing)
        return replace(ledger, jobs={**ledger.jobs, **{job.id: job for job in jobs}})

    async def with_older_strays(self, ledger: Ledger) -> Ledger:
        """The ledger, with all credits that were sent to the contract for no job since the grid began."""
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
        """The Slurm jobs of the period, and those of this provider's claims of any age."""
        own = [job for job in ledger.jobs.values() if job.provider == self.provider and job.claimed_at]
        claims = [self._session.key_of(job) for job in own]
        return await read_runs(self._session.cluster, span, self._session.key(0, 0), claims)

    async def hot(self) -> list[int]:
        """Jobs that the provider has claimed and not settled."""
        return await self.chain.claimed_jobs(self._session.address)


class OperatorBooks(Books):
    """The books of the whole grid. They compare contract and token, as the operator has no Slurm."""

    def __init__(self, name: str, session: OperatorSession) -> None:
        super().__init__(name, session.chain, session.settings.state / "books", None)
        self._session = session

    async def hot(self) -> list[int]:
        """Jobs that were hot at the last update of the operator's index, and newer jobs."""
        index = self._session.index
        unseen = range(index.last_id() + 1, await self.chain.job_count() + 1)
        return await self._existing({*index.hot(), *unseen})
