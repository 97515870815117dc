"""The flow `collect_zombies` under a real Prefect, with a real chain and Slurm: it names the jobs that it ended, and
why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId
from prefect.client.schemas.objects import State
from prefect.logging.handlers import APILogWorker
from prefect.testing.utilities import prefect_test_harness

from deepgrid.lifecycle.decide import LOST
from flows.collect_zombies import MOST_NAMED, collect_zombies
from orchestration import sessions
from tests.provider.claims import account_of, in_queue, running
from tests.provider.scene import Scene
from tests.slurm.losing import lose
from tests.slurm.support import Box
from tests.waiting import until

pytestmark = pytest.mark.long


@pytest.fixture(scope="module", autouse=True)
def prefect() -> Iterator[None]:
    with prefect_test_harness(server_startup_timeout=120):
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
    message, log = state.message or "", await logged(state)
    for words in (
        f"cancelled Slurm job {left_over} of account {account}: job {over.job_id} is panicked",
        f"ended Slurm job {foreign} of account {account}: it belongs to no claim",
    ):
        assert words in message
        assert f"collected: {words}" in log
    (refund,) = (line for line in log if line.startswith(f"collected: job {lost.job_id} is panicked (Slurm job "))
    assert refund.endswith(f" of account {account}): {LOST}")
    assert refund.removeprefix("collected: ") in message
    await until(lambda: not in_queue(box, over))


async def test_the_message_names_some_of_many_jobs_and_the_log_all(approved: Scene, box: Box) -> None:
    session, account = approved.session, account_of(box)
    session.settings = replace(session.settings, trust_customers=False)
    key = await running(approved, box)  # an account with a claim
    foreign = [beside_a_claim(box, account) for _ in range(MOST_NAMED + 1)]
    async with sessions.serving_provider(session):
        state = await collect_zombies("unit", return_state=True)
    message, log = state.message or "", await logged(state)
    assert message.count("ended Slurm job ") == MOST_NAMED
    assert "; and 1 more, which the log names." in message
    for slurm_id in foreign:
        assert f"collected: ended Slurm job {slurm_id} of account {account}: it belongs to no claim" in log
    assert in_queue(box, key) == "RUNNING"


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
