"""`dps operator serve`, set up as docs/how-to/operator.md says.

It approves proposals, assigns jobs at once, one round at a time, and takes jobs back.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.filters import FlowFilter, FlowFilterName
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import ObjectNotFound
from prefect.settings import PREFECT_API_URL

from blocks import Grid, Operator, Wallet
from deepgrid.lifecycle.job import Label
from deepgrid.lifecycle.states import JobStatus
from orchestration.runs.flow_runs import run_ended, start_run
from tests.chain.grid import CREDIT, DEFINITION, HARDWARE, LABELS, PRICES
from tests.operator.office import MINUTE_S, Office
from tests.temporary_prefect import temporary_prefect
from tests.waiting import until

pytestmark = [pytest.mark.deep, pytest.mark.timeout(600)]

NAME = "served"
REPOSITORY = Path(__file__).parents[3]
WITHIN_S = 180
START_S = 1.0 + 20.0  # from a change to the next round; generous, because machines are shared
HUGE = replace(DEFINITION, ntasks=1000)
MEASURED = (*LABELS, Label("compute.gflops", "1.00"))


@pytest.fixture(scope="module", autouse=True)
def _prefect() -> Iterator[None]:
    with temporary_prefect():
        yield


@pytest.fixture
async def served(office: Office, tmp_path: Path) -> AsyncIterator[Office]:
    """The operator's process, with the deployments of the repository."""
    book, key = office.session.settings.book, office.grid.operator_key
    wallet = Wallet(address=office.people.operator.address, key_file=key)
    block = Operator(
        grid=Grid(address_book=book), wallet=wallet, state=tmp_path / "served", approve_label_changes=True
    )  # fmt: skip
    await block.asave(NAME, overwrite=True)
    env = {**os.environ, "PREFECT_API_URL": PREFECT_API_URL.value() or "", "OPERATOR": NAME}
    with (tmp_path / "operator.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "deepgrid.cli", "operator", "serve", NAME],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, cwd=REPOSITORY,
        )  # fmt: skip
        try:
            await until(_pool_is_there)
            await asyncio.to_thread(_deploy, env, log.fileno())
            yield office
            assert process.poll() is None
        finally:
            process.terminate()
            process.wait(WITHIN_S)
            print((tmp_path / "operator.log").read_text())


async def _pool_is_there() -> bool:
    """Wait for the pool that the process creates.

    The pool for slow flows has no worker here, so this creates it.
    """
    async with get_client() as client:
        try:
            await client.read_work_pool(f"operator-{NAME}")
        except ObjectNotFound:
            return False
        await client.create_work_pool(WorkPoolCreate(name="processes", type="process"))
        return True


def _deploy(env: dict[str, str], log: int) -> None:
    arguments = ["--no-prompt", "deploy", "--all", "--prefect-file", "deployments/operator/prefect.yaml"]
    done = subprocess.run(
        [sys.executable, "-m", "prefect", *arguments],
        stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, cwd=REPOSITORY, check=False,
    )  # fmt: skip
    assert done.returncode == 0


async def test_the_operator_approves_assigns_and_takes_back(served: Office) -> None:
    provider, chain = served.people.provider, served.people.chain
    job_id = await served.people.request()  # it asks for compute.gflops<9, which no provider has yet

    async def assigned() -> bool:
        return (await chain.job(job_id)).status is JobStatus.META_SCHEDULED

    async def approved() -> bool:
        return (await chain.provider(provider.address)).labels == MEASURED

    async def taken_back() -> bool:
        return (await chain.job(job_id)).last_refuser == provider.address

    await provider.register(HARDWARE, PRICES, MEASURED)
    await until(approved)
    await until(assigned)
    served.pass_time(10 * MINUTE_S)
    await start_run(f"expire_claims/{NAME}", {})  # Prefect's test server runs no schedules
    await until(taken_back)
    await no_round_meets_another(served)


async def no_round_meets_another(served: Office) -> None:
    """A job that cannot run causes a round at once. Prefect skips all except one of the rounds that start together."""
    began = time.time()
    await served.people.customer.request_job(HUGE, 200 * CREDIT, "a job", approve_first=200 * CREDIT)

    async def reacted() -> bool:
        return any(begin > began for begin, _ in await rounds())

    await until(reacted)
    assert min(begin for begin, _ in await rounds() if begin > began) - began < START_S
    several = await asyncio.gather(*(start_run(f"meta_schedule/{NAME}", {}) for _ in range(3)))
    await asyncio.gather(*map(run_ended, several))
    done = sorted(await rounds())
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(done))


async def rounds() -> list[tuple[float, float]]:
    """Return begin and end of the completed runs of meta_schedule in unix seconds."""
    async with get_client() as client:
        runs: list[FlowRun] = await client.read_flow_runs(
            flow_filter=FlowFilter(name=FlowFilterName(any_=["meta_schedule"]))
        )
    return [
        (one.start_time.timestamp(), one.end_time.timestamp())
        for one in runs
        if one.start_time and one.end_time and one.state and one.state.is_completed()
    ]
