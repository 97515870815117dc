"""Claims of customers on a real cluster, carried by the real Carrier. Only the chain is a fake in memory.

Bills follow the contract (`MetaScheduler._billableMinutes`): the reported minutes, at most those begun since the
reported start. A job that ran and was cancelled on request pays at least the cancellation fee.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from deepgrid.errors import GridError
from deepgrid.lifecycle.actions import Action
from deepgrid.lifecycle.drive import drive
from deepgrid.lifecycle.job import Job, JobDefinition, JobKey
from deepgrid.lifecycle.minutes import elapsed_minutes
from deepgrid.lifecycle.pending_reasons import DEFAULT_PATIENCE
from deepgrid.lifecycle.states import JobStatus, may_move
from deepgrid.provider.claims.carrier import Carrier
from deepgrid.provider.claims.step_runner import RunStep, call_step
from deepgrid.provider.session import Intervals, ProviderSession
from deepgrid.provider.shared.claim_room import ClaimRoom
from deepgrid.provider.shared.wakeups import Wakeups
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.ssh.login_settings import CustomerAccounts, LoginSettings
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deployments.onemachine.slurm import slurm_files
from tests.slurm.support import Box, new_key

FEE_MINUTES = 5
PAUSE_S = 1.0
PROVIDER = "0x" + "9" * 40
RECEIPT = SimpleNamespace(tx_hash="0x")
SMALL_JOB = JobDefinition(gpus=0, mem_per_cpu_mb=10, cpus_per_task=1, ntasks=1, definition_hash="")


@dataclass
class Claim:
    """A claim of `customer`, whose jobs run `script`."""

    key: JobKey
    customer: str
    script: str


@dataclass
class Books:
    """The chain as a carrier sees it: jobs, the reports about them, and their costs."""

    claims: dict[int, Claim] = field(default_factory=dict)
    kept: dict[int, Job] = field(default_factory=dict)
    billed: dict[int, int] = field(default_factory=dict)
    wakeups: Wakeups = field(default_factory=Wakeups)

    def claim(self, customer: str, script: str, minutes: int, definition: JobDefinition = SMALL_JOB) -> Claim:
        """Return a new claim of a job with credits for `minutes`."""
        key = new_key()
        self.claims[key.job_id] = Claim(key, customer, script)
        self.kept[key.job_id] = Job(
            id=key.job_id, status=JobStatus.SCHEDULED, customer=customer, provider=PROVIDER, definition=definition,
            name="a job", locked_wei=minutes, final_cost_wei=0, submitted_at=key.claimed_at,
            assigned_at=key.claimed_at, claimed_at=key.claimed_at, started_at=0, ended_at=0, cancel_requested_at=0,
            has_cancel_request=False, rate_wei_per_minute=1, cut_percent=0, granted_minutes=minutes,
            last_refuser=None, delegate_spending=False, last_error="", exit_status=0,
        )  # fmt: skip
        return self.claims[key.job_id]

    def cancel(self, claim: Claim) -> None:
        """Request the job's cancellation as the customer."""
        if self.kept[claim.key.job_id].status.hot:
            self._change(claim.key.job_id, has_cancel_request=True, cancel_requested_at=int(time.time()))

    def top_up(self, claim: Claim, minutes: int) -> None:
        """Pay for more time as the customer."""
        job = self.kept[claim.key.job_id]
        if job.status.hot:
            granted = job.granted_minutes + minutes
            self._change(job.id, granted_minutes=granted, locked_wei=granted)

    def outcome(self, claim: Claim) -> Job:
        return self.kept[claim.key.job_id]

    def bill(self, claim: Claim) -> int:
        """Return the minutes that the customer paid for; 0 while the job is not over, or if it was given back."""
        return self.billed.get(claim.key.job_id, 0)

    # The queries and reports of a session.

    async def now(self) -> int:
        return int(time.time())

    async def job(self, job_id: int) -> Job:
        return self.kept[job_id]

    async def jobs(self, job_ids: Iterable[int]) -> list[Job]:
        return [self.kept[job_id] for job_id in job_ids]

    async def jobs_by_customer(self, customer: str) -> list[int]:
        return [job.id for job in self.kept.values() if job.customer == customer]

    async def job_of(self, key: JobKey) -> Job:
        return self.kept[key.job_id]

    async def set_running(self, job_id: int, elapsed_minutes: int) -> SimpleNamespace:
        start = max(int(time.time()) - 60 * elapsed_minutes, self.kept[job_id].claimed_at)
        self._move(job_id, JobStatus.RUNNING, started_at=start)
        return RECEIPT

    async def refuse_job(self, job_id: int) -> None:
        self._move(job_id, JobStatus.PENDING)

    async def settle(
        self, job_id: int, status: JobStatus, minutes: int, error: str = "", exit_status: int = 0
    ) -> SimpleNamespace:
        job, now = self.kept[job_id], int(time.time())
        self._move(job_id, status, last_error=error, exit_status=exit_status, ended_at=now)
        billed = 0
        if job.status is JobStatus.RUNNING and status is not JobStatus.PANICKED:
            billed = min(minutes, elapsed_minutes(job.started_at, now))
            if status is JobStatus.CANCELLED and job.has_cancel_request:
                billed = max(billed, min(FEE_MINUTES, job.granted_minutes))
        self.billed[job_id] = billed
        return RECEIPT

    def settlement_in(self, receipt: SimpleNamespace, _now: int) -> SimpleNamespace:
        """Return what the carrier tells about a settlement. The tests read `billed`."""
        return SimpleNamespace(tx_hash=receipt.tx_hash, billed_minutes=0, paid_wei=0, cut_wei=0, refunded_wei=0)

    def _move(self, job_id: int, status: JobStatus, **changes: Any) -> None:
        before = self.kept[job_id].status
        assert may_move(before, status), f"job {job_id}: {before} -> {status}"
        self._change(job_id, status=status, **changes)

    def _change(self, job_id: int, **changes: Any) -> None:
        self.kept[job_id] = replace(self.kept[job_id], **changes)
        self.wakeups.wake([job_id])


