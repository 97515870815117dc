"""A batch of jobs of mixed kinds: submitted in few transactions, cancelled, topped up and watched."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

from deepgrid.chain.batches import Request
from deepgrid.errors import ChainError, ContractError, GridError, NotFound
from deepgrid.lifecycle.job import Job, JobDefinition, Label
from deepgrid.lifecycle.states import JobStatus
from tests.chaos.kinds import KINDS, Kind, Steering, definition, slurm_name
from tests.chaos.world import CREDIT_WEI, World

LOCKED_WEI = 20 * CREDIT_WEI
TOP_UP_WEI = 10 * CREDIT_WEI
LOOK_S = 0.3
LOST_BLOCKS = 32  # the most that a fault may drop from the chain
PATIENCE_S = 300.0


class Overdue(AssertionError):
    """An expected event did not happen in time."""


class Batch:
    """The jobs of one round; an asynchronous context manager."""

    def __init__(self, world: World, rng: random.Random, *, anywhere: bool = False) -> None:
        self._world = world
        self._rng = rng
        self._held: list[int] = []
        self._anywhere = anywhere
        self._uses = () if anywhere else (Label("name", world.cluster),)
        self._steering: list[asyncio.Task[None]] = []
        self.kinds: dict[int, Kind] = {}
        self.latest: dict[int, Job] = {}
        self.topped_up: set[int] = set()

    async def __aenter__(self) -> Batch:
        self.first_block = max(0, (await self._world.chain.head()).number - LOST_BLOCKS)
        self.began_at = int(time.time())
        self._watching = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.open()
        for task in (self._watching, *self._steering):
            task.cancel()
        await asyncio.gather(self._watching, *self._steering, return_exceptions=True)

    async def submit(self, names: Sequence[str]) -> list[int]:
        """Request one job of each named kind in one transaction. Returns their ids."""
        kinds = [KINDS[name] for name in names]
        hashes = dict(await asyncio.gather(*map(self._upload, set(kinds))))
        requests = [Request(self._definition(kind, hashes), self._locked(kind), kind.name) for kind in kinds]
        ids = await self._world.customer.writer.request_jobs(requests)
        for job_id, kind in zip(ids, kinds, strict=True):
            self.kinds[job_id] = kind
            self._held.append(job_id)
            if kind.steering is not Steering.NOTHING:
                self._steering.append(asyncio.create_task(self._steer(job_id, kind, self._rng.choice(kind.steer_at))))
        return ids

    async def until(self, reached: Callable[[Job], bool], of: Collection[int], *, count: int = 1) -> None:
        """Wait until `reached` is true for `count` of the jobs `of`."""
        deadline = time.monotonic() + PATIENCE_S
        while sum(reached(self.latest[job_id]) for job_id in of if job_id in self.latest) < min(count, len(of)):
            if time.monotonic() > deadline:
                raise Overdue("\n".join(f"job {i} is {self.latest[i].status.words}" for i in of if i in self.latest))
            await asyncio.sleep(LOOK_S)

    def hot(self) -> list[int]:
        """Return the jobs that are hot by the latest reading."""
        return [job_id for job_id in self.kinds if not (job_id in self.latest and self.latest[job_id].status.cold)]

    def open(self) -> None:
        """Release the jobs held so far, because many faults in a row would fill the cluster. Later jobs are held."""
        for job_id in self._held:
            (self._world.gates / slurm_name(job_id)).touch()
        self._held.clear()

    async def end(self, within_s: float) -> None:
        """Release the held jobs and wait until every job is cold."""
        deadline = time.monotonic() + within_s
        async with asyncio.timeout(within_s):
            await asyncio.gather(*self._steering)
        self.open()
        # Read all of them once more, because a reorganisation may have dropped final states.
        while self.hot() or not await self._look(list(self.kinds)) or self.hot():
            if time.monotonic() > deadline:
                raise Overdue(f"after {within_s:.0f} s: " + ", ".join(map(self._words, self.hot() or self.kinds)))
            await asyncio.sleep(LOOK_S)

    async def leave(self, within_s: float) -> None:
        """Let the jobs of a failed round end where possible, because they would disturb the next round."""
        self.open()
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self.hot():
                    await asyncio.sleep(LOOK_S)

    def _words(self, job_id: int) -> str:
        status = self.latest[job_id].status.words if job_id in self.latest else "unknown"
        return f"job {job_id} ({self.kinds[job_id].name}) is {status}"

    async def _watch(self) -> None:
        while True:
            if hot := self.hot():
                await self._look(hot)
            await asyncio.sleep(LOOK_S)

    async def _look(self, job_ids: list[int]) -> bool:
        """Read these jobs; False when the node is down or a reorganisation dropped a job."""
        with suppress(GridError):
            self.latest |= {job.id: job for job in await self._world.chain.jobs(job_ids)}
            return True
        return False

    async def _steer(self, job_id: int, kind: Kind, at: JobStatus) -> None:
        """Cancel or top up the job once it is in state `at`."""
        done = False
        while not done:
            await asyncio.sleep(LOOK_S)
            with suppress(
                NotFound, ChainError
            ):  # a reorganisation dropped the job, which will return, or the node is down
                done = await self._steered(job_id, kind, at)

    async def _steered(self, job_id: int, kind: Kind, at: JobStatus) -> bool:
        """Cancel or top up if the job is in state `at`. Returns True when nothing is left to do."""
        if job_id not in self.latest or self.latest[job_id].status < at:
            return False
        writer = self._world.customer.writer
        try:
            if kind.steering is Steering.CANCEL:
                await writer.cancel_job(job_id)
            else:
                await writer.top_up(job_id, TOP_UP_WEI)
                self.topped_up.add(job_id)
        except ContractError as error:
            if error.name == "RunningScheduledStatusOnly":  # the job is over, or a reorganisation dropped its state
                return (await self._world.chain.job(job_id)).status.cold
            if not (await self._world.chain.job(job_id)).status.cold:
                raise AssertionError(f"job {job_id}: {error}") from error
        return True

    async def _upload(self, kind: Kind) -> tuple[str, str]:
        """Store the kind's definition again, because the services delete it when its jobs are over."""
        model = definition(kind, str(self._world.starts), str(self._world.gates))
        return kind.name, await self._world.customer.services.upload(model)

    def _definition(self, kind: Kind, hashes: Mapping[str, str]) -> JobDefinition:
        resources = definition(kind, "", "").resources
        return JobDefinition(
            gpus=resources.gpus, mem_per_cpu_mb=resources.mem_per_cpu, cpus_per_task=resources.cpus_per_task,
            ntasks=resources.tasks, definition_hash=hashes[kind.name], uses=self._uses,
        )  # fmt: skip

    def _locked(self, kind: Kind) -> int:
        """Return the wei for the kind's minutes plus half a minute, or for one minute on the other cluster."""
        if not kind.minutes_locked:
            return LOCKED_WEI
        return kind.minutes_locked * CREDIT_WEI * (4 if self._anywhere else 3) // 2
