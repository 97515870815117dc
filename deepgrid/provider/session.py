"""The provider's side of the grid: one session per cluster, shared by all its carriers.

The session holds one SSH transport, one Slurm monitor, and one sender for the wallet.
The provider's flows take everything that they need from it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from deepgrid.benchmark.settings import BenchmarkSettings
from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.follower.own_jobs import OwnChange, OwnJobs
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deepgrid.condition_log import ConditionLog
from deepgrid.errors import ChainError, GridError
from deepgrid.lifecycle.job import Job, JobKey, Label, Prices
from deepgrid.lifecycle.pending_reasons import Patience
from deepgrid.lifecycle.slurm_state import Phase, SlurmJob
from deepgrid.observability.metrics import Metrics, Need
from deepgrid.provider.shared.claim_journal import ClaimJournal
from deepgrid.provider.shared.claim_reads import ClaimReads
from deepgrid.provider.shared.claim_room import ClaimRoom
from deepgrid.provider.shared.image_registry import Registries
from deepgrid.provider.shared.log_shipping import LogShipper, LogShippingSettings
from deepgrid.provider.shared.receipt_desk import ReceiptDesk, ReceiptJournal, Signatory
from deepgrid.provider.shared.use_sampler import UseSampler
from deepgrid.provider.shared.wakeups import Wakeups
from deepgrid.provider.site_features import SiteFeatures
from deepgrid.sbatch import Containers, StoragePaths
from deepgrid.services.client import ServicesClient
from deepgrid.services.signing.request_signing import Domain
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.setup.guards import Gate
from deepgrid.slurm.ssh.login import Login, MeteredLogin
from deepgrid.slurm.ssh.login_settings import LoginSettings
from deepgrid.slurm.supervision.leader import Leader
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deepgrid.slurm.supervision.resource_uses import ResourceUses

logger = logging.getLogger(__name__)

CLAIMS_AT_ONCE = 50
GIB = 1024**3
SESSIONS_LABEL = "sessions"  # shows customers whether they can get into their running jobs
LOG_RATE_LABEL = "logs.bw.kibps"  # shows customers how fast a cluster delivers the output of a job


@dataclass(frozen=True)
class ProviderSettings:
    """The configuration of one cluster. `state` is a folder for the follower's cursor."""

    cluster: str
    book: Path
    key_file: Path
    login: LoginSettings
    storage: StoragePaths
    prices: Prices
    labels: tuple[Label, ...]
    state: Path
    services_url: str = ""  # empty for the URL in the address book
    benchmarks: BenchmarkSettings = field(default_factory=BenchmarkSettings)
    containers: Containers = field(default_factory=Containers)
    registries: tuple[str, ...] = ()  # those that the supervisor may query about images
    refused_customers: tuple[str, ...] = ()  # wallet addresses with their checksum
    max_cut_percent: int = 20  # above this platform cut, no job is claimed or run
    claim_stays_s: float = 5.0  # after this, no reorganisation is expected to undo a claim
    metrics_host: str = "127.0.0.1"
    metrics_port: int = 0  # of the endpoint for health and metrics; 0 for none
    held_minutes: int = 60  # that a job waits in Slurm for an administrator, or for an unknown reason
    room_hours: int = 24  # that a job waits in Slurm for room in a limit, or for nodes that are down
    trust_customers: bool = False  # claim jobs even if guards are missing
    accepted_gaps: tuple[str, ...] = ()  # names of guards that may be missing
    log_kib_per_s: int = 256  # of each job's output that are delivered
    output_quota_bytes: int = 20 * GIB  # of one customer's outputs that stay on the cluster; 0 for no quota
    sessions: bool = True  # let customers get into their own running jobs


@dataclass(frozen=True)
class Intervals:
    """Intervals and timeouts of carriers."""

    observe_again_s: float = 30.0  # longest wait before a carrier reads the truth again
    block_poll_s: float = 1.0  # between checks for a new block
    slurm_answers_s: float = 2.0  # a healthy cluster answers within this time
    look_at_node_s: float = 30.0  # longest wait to observe a node; 0 to observe none
    use_known_s: float = 5.0  # longest wait for what a job used, before its log ends

    def until_observing_s(self, now: float) -> float:
        """Return seconds from the monotonic time `now` until all carriers observe again, with one request."""
        return self.observe_again_s - now % self.observe_again_s


