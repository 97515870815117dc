"""Signs the receipts of settled jobs and sends them to the services. One pass over the chain serves many jobs.

It never delays a settlement. Claims whose receipts are not sent are kept in a file, so a restart loses none. The
services keep the first receipt of a job.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Self

from pydantic import BaseModel, RootModel, ValidationError

from deepgrid.chain.client import Chain
from deepgrid.chain.job_trail import read_trails
from deepgrid.chain.transactions.eth_accounts import LocalAccount
from deepgrid.condition_log import ConditionLog
from deepgrid.errors import ChainError, GridError, NotFound
from deepgrid.files.private_files import write_json
from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.lifecycle.slurm_state import Phase, SlurmJob
from deepgrid.services.client import ServicesClient
from deepgrid.services.receipts import sign_receipt
from deepgrid.services.receipts.making import SettledJob, contents_of, evidence_of, place_of, tres_text, with_use
from deepgrid.services.signing.request_signing import Domain
from deepgrid.slurm.cluster import DAY_S, Cluster
from deepgrid.slurm.supervision.resource_uses import ResourceUses

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ReceiptSettings:
    """Intervals and limits of the receipts."""

    poll_s: float = 1.0
    longest_pause_s: float = 60.0  # while chain, Slurm or the services do not answer
    at_once: int = 50


class Seen(BaseModel):
    """What Slurm says of a claim's run, as the file holds it."""

    slurm_id: int | None = None
    state: str = ""
    started_at: int | None = None
    ended_at: int | None = None
    exit_status: int = 0
    ran_s: int | None = None
    suspended_s: int = 0
    nodes: str = ""

    @classmethod
    def of(cls, job: SlurmJob) -> Self:
        return cls(**{name: getattr(job, name) for name in cls.model_fields})

    @property
    def job(self) -> SlurmJob:
        """The same as the values of a job that ended."""
        return SlurmJob(Phase.ENDED, **self.model_dump())


class ReceiptJournal:
    """Claims whose receipts wait, in a file, for the grid of the claim `like`."""

    def __init__(self, file: Path, like: JobKey) -> None:
        self._file = file
        self._held = {key: seen for comment, seen in _read(file).items() if (key := like.of_same_grid(comment))}
        self._is_written = True
        self._unwritable = ConditionLog(logger, f"{file} cannot be written, a restart will lose its claims")

    def __len__(self) -> int:
        return len(self._held)

    def add(self, key: JobKey, seen: Seen) -> None:
        """Add a claim; what was seen of it first stays."""
        self._replace({key: seen, **self._held})

    def first(self, count: int) -> dict[JobKey, Seen]:
        """Return the claims that wait for the longest time."""
        return dict(islice(reversed(self._held.items()), count))

    def discard(self, keys: Sequence[JobKey]) -> None:
        """Remove claims."""
        self._replace({key: seen for key, seen in self._held.items() if key not in set(keys)})

    def postpone(self, keys: Sequence[JobKey]) -> None:
        """Move claims to the end of the queue."""
        last = {key: self._held[key] for key in keys if key in self._held}
        self._replace({**last, **{key: seen for key, seen in self._held.items() if key not in last}})

    def save(self) -> None:
        """Write the file, if it does not hold all claims, such as after a full disk."""
        if self._is_written:
            return
        try:
            write_json(self._file, {key.comment: seen.model_dump() for key, seen in self._held.items()}, mode=0o600)
            self._is_written = True
            self._unwritable.end()
        except OSError as error:
            self._unwritable.note(error.strerror)

    def _replace(self, held: dict[JobKey, Seen]) -> None:
        self._is_written &= held == self._held
        self._held = held
        self.save()


def _read(file: Path) -> dict[str, Seen]:
    try:
        return RootModel[dict[str, Seen]].model_validate_json(file.read_bytes()).root
    except FileNotFoundError:
        return {}
    except (OSError, ValidationError) as error:
        logger.warning("%s does not hold claims, ignoring it: %s", file, error)
        return {}


@dataclass(frozen=True)
class Signatory:
    """The signer of receipts: an account on its grid, with the names of its cluster and partition."""

    domain: Domain
    account: LocalAccount
    cluster: str
    partition: str
    stable_s: float  # after which no reorganisation is expected to undo a settlement


