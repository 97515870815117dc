"""Claims are carried while Prefect's API refuses to talk, on a real chain and a real Slurm cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from prefect.client.schemas.objects import FlowRun, State
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.states import Cancelled, Cancelling, Completed, Crashed, Failed, Pending, Running

from deepgrid.errors import ConfigurationError
from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.lifecycle.states import JobStatus
from deepgrid.provider.carrier import carry
from deployments.provider import carriers as carrying
from deployments.provider.carriers import AGAIN_S, GRACE_S, Carrying, _patience
from tests.roles.conftest import Scene

WITHIN_S = 120


@pytest.fixture(autouse=True)
def nobody() -> Iterator[None]:
    """Nobody listens at the address of Prefect."""
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:1/api"}):
        yield


@pytest.fixture
async def hot(scene: Scene, key: JobKey, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[dict[int, Job]]:
    """The provider's hot jobs, looked after."""
    for pause in ("LOOK_S", "ASK_AFTER_S", "SILENT_S"):
        monkeypatch.setattr(carrying, pause, 0.1)
    await scene.session.leader.elected()
    hot = {key.job_id: await scene.session.chain.job(key.job_id)}
    async with asyncio.TaskGroup() as group:
        looking = group.create_task(Carrying(scene.session, hot, group).look_after())
        yield hot
        hot.clear()
        looking.cancel()
        stand_ins = [task for task in asyncio.all_tasks() if task.get_name().startswith("stand-in")]
        for task in stand_ins:
            task.cancel()


async def until_carried(scene: Scene, key: JobKey) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not scene.session.carries(key):
            await asyncio.sleep(0.05)


async def test_what_a_customer_cancels_is_settled_without_prefect(
    scene: Scene, key: JobKey, hot: dict[int, Job]
) -> None:
    await until_carried(scene, key)
    await scene.customer.cancel_job(key.job_id)
    scene.session.wakeups.wake([key.job_id])
    async with asyncio.timeout(WITHIN_S):
        while (job := await scene.session.chain.job(key.job_id)).status.hot or scene.session.carries(key):
            await asyncio.sleep(0.1)
    assert job.status is JobStatus.CANCELLED
    assert Carrying(scene.session, {}, asyncio.TaskGroup())._over() == [key]  # a restart knows whose run is to be told


async def test_a_record_that_cannot_be_freed_ends_no_supervisor(
    scene: Scene, key: JobKey, hot: dict[int, Job], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As when the login node shows another host key just then: the stand-in took all others with it."""

    async def refuse(_: JobKey) -> None:
        raise ConfigurationError("The login node shows another host key.")

    monkeypatch.setattr(scene.session.cluster, "acknowledge", refuse)
    await until_carried(scene, key)
    await scene.customer.cancel_job(key.job_id)
    scene.session.wakeups.wake([key.job_id])
    async with asyncio.timeout(WITHIN_S):
        while "its completion record stays: The login node" not in caplog.text or scene.session.carries(key):
            await asyncio.sleep(0.1)


async def test_a_run_takes_the_claim_over_and_keeps_it(scene: Scene, key: JobKey, hot: dict[int, Job]) -> None:
    await until_carried(scene, key)  # and its steps fail for now: no service hands out the script
    assert scene.session.may_carry(key)
    async with carry(scene.session, key):
        assert not scene.session.may_carry(key)
        assert not [task for task in asyncio.all_tasks() if task.get_name() == f"stand-in of job {key.job_id}"]
    await until_carried(scene, key)


@pytest.mark.parametrize(
    ("state", "patience_s"),
    [
        (None, GRACE_S), (Pending(), GRACE_S), (Running(), GRACE_S), (Crashed(), GRACE_S),
        (Cancelling(), AGAIN_S), (Cancelled(), AGAIN_S), (Failed(), AGAIN_S), (Completed(), AGAIN_S),
    ],
    ids=str,
)  # fmt: skip
def test_what_a_person_ended_rests_for_a_while(state: State | None, patience_s: float) -> None:
    run = None if state is None else FlowRun.model_construct(state=state)
    assert _patience(run) == patience_s
