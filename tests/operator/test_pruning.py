"""The flow that deletes old runs, on a real Prefect server: it keeps the runs that a job still needs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from prefect import flow
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.actions import LogCreate
from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId
from prefect.client.schemas.objects import FlowRun, State
from prefect.exceptions import ObjectNotFound
from prefect.states import Completed, Failed, Running

from deepgrid.lifecycle.job import JobKey
from flows.prune_history import prune_history
from orchestration.sessions import serving_operator
from tasks import old_runs
from tasks.action_report import IDLE, idle
from tasks.old_runs import prune_rounds, prune_runs
from tests.operator.office import Office
from tests.temporary_prefect import temporary_prefect

pytestmark = pytest.mark.long

NAME = "tested"
PROVIDER = "0xProvider"


@flow(name="run_job")
async def carried(cluster: str, job_id: int, claimed_at: int) -> None:
    """Have the name and the parameters of the flow that carries a job."""


@flow(name="expire_claims")
async def a_look(operator: str) -> None:
    """Have the name of a flow that looks for work, and whose runs are kept if they did something."""


@flow(name="claim_jobs")
async def a_round(cluster: str) -> None:
    """Have the name of a flow that looks for work."""


@pytest.fixture(scope="module", autouse=True)
def _prefect() -> Iterator[None]:
    with temporary_prefect():
        yield


@pytest.fixture
async def client() -> AsyncIterator[PrefectClient]:
    async with get_client() as client:
        yield client


def soon() -> datetime:
    """Return a time before which every run of this test has ended."""
    return datetime.now(UTC) + timedelta(minutes=1)


async def cancelled(office: Office) -> int:
    """Return a job that is over."""
    job_id = await office.people.request()
    await office.people.customer.cancel_job(job_id)
    return job_id


async def job_run(client: PrefectClient, office: Office, job_id: int, *, contract: str = "") -> FlowRun:
    """Return the failed run of the job's claim, with a line of log."""
    book = office.session.chain.book
    claimed_at = (await office.job(job_id)).claimed_at if not contract else 7
    key = JobKey(book.chain_id, contract or book.meta_scheduler, job_id, claimed_at)
    parameters = {"cluster": "c", "job_id": job_id, "claimed_at": claimed_at}
    deployment = await client.create_deployment(await client.create_flow(carried), name="c")
    run = await client.create_flow_run_from_deployment(
        deployment, parameters=parameters, idempotency_key=f"{key.comment}:{PROVIDER}", state=Failed()
    )
    line = LogCreate(name="t", level=20, message="hello", timestamp=datetime.now(UTC), flow_run_id=run.id)
    await client.create_logs([line])
    return run


async def lines(client: PrefectClient, run: FlowRun) -> int:
    return len(await client.read_logs(LogFilter(flow_run_id=LogFilterFlowRunId(any_=[run.id]))))


async def exists(client: PrefectClient, run: FlowRun) -> bool:
    try:
        await client.read_flow_run(run.id)
    except ObjectNotFound:
        return False
    return True


async def test_runs_of_hot_jobs_and_of_other_grids_stay(client: PrefectClient, office: Office) -> None:
    hot, over = await office.people.running(), await cancelled(office)
    kept = [await job_run(client, office, hot), await job_run(client, office, over, contract="0x" + "77" * 20)]
    gone = await job_run(client, office, over)
    going = await client.create_flow_run(carried, parameters=gone.parameters, state=Running())
    assert await prune_runs(office.session.chain, soon()) == (1, 2)
    assert [await exists(client, run) for run in [*kept, going]] == [True] * 3
    assert not await exists(client, gone)
    again = await job_run(client, office, hot)
    assert again.id == kept[0].id, "the claim's idempotency key was lost"


async def test_all_pages_are_read_past_the_runs_that_stay(
    client: PrefectClient, office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(old_runs, "PAGE", 2)
    monkeypatch.setattr("tasks.old_runs.PAGE", 2)
    monkeypatch.setattr(old_runs, "BATCH_SIZE", 1)
    hot = [await job_run(client, office, await office.people.running()) for _ in range(3)]
    rounds = [await client.create_flow_run(a_round, parameters={"cluster": "c"}, state=Completed()) for _ in range(5)]
    deleted, kept = await prune_runs(office.session.chain, soon())
    assert deleted >= len(rounds)
    assert kept >= len(hot)
    assert [await exists(client, run) for run in hot] == [True] * 3
    assert [await exists(client, run) for run in rounds] == [False] * 5


async def test_rounds_go_first_and_runs_go_with_their_log(client: PrefectClient, office: Office) -> None:
    of_job = await job_run(client, office, await cancelled(office))
    of_round = await client.create_flow_run(a_round, parameters={"cluster": "c"}, state=Completed())
    assert await prune_rounds(soon()) >= 1
    assert [await exists(client, run) for run in (of_job, of_round)] == [True, False]
    assert await lines(client, of_job) == 1
    await prune_runs(office.session.chain, soon())
    async with asyncio.timeout(120):
        while await lines(client, of_job):
            await asyncio.sleep(0.5)


async def test_a_run_that_took_a_job_back_is_kept_longer_than_one_that_found_nothing(client: PrefectClient) -> None:
    states: list[State[None]] = [Completed(message="Took back 1 job (7)."), Failed(), idle("No claim is overdue.")]
    runs = [await client.create_flow_run(a_look, parameters={"operator": "o"}, state=state) for state in states]
    assert await prune_rounds(soon()) >= 1
    assert [await exists(client, run) for run in runs] == [True, True, False]


async def test_the_flow_keeps_what_is_young_and_says_so(client: PrefectClient, office: Office) -> None:
    run = await client.create_flow_run(a_round, parameters={"cluster": "c"}, state=Completed())
    async with serving_operator(NAME, office.session):
        state = await prune_history(operator=NAME, return_state=True)
    assert (state.name, state.message) == (IDLE, "No run is old enough.")
    assert await exists(client, run)
