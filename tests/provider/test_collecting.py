"""The flow `collect_zombies` under a real Prefect, with a real chain and Slurm: it names the jobs that it
ended, and why, in its log and in a table.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from prefect.artifacts import Artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId
from prefect.client.schemas.objects import State
from prefect.logging.handlers import APILogWorker

from deepgrid.lifecycle.decide import LOST
from flows.collect_zombies import collect_zombies
from orchestration import sessions
from tasks.action_report import IDLE
from tests.provider.claims import account_of, in_queue, running
from tests.provider.scene import Scene
from tests.slurm.losing import lose
from tests.slurm.support import Box
from tests.temporary_prefect import temporary_prefect
from tests.waiting import until

pytestmark = pytest.mark.long


@pytest.fixture(scope="module", autouse=True)
def prefect() -> Iterator[None]:
    with temporary_prefect():
        yield


async def test_the_flow_names_each_job_that_it_ended_its_account_and_the_reason(approved: Scene, box: Box) -> None:
    session, account = approved.session, account_of(box)
    session.settings = replace(session.settings, trust_customers=False)
    lost, over = await running(approved, box), await running(approved, box)
    lose(box.site, box.name, lost)
    await approved.operator.panic_job(over.job_id, "the operator ended it")
    left_over = box.slurm("squeue", "-h", "-a", "-n", over.name, "-o", "%A").strip()
    foreign = beside_a_claim(box, account)
    async with sessions.serving_provider(session):
        state = await collect_zombies("unit", grace_s=5, return_state=True)
    assert state.is_completed(), state
    for counts in (f"ancelled 1 Slurm job ({over.job_id})", "ended 1 Slurm job", f"ettled 1 job ({lost.job_id})"):
        assert counts in (state.message or "")
    customer = (await session.chain.job(lost.job_id)).customer
    log, table = await logged(state), await published("collect-zombies-unit")
    for words in (
        f"cancelled Slurm job: job={over.job_id} slurm_id={left_over} account={account}: job {over.job_id} is panicked",
        f"ended Slurm job: slurm_id={foreign} account={account}: it belongs to no claim",
    ):
        assert f"done: {words}" in log
    (refund,) = (line for line in log if line.startswith(f"done: settled job: job={lost.job_id} slurm_id="))
    assert refund.endswith(f" account={account} customer={customer} credits=0: it is panicked, {LOST}")
    rows = {(row["action"], row["job"]): row for row in table}
    assert {("cancelled Slurm job", over.job_id), ("ended Slurm job", "")} <= rows.keys()
    settled = rows["settled job", lost.job_id]
    assert (settled["credits"], settled["customer"], settled["account"]) == ("0", customer, str(account))
    await until(lambda: not in_queue(box, over))


async def test_a_run_that_finds_nothing_is_idle(approved: Scene, box: Box) -> None:
    await running(approved, box)
    async with sessions.serving_provider(approved.session):
        state = await collect_zombies("unit", return_state=True)
    assert (state.is_completed(), state.name, state.message) == (True, IDLE, "No zombie among 1 jobs.")


def beside_a_claim(box: Box, account: int) -> str:
    """Submit a job of the customers' account that belongs to no claim. Returns its Slurm id."""
    options = ["--hold", f"--uid={account}", "--wrap=true", "--output=/dev/null"]
    return box.slurm("sbatch", "--parsable", *options).strip()


async def logged(state: State[None]) -> list[str]:
    """Return the lines in the log of the run with this state."""
    run_id = state.state_details.flow_run_id
    assert run_id is not None
    await asyncio.to_thread(APILogWorker.drain_all, timeout=30)
    async with get_client() as client:
        lines = await client.read_logs(LogFilter(flow_run_id=LogFilterFlowRunId(any_=[run_id])))
    return [line.message for line in lines]


async def published(key: str) -> list[dict[str, object]]:
    """Return the rows of the newest table artifact with this key."""
    found = await Artifact.aget(key)
    assert found is not None
    return list(json.loads(str(found.data)))