class Supervisor:
    """A provider's supervisor of one cluster. It knows nothing of an earlier supervisor."""

    def __init__(self, books: Books, cluster: Cluster) -> None:
        self.books = books
        self.cluster = cluster
        self.monitor = SlurmMonitor(cluster)
        ignored = SimpleNamespace(follow=_nothing, submitted=_nothing, settled=_nothing, say=_nothing)
        settings = SimpleNamespace(cluster="unit", claim_stays_s=0, storage=SimpleNamespace(of_account=()))
        self._session = SimpleNamespace(
            settings=settings, address=PROVIDER, chain=books, writer=books, job_of=books.job_of, wakeups=books.wakeups,
            monitor=self.monitor, cluster=cluster, logs=ignored, metrics=ignored, explain=_nothing_soon,
            intervals=Intervals(), unobserved=SimpleNamespace(end=_nothing, note=_nothing),
            patience=DEFAULT_PATIENCE, reported_reasons=set(), claim_room=ClaimRoom(int, accounts_are_apart=True),
        )  # fmt: skip

    async def carry(self, claim: Claim) -> None:
        """Drive the claim to its end, like a run of `run_job`."""
        self.monitor.watch(claim.key)
        carrier = ScriptedCarrier(cast(ProviderSession, self._session), claim.key, claim.script)
        try:
            await drive(carrier.observe, carrier.act)
            await self.cluster.acknowledge(claim.key)
        finally:
            self.monitor.unwatch(claim.key)


class ScriptedCarrier(Carrier):
    """The product's carrier, with a script of the test. It repeats an action while the cluster is busy."""

    def __init__(self, session: ProviderSession, key: JobKey, script: str) -> None:
        super().__init__(session, key)
        self._script = script

    async def fetch_script(self) -> str:
        self.observer.ships_output = True
        return self._script

    async def act(self, action: Action, run: RunStep = call_step) -> None:
        while True:
            try:
                return await super().act(action, run)
            except GridError as error:
                if not error.transient:
                    raise
            await asyncio.sleep(PAUSE_S)


def settings_with(box: Box, accounts: Mapping[str, str]) -> LoginSettings:
    """Return the provider's settings with these accounts of customers.

    The cluster's guard, if any, knows the accounts too.
    """
    settings = replace(box.settings, job_account=None, accounts=CustomerAccounts(accounts))
    conf = Path(box.site.environment(box.name)["SLURM_CONF"])
    if (conf.parent / "job_submit.lua").exists():
        slurm_files.write_hook("job_submit.lua", conf.parent, settings)
        box.slurm("scontrol", "reconfigure")
    return settings


@asynccontextmanager
async def supervisor(books: Books, settings: LoginSettings) -> AsyncIterator[Supervisor]:
    """Yield a supervisor that has just started."""
    login = Login(settings)
    one = Supervisor(books, Cluster(login, settings))
    try:
        yield one
    finally:
        await one.monitor.close()
        await login.close()


def _nothing(*_: object) -> None:
    """Accept the events that the test ignores."""


async def _nothing_soon(*_: object) -> None:
    await asyncio.sleep(0)
