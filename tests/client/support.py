"""A simulated cluster of the live grid, which takes and ends all jobs of one customer by itself."""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from unittest import mock

from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.errors import NotFound
from deepgrid.lifecycle.feature_labels import PRIVATE
from deepgrid.lifecycle.job import Job, Label
from deepgrid.lifecycle.states import JobStatus
from tests.appending import push_log
from tests.chain.grid import approve_waiting, pass_a_second
from tests.cli.live import HARDWARE, LABELS, PRICES, Live, Party, party

WITHIN_S = 60
LOOK_S = 0.05
FIXTURE_S = 120


@dataclass(frozen=True)
class End:
    """How the cluster ends a job: the output, the final state, Slurm's wait status (768 for exit code 3), the error."""

    output: bytes = b"one\ntwo\n"
    status: JobStatus = JobStatus.FINISHED
    wait_status: int = 0
    error: str = ""


@dataclass
class SimulatedCluster:
    """Assigns, claims, runs and settles jobs in its own thread, while tests block theirs.

    Attributes:
        ends: Decides how a job ends. None keeps the job running; the next poll asks again.
        labels: Labels besides its name and `os=linux`, until it is started.
        private: Whether it publishes a key for private files.
        began: Ids of the jobs that the cluster has started.
    """

    live: Live
    customer: str
    name: str
    ends: Callable[[Job], End | None] = lambda _: End()
    labels: tuple[Label, ...] = ()
    private: bool = False
    began: list[int] = field(default_factory=list)

    async def _serve(self, ready: threading.Event, stop: threading.Event) -> None:
        book = self.live.address_book()
        async with AsyncExitStack() as stack:
            chain = await stack.enter_async_context(await Chain.connect(book))
            operator = party(chain, Wallet.load(self.live.grid.operator_key))
            wallet = self.live.grid.new_key(f"cluster-{self.name}")
            provider = party(chain, wallet)
            stack.push_async_callback(operator.close)
            stack.push_async_callback(provider.close)
            labels = (Label("name", self.name), *LABELS[1:], *self.labels)
            if self.private:
                labels += (Label(PRIVATE, wallet.public_key.hex()),)
            await provider.writer.register(HARDWARE, PRICES, labels)
            await approve_waiting(operator.writer, provider.address)
            ready.set()
            while not stop.is_set():
                await self._look(chain, operator, provider)
                await asyncio.sleep(LOOK_S)

    async def _look(self, chain: Chain, operator: Party, provider: Party) -> None:
        try:
            jobs = await chain.jobs(await chain.jobs_by_customer(self.customer))
        except NotFound:  # while it mines, anvil may answer a read from an older block than the previous read
            return
        pending = [job.id for job in jobs if job.status is JobStatus.PENDING]
        await asyncio.gather(*(operator.writer.meta_schedule(job_id, provider.address) for job_id in pending))
        while await chain.next_claimable(provider.address) and (claimed := await provider.writer.claim_next()):
            await provider.writer.set_running(claimed.job_id, 0)
            await pass_a_second(chain)
            self.began.append(claimed.job_id)
        running = [job for job in jobs if job.status is JobStatus.RUNNING and job.provider == provider.address]
        await asyncio.gather(*(self._end(provider, job) for job in running))

    async def _end(self, provider: Party, job: Job) -> None:
        end = self.ends(job)
        if end is not None:
            await push_log(provider.services, job.id, 0, end.output, final=True)
            await provider.writer.settle(job.id, end.status, 1, end.error, end.wait_status)


@contextmanager
def simulated_cluster(cluster: SimulatedCluster) -> Iterator[SimulatedCluster]:
    """Run the cluster. An error in it fails the test."""
    ready, stop = threading.Event(), threading.Event()
    errors: list[BaseException] = []

    def serve() -> None:
        try:
            asyncio.run(cluster._serve(ready, stop))
        except BaseException as error:
            errors.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=serve, name="simulated cluster")
    thread.start()
    try:
        assert ready.wait(FIXTURE_S)
        yield cluster
    finally:
        stop.set()
        thread.join(FIXTURE_S)
    if errors:
        raise errors[0]


class Access(Protocol):
    """What a program needs: a key file and an address book."""

    @property
    def key(self) -> Path: ...

    @property
    def book(self) -> Path: ...


def run_program(text: str, customer: Access, names: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run a program with the customer's environment in this process. Returns its variables. It may await at its top
    level, as in a notebook. `names` are predefined.
    """
    variables = dict(names or {})
    code = compile(text, "example", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    with mock.patch.dict(os.environ, DPS_KEY_FILE=str(customer.key), DEEPGRID_BOOK=str(customer.book)):
        ended = eval(code, variables)  # noqa: S307 - our own examples
        if inspect.iscoroutine(ended):
            asyncio.run(ended)
    return variables
