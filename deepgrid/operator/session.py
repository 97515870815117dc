"""The operator's side: the open connections, and the operator's knowledge of jobs, providers and refusals.

The steps of a round are in `rounds`; the other steps are in `expiry`, `delegated_top_ups` and `approvals`.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.follower.follower import Follower
from deepgrid.chain.follower.index import JobIndex
from deepgrid.chain.node.node import Block
from deepgrid.chain.node.values import TrackRecord
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deepgrid.errors import GridError
from deepgrid.lifecycle.feature_labels import lacked_features
from deepgrid.lifecycle.job import Job, Provider
from deepgrid.operator.job_memory import JobMemory
from deepgrid.operator.notice_board import NoticeBoard, WaitingNotices
from deepgrid.operator.operator_metrics import OperatorMetrics
from deepgrid.operator.store import GivenBack, OperatorStore
from deepgrid.scheduling.market import SchedulerSettings
from deepgrid.scheduling.rounds.scheduler import Scheduler
from deepgrid.services.client import ServicesClient

# A provider that refused a job, or let it time out, is a candidate again after this time. It may have free nodes then.
REFUSAL_VALID_S = 600
REASONS_AT_ONCE, REASONS_WITHIN_S = 16, 10.0
SWEEP_S = 30.0  # pause between two reads of all claimed jobs; cancel requests and top-ups are the providers' business
FOLLOWED_WITHIN_S = 10.0

Entry = tuple[Provider, TrackRecord]


@dataclass(frozen=True)
class OperatorSettings:
    """The operator's configuration. `state` is a folder for its cursor on the chain and its store.

    `approve_label_changes`: whether to approve proposals that change only measured labels without a person.
    `metrics_port`: of the endpoint for metrics, on the loopback interface; 0 for none.
    """

    book: Path
    key_file: Path
    state: Path
    services_url: str = ""  # empty for the URL in the address book
    approve_label_changes: bool = False
    scheduler: SchedulerSettings = field(default_factory=SchedulerSettings)
    metrics_port: int = 0


class OperatorSession:
    """The open connections of the operator's process. Open one with `operator_session`."""

    def __init__(
        self, settings: OperatorSettings, chain: Chain, wallet: Wallet, metrics: OperatorMetrics | None = None
    ) -> None:
        self.settings = settings
        self.chain = chain
        self.metrics = metrics or OperatorMetrics()
        self.sender = Sender(chain, wallet)
        self.writer = Writer(chain, self.sender)
        self.services = ServicesClient.of(chain.book, wallet.account, settings.services_url)
        settings.state.mkdir(parents=True, exist_ok=True)
        self.index = JobIndex(settings.state / "operator.sqlite")
        self.store = OperatorStore(settings.state / "rounds.sqlite")
        self.memory = JobMemory(self.store, self.metrics, settings.scheduler)
        self.metrics.hot = self.memory.hot.values
        self.notices = NoticeBoard(self.services, self.store, self.index.last_id)
        self.scheduler = Scheduler(settings.scheduler)
        self.deciding = threading.Lock()  # the scheduler is used by one thread at a time
        self.waiting_notices = WaitingNotices()
        self.history_due_at = 0.0  # by the monotonic clock: when the figures of the last rounds are published again
        self.next_round_at: float | None = None  # by the event loop's clock, when no change comes earlier
        self.watched: list[Entry] | None = None  # all providers, while something watches them
        self.followed: int | None = None  # the last block whose changes are known, while something follows the chain
        self._followed_further = asyncio.Event()

    def close(self) -> None:
        """Close the files."""
        self.index.close()
        self.store.close()

    # -- the grid ----------------------------------------------------------------------------

    async def hot(self) -> list[Job]:
        """Return jobs that are not over: from the follower's last report, or read from the chain if there is none."""
        ids = self.index.hot()
        if self.followed is not None:
            return [self.memory.hot[job_id] for job_id in ids if job_id in self.memory.hot]
        return [job for job in await self.chain.jobs(ids) if job.status.hot]

    async def providers(self) -> list[Entry]:
        """Return all providers with their records: from the watcher's last read, or from the chain if there is none."""
        return await self.chain.providers_and_records() if self.watched is None else self.watched

    def caught_up(self, head: Block) -> None:
        """Note that all changes up to this block are known."""
        self.followed = head.number
        self.metrics.caught_up(head)
        self._followed_further.set()

    async def until_followed(self, block: int) -> None:
        """Wait until the changes up to this block are known. A reorganisation or an outage ends the wait."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FOLLOWED_WITHIN_S):
                while self.followed is not None and self.followed < block:
                    self._followed_further.clear()
                    await self._followed_further.wait()

    # -- refusals ----------------------------------------------------------------------------

    async def refusals(self, jobs: Sequence[Job]) -> dict[int, dict[str, str]]:
        """Per job, the providers that lately refused it or let it time out, with the reason if it is known.

        A reason is read once from the services. A job without refusals is left out.
        """
        now = self.memory.now()
        recent = {
            job.id: [one for one in self.memory.given_back(job.id) if now - one.at < REFUSAL_VALID_S] for job in jobs
        }
        unread = [one for entries in recent.values() for one in entries if one.reason is None]
        slots, by_id = asyncio.Semaphore(REASONS_AT_ONCE), {job.id: job for job in jobs}
        with contextlib.suppress(TimeoutError):  # jobs that are missing then are read in the next round
            async with asyncio.timeout(REASONS_WITHIN_S):
                await asyncio.gather(*(self._read_reason(one, by_id[one.job_id], slots) for one in unread))
        return {
            job_id: {
                one.provider: one.reason or "" for one in self.memory.given_back(job_id) if one.at >= entries[0].at
            }
            for job_id, entries in recent.items()
            if entries
        }

    async def _read_reason(self, entry: GivenBack, job: Job, slots: asyncio.Semaphore) -> None:
        async with slots:
            try:
                notices = await self.services.notices(entry.job_id)
                said = [one.text for one in notices if one.kind == "refused" and one.author == entry.provider]
                reason = said[-1] if said else ""
                excused = await self._is_excused(job, entry.provider, lacked_features(reason))
            except GridError:
                return
        self.memory.explain(entry, reason, excused=excused)

    async def _is_excused(self, job: Job, provider: str, missing: Collection[str]) -> bool:
        """Return whether a cluster could not know that it lacks what the job needs.

        The job's labels do not name it, and the cluster's labels do not claim it.
        """
        if not missing:
            return False
        asked = {label.key for label in job.definition.uses} | {one.key for one in job.definition.affinity}
        offered = {label.key for label in (await self.chain.provider(provider)).labels}
        return not asked.union(offered).intersection(missing)


@asynccontextmanager
async def operator_session(settings: OperatorSettings) -> AsyncIterator[OperatorSession]:
    """Open everything that the operator's flows need, and close it at the end."""
    async with AsyncExitStack() as stack:
        metrics = OperatorMetrics()
        chain = await stack.enter_async_context(await Chain.connect(AddressBook.load(settings.book), metrics.asked))
        session = OperatorSession(settings, chain, Wallet.load(settings.key_file), metrics)
        stack.callback(session.close)
        stack.push_async_callback(session.sender.close)
        await stack.enter_async_context(session.services)
        yield session


async def follow_jobs(session: OperatorSession) -> AsyncIterator[list[Job]]:
    """Yield changed jobs in batches. At each batch the index and the memory are up to date."""
    first = True
    follower = Follower(session.chain, session.index, sweep_s=SWEEP_S, caught_up=session.caught_up)
    try:
        async for jobs in follower.changes():
            if first:
                session.store.belong_to(session.index.identity())
                session.memory.restart([job for job in jobs if job.status.hot])
                first = False
            session.memory.note(jobs)
            yield jobs
    finally:
        session.followed = None
