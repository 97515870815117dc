"""Reads the grid: jobs, providers and credits, as of the newest block.

Raises ChainError (transient) if the node does not answer, NotFound for what is missing, ContractError for a revert.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from deepgrid.billing.entries import Settlement
from deepgrid.chain.history import Transition, history, settlement
from deepgrid.chain.node.values import ZERO_ADDRESS, Constants, Cut, Queues, TrackRecord, coded_id, job_of, provider_of
from deepgrid.chain.reader import NO_SUCH_JOB, Reader
from deepgrid.chain.transactions.contract_errors import role_hash, too_large
from deepgrid.errors import ContractError, NotFound
from deepgrid.lifecycle.job import Job, Provider

JOBS_PER_CALL = 50  # keeps a page of jobs with long labels below the gas limit of calls at nodes
PROVIDERS_PER_CALL = 20
IDS_PER_CALL = 1000


class Chain(Reader):
    """One grid on one chain. `connect` makes it; `async with` or `close` closes it."""

    # -- jobs --------------------------------------------------------------------------------

    async def job(self, job_id: int) -> Job:
        """Return the job. Raises NotFound."""
        return (await self.jobs([job_id]))[0]

    async def jobs(self, job_ids: Sequence[int], block: int | None = None) -> list[Job]:
        """These jobs, in this order, from one request, as of the end of `block` if given.

        Raises NotFound if one does not exist.
        """
        pages = [job_ids[at : at + JOBS_PER_CALL] for at in range(0, len(job_ids), JOBS_PER_CALL)]
        requests = [("MetaScheduler", "getMany", [coded_id(job_id) for job_id in page]) for page in pages]
        try:
            seen = job_ids if block is None else []
            answers = await self.seen_jobs.read(seen, lambda: self._read_many(requests, block))
        except ContractError as error:
            if error.name == NO_SUCH_JOB:
                what = f"Job {job_ids[0]} does" if len(job_ids) == 1 else "One of the jobs does"
                raise NotFound(f"{what} not exist.") from None
            if not too_large(error) or len(job_ids) == 1:
                raise
            middle = len(job_ids) // 2  # jobs with thousands of labels: read fewer at once
            return await self.jobs(job_ids[:middle], block) + await self.jobs(job_ids[middle:], block)
        jobs: list[Job] = []
        for page in answers:
            jobs += map(job_of, *page)
            await asyncio.sleep(0)
        return jobs

    async def job_count(self, block: int | None = None) -> int:
        """Return the number of jobs, which is also the id of the last one, as ids count from 1."""
        return int((await self._read_many([("MetaScheduler", "jobIdCounter")], block))[0])

    async def jobs_by_customer(self, customer: str, first: int = 0) -> list[int]:
        """Return the ids of the jobs of `customer`, oldest first, without the `first` ones."""
        ids: list[int] = []
        while True:
            page = await self._read("MetaScheduler", "getByCustomerPaged", customer, first + len(ids), IDS_PER_CALL)
            ids += [int.from_bytes(coded, "big") for coded in page]
            if len(page) < IDS_PER_CALL:
                self.seen_jobs.add(ids)
                return ids

    async def has_jobs(self, customer: str) -> bool:
        """Return whether `customer` ever submitted a job."""
        return bool(await self._read("MetaScheduler", "getByCustomerPaged", customer, 0, 1))

    async def claimed_jobs(self, provider: str) -> list[int]:
        """Return the ids of the jobs that `provider` has claimed and that have not ended, oldest claim first."""
        while True:
            ids, cursor = [], bytes(32)
            try:
                while True:
                    page, cursor = await self._read("MetaScheduler", "hotJobsOf", provider, cursor, IDS_PER_CALL)
                    ids += [int.from_bytes(coded, "big") for coded in page]
                    if not any(cursor):
                        return ids
            except ContractError as error:
                if error.name != "OutOfBounds":  # the job at the cursor ended between two pages
                    raise

    async def history(self, job_id: int) -> list[Transition]:
        """Return all changes of the job's state, from its request on. Raises NotFound."""
        return await history(self, job_id, (await self._raw_job(job_id))["time"])

    async def settlement(self, job_id: int) -> Settlement | None:
        """Return the division of the job's deposit; None while the job is hot. Raises NotFound."""
        return await settlement(self, job_id, (await self._raw_job(job_id))["time"])

    async def next_claimable(self, provider: str) -> bool:
        """Return whether a job waits for a claim by `provider`."""
        return bool(await self._read("MetaScheduler", "hasNextClaimableJob", provider))

    async def claimable(self, provider: str) -> int:
        """Return the number of jobs that wait for a claim by `provider`."""
        return int(await self._read("MetaScheduler", "getClaimableJobQueueSize", provider))

    async def spendable(self, job_ids: Sequence[int]) -> dict[int, int]:
        """Return what automatic top-ups of these jobs may still take, in wei, from one request."""
        found = await self._read_many([("MetaScheduler", "spendable", coded_id(job_id)) for job_id in job_ids])
        return dict(zip(job_ids, found, strict=True))

    async def raised_at(self, providers: Sequence[str]) -> dict[str, int]:
        """Return the unix time of each provider's last raise of a price, from one request.

        A job without a ceiling goes to a provider only if it was requested later.
        """
        found = await self._read_many([("MetaScheduler", "raisedAt", provider) for provider in providers])
        return dict(zip(providers, found, strict=True))

    async def queues(self, provider: str) -> Queues:
        """Return lengths of the queues of `provider`, from one request."""
        names = ("getClaimableJobQueueSize", "getCancellingJobQueueSize", "getTopUpJobQueueSize")
        return Queues(*await self._read_many([("MetaScheduler", name, provider) for name in names]))

    async def accepts_requests(self) -> bool:
        """Return whether new jobs are accepted."""
        return bool(await self._read("MetaScheduler", "enableRequestNewJob"))

    async def constants(self) -> Constants:
        """Return the settings that apply to new jobs."""
        amounts = ("minimumAmount", "deepsquareCut")
        times = ("claimJobTimeout", "cancellationFeeMinute", "topUpSliceDurationMin", "billDurationDeltaMinute")
        return Constants(*await self._read_many([("MetaScheduler", name) for name in (*amounts, *times)]))

    async def cut(self) -> Cut:
        """Return the platform's cut for new assignments, and the announced next one."""
        names = ("deepsquareCut", "nextDeepsquareCut")
        percent, announced = await self._read_many([("MetaScheduler", name) for name in names])
        return Cut(percent, *announced)

    # -- providers ---------------------------------------------------------------------------

    async def provider(self, address: str) -> Provider:
        """Return the provider: its approved version, or its proposal if none was approved. Raises NotFound."""
        approved, proposed = await self._versions(address)
        if approved is None and proposed is None:
            raise NotFound(f"{address} is not a provider of this grid.")
        version = approved or proposed
        assert version is not None
        return provider_of(version, approved=approved is not None, waiting=proposed is not None)

    async def providers_changed(self, first_block: int, last_block: int) -> bool:
        """Return whether a provider registered, or was approved, removed, banned or admitted again, in these blocks."""
        return bool(await self.logs(self.book.provider_manager, first_block, last_block))

    async def proposal(self, address: str) -> Provider | None:
        """Return the provider's proposal that waits for approval; None if none waits."""
        approved, proposed = await self._versions(address)
        return None if proposed is None else provider_of(proposed, approved=approved is not None, waiting=True)

    async def providers(self) -> list[Provider]:
        """Return all approved, waiting and banned providers, in the order of their first registration."""
        return [provider for provider, _ in await self.providers_and_records()]

    async def providers_and_records(self) -> list[tuple[Provider, TrackRecord]]:
        """Return all these providers, each with its counters."""
        found: list[tuple[Provider, TrackRecord]] = []
        cursor, most = 0, PROVIDERS_PER_CALL
        while True:
            try:
                page, cursor = await self._read("ProviderManager", "fetchProviders", cursor, most)
            except ContractError as error:
                if not too_large(error) or most == 1:
                    raise
                most //= 2  # providers with thousands of nodes or labels: read fewer at once
                continue
            for entry in page:
                about = provider_of(entry["provider"], approved=entry["approved"], waiting=entry["waitingForApproval"])
                found.append((about, TrackRecord.of(entry["record"])))
            if cursor == 0:
                return found

    async def track_record(self, provider: str) -> TrackRecord:
        """Return the provider's counters; all 0 for an unknown address."""
        return TrackRecord.of(await self._read("ProviderManager", "getRecord", provider))

    async def _versions(self, address: str) -> list[dict[str, Any] | None]:
        names = ("getProvider", "getWaitingForApprovalProvider")
        versions = await self._read_many([("ProviderManager", name, address) for name in names])
        return [None if version["addr"] == ZERO_ADDRESS else version for version in versions]

    # -- credits and roles -------------------------------------------------------------------

    async def balance(self, address: str, block: int | None = None) -> int:
        """Return the credits of `address` in wei, as of the end of `block` if given."""
        return int((await self._read_many([("Credit", "balanceOf", address)], block))[0])

    async def allowance(self, owner: str) -> int:
        """Return the credits of `owner` in wei that the grid may lock for jobs."""
        return int(await self._read("Credit", "allowance", owner, self.book.meta_scheduler))

    async def platform_cut(self, block: int | None = None) -> int:
        """Return the platform's cut in wei that was not withdrawn yet, as of the end of `block` if given."""
        return int((await self._read_many([("MetaScheduler", "platformCut")], block))[0])

    async def has_role(self, role: str, address: str, contract: str = "MetaScheduler") -> bool:
        """Return whether `address` has `role` (such as METASCHEDULER_ROLE) at `contract`."""
        return bool(await self._read(contract, "hasRole", role_hash(role), address))

    # -- reading -----------------------------------------------------------------------------

    async def _raw_job(self, job_id: int) -> dict[str, Any]:
        try:
            raw = await self.seen_jobs.read([job_id], lambda: self._read("MetaScheduler", "get", coded_id(job_id)))
        except ContractError as error:
            if error.name == NO_SUCH_JOB:
                raise NotFound(f"Job {job_id} does not exist.") from None
            raise
        return dict(raw)
