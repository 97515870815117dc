"""The `submit_job` flow on a real Prefect server: a job on chain, and tasks that retry only transient errors."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State, TaskRun
from prefect.settings import PREFECT_API_URL

from blocks import Customer, Grid, Wallet
from deepgrid.billing.formulas import rate_wei_per_minute
from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet as KeyFile
from deepgrid.lifecycle.job import Prefer, Wishes
from deepgrid.lifecycle.states import JobStatus
from flows.submit_job import submit_job
from tests.cli.live import CREDIT, EXAMPLE, Dps, finished
from tests.temporary_prefect import temporary_prefect

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def prefect() -> Iterator[None]:
    with temporary_prefect():
        yield


async def _block(dps: Dps) -> str:
    address = KeyFile.load(dps.key).address
    block = Customer(grid=Grid(address_book=dps.book), wallet=Wallet(address=address, key_file=dps.key))
    await block.save(dps.key.name, overwrite=True)
    return dps.key.name


async def _task_runs(flow_state: State[Any], count: int) -> list[TaskRun]:
    """Return the task runs of a flow run that ended, once `count` of them are recorded: they travel as events."""
    async with asyncio.timeout(120), get_client() as client:
        while True:
            runs = await client.read_task_runs()
            own = [run for run in runs if run.flow_run_id == flow_state.state_details.flow_run_id]
            if len(own) >= count and all(run.state and run.state.is_final() for run in own):
                return own
            await asyncio.sleep(0.2)


@pytest.mark.usefixtures("prefect")
async def test_the_flow_submits_a_job(dps: Dps, chain: Chain) -> None:
    state = await submit_job(await _block(dps), EXAMPLE, "100", affinities=("cpus>=2",), return_state=True)
    assert state.is_completed()
    (job_id,) = await chain.jobs_by_customer(KeyFile.load(dps.key).address)
    assert state.message == f"Job {job_id} is submitted."
    job = await chain.job(job_id)
    assert (job.status, job.name, job.locked_wei) == (JobStatus.PENDING, "hello-world", 100 * CREDIT)
    assert await chain.allowance(job.customer) == 0
    wanted = {f"validate {EXAMPLE}", "store definition", "allow credits", "request job"}
    assert {run.name for run in await _task_runs(state, len(wanted))} == wanted


@pytest.mark.usefixtures("prefect", "provider")
async def test_the_price_ceiling_and_the_terms_reach_the_contract(dps: Dps, chain: Chain) -> None:
    block, owner = await _block(dps), KeyFile.load(dps.key).address
    await submit_job(block, EXAMPLE, "100")
    await submit_job(block, EXAMPLE, "100", max_price="1.5", min_time="20m", prefer="price")
    by_default, by_terms = await chain.jobs(await chain.jobs_by_customer(owner))
    rates = [rate_wei_per_minute(by_default.definition, one.prices) for one in await chain.providers()]
    assert by_default.wishes.max_rate_wei in rates, "a quoted price"
    assert by_terms.wishes == Wishes(15 * CREDIT // 10, 20, 0, Prefer.PRICE)


@pytest.mark.usefixtures("prefect")
async def test_too_few_credits_fail_the_run_at_once_and_send_nothing(dps: Dps, chain: Chain) -> None:
    state = await submit_job(await _block(dps), EXAMPLE, "5", return_state=True)
    assert state.is_failed()
    assert "5 credits are too few" in (state.message or "")
    assert [run.run_count for run in await _task_runs(state, 1)] == [1]
    assert await chain.jobs_by_customer(KeyFile.load(dps.key).address) == []


@pytest.mark.usefixtures("prefect")
@pytest.mark.parametrize("role", ["operator", "provider"])
async def test_serving_a_role_that_prefect_does_not_know_says_so(dps: Dps, role: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "deepgrid.cli", role, "serve", "nobody",
        env=dps.environment | {"PREFECT_API_URL": PREFECT_API_URL.value() or ""}, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    outcome = await finished(process)
    assert outcome.status == 2
    assert f"dps: Prefect has no block deepgrid-{role}/nobody." in outcome.err
