"""The provider's side of the grid: one session a cluster, shared by all its carriers.

The session holds one SSH transport, one Slurm monitor, one sender for the wallet and one
follower of the chain; everything that a flow of the provider needs comes from it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path

from deepgrid.benchmark.settings import BenchmarkSettings
from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.follower.follower import Follower
from deepgrid.chain.follower.index import JobIndex
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deepgrid.errors import ChainError, GridError
from deepgrid.lifecycle.job import Job, JobKey, Label, Prices
from deepgrid.observability.liveness import Need
from deepgrid.observability.metrics import Metrics
from deepgrid.provider.log_shipping import LogShipper
from deepgrid.provider.wakeups import Wakeups
from deepgrid.registry import Registries
from deepgrid.sbatch import Containers, StoragePaths
from deepgrid.services.client import ServicesClient
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.setup.guards import Gate
from deepgrid.slurm.ssh.login import Login, LoginSettings
from deepgrid.slurm.ssh.metered import MeteredLogin
from deepgrid.slurm.supervision.leader import Leader
from deepgrid.slurm.supervision.monitor import SlurmMonitor

logger = logging.getLogger(__name__)

CLAIMS_AT_ONCE = 50


@dataclass(frozen=True)
class ProviderSettings:
    """What one cluster is configured with; `state` is a folder for the follower's cursor."""

    cluster: str
    book: Path
    key_file: Path
    login: LoginSettings
    storage: StoragePaths
    prices: Prices
    labels: tuple[Label, ...]
    state: Path
    services_url: str = ""  # empty for the address book's
    benchmarks: BenchmarkSettings = field(default_factory=BenchmarkSettings)
    containers: Containers = field(default_factory=Containers)
    registries: tuple[str, ...] = ()  # those that may be asked about images
    refused_customers: tuple[str, ...] = ()  # wallet addresses with their checksum
    max_cut_percent: int = 20  # of the platform, above which no job is claimed or run
    claim_stays_s: float = 5.0  # after which no reorganisation is expected to take a claim back
    metrics_host: str = "127.0.0.1"
    metrics_port: int = 0  # of health and metrics; 0 for none
    trust_customers: bool = False  # claim jobs also where guards are missing
    accepted_gaps: tuple[str, ...] = ()  # guards by name that may be missing


