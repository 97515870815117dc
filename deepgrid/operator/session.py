"""The operator's side: reads jobs and clusters, assigns pending jobs, and tells customers why others wait.

The operator's other steps are in `expiry`, `delegated_top_ups` and `approvals`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.follower.follower import Follower
from deepgrid.chain.follower.index import JobIndex
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deepgrid.errors import GridError
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from deepgrid.scheduling.match import Assignment, Cluster, Waiting
from deepgrid.services.client import ServicesClient

logger = logging.getLogger(__name__)

# A provider that refused a job, or let it time out, is a candidate again after this time. It may have free nodes then.
REFUSAL_VALID_S = 600


@dataclass(frozen=True)
class OperatorSettings:
    """The operator's configuration. `state` is a folder for the follower's cursor.

    `approve_label_changes`: whether to approve proposals that change only measured labels without a person.
    """

    book: Path
    key_file: Path
    state: Path
    services_url: str = ""  # empty for the URL in the address book
    approve_label_changes: bool = False


class OperatorSession:
    """The open connections of the operator's process. Open one with `operator_session`."""

    def __init__(self, settings: OperatorSettings, chain: Chain, wallet: Wallet) -> None:
        self.settings = settings
        self.chain = chain
        self.sender = Sender(chain, wallet)
        self.writer = Writer(chain, self.sender)
        self.services = ServicesClient.of(chain.book, wallet.account, settings.services_url)
        settings.state.mkdir(parents=True, exist_ok=True)
        self.index = JobIndex(settings.state / "operator.sqlite")
        self._last_notice: dict[int, str] = {}
        self._refused: dict[int, dict[str, float]] = {}
        self._timed_out: dict[int, dict[str, str]] = {}

    async def pending(self) -> list[Job]:
        """Jobs that wait for a cluster, read from the chain."""
        jobs = await self.chain.jobs(self.index.pending())
        return [job for job in jobs if job.status is JobStatus.PENDING]

    async def hot(self) -> list[Job]:
        """Jobs that are not over, read from the chain."""
        return [job for job in await self.chain.jobs(self.index.hot()) if job.status.hot]

    async def clusters(self) -> list[Cluster]:
        """Approved clusters, with the CPUs that their hot jobs use or wait for."""
        taken: Counter[str] = Counter()
        for job in await self.hot():
            if job.provider is not None:
                taken[job.provider] += job.definition.ntasks * job.definition.cpus_per_task
        return [Cluster(one, taken[one.address]) for one in await self.chain.providers() if one.in_force]

    def note(self, jobs: Sequence[Job]) -> None:
        """Update the memory from changed jobs: note refusals, and forget jobs that are over."""
        for job in jobs:
            if job.status.cold:
                self._last_notice.pop(job.id, None)
                self._refused.pop(job.id, None)
                self._timed_out.pop(job.id, None)
            elif job.status is JobStatus.PENDING and job.last_refuser is not None:
                self._refused.setdefault(job.id, {})[job.last_refuser] = time.monotonic()

    def note_time_out(self, job_id: int, provider: str, reason: str) -> None:
        """Remember why a job was taken from a provider."""
        self._timed_out.setdefault(job_id, {})[provider] = reason

    async def refusals(self, jobs: Sequence[Job]) -> dict[int, dict[str, str]]:
        """Per job, the providers that recently refused it or let it time out, with the reason if it is known."""
        found: dict[int, dict[str, str]] = {}
        self.note([job for job in jobs if job.last_refuser not in self._refused.get(job.id, {})])
        for job in jobs:
            refused = self._refused.get(job.id, {})
            recent = [provider for provider, at in refused.items() if time.monotonic() - at < REFUSAL_VALID_S]
            reasons = {**await self._reasons(job.id), **self._timed_out.get(job.id, {})} if recent else {}
            found[job.id] = {provider: reasons.get(provider, "") for provider in recent}
        return found

    async def assign(self, assignments: Sequence[Assignment]) -> int:
        """Assign jobs to providers on chain. Returns how many: a job or provider that changed meanwhile is skipped."""
        skipped = await self.writer.meta_schedule_jobs([(one.job_id, one.provider) for one in assignments])
        for one in skipped:
            logger.info("job %d: not assigned: %s", one.job_id, one.reason.message)
        raced = {one.index for one in skipped}
        assigned = [one for index, one in enumerate(assignments) if index not in raced]
        await asyncio.gather(*(self.say(one.job_id, "assigned", one.reason) for one in assigned))
        return len(assigned)

    async def explain_waiting(self, waiting: Waiting) -> None:
        """Tell the customer why the job waits, once per reason."""
        await self.say(waiting.job_id, "waiting", waiting.reason)

    async def say(self, job_id: int, kind: str, text: str) -> None:
        """Post a notice, unless it repeats the last one. If the service is down, only the notice is lost."""
        if self._last_notice.get(job_id) == text:
            return
        try:
            await self.services.post_notice(job_id, kind, text)
        except GridError as error:
            logger.warning("job %d: notice %r is not posted: %s", job_id, text, error.message)
            return
        self._last_notice[job_id] = text

    async def _reasons(self, job_id: int) -> dict[str, str]:
        try:
            notices = await self.services.notices(job_id)
        except GridError:
            return {}
        return {notice.author: notice.text for notice in notices if notice.kind == "refused"}


@asynccontextmanager
async def operator_session(settings: OperatorSettings) -> AsyncIterator[OperatorSession]:
    """Open everything that the operator's flows need, and close it at the end."""
    async with AsyncExitStack() as stack:
        chain = await stack.enter_async_context(await Chain.connect(AddressBook.load(settings.book)))
        session = OperatorSession(settings, chain, Wallet.load(settings.key_file))
        stack.callback(session.index.close)
        stack.push_async_callback(session.sender.close)
        await stack.enter_async_context(session.services)
        yield session


async def follow_jobs(session: OperatorSession) -> AsyncIterator[list[Job]]:
    """Yield changed jobs in batches. At each batch the index is up to date."""
    async for jobs in Follower(session.chain, session.index).changes():
        session.note(jobs)
        yield jobs