class ProviderSession:
    """The open connections of one cluster's supervisor. Open one with `provider_session`."""

    def __init__(
        self, settings: ProviderSettings, chain: Chain, metrics: Metrics, intervals: Intervals, log: LogShippingSettings
    ) -> None:
        self.settings = settings
        self.chain = chain
        self.metrics, self.intervals = metrics, intervals
        wallet, book = Wallet.load(settings.key_file), chain.book
        self.address = wallet.address
        self.sender = Sender(chain, wallet)
        self.writer = Writer(chain, self.sender)
        self.login = Login(settings.login)
        metered = MeteredLogin(self.login, metrics.ran)
        self.gate = Gate(metered, settings.login, settings.accepted_gaps, trust_customers=settings.trust_customers)
        self.cluster = cluster = Cluster(metered, settings.login)
        name = f"{book.chain_id}-{book.meta_scheduler}-{wallet.address}".lower()
        self.leader = leader = Leader(self.login, cluster, name)
        metrics.epoch = lambda: cluster.term.epoch if cluster.term and leader.leads else None
        metrics.carried = lambda: {key: job.phase for key, job in self._observed().items()}
        self.monitor = SlurmMonitor(cluster)
        self.uses = ResourceUses(metered, settings.login.slurm_timeout_s)
        self.services = ServicesClient.of(book, wallet.account, settings.services_url)
        looked = settings.state / f"{settings.cluster}.features.json"
        self.features = SiteFeatures(looked, settings.containers, wallet.public_key)
        self.registries = Registries(settings.registries, settings.containers.mirrors)
        undelivered = ClaimJournal(settings.state / f"{settings.cluster}.logs.json", like=self.key(0, 0))
        self.logs = LogShipper(cluster, self.services, log, undelivered)
        domain, partition = Domain(book.chain_id, book.meta_scheduler), settings.login.partition
        signatory = Signatory(domain, wallet.account, settings.cluster, partition, settings.claim_stays_s)
        unsent = ReceiptJournal(settings.state / f"{settings.cluster}.receipts.json", like=self.key(0, 0))
        self.receipts = ReceiptDesk(chain, cluster, self.uses, self.services, signatory, unsent)
        self.sampler = UseSampler(self.uses, self.services, self._observed, self.monitor.cluster_now)
        self.services_fault = ""  # the reason why the services are not usable at all
        self.wakeups = Wakeups()
        self.patience = Patience(60.0 * settings.held_minutes, 3600.0 * settings.room_hours)
        self.reported_reasons: set[str] = set()  # Slurm's reasons that were logged
        self.unobserved = ConditionLog(logger, "jobs cannot be observed")  # logged once for all carriers
        self._reads = ClaimReads(self._read_jobs)
        self.claim_room = ClaimRoom(self._held_by_slurm, accounts_are_apart=bool(settings.login.accounts))
        self._carried: dict[JobKey, asyncio.Task[None] | None] = {}  # value: the task, if a fallback carries

    def key_of(self, job: Job) -> JobKey:
        """Return the key of the job's current claim."""
        return self.key(job.id, job.claimed_at)

    def key(self, job_id: int, claimed_at: int) -> JobKey:
        return JobKey(self.chain.book.chain_id, self.chain.book.meta_scheduler, job_id, claimed_at)

    def carries(self, key: JobKey) -> bool:
        """Return whether a carrier of this process drives the claim now."""
        return key in self._carried

    @property
    def is_idle(self) -> bool:
        """Return whether no carrier of this process drives a claim."""
        return not self._carried

    @property
    def runs_jobs(self) -> bool:
        """Return whether a job that this process drives runs in Slurm now."""
        return any(job.phase is Phase.RUNNING for job in self._observed().values())

    def may_carry(self, key: JobKey) -> bool:
        """Return whether `driving` accepts the claim: no carrier drives it, or only a fallback, which gives way."""
        return self._carried.get(key) is not None or not self.carries(key)

    @asynccontextmanager
    async def driving(self, key: JobKey, *, fallback: asyncio.Task[None] | None = None) -> AsyncIterator[None]:
        """Drive the claim while the context lasts. There is one carrier per claim; see `may_carry`.

        A later carrier cancels the task `fallback` and continues where it stopped.
        """
        while (before := self._carried.get(key)) is not None:
            before.cancel()
            await asyncio.wait({before})
        if key in self._carried:
            raise GridError(f"Job {key.job_id} is carried already by this supervisor.")
        self._carried[key] = fallback
        self.monitor.watch(key)
        try:
            yield
        finally:
            self.monitor.unwatch(key)
            del self._carried[key]

    async def job_of(self, key: JobKey) -> Job:
        """Return the job of a claim, read from the chain. Reads of many carriers share a request.

        Raises ChainError (transient) when the node's head is older than the claim. Such a node proves nothing.
        """
        job = await self._reads.job(key.job_id)
        if self.key_of(job) == key and job.provider == self.address:
            return job
        head = await self.chain.head()
        if head.timestamp <= key.claimed_at:
            raise ChainError(f"The chain's node is behind the claim of job {key.job_id}.")
        return (await self.chain.jobs([key.job_id], head.number))[0]

    def _observed(self) -> dict[JobKey, SlurmJob]:
        return {key: self.monitor.observe(key) for key in self._carried}

    def _held_by_slurm(self) -> int:
        return sum(job.phase in (Phase.QUEUED, Phase.RUNNING) for job in self._observed().values())

    async def _read_jobs(self, job_ids: list[int]) -> list[Job]:
        return await self.chain.jobs(job_ids)

    async def explain(self, job_id: int, kind: str, text: str) -> None:
        """Post a notice about the job for its customer. If the service is down, only the notice is lost."""
        try:
            await self.services.post_notice(job_id, kind, text)
        except GridError as error:
            logger.warning("job %d: notice %r is not posted: %s", job_id, text, error.message)

    async def claim_waiting(self) -> list[Job]:
        """Claim up to CLAIMS_AT_ONCE jobs from this provider's on-chain queue, in one transaction.

        Claims no more than Slurm lets the account submit, and nothing while the cluster lacks a guard. Raises
        SlurmUnreachable when the guards cannot be checked.
        """
        if not await self.chain.next_claimable(self.address):
            return []
        if closed := self.services_fault or await self.gate.why_closed():
            logger.warning("no job is claimed: %s", closed)
            return []
        room = CLAIMS_AT_ONCE
        if self.claim_room.is_known:
            room = min(room, self.claim_room.beside(len(await self.chain.claimed_jobs(self.address))))
        if not room:
            return []
        claims = await self.writer.claim_next_jobs(room)
        return await self.chain.jobs([claimed.job_id for claimed in claims])