class ReceiptDesk:
    """One loop for all jobs of a supervisor."""

    def __init__(
        self,
        chain: Chain,
        cluster: Cluster,
        uses: ResourceUses,
        services: ServicesClient,
        signatory: Signatory,
        journal: ReceiptJournal,
        settings: ReceiptSettings = ReceiptSettings(),
    ) -> None:
        self._chain = chain
        self._cluster = cluster
        self._uses = uses
        self._services = services
        self._signatory = signatory
        self._journal = journal
        self._settings = settings
        self._delayed = ConditionLog(logger, "receipts are delayed")
        self._loop: asyncio.Task[None] | None = None
        self._all_sent = asyncio.Event()

    def add(self, key: JobKey, seen: SlurmJob) -> None:
        """Sign and send the receipt of a claim that is settled, with what Slurm said of its run."""
        self._journal.add(key, Seen.of(seen))
        self._all_sent.clear()

    @property
    def waiting(self) -> int:
        """Number of receipts that are not sent."""
        return len(self._journal)

    async def until_sent(self) -> None:
        """Wait until the services have all receipts."""
        await self._all_sent.wait()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.create_task(self._run(), name="receipts")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.gather(self._loop, return_exceptions=True)

    async def _run(self) -> None:
        """Send receipts forever. A failure of any side only delays them."""
        pause_s = self._settings.poll_s
        while True:
            await asyncio.sleep(pause_s)
            self._journal.save()
            some = self._journal.first(self._settings.at_once)
            try:
                await self.send(some)
                if not self.waiting:
                    self._all_sent.set()
                pause_s = self._settings.poll_s
                self._delayed.end()
                continue
            except GridError as error:
                self._delayed.note(error.message)
            except Exception:  # a bug must not end the receipts of all jobs
                logger.exception("receipts are delayed, trying again: unexpected error")
            self._journal.postpone(list(some))
            pause_s = min(2 * pause_s, self._settings.longest_pause_s)

    async def send(self, some: Mapping[JobKey, Seen]) -> None:
        """Sign and send the receipts that are ready. Raises GridError while chain, Slurm or services do not answer."""
        if not some:
            return
        now = await self._chain.now()
        jobs = {key: job for key, job in zip(some, await self._jobs(list(some)), strict=True) if job is not None}
        own = {key: job for key, job in jobs.items() if self._is_own(key, job)}
        self._journal.discard([key for key in some if key not in own])
        ready = {
            key: job for key, job in own.items() if job.ended_at and now >= job.ended_at + self._signatory.stable_s
        }
        if len(self._journal) > len(some):  # others may be ready
            self._journal.postpone([key for key in own if key not in ready])
        trails = await read_trails(self._chain, list(ready.values()))
        tres = await self._tres(some, ready)
        used = await self._uses.of_all({(seen.slurm_id or 0, seen.started_at) for seen in map(some.__getitem__, ready)})
        for key, job in ready.items():
            if (settlement := trails[job.id].settlement) is None:
                raise ChainError(f"The node does not show the settlement of job {job.id}.")
            settled, seen = SettledJob(job, settlement, trails[job.id]), some[key]
            place = place_of(self._signatory.cluster, self._signatory.partition, seen.nodes)
            run = (seen.slurm_id or 0, seen.started_at)
            evidence = evidence_of(seen.job, with_use(tres.get(run, ""), used.get(run)))
            contents = contents_of(self._signatory.domain, settled, place, evidence)
            await self._deliver(key, sign_receipt(self._signatory.account, contents))
            self._journal.discard([key])

    async def _deliver(self, key: JobKey, receipt: bytes) -> None:
        """Send one receipt. What the services refuse for good is logged. Raises ServiceError (transient)."""
        try:
            await self._services.send_receipt(key.job_id, receipt)
        except GridError as error:
            if error.transient:
                raise
            logger.warning("job %d: its receipt is not kept: %s", key.job_id, error.message)

    async def _jobs(self, keys: Sequence[JobKey]) -> list[Job | None]:
        try:
            return list(await self._chain.jobs([key.job_id for key in keys]))
        except NotFound:  # a reorganisation removed one of them
            return [await self._job(key) for key in keys]

    async def _job(self, key: JobKey) -> Job | None:
        try:
            return await self._chain.job(key.job_id)
        except NotFound:
            return None

    def _is_own(self, key: JobKey, job: Job) -> bool:
        return job.provider == self._signatory.account.address and job.claimed_at == key.claimed_at

    async def _tres(
        self, some: Mapping[JobKey, Seen], ready: Mapping[JobKey, Job]
    ) -> dict[tuple[int, int | None], str]:
        started = {key: seen for key in ready if (seen := some[key]).slurm_id and seen.started_at}
        if not started:
            return {}
        since = min(seen.started_at or 0 for seen in started.values()) - DAY_S
        rows = await self._cluster.accounting(since, ids=sorted({seen.slurm_id or 0 for seen in started.values()}))
        return {(row.slurm_id, row.started_at): tres_text(row.given) for row in rows or []}
