"""The simulated clusters of a day. Claims, reports and settlements are real transactions of each provider's key.

A cluster queues and runs jobs as `tools.simulation` does. A job starts in the block that has its RUNNING report: in
compressed time, the way of a report to the chain would be minutes of the run.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import defaultdict

from deepgrid.billing.entries import Run
from deepgrid.chain.batches import Claimed, Report
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deepgrid.lifecycle.job import Job, Provider
from deepgrid.lifecycle.states import JobStatus
from tests.bench.simulated_day.day_chain import DayClock
from tests.bench.simulated_day.day_customers import RARE_LOOKS, DayCustomers
from tests.bench.simulated_market import SimulatedMarket
from tools.simulation.cluster import Queued, SimulatedCluster

CLAIMS_AT_ONCE = 50
VISITS_AT_ONCE = 24
"""Clusters that talk to the node at the same time."""


class DayCluster:
    """One provider: its key, its simulated cluster, and when its jobs end."""

    def __init__(self, market: SimulatedMarket, number: int, provider: Provider) -> None:
        wallet = Wallet.load(market.grid.keys / f"provider-{number}")
        self.writer = Writer(market.chain, Sender(market.chain, wallet, RARE_LOOKS))
        self.cluster = SimulatedCluster(provider)
        self.claims: dict[int, tuple[Claimed, Job]] = {}
        self.ends: list[tuple[int, int]] = []  # (time, job) of the running jobs, a heap
        self.started: dict[int, int] = {}
        self.assigned = 0  # jobs that wait for a claim
        self.is_visited = False

    def has_work(self, now: int) -> bool:
        """Return whether a visit would change anything."""
        return not self.is_visited and bool(self.assigned or (self.ends and self.ends[0][0] <= now))


class DayProviders:
    """All clusters, and the runs of settled jobs, as accounting would have them."""

    def __init__(self, market: SimulatedMarket, clock: DayClock, customers: DayCustomers) -> None:
        self._market, self._clock, self._customers = market, clock, customers
        self._by_address: dict[str, DayCluster] = {}
        self._seen_block = 0
        self._slots = asyncio.Semaphore(VISITS_AT_ONCE)
        self.assigned = 0
        self.settled = 0
        self.ended: set[int] = set()
        self.received: defaultdict[str, float] = defaultdict(float)
        """CPU minutes that each customer got."""
        self.runs: list[Run] = []
        """Runs of settled jobs that the books have not read."""
        self._last_slurm_id = 0

    async def open(self) -> None:
        """Register and approve all clusters."""
        plan = self._customers.plan
        await self._market.register(plan.providers, plan.cluster_cpus)
        known = {one.address: one for one in await self._market.chain.providers()}
        for number in range(plan.providers):
            address = Wallet.load(self._market.grid.keys / f"provider-{number}").address
            self._by_address[address] = DayCluster(self._market, number, known[address])
        self._seen_block = (await self._market.chain.head()).number

    async def serve(self) -> None:
        """Claim, run and settle jobs until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._clock.next_block()
                await self._note_assignments()
                for one in self._by_address.values():
                    if one.has_work(self._clock.now):
                        one.is_visited = True
                        group.create_task(self._visit(one))

    async def _note_assignments(self) -> None:
        """Read which jobs were assigned since the last look, and to whom."""
        chain, last = self._market.chain, self._clock.number
        events = await chain.events(self._seen_block + 1, last, ["JobTransitionEvent"])
        self._seen_block = last
        ids = [event.job_id for event in events if event.args["to"] == JobStatus.META_SCHEDULED]
        for job in await chain.jobs(ids) if ids else []:
            self.assigned += 1
            if job.provider is not None and job.status is JobStatus.META_SCHEDULED:
                self._by_address[job.provider].assigned += 1

    async def _visit(self, one: DayCluster) -> None:
        async with self._slots:
            try:
                await self._report_ends(one)
                if one.assigned:
                    await self._claim(one)
                await self._start(one)
            finally:
                one.is_visited = False

    async def _claim(self, one: DayCluster) -> None:
        claims = await one.writer.claim_next_jobs(min(one.assigned, CLAIMS_AT_ONCE))
        one.assigned -= len(claims)
        jobs = await self._market.chain.jobs([claim.job_id for claim in claims])
        for claim, job in zip(claims, jobs, strict=True):
            one.claims[claim.job_id] = claim, job
            one.cluster.submit(Queued(claim.job_id, claim.definition, 60 * claim.granted_minutes))

    async def _start(self, one: DayCluster) -> None:
        started = [running.queued.job_id for running in one.cluster.start_jobs(self._clock.now)]
        if not started:
            return
        skipped = await one.writer.report_jobs([Report(job_id, JobStatus.RUNNING, 0) for job_id in started])
        assert not skipped, skipped
        at = self._clock.now
        for job_id in started:
            one.started[job_id] = at
            heapq.heappush(one.ends, (at + 60 * int(one.claims[job_id][1].name), job_id))

    async def _report_ends(self, one: DayCluster) -> None:
        ended: list[tuple[int, int]] = []
        while one.ends and one.ends[0][0] <= self._clock.now:
            ended.append(heapq.heappop(one.ends))
        if not ended:
            return
        reports = [Report(job_id, JobStatus.FINISHED, self._end(one, job_id, at)) for at, job_id in ended]
        skipped = await one.writer.report_jobs(reports)
        assert not skipped, skipped
        for _, job_id in ended:
            del one.claims[job_id]
            self.ended.add(job_id)
        self.settled += len(ended)

    def _end(self, one: DayCluster, job_id: int, at: int) -> int:
        """End a job at its cluster. Returns the minutes of its bill."""
        claim, job = one.claims[job_id]
        minutes = int(job.name)
        one.cluster.end(job_id)
        self._last_slurm_id += 1
        self.runs.append(Run(job_id, job.claimed_at, self._last_slurm_id, "COMPLETED", one.started.pop(job_id), at))
        self.received[claim.customer] += claim.definition.cpus_per_task * minutes
        return minutes

    async def close(self) -> None:
        """Stop all senders."""
        await asyncio.gather(*(one.writer.sender.close() for one in self._by_address.values()))