class ProviderSession:
    """What the supervisor of one cluster holds open. Use `provider_session` to open one."""

    def __init__(
        self,
        settings: ProviderSettings,
        chain: Chain,
        wallet: Wallet,
        cluster: Cluster,
        leader: Leader,
        metrics: Metrics,
        gate: Gate,
    ) -> None:
        self.settings = settings
        self.gate = gate
        self.metrics = metrics
        metrics.epoch = lambda: cluster.term.epoch if cluster.term and leader.leads else None
        metrics.carried = lambda: {key: self.monitor.observe(key).phase for key in self._carried}
        self.chain = chain
        self.address = wallet.address
        self.sender = Sender(chain, wallet)
        self.writer = Writer(chain, self.sender)
        self.cluster = cluster
        self.leader = leader
        self.monitor = SlurmMonitor(cluster)
        self.services = ServicesClient.of(chain.book, wallet.account, settings.services_url)
        self.registries = Registries(settings.registries, settings.containers.mirrors)
        self.logs = LogShipper(cluster, self.services)
        self.wakeups = Wakeups()
        self._carried: dict[JobKey, asyncio.Task[None] | None] = {}  # with the task of a stand-in

    def key_of(self, job: Job) -> JobKey:
        """Identity of the job's present claim."""
        return self.key(job.id, job.claimed_at)

    def key(self, job_id: int, claimed_at: int) -> JobKey:
        return JobKey(self.chain.book.chain_id, self.chain.book.meta_scheduler, job_id, claimed_at)

    def carries(self, key: JobKey) -> bool:
        """Whether a carrier of this process drives the claim at this moment."""
        return key in self._carried

    @property
    def is_idle(self) -> bool:
        """Whether no carrier of this process drives any claim."""
        return not self._carried

    def may_carry(self, key: JobKey) -> bool:
        """Whether `driving` takes the claim: nobody drives it, or a stand-in, which gives way."""
        return self._carried.get(key) is not None or not self.carries(key)

    @asynccontextmanager
    async def driving(self, key: JobKey, *, stand_in: asyncio.Task[None] | None = None) -> AsyncIterator[None]:
        """Drive the claim while the context lasts; only one carrier a claim, see `may_carry`.

        A carrier that comes later cancels the task `stand_in`, and goes on where that one was.
        """
        while (before := self._carried.get(key)) is not None:
            before.cancel()
            await asyncio.wait({before})
        if key in self._carried:
            raise GridError(f"Job {key.job_id} is carried already by this supervisor.")
        self._carried[key] = stand_in
        self.monitor.watch(key)
        try:
            yield
        finally:
            self.monitor.unwatch(key)
            del self._carried[key]

    async def job_of(self, key: JobKey) -> Job:
        """The job of a claim as the chain has it.

        Raises ChainError (transient) when the node is behind the claim: it does not know of it, which ends no job.
        """
        job = await self.chain.job(key.job_id)
        if self.key_of(job) == key and job.provider == self.address:
            return job
        head = await self.chain.head()
        if head.timestamp <= key.claimed_at:
            raise ChainError(f"The chain's node is behind the claim of job {key.job_id}.")
        return (await self.chain.jobs([key.job_id], head.number))[0]

    async def explain(self, job_id: int, kind: str, text: str) -> None:
        """Tell the customer something about the job; a service that is down loses the remark only."""
        try:
            await self.services.post_notice(job_id, kind, text)
        except GridError as error:
            logger.warning("job %d: could not say %r: %s", job_id, text, error.message)

    async def claim_waiting(self) -> list[Job]:
        """Claim what waits in this provider's on-chain queue, up to CLAIMS_AT_ONCE jobs; none when it is empty.

        None either while the cluster lacks a guard. Raises SlurmUnreachable when that cannot be known.
        """
        if not await self.chain.next_claimable(self.address):
            return []
        if closed := await self.gate.why_closed():
            logger.warning("nothing is claimed: %s", closed)
            return []
        claims = await self.writer.claim_next_jobs(CLAIMS_AT_ONCE)
        return await self.chain.jobs([claimed.job_id for claimed in claims])


@asynccontextmanager
async def provider_session(settings: ProviderSettings) -> AsyncIterator[ProviderSession]:
    """Open everything that a provider's flows need, and close it at the end."""
    async with AsyncExitStack() as stack:
        metrics = Metrics()
        book = AddressBook.load(settings.book)
        chain = await stack.enter_async_context(await Chain.connect(book, metrics.asked))
        login = Login(settings.login)
        stack.push_async_callback(login.close)
        metered = MeteredLogin(login, metrics.ran)
        cluster = Cluster(metered, settings.login)
        gate = Gate(metered, settings.login, settings.accepted_gaps, trust_customers=settings.trust_customers)
        wallet = Wallet.load(settings.key_file)
        leader = Leader(login, cluster, f"{book.chain_id}-{book.meta_scheduler}-{wallet.address}".lower())
        stack.callback(leader.close)
        session = ProviderSession(settings, chain, wallet, cluster, leader, metrics, gate)
        stack.push_async_callback(session.sender.close)
        stack.push_async_callback(session.monitor.close)
        await stack.enter_async_context(session.services)
        await stack.enter_async_context(session.logs)
        yield session


async def follow_jobs(session: ProviderSession) -> AsyncIterator[list[Job]]:
    """Batches of jobs whenever the chain changed them, the first with all hot ones; see whose they are now.

    Carriers that wait for one of them are woken.
    """
    session.settings.state.mkdir(parents=True, exist_ok=True)
    index = JobIndex(session.settings.state / f"{session.settings.cluster}.sqlite")
    metrics = session.metrics
    with closing(index), metrics.vitals.expecting(Need.BLOCKS):
        async for jobs in Follower(session.chain, index, caught_up=metrics.caught_up).changes():
            metrics.saw(jobs, session.address)
            session.wakeups.wake(job.id for job in jobs)
            yield jobs