@asynccontextmanager
async def provider_session(
    settings: ProviderSettings,
    intervals: Intervals = Intervals(),
    log_shipping: LogShippingSettings | None = None,
) -> AsyncIterator[ProviderSession]:
    """Open everything that a provider's flows need, and close it at the end."""
    log_shipping = log_shipping or LogShippingSettings(bytes_per_s=settings.log_kib_per_s * 1024)
    async with AsyncExitStack() as stack:
        metrics = Metrics()
        chain = await stack.enter_async_context(await Chain.connect(AddressBook.load(settings.book), metrics.asked))
        session = ProviderSession(settings, chain, metrics, intervals, log_shipping)
        stack.push_async_callback(session.login.close)
        stack.callback(session.leader.close)
        stack.push_async_callback(session.sender.close)
        stack.push_async_callback(session.monitor.close)
        await stack.enter_async_context(session.services)
        await stack.enter_async_context(session.logs)
        await stack.enter_async_context(session.receipts)
        await stack.enter_async_context(session.sampler)
        yield session


async def follow_jobs(session: ProviderSession) -> AsyncIterator[OwnChange]:
    """Yield changes of this provider's jobs. The first one holds all its claimed jobs.

    Carriers that wait for a changed job are woken.
    """
    metrics = session.metrics
    own = OwnJobs(session.chain, session.address, looked=metrics.followed)
    with metrics.liveness.expecting(Need.BLOCKS):
        async for change in own.changes():
            metrics.saw(change.jobs, session.address, change.claimable)
            session.wakeups.wake(job.id for job in change.jobs)
            yield change
