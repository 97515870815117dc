"""Claims are carried while Prefect's API does not answer, on a real chain and a real Slurm cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from deepgrid.errors import ConfigurationError
from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.lifecycle.states import JobStatus
from deepgrid.provider.claims.carrier import carry
from deployments.provider.carriers import CarrierSettings, CarrierWatchdog
from tests.provider.scene import Scene
from tests.waiting import until

WITHIN_S = 120
QUICK = CarrierSettings(poll_s=0.1, ask_after_s=0.1, silence_s=0.1)


@pytest.fixture(autouse=True)
def without_prefect() -> Iterator[None]:
    """No server listens at the address of Prefect."""
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:1/api"}):
        yield


@pytest.fixture
async def hot(scene: Scene, key: JobKey) -> AsyncIterator[dict[int, Job]]:
    """The provider's hot jobs, under a watchdog."""
    await scene.session.leader.elected()
    hot = {key.job_id: await scene.session.chain.job(key.job_id)}
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(CarrierWatchdog(scene.session, hot, group, QUICK).watch())
        yield hot
        hot.clear()
        watching.cancel()
        fallbacks = [task for task in asyncio.all_tasks() if task.get_name().startswith("fallback")]
        for task in fallbacks:
            task.cancel()


async def test_what_a_customer_cancels_is_settled_without_prefect(
    scene: Scene, key: JobKey, hot: dict[int, Job]
) -> None:
    await until(lambda: scene.session.carries(key))
    await scene.customer.cancel_job(key.job_id)
    scene.session.wakeups.wake([key.job_id])
    async with asyncio.timeout(WITHIN_S):
        while (job := await scene.session.chain.job(key.job_id)).status.hot or scene.session.carries(key):
            await asyncio.sleep(0.1)
    assert job.status is JobStatus.CANCELLED
    restarted = CarrierWatchdog(scene.session, {}, asyncio.TaskGroup())
    assert restarted._over() == [key]  # it knows whose run must be updated


async def test_a_completion_record_that_cannot_be_removed_ends_no_supervisor(
    scene: Scene, key: JobKey, hot: dict[int, Job], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """For example, the login node shows another host key. That once ended all fallbacks."""

    async def refuse(_: JobKey) -> None:
        raise ConfigurationError("The login node shows another host key.")

    monkeypatch.setattr(scene.session.cluster, "acknowledge", refuse)
    await until(lambda: scene.session.carries(key))
    await scene.customer.cancel_job(key.job_id)
    scene.session.wakeups.wake([key.job_id])
    async with asyncio.timeout(WITHIN_S):
        while "its completion record stays: The login node" not in caplog.text or scene.session.carries(key):
            await asyncio.sleep(0.1)


async def test_a_run_takes_the_claim_over_and_keeps_it(scene: Scene, key: JobKey, hot: dict[int, Job]) -> None:
    await until(lambda: scene.session.carries(key))  # its steps fail: no service serves the definition
    assert scene.session.may_carry(key)
    async with carry(scene.session, key):
        assert not scene.session.may_carry(key)
        assert not [task for task in asyncio.all_tasks() if task.get_name() == f"fallback of job {key.job_id}"]
    await until(lambda: scene.session.carries(key))
